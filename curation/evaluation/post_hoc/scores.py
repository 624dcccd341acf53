"""Post-hoc OOD scores from logits, features and a last layer, as FMIYC's code computes them; higher is more ID.

f: logits (n, K); h: features (n, D); W (K, D), b (K,): last layer. `docs/ood_metrics.md` says where the package
pytorch-ood differs, which gives outlier scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curation.errors import EvaluationError
from curation.evaluation.problem import Floats, Int64s

_QUERIES_AT_ONCE = 1 << 24
_JITTERS = (0.0, *(10.0**power for power in range(-20, 0)))


def log_sum_exp(values: Floats, axis: int = -1) -> Floats:
    """Return ``log(sum(exp(values)))`` along an axis, without overflow."""
    highest = values.max(axis=axis, keepdims=True)
    # All -inf (a class without samples in every term) must not become NaN.
    shift = np.where(np.isfinite(highest), highest, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(values - shift).sum(axis=axis, keepdims=True)) + shift
    return np.asarray(np.squeeze(total, axis=axis), np.float64)


def softmax(logits: Floats) -> Floats:
    """Return softmax probabilities of each row, shape (n, K)."""
    scaled = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True), np.float64)


def max_softmax(logits: Floats) -> Floats:
    """Return MSP, the highest softmax probability, shape (n,) (Hendrycks and Gimpel 2017)."""
    return np.asarray(softmax(logits).max(axis=1), np.float64)


def energy(logits: Floats) -> Floats:
    """Return the negative free energy ``logsumexp(f)``, temperature 1, shape (n,) (Liu et al. 2020)."""
    return log_sum_exp(logits)


def generalized_entropy(logits: Floats, *, gamma: float = 0.1, top: int | None = None) -> Floats:
    """Return GEN, ``-sum over the top M of p^gamma (1 - p)^gamma``, shape (n,) (Liu et al. 2023); M = K by default."""
    p = softmax(logits)
    if top is not None:
        p = -np.sort(-p, axis=1)[:, :top]
    # 1 - p may be a rounding error below 0 in no case: p <= 1 by construction.
    return np.asarray(-(p**gamma * (1 - p) ** gamma).sum(axis=1), np.float64)


@dataclass(frozen=True, slots=True)
class NearestNeighbour:
    """kNN on unit features: minus the distance to the k-th nearest training feature (Sun et al. 2022).

    Attributes
    ----------
    train : ndarray of float64, shape (N, D)
        Unit rows.
    k : int
    squared : bool
        The code's faiss index gives squared distances, the paper means distances: the same AUROC, other zscore
        thresholds.
    """

    train: Floats
    k: int = 10
    squared: bool = True

    @classmethod
    def fit(cls, features: Floats, *, k: int = 10, squared: bool = True) -> NearestNeighbour:
        """Return the score fitted on training features, shape (N, D), N >= k.

        Raises
        ------
        EvaluationError
            There are fewer than k training features.
        """
        if not 1 <= k <= len(features):
            raise EvaluationError(
                "kNN needs at least k training features", expected=f"{k} or more", found=str(len(features))
            )
        return cls(unit_rows(features), k, squared)

    def score(self, features: Floats) -> Floats:
        """Return the score of features, shape (n,)."""
        rows = unit_rows(features)
        found = np.empty(len(rows))
        step = max(1, _QUERIES_AT_ONCE // len(self.train))
        for low in range(0, len(rows), step):
            likeness = rows[low : low + step] @ self.train.T
            kth = np.partition(likeness, len(self.train) - self.k, axis=1)[:, -self.k]
            found[low : low + step] = np.maximum(2 - 2 * kth, 0)
        return -found if self.squared else -np.sqrt(found)


def unit_rows(features: Floats) -> Floats:
    """Return rows scaled to length 1; a zero row stays zero."""
    length = np.linalg.norm(features, axis=1, keepdims=True)
    return np.asarray(features / np.maximum(length, 1e-12), np.float64)


@dataclass(frozen=True, slots=True)
class Mahalanobis:
    """Minus the squared Mahalanobis distance to the nearest class mean, one covariance for all (Lee et al. 2018).

    Attributes
    ----------
    means : ndarray of float64, shape (C, D)
        Of the classes that have samples.
    precision : ndarray of float64, shape (D, D)
        Pseudo-inverse of the covariance of class-centred features (divided by N).
    """

    means: Floats
    precision: Floats

    @classmethod
    def fit(cls, features: Floats, labels: Int64s) -> Mahalanobis:
        """Return the score fitted on training features (N, D) with class labels (N,)."""
        classes, place = np.unique(labels, return_inverse=True)
        means = np.stack([features[labels == one].mean(axis=0) for one in classes])
        centred = features - means[place]
        return cls(means, np.linalg.pinv(centred.T @ centred / len(features), hermitian=True))

    def score(self, features: Floats) -> Floats:
        """Return the score of features, shape (n,)."""
        best = np.full(len(features), -np.inf)
        for mean in self.means:
            centred = features - mean
            best = np.maximum(best, -((centred @ self.precision) * centred).sum(axis=1))
        return best


@dataclass(frozen=True, slots=True)
class GaussianDensity:
    """DDU: log-density of class-wise Gaussians (Mukhoti et al. 2023), without the paper's class weights as in the code.

    Attributes
    ----------
    means : ndarray of float64, shape (C, D)
    factors : ndarray of float64, shape (C, D, D)
        Lower Cholesky factors of the covariances (n - 1).
    log_weights : ndarray of float64, shape (C,)
        Zero (the code), or the log share of each class (paper, eq. 22-23).
    jitter : float
        What was added to the diagonals: 0, else the smallest of 1e-20 … 1e-1 under which all factors exist.
    """

    means: Floats
    factors: Floats
    log_weights: Floats
    jitter: float

    @classmethod
    def fit(cls, features: Floats, labels: Int64s, *, weighted: bool = False) -> GaussianDensity:
        """Return the density fitted on training features (N, D) with class labels (N,).

        Raises
        ------
        EvaluationError
            A class has fewer than two samples, or no jitter makes its covariance positive definite.
        """
        classes, counts = np.unique(labels, return_counts=True)
        if counts.min(initial=2) < 2:
            few = classes[counts < 2].tolist()
            raise EvaluationError(
                "A class has too few training features for a covariance",
                expected="2 or more",
                found=f"labels {few[:5]}",
            )
        groups = [features[labels == one] for one in classes]
        means = np.stack([group.mean(axis=0) for group in groups])
        covariances = np.stack(
            [(group - mean).T @ (group - mean) / (len(group) - 1) for group, mean in zip(groups, means, strict=True)]
        )
        factors, jitter = _factors(covariances)
        weights = np.log(counts / counts.sum()) if weighted else np.zeros(len(classes))
        return cls(means, factors, weights, jitter)

    def score(self, features: Floats) -> Floats:
        """Return the log-density of features up to the class weights, shape (n,)."""
        d = features.shape[1]
        terms = np.empty((len(features), len(self.means)))
        for column, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            whitened = np.linalg.solve(factor, (features - mean).T)
            log_root = np.log(np.diag(factor)).sum()
            terms[:, column] = -0.5 * ((whitened**2).sum(axis=0) + d * np.log(2 * np.pi)) - log_root
        return log_sum_exp(terms + self.log_weights)


def _factors(covariances: Floats) -> tuple[Floats, float]:
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


@dataclass(frozen=True, slots=True)
class LastLayer:
    """The layer that makes logits of features: ``f = h W^T + b``.

    Attributes
    ----------
    weight : ndarray of float64, shape (K, D)
    bias : ndarray of float64, shape (K,)
    """

    weight: Floats
    bias: Floats

    def logits(self, features: Floats) -> Floats:
        """Return logits of features, shape (n, K)."""
        return np.asarray(features @ self.weight.T + self.bias, np.float64)


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
    kept = kept_activations(d, percentile)
    order = np.argsort(-features, axis=1, kind="stable")[:, :kept]
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
            found=f"a row of {d} zeros" if is_zero else f"{kept} kept activations that cancel each other",
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
            found=f"S1 = {before[row]:.6g}, S2 = {after[row]:.6g} of {kept} kept activations",
        )
    return energy(layer.logits(shaped))


def kept_activations(d: int, percentile: float) -> int:
    """Return how many of `d` activations ASH keeps; none is an `EvaluationError`."""
    kept = d - round(d * percentile / 100)
    if not kept:
        raise EvaluationError(
            f"ASH keeps no activation: {percentile:g} % of {d} features, rounded, are all of them",
            expected=f"a percentile below {100 * (d - 0.5) / d:.4g} for {d} features, so that one or more are kept",
            found=f"percentile {percentile:g}",
        )
    return kept


@dataclass(frozen=True, slots=True)
class ReAct:
    """ReAct: energy after clipping activations at a percentile of all training activations (Sun et al. 2021)."""

    layer: LastLayer
    ceiling: float

    @classmethod
    def fit(cls, features: Floats, layer: LastLayer, *, percentile: float = 90.0) -> ReAct:
        """Return the score fitted on training features, shape (N, D)."""
        return cls(layer, float(np.percentile(features, percentile)))

    def clip(self, features: Floats) -> Floats:
        """Return the features with activations above the ceiling set to it."""
        return np.minimum(features, self.ceiling)

    def score(self, features: Floats) -> Floats:
        """Return the score of features, shape (n,)."""
        return energy(self.layer.logits(self.clip(features)))


@dataclass(frozen=True, slots=True)
class Dice:
    """DICE: energy of a layer without the weights of least contribution (Sun and Li 2022).

    Contribution of a weight: itself times the mean training activation of its input.
    """

    layer: LastLayer

    @classmethod
    def fit(cls, features: Floats, layer: LastLayer, *, percentile: float = 90.0) -> Dice:
        """Return the score fitted on training features, shape (N, D); weights above the percentile stay."""
        contribution = features.mean(axis=0) * layer.weight
        kept = contribution > np.percentile(contribution, percentile)
        return cls(LastLayer(np.where(kept, layer.weight, 0.0), layer.bias))

    def score(self, features: Floats) -> Floats:
        """Return the score of features, shape (n,)."""
        return energy(self.layer.logits(features))


@dataclass(frozen=True, slots=True)
class DiceReAct:
    """DICE + ReAct: activations clipped, then the sparse layer; both fitted on the same training features."""

    react: ReAct
    dice: Dice

    @classmethod
    def fit(cls, features: Floats, layer: LastLayer, *, percentile: float = 90.0) -> DiceReAct:
        """Return the score fitted on training features, shape (N, D)."""
        return cls(
            ReAct.fit(features, layer, percentile=percentile),
            Dice.fit(features, layer, percentile=percentile),
        )

    def score(self, features: Floats) -> Floats:
        """Return the score of features, shape (n,)."""
        return self.dice.score(self.react.clip(features))


@dataclass(frozen=True, slots=True)
class ViM:
    """ViM: energy minus a virtual logit, the scaled norm outside the principal subspace (Wang et al. 2022).

    Attributes
    ----------
    layer : LastLayer
    origin : ndarray of float64, shape (D,)
        ``-W^+ b``.
    residual : ndarray of float64, shape (D, D - dimension)
        Eigenvectors of the second moment of training features about the origin, of the smallest eigenvalues.
    alpha : float
        Mean highest logit over mean residual norm, on the training features.
    """

    layer: LastLayer
    origin: Floats
    residual: Floats
    alpha: float

    @classmethod
    def fit(cls, features: Floats, layer: LastLayer, *, dimension: int | None = None) -> ViM:
        """Return the score fitted on training features, shape (N, D).

        Parameters
        ----------
        dimension : int, optional
            Of the principal subspace; by default 1000 where D >= 2048, 512 where D >= 768, else D // 2.

        Raises
        ------
        EvaluationError
            The dimension leaves no residual, or training features lie wholly in the principal subspace.
        """
        d = features.shape[1]
        size = principal_dimension(d) if dimension is None else dimension
        if not 0 <= size < d:
            raise EvaluationError(
                "ViM's principal subspace leaves nothing",
                expected=f"0 to {d - 1} dimensions",
                found=str(size),
            )
        origin = -(np.linalg.pinv(layer.weight) @ layer.bias)
        centred = features - origin
        residual = np.linalg.eigh(centred.T @ centred / len(features))[1][:, : d - size]
        norm = float(np.linalg.norm(centred @ residual, axis=1).mean())
        if not norm > 0:
            raise EvaluationError(
                "The training features have no residual outside ViM's principal subspace",
                expected="more training features than dimensions, or a smaller dimension",
                found=f"{len(features)} features of {d} dimensions",
            )
        return cls(layer, origin, residual, float(layer.logits(features).max(axis=1).mean()) / norm)

    def score(self, features: Floats) -> Floats:
        """Return the score of features, shape (n,)."""
        virtual = self.alpha * np.linalg.norm((features - self.origin) @ self.residual, axis=1)
        return np.asarray(log_sum_exp(self.layer.logits(features)) - virtual, np.float64)


def principal_dimension(d: int) -> int:
    """Return the dimension of ViM's principal subspace that the code takes for features of `d` dimensions."""
    return 1000 if d >= 2048 else 512 if d >= 768 else d // 2
