"""CUB-200-2011: five lists, one bird an image."""

from pathlib import Path
from typing import Any

import pytest

from curation.core.errors import (
    AnnotationFormatError,
    BoxError,
    CurationError,
    DanglingIdError,
    DuplicateIdError,
    MissingFileError,
    UsageError,
)
from curation.sources.cub200 import FILES
from curation.sources.opening import open_path, parts_at
from curation.sources.source import Source
from tests.real_files import real_files

IMAGES, CLASSES, LABELS, BOXES, SPLIT = FILES
TEXTS = {
    IMAGES: "1 001.Black_footed_Albatross/Black_Footed_Albatross_0046_18.jpg\n"
    "2 001.Black_footed_Albatross/Black_Footed_Albatross_0009_34.jpg\n"
    "7 002.Laysan_Albatross/Laysan_Albatross_0002_1027.jpg\n",
    CLASSES: "1 001.Black_footed_Albatross\n2 002.Laysan_Albatross\n",
    LABELS: "1 1\n2 1\n7 2\n",
    BOXES: "1 60.0 27.0 325.0 304.0\n2 139.0 30.0 153.0 264.0\n7 26.5 26.0 291.0 229.0\n",
    SPLIT: "1 0\n2 1\n7 1\n",
}


def read_cub200(root: Path, part: str = "", **options: Any) -> Source:
    return open_path(root, dataset="cub200", part=part, **options)


def write(root: Path, **changed: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    names = {name.removesuffix(".txt"): name for name in FILES}
    for name, text in (TEXTS | {names[key]: text for key, text in changed.items()}).items():
        (root / name).write_text(text)
    return root


def test_a_part_holds_its_images_each_with_its_bird(tmp_path: Path) -> None:
    source = read_cub200(write(tmp_path / "CUB_200_2011").parent, "train")
    assert source.image_ids.tolist() == ["cub200:Black_Footed_Albatross_0009_34", "cub200:Laysan_Albatross_0002_1027"]
    assert source.images.numbers.tolist() == [2, 7]
    assert source.images.file_names.tolist()[1] == "002.Laysan_Albatross/Laysan_Albatross_0002_1027.jpg"
    assert source.categories.names == ("Black_footed_Albatross", "Laysan_Albatross")
    assert source.categories.keys == ("001.Black_footed_Albatross", "002.Laysan_Albatross")
    objects = source.require_objects("the test")
    assert objects.image.tolist() == [0, 1]
    assert objects.category.tolist() == [0, 1]
    assert objects.boxes.tolist() == [[139, 30, 153, 264], [26.5, 26, 291, 229]]


@pytest.mark.parametrize(
    ("changed", "error", "where"),
    [
        ({"images": TEXTS[IMAGES].replace("7 ", "2 ")}, DuplicateIdError, "images.txt: line 3"),
        ({"images": TEXTS[IMAGES].replace("0009_34", "0046_18")}, DuplicateIdError, "images.txt: line 2"),
        ({"images": TEXTS[IMAGES] + "8\n"}, AnnotationFormatError, "images.txt: line 4"),
        ({"images": TEXTS[IMAGES].replace("1 001", "one 001")}, AnnotationFormatError, "images.txt: line 1"),
        ({"image_class_labels": "1 1\n2 1\n7 3\n"}, DanglingIdError, "image_class_labels.txt: line 3"),
        ({"image_class_labels": "1 1\n2 1\n7 ²\n"}, DanglingIdError, "image_class_labels.txt: line 3"),
        ({"image_class_labels": "1 1\n2 1\n7 00000000012\n"}, DanglingIdError, "image_class_labels.txt: line 3"),
        ({"image_class_labels": "1 1\n2 1\n"}, AnnotationFormatError, "image_class_labels.txt"),
        ({"bounding_boxes": TEXTS[BOXES] + "9 1 1 1 1\n"}, DanglingIdError, "bounding_boxes.txt: line 4"),
        ({"bounding_boxes": TEXTS[BOXES].replace("27.0", "wide")}, AnnotationFormatError, "bounding_boxes.txt: line 1"),
        ({"bounding_boxes": TEXTS[BOXES].replace("153.0", "-1")}, BoxError, "bounding_boxes.txt: line 2"),
        ({"bounding_boxes": TEXTS[BOXES].replace("153.0", "nan")}, BoxError, "bounding_boxes.txt: line 2"),
        ({"train_test_split": "1 0\n2 1\n7 2\n"}, AnnotationFormatError, "train_test_split.txt: line 3"),
        ({"classes": "1 001.A\n2 002.A\n"}, DuplicateIdError, "classes.txt: line 2"),
        ({"images": ""}, CurationError, None),
    ],
)
def test_what_does_not_fit_together_is_refused_with_its_line(
    tmp_path: Path, changed: dict[str, str], error: type[CurationError], where: str | None
) -> None:
    with pytest.raises(error) as caught:
        read_cub200(write(tmp_path, **changed))
    assert where is None or caught.value.where == where


def test_opening_keeps_parts_apart(tmp_path: Path) -> None:
    root = write(tmp_path / "cub")
    counts = [len(open_path(root, dataset="cub200", part=part).images) for part in ("train", "test", "", "train")]
    assert counts == [2, 1, 3, 2]
    assert parts_at(root, "cub200") == ("train", "test")
    with pytest.raises(UsageError):
        open_path(root, dataset="cub200", part="val")
    with pytest.raises(MissingFileError):
        open_path(tmp_path, dataset="cub200", part="train")


@real_files("cub200_and_signs")
def check_the_real_lists_have_the_published_figures(shared: Path) -> None:
    root = shared / "data/cub200"
    parts = {part: read_cub200(root, part) for part in ("", "train", "test")}
    assert {part: len(source.images) for part, source in parts.items()} == {"": 11_788, "train": 5_994, "test": 5_794}
    assert all(len(source.require_objects("the test")) == len(source.images) for source in parts.values())
    assert len(parts[""].categories) == 200
    assert set(parts["train"].image_ids) | set(parts["test"].image_ids) == set(parts[""].image_ids)
    photos = {path.stem for path in (root / "images").glob("*/*.jpg")}
    assert photos
    assert photos <= set(parts[""].images.native.tolist())
