"""Open Images as a source: what the published files say, and what is said where they lack something."""

import csv
import io
from dataclasses import fields
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
    DanglingIdError,
    DuplicateIdError,
    MissingFileError,
    UnitBoxesError,
    UsageError,
)
from curation.evaluation.problem import classes_of_source
from curation.evaluation.truth import ground_truth
from curation.sources import table
from curation.sources.opening import open_path, parts_at
from curation.sources.source import Objects, Source
from tests.real_files import real_files
from tests.sources.openimages_files import DESCRIPTIONS, HEADER, ROWS, write_boxes, write_openimages


def read_openimages(path: Path, part: str = "", **options: Any) -> Source:
    return open_path(path, dataset="openimages", part=part, **options)


def objects_of(source: Source) -> Objects:
    return source.require_objects("the test")


def test_every_column_of_the_published_file_is_kept(tmp_path: Path) -> None:
    source = read_openimages(write_openimages(tmp_path), "train")
    objects = objects_of(source)
    assert source.image_ids.tolist() == ["openimages:000002b66c9c498e", "openimages:00166893b16a03ab"]
    assert source.categories.names == ("Person", "Dog", "Cat")
    assert source.categories.keys == ("/m/01g317", "/m/0bt9lr", "/m/01yrx")
    assert objects.image.tolist() == [0, 0, 1, 1]
    assert objects.category.tolist() == [0, 0, 1, 2]
    assert objects.numbers.tolist() == [1, 2, 3, 4]
    flags = {
        name: getattr(objects, name).tolist() for name in ("occluded", "truncated", "crowd", "depiction", "inside")
    }
    assert flags == {
        "occluded": [False, False, True, False],
        "truncated": [True, False, False, False],
        "crowd": [False, False, True, False],
        "depiction": [False, False, True, False],
        "inside": [False, False, False, True],
    }
    assert source.unit_boxes
    assert source.dropped == {
        f"{flag} flags that are not stated (read as 0)": 1
        for flag in ("IsDepiction", "IsGroupOf", "IsInside", "IsOccluded", "IsTruncated")
    }


def test_a_table_of_sizes_puts_boxes_into_pixels_as_the_authors_round_them(tmp_path: Path) -> None:
    write_openimages(tmp_path)
    (tmp_path / "train-image-sizes.csv").write_text(
        "image_id,width,height\n00166893b16a03ab,1024,683\n00000000000000ff,9,9\n"
    )
    source = read_openimages(tmp_path, "train")
    assert source.images.widths.tolist() == [0, 1024]
    assert source.images.heights.tolist() == [0, 683]
    boxes = objects_of(source).boxes
    # FindMeIfYouCan's code: round(XMin*W, 2), round(YMin*H, 2), round((XMax-XMin)*W, 2), round((YMax-YMin)*H, 2)
    low_x, high_x, low_y, high_y = 0.022673031, 0.9642006, 0.07103825, 0.80054647
    by_hand = [low_x * 1024, low_y * 683, (high_x - low_x) * 1024, (high_y - low_y) * 683]
    assert [round(value, 2) for value in boxes[2].tolist()] == [round(value, 2) for value in by_hand]
    assert boxes[3].tolist() == [0, 0, 1024, 683]
    assert boxes[0, 0] == 0.0125
    assert np.allclose(objects_of(source).areas, boxes[:, 2] * boxes[:, 3])


def test_what_needs_pixels_is_refused_where_sizes_are_unknown(tmp_path: Path) -> None:
    write_openimages(tmp_path)
    (tmp_path / "image-sizes.csv").write_text("ImageID,width,height\n00166893b16a03ab,1024,683\n")
    source = read_openimages(tmp_path, "train")
    with pytest.raises(UnitBoxesError, match="1 images of unknown size, the first 000002b66c9c498e") as caught:
        ground_truth(source, classes_of_source(source))
    assert "train-image-sizes.csv" in str(caught.value.hint)
    sized = ground_truth(source, classes_of_source(source), ["openimages:00166893b16a03ab"])
    assert len(sized.truth.boxes) == 2
    assert source.require_pixels("the test", np.array([1])) is source.objects


