"""Where the official code departs from the paper's text (specification, section 2.3)."""

from typing import Any

import pytest

from curation.benchmarks.elephant.measures import official
from curation.evaluation.problem import Scene
from tests.evaluation.elephant_rows import of_measured
from tests.evaluation.worlds import detections_of, truth_of
from tests.worlds.boxes import Guess, Thing

BOX = (0, 0, 10, 10)
NOTHING = detections_of([])


def scored(scene: Scene) -> dict[str, Any]:
    return of_measured(official(scene))


def test_the_best_object_of_any_class_decides() -> None:
    # The dog lies nearer than the cat: by class it would be a true positive, here it is not.
    closed = truth_of([Thing(0, 0, (2, 0, 10, 10)), Thing(0, 1, BOX)], 1, 2)
    found = scored(Scene(closed, detections_of([Guess(0, 0, BOX, 500)]), truth_of([], 0, 2), NOTHING))
    assert found["mAP"] == [0.0] * len(found["levels"])


def test_of_two_detections_of_an_object_the_first_listed_is_right() -> None:
    closed = truth_of([Thing(0, 0, BOX)], 1, 1)
    found = scored(
        Scene(closed, detections_of([Guess(0, 0, BOX, 300), Guess(0, 0, BOX, 900)]), truth_of([], 0, 1), NOTHING)
    )
    assert found["mAP"][0] == 0.5


def test_difficult_objects_are_ordinary_and_crowd_only_counts_in_n() -> None:
    closed = truth_of([Thing(0, 0, BOX, difficult=True), Thing(0, 0, (50, 0, 9, 9), crowd=True)], 1, 1)
    guesses = [Guess(0, 0, BOX, 900), Guess(0, 0, (50, 0, 9, 9), 800)]
    found = scored(Scene(closed, detections_of(guesses), truth_of([], 0, 1), NOTHING))
    assert found["npos"] == {"a": 2}
    # Recall 1/2 at precision 1: six of eleven points.
    assert found["mAP"][0] == pytest.approx(6 / 11)


def test_a_closed_image_without_annotation_is_the_first_wilderness_image() -> None:
    closed = truth_of([Thing(image, 0, BOX) for image in range(9)], 10, 1)
    inside = detections_of([*(Guess(image, 0, BOX, 500) for image in range(9)), Guess(9, 0, BOX, 900)])
    found = scored(Scene(closed, inside, truth_of([], 1, 1), detections_of([Guess(0, 0, BOX, 900)])))
    # It leaves the count N = 9 that levels refer to: floor(9 k / 10) images, not k.
    assert (found["n_closed_images"], found["n_closed_as_wilderness"]) == (9, 1)
    assert found["n_wild_images"] == [0, 0, 1, 2]
    assert found["mean_interp_precision"]["0.5"] == [1.0, 1.0, 9 / 10, 9 / 11]


def test_a_class_without_objects_but_with_detections_enters_the_mean_as_zero() -> None:
    closed = truth_of([Thing(0, 0, BOX)], 1, 3)
    guesses = [Guess(0, 0, BOX, 500), Guess(0, 1, BOX, 500)]
    found = scored(Scene(closed, detections_of(guesses), truth_of([], 0, 3), NOTHING))
    assert found["mAP"][0] == 0.5
    assert found["n_classes_with_detections"][0] == 2


def test_an_envelope_may_hide_open_set_errors() -> None:
    # The true positive that reaches recall .5 is followed by a better point: WI stays 0 though FP_o is 1.
    closed = truth_of([Thing(image, 0, BOX) for image in range(10)], 10, 1)
    inside = detections_of([Guess(0, 0, (90, 0, 5, 5), 999), *(Guess(i, 0, BOX, 900 - i) for i in range(10))])
    wild = truth_of([], 1, 1)
    found = scored(Scene(closed, inside, wild, detections_of([Guess(0, 0, BOX, 1)])))
    assert found["WI"]["0.1"] == [0.0, 0.0]
