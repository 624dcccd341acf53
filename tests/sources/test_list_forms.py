"""Forms of lists of any field: which words name the image, what stands beside it, and what is told of a line cut."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from curation.core.errors import AnnotationFormatError, CurationError
from curation.sources.entries import PublishedList
from curation.sources.published_list import first_line, list_files, read_published

EXAMS = [{"exam": f"p{n}_L", "frames": [{"file": f"{m}.jpg", "at": m + n} for m in (0, 1)]} for n in range(20)]
"""Records that count their images anew."""


def lists_of(folder: Path, name: str, text: str | bytes) -> dict[str, PublishedList]:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return {one.name: one for one in read_published(path).lists}


def list_of(folder: Path, text: str | bytes, name: str = "a.txt") -> PublishedList:
    [one] = lists_of(folder, name, text).values()
    return one


def images_of(one: PublishedList) -> list[str]:
    return one.images.decode().split("\n")[:-1]


def column_of(one: PublishedList, name: str) -> list[str | None]:
    column = one.columns[name]
    return [column.values[place] if place >= 0 else None for place in column.of.tolist()]


def classes_of(one: PublishedList) -> list[str | None]:
    assert one.group_of is not None
    return [one.groups[place] if place >= 0 else None for place in one.group_of.tolist()]


COVIDX = "COVID 70 COVID(70).png COVID-19 sirm\nANON1 a.png normal\nANON1 b.png pneumonia cohen\n3 c.jpeg normal\n"
TABLE = "uid,img_path,mask_path,patient_id,split,dx\n1,i/a.png,m/a.png,p 1,train,mel\n2,i/b.png,m/b.png,p2,test,nv\n"


@pytest.mark.parametrize(
    ("name", "text", "form", "images"),
    [
        ("a.txt", COVIDX, "file and labels", ["COVID(70).png", "a.png", "b.png", "c.jpeg"]),
        ("a.txt", "x/l/a.png x/r/a.png\nx/l/b.png\tx/r/b.png\n", "two files", ["x/l/a.png", "x/l/b.png"]),
        ("a", "./a b.jpg m/a b.png\n./c.jpg m/c.png\n", "two files", ["a b.jpg", "c.jpg"]),
        ("a.list", "a.png 0 1 0\nb.png 0 0 0\n", "file and label vector", ["a.png", "b.png"]),
        ("a.txt", "2\nBald Young\na.jpg -1 1\nb.jpg 1 1\n", "file and label vector", ["a.jpg", "b.jpg"]),
        ("a.lst", "beach.jpg sunny\nforest.jpg dark\n", "file and labels", ["beach.jpg", "forest.jpg"]),
        ("a.txt", "x/a b.jpg hot dog\nx/c.jpg cat\n", "file and labels", ["x/a b.jpg", "x/c.jpg"]),
        ("a.txt", "x/y.avi 1\nz.mp4 7\n", "imglist", ["x/y.avi", "z.mp4"]),
        ("a.txt", "a b.jpg -1\nc.jpg 1\n", "imglist", ["a b.jpg", "c.jpg"]),
        ("a.txt", "a.jpg 1.5 2.5\nb.jpg 3 4\n", "file and labels", ["a.jpg", "b.jpg"]),
        ("a.txt", "a.jpg 1,2,3,4,0 5,6,7,8,1\nb.jpg 1,2,3,4,0\n", "file and labels", ["a.jpg", "b.jpg"]),
        ("a.txt", "1 001.A/b.jpg\n2 001.A/c.jpg\n", "imglist", ["001.A/b.jpg", "001.A/c.jpg"]),
        ("a.txt", "0 a.jpg\n1 b.jpg\n0 c.jpg\n", "imglist", ["a.jpg", "b.jpg", "c.jpg"]),
        ("a.txt", "3 120 l\n3  120 r\n", "frames", ["3/120/l", "3/120/r"]),
        ("a.txt", "s/1 0000000005\ns/1 0000000006\ns/2 0000000005\n", "frames", [
            "s/1/0000000005", "s/1/0000000006", "s/2/0000000005",
        ]),
        ("a.txt", "s/1 5\ns/1 6\ns/2 5\n", "frames", ["s/1/5", "s/1/6", "s/2/5"]),
        ("a.tsv", "image\tlabel\na b.png\t1\nc.png\t2\n", "csv", ["a b.png", "c.png"]),
        ("a.csv", "id,breed\n00ab,collie\n01cd,beagle\n", "csv", ["00ab", "01cd"]),
        ("a.csv", "n,what\n7,x/a.dcm\n8,x/b.DCM\n", "csv", ["x/a.dcm", "x/b.DCM"]),
        ("a.csv", "file\nx/a.jpg\nx/b.jpg\n", "csv", ["x/a.jpg", "x/b.jpg"]),
        ("a.csv", "a.jpg,cat\nb.jpg,dog\n", "csv", ["a.jpg", "b.jpg"]),
        ("a.csv", '"a, b.jpg",cat\nc.jpg,dog\n', "csv", ["a, b.jpg", "c.jpg"]),
        ("a.jsonl", '{"image": "a.png", "label": 3}\n{"image": "b.png"}\n', "json lines", ["a.png", "b.png"]),
        ("a.json", '[{"image": "a.png", "n": {"x": 1}}, {"image": "b.png"}]', "json lines", ["a.png", "b.png"]),
        ("a.odgt", '{"fpath_img": "a.jpg", "fpath_segm": "a.png"}\n', "json lines", ["a.jpg"]),
        ("a.json", '[["a.jpg", "cat"], ["b.jpg", "dog"]]', "json lines", ["a.jpg", "b.jpg"]),
        ("a.json", '{"train": [["x/a.jpg", 0, "cat"], ["x/b.jpg", 1, "dog"]]}', "json lines", ["x/a.jpg", "x/b.jpg"]),
        ("a.json", '{"train": [["x/a.jpg", 0], ["x/b.jpg", 1, [[1, 2, 3, 4]]]]}', "json lines", ["x/a.jpg", "x/b.jpg"]),
        ("a.json", '{"val": [["i/1.jpg", "m/1_gt.png", "1.png"], ["i/2.jpg", "m/2_gt.png", "2.png"]]}', "json lines", [
            "i/1.jpg", "i/2.jpg",
        ]),
        ("a.json", json.dumps({"train": EXAMS}), "json lines", [f"p{n}_L/{m}.jpg" for n in range(20) for m in (0, 1)]),
        ("a.csv", "ImageID,LabelName,XMin\n0a,/m/1,0.1\n0a,/m/1,0.2\n0a,/m/2,0.3\n", "csv", ["0a"] * 3),
        ("a.odgt", '{"ID": "2,a", "gtboxes": [{"a": 1}]}\n{"ID": "8,b"}\n', "json lines", ["2,a", "8,b"]),
    ],
)  # fmt: skip
def test_forms(tmp_path: Path, name: str, text: str, form: str, images: list[str]) -> None:
    path = tmp_path / name
    for data in (text, text.replace("\n", "\r\n"), text.removesuffix("\n"), "\ufeff" + text):
        path.write_text(data, encoding="utf-8", newline="")
        read = read_published(path)
        assert (read.form, images_of(read.lists[0])) == (form, images)
        assert read.lists[0].odd == 0


def test_what_stands_beside_a_file(tmp_path: Path) -> None:
    one = list_of(tmp_path, COVIDX)
    assert column_of(one, "patient") == ["COVID 70", "ANON1", "ANON1", "3"]
    assert column_of(one, "source") == ["sirm", None, "cohen", None]
    assert classes_of(one) == ["COVID-19", "normal", "pneumonia", "normal"]
    pair = list_of(tmp_path, "x/l/a.png .\\x//r/a.png\nx/l/b.png x/r/b.png\n")
    assert pair.companions == b"x/r/a.png\nx/r/b.png\n"
    blank = list_of(tmp_path, "x/a b.jpg hot dog\nx/c.jpg cat\nx/d.jpg hot dog\n")
    assert classes_of(blank) == ["hot dog", "cat", "hot dog"]
    numbered = list_of(tmp_path, "P1 a.png 0\nP1 b.png 4\nP2 c.png 4\n")
    assert (column_of(numbered, "patient"), numbered.labels is not None) == (["P1", "P1", "P2"], True)
    # What stands before a file is part of its name where the last word alone does not tell the files apart.
    spaced = list_of(tmp_path, "img 1.jpg cat\nimage 1.jpg dog\nimg 2.jpg cat\n")
    assert (images_of(spaced)[:2], dict(spaced.columns)) == (["img 1.jpg", "image 1.jpg"], {})


def test_a_vector_of_labels_is_no_conflict(tmp_path: Path) -> None:
    one = list_of(tmp_path, "a.png 0 1 1\nb.png 0 0 0\nc.png 1 0 0\n")
    assert one.is_multilabel
    assert one.label_counts is not None
    assert one.label_counts.tolist() == [2, 0, 1]
    table = list_of(tmp_path, "image,a,b,c\nx.png,1,0,1\ny.png,0,0,0\n", "t.csv")
    assert table.label_counts is not None
    assert table.label_counts.tolist() == [2, 0]
    assert classes_of(list_of(tmp_path, "image,a,b,c\nx.png,1,0,0\ny.png,0,0,1\n", "t.csv")) == ["a", "c"]
    assert list_of(tmp_path, "file,xmin,label\nx.png,1,cat\nx.png,2,dog\n", "t.csv").is_multilabel


def test_frames_have_no_labels(tmp_path: Path) -> None:
    lines = [f"{number % 40} {number // 40} {side}" for number in range(20_000) for side in "lr"]
    one = list_of(tmp_path, "\n".join(lines))
    assert (len(one), len(set(images_of(one))), one.labels, one.group_of) == (40_000, 40_000, None, None)
    # Numbers beside folders that stand once are labels.
    assert list_of(tmp_path, "s/1 5\ns/2 6\ns/3 5\n").labels is not None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "Ann 1 4\nAnn 1 Bob 3\n"),
        ("a.txt", "10 300\nAnn 1 4\nBob 2 3\n"),
        ("a.txt", "a.jpg b.jpg 1\nb.jpg c.jpg 0\na.jpg c.jpg 0\n"),
        ("a.json", '[["012", "345"], ["012", "6"]]'),
        ("a.json", '[["a.jpg", "b.jpg"], ["b.jpg", "c.jpg"]]'),
        ("a.json", '[["Ann/Ann_1.jpg", "Bob/Bob_2.jpg"], ["Ann/Ann_1.jpg", "Eve/Eve_4.jpg"]]'),
    ],
)
def test_pairs_are_no_list(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(AnnotationFormatError, match=r"pair images|not a list of images"):
        list_of(tmp_path, text, name)


def test_a_column_of_parts_makes_a_list_of_each(tmp_path: Path) -> None:
    lists = lists_of(tmp_path, "meta.csv", TABLE + "3,i/c.png,m/c.png,p2,train,nv\n")
    assert {name: images_of(one) for name, one in lists.items()} == {
        "split=train": ["i/a.png", "i/c.png"], "split=test": ["i/b.png"],
    }  # fmt: skip
    train = lists["split=train"]
    assert (column_of(train, "patient_id"), classes_of(train)) == (["p 1", "p2"], ["mel", "nv"])
    assert (train.companions, train.lines.tolist()) == (b"m/a.png\nm/c.png\n", [2, 4])
    notes = read_published(tmp_path / "meta.csv").notes
    assert notes == ("its images are those of the column 'img_path', not 'mask_path'",)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"a": {"train": ["1.jpg"], "val": ["2.jpg"]}}, ["a/train", "a/val"]),
        ({"s": [{"train": ["s01"], "test": ["s02"]}, {"train": ["s02"]}]}, ["s/0/train", "s/0/test", "s/1/train"]),
        ([{"train": ["s01"]}, {"train": ["s02"]}], ["0/train", "1/train"]),
        ({"training": [{"image": "a.nii.gz", "label": "b.nii.gz"}], "test": ["c.nii.gz"]}, ["training", "test"]),
        ({"a": {"b": {"n01440764": ["1.jpg"], "n01443537": ["2.jpg"]}}}, ["a/b"]),
        ({"a": {"train": [1, 2]}, "size": [640, 480], "c": 3}, ["a/train"]),
        ({"a": {"1.jpg": 3, "2.jpg": 4, "3.jpg": 3}}, ["a"]),
        ({"1.jpg": {"box": [1, 2]}, "2.jpg": {"box": [1, 2]}, "3.jpg": {"box": [1, 2]}}, [""]),
    ],
)  # fmt: skip
def test_json_of_any_depth(tmp_path: Path, given: object, names: list[str]) -> None:
    assert list(lists_of(tmp_path, "a.json", json.dumps(given))) == names


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tasks.json", '{"tasks": [{"name": "t1", "epochs": 3}, {"name": "t2", "epochs": 4}]}'),
        ("tasks.json", '[{"name": "t1"}, {"name": "t2"}]'),
        ("tasks.jsonl", '{"name": "t1", "classes": ["cat"]}\n{"name": "t2", "classes": ["dog"]}\n'),
    ],
)
def test_names_of_tasks_are_no_images(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(AnnotationFormatError):
        read_published(tmp_path / name)
    (tmp_path / name).write_text(text.replace("t1", "a/1.jpg").replace("t2", "a/2.jpg"))
    assert [images_of(one) for one in read_published(tmp_path / name).lists] == [["a/1.jpg", "a/2.jpg"]]


def test_classes_at_any_depth_are_no_images(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"VOC": {"coco": ["cat", "dog"], "other": ["boat"]}}')
    assert read_published(tmp_path / "a.json").classes == {"VOC/coco": ("cat", "dog"), "VOC/other": ("boat",)}


def test_lists_that_a_data_yaml_names(tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists/train.txt").write_text("./images/1.jpg\n./images/2.jpg\n")
    path = tmp_path / "data.yaml"
    path.write_text("path: lists\ntrain: train.txt\nval: gone.txt\ntest: ../../etc/x.txt\nnames: {0: cat, 1: dog}\n")
    read = read_published(path)
    assert [(one.name, images_of(one)) for one in read.lists] == [("train", ["images/1.jpg", "images/2.jpg"])]
    assert read.notes == (
        "val: 'gone.txt' is missing",
        "test: '../../etc/x.txt' leads out of the folder and was not read",
    )
    named = [path.relative_to(tmp_path / "lists").as_posix() for path in read.named_files]
    assert (read.classes, named) == ({"": ("cat", "dog")}, ["train.txt", "labels/1.txt", "labels/2.txt"])


@pytest.mark.parametrize(
    "text", ["!!python/object/apply:os.getcwd []", "train: &a x\nval: *a", "- a", "[" * 300_000, "a: b: c", "other: 1"]
)
def test_a_yaml_of_another_kind_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "data.yaml").write_text(text)
    with pytest.raises(AnnotationFormatError):
        read_published(tmp_path / "data.yaml")


@pytest.mark.parametrize(
    ("line", "last", "reason"),
    [
        ("P{0} x/{0}.png cat", "P9 x/9.pn", "it names no file"),
        ("P{0} x{0}.png cat", "P9 x9.png", "it has no label"),
        ("x{0}.png cat", "x9.png ca", "its label may be cut"),
        ("l/{0}.png r/{0}.png", "l/9.png r/9", "it names one file, the others two"),
        ("{0}.png 0 1 1", "9.png 0 1", "it has fewer labels than the others, which have 3"),
        ("x/{0}.jpg 3", "x/9.jp", "it has no label"),
        ("x/{0}.jpg", "x/9.j", "its path is cut"),
        ("00000000{0:04d}", "000000", "its number is cut"),
        ("x{0}.jpg,cat,1", "x9.jpg,ca", "it has another number of cells than the header"),
        ("3 {0} l", "3 9", "it has other columns than the other lines"),
    ],
)
def test_a_line_that_is_cut_is_told(tmp_path: Path, line: str, last: str, reason: str) -> None:
    lines = [line.format(number + 100) for number in range(60)]
    assert list_of(tmp_path, "\n".join(lines) + "\n").short == 0
    one = list_of(tmp_path, "\n".join([*lines, last]))
    assert (one.short, one.odd) == (1, 1)
    assert [(odd.line, odd.reason, odd.text) for odd in one.short_lines] == [(61, reason, last)]


def test_paths_are_normalised_and_no_further(tmp_path: Path) -> None:
    one = list_of(tmp_path, "\ufeff./A/b.jpg\r\nA\\\\b.JPG \n././a//b.jpg\n../a/b.jpg\n./.hidden/c\n")
    assert images_of(one) == ["A/b.jpg", "A/b.JPG", "a/b.jpg", "../a/b.jpg", ".hidden/c"]


def test_files_that_may_be_lists(tmp_path: Path) -> None:
    for name in (
        "b.list",
        "a.txt",
        "train",
        "data.yaml",
        "c/d.ODGT",
        "e.txt.gz",
        "f.nii.gz",
        "g.parquet",
        "x.yaml",
        "a.py",
        ".git/c.txt",
        "LICENSE",
        "README.txt",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [path.relative_to(tmp_path).as_posix() for path in list_files(tmp_path)] == [
        "a.txt", "b.list", "c/d.ODGT", "data.yaml", "e.txt.gz", "g.parquet", "train",
    ]  # fmt: skip


PIECES = [
    "a.jpg", "b.png", "x/", " ", "\t", ",", "\n", "\n", "\r\n", '"', "0", "1", "-1", "12", "l", "cat", "é", "\0", "{",
    "}",     "[", "]", ":", '{"file": "a.jpg"}', "id,file\n", "\x0b", "\u2028", "\\",
]  # fmt: skip


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl", "a.json", "data.yaml"])
def test_any_text_is_a_list_or_refused(tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    for _ in range(300):
        text = "".join(chance.choices(PIECES, k=chance.randrange(1, 40))).encode()
        (tmp_path / name).write_bytes(text)
        try:
            read = read_published(tmp_path / name)
        except CurationError:
            continue
        for one in read.lists:
            assert one.images.count(b"\n") == one.paths.count(b"\n") == len(one)
            assert (np.diff(one.lines) >= 0).all()
            for column in one.columns.values():
                assert len(column.of) == len(one)
                assert int(column.of.max(initial=-1)) < len(column.values)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", b'{"a":' * 2000 + b"[1]" + b"}" * 2000),
        ("a.json", b'{"a":' * 50 + b'["x"]' + b"}" * 50),
        ("a.json", b"[" * 100_000),
        ("a.jsonl", b'{"a": ' + b"[" * 100_000 + b"\n" + b'{"a": 1}\n'),
        ("a.csv", b"file,label\n" + b"x" * 200_000 + b'","\n'),
        ("a.txt", b"a.jpg b.jpg\n\0\n"),
    ],
)
def test_hostile_texts_are_refused(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(CurationError):
        read_published(tmp_path / name)
    shown = first_line(tmp_path / name)
    assert shown.isprintable()
    assert 0 < len(shown) <= 80


@pytest.mark.parametrize("image", ["image", "img", "file_name", "path", "filename", "image_path", "rgb", "photo_file"])
@pytest.mark.parametrize(
    "derived", ["mask", "label", "depth_map", "map", "saliency", "seg_path", "pred_file", "render"]
)
@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
def test_the_name_of_a_column_decides_which_holds_the_images(
    tmp_path: Path, image: str, derived: str, form: str, first: bool
) -> None:
    # What is made of an image has more distinct values: several maps of each.
    rows = [{image: f"i/{n // 3}.jpg", derived: f"m/{n}.png"} for n in range(30)]
    header = [image, derived] if first else [derived, image]
    path, mark = tmp_path / f"t.{form}", "\t" if form == "tsv" else ","
    lines = [mark.join(header), *(mark.join(row[name] for name in header) for row in rows)]
    if form == "jsonl":
        lines = [json.dumps({name: row[name] for name in header}) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    file = read_published(path)
    assert images_of(file.lists[0]) == [row[image] for row in rows]
    assert file.doubts == ()


@pytest.mark.parametrize("header", ["a,b", "one_file,other_file", "mask,depth", None])
def test_a_choice_between_columns_that_no_name_settles_is_told(tmp_path: Path, header: str | None) -> None:
    rows = [f"i/{n // 3}.jpg,m/{n}.png" for n in range(30)]
    (tmp_path / "train.csv").write_text("\n".join([header, *rows] if header else rows) + "\n")
    file = read_published(tmp_path / "train.csv")
    assert images_of(file.lists[0]) == [row.split(",")[0] for row in rows]
    [doubt] = file.doubts
    assert "was read: name the column of images file_name" in doubt
    # What it advises settles it.
    (tmp_path / "train.csv").write_text("\n".join(["x,file_name", *rows]) + "\n")
    file = read_published(tmp_path / "train.csv")
    assert (images_of(file.lists[0]), file.doubts) == ([row.split(",")[1] for row in rows], ())
