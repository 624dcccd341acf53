"""What must hold of wilderness impact under the variant ``paper``."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.benchmarks.elephant.evaluation import evaluate_elephant
from curation.evaluation.problem import Detections, GroundTruth, Scene, classes_of_source
from curation.evaluation.readers import read_detections
from curation.evaluation.truth import ground_truth
from curation.sources.coco import read_coco
from tests.evaluation.elephant_rows import of_evaluated
from tests.evaluation.reference import World
from tests.evaluation.worlds import columns_of, detections_of, truth_of, worlds
from tests.worlds.boxes import Guess, Thing

BOX = (0, 0, 10, 10)
MEASURES = ("mAP11", "mAP_area", "AP11", "AP_area", "thresholds", "WI", "AWI", "npos", "n_wild_images")


def paper(columns: tuple[GroundTruth, Detections, GroundTruth, Detections]) -> dict[str, Any]:
    section: dict[str, Any] = of_evaluated(evaluate_elephant(Scene(*columns)))["paper"]
    return section


def with_certain_impact(world: World, score: int) -> World:
    """Add four closed images with one object found, and a wilderness image with one sure mistake, all of class a."""
    more = range(world.n_closed, world.n_closed + 4)
    return replace(
        world,
        n_closed=world.n_closed + 4,
        n_wild=world.n_wild + 1,
        closed=(*world.closed, *(Thing(image, 0, BOX) for image in more)),
        inside=(*world.inside, *(Guess(image, 0, BOX, score) for image in more)),
        wild=tuple(replace(thing, image=thing.image + 1) for thing in world.wild),
        outside=(Guess(0, 0, BOX, 1000), *(replace(guess, image=guess.image + 1) for guess in world.outside)),
    )


def write_files(folder: Path, world: World, rng: random.Random, *, shuffle: bool) -> dict[str, Path]:
    """Write truth and detections of both parts, images, categories and image numbers in file order or shuffled."""
    files = {}
    categories = [{"id": place + 1, "name": name} for place, name in enumerate("abc"[: world.n_classes])]
    categories.append({"id": -1, "name": "unknown"})
    for part, n_images, things, guesses in (
        ("closed", world.n_closed, world.closed, world.inside),
        ("wilderness", world.n_wild, world.wild, world.outside),
    ):
        images = [{"id": number + 1, "width": 9, "height": 9} for number in range(n_images)]
        if shuffle:
            rng.shuffle(images)
            rng.shuffle(categories)
        annotations = [
            {
                "id": row + 1,
                "image_id": thing.image + 1,
                "category_id": thing.label + 1 or -1,
                "bbox": thing.box,
                "area": thing.box[2] * thing.box[3],
                "iscrowd": int(thing.crowd),
                "difficult": int(thing.difficult),
            }
            for row, thing in enumerate(things)
        ]
        results = [
            {
                "image_id": guess.image + 1,
                "category_id": guess.label + 1,
                "bbox": guess.box,
                "score": guess.score / 1000,
            }
            for guess in guesses
        ]
        truth = {"images": images, "annotations": annotations, "categories": categories}
        for kind, content in (("truth", truth), ("results", results)):
            files[f"{part}-{kind}"] = folder / f"{part}-{kind}.json"
            files[f"{part}-{kind}"].write_text(json.dumps(content))
    return files


def evaluated(files: dict[str, Path]) -> dict[str, Any]:
    sources = {part: read_coco(files[f"{part}-truth"]) for part in ("closed", "wilderness")}
    known = classes_of_source(sources["closed"])
    truths = {part: ground_truth(source, known).truth for part, source in sources.items()}
    found = {part: read_detections(files[f"{part}-results"], truth) for part, truth in truths.items()}
    return measures(
        (truths["closed"], found["closed"].detections, truths["wilderness"], found["wilderness"].detections)
    )


def measures(columns: tuple[GroundTruth, Detections, GroundTruth, Detections]) -> dict[str, Any]:
    section = paper(columns)
    return {name: section[name] for name in MEASURES}


@settings(max_examples=40)
@given(world=worlds(distinct_scores=True), seed=st.integers(0, 99))
def test_the_order_of_images_and_categories_in_the_files_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, world: World, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("files")
    plain = evaluated(write_files(folder, with_certain_impact(world, 500), random.Random(seed), shuffle=False))
    mixed = evaluated(write_files(folder, with_certain_impact(world, 500), random.Random(seed), shuffle=True))
    assert plain["WI"]["0.1"]["macro"][-1] > 0
    assert mixed == plain


@settings(max_examples=60)
@given(world=worlds(distinct_scores=True), seed=st.integers(0, 99))
def test_the_order_of_detections_changes_nothing_when_scores_differ(world: World, seed: int) -> None:
    closed, inside, wild, outside = columns_of(world)
    rng = np.random.default_rng(seed)

    def shuffled(detections: Detections) -> Detections:
        return detections.take(rng.permutation(len(detections)))

    assert measures((closed, shuffled(inside), wild, shuffled(outside))) == measures((closed, inside, wild, outside))


@settings(max_examples=40)
@given(world=worlds())
def test_colliding_image_numbers_give_the_numbers_of_distinct_ones(world: World) -> None:
    closed, inside, wild, outside = columns_of(world)
    apart = replace(wild, image_numbers=wild.image_numbers + 1_000_000)
    assert set(closed.image_numbers.tolist()).isdisjoint(apart.image_numbers.tolist())
    assert paper((closed, inside, apart, outside)) == paper((closed, inside, wild, outside))


def test_an_unannotated_closed_image_is_not_wilderness() -> None:
    # Ten closed images, nine of them empty: with no wilderness at all, there is only level 0.
    closed = truth_of([Thing(0, 0, BOX)], 10, 1)
    inside = detections_of([Guess(0, 0, BOX, 500), Guess(3, 0, BOX, 900)])
    section = paper((closed, inside, truth_of([], 0, 1), detections_of([])))
    assert section["levels"] == ["0.0"]
    assert section["thresholds"]["0.3"]["a"] == {"threshold": 0.5, "TP_c": 1, "FP_c": 1, "recall": 1.0}
    assert section["AWI"]["0.3"]["macro"] == {"excl_level0": None, "incl_level0": 0.0}
