"""The metrics once more, from the specification: plain loops and fractions, one record at a time, no NumPy.

It shares no code with the package; where the two agree on random cases, each is the other's witness.
"""

from dataclasses import dataclass
from fractions import Fraction
from struct import pack, unpack

from tests.worlds.boxes import Guess, Thing, iou


@dataclass(frozen=True)
class World:
    """Both parts of an evaluation, in input order."""

    n_classes: int
    n_closed: int
    n_wild: int
    closed: tuple[Thing, ...]
    wild: tuple[Thing, ...]
    inside: tuple[Guess, ...]
    outside: tuple[Guess, ...]


def best_of(guess: Guess, things: list[tuple[int, Thing]]) -> tuple[int, Fraction]:
    best, overlap = -1, Fraction(-1)
    for position, thing in things:
        found = iou(guess.box, thing.box)
        if thing.image == guess.image and found > overlap:
            best, overlap = position, found
    return best, overlap


def ranked(guesses: list[tuple[int, Guess]]) -> list[tuple[int, Guess]]:
    return sorted(guesses, key=lambda pair: -pair[1].score)


def outcomes(
    things: tuple[Thing, ...], guesses: tuple[Guess, ...], difficult: str = "ignore", *, strict: bool = False
) -> dict[int, str]:
    """TP, FP or ignored, by position of the detection: the rule of profile ``paper``."""
    taken: set[int] = set()
    result = {}
    for position, guess in ranked(list(enumerate(guesses))):
        same = [(k, thing) for k, thing in enumerate(things) if thing.label == guess.label]
        best, overlap = best_of(guess, same)
        hit = best >= 0 and (overlap > Fraction(1, 2) if strict else overlap >= Fraction(1, 2))
        if not hit:
            result[position] = "FP"
        elif things[best].crowd or (things[best].difficult and difficult == "ignore"):
            result[position] = "ignored"
        elif best in taken:
            result[position] = "FP"
        else:
            taken.add(best)
            result[position] = "TP"
    return result


def count_positives(things: tuple[Thing, ...], label: int, difficult: str) -> int:
    return sum(
        1
        for thing in things
        if thing.label == label and not thing.crowd and not (thing.difficult and difficult == "ignore")
    )


def level_sizes(n_closed: int, n_wild: int, *, single: bool = False) -> list[int]:
    """n_k = k N // 10; or, `single`, k/10 rounded to single precision first, as in the published code."""
    sizes: list[int] = []
    while (size := _level_size(len(sizes), n_closed, single)) <= n_wild:
        sizes.append(size)
    return sizes


def _level_size(k: int, n_closed: int, single: bool) -> int:
    if not single:
        return k * n_closed // 10
    (ratio,) = unpack("<f", pack("<f", k / 10))
    return int(Fraction(ratio) * n_closed)


def points(events: list[tuple[int, bool]], *, grouped: bool) -> list[tuple[int, int]]:
    """(TP, kept) after each detection by falling score, or after each group of equal score."""
    events = sorted(events, key=lambda event: -event[0])
    found, tp = [], 0
    for place, (score, correct) in enumerate(events):
        tp += correct
        if not grouped or place + 1 == len(events) or events[place + 1][0] != score:
            found.append((tp, place + 1))
    return found


def precision_from(found: list[tuple[int, int]], n: int, recall: Fraction) -> Fraction:
    return max((Fraction(tp, kept) for tp, kept in found if n and Fraction(tp, n) >= recall), default=Fraction(0))


def eleven(found: list[tuple[int, int]], n: int) -> Fraction:
    return sum((precision_from(found, n, Fraction(k, 10)) for k in range(11)), Fraction(0)) / 11


def area(found: list[tuple[int, int]], n: int) -> Fraction:
    total, before = Fraction(0), 0
    for tp, _ in found:
        if tp > before:
            total += Fraction(tp - before, n) * precision_from(found, n, Fraction(tp, n))
            before = tp
    return total


def mean(values: list[Fraction]) -> Fraction | None:
    return sum(values, Fraction(0)) / len(values) if values else None


def paper(world: World, difficult: str = "ignore") -> dict[str, object]:
    result = outcomes(world.closed, world.inside, difficult)
    sizes = level_sizes(world.n_closed, world.n_wild)
    n = [count_positives(world.closed, label, difficult) for label in range(world.n_classes)]
    means: dict[str, list[Fraction | None]] = {"mAP11": [], "mAP_area": [], "mAP11_ties_in_input_order": []}
    for size in [*sizes, world.n_wild]:
        values: dict[str, list[Fraction]] = {name: [] for name in means}
        for label in range(world.n_classes):
            if not n[label]:
                continue
            events = [
                (guess.score, result[k] == "TP")
                for k, guess in enumerate(world.inside)
                if guess.label == label and result[k] != "ignored"
            ]
            events += [(g.score, False) for g in world.outside if g.label == label and g.image < size]
            values["mAP11"].append(eleven(points(events, grouped=True), n[label]))
            values["mAP_area"].append(area(points(events, grouped=True), n[label]))
            values["mAP11_ties_in_input_order"].append(eleven(points(events, grouped=False), n[label]))
        for name in means:
            means[name].append(mean(values[name]))
    impacts = {f"0.{tenths}": impact(world, result, n, sizes, tenths) for tenths in (1, 3, 5)}
    opened = {f"{name}_open": values.pop() for name, values in means.items()}
    return {"n_wild_images": sizes, **means, **opened, "WI": impacts}


