from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.benchmarks.registry import variants_of
from curation.evaluation.matching import overlapping_pairs, pair_intersection, pair_iou
from curation.evaluation.open_world import TaskScene
from curation.evaluation.problem import Detections, GroundTruth
from tests.evaluation.owod_cases import cases, detections_of, match_free, truth_of
from tests.evaluation.owod_reference import Case
from tests.evaluation.worlds import detections_of_rows, truth_of_rows
from tests.worlds.boxes import Guess, Thing

PROFILES = {one.name: one for one in variants_of("owod")}


def one_class(objects: list[Any], boxes: list[Any], scores: list[float]) -> tuple[GroundTruth, Detections]:
    """One image, one class; objects are boxes, or boxes and ``crowd``."""
    truth = truth_of_rows(
        [(0, 0, box[:4]) for box in objects], 1, ("a",), crowd=np.array([len(box) > 4 for box in objects], bool)
    )
    return truth, detections_of_rows([(0, 0, *one) for one in zip(boxes, scores, strict=True)])


def test_a_taken_object_leaves_the_next_best_one() -> None:
    apples = [(100, 100, 60, 60), (110, 100, 60, 60)]
    outcome, taken = match_free(*one_class(apples, [(101, 100, 60, 60), (103, 100, 60, 60)], [0.62, 0.58]))
    assert (outcome.tolist(), taken.tolist()) == ([1, 1], [0, 1])


def one_by_one(truth: GroundTruth, detections: Detections) -> list[int]:
    taken = [-1] * len(detections)
    for row in np.argsort(-detections.scores, kind="stable").tolist():
        overlap = pair_iou(np.repeat(detections.boxes[[row]], len(truth.boxes), axis=0), truth.boxes)
        free = [k for k in range(len(truth.boxes)) if k not in taken and overlap[k] >= 0.5]
        if free:
            taken[row] = max(free, key=lambda k: (overlap[k], -k))
    return taken


@given(data=st.data())
def test_crowded_images_match_as_one_by_one(data: st.DataObject) -> None:
    box = st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(4, 8), st.integers(4, 6))
    objects = data.draw(st.lists(box, max_size=8))
    boxes = data.draw(st.lists(box, max_size=12))
    scores = data.draw(st.lists(st.sampled_from((0.1, 0.5, 0.9)), min_size=len(boxes), max_size=len(boxes)))
    truth, detections = one_class(objects, boxes, scores)
    assert match_free(truth, detections)[1].tolist() == one_by_one(truth, detections)


def test_leftovers_half_inside_a_crowd_region_of_their_class_are_ignored() -> None:
    crowd = (0, 0, 300, 200, "crowd")
    boxes = [(20, 20, 40, 40), (280, 0, 40, 40), (281, 0, 40, 40), (0, 0, 30, 30)]
    truth, detections = one_class([crowd, (0, 0, 30, 30)], boxes, [0.9, 0.8, 0.7, 0.6])
    # The last is right, though it lies in the crowd too.
    assert match_free(truth, detections)[0].tolist() == [-1, -1, 0, 1]


def test_boxes_of_voc_xml_are_the_corners_of_the_file() -> None:
    # xmin 101, xmax 102 in the file: continuous 100 to 102. The official evaluator sees just that, and IoU 1.
    two = (Decimal(100), Decimal(100), Decimal(2), Decimal(2))
    case = Case((), ("dog",), (1,), (Thing(1, "dog", two),), (Guess(1, "dog", two, Decimal("0.75")),))
    truth = truth_of(case)
    from_xml = replace(truth, voc_corners=np.ones(1, bool))
    detections = detections_of(case, truth)
    assert TaskScene(truth, detections, PROFILES["ore"]).outcomes.outcome.tolist() == [0]
    assert TaskScene(from_xml, detections, PROFILES["ore"]).outcomes.outcome.tolist() == [1]


@given(case=cases())
def test_pairs_are_all_that_overlap_enough(case: Case) -> None:
    truth = truth_of(case).truth
    detections = detections_of(case, truth_of(case))
    mask = ~truth.crowd
    pairs = overlapping_pairs(truth, detections, same_class=False, mask=mask, iou_threshold=0.3, strict=True)
    row, position = np.nonzero((detections.image[:, None] == truth.image) & mask)
    enough = pair_iou(detections.boxes[row], truth.boxes[position]) > 0.3
    assert list(zip(pairs.row, pairs.position, strict=True)) == list(zip(row[enough], position[enough], strict=True))
    boxes = detections.boxes[pairs.row], truth.boxes[pairs.position]
    common = pair_intersection(*boxes)
    union = boxes[0][:, 2] * boxes[0][:, 3] + boxes[1][:, 2] * boxes[1][:, 3] - common
    assert pairs.iou == pytest.approx(common / union)
