from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import (
    AnnotationFormatError,
    CurationError,
    DanglingIdError,
    DuplicateIdError,
    PresenceOnlyError,
    UsageError,
)
from curation.sources.coco import read_coco
from curation.sources.datasets import COCO_CATEGORIES
from curation.sources.opening import open_path
from curation.sources.source import Source
from tests.real_files import real_files


def read(folder: Path, text: str | bytes, *, name: str = "table.csv", **options: Any) -> Source:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return open_path(path, **({"dataset": "mine", "part": "test"} | options))


def statements(source: Source) -> list[tuple[str, str]]:
    images, categories = source.class_pairs()
    return [
        (str(source.images.native[image]), source.categories.names[category])
        for image, category in zip(images, categories, strict=True)
    ]


def test_one_class_a_row(tmp_path: Path) -> None:
    source = read(tmp_path, "image,class\nb.jpg,dog\na.jpg,cat\nb.jpg,cat\nb.jpg,dog\nc.jpg,\n")
    assert source.image_ids.tolist() == ["mine:b", "mine:a", "mine:c"]
    assert source.images.file_names.tolist() == ["b.jpg", "a.jpg", "c.jpg"]
    assert source.categories.names == ("cat", "dog")
    assert statements(source) == [("b", "cat"), ("b", "dog"), ("a", "cat")]
    assert (source.files[0].rows, source.files[0].name) == (5, "table.csv")


def test_several_numbers_in_a_cell(tmp_path: Path) -> None:
    source = read(tmp_path, "image_id,category_ids\n9,51 1\n25,\n", dataset="coco")
    assert source.image_ids.tolist() == ["coco:000000000009", "coco:000000000025"]
    assert source.images.numbers.tolist() == [9, 25]
    assert len(source.categories) == 80
    assert statements(source) == [("000000000009", "person"), ("000000000009", "bowl")]


def test_several_names_in_a_cell(tmp_path: Path) -> None:
    source = read(tmp_path, 'image\tclasses\na_1\tdining table; cat\n"b"\tcat|dog\n', name="table.tsv")
    assert statements(source) == [("a_1", "cat"), ("a_1", "dining table"), ("b", "cat"), ("b", "dog")]


@pytest.mark.parametrize("text", ["9", "000000000009", "000000000009.jpg", "train/COCO_train2014_000000000009.jpg"])
def test_every_way_of_naming_a_coco_image_gives_its_twelve_digits(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, f"image,class\n{text},person\n", dataset="coco").images.native.tolist() == ["000000000009"]


def test_voc_numbers_get_the_form_of_their_file_names(tmp_path: Path) -> None:
    assert read(tmp_path, "image,class\n12,dog\n", dataset="voc2007").images.native.tolist() == ["000012"]
    source = read(tmp_path, "image,class\n2008000008,dog\n", dataset="voc2012")
    assert source.images.native.tolist() == ["2008_000008"]
    assert source.images.numbers.tolist() == [2_008_000_008]


def test_rows_of_the_part_are_chosen_by_the_column_that_holds_it(tmp_path: Path) -> None:
    text = "image,split,class\na,train,dog\nb,val,cat\n"
    assert read(tmp_path, text, part="val").images.native.tolist() == ["b"]


@pytest.mark.parametrize("column", ["split", "part", "subset", "Split", "split2017", "split_2017"])
@pytest.mark.parametrize("part", ["test", ""])
def test_a_table_of_several_parts_is_not_read_as_one(tmp_path: Path, column: str, part: str) -> None:
    text = f"image,{column},class\na,train,dog\nb,val,cat\n"
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text, part=part)
    assert column in str(caught.value.where)
    assert caught.value.found == f"{column}: train, val"
    assert "--source NAME@PART=PATH" in str(caught.value.hint)


def test_a_table_that_does_not_tell_parts_apart_is_the_part(tmp_path: Path) -> None:
    text = "image,partition_note,class\na,x,dog\nb,y,cat\n"
    assert read(tmp_path, text, part="val").images.native.tolist() == ["a", "b"]


def test_files_of_one_stem_have_their_paths_as_ids(tmp_path: Path) -> None:
    """Class folders number their photos alike; the ids of one part do not depend on the rows of another one."""
    text = "image,class,split\na\\1.jpg,dog,test\na/1.jpg,cat,test\nb/1.jpg,cat,train\n"
    source = read(tmp_path, text)
    assert source.images.native.tolist() == ["a/1.jpg"]
    assert statements(source) == [("a/1.jpg", "cat"), ("a/1.jpg", "dog")]
    with pytest.raises(DuplicateIdError, match="same image name"):
        read(tmp_path, text.replace("b/1.jpg,cat,train", "b/1.jpg,cat,test"), dataset="openimages")


