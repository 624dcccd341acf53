"""Post-hoc OOD scores from logits, features and a last layer, as FMIYC's code computes them; higher is more ID.

Arguments are arrays: `logits` (n, K) and `features` (n, D) of the scored rows; `train` (N, D) and `labels` (N,) of the
training set; `layer`, the last layer. Every score has shape (n,). `docs/ood_metrics.md` lists the differences to the
package pytorch-ood, which computes outlier scores. `score_files` scores the rows of ``.npz`` files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta

from curation.benchmarks.findmeifyoucan.detections import read_records
from curation.core.arguments import checked
from curation.core.canonical import sha256_of_file
from curation.core.errors import CurationError, EvaluationError, PredictionError, UsageError, warn_caller
from curation.core.json_text import is_json_lines
from curation.core.reading import InputFile
from curation.core.tables import as_csv
from curation.core.writing import write_text
from curation.evaluation.problem import Floats, Int64s
from curation.evaluation.score_files import keys_of_npz, read_npz
from curation.evaluation.separability import energy, generalized_entropy, log_sum_exp, max_softmax
from curation.version import __version__

_QUERIES_AT_ONCE = 1 << 24
_JITTERS = (0.0, *(10.0**power for power in range(-20, 0)))


class LastLayer(NamedTuple):
    """The layer that computes logits from features, ``f = h W^T + b``: `weight` (K, D) and `bias` (K,), float64."""

    weight: Floats
    bias: Floats

    def logits(self, features: Floats) -> Floats:
        """Return logits of features, shape (n, K)."""
        return np.asarray(features @ self.weight.T + self.bias, np.float64)


def unit_rows(features: Floats) -> Floats:
    """Return rows scaled to length 1; a zero row stays zero."""
    length = np.linalg.norm(features, axis=1, keepdims=True)
    return np.asarray(features / np.maximum(length, 1e-12), np.float64)


def knn(features: Floats, train: Floats, *, k: int = 10, squared: bool = True) -> Floats:
    """Return minus the distance to the k-th nearest training feature; all are unit rows (Sun et al. 2022).

    Parameters
    ----------
    squared : bool
        Squared distances as in the code's faiss index, or distances as in the paper: AUROC is the same, zscore
        thresholds are not.

    Raises
    ------
    EvaluationError
        There are fewer than k training features.
    """
    if not 1 <= k <= len(train):
        raise EvaluationError("kNN needs at least k training features", expected=f"{k} or more", found=str(len(train)))
    rows, others = unit_rows(features), unit_rows(train)
    distances = np.empty(len(rows))
    step = max(1, _QUERIES_AT_ONCE // len(others))
    for low in range(0, len(rows), step):
        likeness = rows[low : low + step] @ others.T
        kth = np.partition(likeness, len(others) - k, axis=1)[:, -k]
        distances[low : low + step] = np.maximum(2 - 2 * kth, 0)
    return -distances if squared else -np.sqrt(distances)


def mahalanobis(features: Floats, train: Floats, labels: Int64s) -> Floats:
    """Return minus the squared Mahalanobis distance to the nearest class mean (Lee et al. 2018).

    All classes share one precision matrix: the pseudo-inverse of the covariance of class-centred features (over N).
    """
    classes, number = np.unique(labels, return_inverse=True)
    means = np.stack([train[labels == label].mean(axis=0) for label in classes])
    centred = train - means[number]
    precision = np.linalg.pinv(centred.T @ centred / len(train), hermitian=True)
    best = np.full(len(features), -np.inf)
    for mean in means:
        centred = features - mean
        best = np.maximum(best, -((centred @ precision) * centred).sum(axis=1))
    return best


def latent_mahalanobis(latents: Floats, train_latents: Floats, labels: Int64s) -> Floats:
    """Return LaRD as in FMIYC's text: Mahalanobis distance of the latents of a layer, pooled over each box.

    Nothing is fitted to OOD data: the PCA of the code, whose size is chosen by AUROC on the OOD test sets, is left out.

    Parameters
    ----------
    latents, train_latents : ndarray, shapes (n, C) and (N, C)
        Mean of each channel over the cells of a box: ``maps.mean(axis=(2, 3))`` of the output of ROIAlign.
    """
    return mahalanobis(latents, train_latents, labels)


def gaussian_density(features: Floats, train: Floats, labels: Int64s, *, weighted: bool = False) -> Floats:
    """Return DDU: the log-density of class-wise Gaussians, covariances over n - 1 (Mukhoti et al. 2023).

    Parameters
    ----------
    weighted : bool
        Whether classes are weighted by their numbers of samples (paper, eq. 22-23), or equally (code).

    Raises
    ------
    EvaluationError
        A class has fewer than two samples, or no jitter makes its covariance positive definite.
    """
    classes, counts = np.unique(labels, return_counts=True)
    if counts.min(initial=2) < 2:
        raise EvaluationError(
            "A class has too few training features for a covariance",
            expected="2 or more",
            found=f"labels {classes[counts < 2].tolist()[:5]}",
        )
    groups = [train[labels == label] for label in classes]
    means = [group.mean(axis=0) for group in groups]
    factors, _ = cholesky_factors(
        np.stack([(rows - mean).T @ (rows - mean) / (len(rows) - 1) for rows, mean in zip(groups, means, strict=True)])
    )
    d = features.shape[1]
    terms = np.empty((len(features), len(means)))
    for column, (mean, factor) in enumerate(zip(means, factors, strict=True)):
        whitened = np.linalg.solve(factor, (features - mean).T)
        log_root = np.log(np.diag(factor)).sum()
        terms[:, column] = -0.5 * ((whitened**2).sum(axis=0) + d * np.log(2 * np.pi)) - log_root
    return log_sum_exp(terms + (np.log(counts / counts.sum()) if weighted else np.zeros(len(classes))))


def cholesky_factors(covariances: Floats) -> tuple[Floats, float]:
    """Return lower Cholesky factors, shape (C, D, D), and the jitter that was added to the diagonals.

    The jitter is 0, else the smallest of 1e-20 … 1e-1 with which all factors exist; `EvaluationError` if there is none.
    """
    identity = np.eye(covariances.shape[-1])
    for jitter in _JITTERS:
        try:
            factors = np.linalg.cholesky(covariances + jitter * identity)
        except np.linalg.LinAlgError:
            continue
        if np.isfinite(factors).all():
            return np.asarray(factors, np.float64), jitter
    raise EvaluationError(
        "No jitter up to 0.1 makes the covariances positive definite",
        hint="reduce the dimension of the features, or use mahalanobis",
    )


def ash_s(features: Floats, layer: LastLayer, *, percentile: float = 90.0) -> Floats:
    """Return ASH-S: energy after keeping each sample's highest activations, times ``exp(S1 / S2)``, shape (n,).

    The top ``D - round(D * percentile / 100)`` activations of each sample stay, the others become 0; S1 and S2 are its
    sums before and after (Djurisic et al. 2023; the code; eq. 24 of FMIYC describes a train-set percentile instead).

    Raises
    ------
    EvaluationError
        The percentile keeps none of the activations, those kept of a sample sum to 0, or the factor of a sample
        overflows.
    """
    n, d = features.shape
    n_kept = kept_activations(d, percentile)
    order = np.argsort(-features, axis=1, kind="stable")[:, :n_kept]
    shaped = np.zeros_like(features)
    np.put_along_axis(shaped, order, np.take_along_axis(features, order, axis=1), axis=1)
    after = shaped.sum(axis=1)
    before = features.sum(axis=1)
    if (after == 0).any():
        row = int(np.argmax(after == 0))
        is_zero = not features[row].any()
        raise EvaluationError(
            "ASH divides by the sum of the activations that it keeps, and it is 0",
            where=f"row {row} of {n}",
            expected="features after a ReLU, not all of them 0",
            found=f"a row of {d} zeros" if is_zero else f"{n_kept} kept activations that cancel each other",
        )
    with np.errstate(over="ignore", invalid="ignore"):
        shaped = shaped * np.exp(before / after)[:, None]
    finite = np.isfinite(shaped).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise EvaluationError(
            "ASH's factor exp(S1 / S2) overflows",
            where=f"row {row} of {n}",
            expected="features after a ReLU, with a large part of their sum in the kept activations",
            found=f"S1 = {before[row]:.6g}, S2 = {after[row]:.6g} of {n_kept} kept activations",
        )
    return energy(layer.logits(shaped))


def kept_activations(d: int, percentile: float) -> int:
    """Return how many of `d` activations ASH keeps; `EvaluationError` if it keeps none."""
    n_kept = d - round(d * percentile / 100)
    if not n_kept:
        raise EvaluationError(
            f"ASH keeps no activation: {percentile:g} % of {d} features, rounded, are all of them",
            expected=f"a percentile below {100 * (d - 0.5) / d:.4g} for {d} features, so that one or more are kept",
            found=f"percentile {percentile:g}",
        )
    return n_kept


def clipped(features: Floats, train: Floats, percentile: float = 90.0) -> Floats:
    """Return features with activations above a percentile of all training activations set to it."""
    return np.minimum(features, float(np.percentile(train, percentile)))


def sparse_layer(train: Floats, layer: LastLayer, percentile: float = 90.0) -> LastLayer:
    """Return the layer in which weights with a contribution up to a percentile are 0.

    The contribution of a weight is its product with the mean training activation of its input.
    """
    contribution = train.mean(axis=0) * layer.weight
    return LastLayer(np.where(contribution > np.percentile(contribution, percentile), layer.weight, 0.0), layer.bias)


def react(features: Floats, train: Floats, layer: LastLayer, *, percentile: float = 90.0) -> Floats:
    """Return ReAct: the energy after clipping activations (Sun et al. 2021; `clipped`)."""
    return energy(layer.logits(clipped(features, train, percentile)))


def dice(features: Floats, train: Floats, layer: LastLayer, *, percentile: float = 90.0) -> Floats:
    """Return DICE: the energy with the `sparse_layer`, without weights of small contribution (Sun and Li 2022)."""
    return energy(sparse_layer(train, layer, percentile).logits(features))


def dice_react(features: Floats, train: Floats, layer: LastLayer, *, percentile: float = 90.0) -> Floats:
    """Return DICE + ReAct: clipped activations in the sparse layer; both use the same training features."""
    return dice(clipped(features, train, percentile), train, layer, percentile=percentile)


class VirtualLogit(NamedTuple):
    """ViM's virtual logit: `alpha` times the norm of ``h - origin`` along `residual`.

    Attributes
    ----------
    origin : ndarray of float64, shape (D,)
        ``-W^+ b``.
    residual : ndarray of float64, shape (D, D - dimension)
        Eigenvectors with the smallest eigenvalues of the second moment of training features about the origin.
    alpha : float
        Mean highest logit over mean residual norm, on the training features.
    """

    origin: Floats
    residual: Floats
    alpha: float


def principal_dimension(d: int) -> int:
    """Return the dimension that ViM's authors choose for the principal subspace of `d` features."""
    return 1000 if d >= 2048 else 512 if d >= 768 else d // 2


