"""A world for OV-COCO: base and novel classes, images with one, both or none, by COCO's matching in loops."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tests.worlds import osod3_reference as reference
from tests.worlds.boxes import Guess, Thing
from tests.worlds.coco_file import coco_content, write_all
from tests.worlds.drawing import Draws
from tests.worlds.osod3 import near

BASE, NOVEL, LEFT_OUT = ("toilet", "horse", "zebra"), ("cat", "dog", "umbrella"), ("teddy bear", "wine glass")
WITHOUT = "zebra"
"""A base class without objects, as 45 others: there the two ways to take a mean part."""
N_IMAGES = 40
SETTING = reference.Setting(reference.IOUS[0])
CATEGORIES = Path(__file__).resolve().parents[2] / "curation/sources/datasets.toml"
Item = TypeVar("Item", Thing, Guess)


def categories() -> dict[str, int]:
    stated = tomllib.loads(CATEGORIES.read_text(encoding="utf-8"))["coco"]["categories"]
    return {name: number for number, name, _ in stated}


def drawn() -> tuple[list[Thing], list[Guess]]:
    draws = Draws("ovcoco")
    shown = [name for name in (*BASE, *NOVEL, *LEFT_OUT) if name != WITHOUT]
    things, guesses = list[Thing](), list[Guess]()
    for image in range(1, N_IMAGES + 1):
        for _ in range(draws.below(4)):
            box = draws.below(200), draws.below(200), 20 + draws.below(80), 20 + draws.below(80)
            things.append(Thing(image, draws.among(shown), box, draws.one_in(8)))
            for _ in range(draws.below(3)):
                name = things[-1].label if draws.below(3) else draws.among((*BASE, *NOVEL))
                guesses.append(Guess(image, name, near(draws, box), 1 + 37 * len(guesses) % 89))
        if draws.one_in(2):
            guesses.append(Guess(image, draws.among((*BASE, *NOVEL)), (9, 9, 40, 40), 1 + 37 * len(guesses) % 89))
    return things, [guess for guess in guesses if guess.label not in LEFT_OUT]


def files(folder: Path) -> dict[str, Path]:
    """Write ground truth, detections, and the same with one of a class that is left out."""
    things, guesses = drawn()
    numbers = categories()
    rows = [(thing.image, thing.label, thing.box, {"iscrowd": int(thing.crowd)}) for thing in things]
    found = [
        {
            "image_id": guess.image,
            "category_id": numbers[guess.label],
            "bbox": list(guess.box),
            "score": guess.score / 100,
        }
        for guess in guesses
    ]
    other = {"image_id": 1, "category_id": numbers[LEFT_OUT[0]], "bbox": [1, 1, 5, 5], "score": 0.5}
    truth = coco_content(range(1, N_IMAGES + 1), rows, numbers)
    return write_all(folder, {"truth": truth, "detections": found, "with_others": [*found, other]})


def on(items: Iterable[Item], images: Sequence[int]) -> list[Item]:
    """Return what lies on some images, these counted from 1."""
    place = {image: k for k, image in enumerate(images, 1)}
    return [replace(item, image=place[item.image]) for item in items if item.image in place]


def images_with(names: Sequence[str]) -> list[int]:
    return sorted({thing.image for thing in drawn()[0] if thing.label in names})


def averages(shown: Sequence[str], names: Sequence[str]) -> list[float | None]:
    """Return AP50 of some classes on the images that show some."""
    things, guesses = drawn()
    images = images_with(shown)
    own, found = on(things, images), on(guesses, images)
    return [reference.average_precision(reference.points_of(own, found, name, len(images), SETTING)) for name in names]


def expected() -> dict[str, Any]:
    every = (*BASE, *NOVEL)
    novel, base = averages(every, NOVEL), averages(every, BASE)
    settings = {
        "generalized": {"AP50_novel": novel, "AP50_base": base, "AP50_all": [*novel, *base]},
        "constrained": {"AP50_novel": averages(NOVEL, NOVEL), "AP50_base": averages(BASE, BASE)},
    }
    # Of the 17 and 48 classes all others have no object.
    return {
        f"{setting}/{variant}": {
            name: reference.mean(values) if variant == "ovr-cnn" else None for name, values in groups.items()
        }
        for setting, groups in settings.items()
        for variant in ("ovr-cnn", "detic")
    }
