import math
from decimal import Decimal

import pytest

from curation.errors import ProposalError
from curation.proposals.category_judgement import Lists
from curation.proposals.clip_overlap import prompts_of
from curation.proposals.id_classes import IdClass
from curation.proposals.propose import Lenses, OodPool, propose
from curation.proposals.reference import reference_of
from curation.proposals.thresholds import Thresholds
from tests.proposals.proposal_world import embedded, source_of

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
    made = propose(
        CLASSES, [pool], thresholds=Thresholds(near_wup=Decimal("0.99")), id_synsets={"person": ""}
    )
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


def direction(angle: float) -> list[float]:
    return [math.cos(angle), math.sin(angle)]


def test_all_lenses_together() -> None:
    references = embedded({f"voc2007:{row:06d}": direction(row / 10) for row in range(6)})
    prompts = embedded({"horse": direction(0.3), "computer": direction(2.0)})
    rows = {
        "coco:000000000001": direction(
            0.25
        ),  # zebra, as near to an ID image as these are, and to the horse's prompt
        "coco:000000000004": direction(2.5),  # laptop, far from all
        "coco:000000000099": direction(1.0),  # of another source
    }
    pool = OodPool("coco", source_of(IMAGES, CATEGORIES), embeddings=embedded(rows))
    made = propose(CLASSES, [pool], lenses=Lenses(reference_of(references), prompts_of(prompts)))
    found = {one.image_id[-1]: one for one in made.proposals}
    assert (found["1"].proposal, found["1"].reason) == ("remove", "remove: suspected horse")
    assert [one.kind for one in found["1"].evidence] == ["image_text", "image_image", "near_kinship"]
    assert found["4"].proposal == "far"
    assert made.reference["median"] == f"{math.cos(0.1):.4f}"
    assert made.left_out == {"coco: images without an embedding": 5, "coco: embeddings of other images": 1}


def test_a_farther_pool_makes_its_far_images_farther() -> None:
    references = reference_of(embedded({f"voc2007:{row:06d}": direction(row / 10) for row in range(6)}))
    far = {f"{row:012d}": ["laptop"] for row in range(1, 9)}
    farther = {f"{row:012d}": ["pizza"] for row in range(11, 19)}
    pools = [
        OodPool(
            name,
            source_of(images, ("laptop", "pizza")),
            embeddings=embedded(
                {f"coco:{one}": direction(angle + row / 50) for row, one in enumerate(images)}
            ),
            synsets={"pizza": "n07873807"},
        )
        for name, images, angle in (("one", far, 1.0), ("two", farther, 2.0))
    ]
    made = propose(CLASSES, pools, lenses=Lenses(references))
    assert {one.name: one.proposal for one in made.sets} == {
        "one far": "undecided",
        "one all": "undecided",
        "two far": "farther",
        "two all": "farther",
    }
    assert made.counts() == {"remove": 0, "near": 0, "far": 8, "farther": 8, "undecided": 0}
    assert all(one.pool == "two" for one in made.proposals if one.proposal == "farther")


def test_embeddings_of_other_images_alone_are_refused() -> None:
    pool = OodPool("coco", source_of(IMAGES, CATEGORIES), embeddings=embedded({"voc2007:1": [1.0, 0.0]}))
    with pytest.raises(ProposalError, match="none of the source's images"):
        propose(CLASSES, [pool], lenses=Lenses(reference_of(embedded({"voc2007:1": [1.0, 0.0]}))))