def test_what_needs_boxes_refuses_a_table(tmp_path: Path) -> None:
    with pytest.raises(PresenceOnlyError, match="The evaluation needs boxes"):
        read(tmp_path, "image,class\na,dog\n").require_objects("The evaluation")


BAD: dict[str, tuple[str | bytes, type[CurationError]]] = {
    "empty": (b"", AnnotationFormatError),
    "blank": (b"\n\n", AnnotationFormatError),
    "no image column": ("picture,class\na,dog\n", AnnotationFormatError),
    "no class column": ("image,thing\na,dog\n", AnnotationFormatError),
    "two class columns": ("image,class,label\na,dog,cat\n", AnnotationFormatError),
    "column twice": ("image,class,class\na,dog,cat\n", AnnotationFormatError),
    "ragged": ("image,class\na,dog,cat\nb\n", AnnotationFormatError),
    "not UTF-8": (b"image,class\na,d\xffg\n", AnnotationFormatError),
    "header not UTF-8": (b"imag\xff,class\na,dog\n", AnnotationFormatError),
    "header with a quote": ('image,class"\na,dog\n', AnnotationFormatError),
    "header with an open quote": ('image,"class\na,dog\n', AnnotationFormatError),
    "endless header": (f"image,class,{'a' * 70_000}\na,dog,x\n", AnnotationFormatError),
    "no image id": ("image,class\n,dog\n", AnnotationFormatError),
    "unprintable image id": (b"image,class\na\x00b,dog\n", AnnotationFormatError),
    "endless image id": (f"image,class\n{'a' * 300},dog\n", AnnotationFormatError),
    "endless cell": (f"image,class\na,{'x' * 70_000}\n", AnnotationFormatError),
    "number without a name": ("image,category\na,7\n", DanglingIdError),
    "image twice": ("image,classes\na,dog\na,cat\n", DuplicateIdError),
}


@pytest.mark.parametrize(("text", "error"), BAD.values(), ids=BAD)
def test_a_bad_table_is_named(tmp_path: Path, text: str | bytes, error: type[CurationError]) -> None:
    with pytest.raises(error) as caught:
        read(tmp_path, text)
    assert str(caught.value.where).startswith("table.csv")


def test_a_class_that_coco_does_not_have_is_named_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(DanglingIdError) as caught:
        read(tmp_path, "image,category_ids\n9,1\n25,1 12\n", dataset="coco")
    assert caught.value.where == "table.csv: row 3"


worlds = st.dictionaries(
    st.from_regex(r"\A[a-z0-9]{1,6}\Z"), st.sets(st.sampled_from(["cat", "dog", "dining table"])), min_size=1
)


@given(world=worlds)
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, world: dict[str, set[str]]) -> None:
    lines = [f"{image},{';'.join(sorted(classes))}\n" for image, classes in world.items()]
    source = read(tmp_path_factory.mktemp("table"), "image,classes\n" + "".join(lines))
    assert source.images.native.tolist() == list(world)
    assert statements(source) == [(image, name) for image, names in world.items() for name in sorted(names)]


@real_files("coco_table")
def check_the_table_of_coco_has_its_published_figures(shared: Path) -> None:
    path = shared / "data/coco/presence_2014_2017.csv"
    source = open_path(path, dataset="coco", part="train2017")
    assert (len(source.images), source.files[0].rows) == (117_266, 122_218)
    assert source.presence is not None
    assert (np.diff(source.presence[:, 0]) >= 0).all()
    assert len(np.unique(source.presence, axis=0)) == len(source.presence)
    assert len(open_path(path, dataset="coco", part="val2014").images) == 40_137


@real_files("coco_table")
def check_the_rows_of_val2017_say_what_its_boxes_say(shared: Path) -> None:
    table = open_path(shared / "data/coco/presence_2014_2017.csv", dataset="coco", part="val2017")
    boxes = read_coco(shared / "data/coco/instances_val2017_rebuilt.json", part="val2017")
    assert len(table.images) == 4952
    assert set(statements(table)) == set(statements(boxes))


@real_files("coco_table")
def check_coco_categories_are_those_of_the_official_file(shared: Path) -> None:
    official = read_coco(shared / "data/coco/mini/annotations/instances_train2017.json").categories
    rows = zip(official.numbers, official.names, official.supercategories, strict=True)
    assert tuple(rows) == COCO_CATEGORIES
