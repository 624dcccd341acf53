"""What the Elephant paper and the codes around it measure beside what the engines offer.

The rules by which each variant assigns detections to objects; wilderness impact and mAP as the paper's own code
computes them; wilderness impact and A-OSE as the OWOD code does; F-beta operating points (Table 4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from curation.errors import EvaluationError, UsageError
from curation.evaluation import input_order, matching, open_set
from curation.evaluation.curves import Pool, Ranking, distinct_points, eleven_point, precision_at_recall
from curation.evaluation.matching import Matches, OperatingPoints, assign
from curation.evaluation.problem import Bools, Detections, Floats, GroundTruth, Scene
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
Part = tuple[GroundTruth, Detections]


def official_profile(
    scene: Scene, *, recalls_tenths: Sequence[int] = (1, 3, 5), counts: open_set.LevelCounts = "integer"
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
    closed, inside, wilderness, outside = scene
    wild = ~np.isin(np.arange(closed.n_images), closed.image)
    wild[closed.image[closed.label < 0]] = True
    n_wild, n_known = int(wild.sum()), int((~wild).sum())
    # Without an image that stays closed every level is level 0.
    most = open_set.OFFICIAL_LEVELS if n_known else 1
    levels = open_set.wilderness_levels(max(n_known, 1), n_wild + wilderness.n_images, counts=counts, most=most)
    first_level = np.where(wild, levels.first_level(np.cumsum(wild) - 1), 0)
    entered = np.append(first_level[inside.image], levels.first_level(outside.image + n_wild))
    matches = assign(closed, inside, OFFICIAL)
    pool = Pool.of(inside, matches, outside)
    shape = (len(levels), len(closed.classes))
    average, detected = np.zeros(shape), np.zeros(shape, bool)
    recalls = matching.tenth_names(recalls_tenths)
    precision = {recall: np.zeros(shape) for recall in recalls}
    for number, ranking in pool.rankings(entered, len(levels)):
        curve = ranking.curve("input_order")
        average[:, number] = eleven_point(curve)
        detected[:, number] = ranking.level.min(initial=len(levels)) <= np.arange(len(levels))
        for recall, tenths in zip(recalls, recalls_tenths, strict=True):
            precision[recall][:, number] = precision_at_recall(curve, tenths)
    means = {recall: _means(table, detected) for recall, table in precision.items()}
    impacts = {recall: [_impact(values[0], value) for value in values] for recall, values in means.items()}
    undefined = {} if detected.all(axis=0).any() else {"level 0.0": "no class has a detection on the closed images"}
    for recall in (recall for recall, impact in impacts.items() if None in impact):
        undefined[f"WI at recall {recall}"] = "the mean interpolated precision is 0 or has no class"
    return {
        "levels": list(levels.names),
        "level_counts": levels.counts,
        "level_counts_meaning": open_set.LEVEL_COUNTS[levels.counts],
        "n_closed_images": n_known,
        "n_closed_as_wilderness": n_wild,
        "n_wild_images": levels.images.tolist(),
        "npos": dict(zip(closed.classes, pool.n_positive.tolist(), strict=True)),
        "n_classes_with_detections": detected.sum(axis=1).tolist(),
        "mAP": _means(average, detected),
        "WI": impacts,
        "AWI": {recall: open_set.average_impact(impact) for recall, impact in impacts.items()},
        "mean_interp_precision": means,
        "undefined": undefined,
        # Objects go to the detection that is listed first, ranks of equal scores too.
        "decided_by_order": _to_first_listed(matches, inside.scores) + pool.decided_by_order(),
    }


def _to_first_listed(matches: Matches, scores: Floats) -> int:
    """Return how many objects go to the detection that is listed first, though another one has a higher score."""
    right, found = np.flatnonzero(matches.claim >= 0), np.flatnonzero(matches.outcome == 1)
    highest = np.full(int(matches.claim.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(highest, matches.claim[right], scores[right])
    return int((scores[found] < highest[matches.claim[found]]).sum())


def _impact(at_home: float | None, mean: float | None) -> float | None:
    return at_home / mean - 1 if at_home and mean else None


def _means(table: Floats, detected: Bools) -> open_set.Values:
    """Return the mean at each level over the classes with a detection there."""
    return [float(row[some].mean()) if some.any() else None for row, some in zip(table, detected, strict=True)]


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
    classes = parts[0][0].classes
    rounded = tuple((truth, round_as_text(detections)) for truth, detections in parts)
    hits = _hits(rounded)
    found = _outcomes(rounded, hits)
    detected = np.bincount(found.label, minlength=len(classes))
    by_class = open_set.recall_points(found, len(classes))
    recalls = [tenths / 10 for tenths in open_set.TENTHS]
    impact = dict(zip(map(str, recalls), open_set.impact_at_recalls(by_class, classes)["WI"][9:90:10], strict=True))
    errors = _errors(classes, hits, np.full(len(classes), -np.inf))
    result: dict[str, Any] = {
        "WI": impact,
        "nearest_recall": {
            str(recall): {classes[number]: float(one.recall[one.nearest(recall)]) for number, one in by_class.items()}
            for recall in recalls
        },
        "classes_left_out": {
            name: "no detections" if found.n_positive[number] else "no ground truth"
            for number, name in enumerate(classes)
            if not found.n_positive[number] or not detected[number]
        },
        "AOSE_total": errors["total"],
        "AOSE_per_class": errors["per_class"],
        "AOSE_instances": errors["instances"],
        "n_unknown": int(found.target.sum()),
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
    classes, hits = parts[0][0].classes, _hits(parts)
    everything = np.full(len(classes), -np.inf)
    limits = zip(("all", *matching.recall_names(points)), (everything, *points.threshold), strict=True)
    return {
        "n_unknown": sum(int((truth.label < 0).sum()) for truth, _ in parts),
        **{name: _errors(classes, hits, limit) for name, limit in limits},
    }


Hits = list[tuple[Detections, matching.OverlappingPairs]]


def _hits(parts: tuple[Part, ...]) -> Hits:
    """Return the detections of each part with the unknown objects that they lie on."""
    options: dict[str, Any] = {"same_class": False, "iou_threshold": IOU, "strict": OWOD.strict}
    return [
        (found, matching.overlapping_pairs(truth, found, mask=truth.label < 0, **options)) for truth, found in parts
    ]


def _errors(classes: Sequence[str], hits: Hits, limit: Floats) -> dict[str, Any]:
    """Return A-OSE of the detections at or above the limit of their class."""
    counts, instances = np.zeros(len(classes), np.int64), 0
    for detections, pairs in hits:
        kept = detections.scores[pairs.row] >= limit[detections.label[pairs.row]]
        counts += np.bincount(detections.label[np.unique(pairs.row[kept])], minlength=len(classes))
        instances += len(np.unique(pairs.position[kept]))
    lines = zip(classes, counts.tolist(), np.isnan(limit), strict=True)
    per_class = {name: None if undefined else count for name, count, undefined in lines}
    return {"total": int(counts.sum()), "per_class": per_class, "instances": instances}


def _outcomes(parts: tuple[Part, ...], hits: Hits) -> open_set.Outcomes:
    """Return what became of the detections of all parts under the rules of the OWOD code."""
    matches = [assign(truth, detections, OWOD) for truth, detections in parts]
    outcome = np.concatenate([one.outcome for one in matches])
    on_unknown = np.concatenate([np.isin(np.arange(len(found)), pairs.row) for found, pairs in hits])
    everything = input_order.joined(*(detections for _, detections in parts))
    claim = np.where(on_unknown, -1, input_order.joined_claims(*(one.claim for one in matches)))
    kinds = input_order.kinds(outcome, on_unknown)
    rows = np.flatnonzero(on_unknown)
    return open_set.Outcomes(
        label=everything.label,
        scores=everything.scores,
        outcome=outcome,
        n_positive=np.sum([one.n_positive for one in matches], axis=0),
        target=np.concatenate([truth.label < 0 for truth, _ in parts]),
        taken=np.concatenate([one.truth for one in matches]),
        # Which object each lies on is of no account here.
        pairs=matching.OverlappingPairs(rows, np.zeros_like(rows), np.zeros(len(rows))),
        decided_by_order=input_order.count_tie_sensitive(everything, kinds, claim=claim, read_at_first=True),
    )


Formula = Literal["correct", "published"]
FORMULAS: dict[str, str] = {
    "correct": "F = (1 + b^2) TP / ((TP + FP) + b^2 n), which is (1 + b^2) P R / (b^2 P + R)",
    "published": "F = (1 + b^2) P R: what Table 4 prints for b = 0.5; the denominator is missing",
}
TABLE_4_BETAS = ("0.5", "1.0", "1.5")
TABLE_4_RATIOS = tuple(f"{quarters / 4}" for quarters in range(18))


def f_beta(tp: int, tp_fp: int, n: int, beta: str, *, formula: Formula = "correct") -> float | None:
    """Return F-beta of one operating point, or None where it is undefined.

    Parameters
    ----------
    tp, tp_fp, n : int
        True positives, kept detections (true and false positives), and ground-truth objects.
    beta : str
        Weight of recall against precision, as a decimal text (``"0.5"``).
    formula : {"correct", "published"}
        ``published`` is the b = 0.5 column of the paper's Table 4, which lacks the denominator in all 18 rows.

    Returns
    -------
    float or None
        None when there is no ground truth, or nothing is kept under ``published`` (precision 0/0).
    """
    square = _decimal(beta, "beta", positive=True) ** 2
    if n == 0 or (formula == "published" and tp_fp == 0):
        return None
    if formula == "published":
        return float(1 + square) * (tp / tp_fp) * (tp / n)
    return float((1 + square) * tp / (tp_fp + square * n))


def images_at_ratio(ratio: str, n_closed: int) -> int:
    """Return how many wilderness images a ratio asks for: the floor of ``ratio * n_closed`` in exact integers."""
    return int(_decimal(ratio, "wilderness ratio") * n_closed)


def available_ratios(n_closed: int, n_wilderness: int, ratios: Sequence[str] = TABLE_4_RATIOS) -> tuple[str, ...]:
    """Return those ratios that the available wilderness has images for."""
    return tuple(ratio for ratio in ratios if images_at_ratio(ratio, n_closed) <= n_wilderness)


def fbeta_operating_points(
    scene: Scene,
    matches: Matches,
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
    closed, inside, wilderness, outside = scene
    if formula not in FORMULAS:
        raise UsageError("Unknown F-beta formula", expected=", ".join(FORMULAS), found=repr(formula)[:80])
    for beta in betas:
        _decimal(beta, "beta", positive=True)
    sizes = {ratio: _checked_size(ratio, closed.n_images, wilderness.n_images) for ratio in ratios}
    # A wilderness image is a level of its own: a ratio takes those below its size.
    enters = np.append(np.full(len(inside), -1), outside.image)
    rankings = Pool.of(inside, matches, outside).rankings(enters, 1, empty=True)
    return {
        closed.classes[number]: {ratio: _best_points(ranking, size, betas, formula) for ratio, size in sizes.items()}
        for number, ranking in rankings
    }


def _best_points(ranking: Ranking, size: int, betas: Sequence[str], formula: Formula) -> dict[str, Any]:
    """Return the operating point of highest F for each beta, with the first `size` wilderness images."""
    n, entered = int(ranking.n_positive), ranking.level < size
    if not n or not entered.any():
        reason = "the class has no detections" if n else "the class has no ground truth"
        nothing = dict.fromkeys(("F", "precision", "recall", "threshold"))
        return {beta: {**nothing, "TP": 0, "FP": 0, "n": n, "reason": reason} for beta in betas}
    scores, tps, kept = distinct_points(ranking.scores[entered], ranking.correct[entered])
    points = {}
    for beta in betas:
        p, q = (Fraction(beta) ** 2).as_integer_ratio()
        # Integers below 2^53 make numerator and denominator exact, so equal F are equal floats.
        best = int(np.argmax(((p + q) * tps) / (q * kept + p * n)))
        tp, tp_fp = int(tps[best]), int(kept[best])
        points[beta] = {
            "F": f_beta(tp, tp_fp, n, beta, formula=formula),
            "precision": tp / tp_fp,
            "recall": tp / n,
            "threshold": float(scores[best]),
            "TP": tp,
            "FP": tp_fp - tp,
            "n": n,
        }
    return points


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


def _decimal(text: str, what: str, *, positive: bool = False) -> Fraction:
    # Exponents are refused: "1e999999999" would fill the memory with digits.
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3})?", text):
        usual = "a decimal number such as 0.5, zero or above"
        raise UsageError(f"The {what} is not a usable number", expected=usual, found=repr(text)[:80])
    if positive and Fraction(text) == 0:
        raise UsageError(f"The {what} must be positive", found=text[:40])
    return Fraction(text)


def impact_of(section: Mapping[str, Any], recall: str, reading: str = "macro") -> Any:
    """Return WI over the levels in one reading; the official code has only one."""
    impact = section["WI"].get(recall)
    return impact[reading] if isinstance(impact, Mapping) else impact
