"""Categories of a source: how they relate to ID classes, how they are judged, and what their annotations say."""

from collections.abc import Sequence
from decimal import Decimal

import pytest

from curation.core.errors import ProposalError
from curation.review.proposals.categories import (
    Lists,
    Nearest,
    Relation,
    category_relations,
    is_near,
    judge_categories,
    label_evidence,
    nearest_classes,
)
from curation.review.proposals.id_classes import IdClass, checked_classes, synsets_of
from curation.review.proposals.proposal import Thresholds
from curation.signals.hierarchy.class_lists import synset_choices, synset_map
from curation.sources.datasets import COCO_CATEGORIES, COCO_NAMES_OF_VOC, VOC_NAMES
from tests.review.proposals.proposal_world import source_of

VOC = checked_classes([IdClass(name) for name in VOC_NAMES], "VOC")
NEAR_IN_COCO = (
    *("zebra", "bench", "broccoli", "spoon", "fork", "carrot", "orange", "bowl", "apple", "cup", "laptop", "bed"),
    *("bear", "vase"),
)
"""Table 6 of FindMeIfYouCan, from its code."""
REMOVED_FROM_COCO = ("spoon", "fork", "pizza", "sandwich", "cake", "hot dog", "wine glass", "knife")
"""Table 5 of FindMeIfYouCan, from its code."""


def relate(categories: Sequence[str], classes: Sequence[IdClass] = VOC) -> dict[str, Relation]:
    return category_relations(
        categories,
        classes,
        synsets=synsets_of(categories, dataset="openimages"),
        id_synsets=synsets_of([one.name for one in classes]),
    )


@pytest.mark.parametrize(
    ("category", "kind", "id_class"),
    [
        ("Bird", "label_name", "bird"),
        ("Couch", "label_synonym", "sofa"),
        ("airplane", "label_synonym", "aeroplane"),
        ("Television", "label_synonym", "tvmonitor"),
        ("Woman", "label_kind", "person"),
        ("Taxi", "label_kind", "car"),
        ("Eagle", "label_kind", "bird"),
        ("Human face", "label_part", "person"),
        ("Human hair", "label_part", "person"),
        ("Human body", "label_part", "person"),
        ("Carnivore", "label_broader", ""),
        ("Furniture", "label_broader", ""),
    ],
)
def test_what_a_category_is_to_an_id_class(category: str, kind: str, id_class: str) -> None:
    found = relate([category])[category]
    assert (found.kind, found.id_class) == (kind, id_class)


def test_an_alias_is_told_from_a_name() -> None:
    classes = checked_classes([IdClass("pottedplant", ("Houseplant",))], "here")
    assert relate(["Houseplant"], classes)["Houseplant"].kind == "label_alias"


def test_a_name_without_a_synset_may_be_a_word_of_wordnet_for_an_id_class() -> None:
    assert relate(["auto"])["auto"] == Relation("label_synonym", "car", "is a word for car in WordNet")


def test_a_kind_goes_to_the_nearest_of_two_classes_above_it() -> None:
    classes = checked_classes([IdClass("animal"), IdClass("dog")], "here")
    found = category_relations(
        ["poodle"], classes, synsets={"poodle": "n02113335"}, id_synsets={"animal": "n00015388", "dog": "n02084071"}
    )
    assert found["poodle"] == Relation("label_kind", "dog", "is a kind of dog")


def categories_between_near_and_far() -> list[str]:
    """The 54 categories of COCO that are neither ID classes nor removed; spoon and fork are near all the same."""
    own = set(COCO_NAMES_OF_VOC.values())
    return [
        name
        for _, name, _ in COCO_CATEGORIES
        if name not in own and (name not in REMOVED_FROM_COCO or name in NEAR_IN_COCO)
    ]


def auroc(near: Sequence[float], far: Sequence[float]) -> float:
    return sum((a > b) + 0.5 * (a == b) for a in near for b in far) / (len(near) * len(far))


HEAD_WORDS = {"stop sign": "n06791372", "sports ball": "n02778669", "cell phone": "n04401088"}
"""First noun senses of the head words sign, ball and phone in WordNet 3.0, where the phrase is no lemma."""


