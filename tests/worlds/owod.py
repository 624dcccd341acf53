"""A world for the OWOD evaluator: its second task, with and without repeated lines, by the reference in fractions.

Coordinates in quarters and tenths, so that rounding as the official text files do decides; crowd and difficult objects;
scores that become equal when rounded to three decimals. No class has a number of objects that 5 divides: at such a
number a recall can fall on a tenth, where the eleven points of two codes differ by a rounding of floating point.
"""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.evaluation.owod_reference import Case, Evaluation
from tests.worlds.boxes import UNKNOWN, Box, Guess, Thing, iou
from tests.worlds.coco_file import coco_content, write_all
from tests.worlds.drawing import Draws

PREVIOUS, CURRENT, REST = ("dog", "person"), ("car", "cat"), ("cup", "kite", "truck")
PROFILES = ("clean", "ore", "owdetr")
N_IMAGES = 36
SCORES = tuple(map(Decimal, ("0.05", "0.1234", "0.1231", "0.3", "0.5", "0.5004", "0.7", "0.9", "1")))
OFFSETS = tuple(map(Decimal, ("0", "0", "0.1", "0.25", "0.5", "1")))


def a_box(draws: Draws) -> Box:
    x, y = (Decimal(draws.below(40)) + draws.among(OFFSETS) for _ in range(2))
    w, h = (Decimal(draws.among((2, 4, 8, 10, 16))) + draws.among(OFFSETS) for _ in range(2))
    return x, y, w, h


def near(draws: Draws, box: Box) -> Box:
    x, y, w, h = box
    return x + draws.among(OFFSETS), y + draws.among(OFFSETS), w, h / 2 if draws.one_in(6) else h


def drawn() -> tuple[Case, tuple[str, ...]]:
    """Return the case, each image listed once, and the class of each object in the file."""
    draws = Draws("owod")
    objects: list[Thing] = []
    originals: list[str] = []
    guesses: list[Guess] = []
    for image in range(1, N_IMAGES + 1):
        for _ in range(draws.below(5)):
            original = draws.among((*PREVIOUS, *CURRENT, *REST))
            crowd, difficult = draws.one_in(9), draws.one_in(9)
            name = UNKNOWN if original in REST else original
            objects.append(Thing(image, name, a_box(draws), crowd, difficult))
            originals.append(original)
            for _ in range(draws.below(4)):
                guessed = (
                    name if draws.below(2 if name == UNKNOWN else 4) else draws.among((*PREVIOUS, *CURRENT, UNKNOWN))
                )
                guesses.append(Guess(image, guessed, near(draws, objects[-1].box), draws.among(SCORES)))
        if draws.one_in(2):
            guessed = draws.among((*PREVIOUS, *CURRENT, UNKNOWN))
            guesses.append(Guess(image, guessed, a_box(draws), draws.among(SCORES)))
    case = Case(PREVIOUS, CURRENT, tuple(range(1, N_IMAGES + 1)), tuple(objects), tuple(guesses))
    return without_fives(case, originals)


def without_fives(case: Case, originals: list[str]) -> tuple[Case, tuple[str, ...]]:
    """Leave out objects until the official codes count a multiple of 5 of no class."""
    while True:
        for name in (*PREVIOUS, *CURRENT, UNKNOWN):
            if five(case, name):
                last = max(k for k, thing in enumerate(case.objects) if thing.label == name)
                case = replace(case, objects=case.objects[:last] + case.objects[last + 1 :])
                del originals[last]
                break
        else:
            return case, tuple(originals)


def five(case: Case, name: str) -> bool:
    return Evaluation(case, "owdetr").n(name) % 5 == 0


def repeated() -> tuple[Case, tuple[str, ...]]:
    """Return the case with some images listed twice or three times, their detections given once a line.

    Repeated are images on which no detection of a known class meets an unknown object, or none is called unknown: what
    becomes of copies of an object that is both found and called known is another question.
    """
    case, originals = drawn()
    listed: list[int] = []
    for image in case.listed:
        here = [guess for guess in case.guesses if guess.image == image]
        found = any(guess.label == UNKNOWN for guess in here)
        called = any(
            guess.label != UNKNOWN and thing.label == UNKNOWN and thing.image == image and iou(guess.box, thing.box) > 0
            for guess in here
            for thing in case.objects
        )
        listed += [image] * (1 + image % 3 if not (found and called) else 1)
    while any(five(replace(case, listed=tuple(listed)), name) for name in (*PREVIOUS, *CURRENT, UNKNOWN)):
        listed.remove(max(image for image in listed if listed.count(image) > 1))
    guesses = tuple(guess for guess in case.guesses for _ in range(listed.count(guess.image)))
    return replace(case, listed=tuple(listed), guesses=guesses), originals


def files(folder: Path, case: Case, originals: tuple[str, ...]) -> dict[str, Path]:
    """Write ground truth, detections, classes and the image list."""
    names = (*PREVIOUS, *CURRENT, *REST)
    rows = [
        (
            thing.image,
            name,
            [float(number) for number in thing.box],
            {"iscrowd": int(thing.crowd), "ignore": int(thing.difficult)},
        )
        for thing, name in zip(case.objects, originals, strict=True)
    ]
    content: dict[str, Any] = {
        "truth": coco_content(range(1, N_IMAGES + 1), rows, names, size=(64, 64)),
        "detections": [
            {
                "image_id": guess.image,
                "category": guess.label,
                "bbox": [float(number) for number in guess.box],
                "score": float(guess.score),
            }
            for guess in case.guesses
        ],
        "classes": {"tasks": [{"name": "t2", "prev": PREVIOUS, "cur": CURRENT, "rest": REST}]},
    }
    paths = write_all(folder, content)
    paths["images"] = folder / "images.txt"
    paths["images"].write_text("".join(f"{image:012d}\n" for image in case.listed), encoding="utf-8")
    return paths


def expected() -> dict[str, Any]:
    """Return every number of every profile, of the list without and with repeats."""
    cases = {"once": drawn()[0], "repeated": repeated()[0]}
    found = {
        name: {f"t2/{profile}": Evaluation(case, profile).result() for profile in PROFILES}
        for name, case in cases.items()
    }
    fomo = Evaluation(cases["once"], "fomo")
    clean = found["once"]["t2/clean"]
    found["rwd"] = {"t2/clean": clean, "t2/fomo": {**fomo.result(), **fomo.ends()}}
    found["nuowodb"] = {
        "t2/clean": clean,
        "t2/yolo-uniow": Evaluation(of_yolo_uniow(cases["once"]), "yolo-uniow").result(),
    }
    return found


def of_yolo_uniow(case: Case) -> Case:
    """Return the case as YOLO-UniOW's code takes it: few known detections, left and upper edges one pixel further."""
    kept = [guess for guess in case.guesses if guess.label == UNKNOWN or guess.score > Decimal("0.05")]
    moved = [
        replace(guess, box=(guess.box[0] + 1, guess.box[1] + 1, guess.box[2] - 1, guess.box[3] - 1)) for guess in kept
    ]
    return replace(case, guesses=tuple(moved))
