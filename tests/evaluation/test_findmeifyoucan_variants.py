import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from curation.benchmarks.findmeifyoucan.measures import (
    VARIANTS,
    OpenSetOutcomes,
    open_set_counts,
    open_set_outcomes,
    open_set_rates,
    unknown_detections,
    why_zero,
)
from tests.evaluation.ood_reference import EXAMPLE, EXPECTED, Found, OodWorld, open_set
from tests.evaluation.ood_worlds import columns, ood_worlds


def outcomes(world: OodWorld, threshold: float, variant: str) -> OpenSetOutcomes:
    truth, detections = columns(world)
    unknown = unknown_detections(detections, "s", threshold)
    return open_set_outcomes(truth, detections, unknown, VARIANTS[variant])


def metrics(world: OodWorld, threshold: float, variant: str) -> dict[str, Any]:
    one = outcomes(world, threshold, variant)
    n, unknown = len(one.unknown), int(one.unknown.sum())
    counts = {"n_det": n, "n_det_unknown": unknown, "n_det_known": n - unknown}
    return {**counts, **open_set_counts(one), **open_set_rates(one)}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("threshold", [5.0, 13.5 - 1.645 * (399 / 12) ** 0.5])
def test_the_worked_example(variant: str, threshold: float) -> None:
    found = metrics(EXAMPLE, threshold, variant)
    assert {name: found[name] for name in EXPECTED[variant]} == pytest.approx(EXPECTED[variant], abs=1e-12)
    # The loops that the random cases are compared with give the same.
    assert open_set(EXAMPLE, threshold, variant) == pytest.approx(EXPECTED[variant], abs=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
@given(ood_worlds())
def test_every_number_is_that_of_plain_loops(variant: str, world: OodWorld) -> None:
    found = metrics(world, 0.5, variant)
    for name, value in open_set(world, 0.5, variant).items():
        if math.isnan(value):
            assert found[name] is None
        else:
            assert found[name] == pytest.approx(value, abs=1e-9), name
    # And what must hold of any numbers.
    n = found["n_unknown_gt"]
    assert n == found["TP_U"] + found["objects_misclassified"] + found["objects_ignored"]
    assert found["objects_ignored"] >= 0
    assert found["objects_misclassified"] <= found["AOSE"] <= found["n_det_known"]
    if n:
        assert 0 <= found["AP_U"] <= found["R_U"] + 1e-9
        assert 0 <= found["R_U"] <= 100
        assert found["nOSE"] >= 0
        assert variant == "official" or found["nOSE"] <= 100
        assert 0 <= found["P_U"] <= 100


@given(ood_worlds())
def test_continuous_boxes_find_what_pixels_find(world: OodWorld) -> None:
    # On images with objects the paper's reading calls the same detections unknown; only matching differs.
    official, paper = (outcomes(world, 0.5, name) for name in ("official", "paper"))
    assert np.array_equal(official.unknown, paper.unknown)
    assert np.array_equal(official.target >= 0, paper.target >= 0)
    assert (official.counted <= paper.counted).all()


def test_nose_of_the_code_may_exceed_100() -> None:
    world = OodWorld({1: [(0, 0, 10, 10)]}, {1: [Found((0, 0, 10, 10), 0.9, 9.0)] * 3}, [1.0])
    assert metrics(world, 5, "official")["nOSE"] == 300
    assert metrics(world, 5, "paper")["nOSE"] == 100


def test_no_second_best_object_is_tried() -> None:
    # Both detections are nearest to the first object; the second one also overlaps the other by 0.6.
    world = OodWorld(
        {1: [(0, 0, 10, 10), (0, 2, 10, 10)]},
        {1: [Found((0, 0, 10, 10), 0.9, 0.0), Found((0, 0.5, 10, 10.5), 0.8, 0.0)]},
    )
    assert metrics(world, 1, "paper")["TP_U"] == 1
    assert metrics(world, 1, "paper")["FP_U"] == 1


def test_a_known_detection_on_a_found_object_counts_for_aose_alone() -> None:
    box = (0.0, 0.0, 10.0, 10.0)
    world = OodWorld({1: [box]}, {1: [Found(box, 0.9, 0.0), Found(box, 0.95, 9.0)]})
    for variant in VARIANTS:
        found = metrics(world, 1, variant)
        assert (found["TP_U"], found["AOSE"], found["objects_misclassified"]) == (1, 1, 0)


def test_zero_is_explained_and_undefined_is_none() -> None:
    box = (0.0, 0.0, 10.0, 10.0)
    cases = {
        "no detections": OodWorld({1: [box]}, {}),
        "no detection is called unknown": OodWorld({1: [box]}, {1: [Found(box, 0.9, 9.0)]}),
        "no unknown detection matches": OodWorld({1: [box]}, {1: [Found((50, 50, 60, 60), 0.9, 0.0)]}),
    }
    for reason, world in cases.items():
        found = metrics(world, 1, "official")
        assert (found["P_U"], found["R_U"], found["AP_U"]) == (0, 0, 0)
        assert reason in why_zero(outcomes(world, 1, "official"))[0]
    empty = metrics(OodWorld({1: []}, {1: [Found(box, 0.9, 0.0)]}), 1, "official")
    assert empty["R_U"] is empty["AP_U"] is empty["nOSE"] is None
