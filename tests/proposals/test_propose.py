from decimal import Decimal

import pytest

from curation.errors import ProposalError
from curation.proposals.categories import Lists
from curation.proposals.id_classes import IdClass
from curation.proposals.proposal import Thresholds
from curation.proposals.propose import OodPool, propose
from tests.proposals.proposal_world import source_of

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
    made = propose(CLASSES, [OodPool("coco", source_of(IMAGES, CATEGORIES))])
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
    assert made.counts() == {"remove": 2, "near": 1, "far": 1, "farther": 0, "undecided": 3}


def test_lists_synsets_and_thresholds_of_the_user_count() -> None:
    source = source_of(IMAGES, CATEGORIES)
    pool = OodPool("coco", source, lists=Lists(near=("laptop",), far=("gadget",)), synsets={"woman": ""})
    made = propose(CLASSES, [pool], thresholds=Thresholds(near_wup=Decimal("0.99")), id_synsets={"person": ""})
    found = {one.image_id[-1]: one.proposal for one in made.proposals}
    assert found == {
        "1": "far",
        "2": "remove",
        "3": "near",
        "4": "near",
        "5": "undecided",
        "6": "near",
        "7": "undecided",
    }
    assert made.thresholds["near_wup"] == "0.99"
    assert made.left_out == {"ID classes without a synset": 1}


def test_without_embeddings_no_set_is_decided() -> None:
    made = propose(CLASSES, [OodPool("coco", source_of(IMAGES, CATEGORIES))])
    assert [(one.name, one.proposal) for one in made.sets] == [
        ("coco near", "undecided"),
        ("coco far", "undecided"),
        ("coco all", "undecided"),
    ]


@pytest.mark.parametrize("names", [(), ("a", "a")])
def test_pools_need_names_of_their_own(names: tuple[str, ...]) -> None:
    with pytest.raises(ProposalError, match="name"):
        propose(CLASSES, [OodPool(name, source_of({}, CATEGORIES)) for name in names])


def test_the_leopard_is_near_a_cat() -> None:
    source = source_of({"0a": ["Leopard"]}, ["Leopard"], dataset="openimages")
    made = propose([IdClass("cat")], [OodPool("openimages", source)])
    assert made.proposals[0].proposal == "near"


def test_presence_only_sources_serve_too() -> None:
    made = propose(CLASSES, [OodPool("coco", source_of(IMAGES, CATEGORIES, boxes=False))])
    assert made.counts()["remove"] == 2
    assert all(row.objects == 0 for row in made.categories)
