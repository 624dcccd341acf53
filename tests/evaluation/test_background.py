"""Background gap: bins with exact edges, spreads by the statistics module, and a hand-checked case."""

import statistics
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.elephant.measures import EDGES, background_gap
from curation.evaluation.problem import Detections, GroundTruth
from tests.evaluation import elephant_rows
from tests.evaluation.worlds import detections_of_rows, match, truth_of_rows

BOX = [100.0, 100.0, 100.0, 100.0]


def case(
    scores: list[float], background: list[float] | None, *, n_objects: int | None = None
) -> tuple[GroundTruth, Detections]:
    """One image an object of class cat, found exactly with each score; a class dog without anything."""
    n = len(scores) if n_objects is None else n_objects
    truth = truth_of_rows([(image, 0, BOX) for image in range(n)], max(n, len(scores)), ("cat", "dog"))
    detections = detections_of_rows([(image, 0, BOX, score) for image, score in enumerate(scores)])
    given = None if background is None else np.array(background, float)
    return truth, replace(detections, background_scores=given)


def spread(truth: GroundTruth, detections: Detections) -> dict[str, Any]:
    result = background_gap(truth, detections, match(truth, detections))
    return elephant_rows.background_gap(result or {}) or {}


def gaps_of(scores: list[float], background: list[float] | None, *, n_objects: int | None = None) -> dict[str, object]:
    truth, detections = case(scores, background, n_objects=n_objects)
    result = spread(truth, detections)
    cat: dict[str, object] = result["cat"]
    return cat


def test_edges_are_the_floats_nearest_to_the_decimals() -> None:
    assert EDGES.tolist() == [float(Fraction(k - 10, 10)) for k in range(21)]


def test_edges_belong_to_the_bin_above_and_1_to_the_last() -> None:
    def bins(gap: float) -> Any:
        return gaps_of([max(gap, 0.0)], [max(-gap, 0.0)])["hist20"]

    for k in range(20):
        expected = [0] * 20
        expected[k] = 1
        assert bins(EDGES[k]) == expected
        assert bins(np.nextafter(EDGES[k + 1], -2)) == expected
    assert bins(1.0)[19] == 1


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8))
def test_spread_equals_the_statistics_module(pairs: list[tuple[float, float]]) -> None:
    cat = gaps_of([p for p, _ in pairs], [b for _, b in pairs])
    gaps = [p - b for p, b in pairs]
    assert cat["n"] == len(gaps)
    assert cat["mean"] == pytest.approx(statistics.fmean(gaps), abs=1e-12)
    assert cat["std_population"] == pytest.approx(statistics.pstdev(gaps), abs=1e-9)
    sample = statistics.stdev(gaps) if len(gaps) > 1 else None
    assert cat["std_sample"] == (None if sample is None else pytest.approx(sample, abs=1e-9))
    assert cat["negative"] == sum(gap < 0 for gap in gaps)
    assert sum(cat["hist20"]) == len(gaps)  # type: ignore[call-overload]


def test_missing_background_scores_are_counted_and_left_out() -> None:
    cat = gaps_of([0.9, 0.8], [0.1, float("nan")])
    assert (cat["n"], cat["missing"], cat["mean"]) == (1, 1, pytest.approx(0.8))
