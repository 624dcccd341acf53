import json
from pathlib import Path
from typing import Any

import pytest

from curation.core.errors import EvaluationError
from curation.evaluation.problem import KnownClasses, classes_of_file, classes_of_source
from curation.evaluation.truth import check_closed, check_wilderness, ground_truth
from curation.sources.coco import read_coco
from curation.sources.source import Source

CATEGORIES = [{"id": 7, "name": "cat"}, {"id": 3, "name": "dog"}, {"id": -1, "name": "unknown"}]


def annotation(number: int, image: int, category: int, **more: Any) -> dict[str, Any]:
    box = [number, 0, 10, 10]
    return {"id": number, "image_id": image, "category_id": category, "bbox": box, "area": 50, "iscrowd": 0, **more}


def source(tmp_path: Path, annotations: list[dict[str, Any]], images: tuple[int, ...] = (30, 4, 11)) -> Source:
    content = {
        "images": [{"id": n, "file_name": f"{n:012d}.jpg", "width": 99, "height": 99} for n in images],
        "annotations": annotations,
        "categories": CATEGORIES,
    }
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return read_coco(path)


def test_classes_that_are_not_known_are_unknown_under_their_own_name(tmp_path: Path) -> None:
    found = source(tmp_path, [annotation(1, 4, 3), annotation(2, 4, 7)])
    truth = ground_truth(found, KnownClasses(("feline",), (1,), "test", {"cat": "feline"})).truth
    assert truth.label.tolist() == [-1, 0]
    assert truth.original == ("dog", "cat")


@pytest.mark.parametrize("ids", [("coco:000000000030", "coco:000000000004"), ("other:30", "other:4")])
def test_a_list_chooses_images_by_file_stem_or_number(tmp_path: Path, ids: tuple[str, ...]) -> None:
    found = source(tmp_path, [annotation(1, 30, 7), annotation(2, 11, 7)])
    part = ground_truth(found, classes_of_source(found), ids)
    assert part.truth.image_numbers.tolist() == [4, 30]
    assert part.truth.image.tolist() == [1]
    assert part.file["images_in_files"] == 3


@pytest.mark.parametrize(
    ("listed", "stated"),
    [
        (("coco:000000000002", "coco:000000000003"), {}),
        (("shapes:b", "shapes:c"), {1: "shapes:a", 2: "shapes:b", 3: "shapes:c"}),
        (("shapes:2", "shapes:3"), {}),
        (("shapes:x2", "shapes:x3"), {}),
    ],
)
def test_ids_go_before_names_of_files_that_were_numbered_in_another_order(
    tmp_path: Path, listed: tuple[str, ...], stated: dict[int, str]
) -> None:
    text = "x" if "x" in listed[0] else ""
    images = [
        {"id": f"x{n}" if text else n, "file_name": f"{text}{stem}.jpg", "width": 9, "height": 9}
        | ({"curation_id": stated[n]} if stated else {})
        for n, stem in ((1, 1), (2, 10), (3, 2), (10, 3))
        if n in stated or not stated
    ]
    found = written_source(tmp_path, images, [])
    if not stated and listed[0].startswith("shapes:"):
        with pytest.raises(EvaluationError, match=r"name different images|Two images of the truth have the same name"):
            ground_truth(found, classes_of_source(found), listed)
        return
    assert ground_truth(found, classes_of_source(found), listed).truth.image_numbers.tolist() == [2, 3]


def test_a_class_file_names_the_known_classes(tmp_path: Path) -> None:
    path = tmp_path / "classes.json"
    path.write_text('{"known": ["dog"], "unknown": ["cat"]}', encoding="utf-8")
    known = classes_of_file(path, source(tmp_path, []))
    assert (known.names, known.numbers) == (("dog",), (3,))


def test_swapped_parts_are_recognised(tmp_path: Path) -> None:
    wild = source(tmp_path, [annotation(1, 4, -1)])
    part = ground_truth(wild, classes_of_source(wild))
    check_wilderness(part)
    with pytest.raises(EvaluationError, match="swapped"):
        check_closed(part)
    closed = source(tmp_path, [annotation(1, 4, -1), annotation(2, 4, 3, iscrowd=1)])
    part = ground_truth(closed, classes_of_source(closed))
    check_closed(part)
    with pytest.raises(EvaluationError, match="objects of known classes"):
        check_wilderness(part)


def written_source(tmp_path: Path, images: list[dict[str, Any]], annotations: list[dict[str, Any]]) -> Source:
    path = tmp_path / "named.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": CATEGORIES}))
    return read_coco(path)


def test_images_named_by_texts_stand_in_the_order_of_their_names(tmp_path: Path) -> None:
    images = [{"id": name, "file_name": f"{name}.jpg", "width": 9, "height": 9} for name in ("b", "c", "a")]
    annotations = [{**annotation(1, 0, 7), "image_id": "c"}, {**annotation(2, 0, 3), "image_id": "a"}]
    found = written_source(tmp_path, images, annotations)
    truth = ground_truth(found, classes_of_source(found)).truth
    assert [truth.image_index.ids[row] for row in truth.file_positions] == ["a", "b", "c"]
    assert truth.image_numbers.tolist() == [0, 1, 2]
    assert [(truth.classes[label], place) for label, place in zip(truth.label, truth.image, strict=True)] == [
        ("dog", 0),
        ("cat", 2),
    ]


def test_an_id_of_the_list_that_two_images_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "truth.json"
    images = [{"id": n, "file_name": f"{n}.jpg", "curation_id": f"own:{n // 2}"} for n in range(4)]
    content = {"images": images, "annotations": [annotation(1, 0, 7)], "categories": CATEGORIES}
    path.write_text(json.dumps(content), encoding="utf-8")
    found = read_coco(path, dataset="own")
    with pytest.raises(EvaluationError, match="Two images of the truth have the same id"):
        ground_truth(found, classes_of_source(found), ["own:0", "own:1"])
