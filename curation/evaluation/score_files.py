"""Files of class scores: ``.npz``, ``.npy`` with labels beside it, CSV, Parquet."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from curation.canonical import sha256_of_bytes, sha256_of_file
from curation.errors import MissingFileError, PredictionError, UsageError
from curation.evaluation.class_scores import ROW_SUM_TOLERANCE, Background, ClassScores, Kind, class_scores
from curation.evaluation.score_arrays import keys_of_npz, read_npy, read_npz
from curation.evaluation.score_labels import (
    PartSamples,
    ProtocolClasses,
    Stray,
    labels_of_names,
    require_same_labels,
    rows_of_part,
)
from curation.evaluation.score_tables import Keys, read_score_table

Array = npt.NDArray[Any]

SCORE_KEYS = ("scores", "probabilities", "logits")
LABEL_KEYS = ("gt", "labels", "label", "targets")
ORIGIN_KEYS = ("origin",)
IMAGE_KEYS = ("images", "image", "image_ids", "paths")
_KINDS: dict[str, Kind] = {
    "logits": "logits",
    "logit_": "logits",
    "probabilities": "probabilities",
    "probability_": "probabilities",
}


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """How to read score files.

    Attributes
    ----------
    kind : {"auto", "logits", "probabilities", "real"}
        ``auto``: what the array's or column's name says (``logits``, ``logit_0``, ``probabilities``); probabilities
        where every row lies in [0, 1] and sums to 1; else an error that asks.
    background : {"none", "last", "removed"}
        A table's column called ``background`` says ``last`` by itself.
    keys : Keys
        Names of arrays or columns, where they are not the usual ones.
    stray : {"error", "drop"}
        For images that the part does not list.
    """

    kind: Kind | Literal["auto"] = "auto"
    background: Background = "none"
    keys: Keys = field(default_factory=Keys)
    stray: Stray = "error"


@dataclass(frozen=True, slots=True)
class ReadScores:
    """Scores of one classifier on one part, with what is to be told about their file."""

    scores: ClassScores
    name: str
    sha256: str
    rows: int
    labels_from: str
    reported: dict[str, int]

    @property
    def file(self) -> dict[str, Any]:
        """What a result says about this input."""
        return {
            "name": self.name,
            "sha256": self.sha256,
            "rows": self.rows,
            "kind": self.scores.kind,
            "labels_from": self.labels_from,
            # Of the labels in the order of the samples: without a manifest, the only name that the test set has.
            "labels_sha256": sha256_of_bytes(self.scores.labels.astype("<i8").tobytes()),
            "reported": self.reported,
        }


@dataclass(frozen=True, slots=True)
class _Raw:
    """What a file holds, unchecked."""

    scores: Array
    labels: Array | None
    images: list[str] | None
    name: str
    background: Background
    unused: int = 0
    origins: Array | None = None


def read_scores(
    path: Path,
    options: ScoreOptions | None = None,
    *,
    labels: Path | None = None,
    classes: ProtocolClasses | None = None,
    part: PartSamples | None = None,
) -> ReadScores:
    """Return the scores of a file with their labels.

    Parameters
    ----------
    path : Path
        ``.npz`` with arrays ``gt`` and ``scores`` or ``logits``, as openset-imagenet writes them, and if at hand
        ``origin``, each sample's original class; ``.npy``; ``.csv`` or ``.parquet`` (see
        `curation.evaluation.score_tables.read_score_table`).
    labels : Path, optional
        ``.npy`` of labels, in place of those in the file.
    classes : ProtocolClasses, optional
        Of a manifest: labels may then be class names, and columns too.
    part : PartSamples, optional
        The samples that there must be, no more and no less. Rows with image names are brought into its order, others
        must stand in it. Its labels are taken; labels in the file must agree.

    Raises
    ------
    MissingFileError
        There is no such file.
    PredictionError
        The file is not what it should be, or does not fit to labels, classes or part.
    UsageError
        Labels are wanted and nothing tells them.
    """
    options = options or ScoreOptions()
    classes = classes or (None if part is None else part.classes)
    raw = _read(path, options, classes)
    if labels is not None:
        raw = replace(raw, labels=read_npy(labels))
    where = str(path)
    if raw.scores.ndim != 2 or not raw.scores.size:
        raise PredictionError(
            "The scores are no table with a row for each sample",
            where=where,
            expected="shape (N, C), N and C at least 1",
            found=f"shape {raw.scores.shape}",
        )
    _require_lengths(raw, where)
    rows, strangers = (np.arange(len(raw.scores)), 0)
    if part is not None:
        rows, strangers = rows_of_part(raw.images, len(raw.scores), part, where, options.stray)
    table = raw.scores if np.array_equal(rows, np.arange(len(raw.scores))) else raw.scores[rows]
    numbers, origin, told_by = _labels(raw, rows, classes, part, where)
    scores = class_scores(
        numbers,
        table,
        kind=_kind(options.kind, raw, where),
        background=raw.background,
        classes=None if classes is None else classes.known,
        origin=origin,
        where=where,
    )
    reported = {
        "left out: images that are not in the part": strangers,
        "columns that play no part": raw.unused,
        **scores.reported,
    }
    return ReadScores(
        scores,
        path.name,
        sha256_of_file(path),
        len(raw.scores),
        told_by if labels is None or told_by != "file" else labels.name,
        {reason: count for reason, count in reported.items() if count},
    )


def _read(path: Path, options: ScoreOptions, classes: ProtocolClasses | None) -> _Raw:
    if not path.is_file():
        raise MissingFileError("The scores file does not exist", where=str(path))
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _from_npz(path, options)
    if suffix == ".npy":
        return _Raw(read_npy(path), None, None, "", options.background)
    if suffix in (".csv", ".parquet"):
        table = read_score_table(path, options.keys, None if classes is None else classes.known)
        background: Background = "last" if table.has_background else options.background
        labels, origins = (
            None if texts is None else np.array(texts, np.str_) for texts in (table.labels, table.origins)
        )
        unused = len(table.unused)
        return _Raw(table.scores, labels, table.images, table.name, background, unused, origins)
    raise PredictionError(
        "Scores are not read from this kind of file",
        where=str(path),
        expected=".npz, .npy, .csv or .parquet",
        found=suffix[:20] or "no suffix",
    )


def _from_npz(path: Path, options: ScoreOptions) -> _Raw:
    keys = options.keys
    wanted = {
        "scores": SCORE_KEYS if keys.scores is None else (keys.scores,),
        "labels": LABEL_KEYS if keys.labels is None else (keys.labels,),
        "images": IMAGE_KEYS if keys.images is None else (keys.images,),
        "origins": ORIGIN_KEYS,
    }
    found = read_npz(path, wanted)
    for what, asked in (("scores", "scores"), ("labels", keys.labels), ("images", keys.images)):
        if asked is not None and what not in found:
            raise PredictionError(
                f"The archive has no array of {what}",
                where=str(path),
                expected=" or ".join(wanted[what]),
                found=", ".join(keys_of_npz(path))[:200] or "nothing",
                hint="--score-key, --label-key and --image-key name the arrays",
            )
    name, scores = found["scores"]
    images = found["images"][1].tolist() if "images" in found else None
    return _Raw(
        scores,
        found["labels"][1] if "labels" in found else None,
        None if images is None else [str(image) for image in images],
        name,
        options.background,
        origins=found["origins"][1] if "origins" in found else None,
    )


def _require_lengths(raw: _Raw, where: str) -> None:
    n = len(raw.scores)
    columns = {"labels": raw.labels, "image names": raw.images, "original classes": raw.origins}
    for what, column in columns.items():
        if column is not None and (len(column) != n or np.ndim(column) != 1):
            raise PredictionError(
                f"There are not as many {what} as rows of scores",
                where=where,
                expected=f"shape ({n},)",
                found=f"shape {np.shape(column)}",
            )


def _labels(
    raw: _Raw,
    rows: npt.NDArray[np.int64],
    classes: ProtocolClasses | None,
    part: PartSamples | None,
    where: str,
) -> tuple[Array, npt.NDArray[np.int64] | None, str]:
    """Return label and original class of each row, and who tells them."""
    numbers, origin = None, None
    if raw.labels is not None:
        numbers, origin = _stated(raw.labels[rows], classes, where)
    if raw.origins is not None:
        origin = np.unique(raw.origins[rows], return_inverse=True)[1].astype(np.int64)
    if part is not None and part.labels is not None:
        if numbers is not None:
            require_same_labels(numbers, part, rows, where)
        return part.labels, part.origin, f"part {part.name}"
    if numbers is None:
        raise UsageError(
            "Nothing tells the labels of the samples",
            where=where,
            expected="a column or array of labels, or a part of a manifest whose classes are told",
            hint="--labels FILE.npy; or --manifest MANIFEST --part PART --truth PATH",
        )
    return numbers, origin, "file"


def _stated(
    labels: Array, classes: ProtocolClasses | None, where: str
) -> tuple[Array, npt.NDArray[np.int64] | None]:
    """Return the labels that a file states, as numbers or as class names."""
    if labels.dtype.kind != "U":
        return labels, None
    texts = [str(text).strip() for text in labels.tolist()]
    if classes is not None and texts and all(text in classes.labels for text in texts):
        return (*labels_of_names(texts, classes, where),)
    numbers = np.full(len(texts), np.nan)
    for row, text in enumerate(texts):
        try:
            # Python would read 1_0 as ten.
            numbers[row] = float("" if "_" in text else text) if len(text) <= 20 else np.nan
        except ValueError:
            if classes is not None:
                labels_of_names(texts, classes, where)
            raise PredictionError(
                "A label is no number",
                where=f"{where}: row {row}",
                expected="0, 1, ... for a known class, -1 (negative) or -2 (unknown)",
                found=repr(text[:80]),
                hint="--manifest MANIFEST tells which label a class name has",
            ) from None
    return numbers, None


def _kind(asked: Kind | Literal["auto"], raw: _Raw, where: str) -> Kind:
    if asked != "auto":
        return asked
    if raw.name in _KINDS:
        return _KINDS[raw.name]
    if raw.scores.dtype.kind not in "fiu":
        return "real"
    totals = raw.scores.sum(axis=1, dtype=np.float64)
    if np.isnan(totals).any():
        return "real"
    if raw.scores.min() >= 0 and np.abs(totals - 1).max() <= ROW_SUM_TOLERANCE:
        return "probabilities"
    raise PredictionError(
        "The file does not say what kind of scores it holds, and they are no probabilities that sum to 1",
        where=where,
        expected="--kind logits, --kind probabilities or --kind real",
        hint="--kind logits applies softmax; with the background column taken away: --kind probabilities "
        "--background removed",
    )
