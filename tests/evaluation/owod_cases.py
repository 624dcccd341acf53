"""Random OWOD tasks for property tests, their conversion to the package's columns, and the worked example."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st

from curation.benchmarks.registry import variants_of
from curation.evaluation.matching import assign
from curation.evaluation.measures import Measured
from curation.evaluation.open_world import CLEAN, evaluate_task
from curation.evaluation.problem import ClassRoles, Detections, GroundTruth
from curation.evaluation.truth import Part, TaskTruth
from curation.sources.identity import ImageIndex
from tests.evaluation.open_world_rows import of_measured
from tests.evaluation.owod_reference import Case
from tests.evaluation.worlds import detections_of_rows, truth_of_rows
from tests.worlds.boxes import UNKNOWN, Guess, Thing

PROFILES = ("clean", "ore", "owdetr")


def numbers(low: str, high: str) -> st.SearchStrategy[Decimal]:
    """Quarters and tenths, whole ones most often, so that ties in IoU and roundings at a half occur."""
    parts = [Decimal(part) for part in ("0", "0", "0", "0.25", "0.5", "0.1")]
    return st.sampled_from([whole + part for part in parts for whole in range(int(low), int(high) + 1)])


SIZES = numbers("1", "5")
BOXES = st.tuples(numbers("0", "3"), numbers("0", "3"), SIZES, SIZES)
SCORES = st.sampled_from(("0.05", "0.1234", "0.1231", "0.3", "0.5", "0.5004", "0.9", "1")).map(Decimal)


@st.composite
def cases(draw: st.DrawFn, *, repeats: bool = False, distinct: bool = False) -> Case:
    n_previous, n_current, n_images = (draw(st.integers(0, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 4)))
    known = tuple("abcd"[: n_previous + n_current])
    names = st.sampled_from((*known, UNKNOWN, UNKNOWN))
    flags = st.sampled_from((False, False, False, True))
    lines = [1 + draw(st.integers(0, 2)) if repeats else 1 for _ in range(n_images)]
    listed = [image for image, count in enumerate(lines, 1) for _ in range(count)]
    objects = [
        Thing(image, draw(names), draw(BOXES), draw(flags), draw(flags))
        for image in range(1, n_images + 1)
        for _ in range(draw(st.integers(0, 4)))
    ]
    guesses = [
        Guess(image, draw(names), draw(BOXES), draw(SCORES))
        for image in draw(st.lists(st.integers(1, n_images), max_size=12))
    ]
    if distinct:
        order = draw(st.permutations(range(len(guesses))))
        guesses = [replace(g, score=Decimal(1 + k) / 20) for g, k in zip(guesses, order, strict=True)]
    return Case(known[:n_previous], known[n_previous:], tuple(draw(st.permutations(listed))), tuple(objects),
                tuple(guesses))  # fmt: skip


def once_a_line(case: Case) -> Case:
    """Return the case with the detections of each image as often as the list names it."""
    return replace(case, guesses=tuple(g for g in case.guesses for _ in range(case.listed.count(g.image))))


def truth_of(case: Case, *, repeats: str = "keep", originals: Sequence[str] | None = None) -> TaskTruth:
    """Return the case's ground truth; images are numbered from 1, all of those listed or shown."""
    images = sorted({*case.listed, *(thing.image for thing in case.objects)})
    classes = (*case.previous, *case.current, UNKNOWN)
    things = sorted(enumerate(case.objects), key=lambda pair: pair[1].image)
    truth = truth_of_rows(
        [(images.index(thing.image), classes.index(thing.label), list(map(float, thing.box))) for _, thing in things],
        len(images),
        classes,
        image_numbers=np.array(images, np.int64),
        class_numbers=tuple(range(len(classes))),
        crowd=np.array([thing.crowd for _, thing in things], bool),
        difficult=np.array([thing.difficult for _, thing in things], bool),
        original=None if originals is None else tuple(originals[k] for k, _ in things),
        index=ImageIndex(np.array(images, np.int64), tuple(f"{image:012d}.jpg" for image in images)),
    )
    lines = np.array([max(case.listed.count(image), 1) for image in images], np.int64)
    task = ClassRoles("t", case.previous, case.current, (), "a test")
    part = Part(truth, (), {}, len(images))
    return TaskTruth(task, part, lines, np.zeros(len(images), bool), repeats, int(lines.sum()) - len(images))


