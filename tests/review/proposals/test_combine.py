import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import ProposalError
from curation.review.proposals.proposal import KINDS, OVERLAPS, SUSPICIONS, Evidence, Kind
from curation.review.proposals.propose import Suspect, combine, finding


def piece(kind: Kind, id_class: str = "", score: str = "") -> Evidence:
    return Evidence(kind=kind, detail=f"{kind} {id_class}", score=score, id_class=id_class)


FAR, NEAR, NOTHING = piece("far_kinship"), piece("near_kinship", "horse"), piece("unjudged")


@pytest.mark.parametrize(
    ("evidence", "verdict", "reason"),
    [
        ([piece("label_name", "dog"), NEAR], "remove", "remove: dog"),
        ([piece("label_kind", "person")], "remove", "remove: person"),
        ([piece("detector", "dog"), FAR], "undecided", "suspected: dog"),
        ([piece("detector", "dog"), piece("label_broader", "dog"), FAR], "remove", "remove: suspected dog"),
        ([piece("detector", "dog"), piece("label_broader", "cat"), FAR], "undecided", "suspected: dog"),
        ([piece("detector", "dog"), piece("image_image"), FAR], "remove", "remove: suspected dog"),
        ([piece("detector", "cat", "0.6"), piece("detector", "dog", "0.7"), FAR], "undecided", "suspected: dog"),
        ([piece("image_image"), NEAR], "undecided", "suspected: looks like ID"),
        ([piece("image_image"), piece("label_broader")], "remove", "remove: suspected ID class"),
        ([piece("label_part", "person")], "undecided", "suspected: person"),
        ([NEAR], "near", "near: horse"),
        ([piece("near_listed")], "near", "near: listed"),
        ([NOTHING], "undecided", "undecided: nothing says how near"),
        ([FAR], "far", "far"),
        ([piece("far_listed")], "far", "far"),
    ],
)
def test_what_evidence_comes_to(evidence: list[Evidence], verdict: str, reason: str) -> None:
    found = finding(evidence, agreeing=2)
    assert (found.verdict, found.reason) == (verdict, reason)


def test_the_most_suspect_image_is_first() -> None:
    cases: dict[str, list[Evidence]] = {
        "a": [FAR],
        "b": [NEAR],
        "c": [NOTHING],
        "d": [piece("image_image", score="0.9"), FAR],
        "e": [piece("detector", "dog", "0.6"), FAR],
        "f": [piece("detector", "dog", "0.7"), FAR],
        "g": [piece("detector", "dog", "0.6"), piece("image_image"), FAR],
        "h": [piece("label_kind", "dog", "0.9")],
        "i": [piece("label_name", "dog", "1.0")],
        "j": [piece("label_kind", "dog", "0.9"), piece("image_image")],
        "k": [piece("label_kind", "dog", "0.9")],
    }
    found = combine([Suspect("p", f"coco:{name}", tuple(pieces)) for name, pieces in cases.items()], agreeing=2)
    assert [one.image_id[-1] for one in found] == list("jihkgfedcba")
    assert [one.rank for one in found] == list(range(1, 12))


def test_an_image_in_two_pools_is_refused() -> None:
    with pytest.raises(ProposalError, match="two OOD sources"):
        combine([Suspect("p", "coco:1", (FAR,)), Suspect("q", "coco:1", (FAR,))], agreeing=2)


pieces = st.builds(
    piece,
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(["", "dog", "cat"]),
    st.sampled_from(["", "0.1000", "0.9000"]),
)


@given(st.lists(st.lists(pieces, min_size=1, max_size=5), max_size=8), st.integers(1, 3), st.randoms())
def test_the_order_of_input_changes_nothing(
    images: list[list[Evidence]], agreeing: int, shuffler: random.Random
) -> None:
    suspects = [Suspect("p", f"coco:{row}", tuple(own)) for row, own in enumerate(images)]
    shuffled = [Suspect(one.pool, one.image_id, tuple(reversed(one.evidence))) for one in suspects]
    shuffler.shuffle(shuffled)
    assert combine(suspects, agreeing=agreeing) == combine(shuffled, agreeing=agreeing)


@given(st.lists(pieces, min_size=1, max_size=6), st.integers(1, 5))
def test_overlap_removes_and_suspicion_never_leaves_an_image_near_or_far(own: list[Evidence], agreeing: int) -> None:
    verdict = finding(own, agreeing=agreeing).verdict
    kinds = {one.kind for one in own}
    if kinds & set(OVERLAPS):
        assert verdict == "remove"
    elif kinds & set(SUSPICIONS):
        assert verdict in ("remove", "undecided")
        assert verdict == "undecided" or len(kinds & set(SUSPICIONS)) >= agreeing
    else:
        assert verdict in ("near", "far", "undecided")
