import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import (
    AnnotationFormatError,
    BoxError,
    CurationError,
    CurationWarning,
    DanglingIdError,
    DuplicateIdError,
    MissingFileError,
)
from curation.sources.coco import read_coco
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.source import Source
from tests.real_files import real_files


def instances(**changes: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "info": {"description": "a test", "annotations": []},
        "images": [
            {"id": 9, "file_name": "000000000009.jpg", "width": 640, "height": 480},
            {"id": 25, "file_name": "000000000025.jpg", "width": 500, "height": 333},
            {"id": 30, "file_name": "000000000030.jpg", "width": 1, "height": 2},
        ],
        "annotations": [
            annotation(id=41, image_id=25, category_id=1, bbox=[10.5, 20, 30, 40.25], area=700.5),
            annotation(id=42, image_id=9, category_id=22, bbox=[0, 0, 640, 480], area=1, iscrowd=1),
        ],
        "categories": [
            {"id": 1, "name": "person", "supercategory": "person"},
            {"id": 22, "name": "elephant", "supercategory": "animal"},
        ],
    }
    return content | changes


def annotation(**changes: Any) -> dict[str, Any]:
    return {
        "segmentation": [[1, 2, 3, 4, 5, 6]],
        "area": 12.0,
        "iscrowd": 0,
        "image_id": 9,
        "bbox": [1, 2, 3, 4],
        "category_id": 1,
        "id": 1,
    } | changes


def write(folder: Path, content: object) -> Path:
    path = folder / "instances.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def read(folder: Path, content: object, **options: Any) -> Source:
    return read_coco(write(folder, content), **options)


def test_columns_say_what_the_file_says(tmp_path: Path) -> None:
    source = read(tmp_path, instances(), part="train2017")
    assert source.image_ids.tolist() == ["coco:000000000009", "coco:000000000025", "coco:000000000030"]
    assert source.images.numbers.tolist() == [9, 25, 30]
    assert source.images.file_names.tolist()[2] == "000000000030.jpg"
    assert source.images.widths.tolist() == [640, 500, 1]
    assert source.images.heights.tolist() == [480, 333, 2]
    assert source.categories.numbers == (1, 22)
    assert source.categories.names == ("person", "elephant")
    assert source.categories.supercategories == ("person", "animal")
    objects = source.require_objects("the test")
    assert objects.image.tolist() == [1, 0]
    assert objects.category.tolist() == [0, 1]
    assert objects.boxes.tolist() == [[10.5, 20, 30, 40.25], [0, 0, 640, 480]]
    assert objects.areas.tolist() == [700.5, 1]
    assert objects.numbers.tolist() == [41, 42]
    assert objects.crowd.tolist() == [False, True]
    assert not objects.difficult.any()
    assert objects.original is None
    (file,) = source.files
    assert (file.name, file.rows, file.files) == ("instances.json", 2, 1)
    assert file.size == (tmp_path / "instances.json").stat().st_size


def test_null_is_as_if_it_were_absent_and_an_id_may_be_a_whole_float(tmp_path: Path) -> None:
    """As pandas, FiftyOne and others write COCO JSON."""
    content = instances()
    for record in content["images"]:
        record |= {"width": 0, "height": 0}
    for record in content["annotations"]:
        record["iscrowd"] = 0
    expected = read(tmp_path, content)
    for record in content["images"]:
        record |= {"id": float(record["id"]), "width": None, "height": None, "date_captured": None}
    for record in content["annotations"]:
        record |= {key: float(record[key]) for key in ("id", "image_id", "category_id")} | {"iscrowd": None}
    for record in content["categories"]:
        record |= {"id": float(record["id"])}
    found = read(tmp_path, content)
    assert found.image_ids.tolist() == expected.image_ids.tolist()
    assert found.objects == expected.objects
    content["annotations"][0]["image_id"] = 25.5
    with pytest.raises(AnnotationFormatError, match="Expected"):
        read(tmp_path, content)


