from decimal import Decimal

import numpy as np
import pytest

from curation.proposals.proposal import Thresholds
from curation.proposals.propose import SetStatistics, farther_pools, propose_sets, set_statistics
from curation.similarity.set_similarity import SetSimilarity
from tests.rounding import SINGLE

DEFAULT = Thresholds()


def far(pool: str, mean: float | None, error: float | None = 0.01, kinship: float | None = 0.6) -> SetStatistics:
    return SetStatistics(pool, "far", 10, mean, error, kinship)


def similarity_of(**scores: float) -> SetSimilarity:
    values = np.array(list(scores.values()), np.float32)
    return SetSimilarity(tuple(scores), ("x",) * len(scores), values, values)


def test_statistics_by_hand() -> None:
    look = similarity_of(a=0.5, b=0.7, c=0.1)
    found = set_statistics("p", "far", ["a", "b", "z"], look, [0.25, 0.75])
    assert (found.images, found.kinship) == (2, 0.5)
    # The similarities are float32: each is within SINGLE of what is written, and so is their mean.
    assert found.mean == pytest.approx(0.6, rel=0, abs=SINGLE)
    # Deviation of 0.5 and 0.7 is 0.2 / sqrt 2; over the square root of two images, 0.1.
    assert found.error == pytest.approx(0.1, rel=0, abs=SINGLE)


def test_one_image_has_no_error_and_none_no_mean() -> None:
    look = similarity_of(a=0.5)
    assert set_statistics("p", "far", ["a"], look, []).error is None
    assert set_statistics("p", "far", ["b"], look, []).mean is None
    assert set_statistics("p", "far", ["a"], None, []).mean is None


@pytest.mark.parametrize(
    ("mean", "kinship", "proposal", "said"),
    [
        (0.40, 0.5, "farther", "WordNet agrees"),
        (0.40, 0.7, "undecided", "other order"),
        (0.40, 0.6, "undecided", "other order"),
        (0.40, None, "undecided", "WordNet says nothing"),
        (0.48, 0.5, "undecided", "not farther"),
        (0.60, 0.5, "undecided", "not farther"),
        (None, 0.5, "undecided", "too few"),
    ],
)
def test_farther_needs_similarity_and_wordnet(
    mean: float | None, kinship: float | None, proposal: str, said: str
) -> None:
    others = [far("high", 0.6), far("low", 0.5)]
    found = propose_sets([far("p", mean, kinship=kinship), *others], DEFAULT)[0]
    assert found.proposal == proposal
    assert said in found.reason
    assert farther_pools([found]) == ({"p"} if proposal == "farther" else set())


def test_two_standard_errors_are_not_more_than_two() -> None:
    # Errors 0.03 and 0.04 make 0.05 for the difference; 0.625 - 0.5 is 2.5 of them.
    for standard_errors, proposal in ((Decimal("2.4"), "farther"), (Decimal("2.6"), "undecided")):
        sets = [far("p", 0.5, 0.03, 0.5), far("q", 0.625, 0.04, 0.6)]
        found = propose_sets(sets, Thresholds(standard_errors=standard_errors))
        assert found[0].proposal == proposal


def test_alone_a_set_is_undecided() -> None:
    assert propose_sets([far("p", 0.1)], DEFAULT)[0].proposal == "undecided"


def test_a_near_group_must_look_nearer_than_the_far_one() -> None:
    for mean, proposal in ((0.6, "near"), (0.51, "undecided"), (0.4, "undecided")):
        near = SetStatistics("p", "near", 10, mean, 0.01, 0.9)
        assert propose_sets([near, far("p", 0.5)], DEFAULT)[0].proposal == proposal
        assert propose_sets([near, far("q", 0.5)], DEFAULT)[0].proposal == "undecided"


def test_sets_without_spread_are_compared_all_the_same() -> None:
    assert propose_sets([far("p", 0.4, 0.0, 0.5), far("q", 0.5, 0.0)], DEFAULT)[0].proposal == "farther"
    assert propose_sets([far("p", 0.5, 0.0, 0.5), far("q", 0.5, 0.0)], DEFAULT)[0].proposal == "undecided"
