"""Post-hoc OOD scores that change the last layer or its input (ASH, DICE, ReAct, ViM), as in FMIYC's code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curation.errors import EvaluationError
from curation.evaluation.columns import Floats
from curation.evaluation.post_hoc.scores import energy, log_sum_exp


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
            expected=f"a --percentile below {100 * (d - 0.5) / d:.4g} for {d} features, so that one or more are kept",
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
