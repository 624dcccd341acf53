"""COCO results with known and unknown labels, as boxes that a post-processing step may thin out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from curation.baselines.score_vectors import LARGEST_COORDINATE, Labelled, ScoreVectors
from curation.errors import PredictionError
from curation.input_files import InputFile, json_rows

_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Row(msgspec.Struct, gc=False):
    image_id: _Int64 | str
    bbox: tuple[float, float, float, float]
    score: float
    category_id: _Int64 | None = None
    category: str | None = None


def read_labelled(
    path: Path, known: Sequence[str], ids: Mapping[str, int] | None = None
) -> tuple[ScoreVectors, Labelled]:
    """Return the boxes of a results file and their labels: known classes by place, unknown as the last.

    Parameters
    ----------
    ids : mapping of str to int, optional
        Category id of every known class and of ``unknown``. Without it records are told apart by ``category`` alone:
        whose ids they hold is not known.

    Raises
    ------
    PredictionError
        It is no results file, or a record has another class, a name and an id that disagree, an id alone where ids are
        not known, or a box or score that is not usable.
    """
    given = InputFile(path, kind="detections file")
    try:
        rows = json_rows(given.data, _Row)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PredictionError(
            "The detections cannot be read",
            where=str(path),
            expected='a JSON list of {"image_id", "category" or "category_id", "bbox", "score"}',
            found=str(error)[:200],
        ) from None
    names: dict[str | None, int] = {name: place for place, name in enumerate((*known, "unknown"))}
    numbers: dict[int | None, int] = {}
    if ids is not None:
        numbers = {ids[name]: place for place, name in enumerate((*known, "unknown"))}

    def label_of(row: _Row) -> int:
        by_name, by_id = names.get(row.category, -1), numbers.get(row.category_id, -1)
        if row.category is None:
            return by_id
        return by_name if ids is None or row.category_id is None or by_name == by_id else -1

    labels = [label_of(row) for row in rows]
    boxes = np.array([row.bbox for row in rows], np.float64).reshape(len(rows), 4)
    scores = np.array([row.score for row in rows], np.float64)
    usable = (
        (np.abs(boxes) <= LARGEST_COORDINATE).all(axis=1)
        & (boxes[:, 2:] >= 0).all(axis=1)
        & np.isfinite(scores)
    )
    usable &= np.array(labels, np.int64) >= 0
    if not usable.all():
        place = int(np.argmin(usable))
        raise PredictionError(
            "A record has a class, box or score that cannot be",
            where=f"{path}: record {place}",
            expected=f"unknown, or one of: {', '.join(known)[:200]}; finite x, y, w, h and score",
            found=f"category {rows[place].category!r:.80}, id {rows[place].category_id}, {rows[place].bbox}"[
                :200
            ],
            hint="ids are read with --truth, which says whose they are, and must agree with category"
            if rows[place].category_id is not None
            else None,
        )
    image_ids = tuple(row.image_id for row in rows)
    number = {image: place for place, image in enumerate(dict.fromkeys(image_ids))}
    vectors = ScoreVectors(
        image_ids,
        np.array([number[image] for image in image_ids], np.int64),
        boxes,
        np.empty((len(rows), 0)),
        None,
        None,
        None,
        path.name,
        given.sha256,
    )
    return vectors, Labelled(np.arange(len(rows)), np.array(labels, np.int64), scores)