def virtual_logit(train: Floats, layer: LastLayer, *, dimension: int | None = None) -> VirtualLogit:
    """Return the virtual logit of a training set.

    Parameters
    ----------
    dimension : int, optional
        Dimension of the principal subspace; by default `principal_dimension` of D.

    Raises
    ------
    EvaluationError
        The dimension leaves no residual, or all training features lie in the principal subspace.
    """
    d = train.shape[1]
    size = principal_dimension(d) if dimension is None else dimension
    if not 0 <= size < d:
        raise EvaluationError(
            "ViM's principal subspace leaves no residual", expected=f"0 to {d - 1} dimensions", found=str(size)
        )
    origin = -(np.linalg.pinv(layer.weight) @ layer.bias)
    centred = train - origin
    residual = np.linalg.eigh(centred.T @ centred / len(train))[1][:, : d - size]
    norm = float(np.linalg.norm(centred @ residual, axis=1).mean())
    if not norm > 0:
        raise EvaluationError(
            "The training features have no residual outside ViM's principal subspace",
            expected="more training features than dimensions, or a smaller dimension",
            found=f"{len(train)} features of {d} dimensions",
        )
    return VirtualLogit(origin, residual, float(layer.logits(train).max(axis=1).mean()) / norm)


def vim(features: Floats, train: Floats, layer: LastLayer, *, dimension: int | None = None) -> Floats:
    """Return ViM: energy minus the virtual logit, the scaled norm outside the principal subspace (Wang et al. 2022).

    See `virtual_logit` for the dimension and errors.
    """
    origin, residual, alpha = virtual_logit(train, layer, dimension=dimension)
    virtual = alpha * np.linalg.norm((features - origin) @ residual, axis=1)
    return np.asarray(energy(layer.logits(features)) - virtual, np.float64)