def test_a_file_without_annotations_has_images_and_no_objects(tmp_path: Path) -> None:
    content = instances()
    del content["annotations"]
    source = read(tmp_path, content)
    assert len(source.images) == 3
    assert len(source.require_objects("the test")) == 0
    assert len(read(tmp_path, instances(annotations=[])).require_objects("the test")) == 0
    assert len(read(tmp_path, {"images": []}).images) == 0


def test_fields_of_converted_voc_files_are_read(tmp_path: Path) -> None:
    rows = [
        annotation(id=1, difficult=1),
        annotation(id=2, ignore=1, truncated=1, pose="Left"),
        annotation(id=3, occluded=True, iscrowd=0.0, orig_category="elephant"),
        annotation(id=4, orig_category_id=22),
    ]
    objects = read(tmp_path, instances(annotations=rows)).require_objects("the test")
    assert objects.difficult.tolist() == [True, True, False, False]
    assert objects.truncated.tolist() == [False, True, False, False]
    assert objects.occluded.tolist() == [False, False, True, False]
    assert objects.pose.tolist() == [0, 4, 0, 0]
    assert objects.original is not None
    assert objects.original.tolist() == ["", "", "elephant", "elephant"]


def test_text_ids_and_the_unknown_category_are_read(tmp_path: Path) -> None:
    content = instances(
        images=[{"id": "a_b"}, {"id": "c"}],
        annotations=[annotation(id="x", image_id="c", category_id=-1)],
        categories=[{"id": 1, "name": "cat"}, {"id": -1, "name": "unknown"}],
    )
    source = read(tmp_path, content, dataset="mine", part="test")
    assert source.image_ids.tolist() == ["mine:a_b", "mine:c"]
    assert source.images.numbers.tolist() == [0, 1]
    assert source.categories.numbers == (1, -1)
    objects = source.require_objects("the test")
    assert (objects.image.tolist(), objects.category.tolist(), objects.numbers.tolist()) == ([1], [1], [1])


def test_coco_numbers_in_quotes_become_twelve_digits(tmp_path: Path) -> None:
    content = instances(images=[{"id": "139"}, {"id": "000000000285"}], annotations=[])
    assert read(tmp_path, content).images.native.tolist() == ["000000000139", "000000000285"]


def test_voc_in_json_form_takes_its_native_ids_from_the_file_names(tmp_path: Path) -> None:
    images = [{"id": 2008000008, "file_name": "JPEGImages/2008_000008.jpg"}]
    source = read(tmp_path, instances(images=images, annotations=[]), dataset="voc2012", part="train")
    assert source.image_ids.tolist() == ["voc2012:2008_000008"]
    assert source.images.numbers.tolist() == [2008000008]


def test_boxes_of_no_size_and_boxes_that_stick_out_are_facts(tmp_path: Path) -> None:
    rows = [annotation(id=1, bbox=[600, 400, 100, 0], area=0), annotation(id=2, bbox=[-3.5, 0, 5, 5])]
    source = read(tmp_path, instances(annotations=rows))
    assert len(source.require_objects("the test")) == 2
    assert source.dropped == {}


BAD_BOXES = {
    "negative width": ({"bbox": [1, 2, -3, 4]}, "negative in size"),
    "negative area": ({"area": -1.0}, "negative in size"),
    "huge coordinate": ({"bbox": [1e7, 2, 3, 4]}, "beyond any image"),
    "huge area": ({"area": 1e300}, "beyond any image"),
}


@pytest.mark.parametrize(("change", "reason"), BAD_BOXES.values(), ids=BAD_BOXES)
@pytest.mark.parametrize("extra", [{}, {"difficult": 0}], ids=["plain", "with other fields"])
def test_a_bad_box_is_an_error_or_a_counted_drop(
    tmp_path: Path, change: dict[str, Any], reason: str, extra: dict[str, Any]
) -> None:
    rows = [annotation(id=7, **extra), annotation(id=8, **change, **extra), annotation(id=9, **extra)]
    with pytest.raises(BoxError, match=reason) as caught:
        read(tmp_path, instances(annotations=rows))
    assert caught.value.where == "instances.json: annotations[1] (id 8)"
    source = read(tmp_path, instances(annotations=rows), bad_boxes="drop")
    assert source.require_objects("the test").numbers.tolist() == [7, 9]
    assert source.dropped == {f"box {reason}": 1}
    assert source.files[0].rows == 3


