"""Scores of logits, and how well a score separates in-distribution (ID) from out-of-distribution (OOD) samples.

A higher score means "more ID". ID is the positive class of every number here, except one named otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from curation.evaluation.problem import Floats, Int64s


@dataclass(frozen=True)
class RankedScores:
    """ID and OOD scores in ascending order: all that AUROC, AUPR and FPR95 depend on.

    Attributes
    ----------
    ids, oods : ndarray of float64 or float32, shapes (n_id,) and (n_ood,)
        Ascending, finite.
    """

    ids: Floats
    oods: Floats

    @classmethod
    def from_scores(cls, id_scores: Floats, ood_scores: Floats) -> RankedScores:
        """Return the ranking of scores in any order."""
        scores = np.asarray(id_scores), np.asarray(ood_scores)
        # Single precision sorts in half the time, and its order is that of the same numbers as doubles.
        dtype = np.float32 if all(part.dtype == np.float32 for part in scores) else np.float64
        return cls(*(np.sort(part.astype(dtype, copy=False)) for part in scores))

    @property
    def n_id(self) -> int:
        """ID scores."""
        return len(self.ids)

    @property
    def n_ood(self) -> int:
        """OOD scores."""
        return len(self.oods)

    @cached_property
    def _steps(self) -> tuple[Int64s, Int64s, Int64s]:
        """First position of each distinct ID score, ascending, and the OOD scores below it and up to it."""
        distinct, first = np.unique(self.ids, return_index=True)
        return first, self.oods.searchsorted(distinct), self.oods.searchsorted(distinct, side="right")

    @property
    def twice_lost(self) -> int:
        """Twice the pairs whose OOD score is the higher, and once those of equal scores."""
        first, below, up_to = self._steps
        counts = np.diff(first, append=self.n_id)
        return int(2 * self.n_ood * self.n_id - np.dot(counts, below + up_to))

    @cached_property
    def id_at_least(self) -> Int64s:
        """ID scores >= each distinct ID score, from the highest score down, shape (k,)."""
        return _from_above(self.n_id, self._steps[0])

    @cached_property
    def ood_at_least(self) -> Int64s:
        """OOD scores >= each distinct ID score, from the highest score down, shape (k,)."""
        return _from_above(self.n_ood, self._steps[1])

    @cached_property
    def ood_above(self) -> Int64s:
        """OOD scores > each distinct ID score, from the highest score down, shape (k,)."""
        return _from_above(self.n_ood, self._steps[2])


def _from_above(n: int, below: Int64s) -> Int64s:
    return (n - below)[::-1]


@dataclass(frozen=True)
class ScoreSteps:
    """Counts at every distinct score, ID or OOD, from the highest down: the points of a curve.

    `RankedScores` has only the points at ID scores.

    Attributes
    ----------
    id_at_least, ood_at_least : ndarray of int64, shape (k,)
        ID and OOD scores at or above each distinct score.
    """

    id_at_least: Int64s
    ood_at_least: Int64s

    @property
    def n_id(self) -> int:
        """ID scores."""
        return int(self.id_at_least[-1])

    @property
    def n_ood(self) -> int:
        """OOD scores."""
        return int(self.ood_at_least[-1])

    @property
    def ood_above(self) -> Int64s:
        """OOD scores > each distinct score, shape (k,)."""
        return np.append(0, self.ood_at_least[:-1])

    @property
    def twice_lost(self) -> int:
        """Twice the pairs whose OOD score is the higher, and once those of equal scores."""
        return int(np.dot(np.diff(self.id_at_least, prepend=0), self.ood_at_least + self.ood_above))

    @cached_property
    def mirrored(self) -> ScoreSteps:
        """The steps of negated scores with ID and OOD exchanged, so that OOD is the positive class."""
        below = self.n_ood - self.ood_above, self.n_id - np.append(0, self.id_at_least[:-1])
        # Numbers from views that run backwards take twice the time.
        return ScoreSteps(np.ascontiguousarray(below[0][::-1]), np.ascontiguousarray(below[1][::-1]))

    @classmethod
    def from_scores(cls, id_scores: Floats, ood_scores: Floats) -> ScoreSteps:
        """Return the steps of scores in any order; both arrays must have scores."""
        # Two ascending runs are merged in one pass.
        scores = np.concatenate([np.sort(id_scores), np.sort(ood_scores)])
        order = np.argsort(scores, kind="stable")[::-1]
        ranked = scores[order]
        ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(scores) - 1)
        ids = np.cumsum(order < len(id_scores))[ends]
        return cls(ids, ends + 1 - ids)


def auroc(ranked: RankedScores | ScoreSteps) -> float:
    """Return the area under the ROC curve, in [0, 1]: exact pair counts, ties one half, ID positive.

    Both classes must have scores (`separability` returns None otherwise).
    """
    # Integers avoid a sum of rounded areas.
    pairs = 2 * ranked.n_id * ranked.n_ood
    return (pairs - ranked.twice_lost) / pairs


def sign_doubt(areas: Mapping[str, float | None]) -> tuple[str, ...]:
    """Return a warning if every AUROC, by OOD set, is far below 0.5."""
    known = [area for area in areas.values() if area is not None]
    if not known or max(known) >= 0.45:
        return ()
    return (
        f"AUROC is far below 0.5 on {', '.join(areas)}: OOD scores are higher; if a high score means OOD in the file, "
        "negate the scores",
    )


def aupr_trapezoid(ranked: RankedScores | ScoreSteps, *, start: float = 1.0) -> float:
    """Return the area under precision over recall by the trapezoid rule, in [0, 1]; ID positive.

    Parameters
    ----------
    start : float
        The precision above the highest score.
    """
    tp = ranked.id_at_least
    before = np.concatenate([[0], tp[:-1]])
    # Between two ID scores OOD scores lower the precision at the same recall: a step down before each trapezoid.
    above = before + ranked.ood_above
    left = before / np.maximum(above, 1)
    left[0] = left[0] if above[0] else start
    right = tp / (tp + ranked.ood_at_least)
    return float(((tp - before) * (left + right)).sum() / (2 * ranked.n_id))


def aupr_step(ranked: RankedScores) -> float:
    """Return average precision, the sum of recall gained times precision, in [0, 1]; ID positive."""
    tp = ranked.id_at_least
    gained = np.diff(tp, prepend=0)
    return float((gained * (tp / (tp + ranked.ood_at_least))).sum() / len(ranked.ids))


def fpr95_first(ranked: RankedScores | ScoreSteps) -> float:
    """Return the share of OOD scores at or above the largest score whose TPR reaches 0.95; ID positive."""
    step = int(np.argmax(20 * ranked.id_at_least >= 19 * ranked.n_id))
    return float(ranked.ood_at_least[step] / ranked.n_ood)


def fpr95_nearest(ranked: RankedScores) -> float:
    """Return the FPR where TPR is nearest to 0.95, as VOS's ``fpr_and_fdr_at_recall``; ID positive.

    The higher of two equally near TPRs (in float64, as there) is used, and among points of equal TPR below 1 the one
    with the lowest threshold, just above the next ID score.
    """
    recall = ranked.id_at_least / len(ranked.ids)
    step = len(recall) - 1 - int(np.argmin(np.abs(recall[::-1] - 0.95)))
    last = step == len(recall) - 1
    above = ranked.ood_at_least[step] if last else ranked.ood_above[step + 1]
    return float(above / len(ranked.oods))


def fpr95_ood_positive(ranked: RankedScores) -> float:
    """Return the share of ID scores at or below the smallest score that covers 95 % of the OOD scores; OOD positive."""
    n = len(ranked.oods)
    tau = ranked.oods[-(-19 * n // 20) - 1]
    return float(np.searchsorted(ranked.ids, tau, side="right") / len(ranked.ids))


def fpr95_at_vertices(steps: ScoreSteps) -> float:
    """Return the share of ID scores at the first vertex of scikit-learn's ROC that finds 95 % of the OOD scores.

    OOD positive, as in `fpr95_ood_positive`; but scikit-learn leaves out a point whose steps before and after are equal
    in both counts. If equal scores of ID and OOD make such steps, the first point that reaches 95 % may be missing, and
    a later point with more ID scores is used (OpenOOD 1.5, ``openood/evaluators/metrics.py``).
    """
    ood, ids = steps.mirrored.id_at_least, steps.mirrored.ood_at_least
    step = int(np.argmax(20 * ood >= 19 * ood[-1]))
    while 0 < step < len(ood) - 1 and (
        2 * ood[step] == ood[step - 1] + ood[step + 1] and 2 * ids[step] == ids[step - 1] + ids[step + 1]
    ):
        step += 1
    return float(ids[step] / ids[-1])


def fpr95_quantile(id_scores: Floats, ood_scores: Floats) -> float:
    """Return the share of OOD scores at or above the 0.05 quantile of the ID scores, interpolated; ID positive (NINCO).

    The quantile is ``numpy.quantile`` at the authors' ``1 - 0.95``, which is 0.050000000000000044 in doubles: for 21 ID
    scores the threshold is slightly above the second one, and an OOD score equal to that one is below it. If an ID
    score is NaN, no OOD score reaches the threshold.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        return float(np.mean(ood_scores >= np.quantile(id_scores, 1 - 0.95)))


