"""OSOD-III's measures in loops: COCO's average precision by its rules, and A-OSE and WI over the threshold.

No NumPy and nothing of the package; sections 5.1 to 5.3 of the protocol's specification.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.worlds.boxes import UNKNOWN, Box, Guess, Thing, common, iou

EPSILON = 2.0**-52
IOUS = tuple(Fraction(k, 100) for k in range(50, 100, 5))
MOST = 100


def inside(guess: Box, region: Box) -> Fraction:
    """Return the share of the detection that lies in a region."""
    return Fraction(common(guess, region), guess[2] * guess[3])


def relabelled(things: Sequence[Thing], known: Sequence[str], unknown: Sequence[str], outside: str) -> list[Thing]:
    """Return what the evaluation sees: unknown classes as one, outside ones deleted, or kept as ignored regions."""
    seen = []
    for thing in things:
        if thing.label in known:
            seen.append(thing)
        elif thing.label in unknown:
            seen.append(Thing(thing.image, UNKNOWN, thing.box, thing.crowd))
        elif outside == "ignore":
            seen.append(Thing(thing.image, UNKNOWN, thing.box, crowd=True))
    return seen


@dataclass(frozen=True)
class Setting:
    """What COCO varies: the IoU, the range of object areas, and how many detections of a class an image may have."""

    limit: Fraction
    areas: tuple[int, int] = (0, 10**10)
    most: int = MOST

    def leaves_out(self, box: Box) -> bool:
        return not self.areas[0] <= box[2] * box[3] <= self.areas[1]


def flags(things: list[Thing], guesses: list[Guess], setting: Setting) -> list[tuple[int, bool, bool]]:
    """Return score, right and ignored of the first detections of one class in one image."""
    ignored = [thing.crowd or setting.leaves_out(thing.box) for thing in things]
    order = sorted(range(len(things)), key=lambda k: ignored[k])
    taken: set[int] = set()
    found = []
    for guess in sorted(guesses, key=lambda guess: -guess.score)[: setting.most]:
        best, overlap = -1, setting.limit
        for k in order:
            if k in taken and not things[k].crowd:
                continue
            if best >= 0 and not ignored[best] and ignored[k]:
                break
            one = (inside if things[k].crowd else iou)(guess.box, things[k].box)
            if one >= overlap:
                best, overlap = k, one
        taken.add(best)
        out = ignored[best] if best >= 0 else setting.leaves_out(guess.box)
        found.append((guess.score, best >= 0 and not out, out))
    return found


def points_of(
    things: list[Thing], guesses: list[Guess], name: str, images: int, setting: Setting
) -> list[tuple[float, float]] | None:
    """Return recall and precision after each detection of one class; None without objects that count."""
    n = sum(thing.label == name and not thing.crowd and not setting.leaves_out(thing.box) for thing in things)
    if not n:
        return None
    rows: list[tuple[int, bool, bool]] = []
    for image in range(1, images + 1):
        here = [thing for thing in things if thing.image == image and thing.label == name]
        rows += flags(here, [g for g in guesses if g.image == image and g.label == name], setting)
    rows.sort(key=lambda row: -row[0])
    tp = fp = 0
    points = []
    for _, right, ignored in rows:
        tp += right
        fp += not right and not ignored
        points.append((tp / n, tp / (tp + fp + EPSILON)))
    return points


def average_precision(points: list[tuple[float, float]] | None) -> float | None:
    """Return COCO's AP: the mean over 101 recalls of the precision envelope."""
    if points is None:
        return None
    # COCO's recalls are the products k * 0.01 in double precision.
    envelope = (max((precision for recall, precision in points if recall >= k * 0.01), default=0.0) for k in range(101))
    return sum(envelope) / 101


