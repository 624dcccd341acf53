"""FindMeIfYouCan's metrics in plain loops over plain numbers, written from the specification alone."""

import math
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from itertools import pairwise

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Found:
    """A detection: corners x1, y1, x2, y2, confidence, OOD score."""

    box: Box
    confidence: float
    score: float


@dataclass(frozen=True)
class OodWorld:
    """Objects (x, y, w, h) and detections by image id, and the scores of ID detections."""

    objects: dict[int, list[Box]]
    found: dict[int, list[Found]]
    ids: list[float] = field(default_factory=list)


def area_under_roc(ids: list[float], oods: list[float]) -> Fraction:
    won = Fraction(0)
    for one in ids:
        for other in oods:
            won += Fraction(1) if one > other else Fraction(1, 2) if one == other else 0
    return won / (len(ids) * len(oods))


def points(ids: list[float], oods: list[float]) -> list[tuple[float, int, int]]:
    """Return threshold, TP and FP at each distinct score, from the highest down."""
    return [(t, sum(s >= t for s in ids), sum(s >= t for s in oods)) for t in sorted({*ids, *oods}, reverse=True)]


def fpr_first(ids: list[float], oods: list[float]) -> float:
    for _, tp, fp in points(ids, oods):
        if Fraction(tp, len(ids)) >= Fraction(95, 100):
            return fp / len(oods)
    raise AssertionError("the lowest threshold has TPR 1")


def fpr_nearest_vos(ids: list[float], oods: list[float]) -> float:
    """The steps of VOS's ``fpr_and_fdr_at_recall``: cut after full recall, reverse, append 1, take the argmin."""
    curve = points(ids, oods)
    last = next(k for k, (_, tp, _) in enumerate(curve) if tp == len(ids))
    walked = [(tp / len(ids), fp) for _, tp, fp in reversed(curve[: last + 1])] + [(1.0, 0)]
    best = min(range(len(walked)), key=lambda k: (abs(walked[k][0] - 0.95), k))
    return walked[best][1] / len(oods)


def fpr_ood_positive(ids: list[float], oods: list[float]) -> float:
    return fpr_first([-s for s in oods], [-s for s in ids])


def aupr_trapezoid(ids: list[float], oods: list[float]) -> float:
    curve = [(0.0, 1.0)] + [(tp / len(ids), tp / (tp + fp)) for _, tp, fp in points(ids, oods)]
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(curve))


def aupr_step(ids: list[float], oods: list[float]) -> float:
    area, before = 0.0, 0.0
    for _, tp, fp in points(ids, oods):
        area += (tp / len(ids) - before) * tp / (tp + fp)
        before = tp / len(ids)
    return area


def zscore(ids: list[float]) -> float:
    mean = math.fsum(ids) / len(ids)
    return mean - 1.645 * math.sqrt(math.fsum((s - mean) ** 2 for s in ids) / len(ids))


def quantile(ids: list[float]) -> float:
    return sorted(ids)[math.floor(Fraction(5, 100) * len(ids))]


def rounded(value: float, places: int) -> float:
    """What ``"%.{places}f"`` writes."""
    step = Decimal(1).scaleb(-places)
    return float(Decimal(value).quantize(step, rounding=ROUND_HALF_EVEN))


def overlap(found: Box, box: Box, extent: int) -> float:
    """IoU of corners and x, y, w, h; `extent` 1 counts inclusive pixels."""
    x1, y1, x2, y2 = found
    a1, b1, a2, b2 = box[0], box[1], box[0] + box[2], box[1] + box[3]
    width = min(x2, a2) - max(x1, a1) + extent
    height = min(y2, b2) - max(y1, b1) + extent
    if width <= 0 or height <= 0:
        return 0.0
    union = (x2 - x1 + extent) * (y2 - y1 + extent) + (a2 - a1 + extent) * (b2 - b1 + extent) - width * height
    return width * height / union