def fpr95_rank(id_scores: Floats, ood_scores: Floats) -> float:
    """Return the share of OOD scores above the ID score of ascending rank ``round(0.05 n)``, from 0; ID positive (SSB).

    Python rounds a half to the even rank; an OOD score that equals the threshold is not counted.
    """
    rank = min(round(0.05 * len(id_scores)), len(id_scores) - 1)
    return float(np.mean(ood_scores > np.partition(id_scores, rank)[rank]))


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
    """Return MSP, the highest softmax probability, shape (n,) (Hendrycks and Gimpel 2017).

    Examples
    --------
    >>> import curation, numpy
    >>> curation.methods.max_softmax(numpy.log([[0.7, 0.2, 0.1]])).round(3).tolist()
    [0.7]
    """
    return np.asarray(softmax(logits).max(axis=1), np.float64)


def energy(logits: Floats) -> Floats:
    """Return the negative free energy ``logsumexp(f)``, temperature 1, shape (n,) (Liu et al. 2020).

    Examples
    --------
    >>> import curation, numpy
    >>> curation.methods.energy(numpy.log([[0.7, 0.2, 0.1]])).round(3).tolist()
    [0.0]
    """
    return log_sum_exp(logits)


def generalized_entropy(logits: Floats, *, gamma: float = 0.1, top: int | None = None) -> Floats:
    """Return GEN, ``-sum over the top M of p^gamma (1 - p)^gamma``, shape (n,) (Liu et al. 2023); M = K by default.

    Examples
    --------
    >>> import curation, numpy
    >>> curation.methods.generalized_entropy(numpy.log([[0.7, 0.2, 0.1]])).round(3).tolist()
    [-2.474]
    """
    p = softmax(logits)
    if top is not None:
        p = -np.sort(-p, axis=1)[:, :top]
    # 1 - p may be a rounding error below 0 in no case: p <= 1 by construction.
    return np.asarray(-(p**gamma * (1 - p) ** gamma).sum(axis=1), np.float64)
