import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import curation
from curation.core.errors import (
    AnnotationFormatError,
    BoxError,
    CurationError,
    CurationWarning,
    DuplicateIdError,
    ForeignClassError,
    MissingFileError,
    PathEscapeError,
)
from curation.sources.datasets import VOC_NAMES
from curation.sources.source import POSES, Source
from curation.sources.voc import read_voc
from tests.real_files import real_files

DOG = """<object><name>dog</name><pose>Left</pose><truncated>1</truncated><difficult>0</difficult>
<bndbox><xmin>48</xmin><ymin>240</ymin><xmax>195</xmax><ymax>371</ymax></bndbox></object>"""


def document(*objects: str, stem: str = "000001", size: str = "<width>353</width><height>500</height>") -> str:
    return f"""<annotation>
	<folder>VOC2007</folder><filename>{stem}.jpg</filename>
	<source><database>The VOC2007 Database</database></source><owner><flickrid>x</flickrid><name>cat</name></owner>
	<size>{size}<depth>3</depth></size><segmented>0</segmented>
	{"".join(objects)}
</annotation>
"""


def an_object(**fields: object) -> str:
    box = {
        corner: fields.pop(corner, value)
        for corner, value in zip(("xmin", "ymin", "xmax", "ymax"), (1, 1, 9, 9), strict=True)
    }
    inner = "".join(f"<{key}>{value}</{key}>" for key, value in ({"name": "dog"} | fields).items())
    corners = "".join(f"<{key}>{value}</{key}>" for key, value in box.items())
    return f"<object>{inner}<bndbox>{corners}</bndbox></object>"


def write(root: Path, documents: dict[str, str | bytes], listed: str | None = None, part: str = "test") -> Path:
    (root / "Annotations").mkdir(parents=True)
    (root / "ImageSets" / "Main").mkdir(parents=True)
    for stem, text in documents.items():
        (root / "Annotations" / f"{stem}.xml").write_bytes(text if isinstance(text, bytes) else text.encode())
    lines = "".join(f"{stem}\n" for stem in documents) if listed is None else listed
    (root / "ImageSets" / "Main" / f"{part}.txt").write_text(lines)
    return root


def read(root: Path, *documents: str | bytes, **options: Any) -> Source:
    write(root, {f"{place:06d}": text for place, text in enumerate(documents, start=1)})
    return read_voc(root, "voc2007", "test", **options)


def test_columns_say_what_the_files_say(tmp_path: Path) -> None:
    source = read(tmp_path, document(DOG), document(stem="000002"))
    assert source.image_ids.tolist() == ["voc2007:000001", "voc2007:000002"]
    assert source.images.numbers.tolist() == [1, 2]
    assert source.images.file_names.tolist() == ["000001.jpg", "000002.jpg"]
    assert (source.images.widths.tolist(), source.images.heights.tolist()) == ([353, 353], [500, 500])
    assert source.categories.names == VOC_NAMES
    assert source.categories.numbers == tuple(range(1, 21))
    objects = source.require_objects("the test")
    assert objects.image.tolist() == [0]
    assert VOC_NAMES[objects.category[0]] == "dog"
    # The box of VOC2007's 000001.xml, and as the COCO conversion of that file has it.
    assert objects.boxes.tolist() == [[47, 239, 148, 132]]
    assert objects.areas.tolist() == [19536]
    assert (objects.truncated.tolist(), objects.difficult.tolist()) == ([True], [False])
    assert POSES[objects.pose[0]] == "Left"


def test_flags_may_be_absent_and_boxes_fractional(tmp_path: Path) -> None:
    texts = document(an_object(difficult=1, occluded=1, xmin=45.70, xmax=50.2), an_object(pose="unspecified"))
    objects = read(tmp_path, texts).require_objects("the test")
    assert objects.difficult.tolist() == [True, False]
    assert objects.occluded.tolist() == [True, False]
    assert objects.truncated.tolist() == [False, False]
    np.testing.assert_allclose(objects.boxes[0], [44.7, 0, 5.5, 9])
    assert [POSES[pose] for pose in objects.pose] == ["", "Unspecified"]


