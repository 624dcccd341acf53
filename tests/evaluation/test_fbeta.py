"""F-beta operating points: the arithmetic of Table 4, a hand-checked case, and a plain search as oracle."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.benchmarks.elephant.measures import f_beta, fbeta_operating_points
from curation.evaluation.problem import Detections, GroundTruth, Scene
from tests.evaluation import elephant_rows
from tests.evaluation.worlds import detections_of_rows, match, truth_of_rows
from tests.real_files import provided, real_files

BOX = [100.0, 100.0, 100.0, 100.0]


def truth_of(objects: list[tuple[int, int]], n_images: int) -> GroundTruth:
    """Objects as (image, label), all with the same box."""
    return truth_of_rows([(*one, BOX) for one in objects], n_images, ("cat", "dog"))


def detections_of(rows: list[tuple[int, int, float]]) -> Detections:
    """Detections as (image, label, score), all with the box of the objects."""
    return detections_of_rows([(image, label, BOX, score) for image, label, score in rows])


def points(
    closed: GroundTruth, found: Detections, wilderness: GroundTruth, wild: Detections, **options: Any
) -> dict[str, Any]:
    rows = fbeta_operating_points(Scene(closed, found, wilderness, wild), match(closed, found), **options)
    return elephant_rows.fbeta(rows)


@provided
def table_4(shared: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(
        (shared / "golden/elephant/published_tables.json").read_text(encoding="utf-8")
    )["rows"]
    assert len(rows) == 54
    return rows


@real_files("held")
def check_table_4_columns_for_beta_1_and_1_5_are_right(table_4: list[dict[str, Any]]) -> None:
    rows = [row for row in table_4 if row["beta"] != 0.5]
    assert len(rows) == 36
    for row in rows:
        f = f_beta(row["TP"], row["TP_plus_FP"], row["n_gt"], str(row["beta"]))
        assert f == pytest.approx(row["F_printed"], abs=0.005 + 1e-9)


@real_files("held")
def check_table_4_column_for_beta_half_lacks_the_denominator(table_4: list[dict[str, Any]]) -> None:
    rows = [row for row in table_4 if row["beta"] == 0.5]
    assert len(rows) == 18
    for row in rows:
        counts = (row["TP"], row["TP_plus_FP"], row["n_gt"], "0.5")
        assert f_beta(*counts, formula="published") == pytest.approx(row["F_printed"], abs=0.005 + 1e-9)
        assert f_beta(*counts) == pytest.approx(row["F_true"], abs=5e-5)
        assert abs((f_beta(*counts) or 0) - row["F_printed"]) > 0.005


def test_table_4_choice_at_ratio_1_and_beta_half_is_not_the_best() -> None:
    """The 159-TP point has at most 211 kept detections at ratio 1.0 (it has 211 at ratio 1.5)."""
    chosen, better = f_beta(180, 254, 244, "0.5"), f_beta(159, 211, 244, "0.5")
    assert chosen is not None
    assert better is not None
    assert better > chosen


def test_table_4_choices_follow_the_correct_formula() -> None:
    """At ratio 0 the table picks 189/215 for b = 0.5, though its own 210/265 is higher by the printed formula."""
    assert (f_beta(189, 215, 244, "0.5") or 0) > (f_beta(210, 265, 244, "0.5") or 0)
    printed = [f_beta(tp, kept, 244, "0.5", formula="published") or 0 for tp, kept in ((189, 215), (210, 265))]
    assert printed[0] < printed[1]


def test_equal_f_takes_the_highest_threshold() -> None:
    """1 of 2 objects with 1 kept, and 2 of 2 with 4 kept: F1 is 2/3 at both thresholds."""
    closed = truth_of([(0, 0), (1, 0)], 4)
    found = detections_of([(0, 0, 0.9), (2, 0, 0.8), (3, 0, 0.7), (1, 0, 0.6)])
    best = points(closed, found, truth_of([], 0), detections_of([]), ratios=("0.0",), betas=("1.0",))
    assert best["cat"]["0.0"]["1.0"] == {
        "F": pytest.approx(2 / 3),
        "precision": 1.0,
        "recall": 0.5,
        "threshold": 0.9,
        "TP": 1,
        "FP": 0,
        "n": 2,
    }
    assert best["dog"]["0.0"]["1.0"]["F"] is None
    assert "no ground truth" in best["dog"]["0.0"]["1.0"]["reason"]


rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1), st.sampled_from([0.1, 0.2, 0.3, 0.4])), max_size=15)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), max_size=8).map(sorted),
    rows,
    rows,
    st.sampled_from(["0.0", "0.4", "0.5", "1.0"]),
    st.sampled_from(["0.5", "0.7", "1.0"]),
)
def test_equals_a_search_over_all_thresholds(
    objects: list[Any], closed_rows: list[Any], wild_rows: list[Any], ratio: str, beta: str
) -> None:
    closed, wilderness = truth_of(objects, 6), truth_of([], 6)
    found, wild = detections_of(closed_rows), detections_of(wild_rows)
    outcome = match(closed, found).outcome
    best = points(closed, found, wilderness, wild, ratios=(ratio,), betas=(beta,))
    size = int(Fraction(ratio) * 6)
    for label, name in enumerate(closed.classes):
        n = sum(row[1] == label for row in objects)
        ranked = [(row[2], int(outcome[k])) for k, row in enumerate(closed_rows) if row[1] == label]
        ranked += [(row[2], 0) for row in wild_rows if row[1] == label and row[0] < size]
        candidates = []
        for threshold in sorted({score for score, _ in ranked}):
            kept = [hit for score, hit in ranked if score >= threshold]
            square = Fraction(beta) ** 2
            candidates.append(((1 + square) * sum(kept) / (len(kept) + square * n), threshold))
        cell = best[name][ratio][beta]
        if n == 0 or not candidates:
            assert cell["F"] is None
        else:
            f, threshold = max(candidates)
            assert (cell["F"], cell["threshold"]) == (pytest.approx(float(f), abs=1e-12), threshold)
