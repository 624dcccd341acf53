"""Files of predicted boxes: with a score for every known class, or with one label each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from curation.core.errors import PredictionError
from curation.core.json_text import json_rows
from curation.core.reading import InputFile
from curation.core.writing import write_text
from curation.evaluation.detection_files import Int64, Row, decoding, read_rows
from curation.evaluation.problem import LARGEST_SCORE, MAX_COORDINATE, UNKNOWN, Floats, Int64s

_EXAMPLE = '[{"image_id": 1, "bbox": [x, y, w, h], "scores": [0.7, 0.2, 0.1]}, ...]'


_Corner = Annotated[float, Meta(ge=-MAX_COORDINATE, le=MAX_COORDINATE)]
_Size = Annotated[float, Meta(ge=0, le=MAX_COORDINATE)]
_Score = Annotated[float, Meta(ge=-LARGEST_SCORE, le=LARGEST_SCORE)]


class _Row(msgspec.Struct, gc=False):
    image_id: Int64 | str
    bbox: tuple[_Corner, _Corner, _Size, _Size]
    scores: tuple[_Score, ...]
    background_score: _Score | None = None
    objectness: float | None = None
    region: Int64 | None = None


@dataclass(frozen=True, slots=True)
class ScoreVectors:
    """Predicted boxes in file order, with a score for every known class.

    Attributes
    ----------
    image_ids : tuple of int or str, length n
        As the file writes them.
    image : ndarray of int64, shape (n,)
        Position of the image among the distinct ids, in order of first appearance.
    boxes : ndarray of float64, shape (n, 4)
        ``x, y, w, h`` in pixels.
    scores : ndarray of float64, shape (n, K)
        Scores of the known classes, without the background.
    background : ndarray of float64, shape (n,), or None
    objectness : ndarray of float64, shape (n,), or None
    region : ndarray of int64, shape (n,), or None
        Region of interest that a box of a stochastic pass belongs to.
    name, sha256 : str
        Name and digest of the file.
    """

    image_ids: tuple[int | str, ...]
    image: Int64s
    boxes: Floats
    scores: Floats
    background: Floats | None
    objectness: Floats | None
    region: Int64s | None
    name: str
    sha256: str

    def __len__(self) -> int:
        return len(self.image_ids)


@dataclass(frozen=True, slots=True)
class LabelledBoxes:
    """Boxes with one label each, such as the output of a baseline.

    Attributes
    ----------
    row : ndarray of int64, shape (d,)
        Position of each box in the input.
    label : ndarray of int64, shape (d,)
        Position among the K known classes; K for unknown.
    scores : ndarray of float64, shape (d,)
    """

    row: Int64s
    label: Int64s
    scores: Floats


def read_score_vectors(path: Path, *, n_classes: int | None = None) -> ScoreVectors:
    """Return the boxes and score vectors of a JSON file.

    Parameters
    ----------
    path : Path
        A list of ``image_id, bbox, scores`` records, and optional ``background_score``, ``objectness``, ``region``.
    n_classes : int, optional
        Number of scores that each record must have; by default that of the first record.

    Raises
    ------
    MissingFileError
        The file does not exist.
    PredictionError
        The file is not such a list, vectors differ in length, or a box or score is invalid. The message names the
        record.

    Examples
    --------
    >>> import curation, json, pathlib, tempfile
    >>> rows = [{"image_id": 1, "bbox": [0, 0, 9, 9], "scores": [0.5, 0.3, 0.1]}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "scores.json"
    ...     _ = path.write_text(json.dumps(rows))
    ...     vectors = curation.methods.read_score_vectors(path)
    >>> vectors.scores.tolist()
    [[0.5, 0.3, 0.1]]
    """
    file = InputFile(path, kind="score file")
    with decoding(file, _EXAMPLE, "The score vectors"):
        rows = json_rows(file.data, _Row)
    width = n_classes if n_classes is not None else len(rows[0].scores) if rows else 0
    for number, row in enumerate(rows):
        if len(row.scores) != width:
            raise PredictionError(
                "Wrong number of scores in a record",
                where=f"{path}: record {number}",
                expected=f"{width} scores, one per known class, without the background",
                found=str(len(row.scores)),
            )
    ids = tuple(row.image_id for row in rows)
    return ScoreVectors(
        ids,
        image_positions(ids),
        np.array([row.bbox for row in rows], np.float64).reshape(len(rows), 4),
        np.array([row.scores for row in rows], np.float64).reshape(len(rows), width),
        _column([row.background_score for row in rows], path, "background_score"),
        _column([row.objectness for row in rows], path, "objectness"),
        _column([row.region for row in rows], path, "region", np.int64),
        path.name,
        file.sha256,
    )


def image_positions(ids: Sequence[int | str]) -> Int64s:
    """Return the position of each image among the distinct ids, in order of first appearance, shape (n,).

    Examples
    --------
    >>> import curation
    >>> curation.methods.image_positions(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    number = {image: position for position, image in enumerate(dict.fromkeys(ids))}
    return np.array([number[image] for image in ids], np.int64)


def _column(values: Sequence[float | None], path: Path, name: str, dtype: type = np.float64) -> Any:
    """Return a field of all records, shape (n,), or None if no record has it."""
    if all(value is None for value in values):
        return None
    if None in values:
        where = f"{path}: record {values.index(None)}"
        raise PredictionError(f"Some records lack {name}", where=where, expected="a number in every record, or in none")
    return np.array(values, dtype)


def write_results(
    vectors: ScoreVectors,
    labelled: LabelledBoxes,
    known: Sequence[str],
    path: Path,
    *,
    ids: Mapping[str, int] | None = None,
    columns: Mapping[str, Sequence[Any]] | None = None,
) -> None:
    """Write COCO results (``image_id, category_id, category, bbox, score``) in the order of `labelled`.

    Parameters
    ----------
    known : sequence of str, length K
        Names of the known classes; a label of K is ``unknown``.
    ids : mapping of str to int, optional
        Category id of every known class and of ``unknown``; without it, records have only the class name.
    columns : mapping of str to sequence of length n, optional
        Further values of each box.

    Examples
    --------
    >>> import curation, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "detections.json"
    ...     _ = path.write_text('[{"image_id": 1, "category": "unknown", "bbox": [0, 0, 9, 9], "score": 0.5}]')
    ...     vectors, labelled = curation.methods.read_labelled(path, ["owl", "elk"])
    ...     curation.methods.write_results(vectors, labelled, ["owl", "elk"], path.with_name("copy.json"))
    ...     print(path.with_name("copy.json").read_text(), end="")
    [
    {"image_id": 1, "category": "unknown", "bbox": [0.0, 0.0, 9.0, 9.0], "score": 0.5}
    ]
    """
    names = (*known, UNKNOWN)
    rows: list[dict[str, Any]] = [
        {
            "image_id": vectors.image_ids[row],
            **({} if ids is None else {"category_id": ids[names[label]]}),
            "category": names[label],
            "bbox": vectors.boxes[row].tolist(),
            "score": score,
            **{name: values[row] for name, values in (columns or {}).items()},
        }
        for row, label, score in zip(
            labelled.row.tolist(), labelled.label.tolist(), labelled.scores.tolist(), strict=True
        )
    ]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    write_text(path, f"[\n{lines}\n]\n" if rows else "[]\n")


def read_labelled(
    path: Path, known: Sequence[str], ids: Mapping[str, int] | None = None
) -> tuple[ScoreVectors, LabelledBoxes]:
    """Return the boxes of a results file and their labels: known classes by position, unknown last.

    Parameters
    ----------
    ids : mapping of str to int, optional
        Category id of every known class and of ``unknown``. Without it, only ``category`` is read.

    Raises
    ------
    PredictionError
        The file is not a results file; or a record has an unknown class, a name and id that disagree, only an id
        without `ids`, or an invalid box or score.

    Examples
    --------
    >>> import curation, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "detections.json"
    ...     _ = path.write_text('[{"image_id": 1, "category": "unknown", "bbox": [0, 0, 9, 9], "score": 0.5}]')
    ...     vectors, labelled = curation.methods.read_labelled(path, ["owl", "elk"])
    >>> labelled.label.tolist()
    [2]
    """
    file = InputFile(path, kind="detections file")
    rows = read_rows(file)
    names: dict[str | None, int] = {name: number for number, name in enumerate((*known, UNKNOWN))}
    numbers: dict[int | None, int] = {} if ids is None else {ids[name]: names[name] for name in (*known, UNKNOWN)}

    def label_of(row: Row) -> int:
        by_name, by_id = names.get(row.category, -1), numbers.get(row.category_id, -1)
        if row.category is None:
            return by_id
        return by_name if ids is None or row.category_id is None or by_name == by_id else -1

    labels = [label_of(row) for row in rows]
    boxes = np.array([row.bbox for row in rows], np.float64).reshape(len(rows), 4)
    scores = np.array([row.score for row in rows], np.float64)
    usable = (np.abs(boxes) <= MAX_COORDINATE).all(axis=1) & (boxes[:, 2:] >= 0).all(axis=1)
    usable &= np.isfinite(scores) & (np.array(labels, np.int64) >= 0)
    if not usable.all():
        number = int(np.argmin(usable))
        raise PredictionError(
            "Invalid class, box or score of a record",
            where=f"{path}: record {number}",
            expected=f"unknown, or one of: {', '.join(known)[:200]}; finite x, y, w, h and score",
            found=f"category {rows[number].category!r:.80}, id {rows[number].category_id}, {rows[number].bbox}"[:200],
            hint="category ids need the argument ids, and must agree with category",
        )
    image_ids = tuple(row.file_name or "" if row.image_id is None else row.image_id for row in rows)
    positions, nothing = image_positions(image_ids), np.empty((len(rows), 0))
    vectors = ScoreVectors(image_ids, positions, boxes, nothing, None, None, None, path.name, file.sha256)
    return vectors, LabelledBoxes(np.arange(len(rows)), np.array(labels, np.int64), scores)
