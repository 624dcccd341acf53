"""MTSD: one JSON file an image, signs across the seam of a panorama, a test split without annotations."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.core.errors import AnnotationFormatError, BoxError, MissingFileError
from curation.sources.mtsd import OTHER_SIGN
from curation.sources.opening import open_path, parts_at
from curation.sources.source import Source

KEYS = ("_-0hTvp4bzIrz1nXHZ1gQA", "-AbCdEfGhIjKlMnOpQrSt0", "zz9")


def sign(label: str, box: tuple[float, float, float, float], **extra: Any) -> dict[str, Any]:
    names = (
        *("barrier", "occluded", "out-of-frame", "exterior", "ambiguous"),
        *("included", "direction-or-information", "highway", "dummy"),
    )
    properties = dict.fromkeys(names, False) | extra.pop("properties", {})
    corners = dict(zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)) | extra
    return {"key": "k", "label": label, "bbox": corners, "properties": properties}


SEAM = sign(
    "regulatory--stop--g1",
    (3990.0, 100.0, 30.0, 160.0),
    cross_boundary={
        "left": {"xmin": 3990.0, "ymin": 100.0, "xmax": 4000.0, "ymax": 160.0},
        "right": {"xmin": 0.0, "ymin": 100.0, "xmax": 30.0, "ymax": 160.0},
    },
)
PHOTOS: dict[str, dict[str, Any]] = {
    KEYS[0]: {
        "width": 4000,
        "height": 2000,
        "ispano": True,
        "objects": [SEAM, sign("warning--curve-left--g2", (10, 20, 40.5, 60))],
    },
    KEYS[1]: {
        "width": 1920,
        "height": 1080,
        "ispano": False,
        "objects": [
            sign(OTHER_SIGN, (1, 2, 3, 4), properties={"occluded": True}),
            sign("regulatory--stop--g1", (5, 6, 7, 8), properties={"out-of-frame": True}),
        ],
    },
    KEYS[2]: {"width": 10, "height": 20, "ispano": False, "objects": []},
}


def write(root: Path, photos: dict[str, Any] = PHOTOS) -> Path:
    (root / "splits").mkdir(parents=True)
    (root / "annotations").mkdir()
    (root / "splits" / "train.txt").write_text("".join(f"{key}\n" for key in photos))
    (root / "splits" / "test.txt").write_text("t1\nt2\n")
    for key, photo in photos.items():
        (root / "annotations" / f"{key}.json").write_text(json.dumps(photo))
    return root


def read_mtsd(root: Path, part: str, **options: Any) -> Source:
    return open_path(root, dataset="mtsd", part=part, **options)


def boxes(source: Source) -> list[list[float]]:
    found: list[list[float]] = source.require_objects("the test").boxes.tolist()
    return found


def test_signs_are_objects_and_other_sign_is_a_class_like_others(tmp_path: Path) -> None:
    source = read_mtsd(write(tmp_path / "mtsd_v2_fully_annotated").parent, "train")
    assert source.image_ids.tolist() == [f"mtsd:{key}" for key in KEYS]
    assert source.images.widths.tolist() == [4000, 1920, 10]
    assert source.images.file_names.tolist() == [f"{key}.jpg" for key in KEYS]
    assert source.categories.names == (OTHER_SIGN, "regulatory--stop--g1", "warning--curve-left--g2")
    objects = source.require_objects("the test")
    assert objects.image.tolist() == [0, 1, 1]
    assert objects.category.tolist() == [2, 0, 1]
    assert boxes(source) == [[10, 20, 30.5, 40], [1, 2, 2, 2], [5, 6, 2, 2]]
    assert objects.occluded.tolist() == [False, True, False]
    assert objects.truncated.tolist() == [False, False, True]
    assert [(record.name, record.rows, record.files) for record in source.files] == [
        ("splits/train.txt", 3, 1),
        ("annotations/*.json", 4, 3),
    ]


def test_a_sign_across_the_seam_is_left_out_and_counted(tmp_path: Path) -> None:
    source = open_path(write(tmp_path / "mtsd"), dataset="mtsd", part="train")
    assert source.dropped == {"sign across the seam of a panorama: left out": 1}
    assert len(boxes(source)) == 3
    numbers = source.require_objects("the test").numbers.tolist()
    assert len(set(numbers)) == len(numbers)


def test_left_of_right_in_a_photo_that_is_no_panorama_is_a_bad_box(tmp_path: Path) -> None:
    photos = {"a": {"width": 9, "height": 9, "objects": [sign("x", (5, 1, 2, 3)), sign("y", (1, 1, 2, 2))]}}
    root = write(tmp_path, photos)
    with pytest.raises(BoxError, match="negative") as caught:
        read_mtsd(root, "train")
    assert caught.value.where == "annotations/a.json: objects[0]"
    source = read_mtsd(root, "train", bad_boxes="drop")
    assert source.dropped == {"box negative in size": 1}
    assert source.categories.names == ("x", "y")


def test_the_test_split_has_images_and_no_boxes(tmp_path: Path) -> None:
    root = write(tmp_path / "mtsd")
    source = open_path(root, dataset="mtsd", part="test")
    assert source.image_ids.tolist() == ["mtsd:t1", "mtsd:t2"]
    assert source.objects is None
    assert len(source.class_pairs()[0]) == 0
    assert parts_at(root, "mtsd") == ("train", "test")


def test_an_image_without_its_file_is_refused_where_others_have_theirs(tmp_path: Path) -> None:
    root = write(tmp_path)
    (root / "annotations" / f"{KEYS[1]}.json").unlink()
    with pytest.raises(MissingFileError, match="does not exist"):
        read_mtsd(root, "train")


def photo(**changed: Any) -> str:
    return json.dumps({"width": 9, "height": 9, "ispano": False, "objects": []} | changed)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        photo(width=-1),
        photo(height=10**9),
        photo(width="9"),
        photo(objects=[{"label": "a"}]),
        photo(objects=[sign("", (1, 1, 2, 2))]),
        photo(objects=[sign("a\x1b[2J", (1, 1, 2, 2))]),
        photo(objects=[sign("a", (1, 1, 2, 2))]).replace("2}", "NaN}"),
        photo(objects=[sign("a", (1, 1, 2, 2), properties={"occluded": "no"})]),
        "[" * 100_000,
    ],
)
def test_a_malformed_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    root = write(tmp_path)
    (root / "annotations" / f"{KEYS[0]}.json").write_text(text)
    with pytest.raises(AnnotationFormatError) as caught:
        read_mtsd(root, "train")
    assert str(caught.value.where).startswith(f"annotations/{KEYS[0]}.json")


def test_absent_folders_splits_and_policies_are_told(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="Mapillary"):
        open_path(tmp_path, dataset="mtsd", part="train")
    root = write(tmp_path / "mtsd")
    with pytest.raises(MissingFileError, match="no split") as caught:
        read_mtsd(root, "val")
    assert caught.value.expected == "train, test"
