import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.elephant.measures import owod
from curation.evaluation.variants import round_decimal
from tests.evaluation.elephant_rows import of_owod
from tests.evaluation.worlds import detections_of, truth_of
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


def test_every_detection_on_an_unknown_object_counts_and_difficult_crowd_ones_too() -> None:
    truth = truth_of([Thing(0, -1, BOX, difficult=True), Thing(0, -1, (100, 0, 10, 10), crowd=True)], 1, 1)
    guesses = [Guess(0, 0, BOX, 900), Guess(0, 0, BOX, 50), Guess(0, 0, (100, 0, 10, 10), 50)]
    found = of_owod(owod(((truth, detections_of(guesses)),)))
    assert (found["AOSE_total"], found["AOSE_instances"], found["n_unknown"]) == (3, 2, 2)