@dataclass(frozen=True, slots=True)
class PostHocInputs:
    """Inputs of post-hoc scores; None if not available.

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
    latents, train_latents : ndarray of float64, shapes (n, C) and (N, C), or None
        Features of an inner layer, pooled over each box.
    files : mapping of str to dict
        Name and digest of each file, by role.
    """

    logits: Floats | None = None
    features: Floats | None = None
    images: tuple[str, ...] | None = None
    train: Floats | None = None
    labels: Int64s | None = None
    layer: LastLayer | None = None
    latents: Floats | None = None
    train_latents: Floats | None = None
    files: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return next((len(rows) for rows in (self.logits, self.features, self.latents) if rows is not None), 0)


class Method(NamedTuple):
    """A post-hoc score: its meaning, and a function whose parameters are named after the inputs that it needs."""

    meaning: str
    score: Callable[..., Floats]

    @property
    def needs(self) -> tuple[str, ...]:
        """Fields of `PostHocInputs`."""
        parameters = signature(self.score).parameters.values()
        return tuple(parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY)


NEIGHBOURS = 10
METHODS: dict[str, Method] = {
    "msp": Method("highest softmax probability", max_softmax),
    "energy": Method("logsumexp of the logits, T = 1", energy),
    "gen": Method("minus the generalized entropy", generalized_entropy),
    "knn": Method("minus the distance to the k-th nearest training feature, unit rows", knn),
    "mahalanobis": Method("minus the squared Mahalanobis distance to the nearest class mean", mahalanobis),
    "ddu": Method("log-density of class-wise Gaussians", gaussian_density),
    "ash": Method("energy after ASH-S, per sample", ash_s),
    "dice": Method("energy of the sparse last layer", dice),
    "react": Method("energy of clipped activations", react),
    "dice_react": Method("energy of clipped activations in the sparse last layer", dice_react),
    "vim": Method("energy minus the virtual logit", vim),
    "lard_text": Method("LaRD by the paper's text: mahalanobis of pooled latents, without PCA", latent_mahalanobis),
}


