"""Error diagnosis: every kind by hand, a plain loop as oracle, and the hand-checked golden case."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.benchmarks.elephant.measures import HOIEM_SIMILAR, KINDS, at_ratio_1, error_kinds
from curation.evaluation.matching import thresholds
from curation.evaluation.problem import Detections, GroundTruth, Scene
from tests.evaluation import elephant_rows
from tests.evaluation.worlds import detections_of_rows as detections_of
from tests.evaluation.worlds import match, truth_of_rows

CLASSES = ("cat", "dog", "sofa", "tvmonitor")
CAT, DOG, SOFA, MONITOR = range(4)
BOX = (100.0, 100.0, 100.0, 100.0)
TENTH = (100.0, 100.0, 100.0, 10.0)  # IoU with BOX exactly 0.1
LESS = (100.0, 100.0, 100.0, 9.0)
FAR = (300.0, 300.0, 50.0, 50.0)


def truth_of(rows: list[Any], n_images: int) -> GroundTruth:
    """Rows of (image, label, box[, difficult])."""
    rows = sorted(rows, key=lambda row: row[0])
    difficult = np.array([len(row) > 3 and row[3] for row in rows], bool)
    return truth_of_rows(rows, n_images, CLASSES, difficult=difficult)


def run(
    closed: GroundTruth, found: Detections, wilderness: GroundTruth, wild: Detections, **options: Any
) -> dict[str, Any]:
    matches = match(closed, found)
    scene = Scene(closed, found, wilderness, wild)
    rows = error_kinds(scene, matches, thresholds(matches, found), at_ratio_1(scene), **options)
    return elephant_rows.diagnosis(rows)


def counted(**kinds: int) -> dict[str, int]:
    return dict.fromkeys(KINDS, 0) | kinds


NOTHING_WILD = (truth_of([], 0), detections_of([]))
OBJECTS = [(0, CAT, BOX), (1, DOG, BOX), (2, SOFA, BOX), (3, CAT, BOX, True), (4, CAT, FAR)]


def kinds_of_cats(rows: list[Any], **options: Any) -> dict[str, int]:
    """The kinds of cat detections above the one (image 0, score 0.2) that fixes the threshold."""
    closed = truth_of(OBJECTS, 6)
    result = run(closed, detections_of([*rows, (0, CAT, BOX, 0.2)]), *NOTHING_WILD, **options)
    counts: dict[str, int] = result["0.5"]["closed"]["per_class"]["cat"]
    counts["correct"] -= 1
    return counts


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ((4, CAT, FAR, 0.9), "correct"),
        ((0, CAT, TENTH, 0.9), "localization"),
        ((0, CAT, LESS, 0.9), "mixed_unknown"),
        ((1, CAT, BOX, 0.9), "similar"),
        ((1, CAT, TENTH, 0.9), "similar"),
        ((2, CAT, BOX, 0.9), "other"),
        ((2, CAT, LESS, 0.9), "mixed_unknown"),
        ((3, CAT, BOX, 0.9), "ignored"),
        ((3, CAT, TENTH, 0.9), "localization"),
        ((5, CAT, BOX, 0.9), "mixed_unknown"),
    ],
)
def test_each_kind(row: Any, kind: str) -> None:
    expected = counted(**{kind: 1})
    if kind == "correct":
        # Recall 1/2 is reached by this one alone: the threshold lies above the other detection.
        expected["correct"] = 0
    assert kinds_of_cats([row]) == expected


def test_a_duplicate_is_a_localization_error() -> None:
    closed = truth_of([(0, CAT, BOX), (1, CAT, BOX)], 2)
    found = detections_of([(0, CAT, BOX, 0.9), (0, CAT, BOX, 0.8), (1, CAT, BOX, 0.7)])
    matches = match(closed, found)
    points = thresholds(matches, found, (10,))
    result = elephant_rows.diagnosis(error_kinds(Scene(closed, found, *NOTHING_WILD), matches, points, None))
    assert result["1.0"]["closed"]["total"] == counted(correct=2, localization=1)
    assert result["1.0"]["wr1"] is None


def test_precedence_is_own_class_then_similar_then_other() -> None:
    everything = [(0, CAT, BOX), (0, DOG, BOX), (0, SOFA, BOX), (1, CAT, FAR), (2, SOFA, BOX), (2, DOG, BOX)]
    closed = truth_of(everything, 3)
    rows = [(0, CAT, TENTH, 0.9), (2, CAT, BOX, 0.8), (1, CAT, FAR, 0.7)]
    total = run(closed, detections_of(rows), *NOTHING_WILD)["0.5"]["closed"]["per_class"]["cat"]
    assert total == counted(correct=1, localization=1, similar=1)


def test_similar_sets_are_an_argument() -> None:
    on_sofa, on_dog = (2, CAT, BOX, 0.9), (1, CAT, BOX, 0.9)
    assert kinds_of_cats([on_sofa], similar=[["cat", "sofa"]])["similar"] == 1
    assert kinds_of_cats([on_dog], similar=[["cat", "sofa"]])["other"] == 1


def test_wilderness_counts_the_first_n_closed_images_only() -> None:
    closed = truth_of([(0, CAT, BOX)], 2)
    found = detections_of([(0, CAT, BOX, 0.5)])
    wilderness = truth_of([(0, -1, BOX), (2, -1, BOX)], 3)
    rows = [(0, CAT, TENTH, 0.9), (0, CAT, LESS, 0.9), (1, CAT, BOX, 0.5), (1, CAT, BOX, 0.49), (2, CAT, BOX, 0.9)]
    section = run(closed, found, wilderness, detections_of(rows))["0.3"]["wr1"]
    assert section["total"] == counted(correct=1, unknown_unknown=1, mixed_unknown=2)
    assert section["shares"]["total"]["mixed_unknown"] == 0.5


def test_class_that_never_reaches_the_recall_is_none_and_listed() -> None:
    closed = truth_of([(0, CAT, BOX), (1, DOG, BOX)], 2)
    section = run(closed, detections_of([(0, CAT, BOX, 0.5), (0, DOG, FAR, 0.9)]), *NOTHING_WILD)["0.3"]["closed"]
    assert section["per_class"]["dog"] is None
    assert section["shares"]["per_class"]["dog"] is None
    assert set(section["left_out"]) == {"dog", "sofa", "tvmonitor"}
    assert section["total"] == counted(correct=1)


def test_nothing_kept_has_no_shares() -> None:
    section = run(truth_of(OBJECTS, 6), detections_of([]), *NOTHING_WILD)["0.3"]["closed"]
    assert section["total"] == counted()
    assert section["shares"]["total"] is None


def test_hoiem_sets_are_the_published_ones() -> None:
    assert [len(members) for members in HOIEM_SIMILAR] == [7, 7, 3, 2]
    named = {name for members in HOIEM_SIMILAR for name in members}
    assert len(named) == 17
    assert not named & {"bottle", "pottedplant", "tvmonitor"}


def slow_iou(one: Any, two: Any) -> float:
    width = min(one[0] + one[2], two[0] + two[2]) - max(one[0], two[0])
    height = min(one[1] + one[3], two[1] + two[3]) - max(one[1], two[1])
    common = max(width, 0) * max(height, 0)
    return float(common / (one[2] * one[3] + two[2] * two[3] - common))


def slow_kind(row: Any, outcome: int, objects: list[Any], similar: set[tuple[int, int]], *, wild: bool) -> str:
    near = [other for other in objects if other[0] == row[0] and slow_iou(row[2], other[2]) >= 0.1]
    if wild:
        return "unknown_unknown" if near else "mixed_unknown"
    if outcome:
        return "correct" if outcome == 1 else "ignored"
    if any(other[1] == row[1] for other in near):
        return "localization"
    if any((row[1], other[1]) in similar for other in near):
        return "similar"
    return "other" if any(other[1] >= 0 for other in near) else "mixed_unknown"


boxes = st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(5, 60), st.integers(5, 60))
known = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), boxes, st.booleans()), max_size=10)
unknown = st.lists(st.tuples(st.integers(0, 5), st.just(-1), boxes), max_size=8)
found_rows = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), boxes, st.sampled_from([0.2, 0.4, 0.6, 0.8])), max_size=20
)


@settings(max_examples=80)
@given(known, found_rows, unknown, found_rows)
def test_equals_a_plain_loop_and_shares_sum_to_1(
    objects: list[Any], rows: list[Any], unknowns: list[Any], wild_rows: list[Any]
) -> None:
    rows = rows + [(image, label, box, 0.5) for image, label, box, _ in objects[:4]]
    objects = sorted(objects, key=lambda row: row[0])
    closed, found = truth_of(objects, 4), detections_of(rows)
    matches = match(closed, found)
    points = thresholds(matches, found)
    scene = Scene(closed, found, truth_of(unknowns, 6), detections_of(wild_rows))
    result = elephant_rows.diagnosis(error_kinds(scene, matches, points, at_ratio_1(scene)))
    similar = {(CAT, DOG), (DOG, CAT)}
    for number, recall in enumerate(("0.1", "0.3", "0.5")):
        limit = points.threshold[number]
        expected = {name: counted() for name in CLASSES}
        for k, row in enumerate(rows):
            if row[3] >= limit[row[1]]:
                expected[CLASSES[row[1]]][slow_kind(row, int(matches.outcome[k]), objects, similar, wild=False)] += 1
        compare(result[recall]["closed"], expected, limit)
        for row in wild_rows:
            if row[3] >= limit[row[1]] and row[0] < 4:
                expected[CLASSES[row[1]]][slow_kind(row, 0, unknowns, similar, wild=True)] += 1
        compare(result[recall]["wr1"], expected, limit)


def compare(section: dict[str, Any], expected: dict[str, dict[str, int]], limit: Any) -> None:
    for label, name in enumerate(CLASSES):
        assert section["per_class"][name] == (None if np.isnan(limit[label]) else expected[name])
    for shares in (*section["shares"]["per_class"].values(), section["shares"]["total"]):
        assert shares is None or sum(shares.values()) == pytest.approx(1, abs=1e-12)
