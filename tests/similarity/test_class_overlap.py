"""Near classes by hand, and COCO's names among LVIS's and Objects365's by real CLIP embeddings."""

import json
from pathlib import Path

import numpy as np
import pytest

from curation.errors import EmbeddingError, SimilarityError
from curation.similarity.class_overlap import classes_of_images, nearest_classes, read_class_embeddings
from curation.sources.coco_categories import COCO_CATEGORIES
from tests.real_files import real_files
from tests.rounding import cosine_error
from tests.similarity.vectors import embedded

COCO = [name for _, name, _ in COCO_CATEGORIES]


def test_by_hand() -> None:
    ours = embedded({"cat": [1, 0], "car": [0, 1]})
    others = embedded({"kitten": [3, 1], "truck": [0, 5], "tree": [-1, 0]})
    found = nearest_classes(ours, others, 2)
    assert [(one.name, one.other) for one in found[::2]] == [("cat", "kitten"), ("car", "truck")]
    assert found[0].similarity == pytest.approx(3 / np.sqrt(10), rel=0, abs=cosine_error(2))
    assert found[0].margin == pytest.approx(3 / np.sqrt(10) - 0, rel=0, abs=2 * cosine_error(2))
    image = classes_of_images(embedded({"coco:1": [2, 1]}), others)
    assert (image[0].other, round(image[0].margin, 3)) == (
        "kitten",
        round(7 / np.sqrt(50) - 1 / np.sqrt(5), 3),
    )
    with pytest.raises(SimilarityError, match="not so many"):
        nearest_classes(ours, others, 4)
    with pytest.raises(SimilarityError, match="different encoders"):
        nearest_classes(ours, embedded({"x": [1, 1]}, model="other"))


@real_files("clip_text")
def check_real_clip_embeddings_of_names(shared: Path) -> None:
    folder = shared / "data/clip_text"
    lvis = [
        one["name"].replace("_", " ")
        for one in json.loads((folder / "lvis_v1_train_cat_info.json").read_text())
    ]
    ours = read_class_embeddings(folder / "coco_clip_a+cname.npy", COCO, "ViT-B/32")
    theirs = read_class_embeddings(folder / "lvis_v1_clip_a+cname.npy", lvis, "ViT-B/32")
    near = {one.name: one.other for one in nearest_classes(ours, theirs)}
    for name in ("zebra", "giraffe", "banana", "pizza", "umbrella", "kite", "toothbrush", "bench"):
        assert near[name] == name
    other_words = {"couch": "sofa", "tv": "television set", "donut": "doughnut", "tie": "necktie",
                   "car": "car (automobile)", "airplane": "airplane", "potted plant": "flowerpot"}  # fmt: skip
    assert {name: near[name] for name in other_words} == other_words
    # Why the last word is not the encoder's: this mouse is a rodent.
    assert near["mouse"] == "rodent"
    kin = {one.name: one.other for one in nearest_classes(ours, ours, 2) if one.name != one.other}
    pairs = (("bus", "train"), ("knife", "fork"), ("oven", "microwave"), ("cat", "dog"))
    assert all(kin[one] == other and kin[other] == one for one, other in pairs)


def test_arrays_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "names.npy"
    for array, names in (
        (np.ones((2, 3)), ["a"]),
        (np.ones((2, 3)), ["a", "a"]),
        (np.ones(2), ["a", "b"]),
        (np.array([[1, np.nan]]), ["a"]),
        (np.array([["x"]]), ["a"]),
    ):
        np.save(path, array)
        with pytest.raises(EmbeddingError, match="does not hold"):
            read_class_embeddings(path, names, "m")
    path.write_bytes(b"junk")
    with pytest.raises(EmbeddingError, match="no array"):
        read_class_embeddings(path, ["a"], "m")
