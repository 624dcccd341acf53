"""What the Elephant paper measures beside AP and WI, once more in loops; nothing of the package is used."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tests.evaluation import reference
from tests.evaluation.reference import World
from tests.worlds.boxes import Guess, Thing, iou

SIMILAR = ({"bird", "cow", "dog", "person"},)
"""Hoiem's sets, reduced to the classes of the world: animals with persons."""
KINDS = ("correct", "localization", "similar", "other", "unknown_unknown", "mixed_unknown", "ignored")
TENTH = Fraction(1, 10)


def average(values: Sequence[Fraction | None]) -> Fraction | None:
    """Return the mean of the values that are defined."""
    return reference.mean([value for value in values if value is not None])


def limits(world: World, tenths: int, difficult: str = "ignore") -> dict[int, int]:
    """Return the threshold of each class that reaches the recall."""
    result = reference.outcomes(world.closed, world.inside, difficult)
    found = {}
    for label in range(world.n_classes):
        n = reference.count_positives(world.closed, label, difficult)
        limit = reference.threshold(world, result, n, label, tenths) if n else None
        if limit is not None:
            found[label] = limit
    return found


def lies_on(guess: Guess, things: Sequence[Thing], allowed: set[int]) -> bool:
    return any(
        thing.image == guess.image and thing.label in allowed and iou(guess.box, thing.box) >= TENTH for thing in things
    )


def diagnosis(world: World, classes: Sequence[str], points: dict[int, int], *, wr1: bool) -> dict[str, Any]:
    """Return how many kept detections are of each kind: section 4.1 of the paper, precedence after Hoiem."""
    result = reference.outcomes(world.closed, world.inside)
    counts = {label: dict.fromkeys(KINDS, 0) for label in points}
    for place, guess in enumerate(world.inside):
        if guess.label not in points or guess.score < points[guess.label]:
            continue
        kin = {
            other
            for other, name in enumerate(classes)
            if other != guess.label and any({name, classes[guess.label]} <= one for one in SIMILAR)
        }
        kind = {"TP": "correct", "ignored": "ignored", "FP": "mixed_unknown"}[result[place]]
        if kind == "mixed_unknown":
            everyone = set(range(len(classes)))
            for name, allowed in (("localization", {guess.label}), ("similar", kin), ("other", everyone)):
                if lies_on(guess, world.closed, allowed):
                    kind = name
                    break
        counts[guess.label][kind] += 1
    for guess in world.outside if wr1 else ():
        if guess.label in points and guess.score >= points[guess.label] and guess.image < world.n_closed:
            on_object = lies_on(guess, world.wild, {-1})
            counts[guess.label]["unknown_unknown" if on_object else "mixed_unknown"] += 1
    total = {kind: sum(one[kind] for one in counts.values()) for kind in KINDS}
    return {
        "per_class": {name: counts.get(label) for label, name in enumerate(classes)},
        "total": total,
        "shares": {"total": shares(total)},
    }


def shares(counts: dict[str, int]) -> dict[str, Fraction] | None:
    total = sum(n for kind, n in counts.items() if kind != "ignored")
    return {kind: Fraction(n, total) for kind, n in counts.items() if kind != "ignored"} if total else None


def confusion(
    world: World,
    classes: Sequence[str],
    closed: Sequence[str],
    wild: Sequence[str],
    points: dict[int, int],
    *,
    wr1: bool,
) -> dict[str, Any]:
    """Return what the kept detections lie on: the object of highest IoU of any class, at 0.1 or more."""
    found: dict[str, dict[str, int]] = {}
    background = dict.fromkeys(classes, 0)
    parts = [(world.inside, world.closed, closed)]
    if wr1:
        seen = tuple(guess for guess in world.outside if guess.image < world.n_closed)
        parts.append((seen, world.wild, wild))
    for guesses, things, originals in parts:
        for guess in guesses:
            if guess.label not in points or guess.score < points[guess.label]:
                continue
            best, overlap = reference.best_of(guess, list(enumerate(things)))
            name = classes[guess.label]
            if best < 0 or overlap < TENTH:
                background[name] += 1
            else:
                row = found.setdefault(name, {})
                row[originals[best]] = row.get(originals[best], 0) + 1
    return {"confusion": found, "background": background}


