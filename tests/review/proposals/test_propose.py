"""From sources to proposals: every image one, with evidence; sets near, far and farther."""

import math
from decimal import Decimal

import numpy as np
import pytest

from curation.core.errors import ProposalError
from curation.review.proposals.categories import Lists
from curation.review.proposals.id_classes import IdClass
from curation.review.proposals.proposal import Thresholds
from curation.review.proposals.propose import (
    OodPool,
    SetStatistics,
    farther_pools,
    propose,
    propose_sets,
    set_statistics,
)
from curation.signals.similarity.neighbors import SetSimilarity
from tests.review.proposals.proposal_world import source_of
from tests.rounding import SINGLE, cosine_error
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
    prompts = embedded({"horse": direction(0.3), "computer": direction(2.0)})
    rows = {
        "coco:000000000001": direction(0.25),  # zebra, as near to an ID image as these are, and to the horse's prompt
        "coco:000000000004": direction(2.5),  # laptop, far from all
        "coco:000000000099": direction(1.0),  # of another source
    }
    pool = OodPool("coco", source_of(SIX, NAMES), embeddings=embedded(rows))
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
    pool = OodPool("coco", source_of(SIX, NAMES), embeddings=embedded(rows))
    made = propose(CLASSES, [pool], references=references)
    assert {one.image_id[-1]: one.proposal for one in made.proposals}["3"] == "undecided"
    far = next(one for one in made.sets if one.group == "far")
    assert far.images == 3
    # Printed with four decimals.
    assert float(far.mean_similarity or 0) == pytest.approx(
        (1 + 1 + math.cos(1.5)) / 3, rel=0, abs=0.5e-4 + cosine_error(2)
    )


def test_embeddings_of_other_images_alone_are_refused() -> None:
    pool = OodPool("coco", source_of(SIX, NAMES), embeddings=embedded({"voc2007:1": [1.0, 0.0]}))
    with pytest.raises(ProposalError, match="none of the source's images"):
        propose(CLASSES, [pool], references=embedded({"voc2007:1": [1.0, 0.0]}))


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
