from decimal import Decimal

import pytest

from curation.errors import ProposalError
from curation.proposals.categories import (
    Lists,
    Nearest,
    Relation,
    category_counts,
    category_table,
    evidence_of,
    is_near,
    judge_categories,
)
from tests.proposals.proposal_world import source_of

CUT = Decimal("0.82")
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


def test_the_threshold_belongs_to_near() -> None:
    assert is_near(0.82, CUT)
    assert is_near(14 / 17, Decimal("0.8235"))
    assert not is_near(0.8199, CUT)


@pytest.mark.parametrize("lists", [Lists(near=("cow",)), Lists(near=("fox",), far=("FOX",))])
def test_lists_that_do_not_fit_are_refused(lists: Lists) -> None:
    with pytest.raises(ProposalError):
        judge_categories(("fox",), {}, {}, near_wup=CUT, lists=lists)


def test_a_listed_part_is_taken_at_its_word() -> None:
    part = {"Human face": Relation("label_part", "person", "is part of person")}
    assert judge_categories(("Human face",), part, {}, near_wup=CUT)[0].judgement == "part"
    listed = judge_categories(("Human face",), part, {}, near_wup=CUT, lists=Lists(far=("Human face",)))
    assert listed[0].judgement == "far"


def test_counts_are_of_images_and_of_objects() -> None:
    images = {"1": ["dog", "dog"], "2": ["dog", "fox"], "3": []}
    assert category_counts(source_of(images, ["dog", "fox", "cow"])) == ([2, 1, 0], [3, 1, 0])
    assert category_counts(source_of(images, ["dog", "fox", "cow"], boxes=False)) == ([2, 1, 0], [0, 0, 0])


def test_the_table_has_the_most_frequent_first() -> None:
    source = source_of({"1": ["fox"], "2": ["fox", "dog"]}, ["dog", "fox"])
    judged = judge_categories(("dog", "fox"), {"dog": DOG}, {"fox": Nearest("dog", 0.5)}, near_wup=CUT)
    rows = category_table("coco", judged, source, {"dog": "n02084071"})
    assert [(row.category, row.images, row.kinship) for row in rows] == [("fox", 2, "0.5000"), ("dog", 1, "1.0000")]


def test_evidence_tells_number_phrase_and_threshold() -> None:
    near = judge_categories(("fox",), {}, {"fox": Nearest("dog", 0.9)}, near_wup=CUT)[0]
    piece = evidence_of(near, 2, CUT)
    assert (piece.kind, piece.detail) == ("near_kinship", "fox (2 objects) is near dog")
    assert (piece.score, piece.threshold, piece.id_class) == ("0.9000", "0.82", "dog")
