"""Random small evaluations for property tests, and their conversion to the package's columns."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from curation.evaluation.matching import Matches, assign
from curation.evaluation.problem import Detections, GroundTruth, Scene
from curation.evaluation.variants import Difficult, Rules
from tests.evaluation.reference import World
from tests.worlds.boxes import Guess, Thing

# One draw a box: Hypothesis takes most of the time of these tests, and as much for each number.
BOXES = st.sampled_from([*product(range(4), range(4), range(1, 5), range(1, 5))])
# Few values, so that ties in score and in IoU are the rule.
SCORES = st.sampled_from((50, 300, 301, 500, 725, 900, 1000))


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    distinct_scores: bool = False,
    closed_images: tuple[int, int] = (1, 6),
    classes: tuple[int, int] = (1, 3),
) -> World:
    n_classes, n_closed, n_wild = (
        draw(st.integers(*classes)),
        draw(st.integers(*closed_images)),
        draw(st.integers(0, 9)),
    )
    labels = st.integers(0, n_classes - 1)
    flags = st.sampled_from((False, False, False, True))
    closed = [
        Thing(image, draw(st.integers(-1, n_classes - 1)), draw(BOXES), draw(flags), draw(flags))
        for image in range(n_closed)
        for _ in range(draw(st.integers(0, 3)))
    ]
    wild = [
        Thing(image, -1, draw(BOXES), draw(flags)) for image in range(n_wild) for _ in range(draw(st.integers(0, 2)))
    ]
    inside, outside = (
        [
            Guess(image, draw(labels), draw(BOXES), draw(SCORES))
            for image in draw(st.lists(st.integers(0, n - 1), max_size=14))
        ]
        if n
        else []
        for n in (n_closed, n_wild)
    )
    if distinct_scores:
        order = draw(st.permutations(range(len(inside) + len(outside))))
        spread = [Guess(g.image, g.label, g.box, 10 + 30 * order[k]) for k, g in enumerate([*inside, *outside])]
        inside, outside = spread[: len(inside)], spread[len(inside) :]
    return World(n_classes, n_closed, n_wild, tuple(closed), tuple(wild), tuple(inside), tuple(outside))


def truth_of_rows(rows: Sequence[Any], n_images: int, classes: Sequence[str], **columns: Any) -> GroundTruth:
    """Return objects of rows that begin with image, label and box; `columns` stand in place of the usual ones."""
    n = len(rows)
    boxes = np.array([row[2] for row in rows], np.float64).reshape(n, 4)
    truth = GroundTruth(
        image_numbers=np.arange(n_images, dtype=np.int64),
        classes=tuple(classes),
        class_numbers=tuple(range(1, len(classes) + 1)),
        image=np.array([row[0] for row in rows], np.int32),
        label=np.array([row[1] for row in rows], np.int32),
        boxes=boxes,
        crowd=np.zeros(n, bool),
        difficult=np.zeros(n, bool),
        areas=boxes[:, 2] * boxes[:, 3],
    )
    return replace(truth, **columns)


def detections_of_rows(rows: Sequence[Any]) -> Detections:
    """Return detections of rows of image, label, box and score."""
    return Detections(
        image=np.array([row[0] for row in rows], np.int32),
        label=np.array([row[1] for row in rows], np.int32),
        boxes=np.array([row[2] for row in rows], np.float64).reshape(len(rows), 4),
        scores=np.array([row[3] for row in rows], np.float64),
    )


def truth_of(things: Sequence[Thing], n_images: int, n_classes: int, first_number: int = 1) -> GroundTruth:
    return truth_of_rows(
        [(thing.image, thing.label, thing.box) for thing in things],
        n_images,
        "abcdefgh"[:n_classes],
        image_numbers=np.arange(first_number, first_number + n_images, dtype=np.int64),
        crowd=np.array([thing.crowd for thing in things], bool),
        difficult=np.array([thing.difficult for thing in things], bool),
    )


def detections_of(guesses: Sequence[Guess]) -> Detections:
    return detections_of_rows([(one.image, one.label, one.box, one.score / 1000) for one in guesses])


def columns_of(world: World) -> Scene:
    return Scene(
        truth_of(world.closed, world.n_closed, world.n_classes),
        detections_of(world.inside),
        truth_of(world.wild, world.n_wild, world.n_classes),
        detections_of(world.outside),
    )


def match(
    truth: GroundTruth, detections: Detections, *, strict: bool = False, difficult: Difficult = "ignore"
) -> Matches:
    """VOC's assignment: the best object of the class, free or not."""
    return assign(truth, detections, Rules(name="voc", overlap=">" if strict else ">=", difficult=difficult))