def with_rows(*rows: dict[str, Any]) -> dict[str, Any]:
    """Return a file whose annotations are so changed, the others sound."""
    return instances(annotations=[annotation(**row) for row in rows])


def with_images(*images: dict[str, Any]) -> dict[str, Any]:
    return instances(images=list(images), annotations=[])


def with_classes(*pairs: tuple[int, str]) -> dict[str, Any]:
    return instances(categories=[{"id": number, "name": name} for number, name in pairs], annotations=[])


NO_ID = {"image_id": 9, "category_id": 1, "bbox": [1, 2, 3, 4]}
MALFORMED: dict[str, tuple[Any, type[CurationError], str]] = {
    "duplicate image": (with_images({"id": 9}, {"id": 25}, {"id": 9}), DuplicateIdError, "images[2] (id 9)"),
    "duplicate annotation": (with_rows({"id": 5}, {"id": 6}, {"id": 5}), DuplicateIdError, "annotations[2] (id 5)"),
    "duplicate category": (with_classes((1, "a"), (1, "b")), DuplicateIdError, "categories[1] (id 1)"),
    "dangling image": (with_rows({}, {"id": 2, "image_id": 10}), DanglingIdError, "annotations[1] (id 2)"),
    "dangling category": (with_rows({"category_id": 91}), DanglingIdError, "annotations[0] (id 1)"),
    "no image at all": (instances(images=[]), DanglingIdError, "annotations[0] (id 41)"),
    "text refers to number": (with_rows({"image_id": "9"}), DanglingIdError, "annotations[0] (id 1)"),
    "boolean id": (with_rows({"id": True}), AnnotationFormatError, "annotations[0]"),
    "fractional id": (with_rows({}, {"id": 4, "image_id": 9.5}), AnnotationFormatError, "annotations[1]"),
    "id beyond twelve digits": (with_images({"id": 10**12}), AnnotationFormatError, "images[0] (id 1000000000000)"),
    "negative image id": (with_images({"id": -5}), AnnotationFormatError, "images[0] (id -5)"),
    "mixed ids": (with_images({"id": 9}, {"id": "x"}), AnnotationFormatError, "images[1] (id x)"),
    "some without id": (instances(annotations=[annotation(), NO_ID]), AnnotationFormatError, "annotations[1]"),
    "short box": (with_rows({"bbox": [1, 2, 3]}), AnnotationFormatError, "annotations[0]"),
    "box of texts": (with_rows({"bbox": ["1", 2, 3, 4]}), AnnotationFormatError, "annotations[0]"),
    "box absent": (instances(annotations=[{"id": 3, "image_id": 9}]), AnnotationFormatError, "annotations[0]"),
    "crowd of 2": (with_rows({"iscrowd": 2}), AnnotationFormatError, "annotations[0]"),
    "height beyond any number": (with_images({"id": 1, "height": 10**400}), AnnotationFormatError, "images[0]"),
    "long file name": (with_images({"id": 1, "file_name": "x" * 5000}), AnnotationFormatError, "images[0]"),
    "annotations not a list": (instances(annotations={}), AnnotationFormatError, "annotations"),
    "no images": ({"annotations": []}, AnnotationFormatError, "instances.json"),
    "record not an object": (instances(annotations=[[1, 2]]), AnnotationFormatError, "annotations[0]"),
}