def possible(inputs: PostHocInputs) -> tuple[str, ...]:
    """Return the methods whose inputs are all available, in the order of `METHODS`."""
    return tuple(
        name for name, method in METHODS.items() if all(getattr(inputs, need) is not None for need in method.needs)
    )


def _singular_classes(inputs: PostHocInputs) -> str | None:
    """Return a note on classes with too few samples for a covariance of full rank: n - 1 below the dimension."""
    d = 0 if inputs.train is None else inputs.train.shape[1]
    classes, counts = np.unique(inputs.labels, return_counts=True)  # type: ignore[call-overload]
    few = counts <= d
    if not few.any():
        return None
    listing = ", ".join(f"{label}: {n}" for label, n in zip(classes[few][:5], counts[few][:5], strict=True))
    return (
        f"{int(few.sum())} of {len(classes)} classes have too few training features for a covariance of full rank: "
        f"{d + 1} are needed for {d} dimensions (label: number: {listing}{', …' if few.sum() > 5 else ''}); the jitter "
        "on their diagonals decides the scores"
    )


def compute(inputs: PostHocInputs, name: str, *, k: int = NEIGHBOURS) -> Floats:
    """Return one post-hoc score of every row, shape (n,); higher is more ID.

    Parameters
    ----------
    name : str
        A key of `METHODS`.
    k : int
        kNN: 10 for Faster R-CNN, 12 for RT-DETR.

    Raises
    ------
    UsageError
        No such method.
    EvaluationError
        An input of the method is missing, the method cannot be fitted, or a score is not finite.
    """
    if name not in METHODS:
        raise UsageError("Unknown method", expected=", ".join(METHODS), found=repr(name)[:80])
    method = METHODS[name]
    if missing := [need for need in method.needs if getattr(inputs, need) is None]:
        raise EvaluationError(
            f"{name} needs more inputs",
            expected=", ".join(method.needs),
            found="missing: " + ", ".join(missing),
            hint="--test FILE has logits, features and latents, --train FILE these and labels, --layer FILE "
            "weight and bias",
        )
    try:
        # Overflows make scores that are not finite, which is checked below.
        with np.errstate(all="ignore"):
            options = {"k": k} if name == "knn" else {}
            scores = method.score(*(getattr(inputs, need) for need in method.needs), **options)
    except np.linalg.LinAlgError as error:
        raise EvaluationError(f"{name} cannot be fitted to these features", found=str(error)[:200]) from None
    if not np.isfinite(scores).all():
        raise EvaluationError(
            f"A score of {name} is not finite",
            where=f"row {int(np.argmin(np.isfinite(scores)))}",
            hint="standardise the features: very large ones overflow",
        )
    return scores


