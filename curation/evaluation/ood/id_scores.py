"""OOD scores of in-distribution detections: JSON, NumPy or CSV, or a detections file of the ID test set."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from curation.csv_table import cell_text
from curation.errors import PredictionError
from curation.evaluation.ood.detections import (
    UNNAMED,
    ClassReading,
    image_key,
    logits_of,
    method_scores,
    read_classes,
    records_of,
)
from curation.evaluation.precision import Number, double_of, doubles
from curation.evaluation.problem import LARGEST_SCORE, Floats
from curation.evaluation.score_files import read_npy
from curation.input_files import InputFile
from curation.json_keys import refuse_repeated_keys

_FORMS = (
    '{"scores": [numbers]}, {"scores": {METHOD: [numbers]}}, a JSON list of numbers, a detections file, a '
    "one-dimensional .npy of floats, or a CSV with one column a method"
)
_UNCUT = "t* is not applied to {}: it gives no confidences, and is taken as cut already"
_SHOWN = 200


class _Lists(msgspec.Struct):
    scores: list[Number] | dict[str, list[Number]]
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
        ``{"scores": [...]}`` or ``{"scores": {method: [...]}}``, with optional ``image_ids``; a JSON list of numbers; a
        detections file (see `curation.evaluation.ood.detections`); a ``.npy`` of shape (n,); or a ``.csv`` with one
        column a method, and ``image_id`` where known.
    t_star : float, optional
        In a detections file, detections of lower confidence are left out and counted.
    classes : ClassReading, optional
        How its logits are read: as those of the OOD file, or t* would cut the two differently.

    Raises
    ------
    MissingFileError
        There is no such file.
    PredictionError
        It is none of these, lists of it have unequal lengths, or a score is not finite.
    """
    given = InputFile(path, kind="file of ID scores")
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix == ".npy":
        array = _array(path)
        columns = {UNNAMED: doubles(array, str(path))}
        found = replace(_from_columns(columns, None, given, path), stored=str(array.dtype))
    elif suffix == ".csv":
        found = _from_columns(*_csv_columns(given.data, path), given, path)
    else:
        found = _from_json(given, path, t_star, classes or ClassReading())
    _require_finite(found, path)
    return found if t_star is None or found.confident else replace(found, notes=(_UNCUT.format(path.name),))


def _from_columns(
    scores: Mapping[str, Floats], images: list[int | str] | None, given: InputFile, path: Path
) -> IdScores:
    keys = None if images is None else tuple(map(image_key, images))
    lengths = {name: len(values) for name, values in scores.items()} | (
        {} if keys is None else {"image_ids": len(keys)}
    )
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
    start = data.lstrip()[:1]
    try:
        if start == b"{" and "scores" in msgspec.json.decode(data, type=dict[str, msgspec.Raw]):
            lists = msgspec.json.decode(data, type=_Lists)
            # A decoder keeps the last of two equal keys: scores would vanish without a word.
            refuse_repeated_keys(data, str(path), PredictionError, everywhere=True)
            named = lists.scores if isinstance(lists.scores, dict) else {UNNAMED: lists.scores}
            columns = {name: np.array(values, np.float64) for name, values in named.items()}
            return _from_columns(columns, lists.image_ids, given, path)
        if start == b"[" and data.lstrip()[1:].lstrip()[:1] not in (b"{", b"]"):
            values = np.array(msgspec.json.decode(data, type=list[Number]), np.float64)
            return _from_columns({UNNAMED: values}, None, given, path)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(path, str(error)) from None
    return _from_detections(given, path, t_star, classes)


def _from_detections(given: InputFile, path: Path, t_star: float | None, classes: ClassReading) -> IdScores:
    file = records_of(given, path)
    scores = method_scores(file)
    keys = [image_key("" if record.image_id is None else record.image_id) for record in file.records]
    kept, reported = np.arange(len(keys)), dict[str, int]()
    logits = logits_of(file)
    confident = logits is not None or all(record.score is not None for record in file.records)
    if t_star is not None and keys and confident:
        if logits is None:
            # The quirk of official-compat is one of logits.
            classes = ClassReading()
        confidence = read_classes(file, classes).confidence
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


def _array(path: Path) -> npt.NDArray[Any]:
    values = read_npy(path)
    if values.ndim != 1 or values.dtype.kind not in "fiu":
        raise _unreadable(path, f"{values.dtype}, shape {values.shape}")
    return values


def _csv_columns(data: bytes, path: Path) -> tuple[dict[str, Floats], list[int | str] | None]:
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise _unreadable(path, str(error)) from None
    if not rows or len(set(rows[0])) != len(rows[0]) or not all(rows[0]):
        raise _unreadable(path, "no header" if not rows else f"header {', '.join(rows[0])}")
    header, body = rows[0], [row for row in rows[1:] if row]
    for number, row in enumerate(body):
        if len(row) != len(header):
            raise _unreadable(path, f"line {number + 2}: {len(row)} cells for {len(header)} columns")
    columns = dict(zip(header, zip(*body, strict=True), strict=True)) if body else dict.fromkeys(header, ())
    images: list[int | str] | None = list(map(cell_text, columns.pop("image_id"))) if "image_id" in columns else None
    if not columns:
        raise _unreadable(path, "no column of scores")
    return {name: _numbers(name, cells, path) for name, cells in columns.items()}, images


def _numbers(name: str, cells: tuple[str, ...], path: Path) -> Floats:
    values = []
    for number, cell in enumerate(cells):
        try:
            where = f"{path}: line {number + 2}, column {name[:40]}"
            values.append(double_of(cell, where) if len(cell) <= 64 else math.nan)
        except ValueError:
            raise _unreadable(path, f"line {number + 2}, column {name[:40]}: {cell[:40]!r}") from None
    return np.array(values, np.float64)


def _unreadable(path: Path, found: str) -> PredictionError:
    return PredictionError(
        "The ID scores cannot be read",
        where=str(path),
        expected=_FORMS,
        found=found.replace("\n", " ")[:_SHOWN],
    )


def _require_finite(found: IdScores, path: Path) -> None:
    for name, values in found.scores.items():
        usable = np.abs(values) <= LARGEST_SCORE
        if not usable.all():
            row = int(np.argmin(usable))
            raise PredictionError(
                "An ID score is not finite, or beyond any scale",
                where=f"{path}: {name[:40]}, entry {row}",
                expected=f"a finite number of at most {LARGEST_SCORE:g}",
                found=repr(float(values[row])),
            )