@pytest.mark.parametrize(("content", "error", "place"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_record_is_named(tmp_path: Path, content: object, error: type[CurationError], place: str) -> None:
    with pytest.raises(error) as caught:
        read(tmp_path, content)
    assert caught.value.where is not None
    assert place in caught.value.where
    assert caught.value.where.startswith("instances.json")
    if '"9"' in json.dumps(content):
        assert "'9' (" in str(caught.value.found), "a text is told apart from the number"


def test_ids_of_a_dataset_with_texts_must_be_printable(tmp_path: Path) -> None:
    with pytest.raises(AnnotationFormatError) as caught:
        read(tmp_path, instances(images=[{"id": "ok"}, {"id": "a\nb"}], annotations=[]), dataset="mine")
    assert "images[1]" in str(caught.value.where)


def test_two_voc_images_with_one_stem_are_refused(tmp_path: Path) -> None:
    images = [{"id": 1, "file_name": "a/000001.jpg"}, {"id": 2, "file_name": "b/000001.jpg"}]
    with pytest.raises(DuplicateIdError, match="native image id"):
        read(tmp_path, instances(images=images, annotations=[]), dataset="voc2007")


WHOLE = json.dumps(instances()).encode()
BROKEN = {
    "empty": (b"", "not JSON"),
    "NaN": (WHOLE.replace(b"700.5", b"NaN"), "not JSON"),
    "number beyond double": (WHOLE.replace(b"700.5", b"1e999"), "malformed"),
    "UTF-16": (json.dumps(instances()).encode("utf-16"), "not JSON"),
    "Latin-1": (WHOLE.replace(b"elephant", b"\xe9l\xe9phant"), "UTF-8"),
    "a list of detections": (b'[{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]', "list"),
    "not JSON": (b"<annotation/>", "not JSON"),
    "something after the end": (WHOLE + b"{}", "not JSON"),
    "half a surrogate pair": (WHOLE.replace(b"elephant", b"\\ud800"), "not JSON"),
    "nested": (WHOLE.replace(b"[[1, 2", b"[" * 100_000 + b"[[1, 2"), "not JSON"),
}


@pytest.mark.parametrize(("data", "reason"), BROKEN.values(), ids=BROKEN)
def test_what_is_not_a_coco_file_is_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(AnnotationFormatError, match=reason) as caught:
        read(tmp_path, data)
    assert str(caught.value.where).startswith("instances.json")


def test_every_truncation_is_an_error_that_tells_the_size(tmp_path: Path) -> None:
    for size in range(1, len(WHOLE), 7):
        with pytest.raises(AnnotationFormatError) as caught:
            read(tmp_path, WHOLE[:size])
        assert str(size) in str(caught.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        read_coco(tmp_path / "absent.json")
    with pytest.raises(MissingFileError):
        read_coco(tmp_path)


numbers = st.floats(-100, 1000, allow_nan=False).map(lambda value: round(value, 2))
sizes = st.floats(0, 1000, allow_nan=False).map(lambda value: round(value, 2))


@st.composite
def contents(draw: st.DrawFn) -> dict[str, Any]:
    images = draw(st.lists(st.integers(0, 10**12 - 1), min_size=1, max_size=8, unique=True))
    categories = draw(st.lists(st.integers(-1, 90), min_size=1, max_size=5, unique=True))
    ids = draw(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12, unique=True))
    rows = [
        annotation(
            id=number,
            image_id=draw(st.sampled_from(images)),
            category_id=draw(st.sampled_from(categories)),
            bbox=[draw(numbers), draw(numbers), draw(sizes), draw(sizes)],
            area=draw(sizes),
            iscrowd=draw(st.integers(0, 1)),
            segmentation=draw(st.sampled_from([[], [[1.5, 2, 3, 4]], {"counts": [1, 2], "size": [3, 4]}, "}, {"])),
        )
        for number in ids
    ]
    return {
        "images": [{"id": number, "file_name": f"{number}.jpg", "width": 10, "height": 20} for number in images],
        "annotations": rows,
        "categories": [{"id": number, "name": f"class {number}", "supercategory": ""} for number in categories],
    }


def as_rows(source: Source) -> list[tuple[Any, ...]]:
    objects = source.require_objects("the test")
    return [
        (
            int(objects.numbers[row]),
            int(source.images.numbers[objects.image[row]]),
            source.categories.numbers[objects.category[row]],
            objects.boxes[row].tolist(),
            float(objects.areas[row]),
            int(objects.crowd[row]),
        )
        for row in range(len(objects))
    ]


def expected_rows(content: dict[str, Any]) -> list[tuple[Any, ...]]:
    keys = ("id", "image_id", "category_id", "bbox", "area", "iscrowd")
    return [tuple(row[key] for key in keys) for row in content["annotations"]]


@given(content=contents(), indent=st.sampled_from([None, 0, 1]), compact=st.booleans())
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any], indent: int | None, compact: bool
) -> None:
    path = tmp_path_factory.mktemp("coco") / "instances.json"
    path.write_text(json.dumps(content, indent=indent, separators=(",", ":") if compact else None))
    assert as_rows(read_coco(path)) == expected_rows(content)


