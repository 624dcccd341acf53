"""Open-set classification rate (OSCR): correct classification of known samples against false positives on others.

``CCR(t)``: share of known samples whose highest score is that of their class and lies above t. ``FPR(t)``: share of the
negative, or of the unknown, samples whose highest known score lies above t (Palechor et al., WACV 2023, eq. 6; Dhamija
et al., NeurIPS 2018). Three readings of which thresholds count, by name: `GRIDS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from curation.evaluation.class_scores import ClassScores, Floats

Grid = Literal["exact", "paper", "comparison"]
GRIDS: dict[str, str] = {
    "exact": "every score is a threshold, score > threshold; CCR@FPR(q): highest CCR with FPR <= q (eq. 6 as it stands)",
    "paper": "openset-imagenet: thresholds are the distinct scores of the true class of all known samples but the largest, "
    "score > threshold; CCR@FPR(q): at the FPR nearest to q, undefined if that is 10 % of q or more away",
    "comparison": "openset-imagenet-comparison: thresholds are the distinct highest scores of the other samples, "
    "score >= threshold; CCR@FPR(q): at the largest FPR strictly below q",
}
QUERIES = ("0.001", "0.01", "0.1", "1")
"""False positive rates at which the paper reports CCR (Table 2)."""


@dataclass(frozen=True, slots=True)
class OscrCurve:
    """Points of the curve by ascending threshold: both rates never rise.

    Attributes
    ----------
    thresholds, ccr, fpr : ndarray of float64, shape (p,)
        The first threshold of the exact curve is ``-inf``.
    n_known, n_other : int
    grid : {"exact", "paper", "comparison"}
    """

    thresholds: Floats
    ccr: Floats
    fpr: Floats
    n_known: int
    n_other: int
    grid: Grid


@dataclass(frozen=True, slots=True)
class Margins:
    """What the curve depends on: three sorted columns of scores."""

    correct: Floats
    target: Floats
    other: Floats
    n_known: int


def margins_of(data: ClassScores, group: str) -> Margins:
    """Return the sorted scores of right answers, of all true classes, and the highest ones of the other group.

    Equal highest scores: the class of lowest index is the answer.
    """
    known = data.known
    rows = data.scores[known]
    labels = data.labels[known]
    target = rows[np.arange(len(rows)), labels]
    right = rows.argmax(axis=1) == labels
    return Margins(
        correct=np.sort(target[right]).astype(np.float64),
        target=np.sort(target).astype(np.float64),
        other=np.sort(data.scores[data.group(group)].max(axis=1)).astype(np.float64),
        n_known=len(rows),
    )


def oscr_curve(margins: Margins, grid: Grid = "exact") -> OscrCurve | None:
    """Return the curve; None where a group is empty or the grid holds no threshold."""
    thresholds = _thresholds(margins, grid)
    if not margins.n_known or not len(margins.other) or not len(thresholds):
        return None
    side: Literal["left", "right"] = "left" if grid == "comparison" else "right"
    above_correct = len(margins.correct) - np.searchsorted(margins.correct, thresholds, side=side)
    above_other = len(margins.other) - np.searchsorted(margins.other, thresholds, side=side)
    return OscrCurve(
        thresholds=thresholds,
        ccr=above_correct / margins.n_known,
        fpr=above_other / len(margins.other),
        n_known=margins.n_known,
        n_other=len(margins.other),
        grid=grid,
    )


def ccr_at_fpr(curve: OscrCurve, query: str) -> float | None:
    """Return CCR at a false positive rate, by the rule of the curve's grid (see `GRIDS`); None where it has none.

    Parameters
    ----------
    query : str
        Decimal text, 0 to 1.
    """
    asked = Fraction(query)
    if curve.grid == "exact":
        # In whole samples: 0.1 * 30 is more than 3 in floats.
        kept = np.flatnonzero(np.rint(curve.fpr * curve.n_other) <= int(asked * curve.n_other))
        return float(curve.ccr[kept[0]])
    if curve.grid == "paper":
        if not asked:
            return None
        wanted = float(asked)
        place = int(np.argmin(np.abs(curve.fpr - wanted)))
        away = round(100 * abs(float(curve.fpr[place]) - wanted) / wanted, 1)
        return None if away >= 10 else float(curve.ccr[place])
    below = np.flatnonzero(curve.fpr < float(asked))
    return float(curve.ccr[below[0]]) if len(below) else None


def oscr(data: ClassScores, *, grid: Grid = "exact", queries: tuple[str, ...] = QUERIES) -> dict[str, Any]:
    """Return CCR@FPR, their sum, and AUROC, for negative and unknown samples apart.

    Returns
    -------
    dict
        ``accuracy`` (closed set), and per group ``n``, ``ccr_at_fpr`` by query, ``sum_ccr`` (sum over the queries that are
        defined, with their number), ``auroc``, ``smallest_fpr`` (the smallest above zero that the exact curve reaches).
        Undefined is None, with ``reason``.
    """
    margins = {group: margins_of(data, group) for group in ("negative", "unknown")}
    known = margins["negative"]
    result: dict[str, Any] = {
        "grid": grid,
        "definition": GRIDS[grid],
        "n_known": known.n_known,
        "accuracy": len(known.correct) / known.n_known if known.n_known else None,
    }
    highest = np.sort(data.scores[data.known].max(axis=1)) if known.n_known else np.empty(0)
    for group, one in margins.items():
        curve = oscr_curve(one, grid)
        rates = {query: None if curve is None else ccr_at_fpr(curve, query) for query in queries}
        defined = [rate for rate in rates.values() if rate is not None]
        result[group] = {
            "n": len(one.other),
            "ccr_at_fpr": rates,
            "sum_ccr": {"value": sum(defined) if defined else None, "of": len(defined)},
            "auroc": auroc(highest, one.other),
            "smallest_fpr": _smallest_fpr(one),
        }
        if curve is None:
            result[group]["reason"] = _reason(one, group)
    return result


def auroc(known: Floats, other: Floats) -> float | None:
    """Return the area under the ROC curve, known samples positive, ties half; None where a group is empty.

    Parameters
    ----------
    known, other : ndarray
        Highest scores, sorted.
    """
    if not len(known) or not len(other):
        return None
    lower = np.searchsorted(other, known, side="left").sum()
    not_higher = np.searchsorted(other, known, side="right").sum()
    return float((lower + not_higher) / (2 * len(known) * len(other)))


def _thresholds(margins: Margins, grid: Grid) -> Floats:
    if grid == "paper":
        return np.unique(margins.target)[:-1]
    if grid == "comparison":
        return np.unique(margins.other)
    return np.concatenate([[-np.inf], np.union1d(margins.correct, margins.other)])


def _smallest_fpr(margins: Margins) -> float | None:
    """Return the share of the other samples that reach the highest score among them."""
    if not len(margins.other):
        return None
    return float(np.count_nonzero(margins.other == margins.other[-1]) / len(margins.other))


def _reason(margins: Margins, group: str) -> str:
    if not margins.n_known:
        return "no sample of a known class"
    return f"no {group} sample" if not len(margins.other) else "the grid holds no threshold"
