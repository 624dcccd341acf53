"""The worked example of open-set classification (K = 3, dyadic scores), and loops that compute the same plainly."""

from __future__ import annotations

import math
from typing import Any

Point = tuple[float, float, float]
LABELS = (0, 0, 0, 1, 1, 1, 2, 2, -1, -1, -1, -1, -2, -2, -2, -2)

SOFTMAX = """
1 0 0
.75 .125 .125
.25 .5 .25
.0625 .875 .0625
.125 .75 .125
.375 .375 .25
.125 .25 .625
.25 .25 .5
.5 .25 .25
.375 .3125 .3125
.125 .75 .125
.34375 .34375 .3125
1 0 0
.125 .125 .75
.5 .25 .25
.375 .3125 .3125
"""

BACKGROUND = """
1 0 0 0
.65625 .109375 .109375 .125
.1875 .375 .1875 .25
.0625 .875 .0625 0
.109375 .65625 .109375 .125
.1875 .1875 .125 .5
.09375 .1875 .46875 .25
.21875 .21875 .4375 .125
.125 .0625 .0625 .75
.1875 .15625 .15625 .5
.09375 .5625 .09375 .25
.04296875 .04296875 .0390625 .875
1 0 0 0
.109375 .109375 .65625 .125
.25 .125 .125 .5
.28125 .234375 .234375 .25
"""


def table(text: str) -> list[list[float]]:
    return [[float(cell) for cell in line.split()] for line in text.strip().splitlines()]


def samples(
    labels: Any, scores: Any, n_known: int, group: int, *, with_background: bool = False
) -> tuple[list[tuple[float, bool]], list[float]]:
    """Return (score of the true class, right?) of each known sample, and the highest score of each other one."""
    known, other = [], []
    for label, row in zip(labels, scores, strict=True):
        columns = list(row) if with_background else list(row[:n_known])
        best = 0
        for place, score in enumerate(columns):
            if score > columns[best]:
                best = place
        if label >= 0:
            known.append((columns[label], best == label))
        elif label == group:
            other.append(columns[best])
    return known, other


def curve(known: list[tuple[float, bool]], other: list[float], grid: str) -> list[Point]:
    """Return (threshold, CCR, FPR) by rising threshold, by counting again at every threshold."""
    targets = sorted({score for score, _ in known})
    if grid == "exact":
        thresholds = sorted({-math.inf, *targets, *other})
    else:
        thresholds = sorted(set(other)) if grid == "comparison" else targets[:-1]
    points = []
    for threshold in thresholds:
        passed = (lambda s, t=threshold: s >= t) if grid == "comparison" else (lambda s, t=threshold: s > t)
        correct = sum(right and passed(score) for score, right in known)
        points.append((threshold, correct / len(known), sum(passed(score) for score in other) / len(other)))
    return points


def ccr_at(points: list[Point], query: float, grid: str) -> float | None:
    """Return CCR at a rate by the words of each grid's rule (rates of few samples: floats are fine here)."""
    chosen = point_at(points, query, grid)
    return None if chosen is None else chosen[1]


def point_at(points: list[Point], query: float, grid: str) -> Point | None:
    """Return threshold, CCR and FPR at a rate."""
    if grid == "exact":
        return max((one for one in points if one[2] <= query), key=lambda point: point[1])
    if grid == "comparison":
        return max((one for one in points if one[2] < query), key=lambda point: (point[2], point[1]), default=None)
    if not points:
        return None
    nearest = min(points, key=lambda point: abs(point[2] - query))
    return None if round(100 * abs(nearest[2] - query) / query, 1) >= 10 else nearest


def pairs_auroc(known: list[float], other: list[float]) -> float:
    """Return the share of pairs in which the known sample scores higher, ties half."""
    won = sum((one > two) + (one == two) / 2 for one in known for two in other)
    return won / (len(known) * len(other))