def read_inputs(test: Path, train: Path | None = None, layer: Path | None = None) -> PostHocInputs:
    """Return the arrays of up to three files.

    Parameters
    ----------
    test : Path
        ``logits`` (n, K), ``features`` (n, D), ``latents`` (n, C), or several of them; optionally ``image_ids`` (n,).
        One row a detection.
    train : Path, optional
        ``features`` (N, D) or ``latents``, and ``labels`` (N,) whole numbers.
    layer : Path, optional
        ``weight`` (K, D) and ``bias`` (K,). With it, logits follow from features where the file has none.

    Raises
    ------
    MissingFileError
        No such file.
    PredictionError
        A file is not a ``.npz`` of plain arrays; an array is missing, not finite, or has a wrong shape.
    """
    paths = {"test": test, "train": train, "layer": layer}
    read = {role: _arrays(role, path) for role, path in paths.items() if path is not None}
    for unit, members in _EQUAL.items():
        sizes = {name: read[role][array].shape[axis]
                 for name, (role, array, axis) in members.items() if array in read.get(role, ())}  # fmt: skip
        if len(set(sizes.values())) > 1:
            raise PredictionError(
                f"The arrays differ in their number of {unit}",
                where=str(train if unit == "training rows" else test),
                found=", ".join(f"{name}: {n}" for name, n in sizes.items()),
            )
    rows, trained = read["test"], read.get("train", {})
    last = LastLayer(**read["layer"]) if "layer" in read else None
    inputs = PostHocInputs(
        rows.get("logits"),
        rows.get("features"),
        tuple(map(str, rows["image_ids"].tolist())) if "image_ids" in rows else None,
        trained.get("features"),
        trained["labels"].astype(np.int64) if "labels" in trained else None,
        last,
        rows.get("latents"),
        trained.get("latents"),
        {
            role: {"name": path.name, "sha256": sha256_of_file(path), "arrays": keys_of_npz(path)}
            for role, path in paths.items()
            if path is not None
        },
    )
    if inputs.logits is None and inputs.features is not None and last:
        return replace(inputs, logits=last.logits(inputs.features))
    return inputs