@pytest.mark.parametrize("padding", [0, 1 << 20])
def test_a_key_that_stands_twice_is_refused(tmp_path: Path, padding: int) -> None:
    """A decoder would keep the last list and drop the first, in a large file as in a small one."""
    first = json.dumps([annotation(id=1)])
    second = json.dumps([annotation(id=2)])
    whole = json.dumps(instances(annotations=[]))
    doubled = [
        whole.replace(
            '"annotations": [], "categories"', f'"annotations": {first}, "annotations": {second}, "categories"'
        ),
        whole[:-1] + f', "annotations": {first}, "annotations": {second}}}',
        whole.replace('"annotations": []', f'"annotations": {second}')[:-1] + ', "images": []}',
        whole.replace('"annotations": []', f'"images": [], "annotations": {second}'),
    ]
    for text in doubled:
        with pytest.raises(AnnotationFormatError, match="appears twice"):
            read(tmp_path, text.encode() + b" " * padding)
    within = whole.replace('"annotations": []', f'"annotations": {second}').replace('"id": 2', '"id": 1, "id": 2')
    with pytest.raises(AnnotationFormatError, match="appears twice"):
        read(tmp_path, within.encode())


@real_files("coco")
def check_val2017_has_its_published_figures(shared: Path) -> None:
    source = read_coco(shared / "data/coco/instances_val2017_rebuilt.json", part="val2017")
    objects = source.require_objects("the test")
    assert (len(source.images), len(objects), len(source.categories)) == (5000, 36_781, 80)
    assert len(np.unique(objects.image)) == 4952
    assert tuple(zip(source.categories.numbers, source.categories.names, strict=True)) == tuple(
        (number, name) for number, name, _ in COCO_CATEGORIES
    )


@real_files("voc2007")
def check_voc2007_test_has_its_published_counts(shared: Path) -> None:
    expected = json.loads((shared / "golden/elephant/voc2007_test_counts.json").read_text())
    source = read_coco(shared / "data/voc2007/test_with_difficult.json", dataset="voc2007", part="test")
    objects = source.require_objects("the test")
    assert (len(source.images), len(objects)) == (expected["images"], expected["annotations"])
    assert int(objects.difficult.sum()) == expected["difficult"]
    for name, counts in expected["per_class"].items():
        of_class = objects.category == source.categories.index()[name]
        assert int(of_class.sum()) == counts["all"], name
        assert int((of_class & ~objects.difficult).sum()) == counts["non_difficult"], name
    assert source.image_ids[0] == "voc2007:000001"


@real_files("coco_table")
@pytest.mark.parametrize(("part", "crowds"), [("train2017", 8), ("val2017", 5)])
def check_pycocotools_reads_the_same(shared: Path, part: str, crowds: int, capsys: pytest.CaptureFixture[str]) -> None:
    from pycocotools.coco import COCO

    path = shared / f"data/coco/mini/annotations/instances_{part}.json"
    oracle = COCO(str(path))
    source = read_coco(path, part=part)
    objects = source.require_objects("the test")
    assert int(objects.crowd.sum()) == crowds
    assert source.images.numbers.tolist() == list(oracle.imgs)
    assert sorted(objects.numbers.tolist()) == sorted(oracle.anns)
    for place, number in enumerate(source.categories.numbers):
        images = source.images.numbers[np.unique(objects.image[objects.category == place])]
        assert set(images.tolist()) == set(oracle.getImgIds(catIds=[number])), source.categories.names[place]
    for row in as_rows(source):
        record = oracle.anns[row[0]]
        assert row[1:] == tuple(record[key] for key in ("image_id", "category_id", "bbox", "area", "iscrowd"))
    capsys.readouterr()


