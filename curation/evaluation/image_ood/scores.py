"""Files of image scores, one score a row: CSV, ``.npz``, ``.npy`` or JSON."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np

from curation.canonical import sha256_of_file
from curation.errors import PredictionError
from curation.evaluation.precision import Number, doubles, read_delimited
from curation.evaluation.problem import Floats, Int64s
from curation.evaluation.score_files import Keys, keys_of_npz, read_npy, read_npz
from curation.input_files import read_plain
from curation.json_keys import refuse_repeated_keys
from curation.sources.published_list import LONGEST_LINE

SCORE_KEYS = ("score", "scores", "conf", "confidence")
PREDICTION_KEYS = ("prediction", "predictions", "pred", "preds")
LABEL_KEYS = ("label", "labels", "gt", "target", "targets")
IMAGE_KEYS = ("image", "images", "image_id", "image_ids", "path", "paths", "file_name", "image_location")
SUFFIXES = (".csv", ".npz", ".npy", ".json")
_FORMS = (
    "a .csv with a column score; an .npz with an array score or conf; a one-dimensional .npy; JSON: a list of numbers, "
    'or {"scores": [...], "images": [...]}'
)
_LONGEST_HEADER = 1 << 16


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
    names = keys or Keys()
    wanted = {
        "scores": SCORE_KEYS if names.scores is None else (names.scores,),
        "images": IMAGE_KEYS if names.images is None else (names.images,),
        "predictions": PREDICTION_KEYS,
        "labels": LABEL_KEYS if names.labels is None else (names.labels,),
    }
    suffix = path.suffix.lower()
    offered: Sequence[str] = ()
    if suffix == ".npz":
        found: Mapping[str, Any] = {what: array for what, (_, array) in read_npz(path, wanted).items()}
        offered = keys_of_npz(path)
    elif suffix == ".npy":
        found = {"scores": read_npy(path)}
    elif suffix in (".csv", ".json"):
        read = _from_csv if suffix == ".csv" else _from_json
        found, offered = read(read_plain(path, kind="file of scores"), wanted, path)
    else:
        _refuse(path, suffix[:20] or "no suffix")
    if "scores" not in found:
        _refuse(path, f"no {' or '.join(wanted['scores'])} in {', '.join(offered)}"[:200])
    scores = np.asarray(found["scores"])
    stored = str(scores.dtype)
    if scores.ndim != 1 or scores.dtype.kind not in "fiu" or not len(scores):
        _refuse(path, f"scores of {scores.dtype}, shape {scores.shape}")
    for what, column in found.items():
        if len(column) != len(scores):
            _refuse(path, f"{len(scores)} scores and {len(column)} {what}")
    images = None if (names_of := found.get("images")) is None else tuple(map(str, _listed(names_of)))
    # Columns of names are as wide as the longest of them.
    if images is not None and max(map(len, images)) > LONGEST_LINE:
        _refuse(path, f"an image name of {max(map(len, images)):,} characters")
    return ImageScores(
        doubles(scores, str(path)),
        images,
        _whole(found.get("predictions"), "predictions", path),
        _whole(found.get("labels"), "labels", path),
        {"name": path.name, "sha256": sha256_of_file(path), "rows": len(scores), "stored": stored, "reported": {}},
        path,
    )


def _listed(values: Any) -> list[Any]:
    return values if isinstance(values, list) else np.asarray(values).tolist()


def _whole(values: Any, what: str, path: Path) -> Int64s | None:
    if values is None:
        return None
    numbers = np.asarray(values)
    if numbers.ndim != 1 or numbers.dtype.kind not in "fiu" or not np.array_equal(numbers, np.round(numbers)):
        _refuse(path, f"{what} that are no whole numbers, one an image")
    return np.asarray(numbers, np.int64)


def _from_csv(data: bytes, wanted: Mapping[str, tuple[str, ...]], path: Path) -> tuple[dict[str, Any], list[str]]:
    import pyarrow

    try:
        line = data[:_LONGEST_HEADER].split(b"\n", 1)[0].decode("utf-8")
        names = [name.strip() for name in next(csv.reader([line.rstrip("\r")]), [])]
        chosen = {
            what: key for what, keys in wanted.items() if (key := next((one for one in keys if one in names), None))
        }
        if len(set(names)) < len(names) or "scores" not in chosen:
            return {}, names
        numbers = tuple(key for what, key in chosen.items() if what != "images")
        texts = tuple(key for what, key in chosen.items() if what == "images")
        table = read_delimited(data, names, numbers, texts, str(path))
    except (pyarrow.ArrowException, UnicodeDecodeError, csv.Error) as error:
        _refuse(path, str(error)[:200])
    for key in (*numbers, *texts):
        if table.column(key).null_count:
            _refuse(path, f"an empty cell in column {key}")
    return {what: table.column(key).to_numpy() for what, key in chosen.items()}, names


def _from_json(data: bytes, wanted: Mapping[str, tuple[str, ...]], path: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        if data.lstrip()[:1] == b"[":
            return {"scores": np.array(msgspec.json.decode(data, type=list[Number]), np.float64)}, []
        raw = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        chosen = {
            what: raw[key]
            for what, keys in wanted.items()
            if (key := next((one for one in keys if one in raw), None)) is not None
        }
        found: dict[str, Any] = {
            what: msgspec.json.decode(text, type=list[str | int])
            if what == "images"
            else np.array(msgspec.json.decode(text, type=list[Number]), np.float64)
            for what, text in chosen.items()
        }
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _refuse(path, str(error)[:200])
    refuse_repeated_keys(data, str(path), PredictionError)
    return found, sorted(raw)


def _refuse(path: Path, found: str) -> NoReturn:
    raise PredictionError(
        "The scores of images cannot be read",
        where=str(path),
        expected=_FORMS,
        found=found,
        hint="--key score=NAME, --key label=NAME and --key image=NAME name columns or arrays",
    ) from None
