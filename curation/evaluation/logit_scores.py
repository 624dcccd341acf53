"""Scores of logits: maximum softmax, energy, generalized entropy."""

from __future__ import annotations

import numpy as np

from curation.evaluation.problem import Floats


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