_SHAPES = {
    "test": {"logits": 2, "features": 2, "latents": 2, "image_ids": 1},
    "train": {"features": 2, "latents": 2, "labels": 1},
    "layer": {"weight": 2, "bias": 1},
}
"""Arrays that are read from each file, with their numbers of dimensions."""
_LACKING = {
    "test": "logits (n, K), features (n, D) or latents (n, C)",
    "train": "features (N, D) or latents (N, C) of the training set",
    "layer": "weight (K, D) and bias (K,) of the last layer",
}
_KINDS = {"image_ids": ("Uiu", "whole numbers or texts"), "labels": ("iu", "whole numbers")}
"""Kinds of dtype of the arrays that do not hold numbers in general."""
_EQUAL = {
    "rows": {name: ("test", name, 0) for name in _SHAPES["test"]},
    "training rows": {name: ("train", name, 0) for name in _SHAPES["train"]},
    "channels": {"latents": ("test", "latents", 1), "training latents": ("train", "latents", 1)},
    "dimensions": {
        "features": ("test", "features", 1),
        "training features": ("train", "features", 1),
        "last layer": ("layer", "weight", 1),
    },
    "classes": {"logits": ("test", "logits", 1), "last layer": ("layer", "weight", 0), "bias": ("layer", "bias", 0)},
}
"""File, array and axis of the numbers that must be equal, by what they count."""


def _arrays(role: str, path: Path) -> dict[str, Any]:
    """Return the arrays of a file by name, numbers in float64."""
    arrays = read_npz(path, tuple(_SHAPES[role]))
    for name, values in arrays.items():
        ndim, (kinds, content) = _SHAPES[role][name], _KINDS.get(name, ("fiu", "numbers"))
        if values.ndim != ndim or values.dtype.kind not in kinds or 0 in values.shape[1:]:
            raise PredictionError(
                f"The array {name} has the wrong shape or type",
                where=str(path),
                expected=f"{'a matrix' if ndim == 2 else 'a vector'} of {content}",
                found=f"{values.dtype}, shape {values.shape}",
            )
        if name not in _KINDS:
            arrays[name] = numbers = values.astype(np.float64)
            if not np.isfinite(numbers).all():
                row = int(np.argwhere(~np.isfinite(numbers))[0, 0])
                message = f"The array {name} holds a number that is not finite"
                raise PredictionError(message, where=f"{path}: row {row}")
    matrices = [arrays[name] for name in ("logits", "features", "latents") if name in arrays]
    lacks = len(arrays) < 2 if role == "layer" else not matrices
    if lacks or (role == "train" and not len(matrices[0])):
        names = ", ".join(keys_of_npz(path))[:200]
        raise PredictionError("The file lacks an array", where=str(path), expected=_LACKING[role], found=names)
    return arrays