def test_parts_of_the_person_layout_are_not_objects(tmp_path: Path) -> None:
    part = "<part><name>head</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox></part>"
    whole = an_object(name="person").replace("</object>", f"{part}</object>")
    before = an_object(name="person").replace("<object>", f"<object>{part}")
    objects = read(tmp_path, document(whole, before)).require_objects("the test")
    assert objects.boxes.tolist() == [[0, 0, 9, 9]] * 2
    assert {VOC_NAMES[place] for place in objects.category} == {"person"}


@pytest.mark.parametrize(
    ("stems", "listed"),
    [
        (["000007", "000003", "000005"], "000007 -1\r\n000003  1\r\n\r\n000005  0\r\n"),
        (["pic 1", "pic 0", "a  b"], "pic 1\r\npic 0\r\na  b\r\n"),
    ],
)
def test_images_keep_the_order_of_the_image_set_and_flags_are_ignored(
    stems: list[str], listed: str, tmp_path: Path
) -> None:
    write(tmp_path, {stem: document(DOG, stem=stem) for stem in stems}, listed=listed)
    source = read_voc(tmp_path, "voc2007", "test")
    assert source.images.native.tolist() == stems


def test_other_datasets_have_the_names_that_occur(tmp_path: Path) -> None:
    write(tmp_path, {"a": document(an_object(name="zebra"), an_object(name="apple"), stem="a")})
    source = read_voc(tmp_path, "shapes", "test")
    assert (source.categories.names, source.categories.numbers) == (("apple", "zebra"), (1, 2))
    assert source.require_objects("the test").category.tolist() == [1, 0]
    assert source.image_ids.tolist() == ["shapes:a"]
    assert source.images.numbers.tolist() == [0]


LAUGHS = """<?xml version="1.0"?><!DOCTYPE annotation [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>
<annotation><filename>&b;</filename></annotation>"""
EXTERNAL = """<!DOCTYPE annotation SYSTEM "file:///etc/passwd"><annotation/>"""
PARAMETER = """<!DOCTYPE annotation [<!ENTITY % p SYSTEM "http://example.org/x.dtd"> %p;]><annotation/>"""
MALFORMED = {
    "entities": (LAUGHS, "document type or an entity"),
    "external document type": (EXTERNAL, "document type or an entity"),
    "parameter entity": (PARAMETER, "document type or an entity"),
    "entities in UTF-16": (LAUGHS.encode("utf-16"), "document type or an entity"),
    "empty": ("", "well-formed"),
    "truncated": (document(DOG)[:-20], "well-formed"),
    "Latin-1": (document(DOG).encode().replace(b"cat", b"c\xe9t"), "well-formed"),
    "unknown encoding": (b'<?xml version="1.0" encoding="nonsense"?><annotation/>', "well-formed"),
    "other XML": ("<html/>", "not a VOC annotation"),
    "deep": ("<annotation>" + "<a>" * 100_000 + "</a>" * 100_000 + "</annotation>", "nested"),
    "long text": (document(DOG).replace("dog", "d" * 10_000), "too long"),
    "name twice": (document(DOG.replace("<pose>", "<name>cat</name><pose>")), "Duplicate element <name>"),
    "no name": (document(an_object(name="")), "length >= 1 - at `name`"),
    "no corner": (document(DOG.replace("<xmin>48</xmin>", "")), "required field `xmin`"),
    "corner in words": (document(an_object(xmin="ten")), "float.* at `xmin`"),
    "difficult 2": (document(an_object(difficult=2)), "at `difficult`"),
    "unknown class": (document(DOG, an_object(name="unicorn")), "class that voc2007 does not have"),
    "width in words": (document(DOG, size="<width>wide</width><height>1</height>"), "float.* at `width`"),
}


