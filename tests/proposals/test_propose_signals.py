import math

import pytest

from curation.errors import ProposalError
from curation.proposals.id_classes import IdClass
from curation.proposals.propose import OodPool, propose
from tests.proposals.embedding_world import embedded
from tests.proposals.proposal_world import source_of
from tests.rounding import cosine_error

CLASSES = (IdClass("horse"), IdClass("person"), IdClass("sofa"))
CATEGORIES = ("zebra", "laptop", "gadget")
IMAGES = {
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
    prompts = embedded({"horse": direction(0.3), "computer": direction(2.0)})
    rows = {
        "coco:000000000001": direction(0.25),  # zebra, as near to an ID image as these are, and to the horse's prompt
        "coco:000000000004": direction(2.5),  # laptop, far from all
        "coco:000000000099": direction(1.0),  # of another source
    }
    pool = OodPool("coco", source_of(IMAGES, CATEGORIES), embeddings=embedded(rows))
    made = propose(CLASSES, [pool], references=references, prompts=prompts)
    found = {one.image_id[-1]: one for one in made.proposals}
    assert (found["1"].proposal, found["1"].reason) == ("remove", "remove: suspected horse")
    assert [one.kind for one in found["1"].evidence] == ["image_text", "image_image", "near_kinship"]
    assert found["4"].proposal == "far"
    assert made.reference["median"] == f"{math.cos(0.1):.4f}"
    assert made.left_out == {"coco: images without an embedding": 5, "coco: embeddings of other images": 1}


def test_a_farther_pool_makes_its_far_images_farther() -> None:
    references = embedded({f"voc2007:{row:06d}": direction(row / 10) for row in range(6)})
    far = {f"{row:012d}": ["laptop"] for row in range(1, 9)}
    farther = {f"{row:012d}": ["pizza"] for row in range(11, 19)}
    pools = [
        OodPool(
            name,
            source_of(images, ("laptop", "pizza")),
            embeddings=embedded({f"coco:{one}": direction(angle + row / 50) for row, one in enumerate(images)}),
            synsets={"pizza": "n07873807"},
        )
        for name, images, angle in (("one", far, 1.0), ("two", farther, 2.0))
    ]
    made = propose(CLASSES, pools, references=references)
    assert {one.name: one.proposal for one in made.sets} == {
        "one far": "undecided",
        "one all": "undecided",
        "two far": "farther",
        "two all": "farther",
    }
    assert made.counts() == {"remove": 0, "near": 0, "far": 8, "farther": 8, "undecided": 0}
    assert all(one.pool == "two" for one in made.proposals if one.proposal == "farther")


def test_similar_images_stay_in_the_sets_whose_similarity_is_measured() -> None:
    references = embedded({f"voc2007:{row:06d}": direction(row / 10) for row in range(6)})
    rows = {f"coco:{number:012d}": direction(angle) for number, angle in ((3, 0.2), (4, 0.3), (5, 2.0))}
    pool = OodPool("coco", source_of(IMAGES, CATEGORIES), embeddings=embedded(rows))
    made = propose(CLASSES, [pool], references=references)
    assert {one.image_id[-1]: one.proposal for one in made.proposals}["3"] == "undecided"
    far = next(one for one in made.sets if one.group == "far")
    assert far.images == 3
    # Printed with four decimals.
    assert float(far.mean_similarity or 0) == pytest.approx(
        (1 + 1 + math.cos(1.5)) / 3, rel=0, abs=0.5e-4 + cosine_error(2)
    )


def test_embeddings_of_other_images_alone_are_refused() -> None:
    pool = OodPool("coco", source_of(IMAGES, CATEGORIES), embeddings=embedded({"voc2007:1": [1.0, 0.0]}))
    with pytest.raises(ProposalError, match="none of the source's images"):
        propose(CLASSES, [pool], references=embedded({"voc2007:1": [1.0, 0.0]}))
