"""Published lists: every form is told by what it holds, and stems are the same through every disguise."""

import csv
import gzip
import hashlib
import json
from dataclasses import astuple
from pathlib import Path

import pytest

from curation.core.errors import AnnotationFormatError, DuplicateIdError, UsageError
from curation.sources import published_list
from curation.sources.entries import ListDigests
from curation.sources.opening import open_path
from curation.sources.published_list import read_published
from curation.sources.stems import stems
from tests.real_files import real_files


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def stems_of(path: Path) -> list[str]:
    return read_published(path).lists[0].stems.decode().split()


@pytest.mark.parametrize(
    ("path", "stem"),
    [
        ("imagenet_1k/val/ILSVRC2012_val_00024235.JPEG", "ILSVRC2012_val_00024235"),
        ("benthos_0.9994893", "benthos_0.9994893"),
        ("imagenet_o/n01443537/benthos_0.9994893.JPEG", "benthos_0.9994893"),
        ("a\\b\\000005.PNG", "000005"),
        ("a//b///000005.nii.gz", "000005"),
        ("a.jpg.png", "a.jpg"),
        ("a.gz", "a.gz"),
        (".jpg", ".jpg"),
        ("high heels/high  heels_001.jpg", "high_heels_001"),
        ("val2014/COCO_val2014_000000000042.jpg", "000000000042"),
        ("COCO_train2017_000000000042", "000000000042"),
        ("COCO_test2015_000000000042.jpg", "000000000042"),
        ("COCO_val2014_42.jpg", "COCO_val2014_42"),
        ("COCO_val2014x000000000042", "COCO_val2014x000000000042"),
        ("IMG_1_jpg.rf.33d951561d607773b11adf7199ae9ad1.jpg", "IMG_1_jpg.rf.33d951561d607773b11adf7199ae9ad1"),
        ("2008_000008", "2008_000008"),
        ("/data/x/000005.jpg", "000005"),
        ("../../000005.jpg", "000005"),
        ("e\u0301.jpg", "\u00e9"),
        ("Ä.Jpeg", "Ä"),
    ],
)  # fmt: skip
def test_stems(path: str, stem: str) -> None:
    assert stems(f"{path}\n".encode()).decode() == f"{stem}\n"
    assert stems(f"other/000001.jpg\n{path}\nx\n".encode()).decode() == f"000001\n{stem}\nx\n"


def test_one_folder_is_kept_before_a_stem() -> None:
    text = b"a/b/c.jpg\nc.jpg\n/c.jpg\nb\\c d.jpg\nx/COCO_val2014_000000000042.jpg\n"
    assert stems(text, parents=1) == b"b/c\nc\n/c\nb/c_d\nx/000000000042\n"


def test_disguises_keep_the_digest(tmp_path: Path) -> None:
    ids = [f"{n * 7919 % 10**6:012d}" for n in range(1, 300)]
    plain = written(tmp_path / "plain.txt", "\n".join(ids))
    wanted = ListDigests.of(read_published(plain).lists[0], "").sha256_stems
    assert wanted == hashlib.sha256("".join(f"{one}\n" for one in sorted(ids)).encode()).hexdigest()
    images = [{"id": int(one), "file_name": f"{one}.jpg"} for one in ids]
    disguises = {
        "shuffled.txt": "\n".join(reversed(ids)),
        "repeated.txt": "\n".join(ids + ids[:20]),
        "returns.txt": "\r\n".join(ids) + "\r\n",
        "mark.txt": "\ufeff" + "\n".join(ids),
        "suffix.txt": "\n".join(f"{one}.JPG" for one in ids),
        "folder.txt": "\n".join(f"data/val2014/{one}.jpg" for one in ids),
        "back.txt": "\n".join(f"data\\val2014\\{one}.jpg" for one in ids),
        "prefix.txt": "\n".join(f"COCO_val2014_{one}.jpg" for one in ids),
        "imglist.txt": "\n".join(f"x/{one}.jpg -1" for one in ids),
        "voc.txt": "\n".join(f"{one}  1" for one in ids),
        "array.json": json.dumps(ids),
        "coco.json": json.dumps({"images": images, "annotations": []}),
        "table.csv": "index,image_location,decision\n" + "".join(f"{n},x/{one}.jpg,o\n" for n, one in enumerate(ids)),
    }  # fmt: skip
    for name, text in disguises.items():
        one = read_published(written(tmp_path / name, text)).lists[0]
        assert ListDigests.of(one, "").sha256_stems == wanted, name
    packed = written(tmp_path / "packed.txt", gzip.compress("\n".join(ids).encode()))
    assert ListDigests.of(read_published(packed).lists[0], "").sha256_stems == wanted
    unpadded = written(tmp_path / "short.txt", "\n".join(str(int(one)) for one in ids))
    assert ListDigests.of(read_published(unpadded).lists[0], "").sha256_stems != wanted


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("a.txt", "000005 -1\n000007  1\n000009 0\n", "voc list"),
        ("a.txt", "2008_000008\n2008_000015", "id list"),
        ("t1_known_test.txt", "000001\n000002\n", "id list"),
        ("train.txt", "airplane\nwine glass\nhot-dog\n", "class names"),
        ("a.txt", "n01440764\nn01443537\n", "class names"),
        ("a.txt", "n01440764_10026\nn01440764_10027\n", "id list"),
        ("known_classes.txt", "BMW M3 Coupe 2012\nAudi TT RS 2010\n", "class names"),
        ("a.txt", "000000000139\n", "id list"),
        ("classes.txt", "cat.jpg\ndog.jpg\n", "id list"),
        ("a.json", '["cat", "hot dog"]', "class names"),
        ("a.json", '["cat.jpg", "dog.jpg"]', "json array"),
        ("a.json", "[9, 34, 72]", "json array"),
        ("a.json", '{"train": ["000001"], "test": ["000002", "000003"]}', "json lists"),
        ("a.json", '{"n01440764": ["a.jpg"], "n01443537": ["b.jpg", "c.jpg"]}', "json groups"),
        ("a.json", json.dumps({f"class {n}": [f"{n}.jpg"] for n in range(60)}), "json groups"),
        ("a.json", '{"known_classes": [1, 2], "unknown_classes": {"Hard": [3], "Easy": [4]}}', "class roles"),
        ("a.json", '{"images": [{"id": "7"}], "categories": []}', "coco json"),
        ("a.json", '{"airplane": "Airplane"}', "map"),
        ("a.csv", "image_location,class\nx/a.jpg,cat\n", "csv"),
        ("a.csv", "id,file_name\n1,\"x/a,b.jpg\"\n", "csv"),
    ],
)  # fmt: skip
def test_forms(tmp_path: Path, name: str, text: str, form: str) -> None:
    assert read_published(written(tmp_path / name, text)).form == form