def test_the_list_of_images_adds_those_without_boxes_and_gives_the_order(tmp_path: Path) -> None:
    root = write_openimages(tmp_path, part="validation")
    (root / "validation-images-with-rotation.csv").write_text(
        "ImageID,Subset,OriginalURL,Title,Rotation\n"
        '00166893b16a03ab,validation,https://x/a.jpg,"a, title",0.0\n'
        "ffffffffffffffff,validation,https://x/b.jpg,,\n"
        "000002b66c9c498e,validation,https://x/c.jpg,c,180.0\n"
    )
    source = read_openimages(root, "validation")
    assert source.images.native.tolist() == ["00166893b16a03ab", "ffffffffffffffff", "000002b66c9c498e"]
    assert objects_of(source).image.tolist() == [2, 2, 0, 0]
    assert [record.rows for record in source.files] == [4, 3, 3]


def test_a_box_on_an_image_that_is_not_listed_is_refused_or_counted(tmp_path: Path) -> None:
    root = write_openimages(tmp_path)
    (root / "train-images-boxable-with-rotation.csv").write_text("ImageID\n000002b66c9c498e\n")
    with pytest.raises(DanglingIdError) as caught:
        read_openimages(root, "train")
    assert caught.value.where == "train-annotations-bbox.csv: row 4"
    source = read_openimages(root, "train", bad_boxes="drop")
    assert source.dropped["box on an image that is not listed"] == 2
    assert objects_of(source).numbers.tolist() == [1, 2]


def test_a_class_without_description_is_refused_or_counted(tmp_path: Path) -> None:
    root = write_openimages(tmp_path)
    (root / "class-descriptions-boxable.csv").write_text("/m/01g317,Person\n/m/01yrx,Cat\n")
    with pytest.raises(DanglingIdError) as caught:
        read_openimages(root, "train")
    assert caught.value.where == "train-annotations-bbox.csv: row 4"
    source = read_openimages(root, "train", bad_boxes="drop")
    assert source.dropped["box of a class without description"] == 1
    assert objects_of(source).numbers.tolist() == [1, 2, 4]


@pytest.mark.parametrize(
    ("corners", "message"),
    [
        ("0.5,0.4,0.1,0.2", "negative in size"),
        ("0.1,0.2,0.5,0.4", "negative in size"),
        ("0.100000,1.000001,0.100000,0.200000", "not within 0 to 1"),
        ("-0.1,0.2,0.1,0.2", "not within 0 to 1"),
        ("12,350,7,90", "not within 0 to 1"),
        ("nan,0.2,0.1,0.2", "not finite"),
        (",0.2,0.1,0.2", "not finite"),
        ("0.1,inf,0.1,0.2", "not finite"),
        ("0.1,1e999,0.1,0.2", "not finite"),
        ("inf,inf,0.1,0.2", "not finite"),
    ],
)
def test_a_bad_box_is_refused_with_its_row_or_counted(tmp_path: Path, corners: str, message: str) -> None:
    bad = f"00166893b16a03ab,xclick,/m/0bt9lr,1,{corners},0,0,0,0,0"
    root = write_openimages(tmp_path, [ROWS[0], ROWS[2], bad, ROWS[3]])
    with pytest.raises(BoxError, match=message) as caught:
        read_openimages(root, "train")
    assert caught.value.where == "train-annotations-bbox.csv: row 4"
    source = read_openimages(root, "train", bad_boxes="drop")
    assert source.dropped == {f"box {message}": 1}
    assert objects_of(source).numbers.tolist() == [1, 2, 4]
    lengths = {len(values) for one in fields(Objects) if (values := getattr(objects_of(source), one.name)) is not None}
    assert lengths == {3}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ROWS[0][:-1], "IsInside is none of"),
        (ROWS[0][:-1] + "2", "IsInside is none of"),
        (ROWS[0].replace("000002b6", "000002B6"), "image id"),
        ("../" + ROWS[0], "image id"),
        (ROWS[0][:44], "cannot be read"),
        (ROWS[0] + "\x1b[31m", "cannot be read"),
    ],
)
def test_a_malformed_row_is_refused_under_every_policy(tmp_path: Path, row: str, message: str) -> None:
    root = write_openimages(tmp_path, [ROWS[0], ROWS[2], row])
    for bad_boxes in ("error", "drop"):
        with pytest.raises(AnnotationFormatError, match=message) as caught:
            read_openimages(root, "train", bad_boxes=bad_boxes)
        assert caught.value.where == "train-annotations-bbox.csv: row 4"


