"""COCO files that were joined without new ids: told apart by their runs, proven, and written with ids of their own."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from curation.core.errors import AnnotationFormatError, DanglingIdError, DuplicateIdError
from curation.extensions.diagnosis.truth_file import renumber
from curation.sources.coco import read_coco
from tests.real_files import real_files
from tests.worlds.coco_file import write_json

IMAGES = [(0, "a.jpg"), (1, "b.jpg"), (3, "c.jpg"), (0, "d.jpg"), (3, "e.jpg")]
ANNOTATIONS = [(0, 0), (1, 3), (2, 3), (0, 0), (1, 3)]


def content(images: list[tuple[Any, str]] = IMAGES, annotations: list[tuple[int, int]] = ANNOTATIONS) -> dict[str, Any]:
    return {
        "info": {"year": 2022},
        "images": [{"id": number, "file_name": name, "width": 9, "height": 9} for number, name in images],
        "annotations": [
            {"id": number, "image_id": image, "category_id": 1, "bbox": [0, 0, row + 1, 2.5], "area": 1}
            for row, (number, image) in enumerate(annotations)
        ],
        "categories": [{"id": 1, "name": "fish"}],
    }


def test_each_annotation_goes_to_the_image_of_its_own_run(tmp_path: Path) -> None:
    path = write_json(tmp_path / "joined.json", content())
    with pytest.raises(DuplicateIdError) as caught:
        read_coco(path)
    assert "curation inspect FILE --renumber NEW.json" in str(caught.value)
    assert main(["inspect", str(path), "--renumber", str(tmp_path / "new.json")]) == 0
    source = read_coco(tmp_path / "new.json")
    assert source.images.numbers.tolist() == [1, 2, 3, 4, 5]
    assert source.objects is not None
    names = source.images.file_names[source.objects.image].tolist()
    assert list(zip(names, source.objects.boxes[:, 2].tolist(), strict=True)) == [
        ("a.jpg", 1), ("c.jpg", 2), ("c.jpg", 3), ("d.jpg", 4), ("e.jpg", 5),
    ]  # fmt: skip
    # All else is as it was.
    new = json.loads((tmp_path / "new.json").read_bytes())
    assert new["info"] == {"year": 2022}
    assert new["annotations"][0]["bbox"] == [0, 0, 1, 2.5]


def test_a_file_without_repeats_keeps_its_meaning_in_any_order(tmp_path: Path) -> None:
    # Detections name the images by these ids.
    path = write_json(tmp_path / "plain.json", content([(7, "a.jpg"), (2, "b.jpg")], [(5, 2), (1, 7), (1, 7)]))
    new = json.loads(renumber(path).data)
    assert [one["image_id"] for one in new["annotations"]] == [2, 7, 7]
    assert [one["id"] for one in new["annotations"]] == [1, 2, 3]
    assert renumber(path).runs == 1
    texts = content([("x", "a.jpg"), ("y", "b.jpg")], [(1, "y"), (1, "x")])  # type: ignore[list-item]
    path = write_json(tmp_path / "texts.json", texts)
    source = read_coco(renumber(path).save(tmp_path / "new.json"))
    assert source.objects is not None
    assert source.images.file_names[source.objects.image].tolist() == ["b.jpg", "a.jpg"]


def test_runs_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AnnotationFormatError, match="2 runs of images, 1 of annotations"):
        renumber(write_json(tmp_path / "a.json", content(annotations=[(0, 0), (1, 3)])))
    with pytest.raises(DanglingIdError, match="not in its run"):
        renumber(write_json(tmp_path / "b.json", content(annotations=[(0, 0), (0, 1)])))
    with pytest.raises(AnnotationFormatError, match="whole numbers"):
        renumber(write_json(tmp_path / "c.json", content(images=[("x", "a.jpg"), ("x", "b.jpg")])))


@real_files("atlas_lists")
@pytest.mark.parametrize(
    ("name", "images", "ids", "repeated", "concerned", "annotations", "annotations_concerned"),
    [
        ("Aquatic/train", 318, 225, 60, 153, 2252, 1039),
        ("Medical/train", 94, 68, 19, 45, 2113, 1025),
        ("Medical/test", 91, 67, 15, 39, 2042, 923),
        ("Medical/annotations", 185, 135, 34, 84, 4155, 1948),
    ],
)
def check_the_jsons_of_rwd(
    shared: Path,
    tmp_path: Path,
    name: str,
    images: int,
    ids: int,
    repeated: int,
    concerned: int,
    annotations: int,
    annotations_concerned: int,
) -> None:
    path = shared / f"data/atlas/rwd/{name}.json"
    found = renumber(path)
    counts = found.counts
    assert (counts["images"], counts["image_ids"], counts["repeated_ids"]) == (images, ids, repeated)
    assert (counts["images_concerned"], counts["annotations"]) == (concerned, annotations)
    assert (counts["annotations_concerned"], found.runs) == (annotations_concerned, 3)
    if name.startswith("Aquatic"):
        assert counts["annotation_ids"] == 1896
    # One box of Aquatic has no width or no height.
    source = read_coco(found.save(tmp_path / "new.json"))
    assert source.objects is not None
    assert (len(source.images), len(source.objects)) == (images, annotations)
    flat = int(((source.objects.boxes[:, 2] <= 0) | (source.objects.boxes[:, 3] <= 0)).sum())
    assert flat == int(name.startswith("Aquatic"))


@real_files("atlas_lists")
def check_known_classes_of_rwd_are_the_first_half_by_annotations(shared: Path) -> None:
    for name, file, border in (("Aquatic", "train", (175, 112)), ("Medical", "annotations", (193, 192))):
        data = json.loads((shared / f"data/atlas/rwd/{name}/{file}.json").read_bytes())
        counted = Counter(one["category_id"] for one in data["annotations"])
        order = sorted(data["categories"], key=lambda one: -counted[one["id"]])
        half = len(order) // 2
        known = (shared / f"data/atlas/rwd/{name}/known_classnames.txt").read_text().split("\n")
        assert {one["name"] for one in order[:half]} == {one.strip() for one in known if one.strip()}
        assert (counted[order[half - 1]["id"]], counted[order[half]["id"]]) == border