def test_groups_and_roles(tmp_path: Path) -> None:
    grouped = read_published(
        written(tmp_path / "a.json", '{"n01440764": ["a.jpg"], "n01443537": ["b.jpg", "c.jpg"]}')
    ).lists[0]
    assert grouped.groups == ("n01440764", "n01443537")
    assert grouped.group_of is not None
    assert grouped.group_of.tolist() == [0, 1, 1]
    roles = read_published(
        written(tmp_path / "b.json", '{"known_classes": [1, 2], "unknown_classes": {"Hard": ["a"], "Easy": [4]}}')
    )
    assert roles.classes == {"known": ("1", "2"), "unknown/Hard": ("a",), "unknown/Easy": ("4",)}
    several = read_published(written(tmp_path / "c.json", '{"train": ["000001"], "test": ["000002", "000003"]}'))
    assert [(one.name, len(one)) for one in several.lists] == [("train", 1), ("test", 2)]
    table = read_published(written(tmp_path / "d.csv", "index,image_location,decision\n0,x/a.jpg,o\n1,b.jpg,i\n2\n"))
    assert table.lists[0].groups == ("o", "i")
    assert (table.lists[0].lines.tolist(), table.lists[0].odd) == ([2, 3], 1)


def test_repeated_image_ids_of_a_json_are_noted_and_lose_no_image(tmp_path: Path) -> None:
    text = '{"images": [{"id": 1, "file_name": "a.jpg"}, {"id": 1, "file_name": "b.jpg"}], "annotations": []}'
    read = read_published(written(tmp_path / "a.json", text))
    assert read.lists[0].paths == b"a.jpg\nb.jpg\n"
    assert read.notes == ("image ids repeat: 2 images have 1 ids",)


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.txt", b"", "The list is empty"),
        ("a.txt", b"\n \r\n\t\n", "The list is empty"),
        ("a.txt", b"\x89PNG\r\n\x1a\n\x00\x00", "The file is not text"),
        ("a.txt", b"caf\xe9.jpg\nb.jpg\n", "The file is not UTF-8 text"),
        ("a.txt", b"x" * (1 << 20) + b"\nb/\n", "The file is not a list of images"),
        ("a.txt", b"000005 2\n000007 1\n", "The file is not a list of images"),
        ("a.json", b'{"images": [{"id": NaN}], "annotations": []}', "The JSON has an unknown form"),
        ("a.json", b'{"a": ["x.jpg"], "a": ["y.jpg"]}', "A key appears twice"),
        ("a.json", b"[" * 5000, "The JSON has an unknown form"),
        ("a.json", b"[]", "The list is empty"),
        ("a.json", b'{"a": []}', "The lists are empty"),
        ("a.json", b'{"known_classes": 3, "unknown_classes": []}', "The classes of a role are not an array"),
        ("a.csv", b"file_name,file_name\na,b\n", "The table names a column twice"),
        ("a.csv", b"path,class\n", "The table names no image"),
        ("a.csv", b"id,name\n1,cat\n", "The table has no column of images"),
        ("a.csv", b"file_name,label\ra.jpg,1\rb.jpg,2", "The file is not a list of images"),
    ],
)
def test_what_cannot_be_a_list_is_one_error(tmp_path: Path, name: str, data: bytes, told: str) -> None:
    with pytest.raises(AnnotationFormatError, match=told):
        read_published(written(tmp_path / name, data))