def detections_of(case: Case, truth: TaskTruth) -> Detections:
    images, classes = truth.truth.image_numbers.tolist(), truth.truth.classes
    return detections_of_rows(
        [
            (images.index(one.image), classes.index(one.label), list(map(float, one.box)), float(one.score))
            for one in case.guesses
        ]
    )


def measured(case: Case, *, originals: Sequence[str] | None = None) -> dict[str, Measured]:
    """Return what the package measures by profile."""
    truth = truth_of(case, originals=originals)
    return evaluate_task(truth, detections_of(case, truth), variants_of("owod"))


def evaluated(case: Case, *, originals: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return its numbers by profile, as the plain evaluator names them."""
    return {profile: of_measured(found) for profile, found in measured(case, originals=originals).items()}


KNOWN = ("person", "dog")
# image: objects (class, box, crowd), detections (class, score, box): specification, section 4.6.
EXAMPLE: dict[int, tuple[list[tuple[str, str]], list[tuple[str, str, str]]]] = {
    1: ([("person", "10,10,100,100")],
        [("person", ".90", "10,10,100,100"), ("person", ".80", "12,12,100,100")]),
    2: ([("truck", "50,50,80,60")], [("dog", ".70", "50,50,80,60"), ("dog", ".60", "54,52,80,60")]),
    3: ([("truck", "20,20,60,60"), ("dog", "200,200,90,70")],
        [("unknown", ".65", "22,20,60,60"), ("person", ".50", "20,22,60,60"), ("dog", ".85", "202,201,90,70")]),
    4: ([("person", "10,10,100,100"), ("kite", "10,10,100,80")], [("person", ".95", "10,10,100,100")]),
    5: ([("cup", "300,300,40,50")], [("unknown", ".40", "10,10,60,60")]),
    6: ([("bench crowd", "0,0,300,200")], [("unknown", ".30", "20,20,40,40"), ("person", ".35", "100,60,50,80")]),
    7: ([("dog", "100,100,2,2")], [("dog", ".75", "100,100,2,2")]),
    8: ([("person", "0,0,100,100")], [("person", ".45", "0,0,100,50")]),
    9: ([], [("person", ".33", "30,30,50,50"), ("unknown", ".34", "130,130,50,50")]),
    10: ([("dog", "40,40,100,90")], [("unknown", ".55", "40,40,100,90")]),
    11: ([("apple", "100,100,60,60"), ("apple", "110,100,60,60")],
         [("unknown", ".62", "101,100,60,60"), ("unknown", ".58", "103,100,60,60")]),
}  # fmt: skip


def example() -> tuple[Case, tuple[str, ...]]:
    """Return the worked example, and the original class of each object."""

    def box(text: str) -> Any:
        return tuple(Decimal(number) for number in text.split(","))

    originals = tuple(name.split()[0] for objects, _ in EXAMPLE.values() for name, _ in objects)
    objects = [
        Thing(image, name if name in KNOWN else UNKNOWN, box(at), name.endswith("crowd"))
        for image, (things, _) in EXAMPLE.items()
        for name, at in things
    ]
    guesses = [
        Guess(image, name, box(at), Decimal(score))
        for image, (_, found) in EXAMPLE.items()
        for name, score, at in found
    ]
    return Case((), KNOWN, tuple(EXAMPLE), tuple(objects), tuple(guesses)), originals


def match_free(truth: GroundTruth, detections: Detections) -> tuple[np.ndarray, np.ndarray]:
    """The clean assignment, the best object that is still free: outcomes, and the objects found."""
    found = assign(truth, detections, CLEAN)
    return found.outcome, found.truth