def test_what_lvis_says_of_images_and_classes(tmp_path: Path) -> None:
    content = {
        "images": [
            {"id": 7, "neg_category_ids": [4, 2], "not_exhaustive_category_ids": []},
            {"id": 3, "neg_category_ids": [], "not_exhaustive_category_ids": [9]},
        ],
        "categories": [{"id": number, "name": f"class {number}"} for number in (2, 4, 9)],
        "annotations": [{"id": 1, "image_id": 3, "category_id": 9, "bbox": [0, 0, 2, 2], "area": 3}],
    }
    path = tmp_path / "lvis.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    found = read_coco(path).federated
    assert found is not None
    assert found.tolist() == [[0, 1, 0], [0, 0, 0], [1, 2, 1]]
    content["images"] = [{"id": 7}, {"id": 3}]
    path.write_text(json.dumps(content), encoding="utf-8")
    assert read_coco(path).federated is None
    content["images"] = [{"id": 7, "neg_category_ids": [5]}, {"id": 3}]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DanglingIdError, match="category") as caught:
        read_coco(path)
    assert "images[0] (id 7)" in str(caught.value)


def test_fields_that_no_measure_needs_refuse_no_file(tmp_path: Path) -> None:
    content = instances()
    odd = {"truncated": 0.58, "occluded": "partly", "pose": "standing", "orig_category": None}
    for record in content["annotations"]:
        record |= odd
    content["categories"][0] |= {"supercategory": 7}
    content["images"][0] |= {"coco_url": False}
    source = read(tmp_path, content)
    found = source.require_objects("the test")
    assert (set(found.truncated.tolist()), set(found.occluded.tolist())) == ({True}, {False})
    assert source.categories.supercategories[0] == "7"


def test_an_address_names_the_photo_of_an_image_without_a_file_name(tmp_path: Path) -> None:
    url = "http://images.cocodataset.org/val2017/000000000009.jpg"
    source = read(tmp_path, with_images({"id": 9, "coco_url": url}, {"id": 10, "coco_url": None}))
    assert source.images.file_names.tolist() == ["val2017/000000000009.jpg", ""]


def test_a_mask_without_a_box_has_the_box_around_it(tmp_path: Path) -> None:
    """Boxes of run-length masks are pycocotools', those of polygons are around all their corners."""
    mask = pytest.importorskip("pycocotools.mask")
    bitmap = np.zeros((48, 64), np.uint8, order="F")
    bitmap[10:30, 5:25] = 1
    runs = mask.encode(bitmap)
    counts = [5 * 48 + 10, *([20, 28] * 19), 20, 64 * 48 - 24 * 48 - 30]
    masks = [
        [[1, 2, 11, 2, 11, 22], [30, 5, 31, 5.5, 30, 8]],
        {"size": [48, 64], "counts": runs["counts"].decode()},
        {"size": [48, 64], "counts": counts},
    ]
    rows = [{"id": n, "image_id": 9, "category_id": 1, "segmentation": one} for n, one in enumerate(masks, 1)]
    rows[1] |= {"bbox": None}
    rows[2] |= {"bbox": []}
    with pytest.warns(CurationWarning, match="3 annotations without bbox: their boxes are those around their masks"):
        source = read(tmp_path, instances(annotations=rows))
    expected = [[1, 2, 30, 20], *[mask.toBbox(runs).tolist()] * 2]
    assert source.require_objects("the test").boxes.tolist() == expected == [[1, 2, 30, 20], *[[5, 10, 20, 20]] * 2]


