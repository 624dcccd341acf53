import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.evaluation.class_scores import ClassScores, class_scores
from curation.evaluation.oscr import (
    OscrCurve,
    auroc_of,
    class_rates,
    margins_of,
    oscr,
    oscr_curve,
    point_at_fpr,
    read_query,
)
from tests.evaluation import oscr_cases
from tests.evaluation.oscr_cases import BACKGROUND, LABELS, SOFTMAX, table

VARIANTS = ("exact", "paper", "comparison")
GROUPS = {"negative": -1, "unknown": -2}
FPR = ("0", ".1", ".25", ".5", ".75", "1")


def ccr_at_fpr(curve: OscrCurve, query: str) -> float | None:
    point = point_at_fpr(curve, query)
    return None if point is None else float(curve.ccr[point])


def example(*, background: bool = False) -> ClassScores:
    scores = table(BACKGROUND if background else SOFTMAX)
    return class_scores(LABELS, scores, kind="probabilities", background="last" if background else "none")


# Every cell of the table in the specification, by hand.
@pytest.mark.parametrize(
    ("background", "group", "grid", "expected"),
    [
        (False, "negative", "exact", (0.25, 0.25, 0.625, 0.75, 0.75, 0.75)),
        (False, "negative", "paper", (None, None, 0.625, 0.75, None, 0.75)),
        (False, "unknown", "exact", (0, 0, 0.25, 0.625, 0.75, 0.75)),
        (False, "unknown", "paper", (None, None, 0.25, 0.625, 0.75, 0.75)),
        (True, "unknown", "exact", (0, 0, 0.25, 0.75, 0.75, 0.75)),
        (True, "unknown", "table2", (None, None, 0.25, None, 0.625, 0.75)),
    ],
)
def test_the_worked_example(background: bool, group: str, grid: str, expected: tuple[float | None, ...]) -> None:
    result = oscr(example(background=background), group, variant=grid, queries=FPR)  # type: ignore[arg-type]
    assert [(row["fpr"], row["CCR"]) for row in result] == list(zip(FPR, expected, strict=True))
    assert all((row["CCR"] is None) == bool(row["undefined"]) for row in result)


def test_the_worked_example_by_the_comparison_code() -> None:
    # Highest scores of the unknown: 1, .75, .5, .375; CCR >= each: 1/8, 4/8, 6/8 (2, 4, 5, 7, 8, 1), 6/8.
    curve = oscr_curve(margins_of(example(), "unknown"), "comparison")
    assert curve is not None
    assert curve.thresholds.tolist() == [0.375, 0.5, 0.75, 1]
    assert curve.ccr.tolist() == [0.75, 0.75, 0.5, 0.125]
    assert curve.fpr.tolist() == [1, 0.75, 0.5, 0.25]
    rates = {query: ccr_at_fpr(curve, query) for query in ("0", "0.25", "0.26", "0.5", "1")}
    # Strictly below: at 1 the rate is 3/4, at 1/4 there is nothing.
    assert rates == {"0": None, "0.25": None, "0.26": 0.125, "0.5": 0.125, "1": 0.75}


def test_auroc_of_the_worked_example_and_of_the_official_code() -> None:
    data = example()
    assert auroc_of(data, "negative")["AUROC"] == 0.765625
    unknown = auroc_of(data, "unknown")
    assert unknown["AUROC"] == 0.53125
    assert unknown["AUROC_rest_as_known"] == pytest.approx(0.4479, abs=5e-5)


def test_rates_in_whole_samples() -> None:
    # 0.1 * 30 is 3.0000000000000004 in floats, and 0.7 * 10 is 7.000000000000001 or 6.999...: neither may decide.
    data = class_scores([0] * 30 + [-2] * 30, [[float(k)] for k in range(30)] * 2)
    for k in range(31):
        query = f"{k / 30:.12f}"[:12]
        allowed = math.floor(Fraction(query) * 30)
        curve = oscr_curve(margins_of(data, "unknown"))
        assert curve is not None
        assert ccr_at_fpr(curve, query) == allowed / 30
    assert ccr_at_fpr(curve, "0.1") == 3 / 30


