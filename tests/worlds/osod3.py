"""A world for the OSOD-III evaluator: known, unknown and outside classes, text ids, crowds, ties, and a crowded image.

One image has 130 detections of one class, so that COCO's limit of 100 decides.
"""

from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.worlds import osod3_reference as reference
from tests.worlds.boxes import UNKNOWN, Box, Guess, Thing
from tests.worlds.coco_file import coco_content, write_all
from tests.worlds.drawing import Draws

KNOWN, HIDDEN, OUTSIDE = ("cat", "dog", "fox", "owl"), ("lynx", "wolf"), ("teapot",)
N_IMAGES = 20
THETAS = ("0", "0.05", "0.3", "0.5", "0.75", "1")
RULES = ("delete", "ignore")
PROFILES = ("clean", "voc")


def drawn() -> tuple[list[Thing], list[Guess]]:
    """Return objects and detections; no owl is anywhere, and no fox is ever detected."""
    draws = Draws("osod3")
    things: list[Thing] = []
    guesses: list[Guess] = []
    callable_names = ("cat", "dog", UNKNOWN)
    for image in range(1, N_IMAGES + 1):
        for _ in range(draws.below(6)):
            name = draws.among(("cat", "cat", "dog", "dog", "fox", *HIDDEN, *HIDDEN, *OUTSIDE))
            box = (draws.below(200), draws.below(200), 20 + draws.below(110), 20 + draws.below(110))
            things.append(Thing(image, name, box, draws.one_in(4)))
            own = name if name in KNOWN else UNKNOWN
            if things[-1].crowd and own in ("cat", "dog"):
                part = (box[0] + 2, box[1] + 2, box[2] // 3, box[3] // 3)
                guesses.append(Guess(image, own, part, 5 * draws.below(21)))
            for _ in range(draws.below(5)):
                called = own if draws.below(2 if own == UNKNOWN else 4) else draws.among(callable_names)
                called = "dog" if called == "fox" else called
                guesses.append(Guess(image, called, near(draws, box), 5 * draws.below(21)))
        if draws.one_in(3):
            box = (draws.below(200), draws.below(200), 40, 40)
            guesses.append(Guess(image, draws.among(callable_names), box, 5 * draws.below(21)))
    things.append(Thing(N_IMAGES, "cat", (0, 0, 30, 30)))
    guesses += [Guess(N_IMAGES, "cat", (k, k // 2, 30, 30), 5 + k % 90) for k in range(130)]
    return things, guesses


def near(draws: Draws, box: Box) -> Box:
    x, y, w, h = box
    if draws.one_in(6):
        return x, y, w, h // 2
    return x + draws.below(5), y + draws.below(5), w + draws.below(4), h + draws.below(4)


def files(folder: Path) -> dict[str, Path]:
    """Write ground truth, detections and classes."""
    things, guesses = drawn()
    names = (*KNOWN, *HIDDEN, *OUTSIDE)
    rows = [(f"{one.image:016x}", one.label, one.box, {"iscrowd": int(one.crowd)}) for one in things]
    content: dict[str, Any] = {
        "truth": coco_content([f"{k:016x}" for k in range(1, N_IMAGES + 1)], rows, names),
        "detections": [
            {
                "image_id": f"{guess.image:016x}",
                "category": guess.label,
                "bbox": list(guess.box),
                "score": guess.score / 100,
            }
            for guess in guesses
        ],
        "classes": {"known": KNOWN, "unknown": HIDDEN},
    }
    return write_all(folder, content)


def expected() -> dict[str, Any]:
    """Return every number of every variant, by what becomes of outside objects."""
    things, guesses = drawn()
    result = {}
    for rule in RULES:
        seen = reference.relabelled(things, KNOWN, HIDDEN, rule)
        result[rule] = {
            **reference.averages(seen, guesses, KNOWN, N_IMAGES),
            "curves": {
                profile: reference.curve(seen, guesses, KNOWN, profile, [Fraction(one) for one in THETAS])
                for profile in PROFILES
            },
        }
    return result