def test_the_box_around_runs_is_that_of_pycocotools(tmp_path: Path) -> None:
    mask = pytest.importorskip("pycocotools.mask")
    rng = np.random.default_rng(3)
    rows, expected = [], []
    for number in range(1, 60):
        shape = rng.integers(1, 40, 2)
        bitmap = np.asfortranarray(rng.random(shape) < rng.choice([0.02, 0.3, 0.98]), np.uint8)
        if not bitmap.any():
            continue
        runs = mask.encode(bitmap)
        expected.append(mask.toBbox(runs).tolist())
        encoded = {"size": shape.tolist(), "counts": runs["counts"].decode()}
        rows.append({"id": number, "image_id": 9, "category_id": 1, "segmentation": encoded})
    with pytest.warns(CurationWarning, match="around their masks"):
        source = read(tmp_path, instances(annotations=rows))
    assert source.require_objects("the test").boxes.tolist() == expected


BROKEN_MASKS: list[Any] = [
    [], [[]], [[1]], [["a", "b"]], [[1, 2], {}], {"size": [48, 64]}, {"size": [48], "counts": [1]},
    {"size": [48, 64], "counts": "é"}, {"size": None, "counts": [3]}, "mask", 5, [[[1, 2]] * 2, 3],
]  # fmt: skip


@pytest.mark.parametrize("mask", BROKEN_MASKS, ids=str)
def test_a_broken_mask_gives_no_box(mask: Any, tmp_path: Path) -> None:
    rows = [{"id": 1, "image_id": 9, "category_id": 1, "segmentation": mask}]
    if mask == [[[1, 2]] * 2, 3] or mask == [[1, 2], {}]:
        with pytest.warns(CurationWarning, match="around"):
            read(tmp_path, instances(annotations=rows))
        return
    with pytest.raises(AnnotationFormatError, match="malformed"):
        read(tmp_path, instances(annotations=rows))


def panoptic() -> dict[str, Any]:
    """Return a file of COCO's panoptic form: ids of segments are colours."""
    segments = [
        {"id": 3226956, "category_id": 1, "iscrowd": 0, "bbox": [1, 2, 30, 20], "area": 500},
        {"id": 6979964, "category_id": 184, "iscrowd": 0, "bbox": [0, 0, 64, 48], "area": 2000},
    ]
    return {
        "images": [{"id": n, "width": 64, "height": 48, "file_name": f"{n}.jpg"} for n in (9, 25)],
        "annotations": [
            {"image_id": n, "file_name": f"{n}.png", "segments_info": segments[: 2 if n == 9 else 1]} for n in (9, 25)
        ],
        "categories": [{"id": 1, "name": "person", "isthing": 1}, {"id": 184, "name": "tree", "isthing": 0}],
    }


def test_things_of_a_panoptic_file_are_objects(tmp_path: Path) -> None:
    with pytest.warns(CurationWarning, match="1 annotation left out: segments of stuff"):
        source = read(tmp_path, panoptic())
    found = source.require_objects("the test")
    assert source.categories.names == ("person",)
    assert found.image.tolist() == [0, 1]
    assert found.boxes.tolist() == [[1, 2, 30, 20]] * 2
    assert found.areas.tolist() == [500, 500]


DAMAGED: list[Callable[[dict[str, Any]], Any]] = [
    lambda file: file["annotations"][0].pop("image_id"),
    lambda file: file["annotations"][1].pop("segments_info"),
    lambda file: file["annotations"][0]["segments_info"][0].pop("category_id"),
    lambda file: file["annotations"][0]["segments_info"][0].pop("bbox"),
    lambda file: file["annotations"][0]["segments_info"].append(5),
    lambda file: file["annotations"].append({"image_id": 26, "segments_info": [{"category_id": 1, "bbox": [1] * 4}]}),
    lambda file: file.pop("categories"),
    lambda file: file["categories"][0].pop("id"),
    lambda file: file["annotations"][0].update(segments_info={"a": 1}),
    lambda file: file["annotations"].append([]),
    lambda file: file.update(images=5),
]


@pytest.mark.parametrize("damage", range(len(DAMAGED)))
@pytest.mark.filterwarnings("ignore::curation.core.errors.CurationWarning")
def test_a_damaged_panoptic_file_is_refused(damage: int, tmp_path: Path) -> None:
    file = panoptic()
    # Both annotations share their list of segments.
    file = json.loads(json.dumps(file))
    DAMAGED[damage](file)
    with pytest.raises(CurationError):
        read(tmp_path, file)
