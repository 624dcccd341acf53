"""The OWOD metrics once more, from the specification: plain loops and fractions, one record at a time, no NumPy.

It shares no code with the package; where the two agree on random cases, each is the other's witness. Coordinates and
scores are short decimals, given as `Decimal`, so that nothing is lost before the profile rounds.
"""

import math
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from math import trunc
from typing import Any

from tests.worlds.boxes import UNKNOWN, Box, Guess, Thing, common, iou, size

HALF = Fraction(1, 2)
HAIR = Fraction(1, 100_000)
"""What YOLO-UniOW's code adds to the objects that a recall divides by."""


@dataclass(frozen=True)
class Case:
    """One task: `listed` names the images line by line, repeats included; detections of them are given once a line."""

    previous: tuple[str, ...]
    current: tuple[str, ...]
    listed: tuple[int, ...]
    objects: tuple[Thing, ...]
    guesses: tuple[Guess, ...] = field(default=())


def text(value: Decimal, places: str) -> Decimal:
    return value.quantize(Decimal(places), rounding=ROUND_HALF_EVEN)


def between(low: list[Fraction], high: list[Fraction]) -> Box:
    """Return a box by its corners, both ends belonging to it."""
    return low[0], low[1], high[0] + 1 - low[0], high[1] + 1 - low[1]


def official_object(box: Box) -> Box:
    """XML corners ``int(x + 1) .. int(x + w + 1)``."""
    x, y, w, h = box
    return between(
        [Fraction(trunc(x + 1)), Fraction(trunc(y + 1))], [Fraction(trunc(x + w + 1)), Fraction(trunc(y + h + 1))]
    )


def official_guess(box: Box) -> Box:
    x, y, w, h = box
    x1, y1, x2, y2 = (Fraction(text(value, "0.1")) for value in (x + 1, y + 1, x + w, y + h))
    return between([x1, y1], [x2, y2])


def as_given(box: Box) -> Box:
    x, y, w, h = map(Fraction, box)
    return x, y, w, h