def threshold(world: World, result: dict[int, str], n: int, label: int, tenths: int) -> int | None:
    tp = 0
    for position, guess in ranked(list(enumerate(world.inside))):
        if guess.label == label and result[position] == "TP":
            tp += 1
            if tp * 10 >= tenths * n:
                return guess.score
    return None


def impact(world: World, result: dict[int, str], n: list[int], sizes: list[int], tenths: int) -> dict[str, object]:
    tp, fp, opened = {}, {}, {}
    for label in range(world.n_classes):
        limit = threshold(world, result, n[label], label, tenths) if n[label] else None
        if limit is None:
            continue
        kept = [k for k, g in enumerate(world.inside) if g.label == label and g.score >= limit]
        tp[label] = sum(result[k] == "TP" for k in kept)
        fp[label] = sum(result[k] == "FP" for k in kept)
        opened[label] = [
            sum(g.label == label and g.score >= limit and g.image < size for g in world.outside) for size in sizes
        ]
    labels = list(tp)
    macro, pooled, ratio = [], [], []
    for level in range(len(sizes)):
        each = [Fraction(opened[c][level], tp[c] + fp[c]) for c in labels]
        macro.append(mean(each))
        pooled.append(
            Fraction(sum(opened[c][level] for c in labels), sum(tp[c] + fp[c] for c in labels)) if labels else None
        )
        closed_precision = mean([Fraction(tp[c], tp[c] + fp[c]) for c in labels])
        open_precision = mean([Fraction(tp[c], tp[c] + fp[c] + opened[c][level]) for c in labels])
        ratio.append(closed_precision / open_precision - 1 if closed_precision and open_precision else None)
    return {"tp": tp, "fp": fp, "opened": opened, "macro": macro, "pooled": pooled, "ratio_of_mean_precision": ratio}


def official(world: World, *, single: bool = False) -> dict[str, object]:
    """The published code without its faults: any-class matching, interpolated precision, unannotated is wilderness.

    `single`: level counts of the single-precision product.
    """
    ordinary = [(k, thing) for k, thing in enumerate(world.closed) if not thing.crowd]
    taken: set[int] = set()
    events: list[tuple[int, Guess, bool]] = []
    shows = {image: [t.label for t in world.closed if t.image == image] for image in range(world.n_closed)}
    wild = [image for image in range(world.n_closed) if not shows[image] or -1 in shows[image]]
    for guess in world.inside:
        best, overlap = best_of(guess, ordinary)
        right = best >= 0 and overlap >= Fraction(1, 2) and world.closed[best].label == guess.label
        correct = right and best not in taken
        if correct:
            taken.add(best)
        events.append((wild.index(guess.image) if guess.image in wild else -1, guess, correct))
    events += [(len(wild) + guess.image, guess, False) for guess in world.outside]
    positives = [sum(thing.label == label for thing in world.closed) for label in range(world.n_classes)]
    result: dict[str, list[object]] = {"n_wild_images": [], "mAP": [], "0.1": [], "0.3": [], "0.5": []}
    # What is wilderness leaves the count that the levels refer to; without any image left, all levels are level 0.
    n = world.n_closed - len(wild)
    sizes = level_sizes(n, len(wild) + world.n_wild, single=single)[:50] if n else [0]
    for size in [*sizes, len(wild) + world.n_wild]:
        present = [(guess, correct) for place, guess, correct in events if place < size]
        labels = [label for label in range(world.n_classes) if any(g.label == label for g, _ in present)]
        curves = {
            label: points([(g.score, correct) for g, correct in present if g.label == label], grouped=False)
            for label in labels
        }
        result["n_wild_images"].append(size)
        result["mAP"].append(mean([eleven(curves[c], positives[c]) for c in labels]))
        for tenths in (1, 3, 5):
            recall = Fraction(tenths, 10)
            means = mean([precision_from(curves[c], positives[c], recall) for c in labels])
            result[f"0.{tenths}"].append(means)
    opened = {name: values.pop() for name, values in result.items()}
    return {**result, "mAP_open": opened["mAP"]}


def owod(world: World) -> dict[str, object]:
    """OWOD's WI and A-OSE; boxes are whole pixels and scores thousandths, so rounding changes nothing."""
    known = outcomes(world.closed, world.inside, strict=True)
    events = []
    hit: set[tuple[int, int]] = set()
    for part, things, guesses in ((0, world.closed, world.inside), (1, world.wild, world.outside)):
        for position, guess in enumerate(guesses):
            on_unknown = False
            for k, thing in enumerate(things):
                same = thing.label == -1 and thing.image == guess.image
                if same and iou(guess.box, thing.box) > Fraction(1, 2):
                    on_unknown = True
                    hit.add((part, k))
            outcome = known[position] if part == 0 else "FP"
            events.append((guess.label, guess.score, outcome, on_unknown))
    result: dict[str, object] = {"AOSE_total": sum(event[3] for event in events), "AOSE_instances": len(hit)}
    impacts = {}
    for tenths in range(1, 10):
        kept = hits = 0
        for label in range(world.n_classes):
            n = count_positives(world.closed, label, "ignore")
            mine = sorted((event for event in events if event[0] == label), key=lambda event: -event[1])
            if not n or not mine:
                continue
            recalls, tp = [], 0
            for event in mine:
                tp += event[2] == "TP"
                recalls.append(tp / n)
            index = min(range(len(recalls)), key=lambda i: abs(recalls[i] - tenths / 10))
            kept += sum(event[2] != "ignored" for event in mine[: index + 1])
            hits += sum(event[3] for event in mine[: index + 1])
        impacts[f"0.{tenths}"] = Fraction(hits, kept) if kept else None
    return {**result, "WI": impacts}