@pytest.mark.parametrize(("text", "reason"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_file_is_named(tmp_path: Path, text: str | bytes, reason: str) -> None:
    with pytest.raises(AnnotationFormatError, match=reason) as caught:
        read(tmp_path, document(DOG), text)
    assert str(caught.value.where).startswith("Annotations/000002.xml")


BAD_BOXES = {
    "NaN": ({"xmin": "nan"}, "not finite"),
    "infinite": ({"ymax": "inf"}, "not finite"),
    "corners swapped": ({"xmin": 50, "xmax": 9}, "negative in size"),
    "huge": ({"xmax": 10**8}, "beyond any image"),
}


@pytest.mark.parametrize(("corners", "reason"), BAD_BOXES.values(), ids=BAD_BOXES)
def test_a_bad_box_is_an_error_or_a_counted_drop(tmp_path: Path, corners: dict[str, Any], reason: str) -> None:
    with pytest.raises(BoxError, match=reason) as caught:
        read(tmp_path, document(DOG, an_object(**corners)))
    assert caught.value.where == "Annotations/000001.xml: object[1]"
    source = read_voc(tmp_path, "voc2007", "test", bad_boxes="drop")
    assert source.dropped == {f"box {reason}": 1}
    assert len(source.require_objects("the test")) == 1
    assert source.files[1].rows == 2


ESCAPES = ["../outside", "/etc/passwd", "a/../../outside", "..\\outside", "C:\\windows"]


@pytest.mark.parametrize("name", ESCAPES)
def test_an_image_name_that_leads_outside_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.xml").write_text(document(DOG))
    write(tmp_path / "VOC2007", {"000001": document(DOG)}, listed=f"000001\n{name}\n")
    with pytest.raises(PathEscapeError):
        read_voc(tmp_path, "voc2007", "test")


def test_a_link_that_leads_outside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.xml").write_text(document(DOG))
    write(tmp_path / "VOC2007", {}, listed="link/x\n")
    (tmp_path / "VOC2007" / "Annotations" / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(PathEscapeError):
        read_voc(tmp_path / "VOC2007", "voc2007", "test")


def test_a_part_that_leads_outside_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"000001": document(DOG)})
    with pytest.raises(PathEscapeError):
        read_voc(tmp_path, "voc2007", "../../secret")


def test_missing_files_are_named(tmp_path: Path) -> None:
    root = write(tmp_path / "VOC2007", {"000001": document(DOG)}, listed="000001\n000002\n")
    with pytest.raises(MissingFileError) as caught:
        read_voc(root, "voc2007", "test")
    assert str(caught.value.where).endswith("000002.xml")
    with pytest.raises(MissingFileError, match="no image set 'val'") as caught:
        read_voc(root, "voc2007", "val")
    assert "test" in str(caught.value.expected)
    with pytest.raises(MissingFileError, match="VOC folder not found") as caught:
        read_voc(tmp_path / "elsewhere", "voc2007", "test")
    assert "ImageSets/Main" in str(caught.value.expected)


@pytest.mark.parametrize(
    "line", ["000001.jpg", "JPEGImages/000001.JPG", "/data/voc/JPEGImages/000001.jpg", "000001.jpg -1"]
)
def test_an_image_set_may_name_the_photos(tmp_path: Path, line: str) -> None:
    root = write(tmp_path / "VOC2007", {"000001": document(DOG)}, listed=f"{line}\n")
    assert read_voc(root, "voc2007", "test").image_ids.tolist() == ["voc2007:000001"]


BAD_LISTS: dict[str, tuple[bytes, type[CurationError]]] = {
    "empty": (b"\n\n", AnnotationFormatError),
    "not UTF-8": (b"00000\xff\n", AnnotationFormatError),
    "endless name": (b"0" * 300 + b"\n", AnnotationFormatError),
    "image twice": (b"000001\n000001\n", DuplicateIdError),
}


@pytest.mark.parametrize(("data", "error"), BAD_LISTS.values(), ids=BAD_LISTS)
def test_a_bad_image_set_is_named(tmp_path: Path, data: bytes, error: type[CurationError]) -> None:
    write(tmp_path, {"000001": document(DOG)})
    (tmp_path / "ImageSets/Main/test.txt").write_bytes(data)
    with pytest.raises(error) as caught:
        read_voc(tmp_path, "voc2007", "test")
    assert str(caught.value.where).startswith("ImageSets/Main/test.txt")


@pytest.mark.parametrize("name", ["mine", "VOC2007", "VOCdevkit/VOC2012"])
def test_a_truth_in_the_layout_of_voc_may_have_classes_of_its_own(name: str, tmp_path: Path) -> None:
    """Extents in place of flags, no flag of difficulty, and file names of another machine: AP is pycocotools'."""
    coco, evaluation = pytest.importorskip("pycocotools.coco"), pytest.importorskip("pycocotools.cocoeval")
    rng = np.random.default_rng(5)
    classes = ["bus", "car", "truck", "truvk", "*"]
    documents: dict[str, str | bytes] = {}
    rows: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for image in range(1, 16):
        objects = []
        for _ in range(4):
            label = int(rng.integers(len(classes)))
            low, size = rng.integers(1, 200, 2), rng.integers(20, 100, 2)
            high = low + size
            corners = dict(zip(("xmin", "ymin", "xmax", "ymax"), [*low.tolist(), *high.tolist()], strict=True))
            extents = {"truncated": round(float(rng.uniform()), 4), "occluded": ""} if rng.integers(2) else {}
            objects.append(an_object(name=classes[label], **extents, **corners))
            # VOC counts pixels from 1, and the last one belongs to the box.
            box = [*(low - 1).tolist(), *(size + 1).tolist()]
            annotations.append({"id": len(annotations) + 1, "image_id": image, "category_id": label, "bbox": box})
            annotations[-1] |= {"area": box[2] * box[3], "iscrowd": 0}
            shift = rng.normal(0, 5, 4).tolist()
            rows.append({"image_id": image, "category_id": label, "score": float(rng.uniform())})
            rows[-1]["bbox"] = [side + more for side, more in zip(box, shift, strict=True)]
        documents[f"{image:05d}"] = document(*objects, stem=f"C:\\Users\\me\\img_{image}")
    truth = coco.COCO()
    categories = [{"id": number, "name": label} for number, label in enumerate(classes)]
    images = [{"id": image} for image in range(1, 16)]
    truth.dataset = {"info": {}, "images": images, "annotations": annotations, "categories": categories}
    truth.createIndex()
    expected = evaluation.COCOeval(truth, truth.loadRes([dict(row) for row in rows]), "bbox")
    expected.evaluate()
    expected.accumulate()
    expected.summarize()
    root = write(tmp_path / name, documents)
    (tmp_path / "found.json").write_text(
        json.dumps(
            [
                {"image_id": f"{row['image_id']:05d}", "category": classes[row["category_id"]]}
                | {key: row[key] for key in ("bbox", "score")}
                for row in rows
            ]
        )
    )
    with pytest.warns(CurationWarning, match="'truck'.*'truvk'"):
        result = curation.evaluate.coco(truth=root, detections=tmp_path / "found.json")
    assert result["AP"] == pytest.approx(expected.stats[0] * 100, abs=1e-4)
    assert result["AP"] > 20
    # A dataset that is named is what its name says.
    with pytest.raises(ForeignClassError, match="voc2007 does not have"):
        read_voc(root, "voc2007", "test")


def test_an_extent_above_zero_sets_a_flag(tmp_path: Path) -> None:
    extents = ["0", "0.0", "", "0.5828", "1", "1.0"]
    source = read(tmp_path, document(*(an_object(truncated=extent, occluded=extent) for extent in extents)))
    objects = source.require_objects("the test")
    assert objects.truncated.tolist() == objects.occluded.tolist() == [False] * 3 + [True] * 3


def test_fields_that_no_measure_needs_refuse_no_file(tmp_path: Path) -> None:
    values = ["1.5", "-1", "nan", "yes", "heavily", "FALSE"]
    objects = [an_object(truncated=value, occluded=value, pose="SideFaceLeft", difficult="false") for value in values]
    size = "<width>353.0</width><height></height>"
    source = read(tmp_path, document(*objects, an_object(difficult="True"), size=size))
    found = source.require_objects("the test")
    assert found.truncated.tolist() == found.occluded.tolist() == [True, False, False, True, False, False, False]
    assert set(found.pose.tolist()) == {0}
    assert found.difficult.tolist() == [False] * 6 + [True]
    assert (source.images.widths.tolist(), source.images.heights.tolist()) == ([353], [0])


XML_LAYOUTS = {"labels": "", "Annotations": "", "annotations": "", ".": "", "valid": "valid"}


@pytest.mark.parametrize(("folder", "part"), XML_LAYOUTS.items(), ids=str)
def test_xml_files_need_no_image_set(folder: str, part: str, tmp_path: Path) -> None:
    """FiftyOne writes labels beside data, labelImg beside the photos, Roboflow a folder a part."""
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / "data").mkdir()
    for stem, name in {"img_2": "truck", "img_1": "car"}.items():
        (tmp_path / folder / f"{stem}.xml").write_text(document(an_object(name=name), stem=stem))
        (tmp_path / folder / f"{stem}.jpg").touch()
    source = curation.open_source("mine", tmp_path, part=part or "val")
    assert source.images.native.tolist() == ["img_1", "img_2"]
    assert source.categories.names == ("car", "truck")
    # FiftyOne's importer: x = xmin / width, w = (xmax - xmin) / width.
    box = [1, 1, 8, 8] if folder == "labels" else [0, 0, 9, 9]
    assert source.require_objects("the test").boxes.tolist() == [box] * 2
    found = {"file_name": "img_1.jpg", "category": "car", "bbox": box, "score": 1}
    (tmp_path / "found.json").write_text(json.dumps([found]))
    result = curation.evaluate.coco(truth=tmp_path, detections=tmp_path / "found.json", image_set=part or "test")
    assert result["AP"] == pytest.approx(50)
    (tmp_path / folder / "img_3.xml").write_text(document(DOG)[:-20])
    with pytest.raises(AnnotationFormatError, match="well-formed") as caught:
        curation.open_source("mine", tmp_path, part=part)
    assert str(caught.value.where).endswith("img_3.xml")


