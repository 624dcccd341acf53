import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.elephant.measures import open_set_errors, owod
from curation.evaluation.matching import thresholds
from curation.evaluation.variants import round_as_text, round_decimal
from tests.evaluation.elephant_rows import of_errors, of_owod
from tests.evaluation.reference import World
from tests.evaluation.worlds import columns_of, detections_of, match, truth_of, worlds
from tests.worlds.boxes import Guess, Thing

BOX = (0, 0, 10, 10)


@given(value=st.floats(-20000, 20000), places=st.sampled_from((1, 3)))
def test_decimal_rounding_is_that_of_format(value: float, places: int) -> None:
    assert round_decimal(np.array([value]), places)[0] == float(f"{value:.{places}f}")


@given(tenths=st.integers(-200000, 200000), places=st.sampled_from((1, 3)))
def test_decimal_rounding_near_halves(tenths: int, places: int) -> None:
    half = (tenths + 0.5) / 10**places
    values = np.array([half, np.nextafter(half, np.inf), np.nextafter(half, -np.inf)])
    assert round_decimal(values, places).tolist() == [float(f"{value:.{places}f}") for value in values]


def test_scores_are_rounded_to_three_decimals_and_corners_to_one() -> None:
    detections = detections_of([Guess(0, 0, BOX, 500)])
    detections.scores[:] = 0.12349
    detections.boxes[:] = (1.26, 2.0, 3.0, 4.04)
    found = round_as_text(detections)
    assert found.scores.tolist() == [0.123]
    assert found.boxes[0].tolist() == pytest.approx([1.3, 2.0, 3.0, 4.0])


def test_equal_rounded_scores_keep_input_order() -> None:
    # 0.9001 and 0.8999 are both 0.900 in the text files: the false positive, listed first, ranks first.
    detections = detections_of([Guess(0, 0, (50, 0, 9, 9), 1), Guess(0, 0, BOX, 2)])
    detections.scores[:] = 0.8999, 0.9001
    truth = truth_of([Thing(0, 0, BOX), Thing(0, -1, (50, 0, 9, 9))], 1, 1)
    assert of_owod(owod(((truth, detections),)))["WI"]["0.9"] == 0.5


def test_every_detection_on_an_unknown_object_counts_and_difficult_crowd_ones_too() -> None:
    truth = truth_of([Thing(0, -1, BOX, difficult=True), Thing(0, -1, (100, 0, 10, 10), crowd=True)], 1, 1)
    guesses = [Guess(0, 0, BOX, 900), Guess(0, 0, BOX, 50), Guess(0, 0, (100, 0, 10, 10), 50)]
    found = of_owod(owod(((truth, detections_of(guesses)),)))
    assert (found["AOSE_total"], found["AOSE_instances"], found["n_unknown"]) == (3, 2, 2)


def test_a_class_without_objects_is_left_out_of_wi_and_named() -> None:
    truth = truth_of([Thing(0, 0, BOX)], 1, 3)
    found = of_owod(owod(((truth, detections_of([Guess(0, 0, BOX, 900), Guess(0, 1, BOX, 900)])),)))
    assert found["classes_left_out"] == {"b": "no ground truth", "c": "no ground truth"}
    assert found["WI"]["0.8"] == 0.0


def test_without_detections_wi_is_undefined() -> None:
    found = of_owod(owod(((truth_of([Thing(0, 0, BOX)], 1, 1), detections_of([])),)))
    assert set(found["WI"].values()) == {None}


@given(world=worlds())
def test_a_ose_never_grows_with_the_threshold(world: World) -> None:
    closed, inside, wild, outside = columns_of(world)
    points = thresholds(match(closed, inside), inside)
    found = of_errors(open_set_errors(((closed, inside), (wild, outside)), points))
    assert found["all"]["total"] >= max(found[r]["total"] for r in ("0.1", "0.3", "0.5"))
    for number, name in enumerate(closed.classes):
        # A higher recall needs a lower threshold, which keeps more.
        counts = [found[r]["per_class"][name] for r in ("0.1", "0.3", "0.5")]
        defined = [count for count in counts if count is not None]
        assert defined == sorted(defined)
        assert [count is None for count in counts] == np.isnan(points.threshold[:, number]).tolist()
    assert all(found[r]["instances"] <= found["n_unknown"] for r in ("all", "0.1", "0.3", "0.5"))
