"""Kappa against hand calculation, scikit-learn, and the worked example of Fleiss' formula."""

import warnings
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.review.decisions.agreement import agreement, cohen_kappa, count_lists, fleiss_kappa
from curation.review.decisions.decision import Decision

FLEISS = """
0 0 0 0 14
0 2 6 4 2
0 0 3 5 6
0 3 9 2 0
2 2 8 1 1
7 7 0 0 0
3 2 6 3 0
2 5 3 2 2
6 5 2 1 0
0 2 2 3 7
"""
"""Ten subjects, fourteen raters, five categories: the example that accompanies Fleiss' formula; kappa 0.210."""

PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30)


def spread(counts: list[int]) -> list[int]:
    return [label for label, n in enumerate(counts) for _ in range(n)]


def test_the_worked_example_of_fleiss() -> None:
    table = [[int(one) for one in line.split()] for line in FLEISS.split("\n") if line]
    found = fleiss_kappa(spread(row) for row in table)
    # Independently, from the formula as printed, for equal numbers of raters.
    n_items, n = len(table), 14
    shares = [Fraction(sum(row[j] for row in table), n_items * n) for j in range(5)]
    mean = sum(Fraction(sum(k * k for k in row) - n, n * (n - 1)) for row in table) / n_items
    chance = sum(share**2 for share in shares)
    assert found.value == float((mean - chance) / (1 - chance))
    assert found.value == pytest.approx(0.210, abs=5e-4)
    assert (found.observed, found.expected) == (pytest.approx(0.378, abs=5e-4), pytest.approx(0.213, abs=5e-4))
    assert (found.items, found.left_out, found.raters) == (10, 0, (14, 14))


@given(PAIRS)
def test_cohen_is_scikit_learns(pairs: list[tuple[str, str]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    found = cohen_kappa(first, second)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = metrics.cohen_kappa_score(first, second)
    if found.value is None:
        assert len({*first, *second}) == 1
    else:
        assert found.value == pytest.approx(other, abs=1e-12)
    assert cohen_kappa(second, first).value == found.value


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=12))
def test_fleiss_with_unequal_numbers_counts_pairs_of_verdicts(ratings: list[list[str]]) -> None:
    counted = [one for one in ratings if len(one) > 1]
    found = fleiss_kappa(ratings)
    assert (found.items, found.left_out) == (len(counted), len(ratings) - len(counted))
    labels = [label for one in counted for label in one]
    if len(set(labels)) < 2:
        assert found.value is None
        assert found.reason
        return
    agreeing = [
        Fraction(
            sum(one[i] == one[j] for i in range(len(one)) for j in range(len(one)) if i != j), len(one) * (len(one) - 1)
        )
        for one in counted
    ]
    observed = sum(agreeing) / len(counted)
    expected = sum(Fraction(labels.count(label), len(labels)) ** 2 for label in set(labels))
    assert found.value == float((observed - expected) / (1 - expected))
    assert found.raters == (min(map(len, counted)), max(map(len, counted)))
    assert found.value <= 1


def test_what_is_undefined_says_why() -> None:
    assert (cohen_kappa([], []).value, cohen_kappa([], []).reason) == (None, "no image was judged by both")
    same = cohen_kappa(["keep"] * 3, ["keep"] * 3)
    assert same.value is None
    assert "chance" in same.reason
    assert fleiss_kappa([["a"], []]).reason == "no image was judged by two reviewers"
    with pytest.raises(ValueError, match="3 and 2"):
        cohen_kappa("abc", "ab")


def verdict(image: int, reviewer: str, action: str, stage: str = "manual") -> Decision:
    return Decision(
        image_id=f"a:{image}",
        dataset="a",
        stage=stage,
        action=action,
        reviewer=reviewer,  # type: ignore[arg-type]
    )


def test_agreement_by_stage_of_named_reviewers() -> None:
    rows = [
        *(verdict(one, "anna", "keep") for one in range(4)),
        *(verdict(one, "ben", "keep" if one else "remove") for one in range(4)),
        verdict(0, "cleo", "remove"),
        verdict(9, "", "keep"),
        verdict(1, "anna", "reject", "candidate"),
    ]
    (manual,) = agreement(rows)
    assert manual.stage == "manual"
    assert [(one.first, one.second, one.images, one.same) for one in manual.pairs] == [
        ("anna", "ben", 4, 3),
        ("anna", "cleo", 1, 0),
        ("ben", "cleo", 1, 1),
    ]
    assert manual.fleiss is not None
    assert (manual.fleiss.items, manual.fleiss.raters) == (4, (2, 3))
    (two,) = agreement(rows[:8])
    assert two.fleiss is None
    assert agreement(rows[:4]) == ()


def test_lists_count_rows_images_and_repeats_of_one_reviewer() -> None:
    rows = [
        verdict(1, "anna", "keep"),
        verdict(1, "ben", "keep"),
        verdict(2, "anna", "keep"),
        verdict(2, "anna", "keep"),
    ]
    rows += [verdict(3, "", "reject", "candidate"), verdict(3, "", "keep", "auto_override")]
    lists = count_lists(rows)
    assert [one.stage for one in lists] == ["auto_override", "manual", "candidate"]
    assert (lists[1].listed, lists[1].unique, lists[1].repeated) == (4, 2, ("a:2",))
    assert lists[1].reasons == {"": (4, 2)}