class Evaluation:
    """Everything about one case under one profile."""

    def __init__(self, case: Case, profile: str) -> None:
        self.case, self.official, self.profile = case, profile != "clean", profile
        self.hair = HAIR if profile == "yolo-uniow" else Fraction(0)
        shape = official_object if self.official else as_given
        self.boxes = [shape(thing.box) for thing in case.objects]
        shape = official_guess if self.official else as_given
        self.drawn = [shape(guess.box) for guess in case.guesses]
        self.scores = [text(g.score, "0.001") if self.official else g.score for g in case.guesses]
        self.copies = {image: case.listed.count(image) for image in case.listed}
        self.verdict: dict[int, str] = {}
        self.owner: dict[int, int] = {}
        for name in (*case.previous, *case.current, UNKNOWN):
            self._match(name)

    def near(self, value: Fraction) -> bool:
        return value > HALF if self.official else value >= HALF

    def is_ignored(self, k: int) -> bool:
        thing = self.case.objects[k]
        return thing.difficult or (thing.crowd and not self.official)

    def ranked(self, name: str) -> list[int]:
        mine = [k for k, guess in enumerate(self.case.guesses) if guess.label == name]
        return sorted(mine, key=lambda k: -self.scores[k])

    def _match(self, name: str) -> None:
        for g in self.ranked(name):
            here = [
                (k, iou(self.drawn[g], self.boxes[k]))
                for k, thing in enumerate(self.case.objects)
                if thing.label == name and thing.image == self.case.guesses[g].image
            ]
            self.verdict[g] = self._official(g, here) if self.official else self._clean(g, here)

    def _official(self, g: int, here: list[tuple[int, Fraction]]) -> str:
        best, overlap = -1, Fraction(-1)
        for k, found in here:
            if found > overlap:
                best, overlap = k, found
        if not self.near(overlap):
            return "FP"
        if self.is_ignored(best):
            return "ignored"
        if best in self.owner:
            return "FP"
        self.owner[best] = g
        return "TP"

    def _clean(self, g: int, here: list[tuple[int, Fraction]]) -> str:
        best, overlap = -1, Fraction(-1)
        for k, found in here:
            if k not in self.owner and not self.is_ignored(k) and self.near(found) and found > overlap:
                best, overlap = k, found
        if best >= 0:
            self.owner[best] = g
            return "TP"
        for k, found in here:
            shared = common(self.drawn[g], self.boxes[k])
            if self.is_ignored(k) and shared and (self.near(found) or shared / size(self.drawn[g]) >= HALF):
                return "ignored"
        return "FP"

    def n(self, name: str) -> int:
        return sum(
            self.copies[thing.image]
            for k, thing in enumerate(self.case.objects)
            if thing.label == name and not self.is_ignored(k)
        )

    def average_precision(self, name: str) -> Fraction | None:
        n, tp, points = self.n(name), 0, []
        if not n:
            return None
        kept = [g for g in self.ranked(name) if self.verdict[g] != "ignored"]
        for place, g in enumerate(kept, 1):
            tp += self.verdict[g] == "TP"
            points.append((tp / (n + self.hair), Fraction(tp, place)))
        if self.profile in ("owdetr", "fomo"):
            # voc_ap of OW-DETR: doubles, and the levels of numpy.arange(0, 1.1, 0.1), which are k * 0.1.
            levels = [k * 0.1 for k in range(11)]
            best = [max((p for r, p in points if float(r) >= level), default=Fraction(0)) for level in levels]
            return sum(best, Fraction(0)) / 11
        reached = sorted({recall for recall, _ in points if recall})
        return sum(
            (
                (recall - below) * best_from(points, recall)
                for below, recall in zip([Fraction(0), *reached], reached, strict=False)
            ),
            Fraction(0),
        )

    def ends(self) -> dict[str, float | None]:
        """Return FOMO's precision and recall over all detections, as means over groups of classes."""
        previous, current = self.case.previous, self.case.current
        groups = {"both": (*previous, *current), "prev": previous, "cur": current, "unknown": (UNKNOWN,)}
        found: dict[str, float | None] = {}
        for group, names in groups.items():
            shown = [name for name in names if self.n(name)]
            counts = {name: [self.verdict[g] for g in self.ranked(name)] for name in shown}
            right = {name: verdicts.count("TP") for name, verdicts in counts.items()}
            all_of = {name: len(verdicts) - verdicts.count("ignored") for name, verdicts in counts.items()}
            found[f"P50_{group}"] = mean([Fraction(right[name], all_of[name] or 1) for name in shown])
            found[f"R50_{group}"] = mean([Fraction(right[name], self.n(name)) for name in shown])
        return found

    def unknown_objects(self) -> list[int]:
        return [k for k, thing in enumerate(self.case.objects) if thing.label == UNKNOWN]

    def lies_on(self, g: int) -> bool:
        """Whether a detection overlaps an unknown object that A-OSE looks at."""
        return any(
            self.case.objects[k].image == self.case.guesses[g].image and self.near(iou(self.drawn[g], self.boxes[k]))
            for k in self.unknown_objects()
            if self.official or not self.is_ignored(k)
        )

    def known_guesses(self) -> list[int]:
        return [g for g, guess in enumerate(self.case.guesses) if guess.label != UNKNOWN]

    def result(self) -> dict[str, Any]:
        case = self.case
        ap = {name: self.average_precision(name) for name in (*case.previous, *case.current)}
        found: dict[str, Any] = {
            "mAP_prev": mean([ap[name] for name in case.previous]),
            "mAP_cur": mean([ap[name] for name in case.current]),
            "mAP_both": mean(list(ap.values())),
            "AP_per_class": {name: percent(value) for name, value in ap.items()},
        }
        return {**found, **self._unknown(), **self._impacts()}

    def _unknown(self) -> dict[str, Any]:
        n, tp = self.n(UNKNOWN), 0
        hit = stars = stars_wrong = 0
        for k in self.unknown_objects():
            if self.is_ignored(k):
                continue
            image = self.case.objects[k].image
            callers = [
                g
                for g in self.known_guesses()
                if self.case.guesses[g].image == image and self.near(iou(self.drawn[g], self.boxes[k]))
            ]
            for copy in range(self.copies[image]):
                if k in self.owner and copy == 0:
                    tp += 1
                elif k not in self.owner:
                    stars += bool(callers)
                    stars_wrong += any(self.verdict[g] != "TP" for g in callers)
                hit += bool(callers)
        mine = [g for g in self.ranked(UNKNOWN) if self.verdict[g] != "ignored"]
        nothing = 0.0 if self.official or not self.case.guesses else None
        return {
            "num_unknown_gt": n,
            "TP_u": tp,
            "FN_u": n - tp,
            "AP_unknown": percent(self.average_precision(UNKNOWN)),
            "UR": self.recall(tp, n),
            "P_unknown": rate(tp, len(mine)) if mine else nothing,
            "FN_u_star": stars,
            "UDR": self.recall(tp + stars, n),
            "UDP": rate(tp, tp + stars),
            "FN_u_star_excl_known_tp": stars_wrong,
            "UDR_excl_known_tp": self.recall(tp + stars_wrong, n),
            "UDP_excl_known_tp": rate(tp, tp + stars_wrong),
            "AOSE": sum(map(self.lies_on, self.known_guesses())) if n else None,
            "AOSE_objects": hit if n else None,
        }

    def recall(self, found: int, n: int) -> float | None:
        return float(100 * found / (n + self.hair)) if n else None

    def _impacts(self) -> dict[str, Any]:
        both = {k: self._impact(k) if self.n(UNKNOWN) else (None, None) for k in range(1, 10)}
        return {
            "WI": both[8][0],
            "WI_closed_set_denominator": both[8][1],
            "WI_at_recall": {f"0.{k}": value for k, (value, _) in both.items()},
        }

    def _impact(self, tenths: int) -> tuple[float | None, float | None]:
        read: list[tuple[int, ...]] = []
        for name in (*self.case.previous, *self.case.current):
            order, n = self.ranked(name), self.n(name)
            if not order or not (n or self.official):
                continue
            tp, rows, counts = 0, [], [0, 0, 0]
            for g in order:
                tp += self.verdict[g] == "TP"
                on = self.lies_on(g)
                counts[0] += on
                counts[1] += self.verdict[g] != "ignored"
                counts[2] += self.verdict[g] == "TP" or (self.verdict[g] == "FP" and not on)
                # Doubles, as the code has: which of two recalls is nearer is decided there. Without objects it divides
                # by zero, and of numbers that are none `min` takes the first.
                objects = n + float(self.hair)
                rows.append((abs(tp / objects - tenths / 10) if objects else math.nan, *counts))
            read.append(min(rows, key=lambda row: row[0])[1:])
        if not read:
            nothing = 0.0 if self.official or not self.case.guesses else None
            return nothing, nothing
        above, kept, kept_closed = (sum(column) for column in zip(*read, strict=True))
        # A mean of zeros is no denominator: the code prints nan or inf.
        return above / kept if kept else None, above / kept_closed if kept_closed else None


def best_from(points: list[tuple[Fraction, Fraction]], recall: Fraction) -> Fraction:
    return max((precision for reached, precision in points if reached >= recall), default=Fraction(0))


def mean(values: list[Fraction | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return float(100 * sum(numbers, Fraction(0)) / len(numbers)) if numbers else None


def percent(value: Fraction | None) -> float | None:
    return None if value is None else float(100 * value)


def rate(above: int, below: int) -> float | None:
    return 100 * above / below if below else None
