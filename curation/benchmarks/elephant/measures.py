"""What the Elephant paper and the codes around it measure beside what the engines offer.

The rules by which each variant assigns detections to objects; wilderness impact and mAP as the paper's own code
computes them; wilderness impact and A-OSE as the OWOD code does; F-beta operating points (Table 4).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from curation.errors import EvaluationError, UsageError
from curation.evaluation.curves import Ranking, eleven_point, precision_at_recall
from curation.evaluation.input_order import decided_by_order, joined, joined_claims, kinds
from curation.evaluation.matching import (
    Matches,
    OperatingPoints,
    OverlappingPairs,
    assign,
    overlaps_any,
    recall_names,
    rows_by_class,
)
from curation.evaluation.open_set import (
    LEVEL_COUNTS,
    OFFICIAL_LEVELS,
    TENTHS,
    LevelCounts,
    Outcomes,
    RecallPoints,
    Values,
    average_impact,
    lies_on,
    recall_points,
    wilderness_levels,
)
from curation.evaluation.problem import Bools, Detections, Floats, GroundTruth, Int64s
from curation.evaluation.variants import IOU, Rules, round_as_text

PAPER = Rules(
    name="paper",
    meaning="the paper's text: matching by class, fixed thresholds, WI = FP_o / (TP_c + FP_c)",
    average_precision="eleven_point",
    ties="grouped",
)
OFFICIAL = Rules(
    name="official",
    meaning="the published code: matching of any class, interpolated precision, ratio of class means",
    objects="any_class",
    order="input",
    difficult="count",
    crowd="pass_over",
    dtype=np.float32,
    average_precision="eleven_point",
)
OWOD = Rules(
    name="owod",
    meaning="voc_eval of the OWOD code: IoU > 0.5, scores to 3 and corners to 1 decimal, WI at the nearest recall",
    overlap=">",
    text=True,
)


@dataclass(frozen=True, slots=True)
class _Pool:
    """All detections of both parts in input order; `place` counts wilderness images, -1 on a closed one.

    `claimed` is the object that a detection is right about, be it the first or not; -1 for none.
    """

    detections: Detections
    claimed: Int64s

    correct: Bools
    place: Int64s
    n_wilderness: int
    n_closed_as_wilderness: int
    n_positive: Int64s


def official_profile(
    closed: GroundTruth,
    closed_detections: Detections,
    wilderness: GroundTruth,
    wilderness_detections: Detections,
    *,
    recalls_tenths: Sequence[int] = (1, 3, 5),
    counts: LevelCounts = "integer",
) -> dict[str, Any]:
    """Return mAP and wilderness impact at each level as the paper's own code (``eval.py``, ``WIC.py``) computes them.

    The code differs from the paper's text: matching against objects of any class, float32 IoU, difficult objects
    ordinary, interpolated precision instead of a threshold, a ratio of class means, and images without annotation
    always counted as wilderness. Its float32 level counts are a variant (`curation.evaluation.open_set.LEVEL_COUNTS`).

    The level counts refer to the images of the closed file that are not wilderness by the code's rule: those without
    annotation (or with an unknown object) are, and leave N. Means run over the classes that have a detection on the
    images of the level; a class without ground truth counts as 0. Two faults of the code are not imitated: it breaks
    off on empty detections, and a crowd region shifts the list of objects it matches against (here crowd only counts
    in the number of positives).

    Returns
    -------
    dict
        ``levels``, ``n_closed_images`` (N), ``n_closed_as_wilderness``, ``n_wild_images``, ``npos``, ``mAP``,
        ``WI[recall]``, ``mean_interp_precision[recall]`` (lists over levels, None where undefined, the reason under
        ``undefined``), ``AWI[recall]``, ``n_classes_with_detections``, ``decided_by_order``.
    """
    pool = _pool(closed, closed_detections, wilderness, wilderness_detections)
    n_known = closed.n_images - pool.n_closed_as_wilderness
    # Without an image that stays closed every level is level 0.
    levels = wilderness_levels(
        max(n_known, 1), pool.n_wilderness, counts=counts, most=OFFICIAL_LEVELS if n_known else 1
    )
    entered = np.where(pool.place < 0, 0, levels.first_level(pool.place))
    shape = (len(levels), len(closed.classes))
    average, detected = np.zeros(shape), np.zeros(shape, bool)
    precision = np.zeros((len(recalls_tenths), *shape))
    for number, rows in rows_by_class(pool.detections.label, shape[1], empty=False):
        ranking = Ranking(
            pool.detections.scores[rows],
            pool.correct[rows],
            int(pool.n_positive[number]),
            level=entered[rows],
            n_levels=len(levels),
        )
        curve = ranking.curve("input_order")
        average[:, number] = eleven_point(curve)
        detected[:, number] = entered[rows].min(initial=len(levels)) <= np.arange(len(levels))
        for row, tenths in enumerate(recalls_tenths):
            precision[row, :, number] = precision_at_recall(curve, tenths)
    result: dict[str, Any] = {
        "levels": list(levels.names),
        "level_counts": levels.counts,
        "level_counts_meaning": LEVEL_COUNTS[levels.counts],
        "n_closed_images": n_known,
        "n_closed_as_wilderness": pool.n_closed_as_wilderness,
        "n_wild_images": levels.images.tolist(),
        "npos": dict(zip(closed.classes, pool.n_positive.tolist(), strict=True)),
        "n_classes_with_detections": detected.sum(axis=1).tolist(),
        "mAP": _means(average, detected),
        "decided_by_order": _decided_by_order(pool),
    }
    return result | _impacts(precision, detected, recalls_tenths)


def _pool(closed: GroundTruth, inside: Detections, wilderness: GroundTruth, outside: Detections) -> _Pool:
    annotated = np.zeros(closed.n_images, bool)
    annotated[closed.image] = True
    # Also a closed image is wilderness when it has no annotation or an unknown object.
    wild = ~annotated
    wild[closed.image[closed.label < 0]] = True
    place = np.where(wild, np.cumsum(wild) - 1, -1)
    n_inside = int(wild.sum())
    matches = assign(closed, inside, OFFICIAL)
    return _Pool(
        detections=joined(inside, outside),
        claimed=np.append(matches.claim, np.full(len(outside), -1)).astype(np.int64),
        correct=np.append(matches.outcome == 1, np.zeros(len(outside), bool)),
        place=np.concatenate([place[inside.image], outside.image.astype(np.int64) + n_inside]),
        n_wilderness=n_inside + wilderness.n_images,
        n_closed_as_wilderness=n_inside,
        n_positive=matches.n_positive,
    )


def _decided_by_order(pool: _Pool) -> int:
    """Return how many decisions rest on the order of the file: equal scores, and objects taken by the first listed."""
    right, scores = np.flatnonzero(pool.claimed >= 0), pool.detections.scores
    highest = np.full(int(pool.claimed.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(highest, pool.claimed[right], scores[right])
    first = np.flatnonzero(pool.correct)
    unsorted = int((scores[first] < highest[pool.claimed[first]]).sum())
    return unsorted + decided_by_order(pool.detections, pool.correct.astype(np.int64), claim=pool.claimed)


def _impacts(precision: Floats, detected: Bools, recalls_tenths: Sequence[int]) -> dict[str, Any]:
    result: dict[str, Any] = {"WI": {}, "AWI": {}, "mean_interp_precision": {}, "undefined": {}}
    if not detected.all(axis=0).any():
        result["undefined"]["level 0.0"] = "no class has a detection on the closed images"
    for row, tenths in enumerate(recalls_tenths):
        recall = f"{tenths // 10}.{tenths % 10}"
        means = _means(precision[row], detected)
        impact: Values = [_ratio(means[0], mean) for mean in means]
        result["mean_interp_precision"][recall] = means
        result["WI"][recall] = impact
        result["AWI"][recall] = average_impact(impact)
        if None in impact:
            result["undefined"][f"WI at recall {recall}"] = "the mean interpolated precision is 0 or has no class"
    return result


def _ratio(at_home: float | None, mean: float | None) -> float | None:
    return None if not at_home or not mean else at_home / mean - 1


def _means(table: Floats, detected: Bools) -> Values:
    return [float(row[some].mean()) if some.any() else None for row, some in zip(table, detected, strict=True)]


Part = tuple[GroundTruth, Detections]


def owod_metrics(parts: tuple[Part, ...]) -> dict[str, Any]:
    """Return wilderness impact at recalls 0.1 to 0.9 and A-OSE as ``voc_eval`` of OWOD, over all parts together.

    As in the official text files, scores are rounded to 3 decimals and corners to 1. Equal scores keep input order
    (the official sort is unstable). A class without ground truth is left out of wilderness impact and listed.

    Returns
    -------
    dict
        ``WI[recall]``: mean over classes of detections on an unknown object / mean of TP + FP, each at the index whose
        recall is nearest; None with ``reason`` where no class has detections and ground truth. ``nearest_recall``:
        the recall found, by class. ``AOSE_total``, ``AOSE_per_class``: detections of any score with IoU > 0.5 to an
        unknown object, difficult and crowd ones included. ``AOSE_instances``: distinct unknown objects hit.
        ``n_unknown``: unknown objects. ``classes_left_out`` with reasons. ``decided_by_order``.
    """
    rounded = tuple((truth, round_as_text(detections)) for truth, detections in parts)
    classes = parts[0][0].classes
    found = _outcomes(rounded)
    detected = np.bincount(found.label, minlength=len(classes))
    by_class = recall_points(found, len(classes))
    impact, nearest = _wilderness_impacts({classes[number]: one for number, one in by_class.items()})
    per_class = np.bincount(found.label[found.on_unknown], minlength=len(classes))
    result: dict[str, Any] = {
        "WI": impact,
        "nearest_recall": nearest,
        "classes_left_out": {
            name: "no detections" if found.n_positive[number] else "no ground truth"
            for number, name in enumerate(classes)
            if not found.n_positive[number] or not detected[number]
        },
        "AOSE_total": int(found.on_unknown.sum()),
        "AOSE_per_class": dict(zip(classes, per_class.tolist(), strict=True)),
        "AOSE_instances": sum(_objects_hit(truth, detections) for truth, detections in rounded),
        "n_unknown": sum(int((truth.label < 0).sum()) for truth, _ in parts),
        "decided_by_order": found.decided_by_order,
    }
    if None in impact.values():
        result["reason"] = "no class has both ground truth and detections, or none is right or wrong so far"
    return result


def open_set_errors(parts: tuple[Part, ...], points: OperatingPoints) -> dict[str, Any]:
    """Return A-OSE at all scores and at each operating point: detections of a known class on an unknown object.

    Boxes and scores as they are, IoU > 0.5 (Miller et al., ICRA 2018, count at an operating point; OWOD at all
    scores).

    Returns
    -------
    dict
        ``all`` and each recall: ``total``, ``per_class`` (None for a class without threshold), ``instances``:
        distinct unknown objects hit; also ``n_unknown``.
    """
    classes = parts[0][0].classes
    hits = tuple((truth, detections.take(_on_unknown(truth, detections))) for truth, detections in parts)
    everything = np.full(len(classes), -np.inf)
    limits = dict(zip(("all", *recall_names(points)), (everything, *points.threshold), strict=True))
    result: dict[str, Any] = {"n_unknown": sum(int((truth.label < 0).sum()) for truth, _ in parts)}
    for name, limit in limits.items():
        kept = [(truth, hit.take(hit.scores >= limit[hit.label])) for truth, hit in hits]
        counts = sum(np.bincount(hit.label, minlength=len(classes)) for _, hit in kept)
        result[name] = {
            "total": int(np.sum(counts)),
            "per_class": {
                known: None if np.isnan(limit[number]) else int(np.asarray(counts)[number])
                for number, known in enumerate(classes)
            },
            "instances": sum(_objects_hit(truth, hit) for truth, hit in kept),
        }
    return result


def _outcomes(parts: tuple[Part, ...]) -> Outcomes:
    matches = [assign(truth, detections, OWOD) for truth, detections in parts]
    outcome = np.concatenate([one.outcome for one in matches])
    on_unknown = np.concatenate([_on_unknown(*part) for part in parts])
    everything = joined(*(detections for _, detections in parts))
    rows = np.flatnonzero(on_unknown)
    return Outcomes(
        label=everything.label,
        scores=everything.scores,
        outcome=outcome,
        n_positive=np.sum([one.n_positive for one in matches], axis=0),
        target=np.concatenate([truth.label < 0 for truth, _ in parts]),
        taken=np.concatenate([one.truth for one in matches]),
        # Which object each lies on is of no account here.
        pairs=OverlappingPairs(rows, np.zeros_like(rows), np.zeros(len(rows))),
        decided_by_order=decided_by_order(
            everything,
            kinds(outcome, on_unknown),
            claim=np.where(on_unknown, -1, joined_claims(*(one.claim for one in matches))),
            read_at_first=True,
        ),
    )


def _on_unknown(truth: GroundTruth, detections: Detections) -> Bools:
    return lies_on(truth, detections, truth.label < 0, OWOD)


def _objects_hit(truth: GroundTruth, detections: Detections) -> int:
    return int(overlaps_any(truth, detections, truth.label < 0, iou_threshold=IOU, strict=OWOD.strict).sum())


def _wilderness_impacts(
    by_class: dict[str, RecallPoints],
) -> tuple[dict[str, float | None], dict[str, dict[str, float]]]:
    impact: dict[str, float | None] = {}
    nearest: dict[str, dict[str, float]] = {}
    for tenths in TENTHS:
        name = f"0.{tenths}"
        places = {known: one.nearest(tenths / 10) for known, one in by_class.items()}
        kept = sum(int(by_class[known].kept[place]) for known, place in places.items())
        hits = sum(int(by_class[known].on_unknown[place]) for known, place in places.items())
        impact[name] = hits / kept if kept else None
        nearest[name] = {known: float(by_class[known].recall[place]) for known, place in places.items()}
    return impact, nearest


Formula = Literal["correct", "published"]
FORMULAS: dict[str, str] = {
    "correct": "F = (1 + b^2) TP / ((TP + FP) + b^2 n), which is (1 + b^2) P R / (b^2 P + R)",
    "published": "F = (1 + b^2) P R: what Table 4 prints for b = 0.5; the denominator is missing",
}
TABLE_4_BETAS = ("0.5", "1.0", "1.5")
TABLE_4_RATIOS = tuple(f"{quarters / 4}" for quarters in range(18))
_DECIMAL = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3})?\Z")


def f_beta(tp: int, tp_fp: int, n: int, beta: str | Fraction, *, formula: Formula = "correct") -> float | None:
    """Return F-beta of one operating point, or None where it is undefined.

    Parameters
    ----------
    tp, tp_fp, n : int
        True positives, kept detections (true and false positives), and ground-truth objects.
    beta : str or Fraction
        Weight of recall against precision, as a decimal text (``"0.5"``).
    formula : {"correct", "published"}
        ``published`` is the b = 0.5 column of the paper's Table 4, which lacks the denominator in all 18 rows.

    Returns
    -------
    float or None
        None when there is no ground truth, or nothing is kept under ``published`` (precision 0/0).
    """
    square = _positive(beta, "beta") ** 2
    if n == 0 or (formula == "published" and tp_fp == 0):
        return None
    if formula == "published":
        return float(1 + square) * (tp / tp_fp) * (tp / n)
    return float((1 + square) * tp / (tp_fp + square * n))


def images_at_ratio(ratio: str, n_closed: int) -> int:
    """Return how many wilderness images a ratio asks for: the floor of ``ratio * n_closed`` in exact integers."""
    return int(_non_negative(ratio, "wilderness ratio") * n_closed)


def available_ratios(n_closed: int, n_wilderness: int, ratios: Sequence[str] = TABLE_4_RATIOS) -> tuple[str, ...]:
    """Return those ratios that the available wilderness has images for."""
    return tuple(ratio for ratio in ratios if images_at_ratio(ratio, n_closed) <= n_wilderness)


def fbeta_operating_points(
    closed: GroundTruth,
    closed_detections: Detections,
    matches: Matches,
    wilderness: GroundTruth,
    wilderness_detections: Detections,
    *,
    ratios: Sequence[str] = TABLE_4_RATIOS,
    betas: Sequence[str] = TABLE_4_BETAS,
    formula: Formula = "correct",
) -> dict[str, Any]:
    """Return the threshold of highest F-beta per class, wilderness ratio and beta.

    Candidates are the distinct scores of the class on the closed images and on the first ``floor(ratio * n_closed)``
    wilderness images; every detection there is a false positive. Equal F: the highest threshold. The choice always
    follows the correct formula, as in Table 4 (its b = 0.5 row at ratio 0 is not the best of the printed formula);
    `formula` only says which F is reported.

    Parameters
    ----------
    matches : Matches
        Outcome of each closed detection; ignored ones count nowhere.
    ratios, betas : sequence of str
        Decimal texts; they become the keys of the result as they stand.

    Returns
    -------
    dict
        ``result[class][ratio][beta] = {"F", "precision", "recall", "threshold", "TP", "FP", "n"}``; where F is
        undefined these are None (the counts 0) and ``reason`` says why.

    Raises
    ------
    UsageError
        A ratio or beta is no decimal number, a ratio is negative, a beta is not positive, a formula is unknown.
    EvaluationError
        A ratio needs more wilderness images than there are.
    """
    if formula not in FORMULAS:
        raise UsageError("Unknown F-beta formula", expected=", ".join(FORMULAS), found=repr(formula)[:80])
    weights = {beta: _positive(beta, "beta") for beta in betas}
    sizes = {ratio: _checked_size(ratio, closed.n_images, wilderness.n_images) for ratio in ratios}
    result: dict[str, Any] = {}
    for number, name in enumerate(closed.classes):
        ranking = _Ranking.of_class(number, closed_detections, matches, wilderness_detections)
        n = int(matches.n_positive[number])
        result[name] = {
            ratio: {beta: ranking.best(size, n, weight, formula) for beta, weight in weights.items()}
            for ratio, size in sizes.items()
        }
    return result


class _Ranking:
    """Detections of one class on both parts, by falling score, with the image position each one enters at."""

    def __init__(self, scores: Floats, correct: Bools, enters: Int64s) -> None:
        order = np.argsort(-scores, kind="stable")
        self.scores, self.correct, self.enters = scores[order], correct[order], enters[order]
        # The last of equal scores: a threshold keeps all of them or none.
        self.ends = np.flatnonzero(np.append(np.diff(self.scores) != 0, True)[: len(order)])
        self.true_positives = np.cumsum(self.correct)[self.ends]

    @classmethod
    def of_class(cls, number: int, closed: Detections, matches: Matches, wilderness: Detections) -> _Ranking:
        kept = np.flatnonzero((closed.label == number) & (matches.outcome >= 0))
        wild = np.flatnonzero(wilderness.label == number)
        return cls(
            np.concatenate([closed.scores[kept], wilderness.scores[wild]]),
            np.concatenate([matches.outcome[kept] == 1, np.zeros(len(wild), bool)]),
            np.concatenate([np.full(len(kept), -1, np.int64), wilderness.image[wild].astype(np.int64)]),
        )

    def best(self, size: int, n: int, beta: Fraction, formula: Formula) -> dict[str, Any]:
        """Return the operating point of highest F with the first `size` wilderness images."""
        kept = np.cumsum(self.enters < size)[self.ends]
        if n == 0:
            return _undefined("the class has no ground truth", n)
        if len(kept) == 0 or kept[-1] == 0:
            return _undefined("the class has no detections", n)
        p, q = (beta**2).as_integer_ratio()
        # Integers below 2^53 make numerator and denominator exact, so equal F are equal floats.
        f = ((p + q) * self.true_positives) / (q * kept + p * n)
        best = int(np.argmax(np.where(kept > 0, f, -1.0)))
        tp, tp_fp = int(self.true_positives[best]), int(kept[best])
        return {
            "F": f_beta(tp, tp_fp, n, beta, formula=formula),
            "precision": tp / tp_fp,
            "recall": tp / n,
            "threshold": float(self.scores[self.ends[best]]),
            "TP": tp,
            "FP": tp_fp - tp,
            "n": n,
        }


def _undefined(reason: str, n: int) -> dict[str, Any]:
    nothing = {"F": None, "precision": None, "recall": None, "threshold": None}
    return {**nothing, "TP": 0, "FP": 0, "n": n, "reason": reason}


def _checked_size(ratio: str, n_closed: int, n_wilderness: int) -> int:
    size = images_at_ratio(ratio, n_closed)
    if size > n_wilderness:
        raise EvaluationError(
            "A wilderness ratio needs more images than there are",
            where=f"ratio {ratio} of {n_closed} closed images",
            expected=f"{size} wilderness images",
            found=str(n_wilderness),
            hint="give a larger wilderness part, or smaller ratios",
        )
    return size


def _positive(text: str | Fraction, what: str) -> Fraction:
    value = _non_negative(text, what)
    if value == 0:
        raise UsageError(f"The {what} must be positive", found=str(text)[:40])
    return value


def _non_negative(number: str | Fraction, what: str) -> Fraction:
    # Exponents are refused: "1e999999999" would fill the memory with digits.
    if isinstance(number, Fraction) and number >= 0:
        return number
    if isinstance(number, str) and _DECIMAL.match(number):
        return Fraction(number)
    raise UsageError(
        f"The {what} is not a usable number",
        expected="a decimal number such as 0.5, zero or above",
        found=repr(number)[:80],
    )
