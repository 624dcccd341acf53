"""Detections without scores: precision, recall and F1, presence, and the range of AP over all orders of the boxes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from curation.core.columns import distinct
from curation.evaluation.matching import OverlappingPairs, covering, overlapping_pairs, rows_by_class
from curation.evaluation.measures import Measure, Measured, Value, percent, sum_in_order
from curation.evaluation.problem import Bools, Detections, GroundTruth, Int64s
from curation.evaluation.result import Column, Tidy

MATCHING = {
    "score-free": "greedy: the pair of highest IoU first, ties by truth, then by box, in file order",
    "score-free-best": "best: as many pairs as possible",
    "score-free-in-order": "in order: each box, in file order, takes the free truth of highest IoU",
}
"""The variants, and the rule of each for matching boxes to truths."""
LMMS = "lmms-eval"
LMMS_MEANING = (
    "lmms-eval 75571cf, task odinw13, one data set: class names trimmed and in lower case, others match nothing; in an "
    "image and class the pair of highest IoU (above 0) first; AP with score 1 for every box, ties in file order"
)
LEVELS = np.linspace(0.5, 0.95, 10)
ACCURACIES = ("0.1", "0.3", "0.5", "0.7", "0.9")
_RECALLS = np.linspace(0, 1, 101)
_LARGEST_GROUP = 7
"""Boxes of a group, over several truths, whose orders are all tried for the lowest AP."""

_RATES = {"precision": "TP / boxes", "recall": "TP / truths", "F1": "2 TP / (boxes + truths)"}
_measure = partial(Measure, unit="%", better="higher", undefined="there is nothing to divide by")
_range = partial(_measure, source="COCOeval's AP at IoU 0.5 of each class", undefined="no class has an object")
_lmms = partial(_measure, source="lmms-eval 75571cf, task odinw13")
_AT = "pooled over classes and images, at IoU 0.5"
_PRESENT = "of pairs of image and class, boxes aside: is the class in the image; crowd counts as shown"
_ORDER = "mean over classes of the {} AP50 that an order of the boxes gives, without a limit of boxes an image"
MEASURES = (
    *(_measure(key, f"{key} of boxes without scores", f"{how}, {_AT}", ranked=True) for key, how in _RATES.items()),
    _measure("F1_classes", "mean F1 of classes", "mean of F1 over the classes with a box or a truth", ranked=True),
    *(_measure(f"{key}_levels", f"mean {key}", f"mean of {key} at IoU 0.50, 0.55 … 0.95") for key in _RATES),
    *(_measure(f"presence_{key}", f"{key} of class presence", f"{how} {_PRESENT}", ranked=key == "F1")
      for key, how in _RATES.items()),
    _range("AP50_lowest", "lowest AP50 over all orders", _ORDER.format("lowest")),
    _range("AP50_highest", "highest AP50 over all orders", _ORDER.format("highest")),
    _lmms("IoU", "mean IoU of truths", "sum of the IoU of matched pairs / truths"),
    _lmms("Center_ACC", "share of truths with a centre inside", "truths whose partner's centre lies inside / truths"),
    _lmms("ACC@{iou}", "share of truths matched", "truths matched at IoU >= the parameter / truths"),
)  # fmt: skip
_COLUMNS = (
    Column("class"), *(Column(name, "count") for name in ("truths", "boxes", "TP")),
    *(Column(name, "%") for name in _RATES),
    *(Column(f"AP50_{name}", "%", f"AP50 {name}") for name in ("lowest", "highest")), Column("undefined", text=False),
)  # fmt: skip
TABLES = (Tidy("score_free", _COLUMNS, title="Boxes without scores, IoU 0.5, in %"),)


class _Problem(NamedTuple):
    """Truths, boxes, truths that count, overlapping pairs (IoU >= 0.5, same image and class), and boxes in crowds."""

    truth: GroundTruth
    boxes: Detections
    counted: Bools
    pairs: OverlappingPairs
    covered: Bools

    def at(self, level: float) -> OverlappingPairs:
        """Return the pairs at an IoU."""
        rows = self.pairs.iou >= level
        return OverlappingPairs(self.pairs.row[rows], self.pairs.position[rows], self.pairs.iou[rows])

    def counting(self, rows: Sequence[int] | Int64s) -> Bools:
        """Return which boxes count if `rows` match a truth: a box in a crowd counts only if it matches."""
        counting = ~self.covered
        counting[rows] = True
        return counting


def score_free(truth: GroundTruth, boxes: Detections, variant: str) -> Measured:
    """Return `MEASURES` of boxes, ignoring their scores, and one row per class.

    Parameters
    ----------
    truth : GroundTruth
        Crowd regions do not count as truths. As in COCO, a box without a free truth is ignored if at least half of its
        area lies in a crowd region of its class. Difficult objects count.
    boxes : Detections
        In file order.
    variant : str
        Key of `MATCHING`.
    """
    counted = (truth.label >= 0) & ~truth.crowd
    pairs = overlapping_pairs(truth, boxes, same_class=True, mask=counted, iou_threshold=0.5, strict=False)
    problem = _Problem(truth, boxes, counted, pairs, np.zeros(len(boxes), bool))
    problem.covered[covering(truth, boxes, truth.crowd & (truth.label >= 0), 0.5)] = True
    n_classes = len(truth.classes)
    n_truths = np.bincount(truth.label[counted], minlength=n_classes)
    levels = [_counts(problem, float(level), variant, n_classes) for level in LEVELS]
    tp, n_boxes = levels[0]
    by_class = [_rates(*numbers) for numbers in zip(tp.tolist(), n_boxes.tolist(), n_truths.tolist(), strict=True)]
    pooled = [_rates(int(hits.sum()), int(counts.sum()), int(n_truths.sum())) for hits, counts in levels]
    present = distinct(truth.image[truth.label >= 0].astype(np.int64) * n_classes + truth.label[truth.label >= 0])
    detected = distinct(boxes.image.astype(np.int64) * n_classes + boxes.label)
    presence = _rates(len(np.intersect1d(present, detected)), len(detected), len(present))
    ranges = _ranges(problem, n_truths)
    scores = [row["F1"] for row in by_class if row["F1"] is not None]
    values = [
        *(Value(key, percent(value)) for key, value in pooled[0].items()),
        Value("F1_classes", percent(_mean(scores)), n=len(scores)),
        *(Value(f"{key}_levels", percent(_mean([row[key] for row in pooled]))) for key in _RATES),
        *(Value(f"presence_{key}", percent(value)) for key, value in presence.items()),
        *_range_values(ranges, truth.classes),
    ]
    columns: dict[str, Sequence[Any]] = {
        "class": truth.classes, "truths": n_truths.tolist(), "boxes": n_boxes.tolist(), "TP": tp.tolist(),
        **{key: [percent(row[key]) for row in by_class] for key in _RATES},
        **{f"AP50_{key}": [percent(getattr(row, key)) for row in ranges] for key in ("lowest", "highest")},
        "undefined": [row.undefined for row in ranges],
    }  # fmt: skip
    return Measured(values, {"score_free": columns})


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return sum_in_order(defined) / len(defined) if defined and len(defined) == len(values) else None


def _rates(tp: int, boxes: int, truths: int) -> dict[str, float | None]:
    return {
        "precision": tp / boxes if boxes else None,
        "recall": tp / truths if truths else None,
        "F1": 2 * tp / (boxes + truths) if boxes + truths else None,
    }


def _counts(problem: _Problem, level: float, variant: str, n_classes: int) -> tuple[Int64s, Int64s]:
    """Return the number of boxes of each class that match a truth at an IoU, and that count."""
    matched_rows = sorted(_matched(problem.at(level), variant))
    tp = np.bincount(problem.boxes.label[matched_rows], minlength=n_classes)
    return tp, np.bincount(problem.boxes.label[problem.counting(matched_rows)], minlength=n_classes)


def _matched(pairs: OverlappingPairs, variant: str) -> dict[int, int]:
    """Return the truth that each box matches under a rule of `MATCHING`, given pairs of the same image and class."""
    in_order = variant == "score-free-in-order"
    keys = (pairs.row, pairs.position, -pairs.iou)
    order = np.lexsort((pairs.position, -pairs.iou, pairs.row) if in_order else keys)
    rows, positions = pairs.row[order].tolist(), pairs.position[order].tolist()
    if variant == "score-free-best":
        truths: dict[int, list[int]] = {}
        for row, position in zip(rows, positions, strict=True):
            truths.setdefault(row, []).append(position)
        return _most_pairs(truths)
    matches: dict[int, int] = {}
    used = set[int]()
    for row, position in zip(rows, positions, strict=True):
        if row not in matches and position not in used:
            matches[row] = position
            used.add(position)
    return matches


def _most_pairs(truths: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return a maximum matching of boxes and truths, by shortest augmenting paths."""
    holder: dict[int, int] = {}
    matches: dict[int, int] = {}
    for start in truths:
        came_from: dict[int, int] = {}
        queue = [start]
        for row in queue:
            free = None
            for position in truths[row]:
                if position not in came_from:
                    came_from[position] = row
                    if position not in holder:
                        free = position
                        break
                    queue.append(holder[position])
            if free is not None:
                while free is not None:
                    row = came_from[free]
                    holder[free], before = row, matches.get(row)
                    matches[row], free = free, before
                break
    return matches


