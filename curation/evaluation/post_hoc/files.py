"""Logits, features and a last layer from ``.npz`` files, for post-hoc scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from curation.canonical import sha256_of_file
from curation.errors import PredictionError
from curation.evaluation.post_hoc.scores import LastLayer
from curation.evaluation.precision import doubles
from curation.evaluation.problem import Floats, Int64s
from curation.evaluation.score_files import keys_of_npz, read_npz

_ARRAYS = {
    "test": ("logits", "features", "image_ids"),
    "train": ("features", "labels"),
    "layer": ("weight", "bias"),
}
"""What is read of each file; other arrays are passed over."""


@dataclass(frozen=True, slots=True)
class PostHocInputs:
    """What post-hoc scores are computed from; None where it is not available.

    Attributes
    ----------
    logits : ndarray of float64, shape (n, K), or None
    features : ndarray of float64, shape (n, D), or None
    images : tuple of str, length n, or None
    train : ndarray of float64, shape (N, D), or None
        Features of the training set.
    labels : ndarray of int64, shape (N,), or None
        Class labels of the training features.
    layer : LastLayer or None
    files : mapping of str to dict
        Name and digest of each file, by role.
    """

    logits: Floats | None = None
    features: Floats | None = None
    images: tuple[str, ...] | None = None
    train: Floats | None = None
    labels: Int64s | None = None
    layer: LastLayer | None = None
    files: Mapping[str, dict[str, Any]] | None = None

    def __len__(self) -> int:
        rows = self.features if self.logits is None else self.logits
        return 0 if rows is None else len(rows)


def read_inputs(test: Path, train: Path | None = None, layer: Path | None = None) -> PostHocInputs:
    """Return the arrays of up to three files.

    Parameters
    ----------
    test : Path
        ``logits`` (n, K), ``features`` (n, D), or both; optionally ``image_ids`` (n,). One row a detection.
    train : Path, optional
        ``features`` (N, D), and ``labels`` (N,) whole numbers.
    layer : Path, optional
        ``weight`` (K, D) and ``bias`` (K,). With it, logits follow from features where the file has none.

    Raises
    ------
    MissingFileError
        There is no such file.
    PredictionError
        It is no ``.npz`` of plain arrays, an array is missing, not finite or of a shape that does not go with the
        others.
    """
    arrays, files = {}, {}
    for role, path in (("test", test), ("train", train), ("layer", layer)):
        if path is not None:
            arrays[role], files[role] = _read(path, _ARRAYS[role])
    found = arrays["test"]
    logits, features = _matrix(found, "logits", test), _matrix(found, "features", test)
    if logits is None and features is None:
        raise PredictionError(
            "The file has neither logits nor features",
            where=str(test),
            found=", ".join(files["test"]["arrays"])[:200],
        )
    trained, labels = _training(arrays.get("train"), train)
    head = _layer(arrays.get("layer"), layer)
    inputs = PostHocInputs(logits, features, _images(found, test), trained, labels, head, files)
    _check_shapes(inputs, test)
    if logits is None and features is not None and head is not None:
        return replace(inputs, logits=head.logits(features))
    return inputs


def _read(path: Path, names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    arrays = {name: found for name, (_, found) in read_npz(path, {name: (name,) for name in names}).items()}
    return arrays, {"name": path.name, "sha256": sha256_of_file(path), "arrays": keys_of_npz(path)}


def _matrix(arrays: Mapping[str, Any], name: str, path: Path, *, ndim: int = 2) -> Floats | None:
    if name not in arrays:
        return None
    values = arrays[name]
    expected = "a matrix of numbers, one row a detection" if ndim == 2 else "a vector of numbers"
    is_sound = values.ndim == ndim and values.dtype.kind in "fiu" and 0 not in values.shape[1:]
    _require(is_sound, arrays, name, path, expected)
    numbers = doubles(values, f"{path}: {name}")
    if not np.isfinite(numbers).all():
        row = int(np.argwhere(~np.isfinite(numbers))[0, 0])
        raise PredictionError(f"The array {name} holds a number that is not finite", where=f"{path}: row {row}")
    return numbers


def _require(is_sound: bool, arrays: Mapping[str, Any], name: str, path: Path, expected: str) -> None:
    if not is_sound:
        raise PredictionError(
            f"The array {name} is not what it should be",
            where=str(path),
            expected=expected,
            found=f"{arrays[name].dtype}, shape {arrays[name].shape}",
        )


def _images(arrays: Mapping[str, Any], path: Path) -> tuple[str, ...] | None:
    if "image_ids" not in arrays:
        return None
    values = arrays["image_ids"]
    is_sound = values.ndim == 1 and values.dtype.kind in "Uiu"
    _require(is_sound, arrays, "image_ids", path, "a vector of whole numbers or texts")
    return tuple(map(str, values.tolist()))


def _training(arrays: Mapping[str, Any] | None, path: Path | None) -> tuple[Floats | None, Int64s | None]:
    if arrays is None or path is None:
        return None, None
    features = _matrix(arrays, "features", path)
    if features is None or not len(features):
        raise PredictionError(
            "The training file has no features", where=str(path), found=", ".join(sorted(arrays))[:200]
        )
    if "labels" not in arrays:
        return features, None
    labels = arrays["labels"]
    is_sound = labels.shape == (len(features),) and labels.dtype.kind in "iu"
    _require(is_sound, arrays, "labels", path, f"{len(features)} whole numbers, one a row of features")
    return features, labels.astype(np.int64)


def _layer(arrays: Mapping[str, Any] | None, path: Path | None) -> LastLayer | None:
    if arrays is None or path is None:
        return None
    weight, bias = _matrix(arrays, "weight", path), _matrix(arrays, "bias", path, ndim=1)
    if weight is None or bias is None or len(bias) != len(weight):
        raise PredictionError(
            "The last layer is not whole",
            where=str(path),
            expected="weight (K, D) and bias (K,)",
            found=", ".join(f"{name} {arrays[name].shape}" for name in sorted(arrays))[:200],
        )
    return LastLayer(weight, bias)


def _check_shapes(inputs: PostHocInputs, path: Path) -> None:
    """Raise `PredictionError` unless rows, dimensions and classes agree."""
    weight = None if inputs.layer is None else inputs.layer.weight
    images = None if inputs.images is None else np.empty(len(inputs.images))
    # What has to agree on a number: arrays, and which of their axes tells it.
    agreeing: dict[str, dict[str, tuple[Any, int]]] = {
        "rows": {"logits": (inputs.logits, 0), "features": (inputs.features, 0), "image_ids": (images, 0)},
        "dimensions": {
            "features": (inputs.features, 1),
            "training features": (inputs.train, 1),
            "last layer": (weight, 1),
        },
        "classes": {"logits": (inputs.logits, 1), "last layer": (weight, 0)},
    }
    for what, arrays in agreeing.items():
        counted = {name: array.shape[axis] for name, (array, axis) in arrays.items() if array is not None}
        if len(set(counted.values())) > 1:
            raise PredictionError(
                f"The arrays do not agree on the number of {what}",
                where=str(path),
                expected="one detector's output",
                found=", ".join(f"{name}: {n}" for name, n in counted.items()),
            )