def test_wordnet_cannot_reproduce_the_near_list_of_the_paper() -> None:
    """Facts measured apart from this project with NLTK: 54 categories, 7 of 14 found, 3 of 40 flagged, AUROC 0.65."""
    categories = categories_between_near_and_far()
    assert len(categories) == 54
    curated = synset_map("coco")
    near = nearest_classes({name: curated[name] for name in categories}, synset_map("voc"))
    cut = Thresholds().near_wup
    found = {name for name, one in near.items() if is_near(one.score, cut)}
    assert len(found & set(NEAR_IN_COCO)) == 7
    assert {(name, near[name].id_class) for name in found - set(NEAR_IN_COCO)} == {
        ("truck", "car"),
        ("giraffe", "sheep"),
        ("handbag", "bicycle"),
    }
    assert [round(near[name].score, 2) for name in ("truck", "giraffe", "handbag")] == [0.92, 0.90, 0.82]


@pytest.mark.parametrize(
    ("field", "area"),
    [
        # Of the nouns alone and the 17 names that are lemmas: 0.6509, the 0.65 that the specification states.
        ("first_sense", 0.6509),
        # A right synset does not make WordNet agree with the eye.
        ("synset", 0.5982),
    ],
)
def test_wordnet_orders_near_and_far_little_better_than_chance(field: str, area: float) -> None:
    coco, voc = (
        {name: synset for name, choice in synset_choices(dataset).items() if (synset := getattr(choice, field))}
        for dataset in ("coco", "voc")
    )
    categories, synsets = categories_between_near_and_far(), HEAD_WORDS | coco
    near = nearest_classes({name: synsets[name] for name in categories}, voc)
    listed = [near[name].score for name in categories if name in NEAR_IN_COCO]
    rest = [near[name].score for name in categories if name not in NEAR_IN_COCO]
    assert (len(listed), len(rest)) == (14, 40)
    assert round(auroc(listed, rest), 4) == area


CUT = Decimal("0.82")
SHOWN = ("dog", "fox", "ball", "cup", "thing")
JUDGED = judge_categories(
    SHOWN,
    {"dog": Relation("label_name", "dog", "is dog")},
    {"fox": Nearest("dog", 0.9), "ball": Nearest("dog", 0.3), "cup": Nearest("dog", 0.4)},
    near_wup=CUT,
)


@pytest.mark.parametrize(
    ("shown", "details"),
    [
        (["dog", "fox", "dog", "ball"], ["dog (2 objects) is dog", "fox (1 object) is near dog"]),
        (["ball", "cup"], ["cup (1 object) is far: nearest is dog"]),
        (["ball", "thing"], ["thing (1 object) has no synset and is on no list"]),
        (["fox", "thing"], ["fox (1 object) is near dog"]),
        ([], ["no annotation"]),
    ],
)
def test_an_image_tells_what_decides_about_it(shown: list[str], details: list[str]) -> None:
    found = label_evidence(source_of({"1": [], "2": shown}, SHOWN), JUDGED, near_wup=CUT)
    assert [piece.detail for piece in found[1]] == details
    assert [piece.detail for piece in found[0]] == ["no annotation"]


DOG = Relation("label_name", "dog", "is dog")


def test_overlap_goes_before_lists_and_lists_before_kinship() -> None:
    judged = judge_categories(
        ("dog", "fox", "sofa", "ball", "thing"),
        {"dog": DOG},
        {"fox": Nearest("dog", 0.5), "sofa": Nearest("chair", 0.9), "ball": Nearest("dog", 0.3)},
        near_wup=CUT,
        lists=Lists(near=("Fox", "dog"), far=("sofa",)),
    )
    assert [one.judgement for one in judged] == ["overlap", "near", "far", "far", "unjudged"]
    assert judged[0].phrase == "is dog, though listed as near"


@pytest.mark.parametrize("lists", [Lists(near=("cow",)), Lists(near=("fox",), far=("FOX",))])
def test_lists_that_do_not_fit_are_refused(lists: Lists) -> None:
    with pytest.raises(ProposalError):
        judge_categories(("fox",), {}, {}, near_wup=CUT, lists=lists)


def test_a_listed_part_is_taken_at_its_word() -> None:
    part = {"Human face": Relation("label_part", "person", "is part of person")}
    assert judge_categories(("Human face",), part, {}, near_wup=CUT)[0].judgement == "part"
    listed = judge_categories(("Human face",), part, {}, near_wup=CUT, lists=Lists(far=("Human face",)))
    assert listed[0].judgement == "far"