def test_strange_lines_are_left_out_and_told(tmp_path: Path) -> None:
    text = b"000001\n" + b"x" * (1 << 20) + b"\n000002\nfolder/\n000\x013\n000004\n000005\n"
    one = read_published(written(tmp_path / "a.txt", text)).lists[0]
    assert one.paths == b"000001\n000002\n000004\n000005\n"
    assert one.lines.tolist() == [1, 3, 6, 7]
    assert [(odd.line, odd.reason) for odd in one.odd_lines] == [
        (2, "the line is too long"),
        (4, "it names a folder"),
        (5, "it holds a control character"),
    ]


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_list, "MAX_BYTES", 10)
    with pytest.raises(UsageError, match="too large to be a list"):
        read_published(written(tmp_path / "a.txt", "000001\n000002\n"))


@real_files("atlas_lists")
def check_published_digests_come_out_as_they_are(shared: Path) -> None:
    data = shared / "data"
    text = (data / "atlas/digests.csv").read_text(encoding="utf-8")
    rows = list(csv.reader(text.splitlines()))
    made = [",".join(rows[0])]
    for name in [row[0] for row in rows[1:]]:
        read = read_published(data / name)
        made.append(",".join(map(str, (name, *astuple(ListDigests.of(read.lists[0], read.sha256))))))
    assert len(made) == 141
    assert "\n".join(made) + "\n" == text


@real_files("atlas_lists")
def check_forms_of_published_files(shared: Path) -> None:
    atlas = shared / "data/atlas"
    forms = {path: read_published(path) for path in sorted((atlas / "openood/imagenet").glob("*.txt"))}
    assert {read.form for read in forms.values()} == {"imglist"}
    assert len(forms) == 14
    assert sum(one.odd for read in forms.values() for one in read.lists) == 0
    grouped = read_published(atlas / "ssb/imagenet_21k_val_files.json").lists
    assert [(len(one), len(one.groups)) for one in grouped] == [(99_000, 1_980)]
    names = [path for path in atlas.rglob("*.txt") if "classname" in path.name or path.name.endswith("_known.txt")]
    assert len(names) == 26
    assert {read_published(path).form for path in names} == {"class names"}
    aquatic = read_published(atlas / "rwd/Aquatic/train.json")
    assert (aquatic.form, len(aquatic.lists[0])) == ("coco json", 318)
    assert aquatic.notes == ("image ids repeat: 318 images have 225 ids",)
    for name, known, unknown in (("imagenet", 1000, 1980), ("cub", 100, 100), ("scars", 98, 98), ("aircraft", 50, 50)):
        roles = read_published(atlas / f"ssb/{name}_ssb_splits.json").classes
        assert (len(roles["known"]), sum(map(len, roles.values())) - len(roles["known"])) == (known, unknown)


def test_a_list_of_ids_is_a_source_in_its_order(tmp_path: Path) -> None:
    path = written(tmp_path / "list.txt", "\ufeff000000000139\r\ncoco:000000000009\n\nimages/25.jpg\n7")
    source = open_path(path, dataset="coco", part="val")
    assert source.images.native.tolist() == ["000000000139", "000000000009", "000000000025", "000000000007"]
    assert source.images.numbers.tolist() == [139, 9, 25, 7]
    assert (source.objects, len(source.class_pairs()[0])) == (None, 0)
    assert (source.files[0].name, source.files[0].rows) == ("list.txt", 4)
    voc = open_path(written(path, "2008_000008\n2008_000015\n"), dataset="voc2012", part="val")
    assert voc.image_ids.tolist() == ["voc2012:2008_000008", "voc2012:2008_000015"]


@pytest.mark.parametrize(
    ("content", "error", "told"),
    [
        (b"139\n000000000139\n", DuplicateIdError, "line 2"),
        (b"139\nvoc2007:000012\n", AnnotationFormatError, "line 2"),
        (b"hello\n", AnnotationFormatError, "class names"),
        (b"139 1\n", AnnotationFormatError, "line 1"),
        (b"\xff\xfe\n", AnnotationFormatError, "UTF-8"),
        (b"1\x002\n", AnnotationFormatError, "zero byte"),
        (b"x" * 5000, AnnotationFormatError, "line 1"),
    ],
)
def test_what_is_no_list_of_ids(tmp_path: Path, content: bytes, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        open_path(written(tmp_path / "list.txt", content), dataset="coco", part="val")