def test_saturated_scores_tell_the_smallest_rate() -> None:
    data = class_scores([0] * 4 + [-2] * 4, [[1.0], [1.0], [0.5], [0.2], [1.0], [1.0], [1.0], [0.1]])
    result = oscr(data, "unknown", queries=("0.1", "0.75", "1"))
    assert [row["CCR"] for row in result] == [0.0, 1.0, 1.0]
    assert {row["smallest_fpr"] for row in result} == {0.75}
    assert (result[-1]["threshold"], result[-1]["reached_fpr"]) == (None, 1.0)


def test_macro_and_class_rates() -> None:
    # Class 0: one of two right above 0.5; class 1: none of one; class 2 has no samples.
    scores = [[0.75, 0, 0], [0.5, 0, 0], [0.9, 0, 0], [0.5, 0, 0]]
    data = class_scores([0, 0, 1, -2], scores)
    curve = oscr_curve(margins_of(data, "unknown"))
    assert curve is not None
    assert class_rates(data, curve, point_at_fpr(curve, "0")) == [0.5, 0.0, None]
    result = oscr(data, "unknown", queries=("0", "1"))
    assert [row["macro_CCR"] for row in result] == [0.25, 0.5]
    assert [row["CCR"] for row in result] == [1 / 3, 2 / 3]


@pytest.mark.parametrize(
    ("text", "value"), [("1e-3", "1/1000"), (".25", "1/4"), ("1.", "1"), ("0", "0"), ("1E-2", "1/100")]
)
def test_queries_are_read_exactly(text: str, value: str) -> None:
    assert read_query(text) == Fraction(value)


# Few distinct scores, so that ties of every kind are common.
score = st.integers(0, 6).map(lambda number: number / 4)
cases = st.integers(1, 4).flatmap(
    lambda k: st.lists(
        st.tuples(st.integers(-2, k - 1), st.lists(score, min_size=k, max_size=k)), min_size=1, max_size=25
    )
)
queries = st.sampled_from(["0.01", "0.1", "0.2", "0.25", "0.5", "0.7", "1"])


def read(case: list[tuple[int, list[float]]]) -> ClassScores:
    return class_scores([label for label, _ in case], [row for _, row in case])


@given(cases, st.sampled_from(VARIANTS), st.sampled_from(sorted(GROUPS)), queries)
def test_equals_counting_at_every_threshold(
    case: list[tuple[int, list[float]]], grid: str, group: str, query: str
) -> None:
    data = read(case)
    labels, scores = zip(*case, strict=True)
    known, other = oscr_cases.samples(labels, scores, len(scores[0]), GROUPS[group])
    curve = oscr_curve(margins_of(data, group), grid)  # type: ignore[arg-type]
    points = oscr_cases.curve(known, other, grid) if known and other else []
    if not points:
        assert curve is None
        return
    assert curve is not None
    assert ccr_at_fpr(curve, query) == pytest.approx(oscr_cases.ccr_at(points, float(query), grid))
    if grid != "exact":
        assert list(zip(curve.thresholds, curve.ccr, curve.fpr, strict=True)) == points
    highest = [max(row) for label, row in case if label >= 0]
    assert auroc_of(data, group)["AUROC"] == pytest.approx(oscr_cases.pairs_auroc(highest, other))


@given(cases, st.sampled_from(["exp", "affine", "cube"]), st.sampled_from(VARIANTS))
def test_increasing_transforms_change_no_rate(case: list[tuple[int, list[float]]], name: str, grid: str) -> None:
    transform = {"exp": np.exp, "affine": lambda x: 4 * x - 9, "cube": lambda x: (x - 1) ** 3}[name]
    moved = [(label, transform(np.array(row)).tolist()) for label, row in case]
    for group in GROUPS:
        one, other = (
            oscr(read(each), group, variant=grid, queries=FPR)  # type: ignore[arg-type]
            for each in (case, moved)
        )
        for row in (*one, *other):
            del row["threshold"]
        assert one == other


@given(cases, st.randoms(use_true_random=False))
def test_order_and_the_other_group_do_not_matter(case: list[tuple[int, list[float]]], random: object) -> None:
    shuffled = list(case)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for group, label in GROUPS.items():
        alone = [one for one in case if one[0] >= 0 or one[0] == label]
        for grid in VARIANTS:
            whole = oscr(read(case), group, variant=grid)  # type: ignore[arg-type]
            assert oscr(read(shuffled), group, variant=grid) == whole  # type: ignore[arg-type]
            if alone:
                assert oscr(read(alone), group, variant=grid) == whole  # type: ignore[arg-type]