class _Range(NamedTuple):
    """AP50 of a class over all orders of its boxes; None, with a reason, if it is unknown."""

    lowest: float | None
    highest: float | None
    undefined: str = ""


def _range_values(ranges: Sequence[_Range], classes: Sequence[str]) -> Iterator[Value]:
    with_objects = [(row, name) for row, name in zip(ranges, classes, strict=True) if row.highest is not None]
    n = len(with_objects)
    for key in ("lowest", "highest"):
        unknown = [f"{name}: {row.undefined}" for row, name in with_objects if getattr(row, key) is None]
        reason = f"{len(unknown)} of {n} classes, the first {unknown[0]}" if unknown else ""
        yield Value(
            f"AP50_{key}", percent(_mean([getattr(row, key) for row, _ in with_objects])), n=n, undefined=reason
        )


def _ranges(problem: _Problem, n_truths: Int64s) -> list[_Range]:
    pairs = problem.at(0.5)
    # A box in a crowd that overlaps a truth matches it in at least one order.
    left, covered = problem.counting(pairs.row), set(np.flatnonzero(problem.covered).tolist())
    of_box: dict[int, list[int]] = {}
    order = np.lexsort((pairs.position, -pairs.iou, pairs.row))
    for row, position in zip(pairs.row[order].tolist(), pairs.position[order].tolist(), strict=True):
        of_box.setdefault(row, []).append(position)
    ranges = []
    for number, rows in rows_by_class(problem.boxes.label, len(n_truths)):
        n, boxes = int(n_truths[number]), rows[left[rows]].tolist()
        if not n:
            ranges.append(_Range(None, None, undefined="the class has no object, crowd aside"))
            continue
        truths = {row: of_box[row] for row in boxes if row in of_box}
        highest = _precision([0] * len(_most_pairs(truths)), n)
        lowest, undecided = _lowest(truths, covered, len(boxes), n)
        reason = (
            f"the order decides which truths are found in {undecided} groups of boxes, in more ways than are tried; "
            f"the lowest AP50 is at least {100 * lowest:.2f}"
        )
        ranges.append(_Range(None if undecided else lowest, highest, reason * bool(undecided)))
    return ranges


