"""Confusion matrix: hand-checked cells, a plain loop as oracle, and the golden case."""

from collections import Counter, defaultdict
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.benchmarks.elephant.measures import at_ratio_1, class_overlaps, error_kinds
from curation.evaluation.matching import OperatingPoints
from curation.evaluation.problem import GroundTruth, Scene
from tests.evaluation import elephant_rows
from tests.evaluation.worlds import detections_of_rows as detections_of
from tests.evaluation.worlds import match, truth_of_rows

CLASSES = ("cat", "dog")
BOX = (100.0, 100.0, 100.0, 100.0)
HALF = (100.0, 100.0, 100.0, 50.0)
FAR = (300.0, 300.0, 50.0, 50.0)


def truth_of(rows: list[Any], n_images: int, *, named: bool = True) -> GroundTruth:
    """Rows of (image, label, box, original class, flag); the flag sets crowd and difficult."""
    rows = sorted(rows, key=lambda row: row[0])
    flags = np.array([row[4] for row in rows], bool)
    original = tuple(row[3] for row in rows) if named else None
    return truth_of_rows(rows, n_images, CLASSES, crowd=flags, difficult=flags, original=original)


def points_at(*limits: float) -> OperatingPoints:
    zeros = np.zeros((1, len(limits)), np.int64)
    return OperatingPoints((3,), np.array([limits]), zeros, zeros)


def confusion(scene: Scene, points: OperatingPoints) -> dict[str, Any]:
    rows = error_kinds(scene, match(scene.closed, scene.inside), points, at_ratio_1(scene), similar=[])
    return elephant_rows.confusion(class_overlaps(scene, points, at_ratio_1(scene)), rows)


CLOSED = truth_of([(0, 0, BOX, "", False), (1, 1, BOX, "", True)], 2)
WILD = truth_of([(0, -1, BOX, "zebra", True), (0, -1, HALF, "bear", False), (1, -1, BOX, "", False)], 3)


def test_cells_by_hand() -> None:
    found = detections_of([(0, 0, BOX, 0.9), (1, 0, BOX, 0.5), (0, 1, FAR, 0.6), (0, 1, BOX, 0.4)])
    wild = detections_of([(0, 0, BOX, 0.9), (0, 0, HALF, 0.9), (1, 1, BOX, 0.9), (2, 1, BOX, 0.9)])
    result = confusion(Scene(CLOSED, found, WILD, wild), points_at(0.5, 0.5))["0.3"]
    assert result["closed"] == {"confusion": {"cat": {"cat": 1, "dog": 1}}, "background": {"cat": 0, "dog": 1}}
    assert result["wr1"] == {
        "confusion": {"cat": {"cat": 1, "dog": 1, "bear": 1, "zebra": 1}, "dog": {"unknown": 1}},
        "background": {"cat": 0, "dog": 1},
    }


def slow_iou(one: Any, two: Any) -> float:
    width = min(one[0] + one[2], two[0] + two[2]) - max(one[0], two[0])
    height = min(one[1] + one[3], two[1] + two[3]) - max(one[1], two[1])
    common = max(width, 0) * max(height, 0)
    return float(common / (one[2] * one[3] + two[2] * two[3] - common))


def slow_cells(rows: list[Any], objects: list[Any], counts: dict[str, Counter[str]], n_images: int) -> None:
    for row in rows:
        near = [(slow_iou(row[2], other[2]), -k) for k, other in enumerate(objects) if other[0] == row[0]]
        best, k = max(near, default=(0.0, 0))
        if row[3] < 0.5 or row[0] >= n_images:
            continue
        other = objects[-k] if near else None
        name = (CLASSES[other[1]] if other[1] >= 0 else other[3]) if other and best >= 0.1 else "(background)"
        counts[CLASSES[row[1]]][name] += 1


boxes = st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(5, 60), st.integers(5, 60))
names = st.sampled_from(["bear", "zebra", "kite"])


def objects_of(labels: st.SearchStrategy[int], n_images: int) -> st.SearchStrategy[list[Any]]:
    row = st.tuples(st.integers(0, n_images - 1), labels, boxes, names, st.booleans())
    return st.lists(row, max_size=9).map(lambda rows: sorted(rows, key=lambda one: one[0]))


def found_on(n_images: int) -> st.SearchStrategy[list[Any]]:
    scores = st.sampled_from([0.4, 0.5, 0.9])
    return st.lists(st.tuples(st.integers(0, n_images - 1), st.integers(0, 1), boxes, scores), max_size=15)


@settings(max_examples=80)
@given(objects_of(st.integers(0, 1), 3), found_on(3), objects_of(st.just(-1), 4), found_on(4))
def test_equals_a_plain_loop(objects: list[Any], rows: list[Any], unknowns: list[Any], wild: list[Any]) -> None:
    closed, wilderness = truth_of(objects, 3), truth_of(unknowns, 4)
    result = confusion(Scene(closed, detections_of(rows), wilderness, detections_of(wild)), points_at(0.5, 0.5))["0.3"]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for section, part, found in (("closed", objects, rows), ("wr1", unknowns, wild)):
        slow_cells(found, part, counts, 3)
        obtained = {name: Counter(result[section]["confusion"].get(name, {})) for name in CLASSES}
        for name in CLASSES:
            obtained[name]["(background)"] = result[section]["background"][name]
            assert obtained[name] == counts[name]