def fbeta(world: World, classes: Sequence[str], ratios: Sequence[str], betas: Sequence[str]) -> dict[str, Any]:
    """Return the operating point of highest F of each class: Table 4, with the denominator."""
    result = reference.outcomes(world.closed, world.inside)
    cells: dict[str, Any] = {}
    for label, name in enumerate(classes):
        n = reference.count_positives(world.closed, label, "ignore")
        if not n:
            continue
        cells[name] = {}
        for ratio in ratios:
            size = int(Fraction(ratio) * world.n_closed)
            events = [
                (guess.score, result[k] == "TP")
                for k, guess in enumerate(world.inside)
                if guess.label == label and result[k] != "ignored"
            ]
            events += [(g.score, False) for g in world.outside if g.label == label and g.image < size]
            cells[name][ratio] = {beta: best_point(events, n, Fraction(beta) ** 2) for beta in betas}
    return cells


def best_point(events: list[tuple[int, bool]], n: int, square: Fraction) -> dict[str, Any]:
    best: tuple[Fraction, int, int, int] | None = None
    for score in sorted({score for score, _ in events}, reverse=True):
        tp = sum(right for one, right in events if one >= score)
        kept = sum(one >= score for one, _ in events)
        value = (1 + square) * tp / (kept + square * n)
        if best is None or value > best[0]:
            best = (value, score, tp, kept)
    if best is None:
        return {"F": None, "threshold": None}
    value, score, tp, kept = best
    return {"F": value, "threshold": Fraction(score, 1000), "precision": Fraction(tp, kept), "recall": Fraction(tp, n)}


def background_gap(world: World, classes: Sequence[str], background: Sequence[int | None]) -> dict[str, Any]:
    """Return mean and spread of score - background score over the true positives of each class (Fig. 8)."""
    result = reference.outcomes(world.closed, world.inside)
    found: dict[str, Any] = {}
    for label, name in enumerate(classes):
        gaps = [
            Fraction(guess.score - other, 1000)
            for k, (guess, other) in enumerate(zip(world.inside, background, strict=True))
            if guess.label == label and result[k] == "TP" and other is not None
        ]
        bins = [min(int((gap + 1) * 10), 19) for gap in gaps]
        found[name] = {
            "n": len(gaps),
            "negative": sum(gap < 0 for gap in gaps),
            "hist20": [bins.count(k) for k in range(20)],
        }
        if gaps:
            mean = sum(gaps, Fraction(0)) / len(gaps)
            squares = sum(((gap - mean) ** 2 for gap in gaps), Fraction(0))
            found[name] |= {
                "mean": mean,
                "std_population": float(squares / len(gaps)) ** 0.5,
                "std_sample": float(squares / (len(gaps) - 1)) ** 0.5 if len(gaps) > 1 else None,
            }
    return found


def a_ose(world: World, classes: Sequence[str], points: dict[int, dict[int, int]]) -> dict[str, Any]:
    """Return A-OSE, at any score and at each point: known-class detections with IoU > 0.5 to an unknown object."""
    hits: list[tuple[Guess, list[tuple[int, int]]]] = []
    for part, (guesses, things) in enumerate(((world.inside, world.closed), (world.outside, world.wild))):
        for guess in guesses:
            on = [
                (part, k)
                for k, thing in enumerate(things)
                if thing.label == -1 and thing.image == guess.image and iou(guess.box, thing.box) > Fraction(1, 2)
            ]
            if on:
                hits.append((guess, on))
    unknown = sum(thing.label == -1 for thing in (*world.closed, *world.wild))
    result: dict[str, Any] = {"n_unknown": unknown}
    everything = dict.fromkeys(range(len(classes)), 0)
    for name, limit in {"all": everything, **{f"0.{tenths}": one for tenths, one in points.items()}}.items():
        kept = [(g, on) for g, on in hits if g.label in limit and g.score >= limit[g.label]]
        result[name] = {
            "total": len(kept),
            "per_class": {
                known: sum(g.label == label for g, _ in kept) if label in limit else None
                for label, known in enumerate(classes)
            },
            "instances": len({one for _, on in kept for one in on}),
        }
    return result