@dataclass(frozen=True, slots=True)
class ScoredImages:
    """Post-hoc scores, and facts about their inputs.

    Attributes
    ----------
    requested : tuple of str
        Methods that were requested by name.
    scores : mapping of str to list of float
        By method; one score a row.
    about : dict
        Version, settings, methods, reasons of impossible methods, doubts, and digests of the inputs.
    """

    requested: tuple[str, ...]
    scores: Mapping[str, list[float]]
    about: Mapping[str, Any]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Methods that were left out and why, and doubts about others."""
        left_out = (f"{name} is left out: {reason}" for name, reason in self.about["impossible"].items())
        return (*left_out, *(f"{name}: {doubt}" for name, doubt in self.about["doubts"].items()))

    @property
    def complete(self) -> bool:
        """Whether all requested methods were possible."""
        return not any(name in self.requested for name in self.about["impossible"])


@checked
def score_files(
    *,
    test: Annotated[Path, "NPZ"],
    train: Annotated[Path | None, "NPZ"] = None,
    layer: Annotated[Path | None, "NPZ"] = None,
    method: tuple[Annotated[str, "NAME"], ...] = (),
    detections: Path | None = None,
    k: Annotated[int, Meta(ge=1)] = NEIGHBOURS,
    out: Path,
) -> ScoredImages:
    """Write post-hoc out-of-distribution scores from logits, features and a last layer, as FMIYC's code.

    Parameters
    ----------
    test
        logits (n, K), features (n, D), latents (n, C), a row a detection
    train
        features (N, D) or latents, and labels (N,), of the training set
    layer
        weight (K, D) and bias (K,) of the last layer
    method
        msp, energy, gen, knn, mahalanobis, ddu, ash, dice, react, dice_react, vim, lard_text (repeatable; default:
        all that the files allow; one that is impossible is reported and does not stop the others)
    detections
        put the scores into the records of this file, whose order is that of the rows
    k
        of kNN: 10 as for Faster R-CNN; 12 for RT-DETR
    out
        .json or .csv of scores, or .json of detections

    Raises
    ------
    UsageError
        The suffix of `out` does not fit, or the files allow no method.
    CurationError
        None of the requested methods can be computed.
    """
    suffix = out.suffix.lower()
    if suffix not in (".json", ".csv") or (detections and suffix != ".json"):
        raise UsageError(
            "Unknown suffix of the output file", where=str(out), expected=".json with --detections; else .json or .csv"
        )
    inputs = read_inputs(test, train, layer)
    names = tuple(dict.fromkeys(method or possible(inputs)))
    if not names:
        raise UsageError(
            "No score can be computed from these files",
            where=str(test),
            expected="logits, or features with --train or --layer",
        )
    values, impossible, doubts = dict[str, list[float]](), dict[str, CurationError](), dict[str, str]()
    for name in names:
        try:
            values[name] = compute(inputs, name, k=k).tolist()
        except UsageError:
            raise
        except CurationError as error:
            # A method that cannot be computed does not stop the others.
            impossible[name] = error
    if not values:
        raise next(iter(impossible.values()))
    if "ddu" in values and (doubt := _singular_classes(inputs)):
        doubts["ddu"] = doubt
    about = {
        "curation": __version__,
        "settings": {"k": k},
        "methods": {name: METHODS[name].meaning for name in values},
        "impossible": {
            name: "; ".join(text for text in (error.what, error.where, error.found, error.hint) if text)
            for name, error in impossible.items()
        },
        "doubts": doubts,
        "inputs": dict(inputs.files),
        "detections": len(inputs),
    }
    images = inputs.images or ()
    if detections:
        content = json.dumps(_with_scores(detections, values, len(inputs)), allow_nan=False) + "\n"
    elif suffix == ".csv":
        columns = {**({"image_id": images} if images else {}), **values}
        content = as_csv(tuple(columns), zip(*columns.values(), strict=True))
    else:
        data = {"scores": values, **({"image_ids": list(images)} if images else {}), "about": about}
        content = json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"
    write_text(out, content)
    made = ScoredImages(method, values, about)
    for text in made.warnings:
        warn_caller(text)
    return made


def _with_scores(path: Path, scores: Mapping[str, list[float]], n: int) -> Any:
    """Return the content of a detections file with the scores in its records, everything else unchanged."""
    file = InputFile(path, kind="detections file")
    n_records = len(read_records(path, file).records)
    if n_records != n:
        raise PredictionError(
            "The arrays and the detections file differ in their number of rows",
            where=str(path),
            expected=f"{n} records, in the order of the rows",
            found=str(n_records),
        )
    lines = file.data.split(b"\n") if is_json_lines(file.data) else []
    records = [json.loads(line) for line in lines if line.strip()] if lines else json.loads(file.data)
    for row, record in enumerate(records):
        record["scores"] = {**(record.get("scores") or {}), **{name: scores[name][row] for name in scores}}
    return records