def _precision(wrong_before: Sequence[int] | Int64s, n: int) -> float:
    """Return COCO's AP of a class of n objects, given the number of false boxes before each true box."""
    true = np.arange(1, len(wrong_before) + 1)
    precision = np.maximum.accumulate((true / (true + np.asarray(wrong_before, np.int64)))[::-1])[::-1]
    at = np.searchsorted(true / n, _RECALLS)
    return float(np.append(precision, 0.0)[np.minimum(at, len(true))].sum() / len(_RECALLS))


def _before(order: Sequence[int], truths: Mapping[int, Sequence[int]], covered: AbstractSet[int]) -> list[int]:
    """Return the number of false boxes before each true box, and their total; each box takes its best free truth.

    A box in `covered` lies in a crowd: without a free truth, it is ignored.
    """
    used, wrong, before = set[int](), 0, list[int]()
    for row in order:
        free = next((position for position in truths.get(row, ()) if position not in used), None)
        if free is not None:
            used.add(free)
            before.append(wrong)
        elif row not in covered:
            wrong += 1
    return [*before, wrong]


def _lowest(truths: Mapping[int, Sequence[int]], covered: AbstractSet[int], n_boxes: int, n: int) -> tuple[float, int]:
    """Return the lowest AP over all orders, or a lower bound, and the number of groups that make it a bound.

    The boxes of a group compete for truths. Its worst order has few true boxes, each after as many false boxes as
    possible. False boxes that need no true box before them come first, then the groups with most false boxes.
    """
    groups: dict[int, list[int]] = {}
    root: dict[int, int] = {}
    for row, positions in truths.items():
        joined = list(dict.fromkeys(root[position] for position in positions if position in root))
        rows = [*(other for key in joined for other in groups.pop(key)), row]
        groups[row] = rows
        root |= {position: row for other in rows for position in truths[other]}
    first, behind, undecided = n_boxes - len(truths), list[int](), 0
    for rows in groups.values():
        before, sure = _worst(rows, truths, covered)
        first += before[0]
        gaps = np.diff(before).tolist()
        undecided += not sure or gaps != sorted(gaps, reverse=True)
        behind += gaps
    ahead = np.cumsum([first, *sorted(behind, reverse=True)])[:-1]
    return _precision(ahead, n), undecided


