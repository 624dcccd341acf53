"""Kappa against hand calculation, scikit-learn, and the worked example of Fleiss' formula."""

import warnings
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.review.decisions.agreement import accuracy, agreement, cohen_kappa, count_lists, fleiss_kappa, joint_kappa
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


def deviation_of_1969(first: list[str], second: list[str]) -> float:
    """Return the standard error of Cohen's kappa as Fleiss, Cohen and Everitt (1969, formula 13) print it."""
    n, labels = len(first), sorted({*first, *second})
    p = {(a, b): sum(x == a and y == b for x, y in zip(first, second, strict=True)) / n for a in labels for b in labels}
    row = {a: sum(p[a, b] for b in labels) for a in labels}
    column = {b: sum(p[a, b] for a in labels) for b in labels}
    observed, chance = sum(p[a, a] for a in labels), sum(row[a] * column[a] for a in labels)
    diagonal = sum(p[a, a] * ((1 - chance) - (row[a] + column[a]) * (1 - observed)) ** 2 for a in labels)
    beside = (1 - observed) ** 2 * sum(p[a, b] * (column[a] + row[b]) ** 2 for a in labels for b in labels if a != b)
    rest = (observed * chance - 2 * chance + observed) ** 2
    return float(((diagonal + beside - rest) / n / (1 - chance) ** 4) ** 0.5)


@given(PAIRS)
def test_the_interval_of_cohens_kappa_is_that_of_1969(pairs: list[tuple[str, str]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    kappa = cohen_kappa(first, second)
    if kappa.value is None or kappa.interval is None:
        assert kappa.value is None or first == second or len(set(pairs)) <= 2
        return
    margin = 1.959964 * deviation_of_1969(first, second)
    low, high = max(-1.0, kappa.value - margin), min(1.0, kappa.value + margin)
    assert kappa.interval == pytest.approx((low, high), abs=1e-5)


def test_the_interval_of_fleiss_kappa_is_that_of_a_jackknife() -> None:
    """Leaving out image by image gives nearly the same standard error: an independent estimate of it."""
    table = [[int(one) for one in line.split()] for line in FLEISS.split("\n") if line] * 12
    ratings = [spread(row) for row in table]
    kappa = fleiss_kappa(ratings)
    assert kappa.interval is not None
    without = [fleiss_kappa(ratings[:place] + ratings[place + 1 :]).value or 0.0 for place in range(10)] * 12
    n, mean = len(without), sum(without) / len(without)
    error = ((n - 1) / n * sum((one - mean) ** 2 for one in without)) ** 0.5
    assert (kappa.interval[1] - kappa.interval[0]) / 2 / 1.959964 == pytest.approx(error, rel=0.02)


def judged(image: str, reviewer: str, action: str, reason: str = "") -> Decision:
    fields = {"image_id": f"coco:{image}", "dataset": "coco", "stage": "manual"}
    return Decision(**fields, action=action, reviewer=reviewer, reason=reason)  # type: ignore[arg-type]


ROWS = [
    *(judged(image, "anna", action) for image, action in zip("123456", ["keep"] * 3 + ["remove"] * 3, strict=True)),
    *(judged(image, "ben", action) for image, action in zip("1234", ["keep", "keep", "remove", "remove"], strict=True)),
    judged("7", "anna", "to_near", "toy"),
    judged("7", "ben", "to_near", "toy"),
    judged("8", "anna", "to_near", "toy"),
    judged("8", "ben", "keep"),
]


def test_agreement_by_action_reason_and_class() -> None:
    (stage,) = agreement(ROWS, {"horse": ["coco:1", "coco:2", "coco:3"], "cow": ["coco:99"]})
    by = {(one.by, one.name): one.kappa for one in stage.slices}
    assert sorted(by) == [
        ("action", "keep"), ("action", "remove"), ("action", "to_near"), ("class", "horse"), ("reason", "toy"),
    ]  # fmt: skip
    # Of six images judged by both: by hand from the two-by-two table of each.
    assert by["reason", "toy"] == cohen_kappa("nnnntt", "nnnntn")
    assert by["action", "remove"] == cohen_kappa("nnnrnn", "nnrrnn")
    assert by["class", "horse"] == cohen_kappa("kkk", "kkr")
    three = [{"a": 1, "b": 1, "c": 2}, {"a": 2, "b": 2}]
    assert joint_kappa(three) == fleiss_kappa([[1, 1, 2], [2, 2]])


def test_gold_is_what_a_reviewer_is_held_against() -> None:
    gold = [judged("1", "gold", "keep"), judged("3", "gold", "keep"), judged("99", "gold", "keep")]
    anna, ben = accuracy(ROWS, gold)
    assert (anna.reviewer, anna.images, anna.same, anna.share, anna.high) == ("anna", 2, 2, 1.0, 1.0)
    assert (ben.reviewer, ben.images, ben.same, ben.share) == ("ben", 2, 1, 0.5)
    assert anna.low == pytest.approx(0.158, abs=1e-3)