def open_set(world: OodWorld, threshold: float, mode: str) -> dict[str, float]:
    official = mode == "official"
    everything = []
    for image in sorted(world.objects):
        for one in world.found.get(image, []):
            box, confidence = one.box, one.confidence
            if official:
                x1, y1, x2, y2 = box
                box = rounded(x1 + 1, 1), rounded(y1 + 1, 1), rounded(x2, 1), rounded(y2, 1)
                confidence = rounded(confidence, 3)
            everything.append((image, box, confidence, one.score < threshold))

    def best(image: int, box: Box) -> tuple[float, int]:
        highest, place = -1.0, -1
        for k, other in enumerate(world.objects[image]):
            if overlap(box, other, int(official)) > highest:
                highest, place = overlap(box, other, int(official)), k
        return highest, place

    def reached(iou: float) -> bool:
        return iou > 0.5 if official else iou >= 0.5

    n = sum(len(objects) for objects in world.objects.values())
    unknown = sorted((d for d in everything if d[3]), key=lambda d: -d[2])
    used: set[tuple[int, int]] = set()
    tp = fp = 0
    curve = []
    for image, box, _, _ in unknown:
        if official and not world.objects[image]:
            continue
        iou, place = best(image, box)
        if place >= 0 and reached(iou) and (image, place) not in used:
            used.add((image, place))
            tp += 1
        else:
            fp += 1
        curve.append((tp / n if n else 0.0, tp / (tp + fp)))
    hits = [(d[0], best(d[0], d[1])[1]) for d in everything if not d[3] and reached(best(d[0], d[1])[0])]
    wrong = len(set(hits) - used)
    average, before = 0.0, 0.0
    for k, (recall, _) in enumerate(curve):
        average += (recall - before) * max(p for _, p in curve[k:])
        before = recall
    return {
        "n_unknown_gt": n,
        "n_det": len(everything),
        "n_det_unknown": len(unknown),
        "n_det_known": len(everything) - len(unknown),
        "TP_U": tp,
        "FP_U": fp,
        "AOSE": len(hits),
        "objects_misclassified": wrong,
        "objects_ignored": n - tp - wrong,
        "nOSE": 100 * (len(hits) if official else wrong) / n if n else math.nan,
        "AP_U": 100 * average if n else math.nan,
        "P_U": (100 * tp / (tp + fp) if tp + fp else 0.0) if n else math.nan,
        "R_U": 100 * tp / n if n else math.nan,
    }


EXAMPLE = OodWorld(
    objects={
        1: [(10, 10, 100, 100), (200, 50, 80, 80)],
        2: [(50, 50, 100, 100)],
        3: [(0, 0, 200, 200)],
        4: [(100, 100, 60, 60)],
        5: [],
        6: [(20, 20, 50, 50)],
    },
    found={
        1: [
            Found((10, 10, 110, 110), 0.90, 2.0),
            Found((12, 12, 112, 112), 0.80, 2.5),
            Found((200, 50, 280, 130), 0.85, 9.0),
            Found((202, 52, 282, 132), 0.70, 8.0),
        ],
        2: [Found((50, 50, 150, 100), 0.60, 1.0)],
        3: [Found((0, 0, 190, 190), 0.95, 5.0)],
        5: [Found((5, 5, 60, 60), 0.99, 1.5)],
        6: [Found((20, 20, 70, 70), 0.93, 1.2), Found((100, 100, 180, 180), 0.92, 1.1)],
    },
    ids=[float(s) for s in range(4, 24)],
)
"""The worked example of the protocol: one object of image 4 is a crowd region."""
EXPECTED = {
    "official": {
        "n_unknown_gt": 6, "n_det": 9, "n_det_unknown": 6, "n_det_known": 3, "TP_U": 2, "FP_U": 3, "AOSE": 3,
        "objects_misclassified": 2, "objects_ignored": 2, "nOSE": 50.0, "AP_U": 250 / 9, "P_U": 40.0, "R_U": 100 / 3,
    },
    "paper": {
        "n_unknown_gt": 6, "n_det": 9, "n_det_unknown": 6, "n_det_known": 3, "TP_U": 3, "FP_U": 3, "AOSE": 3,
        "objects_misclassified": 2, "objects_ignored": 1, "nOSE": 100 / 3, "AP_U": 25.0, "P_U": 50.0, "R_U": 50.0,
    },
}  # fmt: skip
"""Computed by hand; the tables of the specification give the same to 3 decimals."""