def _worst(
    rows: Sequence[int], truths: Mapping[int, Sequence[int]], covered: AbstractSet[int]
) -> tuple[list[int], bool]:
    """Return `_before` for the worst order of a group, and whether this order exists; if not, it is a bound."""
    uncovered = sum(row not in covered for row in rows)
    if len({position for row in rows for position in truths[row]}) == 1:
        # If a box lies in a crowd, it takes the truth, and all others are false.
        return [0, uncovered - (uncovered == len(rows))], True
    if len(rows) > _LARGEST_GROUP:
        fewest = -(-len(_most_pairs({row: truths[row] for row in rows})) // 2)
        return [uncovered - max(0, fewest - len(rows) + uncovered)] * (fewest + 1), False
    orders = {tuple(_before(order, truths, covered)) for order in permutations(rows)}
    fewest = min(map(len, orders)) - 1
    worst = [max(order[nth] for order in orders) for nth in (*range(fewest), -1)]
    return worst, tuple(worst) in orders


def lmms_numbers(truth: GroundTruth, boxes: Detections) -> list[Value]:
    """Return lmms-eval's mean IoU, share of centres inside, and accuracies of a data set, in %."""
    counted = (truth.label >= 0) & ~truth.crowd
    pairs = overlapping_pairs(truth, boxes, same_class=True, mask=counted, iou_threshold=0, strict=True)
    matches, n = _matched(pairs, "score-free"), int(counted.sum())
    iou = dict(zip(zip(pairs.row.tolist(), pairs.position.tolist(), strict=True), pairs.iou.tolist(), strict=True))
    overlaps = np.array([iou[pair] for pair in matches.items()])
    box, target = boxes.boxes[list(matches)], truth.boxes[list(matches.values())]
    inside = np.abs(box[:, :2] + box[:, 2:] / 2 - target[:, :2] - target[:, 2:] / 2) <= target[:, 2:] / 2
    shares = {"IoU": overlaps.sum(), "Center_ACC": inside.all(axis=1).sum()}
    return [
        *(Value(key, percent(float(total) / n) if n else None, n=n) for key, total in shares.items()),
        *(Value("ACC", percent(int((overlaps >= float(iou)).sum()) / n) if n else None, {"iou": iou}, n)
          for iou in ACCURACIES),
    ]  # fmt: skip
