"""Bounds against SciPy's beta quantile and by enumeration; samples and shares by hash rank."""

from math import comb, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from curation.benchmarks.parts import hash_rank
from curation.core.errors import UsageError
from curation.review.decisions.decision import Decision
from curation.review.decisions.sampling import (
    Stratum,
    assigned_reviewers,
    by_hash_rank,
    draw_sample,
    exact_bound,
    exact_interval,
    remainder,
)

IDS = [f"coco:{number:012d}" for number in range(40)]
COUNTS = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS, st.sampled_from([0.9, 0.95, 0.975, 0.99]))
def test_the_bound_is_the_beta_quantile(counts: tuple[int, int], confidence: float) -> None:
    k, n = counts
    upper = beta.ppf(confidence, k + 1, n - k) if k < n else 1.0
    assert exact_bound(k, n, confidence) == pytest.approx(upper, abs=1e-12)
    low, high = exact_interval(k, n)
    assert low == pytest.approx(beta.ppf(0.025, k, n - k + 1) if k else 0.0, abs=1e-12)
    assert high == pytest.approx(beta.ppf(0.975, k + 1, n - k) if k < n else 1.0, abs=1e-12)


def test_a_thousand_times_ten_thousand_images() -> None:
    """Of 10,000 images 1,000 seen without one of the kind: the rule of three, and SciPy's figure."""
    assert exact_bound(0, 1000) == pytest.approx(0.00299124, abs=1e-8)
    assert exact_bound(3, 1000) == pytest.approx(float(beta.ppf(0.95, 4, 997)), abs=1e-12)


@pytest.mark.parametrize(("images", "drawn"), [(30, 10), (40, 39), (60, 20)])
def test_it_holds_for_images_drawn_without_replacement(images: int, drawn: int) -> None:
    """However many images are of the kind, at most 5 % of all samples claim fewer."""
    for kind in range(images + 1):
        wrong = sum(
            comb(kind, k) * comb(images - kind, drawn - k)
            for k in range(max(0, drawn - images + kind), min(kind, drawn) + 1)
            if floor(exact_bound(k, drawn) * images) < kind
        )
        assert wrong / comb(images, drawn) <= 0.05


def test_a_hash_rank_is_that_of_the_benchmarks_and_stays_nested() -> None:
    assert by_hash_rank(IDS, "a ") == [IDS[place] for place in hash_rank(IDS, "a ")]
    (few,), (more,) = draw_sample({"all": IDS}, 5), draw_sample({"all": list(reversed(IDS))}, 9)
    assert more.drawn[:5] == few.drawn
    assert by_hash_rank(IDS, "a ")[:5] != list(few.drawn)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.data())
def test_a_stratified_sample_has_its_size_and_one_of_each_at_least(sizes: list[int], data: st.DataObject) -> None:
    strata = {f"s{n}": [f"a:{n}-{i}" for i in range(size)] for n, size in enumerate(sizes)}
    size = data.draw(st.integers(len(sizes), sum(sizes)))
    drawn = draw_sample(strata, size)
    assert sum(len(one.drawn) for one in drawn) == size
    assert all(1 <= len(set(one.drawn)) == len(one.drawn) <= one.images == len(strata[one.name]) for one in drawn)


@pytest.mark.parametrize("size", [0, 1, 41])
def test_a_sample_of_the_wrong_size_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match="wrong size"):
        draw_sample({"a": IDS[:20], "b": IDS[20:]}, size)


def test_each_image_is_judged_by_one_or_by_all() -> None:
    shares = assigned_reviewers(IDS, ["ben", "anna", "cleo"], 0.25)
    assert sum(names == ("anna", "ben", "cleo") for names in shares) == 10
    alone = [names for names in shares if len(names) == 1]
    assert sorted(alone.count((name,)) for name in ("anna", "ben", "cleo")) == [10, 10, 10]
    assert set(assigned_reviewers(IDS, ["anna", "ben"], 1)) == {("anna", "ben")}
    assert {len(names) for names in assigned_reviewers(IDS, ["anna", "ben"], 0)} == {1}


def verdicts(actions: str) -> list[Decision]:
    words = {"k": "keep", "r": "remove", "u": "unsure"}
    return [
        Decision(image_id=image, dataset="far", stage="manual", action=words[one], reviewer="anna")  # type: ignore[arg-type]
        for image, one in zip(IDS, actions, strict=False)
    ]


def test_what_remains_is_bounded_once_all_that_was_drawn_is_judged() -> None:
    strata = [Stratum(name="all", images=1000, drawn=tuple(IDS[:20]))]
    waiting = remainder(strata, verdicts("k" * 19))
    assert waiting is not None
    assert (waiting.share, waiting.at_most, waiting.judged) == (None, None, 19)
    assert "1 drawn image of 20 have no decision yet" in waiting.text()
    left = remainder(strata, verdicts("kkrku" + "k" * 15))
    assert left is not None
    bound = float(beta.ppf(0.95, 3, 18))
    assert left.share == pytest.approx(bound)
    assert (left.positives, left.unseen, left.at_most) == (2, 980, floor(1000 * bound) - 2)
    assert left.text() == (
        "20 of 1,000 images were drawn by hash rank and judged; 2 of them are in-distribution, unfit or unsure. "
        "At most 28.27 % of all images are (95 %, Clopper-Pearson): at most 280 of the 980 unseen."
    )
    assert remainder([], verdicts("k")) is None


def test_bounds_of_several_strata_hold_together() -> None:
    strata = [
        Stratum(name="a", images=100, drawn=tuple(IDS[:10])),
        Stratum(name="b", images=300, drawn=tuple(IDS[10:40])),
    ]
    left = remainder(strata, verdicts("r" + "k" * 39))
    assert left is not None
    expected = (100 * beta.ppf(0.975, 2, 9) + 300 * beta.ppf(0.975, 1, 30)) / 400
    assert left.share == pytest.approx(float(expected))
