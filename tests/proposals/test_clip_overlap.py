from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.errors import ProposalError
from curation.proposals.clip_overlap import Look, digest_of, image_of, look_at, look_evidence, text_evidence
from curation.proposals.id_classes import IdClass
from tests.proposals.embedding_world import embedded
from tests.rounding import cosine_error

CLASSES = (IdClass("dog", ("hound",)), IdClass("cat"))
PROMPTS = embedded({"Hound": [1, 0, 0], "cat": [0, 1, 0], "laptop": [0, 0, 1]})


def test_the_id_prompt_must_win_by_the_margin() -> None:
    # Cosines to hound and laptop: 0.8 and 0.6; 0.6 and 0.8; 0.8 and 0 of 0.6 to cat.
    images = embedded({"coco:1": [4, 0, 3], "coco:2": [3, 0, 4], "coco:3": [4, 3, 0]})
    found = text_evidence(images, PROMPTS, CLASSES, margin=Decimal("0.2"))
    assert set(found) == {"coco:1", "coco:3"}
    assert (found["coco:1"].score, found["coco:1"].id_class) == ("0.2000", "dog")
    assert found["coco:1"].detail == "dog 0.8000, next laptop 0.6000"
    assert set(text_evidence(images, PROMPTS, CLASSES, margin=Decimal("0.2001"))) == {"coco:3"}


def test_the_best_box_speaks_for_its_image() -> None:
    images = embedded({"coco:1#1": [4, 0, 3], "coco:1#2": [1, 0, 0], "coco:1#3": [0, 0, 1]})
    found = text_evidence(images, PROMPTS, CLASSES, margin=Decimal("0.01"))
    assert {image: one.score for image, one in found.items()} == {"coco:1": "1.0000"}


@pytest.mark.parametrize("names", [("dog", "cat"), ("laptop", "fox")])
def test_prompts_of_one_side_alone_mean_nothing(names: tuple[str, str]) -> None:
    prompts = embedded({names[0]: [1, 0, 0], names[1]: [0, 1, 0]})
    with pytest.raises(ProposalError, match="other classes"):
        text_evidence(embedded({"coco:1": [1, 0, 0]}), prompts, CLASSES, margin=Decimal(0))


def test_two_encoders_are_not_compared() -> None:
    images = embedded({"coco:1": [1, 0, 0]}, model="another")
    with pytest.raises(ProposalError, match="two encoders"):
        text_evidence(images, PROMPTS, CLASSES, margin=Decimal(0))
    with pytest.raises(ProposalError, match="two encoders"):
        look_at(images, embedded({"voc:1": [1, 0, 0]}))


def test_the_nearest_id_image_of_each_image() -> None:
    references = embedded({"voc:1": [1, 0], "voc:2": [0, 2]})
    look = look_at(embedded({"coco:1": [4, 3], "coco:2#1": [3, 4], "coco:2#2": [0, 5]}), references)
    assert (look.images, look.nearest) == (("coco:1", "coco:2"), ("voc:1", "voc:2"))
    assert look.similarity.tolist() == pytest.approx([0.8, 1.0], rel=0, abs=cosine_error(2))


def test_an_image_is_suspect_from_the_median_of_id_images() -> None:
    look = Look(("a", "b", "c"), np.array([0.7, 0.6, 0.5], np.float32), ("x", "y", "z"), "e")
    found = look_evidence(look, median=0.5, sigma=0.1, sigmas=Decimal("1"))
    assert {image: (one.score, one.threshold) for image, one in found.items()} == {
        "a": ("0.7000", "0.6000"),
        "b": ("0.6000", "0.6000"),
    }
    assert found["a"].detail == "looks like x"


def test_a_photo_among_the_id_images_is_called_so() -> None:
    images = embedded({"coco:1": [1, 0], "coco:2": [0, 1]})
    look = look_at(images, embedded({"coco:1": [1, 0], "voc:2": [0, 1]}))
    found = look_evidence(look, median=0.5, sigma=0.1, sigmas=Decimal(0))
    assert found["coco:1"].detail == "is itself among the ID images"
    assert found["coco:2"].detail == "looks like voc:2"


@pytest.mark.parametrize(
    ("text", "image"),
    [("coco:1#12", "coco:1"), ("coco:1", "coco:1"), ("cub200:a#b", "cub200:a#b"), ("x:y#1#2", "x:y#1")],
)
def test_a_box_belongs_to_its_image(text: str, image: str) -> None:
    assert image_of(text) == image


def test_the_digest_speaks_of_images_and_encoder() -> None:
    one = embedded({"coco:1": [1, 0]})
    assert digest_of(one) == digest_of(embedded({"coco:1": [0, 1]}))
    assert digest_of(one) != digest_of(embedded({"coco:2": [1, 0]}))
    assert digest_of(one) != digest_of(embedded({"coco:1": [1, 0]}, model="another"))
    assert digest_of(one) != digest_of(embedded({"coco:1": [1, 0]}, prefix="sha256:f"))


vectors = st.lists(st.tuples(*[st.integers(-9, 9)] * 3).filter(any), min_size=1, max_size=6)


@given(vectors, vectors)
def test_s_j_is_the_maximum_over_the_id_images(ood: list[tuple[int, ...]], own: list[tuple[int, ...]]) -> None:
    look = look_at(
        embedded({f"coco:{row}": one for row, one in enumerate(ood)}),
        embedded({f"voc:{row}": one for row, one in enumerate(own)}),
    )
    for one, similarity in zip(ood, look.similarity.tolist(), strict=True):
        cosines = [np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)) for other in own]
        assert similarity == pytest.approx(max(cosines), rel=0, abs=cosine_error(3))