rows = st.fixed_dictionaries(
    {
        "name": st.sampled_from(VOC_NAMES),
        "pose": st.sampled_from(POSES[1:]),
        "truncated": st.integers(0, 1),
        "difficult": st.integers(0, 1),
        "xmin": st.integers(1, 100),
        "ymin": st.integers(1, 100),
        "xmax": st.integers(100, 500),
        "ymax": st.integers(100, 500),
    }
)


def as_rows(source: Source) -> list[tuple[str, dict[str, Any]]]:
    objects = source.require_objects("the test")
    corners = np.column_stack([objects.boxes[:, :2] + 1, objects.boxes[:, :2] + objects.boxes[:, 2:]]).tolist()
    return [
        (
            str(source.images.native[objects.image[row]]),
            {
                "name": source.categories.names[objects.category[row]],
                "pose": POSES[objects.pose[row]],
                "truncated": int(objects.truncated[row]),
                "difficult": int(objects.difficult[row]),
                **dict(zip(("xmin", "ymin", "xmax", "ymax"), corners[row], strict=True)),
            },
        )
        for row in range(len(objects))
    ]


@given(world=st.dictionaries(st.from_regex(r"\A[0-9]{6}\Z"), st.lists(rows, max_size=4), min_size=1, max_size=5))
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, world: dict[str, list[dict[str, Any]]]
) -> None:
    root = tmp_path_factory.mktemp("voc")
    write(root, {stem: document(*(an_object(**row) for row in listed), stem=stem) for stem, listed in world.items()})
    source = read_voc(root, "voc2007", "test")
    assert source.images.native.tolist() == list(world)
    assert as_rows(source) == [(stem, row) for stem, listed in world.items() for row in listed]


@real_files("voc2007")
def check_published_boxes_of_voc2007_survive_the_way_through_xml(shared: Path, tmp_path: Path) -> None:
    lines = (shared / "data/voc2007/2007_val_nondifficult_boxes.txt").read_text().splitlines()[:200]
    world = {}
    for line in lines:
        stem, *boxes = line.split()
        fields = [tuple(map(int, box.split(","))) for box in boxes]
        world[stem] = [
            dict(zip(("xmin", "ymin", "xmax", "ymax"), box, strict=False), name=VOC_NAMES[box[4]]) for box in fields
        ]
    write(
        tmp_path, {stem: document(*(an_object(**row) for row in listed), stem=stem) for stem, listed in world.items()}
    )
    read_back = as_rows(read_voc(tmp_path, "voc2007", "test"))
    assert [(stem, {key: row[key] for key in ("xmin", "ymin", "xmax", "ymax", "name")}) for stem, row in read_back] == [
        (stem, row) for stem, listed in world.items() for row in listed
    ]
