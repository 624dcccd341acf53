"""A world for the Elephant evaluator: two parts, five classes, and every number by the references in loops.

42 closed images, of which the official code takes two for wilderness (one shows an unknown object, one nothing): to 40
its levels refer, because its single-precision product is one image short there at level 0.7.
Scores and IoU tie often; there are difficult objects and crowd regions, a class without objects (``chair``), one that
finds too little for the recall 0.5 (``person``), one without detections (``cow``). Every closed image but the last has
an object.
"""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.evaluation import reference
from tests.evaluation.reference import World
from tests.worlds import elephant_reference
from tests.worlds.boxes import Box, Guess, Thing
from tests.worlds.coco_file import coco_content, write_all
from tests.worlds.drawing import Draws

CLASSES = ("bird", "chair", "cow", "dog", "person")
OTHERS = ("elephant", "kite", "zebra")
N_CLOSED, N_WILD = 42, 63
TENTHS = (1, 3, 5)
BETAS = ("0.5", "1.0", "1.5")
RATIOS = ("0.0", "0.5", "1.0", "1.5")
SCORES = (50, 120, 300, 301, 500, 500, 725, 900, 900, 1000)
FIRST_WILD = 1001


def near(draws: Draws, box: Box) -> Box:
    """Return a box near another one: the same, shifted, or cut so that IoU is one half."""
    x, y, w, h = box
    shift = draws.among((0, 0, 1, 2, w // 3))
    return (x + shift, y, w, h // 2) if draws.one_in(6) else (x + shift, y, w, h)


def a_box(draws: Draws) -> Box:
    side = draws.among((4, 6, 8, 12))
    return draws.below(24), draws.below(12), side, draws.among((side, 6, 10))


def world() -> World:
    draws = Draws("elephant")
    closed, inside, wild, outside = [], [], [], []
    for image in range(N_CLOSED - 2):
        for _ in range(1 + draws.below(3)):
            label = draws.among((0, 2, 3, 3, 4, -1) if image % 7 == 0 else (0, 0, 2, 3, 3, 4))
            crowd, difficult = draws.one_in(9), draws.one_in(7)
            thing = Thing(image, label, a_box(draws), crowd and not difficult, difficult)
            closed.append(thing)
            for _ in range(draws.below(3)):
                # Mostly the class itself, at times another; never a cow, and a person one time in three.
                guessed = label if draws.below(3) else draws.among((0, 1, 3))
                if guessed in (2, -1) or (guessed == 4 and draws.below(3)):
                    guessed = 3
                inside.append(Guess(image, guessed, near(draws, thing.box), draws.among(SCORES)))
        if draws.one_in(3):
            inside.append(Guess(image, draws.among((0, 1, 3)), a_box(draws), draws.among(SCORES)))
    closed.append(Thing(N_CLOSED - 2, 0, (0, 0, 8, 8)))
    inside += [Guess(N_CLOSED - 2, 0, (0, 0, 8, 8), 725), Guess(N_CLOSED - 1, 3, (2, 2, 6, 6), 900)]
    for image in range(N_WILD):
        for _ in range(draws.below(3)):
            thing = Thing(image, -1, a_box(draws), draws.one_in(8))
            wild.append(thing)
            if draws.below(2):
                guessed = draws.among((0, 1, 3, 4))
                outside.append(Guess(image, guessed, near(draws, thing.box), draws.among(SCORES)))
        if image == 27 or draws.one_in(4):
            outside.append(Guess(image, draws.among((0, 3)), a_box(draws), draws.among(SCORES)))
    return World(len(CLASSES), N_CLOSED, N_WILD, tuple(closed), tuple(wild), tuple(inside), tuple(outside))


def names_of_unknown(drawn: World) -> tuple[list[str], list[str]]:
    """Return the class that each object's file gives it, closed and wilderness."""
    draws = Draws("elephant/unknown")
    closed, wild = (
        [CLASSES[thing.label] if thing.label >= 0 else draws.among(OTHERS) for thing in things]
        for things in (drawn.closed, drawn.wild)
    )
    return closed, wild


def background_scores(drawn: World) -> list[int | None]:
    """Return the background score of each closed detection, in thousandths; the first has none."""
    draws = Draws("elephant/background")
    return [None if k == 0 else draws.below(1001) for k in range(len(drawn.inside))]


def files(folder: Path) -> dict[str, Path]:
    """Write both parts' ground truth and detections; the keys are those of the command line."""
    drawn = world()
    listed: dict[str, Any] = {}
    for part, things, originals, n, first in (
        ("closed", drawn.closed, names_of_unknown(drawn)[0], N_CLOSED, 1),
        ("wilderness", drawn.wild, names_of_unknown(drawn)[1], N_WILD, FIRST_WILD),
    ):
        numbers = {name: k for k, name in enumerate(CLASSES, 1)} | {"unknown": -1}
        rows = [
            (
                first + thing.image,
                name if part == "closed" and name in CLASSES else "unknown",
                thing.box,
                {"iscrowd": int(thing.crowd), "ignore": int(thing.difficult), "orig_category": name},
            )
            for thing, name in zip(things, originals, strict=True)
        ]
        listed[f"truth_{part}"] = coco_content(range(first, first + n), rows, numbers, size=(64, 48))
    for part, guesses, first in (("closed", drawn.inside, 1), ("wilderness", drawn.outside, FIRST_WILD)):
        listed[f"detections_{part}"] = [
            {
                "image_id": first + guess.image,
                "category_id": guess.label + 1,
                "bbox": list(guess.box),
                "score": guess.score / 1000,
            }
            for guess in guesses
        ]
    for record, score in zip(listed["detections_closed"], background_scores(drawn), strict=True):
        if score is not None:
            record["background_score"] = score / 1000
    return write_all(folder, listed)


def expected() -> dict[str, Any]:
    """Return every number of every variant, keyed as the result of the command line."""
    drawn = world()
    sections = {
        "paper": paper(drawn, "ignore"),
        "paper_difficult_counted": paper(drawn, "count"),
        "official": official(drawn, single=False),
        "official_float32_counts": official(drawn, single=True),
        "owod": owod(drawn),
    }
    points = {tenths: elephant_reference.limits(drawn, tenths) for tenths in TENTHS}
    closed, wild = names_of_unknown(drawn)
    sections["diagnosis"] = {
        f"0.{tenths}": {
            section: {
                **elephant_reference.diagnosis(drawn, CLASSES, points[tenths], wr1=section == "wr1"),
                **elephant_reference.confusion(drawn, CLASSES, closed, wild, points[tenths], wr1=section == "wr1"),
            }
            for section in ("closed", "wr1")
        }
        for tenths in TENTHS
    }
    sections["fbeta"] = elephant_reference.fbeta(drawn, CLASSES, RATIOS, BETAS)
    sections["background_gap"] = elephant_reference.background_gap(drawn, CLASSES, background_scores(drawn))
    sections["a_ose"] = elephant_reference.a_ose(drawn, CLASSES, points)
    return sections


def names(values: dict[int, Any]) -> dict[str, Any]:
    return {CLASSES[label]: value for label, value in values.items()}


def paper(drawn: World, difficult: str) -> dict[str, Any]:
    found: Any = reference.paper(drawn, difficult)
    impacts: dict[str, Any] = {}
    averages: dict[str, Any] = {}
    thresholds: dict[str, Any] = {}
    positives = {name: reference.count_positives(drawn.closed, label, difficult) for label, name in enumerate(CLASSES)}
    for recall, impact in found["WI"].items():
        limits = elephant_reference.limits(drawn, int(recall[2:]), difficult)
        thresholds[recall] = {
            name: {
                "threshold": Fraction(limits[label], 1000),
                "TP_c": impact["tp"][label],
                "FP_c": impact["fp"][label],
                "recall": Fraction(impact["tp"][label], positives[name]),
            }
            for label, name in enumerate(CLASSES)
            if label in limits
        }
        readings = {key: impact[key] for key in ("macro", "pooled", "ratio_of_mean_precision")}
        impacts[recall] = {
            **readings,
            "fp_open": names(impact["opened"]),
            "per_class": {
                CLASSES[label]: [Fraction(n, impact["tp"][label] + impact["fp"][label]) for n in opened]
                for label, opened in impact["opened"].items()
            },
        }
        averages[recall] = {
            key: {
                "excl_level0": elephant_reference.average(values[1:]),
                "incl_level0": elephant_reference.average(values),
            }
            for key, values in readings.items()
        }
    keys = ("n_wild_images", "mAP11", "mAP_area", "mAP11_ties_in_input_order", "mAP11_open", "mAP_area_open")
    return {
        **{key: found[key] for key in keys},
        "npos": positives,
        "thresholds": thresholds,
        "WI": impacts,
        "AWI": averages,
        "levels": levels(found),
    }


def levels(found: dict[str, Any]) -> list[str]:
    return [f"{k // 10}.{k % 10}" for k in range(len(found["n_wild_images"]))]


def official(drawn: World, *, single: bool) -> dict[str, Any]:
    found: Any = reference.official(drawn, single=single)
    recalls = [f"0.{tenths}" for tenths in TENTHS]
    impacts = {
        recall: [found[recall][0] / value - 1 if found[recall][0] and value else None for value in found[recall]]
        for recall in recalls
    }
    # The published code would carry NaN on: a mean over levels is undefined where one of them is.
    defined = {recall: None not in values for recall, values in impacts.items()}
    return {
        "levels": levels(found),
        "n_wild_images": found["n_wild_images"],
        "mAP": found["mAP"],
        "mAP_open": found["mAP_open"],
        "mean_interp_precision": {recall: found[recall] for recall in recalls},
        "WI": impacts,
        "AWI": {
            recall: {
                "excl_level0": reference.mean(values[1:]) if defined[recall] else None,
                "incl_level0": reference.mean(values) if defined[recall] else None,
            }
            for recall, values in impacts.items()
        },
        "npos": {name: sum(thing.label == label for thing in drawn.closed) for label, name in enumerate(CLASSES)},
    }


def owod(drawn: World) -> dict[str, Any]:
    return reference.owod(drawn)


def only_closed(drawn: World) -> World:
    """Return the closed part alone, as plain detection sees it."""
    return replace(drawn, n_wild=0, wild=(), outside=())
