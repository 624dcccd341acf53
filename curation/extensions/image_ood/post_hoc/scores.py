"""Post-hoc OOD scores from logits, features and a last layer, as FMIYC's code computes them; higher is more ID.

Arrays by the name of the argument: `logits` (n, K) and `features` (n, D) of the rows that are scored; `train` (N, D)
and `labels` (N,) of the training set; `layer`, the last layer. Every score has shape (n,). `docs/ood_metrics.md` says
where the package pytorch-ood differs, which gives outlier scores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from curation.core.errors import EvaluationError
from curation.evaluation.logit_scores import energy, log_sum_exp
from curation.evaluation.problem import Floats, Int64s

_QUERIES_AT_ONCE = 1 << 24
_JITTERS = (0.0, *(10.0**power for power in range(-20, 0)))


class LastLayer(NamedTuple):
    """The layer that makes logits of features, ``f = h W^T + b``: `weight` (K, D) and `bias` (K,), float64."""

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
    """Return minus the distance to the k-th nearest training feature, all of them unit rows (Sun et al. 2022).

    Parameters
    ----------
    squared : bool
        The code's faiss index gives squared distances, the paper means distances: the same AUROC, other zscore
        thresholds.

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

    One precision for all classes: the pseudo-inverse of the covariance of class-centred features (divided by N).
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


def gaussian_density(features: Floats, train: Floats, labels: Int64s, *, weighted: bool = False) -> Floats:
    """Return DDU: the log-density of class-wise Gaussians, covariances over n - 1 (Mukhoti et al. 2023).

    Parameters
    ----------
    weighted : bool
        Whether classes weigh as much as they have samples (paper, eq. 22-23), or all the same (the code).

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

    That is 0, else the smallest of 1e-20 … 1e-1 under which all factors exist; none is an `EvaluationError`.
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
        The percentile keeps no activation of so few features, the kept ones of a sample sum to 0, or its factor
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
            expected="features after a ReLU, of which the kept ones hold a good part of the sum",
            found=f"S1 = {before[row]:.6g}, S2 = {after[row]:.6g} of {n_kept} kept activations",
        )
    return energy(layer.logits(shaped))


def kept_activations(d: int, percentile: float) -> int:
    """Return how many of `d` activations ASH keeps; none is an `EvaluationError`."""
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
    """Return the layer with 0 for all weights but those whose contribution lies above a percentile.

    Contribution of a weight: itself times the mean training activation of its input.
    """
    contribution = train.mean(axis=0) * layer.weight
    return LastLayer(np.where(contribution > np.percentile(contribution, percentile), layer.weight, 0.0), layer.bias)


def react(features: Floats, train: Floats, layer: LastLayer, *, percentile: float = 90.0) -> Floats:
    """Return ReAct: the energy after clipping activations (Sun et al. 2021; `clipped`)."""
    return energy(layer.logits(clipped(features, train, percentile)))


def dice(features: Floats, train: Floats, layer: LastLayer, *, percentile: float = 90.0) -> Floats:
    """Return DICE: the energy of the `sparse_layer`, without the weights of least contribution (Sun and Li 2022)."""
    return energy(sparse_layer(train, layer, percentile).logits(features))


def dice_react(features: Floats, train: Floats, layer: LastLayer, *, percentile: float = 90.0) -> Floats:
    """Return DICE + ReAct: activations clipped, then the sparse layer; both of the same training features."""
    return dice(clipped(features, train, percentile), train, layer, percentile=percentile)


class VirtualLogit(NamedTuple):
    """ViM's virtual logit: `alpha` times the norm of ``h - origin`` along `residual`.

    Attributes
    ----------
    origin : ndarray of float64, shape (D,)
        ``-W^+ b``.
    residual : ndarray of float64, shape (D, D - dimension)
        Eigenvectors of the second moment of training features about the origin, of the smallest eigenvalues.
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
        Of the principal subspace; by default `principal_dimension` of D.

    Raises
    ------
    EvaluationError
        The dimension leaves no residual, or training features lie wholly in the principal subspace.
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
