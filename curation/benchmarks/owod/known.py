"""Average precision of known classes and wilderness impact at every recall, of one OWOD task under one profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.evaluation.average_precision import Ranking, area, eleven_point_in_floats
from curation.evaluation.columns import Bools, Floats, Int64s
from curation.evaluation.outcomes import Outcomes, Profile

TENTHS = tuple(range(1, 10))
HUNDREDTHS = tuple(range(1, 101))


@dataclass(frozen=True, slots=True)
class Plateaus:
    """The detections of one known class by falling score, at the first detection of each recall that it reaches.

    Wilderness impact is read at the first index of nearest recall, which is always one of these.

    Attributes
    ----------
    rank : ndarray of int64, shape (p,)
        Position of the detection in the class's order, from 0.
    score, recall : ndarray of float64, shape (p,)
    kept : ndarray of int64, shape (p,)
        True and false positives up to and with it: the code's denominator.
    kept_closed : ndarray of int64, shape (p,)
        The same without false positives on unknown objects: the closed-set denominator.
    on_unknown : ndarray of int64, shape (p,)
        Detections up to and with it that lie on an unknown object.
    tp, n_positive : int
        True positives at the end, and objects that count.
    """

    rank: Int64s
    score: Floats
    recall: Floats
    kept: Int64s
    kept_closed: Int64s
    on_unknown: Int64s
    tp: int
    n_positive: int

    def as_lists(self) -> dict[str, list[Any]]:
        """Return the columns as equally long lists, by name."""
        names = ("rank", "score", "recall", "kept", "kept_closed", "on_unknown")
        return {name: getattr(self, name).tolist() for name in names}


def average_precision(found: Outcomes, profile: Profile) -> list[float | None]:
    """Return the AP of each class, unknown last, in percent; None for a class without objects.

    A point of the curve stands after each detection, equal scores in input order; ignored detections take no part.
    """
    flavour = eleven_point_in_floats if profile.eleven_points else area
    values: list[float | None] = []
    for number, rows in found.ranked():
        n = int(found.n_positive[number])
        rows = rows[found.outcome[rows] >= 0]
        ranking = Ranking(found.scores[rows], found.outcome[rows] == 1, n)
        values.append(100 * float(flavour(ranking.curve("input_order"))[0]) if n else None)
    return values


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the numbers among some values; None where there is none."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def on_unknown_objects(found: Outcomes) -> Bools:
    """Return which detections are of a known class and lie on an unknown object, shape (d,)."""
    hits = np.zeros(len(found.label), bool)
    hits[found.pairs.row] = True
    return hits


def plateaus(found: Outcomes) -> dict[int, Plateaus]:
    """Return the plateaus of each known class that has both objects and detections, by label."""
    hits, n_known = on_unknown_objects(found), len(found.n_positive) - 1
    result = {}
    for number, rows in found.ranked():
        n = int(found.n_positive[number])
        if number == n_known or not n or not len(rows):
            continue
        correct, counted, hit = found.outcome[rows] == 1, found.outcome[rows] >= 0, hits[rows]
        at = np.flatnonzero(correct)
        at = at if correct[0] else np.append(0, at)
        tp = np.cumsum(correct, dtype=np.int64)
        result[number] = Plateaus(
            rank=at,
            score=found.scores[rows][at],
            recall=(tp / n)[at],
            kept=np.cumsum(counted, dtype=np.int64)[at],
            kept_closed=np.cumsum(counted & (correct | ~hit), dtype=np.int64)[at],
            on_unknown=np.cumsum(hit, dtype=np.int64)[at],
            tp=int(tp[-1]),
            n_positive=n,
        )
    return result


def wilderness_impact(by_class: dict[int, Plateaus], classes: Sequence[str]) -> dict[str, Any]:
    """Return wilderness impact at recalls 0.01 to 1.00, over the classes with objects and detections.

    Each class is read at the first index whose recall is nearest (RE-OWOD's code); one that never reaches a recall is
    read at its highest.

    Returns
    -------
    dict
        Lists over ``recall`` (decimal texts): ``WI`` = sum of ``on_unknown`` / sum of ``kept`` over classes,
        ``WI_closed_set_denominator`` (sum of ``kept_closed`` instead), None where a sum is 0; these three sums;
        ``classes_reaching``; and ``classes_never_reaching``: names, by recall in tenths.
    """
    sums = np.zeros((3, len(HUNDREDTHS)), np.int64)
    reaching = np.zeros(len(HUNDREDTHS), np.int64)
    never: dict[str, list[str]] = {f"0.{tenths}": [] for tenths in TENTHS}
    levels = np.array(HUNDREDTHS) / 100
    for number, one in by_class.items():
        # In floats, as the official code does: at a midpoint the nearer one is what it takes for nearer.
        places = np.array([np.argmin(np.abs(one.recall - level)) for level in levels])
        sums += np.stack([one.on_unknown[places], one.kept[places], one.kept_closed[places]])
        reaching += 100 * one.tp >= np.array(HUNDREDTHS) * one.n_positive
        for tenths in TENTHS:
            if 10 * one.tp < tenths * one.n_positive:
                never[f"0.{tenths}"].append(classes[number])
    on_unknown, kept, kept_closed = sums.tolist()
    return {
        "recall": [f"{level // 100}.{level % 100:02d}" for level in HUNDREDTHS],
        "WI": _ratios(on_unknown, kept),
        "WI_closed_set_denominator": _ratios(on_unknown, kept_closed),
        "on_unknown": on_unknown,
        "kept": kept,
        "kept_closed": kept_closed,
        "classes": len(by_class),
        "classes_reaching": reaching.tolist(),
        "classes_never_reaching": never,
    }


def _ratios(above: Sequence[int], below: Sequence[int]) -> list[float | None]:
    return [a / b if b else None for a, b in zip(above, below, strict=True)]
