"""Counts of open-set detection: unknown objects found, detected as known classes or missed, and wilderness impact.

Wilderness impact has several readings: at fixed thresholds over levels of wilderness; at the index of nearest recall,
with or without the open-set errors in its denominator; and at confidence thresholds. ``elephant.toml``, ``owod.toml``
and ``osod3.toml`` declare which of them a benchmark measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from curation.core.errors import EvaluationError, UsageError
from curation.evaluation.matching import (
    Matches,
    OperatingPoints,
    OverlappingPairs,
    overlapping_pairs,
    recall_names,
    rows_by_class,
    tenth_names,
)
from curation.evaluation.problem import Bools, Detections, Floats, GroundTruth, Int32s, Int64s
from curation.evaluation.truth import TaskTruth
from curation.evaluation.variants import IOU, Rules

TENTHS = tuple(range(1, 10))
HUNDREDTHS = tuple(range(1, 101))
LevelCounts = Literal["integer", "float32"]
LEVEL_COUNTS: dict[str, str] = {
    "integer": "n_k = k*N // 10 in integers",
    "float32": "n_k = int(float32(k/10) * N), the ratio rounded to single precision and multiplied in double: what the "
    "official code computes under NumPy 1, which it needs; under NumPy 2 the product would be single too, and some "
    "levels would have one image more (N = 40, level 0.7: 27 here, 28 there)",
}
OFFICIAL_LEVELS = 50
"""The official code has the levels ``arange(0, 5, 0.1)`` and stops earlier if it runs out of images."""


READINGS: dict[str, str] = {
    "macro": "mean over classes of FP_o / (TP_c + FP_c)",
    "pooled": "sum over classes of FP_o / sum over classes of (TP_c + FP_c)",
    "ratio_of_mean_precision": "mean over classes of closed precision / mean of open precision - 1",
}
"""How wilderness impact is averaged over classes; the paper does not say (`macro` is the default)."""

Values = list[float | None]


@dataclass(frozen=True, slots=True)
class Levels:
    """The wilderness levels for which there are enough images.

    Attributes
    ----------
    names : tuple of str, length L
        Wilderness ratios as decimal texts: ``0.0``, ``0.1``, …
    images : ndarray of int64, shape (L,)
        Number of wilderness images of each level, never falling.
    counts : {"integer", "float32"}
    """

    names: tuple[str, ...]
    images: Int64s
    counts: str

    def __len__(self) -> int:
        return len(self.names)

    def first_level(self, position: Int32s | Int64s) -> Int64s:
        """Return the first level with the image at each position of the wilderness; L if there is none."""
        return np.searchsorted(self.images, position, side="right")


def wilderness_levels(
    n_closed: int, n_wilderness: int, *, counts: LevelCounts = "integer", most: int | None = None
) -> Levels:
    """Return the levels k/10 for k = 0, 1, … while ``n_k`` wilderness images are available.

    Parameters
    ----------
    n_closed, n_wilderness : int
        Images of the two parts.
    counts : {"integer", "float32"}
        See `LEVEL_COUNTS`.
    most : int, optional
        Highest number of levels.

    Raises
    ------
    UsageError
        The rule for counts is unknown.
    EvaluationError
        The closed part has no images.
    """
    if counts not in LEVEL_COUNTS:
        raise UsageError("Unknown rule for level counts", expected=", ".join(LEVEL_COUNTS), found=repr(counts)[:80])
    if n_closed < 1:
        raise EvaluationError("The closed part has no images", expected="at least one image")
    # n_k > k*N/10 - 1, so no level beyond this one can fit.
    end = 10 * (n_wilderness + 1) // n_closed + 2
    k = np.arange(end if most is None else min(end, most), dtype=np.int64)
    images = k * n_closed // 10
    if counts == "float32":
        images = ((k / 10).astype(np.float32).astype(np.float64) * n_closed).astype(np.int64)
    images = images[images <= n_wilderness]
    return Levels(tenth_names(range(len(images))), images, counts)


@dataclass(frozen=True)
class TaskOutcomes:
    """Outcome of each detection, and the unknown objects that detections of known classes overlap.

    Attributes
    ----------
    label : ndarray of int32, shape (d,)
        The last class is unknown.
    scores : ndarray of float64, shape (d,)
        Scores by which the variant ranks.
    outcome : ndarray of int8, shape (d,)
        1 true positive, 0 false positive, -1 ignored.
    n_positive : ndarray of int64, shape (K + 1,)
        Number of objects of each class that count, once for each line of the image list.
    target : ndarray of bool, shape (m,)
        Unknown objects that count.
    taken : ndarray of int32, shape (d,)
        The object that each true positive found; meaningless for other detections.
    pairs : OverlappingPairs
        Detections of known classes with the unknown objects that they overlap enough.
    """

    label: Int32s
    scores: Floats
    outcome: npt.NDArray[np.int8]
    n_positive: Int64s
    target: Bools
    taken: Int32s
    pairs: OverlappingPairs

    @cached_property
    def ranked(self) -> list[tuple[int, Int64s]]:
        """The detections of each class by falling score, ties in input order."""
        order = np.argsort(-self.scores, kind="stable")
        by_class = rows_by_class(self.label[order], len(self.n_positive))
        return [(number, order[rows]) for number, rows in by_class]

    @cached_property
    def on_unknown(self) -> Bools:
        """Which detections of known classes lie on an unknown object, shape (d,)."""
        hits = np.zeros(len(self.label), bool)
        hits[self.pairs.row] = True
        return hits


@dataclass(frozen=True, slots=True)
class RecallPoints:
    """Operating points of a known class: the first detection at each recall, by falling score.

    Wilderness impact is read at the first index of nearest recall, which is always one of these points.

    Attributes
    ----------
    rank : ndarray of int64, shape (p,)
        Position of the detection in the class's order, from 0.
    score, recall : ndarray of float64, shape (p,)
    retained : ndarray of int64, shape (p,)
        True and false positives up to and including the point: the code's denominator.
    kept_closed : ndarray of int64, shape (p,)
        The same without false positives on unknown objects: the closed-set denominator.
    on_unknown : ndarray of int64, shape (p,)
        Detections up to and including the point that lie on an unknown object.
    tp, n_positive : int
        True positives at the end, and objects that count; `recall` is NaN for a class without objects.
    """

    rank: Int64s
    score: Floats
    recall: Floats
    retained: Int64s
    kept_closed: Int64s
    on_unknown: Int64s
    tp: int
    n_positive: int

    def nearest(self, recall: float | Floats) -> Any:
        """Return the first position of the nearest recall to each value; 0 if the class has no recall."""
        above = np.minimum(np.searchsorted(self.recall, recall), len(self.recall) - 1)
        below = np.maximum(above - 1, 0)
        # In floats, as in the official code: rounding errors decide at a midpoint.
        is_below = np.abs(self.recall[below] - recall) <= np.abs(self.recall[above] - recall)
        return np.searchsorted(self.recall, self.recall[np.where(is_below, below, above)])


def recall_points(
    outcomes: TaskOutcomes, n_known: int, *, without_objects: bool = False, added: float = 0.0
) -> dict[int, RecallPoints]:
    """Return the operating points of each known class with objects and detections, by label.

    Parameters
    ----------
    without_objects : bool
        Whether to include classes without objects; their point is the first detection.
    added : float
        Number that recalls add to the objects in their denominator.
    """
    hits = outcomes.on_unknown
    result = {}
    for number, rows in outcomes.ranked:
        n = int(outcomes.n_positive[number])
        if number >= n_known or not len(rows) or not (n or without_objects):
            continue
        correct, counted, hit = outcomes.outcome[rows] == 1, outcomes.outcome[rows] >= 0, hits[rows]
        at = np.flatnonzero(correct)
        at = at if correct[0] else np.append(0, at)
        tp = np.cumsum(correct, dtype=np.int64)
        result[number] = RecallPoints(
            rank=at,
            score=outcomes.scores[rows][at],
            recall=tp[at] / (n + added) if n else np.full(len(at), np.nan),
            retained=np.cumsum(counted, dtype=np.int64)[at],
            kept_closed=np.cumsum(counted & (correct | ~hit), dtype=np.int64)[at],
            on_unknown=np.cumsum(hit, dtype=np.int64)[at],
            tp=int(tp[-1]),
            n_positive=n,
        )
    return result


def impact_at_recalls(by_class: dict[int, RecallPoints], classes: Sequence[str]) -> dict[str, Any]:
    """Return wilderness impact at recalls 0.01 to 1.00, over the classes that have operating points.

    Each class is read at the first index whose recall is nearest (RE-OWOD's code): a class that does not reach a recall
    is read at its highest recall, and a class without objects at its first detection.

    Returns
    -------
    dict
        Lists over ``recall`` (decimal texts): ``WI`` = sum of ``on_unknown`` / sum of ``retained`` over classes,
        ``WI_closed_set_denominator`` (sum of ``kept_closed`` instead), None if a sum is 0; these three sums;
        ``classes``, ``classes_reaching``, and ``never_reached_by``: names of the others.
    """
    sums = np.zeros((3, len(HUNDREDTHS)), np.int64)
    never: list[list[str]] = [[] for _ in HUNDREDTHS]
    recalls = np.array(HUNDREDTHS) / 100
    for number, points in by_class.items():
        at = points.nearest(recalls)
        sums += np.stack([points.on_unknown[at], points.retained[at], points.kept_closed[at]])
        for level, names in zip(HUNDREDTHS, never, strict=True):
            if not points.n_positive or 100 * points.tp < level * points.n_positive:
                names.append(classes[number])
    on_unknown, retained, kept_closed = sums.tolist()
    return {
        "recall": [f"{level // 100}.{level % 100:02d}" for level in HUNDREDTHS],
        "WI": _ratios(on_unknown, retained),
        "WI_closed_set_denominator": _ratios(on_unknown, kept_closed),
        "on_unknown": on_unknown,
        "kept": retained,
        "kept_closed": kept_closed,
        "classes": [len(by_class)] * len(HUNDREDTHS),
        "classes_reaching": [len(by_class) - len(names) for names in never],
        "never_reached_by": [", ".join(names) for names in never],
    }


@dataclass(frozen=True, slots=True)
class Targets:
    """The N unknown objects that count.

    Attributes
    ----------
    position : ndarray of int64, shape (N,)
        Position in the ground truth.
    copies : ndarray of int64, shape (N,)
        Lines of the image list that name its image.
    detected_at : ndarray of float64, shape (N,)
        Score of the detection of class unknown that found the object, -inf without one.
    called_at, called_wrongly_at : ndarray of float64, shape (N,)
        Highest score of a detection of a known class on the object, among all of them and among those that are not true
        positives; -inf without one.
    added : float
        Number that recalls add to the objects in their denominator.
    """

    position: Int64s
    copies: Int64s
    detected_at: Floats
    called_at: Floats
    called_wrongly_at: Floats
    added: float = 0.0

    def recall(self, detected: int, n: int) -> float | None:
        """Return `detected` as a percentage of n objects, or None if n is 0."""
        return _percent(detected, n + self.added) if n else None


def targets(truth: TaskTruth, outcomes: TaskOutcomes, *, added: float = 0.0) -> Targets:
    """Return the unknown objects that count, with the scores at which each is found and detected as known."""
    size = len(outcomes.target)
    detected_at, called_at, wrongly_at = (np.full(size, -np.inf) for _ in range(3))
    right = np.flatnonzero((outcomes.outcome == 1) & (outcomes.label == truth.unknown))
    detected_at[outcomes.taken[right]] = outcomes.scores[right]
    rows, position = outcomes.pairs.row, outcomes.pairs.position
    np.maximum.at(called_at, position, outcomes.scores[rows])
    wrong = outcomes.outcome[rows] != 1
    np.maximum.at(wrongly_at, position[wrong], outcomes.scores[rows[wrong]])
    objects = np.flatnonzero(outcomes.target)
    copies = truth.lines[truth.truth.image[objects]]
    return Targets(objects, copies, detected_at[objects], called_at[objects], wrongly_at[objects], added)


def unknown_counts(unknowns: Targets, rows: Bools | slice = slice(None)) -> dict[str, Any]:
    """Return how many unknown objects are found, detected as known and missed, and the resulting rates, in percent.

    An object counts once for each line that names its image, and is found once: its other copies are in FN_u.
    ``FN_u_star``: the copies of objects that were not found and have a detection of a known class on them.
    ``UR = UDR * UDP`` if all three are defined (Revisiting Open World Object Detection, section 5.1).
    """
    copies = unknowns.copies[rows]
    detected = np.isfinite(unknowns.detected_at[rows])
    missed = np.where(detected, 0, copies)
    n, tp = int(copies.sum()), int(detected.sum())
    result: dict[str, Any] = {
        "num_unknown_gt": n,
        "TP_u": tp,
        "FN_u": n - tp,
        "UR": unknowns.recall(tp, n),
        "AOSE_objects": int(copies[np.isfinite(unknowns.called_at[rows])].sum()),
    }
    for suffix, called in (("", unknowns.called_at[rows]), ("_excl_known_tp", unknowns.called_wrongly_at[rows])):
        star = int(missed[np.isfinite(called)].sum())
        result |= {
            f"FN_u_star{suffix}": star,
            f"UDR{suffix}": unknowns.recall(tp + star, n),
            f"UDP{suffix}": _percent(tp, tp + star) if n else None,
        }
    return result


def unknown_by_class(truth: TaskTruth, outcomes: TaskOutcomes, unknowns: Targets) -> dict[str, dict[str, Any]] | None:
    """Return `unknown_counts` and ``AOSE`` of each original class of unknown objects, by name.

    A detection counts for the class of the first object of highest IoU that it lies on. None if the ground truth does
    not state the classes of its unknown objects.
    """
    originals = truth.truth.original
    if originals is None or not all(originals[row] for row in unknowns.position.tolist()):
        return None
    names = sorted(set(originals))
    number_of = {name: number for number, name in enumerate(names)}
    kind = np.array([number_of[name] for name in originals], np.int64)
    detections = _kinds_hit(outcomes, kind, len(names))
    return {
        names[number]: {**unknown_counts(unknowns, kind[unknowns.position] == number), "AOSE": int(detections[number])}
        for number in np.unique(kind[unknowns.position]).tolist()
    }


def operating_curve(unknowns: Targets, outcomes: TaskOutcomes, unknown: int) -> dict[str, list[Any]]:
    """Return the measures of the detections with score >= s, for falling s.

    The scores are those at which an unknown object is found or first detected as known, and the lowest of all
    detections (the operating point).

    Returns
    -------
    dict
        Equally long lists ``score``, ``TP_u``, ``unknown_detections`` (true and false positives), ``UR``,
        ``P_unknown``, ``FN_u_star``, ``UDR``, ``UDP``: percent, None where undefined.
    """
    n = int(unknowns.copies.sum())
    counted = outcomes.scores[(outcomes.label == unknown) & (outcomes.outcome >= 0)]
    scores = np.concatenate(
        [unknowns.detected_at, unknowns.called_at, outcomes.scores.min(keepdims=True, initial=np.inf)]
    )
    limits = np.unique(scores[np.isfinite(scores)])[::-1]
    called = _at_least(unknowns.called_at, unknowns.copies, limits)
    both = _at_least(np.minimum(unknowns.called_at, unknowns.detected_at), unknowns.copies, limits)
    tp = _at_least(unknowns.detected_at, np.ones_like(unknowns.copies), limits)
    retained = _at_least(counted, np.ones(len(counted), np.int64), limits)
    star = called - both
    objects = [n + unknowns.added if n else 0] * len(limits)
    return {
        "score": limits.tolist(),
        "TP_u": tp.tolist(),
        "unknown_detections": retained.tolist(),
        "UR": _ratios((100 * tp).tolist(), objects),
        "P_unknown": _ratios((100 * tp).tolist(), retained.tolist()),
        "FN_u_star": star.tolist(),
        "UDR": _ratios((100 * (tp + star)).tolist(), objects),
        "UDP": _ratios((100 * tp).tolist(), ((tp + star) * bool(n)).tolist()),
    }


def _at_least(scores: Floats, weights: Int64s, limits: Floats) -> Int64s:
    """Return the sum of the weights of the entries with score >= each limit; limits fall."""
    order = np.argsort(scores)
    total = np.append(0, np.cumsum(weights[order]))
    return np.asarray(total[-1] - total[np.searchsorted(scores[order], limits[::-1])[::-1]])


def _kinds_hit(outcomes: TaskOutcomes, kind: Int64s, n_kinds: int) -> Int64s:
    """Return how many detections of known classes lie on each kind of object, by their best object."""
    pairs = outcomes.pairs
    best = np.lexsort((pairs.position, -pairs.iou, pairs.row))
    _, first = np.unique(pairs.row[best], return_index=True)
    return np.bincount(kind[pairs.position[best[first]]], minlength=n_kinds)


def _percent(above: int, below: float) -> float | None:
    return 100 * above / below if below else None


def lies_on(truth: GroundTruth, detections: Detections, mask: Bools, rules: Rules) -> Bools:
    """Return which detections of any class overlap an object under `mask` enough for a match, shape (d,)."""
    hit = np.zeros(len(detections), bool)
    hit[pairs_on(truth, detections, mask, rules, np.arange(len(detections))).row] = True
    return hit


def pairs_on(truth: GroundTruth, detections: Detections, mask: Bools, rules: Rules, rows: Int64s) -> OverlappingPairs:
    """Return the pairs of a detection in `rows`, ascending, and an object under `mask` that overlap enough to match."""
    pairs = overlapping_pairs(
        truth, detections.take(rows), same_class=False, mask=mask, iou_threshold=IOU, strict=rules.strict
    )
    return replace(pairs, row=rows[pairs.row])


def counts_at_thresholds(
    scores: Floats, outcome: npt.NDArray[np.int8], is_open: Bools, thetas: Sequence[float]
) -> list[dict[str, Any]]:
    """Return the counts of detections with score >= theta, and wilderness impact in its readings, for each theta.

    Matching goes from the highest score down, so a threshold does not change the outcome of the detections above it.

    Parameters
    ----------
    scores, outcome, is_open : ndarray, shape (d,)
        Columns of the detections of known classes; `is_open`: whether a detection lies on an unknown object.

    Returns
    -------
    list of dict
        ``theta``; ``TP``, ``FP``, ``AOSE``, ``FP_open`` (those of AOSE that are false positives); ``WI`` =
        FP_open / (TP + FP - FP_open), ``WI_all_fp`` = AOSE / (TP + FP), and the precisions ``P_K`` and ``P_KU``
        without and with FP_open. None if the denominator is 0.
    """
    order = np.argsort(scores, kind="stable")
    scores, outcome, is_open = scores[order], outcome[order], is_open[order]
    columns = {"TP": outcome == 1, "FP": outcome == 0, "AOSE": is_open, "FP_open": is_open & (outcome == 0)}
    totals = {name: np.append(0, np.cumsum(flags)) for name, flags in columns.items()}
    rows = []
    for theta in thetas:
        first = int(np.searchsorted(scores, theta, side="left"))
        counts = {name: int(total[-1] - total[first]) for name, total in totals.items()}
        rows.append({"theta": theta, **counts, **_rates(counts)})
    return rows


def _rates(counts: Mapping[str, int]) -> dict[str, float | None]:
    tp, fp, is_open, fp_open = (counts[name] for name in ("TP", "FP", "AOSE", "FP_open"))
    above, below = (fp_open, is_open, tp, tp), (tp + fp - fp_open, tp + fp, tp + fp - fp_open, tp + fp)
    return dict(zip(("WI", "WI_all_fp", "P_K", "P_KU"), _ratios(above, below), strict=True))


def wilderness_impact(
    classes: tuple[str, ...], matches: Matches, points: OperatingPoints, wilderness: Detections, levels: Levels
) -> dict[str, list[dict[str, Any]]]:
    """Return wilderness impact ``FP_o / (TP_c + FP_c)`` per recall and level (Elephant paper, Fig. 5, Table 2).

    FP_o counts all detections of the class with score >= its threshold on the wilderness images of the level; every
    level has the threshold of the closed set. A class that never reaches the recall, or has no ground truth, is listed
    and left out of the averages.

    Returns
    -------
    dict
        Rows of tables. ``operating_points``: threshold, TP, FP and recall of each class, None with a reason if it is
        left out; ``wilderness_impact``: FP_o and WI of each other class at each level; ``impact``: the three `READINGS`
        at each level, None if all classes are left out; ``average_impact``: see `average_impact`.
    """
    opened = _open_false_positives(points, wilderness, levels, len(classes))
    names = ("operating_points", "wilderness_impact", "impact", "average_impact")
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    positives = matches.n_positive.tolist()
    for row, recall in enumerate(recall_names(points)):
        tp, fp = points.tp[row], points.fp[row]
        retained, reached = tp + fp, ~np.isnan(points.threshold[row])
        for number, (name, n) in enumerate(zip(classes, positives, strict=True)):
            at = {"recall": recall, "class": name}
            if not reached[number]:
                nothing = dict.fromkeys(("threshold", "TP", "FP", "reached"))
                reason = "never reaches this recall" if n else "no ground truth"
                tables["operating_points"].append(at | nothing | {"left_out": reason})
                continue
            right, wrong = int(tp[number]), int(fp[number])
            point = {"threshold": float(points.threshold[row, number]), "TP": right, "FP": wrong, "reached": right / n}
            tables["operating_points"].append(at | point | {"left_out": ""})
            impact = (opened[row, number] / retained[number]).tolist()
            tables["wilderness_impact"] += [
                at | {"ratio": ratio, "FP_o": count, "WI": value}
                for ratio, count, value in zip(levels.names, opened[row, number].tolist(), impact, strict=True)
            ]
        averages = readings(tp[reached], retained[reached], opened[row][reached]) if reached.any() else None
        for reading in READINGS:
            values: Values = averages[reading].tolist() if averages else [None] * len(levels)
            at = {"recall": recall, "over_classes": reading}
            tables["impact"] += [
                at | {"ratio": ratio, "WI": value} for ratio, value in zip(levels.names, values, strict=True)
            ]
            tables["average_impact"].append(at | average_impact(values))
    return tables


def average_impact(values: Values) -> dict[str, float | None]:
    """Return the mean of wilderness impact over levels, without and with level 0; None if a level is undefined."""
    if any(value is None for value in values):
        return {"excl_level0": None, "incl_level0": None}
    numbers = np.array(values, np.float64)
    return {
        "excl_level0": float(numbers[1:].mean()) if len(numbers) > 1 else None,
        "incl_level0": float(numbers.mean()),
    }


def _open_false_positives(points: OperatingPoints, wilderness: Detections, levels: Levels, n_classes: int) -> Int64s:
    """Return FP_o, shape (R, K, L): wilderness detections at or above the threshold, cumulated over levels."""
    width = len(levels) + 1
    cell = wilderness.label.astype(np.int64) * width + levels.first_level(wilderness.image)
    counts = [
        np.bincount(cell[wilderness.scores >= limits[wilderness.label]], minlength=n_classes * width)
        for limits in points.threshold
    ]
    table = np.array(counts, np.int64).reshape(len(counts), n_classes, width)
    return table[:, :, :-1].cumsum(axis=2)


def readings(tp: Int64s, counted: Int64s, opened: Int64s) -> dict[str, Floats]:
    """Return the three averages over classes by level, shapes (L,).

    Parameters
    ----------
    tp, counted : ndarray of int64, shape (C,)
        True positives, and true and false positives, of each class that has a threshold.
    opened : ndarray of int64, shape (C, L)
        FP_o at each level.
    """
    tp, counted = tp[:, None], counted[:, None]
    closed_precision, open_precision = (tp / counted).mean(axis=0), (tp / (counted + opened)).mean(axis=0)
    return {
        "macro": (opened / counted).mean(axis=0),
        "pooled": opened.sum(axis=0) / counted.sum(),
        "ratio_of_mean_precision": closed_precision / open_precision - 1,
    }


def _ratios(above: Sequence[int], below: Sequence[float]) -> Values:
    return [a / b if b else None for a, b in zip(above, below, strict=True)]
