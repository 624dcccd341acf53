"""Files of image scores, one score a row: CSV, ``.npz``, ``.npy`` or JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from curation.canonical import sha256_of_file
from curation.errors import PredictionError
from curation.evaluation.precision import doubles
from curation.evaluation.problem import Floats, Int64s
from curation.evaluation.score_files import IMAGES, LABELS, Keys, open_columns
from curation.sources.entries import LONGEST_LINE

SCORES = ("score", "scores", "conf", "confidence")
PREDICTIONS = ("prediction", "predictions", "pred", "preds")
SUFFIXES = (".csv", ".npz", ".npy", ".json")
_FORMS = (
    "a .csv with a column score; an .npz with an array score or conf; a one-dimensional .npy; JSON: a list of numbers, "
    'or {"scores": [...], "images": [...]}'
)


@dataclass(frozen=True, slots=True)
class ImageScores:
    """What one file says of images, a row each; higher is more ID.

    Attributes
    ----------
    scores : ndarray of float64, shape (n,)
        May hold NaN and infinities.
    images : tuple of str, length n, or None
        Ids, names or paths, as the file has them.
    predictions, labels : ndarray of int64, shape (n,), or None
    file : dict
        Name, digest, rows, and what was left out.
    path : Path
    """

    scores: Floats
    images: tuple[str, ...] | None
    predictions: Int64s | None
    labels: Int64s | None
    file: dict[str, Any]
    path: Path


def read_image_scores(path: Path, keys: Keys | None = None) -> ImageScores:
    """Return the scores of a file, with names, predictions and labels where it has them.

    Parameters
    ----------
    path : Path
        ``.csv`` with columns such as ``image``, ``score``, ``prediction``, ``label``; ``.npz`` with arrays of these
        names, or ``conf``, ``pred``, ``label`` as OpenOOD saves them; ``.npy`` of shape (n,); ``.json``: a list of
        numbers, or an object of lists.
    keys : Keys, optional
        Names of columns or arrays, where they are not the usual ones.

    Raises
    ------
    MissingFileError
        There is no such file.
    PredictionError
        It is none of these, or its columns have unequal lengths.
    """
    columns = open_columns(path, SUFFIXES)
    names = keys or Keys()
    wanted = {
        "scores": SCORES if names.scores is None or columns.kind == "alone" else (names.scores,),
        "predictions": PREDICTIONS,
        "labels": LABELS if names.labels is None else (names.labels,),
        "images": IMAGES if names.images is None else (names.images,),
    }
    chosen = {what: key for what, usual in wanted.items() if (key := columns.first(usual)) is not None}
    if "scores" not in chosen:
        _refuse(path, f"no {' or '.join(wanted['scores'])} in {', '.join(columns.names)}"[:200])
    read = columns.read([chosen[what] for what in chosen if what != "images"], [*filter(None, [chosen.get("images")])])
    found = {what: np.asarray(read[key]) if what != "images" else read[key] for what, key in chosen.items()}
    scores = found["scores"]
    if scores.ndim != 1 or scores.dtype.kind not in "fiu" or not len(scores):
        _refuse(path, f"scores of {scores.dtype}, shape {scores.shape}")
    for what, column in found.items():
        if len(column) != len(scores):
            _refuse(path, f"{len(scores)} scores and {len(column)} {what}")
    images = tuple(map(str, np.asarray(found["images"]).tolist())) if "images" in found else None
    # Columns of names are as wide as the longest of them.
    if images is not None and (max(map(len, images)) > LONGEST_LINE or "" in images):
        _refuse(path, f"an image name of {'no' if '' in images else f'{max(map(len, images)):,}'} characters")
    file = {"name": path.name, "sha256": sha256_of_file(path), "rows": len(scores), "stored": str(scores.dtype)}
    predictions, labels = (_whole(found.get(what), what, path) for what in ("predictions", "labels"))
    return ImageScores(doubles(scores, str(path)), images, predictions, labels, {**file, "reported": {}}, path)


def _whole(values: Any, what: str, path: Path) -> Int64s | None:
    if values is None:
        return None
    if values.ndim != 1 or values.dtype.kind not in "fiu" or not np.array_equal(values, np.round(values)):
        _refuse(path, f"{what} that are not whole numbers, one an image")
    return np.asarray(values, np.int64)


def _refuse(path: Path, found: str) -> NoReturn:
    raise PredictionError(
        "The scores of images cannot be read",
        where=str(path),
        expected=_FORMS,
        found=found,
        hint="--key score=NAME, --key label=NAME and --key image=NAME name columns or arrays",
    )
