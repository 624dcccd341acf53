"""From sources to proposals: every image one, with evidence."""

import math
from decimal import Decimal

import pytest

from curation.core.errors import ProposalError
from curation.review.proposals.categories import Lists
from curation.review.proposals.id_classes import IdClass
from curation.review.proposals.proposal import Thresholds
from curation.review.proposals.propose import CandidatePool, propose
from tests.review.proposals.proposal_world import source_of
from tests.signals.similarity.vectors import embedded

CLASSES = (IdClass("horse"), IdClass("person"), IdClass("sofa"))
CATEGORIES = ("zebra", "couch", "Human face", "laptop", "woman", "gadget")
IMAGES = {
    "000000000001": ["zebra"],
    "000000000002": ["couch", "zebra"],
    "000000000003": ["Human face", "laptop"],
    "000000000004": ["laptop"],
    "000000000005": ["woman"],
    "000000000006": ["laptop", "gadget"],
    "000000000007": [],
}


def test_every_image_gets_one_proposal_with_evidence() -> None:
    made = propose(CLASSES, [CandidatePool("coco", source_of(IMAGES, CATEGORIES))])
    found = {one.image_id[-1]: (one.proposal, one.reason) for one in made.proposals}
    assert found == {
        "1": ("near", "near: horse"),
        "2": ("remove", "remove: sofa"),
        "3": ("undecided", "suspected: person"),
        "4": ("far", "far"),
        "5": ("remove", "remove: person"),
        "6": ("undecided", "undecided: nothing says how near"),
        "7": ("undecided", "undecided: nothing says how near"),
    }
    assert all(one.evidence and one.pool == "coco" for one in made.proposals)
    assert [one.image_id[-1] for one in made.proposals] == list("2536714")
    assert made.counts() == {"remove": 2, "near": 1, "far": 1, "undecided": 3}


def test_lists_and_thresholds_of_the_user_count() -> None:
    source = source_of(IMAGES, CATEGORIES)
    pool = CandidatePool("coco", source, lists=Lists(near=("laptop",), far=("gadget",)))
    made = propose(CLASSES, [pool], thresholds=Thresholds(near_wup=Decimal("0.99")))
    found = {one.image_id[-1]: one.proposal for one in made.proposals}
    assert found == {
        "1": "far",
        "2": "remove",
        "3": "undecided",
        "4": "near",
        "5": "remove",
        "6": "near",
        "7": "undecided",
    }
    assert made.thresholds["near_wup"] == "0.99"


@pytest.mark.parametrize("names", [(), ("a", "a")])
def test_pools_need_names_of_their_own(names: tuple[str, ...]) -> None:
    with pytest.raises(ProposalError, match="name"):
        propose(CLASSES, [CandidatePool(name, source_of({}, CATEGORIES)) for name in names])


NAMES = ("zebra", "laptop", "gadget")
SIX = {
    "000000000001": ["zebra"],
    "000000000002": ["zebra"],
    "000000000003": ["laptop"],
    "000000000004": ["laptop"],
    "000000000005": ["laptop"],
    "000000000006": ["gadget"],
    "000000000007": [],
}


def direction(angle: float) -> list[float]:
    return [math.cos(angle), math.sin(angle)]


def test_all_signals_together() -> None:
    references = embedded({f"voc2007:{row:06d}": direction(row / 10) for row in range(6)})
    rows = {
        "coco:000000000001": direction(0.25),  # zebra, as near to an ID image as these are
        "coco:000000000004": direction(2.5),  # laptop, far from all
        "coco:000000000099": direction(1.0),  # of another source
    }
    pool = CandidatePool("coco", source_of(SIX, NAMES), embeddings=embedded(rows))
    made = propose(CLASSES, [pool], references=references)
    found = {one.image_id[-1]: one for one in made.proposals}
    assert (found["1"].proposal, found["1"].reason) == ("undecided", "suspected: looks like ID")
    assert [one.kind for one in found["1"].evidence] == ["image_image", "near_kinship"]
    assert found["4"].proposal == "far"
    assert made.reference["median"] == f"{math.cos(0.1):.4f}"
    assert made.left_out == {"coco: images without an embedding": 5, "coco: embeddings of other images": 1}


def test_embeddings_of_other_images_alone_are_refused() -> None:
    pool = CandidatePool("coco", source_of(SIX, NAMES), embeddings=embedded({"voc2007:1": [1.0, 0.0]}))
    with pytest.raises(ProposalError, match="none of the source's images"):
        propose(CLASSES, [pool], references=embedded({"voc2007:1": [1.0, 0.0]}))
