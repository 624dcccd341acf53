"""Post-hoc OOD scores from logits and features, as FMIYC's code computes them; higher is more ID.

f: logits (n, K); h: features (n, D); W (K, D), b (K,): last layer. The same methods of the package pytorch-ood, which
gives outlier scores, are in `curation.evaluation.post_hoc.pytorch_ood`; `docs/ood_metrics.md` says where
the two differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curation.errors import EvaluationError
from curation.evaluation.columns import Floats, Int64s

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
            [
                (group - mean).T @ (group - mean) / (len(group) - 1)
                for group, mean in zip(groups, means, strict=True)
            ]
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