def test_a_box_file_without_a_column_is_refused(tmp_path: Path) -> None:
    write_boxes(tmp_path, [], header=HEADER.replace(",YMax", ""))
    with pytest.raises(AnnotationFormatError, match="lacks a column"):
        open_path(tmp_path / "train-annotations-bbox.csv", dataset="openimages", part="")


def test_columns_that_a_file_lacks_are_told(tmp_path: Path) -> None:
    # The layout of the challenge's files.
    write_boxes(
        tmp_path,
        ["000002b66c9c498e,/m/01g317,0.0125,0.195312,0.148438,0.5875,1"],
        header="ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf",
    )
    source = read_openimages(tmp_path, "train")
    objects = objects_of(source)
    assert objects.crowd.tolist() == [True]
    assert objects.depiction is objects.inside is None
    assert source.dropped == {
        "IsOccluded flags that are not stated (read as 0)": 1,
        "IsTruncated flags that are not stated (read as 0)": 1,
    }


def test_files_are_found_in_the_layouts_in_use(tmp_path: Path) -> None:
    write_boxes(tmp_path / "a" / "annotations", part="train")
    path = write_boxes(tmp_path / "a" / "annotations", part="test")
    path.rename(path.with_name("oidv6-test-annotations-bbox.csv"))
    fiftyone = tmp_path / "b" / "train"
    write_boxes(fiftyone / "labels").rename(fiftyone / "labels" / "detections.csv")
    (fiftyone / "metadata").mkdir()
    (fiftyone / "metadata" / "classes.csv").write_text(DESCRIPTIONS)
    assert parts_at(tmp_path / "a", "openimages") == ("train", "test")
    assert read_openimages(tmp_path / "b").categories.names == ("Person", "Dog", "Cat")
    with pytest.raises(UsageError, match="several parts"):
        read_openimages(tmp_path / "a")
    with pytest.raises(MissingFileError) as caught:
        read_openimages(tmp_path / "a", "validation")
    assert caught.value.found == "boxes of train, test"
    with pytest.raises(MissingFileError, match="no boxes"):
        read_openimages(tmp_path)
    write_boxes(tmp_path / "a")
    with pytest.raises(UsageError, match="several box files"):
        read_openimages(tmp_path / "a", "train")


def test_a_plain_table_and_coco_json_of_open_images_keep_their_readers(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("image,class\n00166893b16a03ab,Dog\n")
    assert open_path(tmp_path / "table.csv", dataset="openimages", part="").objects is None
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "instances_train.json").write_text(
        '{"images":[{"id":"00166893b16a03ab"}],"annotations":[],"categories":[]}'
    )
    source = open_path(tmp_path, dataset="openimages", part="train")
    assert source.image_ids.tolist() == ["openimages:00166893b16a03ab"]
    assert parts_at(tmp_path, "openimages") == ("train",)


@real_files("openimages")
def check_the_real_descriptions_name_601_classes_of_which_one_is_blank_at_most(shared: Path, tmp_path: Path) -> None:
    real = shared / "data/openimages/class-descriptions-boxable.csv"
    write_boxes(tmp_path, ["000002b66c9c498e,xclick,/m/012n7d,1,0.1,0.2,0.1,0.2,0,0,0,0,0"])
    (tmp_path / real.name).write_bytes(real.read_bytes())
    source = read_openimages(tmp_path, "train")
    with real.open(newline="") as stream:
        keys = [row[0] for row in csv.reader(stream)]
    assert list(source.categories.keys) == keys
    assert len(keys) == 601
    assert len(set(source.categories.names)) == 601
    assert objects_of(source).category.tolist() == [keys.index("/m/012n7d")]