def coco_numbers(things: list[Thing], guesses: list[Guess], names: Sequence[str], images: int) -> dict[str, Any]:
    """Return COCO's twelve numbers, and AP of each class."""
    everything, medium = 10**10, (32**2, 96**2)
    areas = {"": (0, everything), "s": (0, medium[0]), "m": medium, "l": (medium[1], everything)}

    def curves(limits: Sequence[Fraction], size: str, most: int) -> dict[str, list[Any]]:
        settings = [Setting(limit, areas[size], most) for limit in limits]
        return {name: [points_of(things, guesses, name, images, one) for one in settings] for name in names}

    def precision(limits: Sequence[Fraction], size: str = "") -> float | None:
        found = curves(limits, size, MOST).values()
        return mean([average_precision(points) for listed in found for points in listed])

    def recall(size: str, most: int) -> float | None:
        found = curves(IOUS, size, most).values()
        highest = [
            None if points is None else max((recall for recall, _ in points), default=0.0)
            for listed in found
            for points in listed
        ]
        return mean(highest)

    return {
        "AP": precision(IOUS),
        "AP50": precision(IOUS[:1]),
        "AP75": precision(IOUS[5:6]),
        **{f"AP{size}": precision(IOUS, size) for size in "sml"},
        **{f"AR{most}": recall("", most) for most in (1, 10, MOST)},
        **{f"AR{size}": recall(size, MOST) for size in "sml"},
        "per_class": {
            name: mean([average_precision(points) for points in listed])
            for name, listed in curves(IOUS, "", MOST).items()
        },
    }


def mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined else None


def averages(things: list[Thing], guesses: list[Guess], known: Sequence[str], images: int) -> dict[str, Any]:
    """Return AP in percent, of each class and its means, over ten IoUs and at .50 and .75."""
    by_iou = {
        name: [average_precision(points_of(things, guesses, name, images, Setting(limit))) for limit in IOUS]
        for name in (*known, UNKNOWN)
    }
    result: dict[str, Any] = {"AP_per_class": {}}
    for key, chosen in (("", slice(10)), ("50", slice(1)), ("75", slice(5, 6))):
        means = {name: mean(values[chosen]) for name, values in by_iou.items()}
        each = {name: None if one is None else 100 * one for name, one in means.items()}
        result[f"AP_known{key}"] = mean([each[name] for name in known])
        result[f"AP_unk{key}"] = each[UNKNOWN]
        if not key:
            result["AP_per_class"] = each
    return result


def curve(
    things: list[Thing], guesses: list[Guess], known: Sequence[str], profile: str, thetas: Sequence[Fraction]
) -> list[dict[str, Any]]:
    """Return A-OSE, WI and their counts at each threshold; scores at or above it count."""
    half = Fraction(1, 2)
    verdicts: list[tuple[int, str, bool]] = []
    for name in known:
        taken: set[int] = set()
        for guess in sorted((one for one in guesses if one.label == name), key=lambda one: -one.score):
            own = [(k, thing) for k, thing in enumerate(things) if thing.image == guess.image and thing.label == name]
            opened = any(
                thing.image == guess.image
                and thing.label == UNKNOWN
                and not thing.crowd
                and iou(guess.box, thing.box) >= half
                for thing in things
            )
            free = [(k, t) for k, t in own if not t.crowd and k not in taken]
            choice = free if profile == "clean" else own
            best = max(choice, key=lambda one: (iou(guess.box, one[1].box), -one[0]), default=None)
            if best is not None and iou(guess.box, best[1].box) >= half:
                verdict = "" if best[1].crowd else "FP" if best[0] in taken else "TP"
            elif profile == "clean" and any(
                t.crowd and (iou(guess.box, t.box) >= half or inside(guess.box, t.box) >= half) for _, t in own
            ):
                verdict = ""
            else:
                verdict = "FP"
            if verdict == "TP" and best is not None:
                taken.add(best[0])
            verdicts.append((guess.score, verdict, opened))
    return [row(verdicts, theta) for theta in thetas]


def row(verdicts: list[tuple[int, str, bool]], theta: Fraction) -> dict[str, Any]:
    kept = [one for one in verdicts if Fraction(one[0], 100) >= theta]
    tp, fp = (sum(one[1] == verdict for one in kept) for verdict in ("TP", "FP"))
    a_ose = sum(one[2] for one in kept)
    both = sum(one[2] and one[1] == "FP" for one in kept)
    closed = tp + fp - both
    return {
        "theta": theta,
        "TP": tp,
        "FP": fp,
        "AOSE": a_ose,
        "FP_open": both,
        "WI": Fraction(both, closed) if closed else None,
        "WI_all_fp": Fraction(a_ose, tp + fp) if tp + fp else None,
        "P_K": Fraction(tp, closed) if closed else None,
        "P_KU": Fraction(tp, tp + fp) if tp + fp else None,
    }
