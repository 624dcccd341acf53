"""Reading lists from a folder or from files: names, formats, what is passed over and what is refused."""

import json
from pathlib import Path

import pytest

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import MissingFileError, PathEscapeError, UsageError
from curation.extensions.audit import lists as lists_module
from curation.extensions.audit.lists import ListSet, read_lists
from tests.real_files import real_files


def as_texts(found: ListSet) -> dict[str, list[str]]:
    return {one.name: found.images.ids(one.members) for one in found.lists}


def test_text_arrays_objects_of_arrays_and_coco_json_are_lists(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    text = b"000000000139\r\nimages/000000000285.jpg\n\n000000000139"
    (tmp_path / "sub" / "t1_train.txt").write_bytes(text)
    (tmp_path / "ids.json").write_text('[5, "7"]')
    (tmp_path / "splits.json").write_text('{"val.txt": ["a"], "train": ["b", "a"]}')
    coco = {"images": [{"id": 3, "file_name": "train/x.png"}, {"id": 4}], "annotations": [], "categories": []}
    (tmp_path / "test.json").write_text(json.dumps(coco))
    found = read_lists(tmp_path)
    assert as_texts(found) == {
        "ids": ["5", "7"],
        "splits/train": ["b", "a"],
        "splits/val": ["a"],
        "sub/t1_train": ["coco:000000000139", "coco:000000000285", "coco:000000000139"],
        "test": ["train/x.png", "4"],
    }
    assert found.labels == {}
    train = found.lists[3]
    assert train.file == "sub/t1_train.txt"
    assert train.sha256 == sha256_of_bytes(text)
    assert train.lines.tolist() == [1, 2, 4]
    assert train.unique.tolist() == sorted(set(train.members.tolist()))


def test_json_beside_text_of_the_same_name_holds_its_labels(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n2\n")
    coco = {"images": [{"id": 1}], "annotations": [{"id": 1}], "categories": []}
    (tmp_path / "a.json").write_text(json.dumps(coco))
    found = read_lists(tmp_path)
    assert as_texts(found) == {"a": ["1", "2"]}
    assert found.labels == {"a": tmp_path / "a.json"}


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("words.txt", b"How to use\n", "words such as class names"),
        ("latin.txt", b"caf\xe9\n", "not UTF-8"),
        ("long.txt", b"x" * 300, "longer than 255"),
        ("steering.txt", b"a\x1b[31m\n", "control character"),
        ("broken.json", b'{"images": [}', "unknown form"),
        ("deep.json", b"[" * 100_000, "unknown form"),
        ("other.json", b'{"a": 1}', "unknown form"),
        ("float.json", b"[1.5]", "unknown form"),
        ("steering.json", b'{"a\\u001b": ["1"]}', "no valid name"),
        ("camera.json", b'{"size": [640, 480], "K": [500, 500, 320, 240]}', "values, such as labels"),
        ("break.json", b'["a\\nb"]', "not printable"),
    ],
)
def test_other_files_are_passed_over_and_named(tmp_path: Path, name: str, data: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(data)
    (tmp_path / "list.txt").write_text("1\n")
    found = read_lists(tmp_path)
    assert [one.name for one in found.lists] == ["list"]
    assert list(found.unread) == [name]
    assert reason in found.unread[name].why


def test_a_folder_without_lists_and_one_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No list"):
        read_lists(tmp_path)
    with pytest.raises(MissingFileError):
        read_lists(tmp_path / "none")


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    inner = tmp_path / "lists"
    inner.mkdir()
    (tmp_path / "outside.txt").write_text("1\n")
    (inner / "link.txt").symlink_to(tmp_path / "outside.txt")
    with pytest.raises(PathEscapeError):
        read_lists(inner)


def test_files_beyond_the_limits_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "large.txt").open("wb") as stream:
        stream.truncate(1 << 30)
    with pytest.raises(UsageError, match="too large to be a list"):
        read_lists(tmp_path)
    (tmp_path / "large.txt").unlink()
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("12\n")
    monkeypatch.setattr(lists_module, "MAX_BYTES", 5)
    with pytest.raises(UsageError, match="too large in total"):
        read_lists(tmp_path)
    monkeypatch.setattr(lists_module, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(lists_module, "MAX_LISTS", 1)
    with pytest.raises(UsageError, match="Too many lists"):
        read_lists(tmp_path)


@real_files("owod_audits")
def check_the_published_lists_are_read_whole(shared: Path) -> None:
    found = read_lists(shared / "data" / "owod" / "published")
    lines = {one.name: len(one) for one in found.lists}
    assert lines["ore/all_task_test"] == 10_246
    assert lines["reowod/t1_train"] == 91_903
    assert lines["opendet/wilderness_ids"] == 21_260
    assert not found.unread
    assert not any(one.read.odd for one in found.lists)