share = st.one_of(
    st.integers(0, 1_000_000).map(lambda number: f"{number / 1_000_000:.6f}"),
    st.floats(0, 1).map(repr),
    st.sampled_from(["0", "1", "0.5", "1e-3", "-0.000000", "0.1234567890123"]),
)
KEYS = ("/m/01g317", "/m/0bt9lr", "/m/01yrx", "/m/0123456789abcdefgh", "/t/x")
line = st.builds(
    lambda name, source, key, confidence, corners, flags: ",".join([name, source, key, confidence, *corners, *flags]),
    st.one_of(st.integers(0, 2).map(lambda number: f"{number:016x}"), st.just('"00166893b16a03ab"')),
    st.sampled_from(["", "xclick", "activemil", "freeform"]),
    st.sampled_from([*KEYS, '"/m/01yrx"']),
    st.sampled_from(["1", "0", "0.5", "1.0"]),
    st.lists(share, min_size=4, max_size=4).map(lambda one: [*sorted(one[:2], key=float), *sorted(one[2:], key=float)]),
    st.lists(st.sampled_from(["0", "1", "-1"]), min_size=5, max_size=5),
)


@given(st.lists(line, min_size=1, max_size=12), st.sampled_from(["\n", "\r\n", "\n\n"]), st.integers(160, 400))
def test_any_rows_are_what_python_reads_wherever_blocks_end(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str, block: int
) -> None:
    text = "".join(f"{one}{end}" for one in lines)
    path = tmp_path_factory.mktemp("boxes") / "train-annotations-bbox.csv"
    path.write_text(f"{HEADER}\n{text}", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_BLOCK", block)
        source = read_openimages(path)
    objects, cells = objects_of(source), [row for row in csv.reader(io.StringIO(text)) if row]
    ids, keys = (list(dict.fromkeys(row[column] for row in cells)) for column in (0, 2))
    assert source.images.native.tolist() == ids
    assert source.categories.keys == tuple(keys)
    assert objects.image.tolist() == [ids.index(row[0]) for row in cells]
    assert objects.category.tolist() == [keys.index(row[2]) for row in cells]
    corners = [[float(cell) for cell in row[4:8]] for row in cells]
    assert objects.boxes.tolist() == [[left, top, right - left, bottom - top] for left, right, top, bottom in corners]
    flags = [getattr(objects, name).tolist() for name in ("occluded", "truncated", "crowd", "depiction", "inside")]
    assert [list(row) for row in zip(*flags, strict=True)] == [[cell == "1" for cell in row[8:]] for row in cells]
    assert objects.numbers.tolist() == list(range(1, len(cells) + 1))


def with_file(root: Path, name: str, text: str) -> Source:
    write_openimages(root)
    (root / name).write_text(text)
    return read_openimages(root, "train")


def test_shared_and_blank_names_still_tell_classes_apart(tmp_path: Path) -> None:
    text = '/m/01g317,Bow,Bow\n/m/0bt9lr,"Bow"\n/m/01yrx,\n/m/03,"Kitchen, table"\n'
    expected = ("Bow (/m/01g317)", "Bow (/m/0bt9lr)", "/m/01yrx", "Kitchen, table")
    for described in (text, "\ufeffLabelName,DisplayName\n" + text.replace("\n", "\r\n")):
        assert with_file(tmp_path, "class-descriptions-boxable.csv", described).categories.names == expected


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("class-descriptions-boxable.csv", "/m/01\n", AnnotationFormatError),
        ("class-descriptions-boxable.csv", "Dog,/m/01\n", AnnotationFormatError),
        ("class-descriptions-boxable.csv", "/m/01,a\x1bb\n", AnnotationFormatError),
        ("class-descriptions-boxable.csv", "/m/01,Dog\n/m/01,Cat\n", DuplicateIdError),
        *(
            ("train-image-sizes.csv", f"image_id,width,height\n00166893b16a03ab,{size}\n", AnnotationFormatError)
            for size in ("0,5", "5,-1", ",5", "1000001,5", "wide,5")
        ),
        ("train-image-sizes.csv", "width,height\n1,5\n", AnnotationFormatError),
        ("train-images-with-rotation.csv", "ImageID\n00166893b16a03ab\n00166893b16a03ab\n", DuplicateIdError),
        ("train-images-with-rotation.csv", "ImageID\n00166893B16A03AB\n", AnnotationFormatError),
        ("train-images-with-rotation.csv", "ImageID\n../../../../etc/a\n", AnnotationFormatError),
    ],
)
def test_a_malformed_companion_is_refused(tmp_path: Path, name: str, text: str, error: type[CurationError]) -> None:
    with pytest.raises(error):
        with_file(tmp_path, name, text)
