from decimal import Decimal

import pytest

from curation.proposals.categories import Nearest, Relation, judge_categories, label_evidence
from tests.proposals.proposal_world import source_of

CUT = Decimal("0.82")
CATEGORIES = ("dog", "fox", "ball", "cup", "thing")
JUDGED = judge_categories(
    CATEGORIES,
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
    found = label_evidence(source_of({"1": [], "2": shown}, CATEGORIES), JUDGED, near_wup=CUT)
    assert [piece.detail for piece in found[1]] == details
    assert [piece.detail for piece in found[0]] == ["no annotation"]


def test_presence_alone_counts_no_objects() -> None:
    found = label_evidence(source_of({"1": ["dog"]}, CATEGORIES, boxes=False), JUDGED, near_wup=CUT)
    assert [piece.detail for piece in found[0]] == ["dog is dog"]


def test_a_source_without_images_has_no_evidence() -> None:
    assert label_evidence(source_of({}, CATEGORIES), JUDGED, near_wup=CUT) == []
