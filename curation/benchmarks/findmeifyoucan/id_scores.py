"""OOD scores of in-distribution detections: JSON, NumPy or CSV, or a detections file of the ID test set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from curation.benchmarks.findmeifyoucan.detections import (
    UNNAMED,
    ClassReading,
    image_key,
    logits_of,
    method_scores,
    read_classes,
    read_records,
    reference_of,
    require_usable,
)
from curation.core.csv_table import cell_text
from curation.core.errors import PredictionError
from curation.core.json_keys import refuse_repeated_keys
from curation.core.reading import InputFile, is_json_lines
from curation.evaluation.problem import Floats
from curation.evaluation.score_files import IMAGES, LABELS, PREDICTIONS, open_columns

_FORMS = (
    '{"scores": [numbers]}, {"scores": {METHOD: [numbers]}}, a detections file, a one-dimensional .npy of floats, or a '
    "CSV or .npz with one column or array a method"
)
_UNCUT = "t* is not applied to {}: it gives no confidences, and is taken as cut already"
_SHOWN = 200


class _Lists(msgspec.Struct):
    scores: list[float] | dict[str, list[float]]
    image_ids: list[int | str] | None = None


@dataclass(frozen=True, slots=True)
class IdScores:
    """Scores of the detections on the ID test set, pooled over images.

    Attributes
    ----------
    scores : mapping of str to ndarray of float64, shape (n,)
        By method; higher is more ID.
    images : tuple of str, length n, or None
        The image of each detection, as `image_key` writes it; None where the file does not say.
    name, sha256 : str
    reported : dict of str to int
    logits_length : int or None
    confident : bool
        Whether the file gives the confidence of each detection.
    stored : str
        Type of the numbers; text counts as ``float64``.
    notes : tuple of str
    """

    scores: Mapping[str, Floats]
    images: tuple[str, ...] | None
    name: str
    sha256: str
    reported: dict[str, int]
    logits_length: int | None = None
    confident: bool = False
    stored: str = "float64"
    notes: tuple[str, ...] = ()

    @property
    def file(self) -> dict[str, Any]:
        """What a result says about this input."""
        n = len(next(iter(self.scores.values()), ()))
        return {
            "name": self.name,
            "sha256": self.sha256,
            "rows": n,
            "scores": sorted(self.scores),
            "images_with_detections": None if self.images is None else len(set(self.images)),
            "reported": self.reported,
        }


def read_id_scores(path: Path, *, t_star: float | None = None, classes: ClassReading | None = None) -> IdScores:
    """Return the scores of ID detections.

    Parameters
    ----------
    path : Path
        ``{"scores": [...]}`` or ``{"scores": {method: [...]}}``, with optional ``image_ids``; a detections file
        (see `curation.benchmarks.findmeifyoucan.detections`); a ``.npy`` of shape (n,); or a ``.csv`` or ``.npz`` with
        one column or array a method, and ``image_id`` where known; labels and predictions are not read.
    t_star : float, optional
        In a detections file, detections of lower confidence are left out and counted.
    classes : ClassReading, optional
        How its logits are read: as those of the OOD file, or t* would cut the two differently.

    Raises
    ------
    MissingFileError
        No such file.
    PredictionError
        It is none of these, lists of it have unequal lengths, or a score is not finite.
    """
    given = InputFile(path, kind="file of ID scores")
    if path.suffix.lower() in (".npy", ".npz", ".csv"):
        found = _from_table(given, path)
    else:
        found = _from_json(given, path, t_star, classes or ClassReading())
    for name, values in found.scores.items():
        require_usable(values, f"An ID score {name}", lambda row: f"{path}: entry {row}")
    return found if t_star is None or found.confident else replace(found, notes=(_UNCUT.format(path.name),))


def _from_table(given: InputFile, path: Path) -> IdScores:
    columns = open_columns(path, (".npy", ".npz", ".csv"))
    texts = [*filter(None, [columns.first(IMAGES)])]
    names = [name for name in columns.names if name not in (*texts, *LABELS, *PREDICTIONS)]
    if not all(names) or not names:
        raise _unreadable(path, f"columns {', '.join(columns.names)}")
    read = columns.read(names, texts)
    images: list[int | str] | None = [cell_text(str(cell)) for cell in read[texts[0]]] if texts else None
    arrays = {UNNAMED if columns.kind == "alone" else name: np.asarray(read[name]) for name in names}
    for name, array in arrays.items():
        if array.ndim != 1 or array.dtype.kind not in "fiu":
            raise _unreadable(path, f"{name} {array.dtype}, shape {array.shape}".strip())
    found = _from_columns({name: array.astype(np.float64) for name, array in arrays.items()}, images, given, path)
    return replace(found, stored=str(next(iter(arrays.values())).dtype))


def _from_columns(
    scores: Mapping[str, Floats], images: list[int | str] | None, given: InputFile, path: Path
) -> IdScores:
    keys = None if images is None else tuple(map(image_key, images))
    lists = (*scores.items(), ("image_ids", keys))
    lengths = {name: len(values) for name, values in lists if values is not None}
    if len(set(lengths.values())) > 1:
        raise PredictionError(
            "The lists of ID scores have unequal lengths",
            where=str(path),
            expected="one entry a detection in each",
            found=", ".join(f"{name}: {n}" for name, n in lengths.items())[:_SHOWN],
        )
    return IdScores(scores, keys, path.name, given.sha256, {})


def _from_json(given: InputFile, path: Path, t_star: float | None, classes: ClassReading) -> IdScores:
    data = given.data
    if data.lstrip()[:1] == b"{" and not is_json_lines(data):
        # A decoder keeps the last of two equal keys: scores would vanish without a word.
        refuse_repeated_keys(data, str(path), PredictionError, everywhere=True)
        try:
            lists = msgspec.json.decode(data, type=_Lists)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _unreadable(path, str(error)) from None
        named = lists.scores if isinstance(lists.scores, dict) else {UNNAMED: lists.scores}
        columns = {name: np.array(values, np.float64) for name, values in named.items()}
        return _from_columns(columns, lists.image_ids, given, path)
    file = read_records(path, given)
    logits = logits_of(file)
    scores = method_scores(file, logits)
    keys = [image_key(reference_of(record)) for record in file.records]
    kept, reported = np.arange(len(keys)), dict[str, int]()
    confident = logits is not None or all(record.score is not None for record in file.records)
    if t_star is not None and keys and confident:
        # The quirk of official-compat is one of logits.
        confidence = read_classes(file, logits, ClassReading() if logits is None else classes).confidence
        kept = np.flatnonzero(confidence >= t_star)
        if len(kept) < len(keys):
            reported["left out: detections of confidence below t*"] = len(keys) - len(kept)
    return IdScores(
        {name: values[kept] for name, values in scores.items()} or {UNNAMED: np.empty(0)},
        tuple(keys[row] for row in kept.tolist()),
        file.name,
        file.sha256,
        reported,
        None if logits is None else logits.shape[1],
        confident,
    )


def _unreadable(path: Path, found: str) -> PredictionError:
    return PredictionError(
        "The ID scores cannot be read", where=str(path), expected=_FORMS, found=found.replace("\n", " ")[:_SHOWN]
    )
