import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from curation.core.canonical import sha256_of_file
from curation.core.errors import BoxError, MissingFileError, SourceError, UsageError
from curation.sources import opening
from curation.sources.opening import open_path, parts_at
from curation.sources.source import Source
from tests.sources.voc_files import write_voc


def write_coco(path: Path, *, images: int = 3, box: tuple[float, ...] = (1, 2, 3, 4)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "images": [{"id": number} for number in range(images)],
        "annotations": [{"id": 1, "image_id": 0, "category_id": 1, "bbox": box, "area": 1, "iscrowd": 0}],
        "categories": [{"id": 1, "name": "person"}],
    }
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what was parsed, in place of taken from the cache."""
    parsed: list[str] = []
    for name in ("parse_coco", "parse_voc", "parse_table"):
        real = getattr(opening, name)

        def counted(*arguments: Any, _real: Any = real, _name: str = name, **options: Any) -> Source:
            parsed.append(_name)
            source: Source = _real(*arguments, **options)
            return source

        monkeypatch.setattr(opening, name, counted)
    return parsed


@pytest.mark.parametrize("packed", [False, True])
def test_compressed_files_and_byte_order_marks_change_nothing_but_the_digest(tmp_path: Path, packed: bool) -> None:
    write_coco(tmp_path / "a.json")
    (tmp_path / "a.csv").write_text("image,class\na,dog\nb,cat\n")
    (tmp_path / "a.txt").write_text("a1\nb2\n")
    for suffix in (".json", ".csv", ".txt"):
        path = tmp_path / f"a{suffix}"
        plain = open_path(path, dataset="mine", part="", cache=False)
        data = b"\xef\xbb\xbf" + path.read_bytes()
        # The suffix may say that a file is compressed; what it holds is told by its bytes.
        for name in (f"b{suffix}", f"b{suffix}.gz"):
            other = tmp_path / name
            other.write_bytes(gzip.compress(data) if packed else data)
            found = open_path(other, dataset="mine", part="", cache=tmp_path / "cache")
            again = open_path(other, dataset="mine", part="", cache=tmp_path / "cache")
            for one in (found, again):
                assert one.image_ids.tolist() == plain.image_ids.tolist()
                assert one.categories == plain.categories
                assert one.files[0].sha256 == sha256_of_file(other)
                assert one.files[0].size == other.stat().st_size
                assert one.has_category_ids == (suffix == ".json")


def test_a_truncated_compressed_file_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(write_coco(tmp_path / "a.json").read_bytes())[:-9])
    with pytest.raises(SourceError, match="cut short"):
        open_path(path, dataset="mine", part="", cache=False)


def test_parts_are_listed(tmp_path: Path) -> None:
    write_voc(tmp_path / "VOC2007", ["000001"], part="val")
    write_voc(tmp_path / "VOC2007", ["000002"], part="test")
    write_coco(tmp_path / "coco/annotations/instances_val2017.json")
    assert parts_at(tmp_path, "voc2007") == ("val", "test")
    assert parts_at(tmp_path / "coco", "coco") == ("val2017",)
    assert parts_at(tmp_path / "coco/annotations/instances_val2017.json", "coco") == ()


def test_what_is_not_there_is_told_with_what_was_tried(tmp_path: Path) -> None:
    write_coco(tmp_path / "coco/annotations/instances_val2017.json")
    with pytest.raises(MissingFileError, match="does not exist"):
        open_path(tmp_path / "absent", dataset="coco", part="train2017", cache=False)
    with pytest.raises(MissingFileError) as caught:
        open_path(tmp_path / "coco", dataset="coco", part="train2017", cache=False)
    assert "instances_train2017.json" in str(caught.value.expected)
    assert "val2017" in str(caught.value.found)
    with pytest.raises(MissingFileError, match="VOC folder not found"):
        open_path(tmp_path / "coco", dataset="voc2007", part="test", cache=False)
    (tmp_path / "notes.md").write_text("hello")
    with pytest.raises(UsageError, match="Unknown file type"):
        open_path(tmp_path / "notes.md", dataset="coco", part="", cache=False)


def test_a_second_opening_parses_nothing(tmp_path: Path, parses: list[str]) -> None:
    path = write_coco(tmp_path / "instances.json")
    folder = tmp_path / "cache"
    first = open_path(path, dataset="coco", part="x", cache=folder)
    second = open_path(path, dataset="coco", part="x", cache=folder)
    assert parses == ["parse_coco"]
    assert first.files == second.files
    assert first.image_ids.tolist() == second.image_ids.tolist()


def test_a_copy_with_other_times_parses_nothing(tmp_path: Path, parses: list[str]) -> None:
    path = write_coco(tmp_path / "instances.json")
    open_path(path, dataset="coco", part="x", cache=tmp_path / "cache")
    copy = tmp_path / "elsewhere" / "instances.json"
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    os.utime(copy, (1, 1))
    open_path(copy, dataset="coco", part="x", cache=tmp_path / "cache")
    assert parses == ["parse_coco"]


def test_changed_bytes_are_parsed_even_with_the_same_size_and_time(tmp_path: Path, parses: list[str]) -> None:
    path = write_coco(tmp_path / "instances.json", box=(1, 2, 3, 4))
    facts = path.stat()
    open_path(path, dataset="coco", part="x", cache=tmp_path / "cache")
    write_coco(path, box=(1, 2, 3, 5))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    changed = open_path(path, dataset="coco", part="x", cache=tmp_path / "cache")
    assert path.stat().st_size == facts.st_size
    assert changed.require_objects("the test").boxes.tolist() == [[1, 2, 3, 5]]
    assert parses == ["parse_coco", "parse_coco"]


def test_other_options_are_parsed(tmp_path: Path, parses: list[str]) -> None:
    path = write_coco(tmp_path / "instances.json")
    for options in ({"part": "x"}, {"part": "y"}, {"part": "x", "bad_boxes": "drop"}):
        open_path(path, dataset="coco", cache=tmp_path / "cache", **options)  # type: ignore[arg-type]
    assert len(parses) == 3


def test_a_voc_folder_is_parsed_once_and_again_after_a_change(tmp_path: Path, parses: list[str]) -> None:
    root = write_voc(tmp_path / "VOC2007", ["000001", "000002"])
    for _ in range(2):
        open_path(root, dataset="voc2007", part="test", cache=tmp_path / "cache")
    assert parses == ["parse_voc"]
    annotation = root / "Annotations/000002.xml"
    annotation.write_text(annotation.read_text().replace("dog", "cat"))
    changed = open_path(root, dataset="voc2007", part="test", cache=tmp_path / "cache")
    assert parses == ["parse_voc", "parse_voc"]
    assert changed.require_objects("the test").category.tolist() == [11, 7]


def test_a_damaged_cache_is_told_and_mended(
    tmp_path: Path, parses: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_coco(tmp_path / "instances.json")
    open_path(path, dataset="coco", part="x", cache=tmp_path / "cache")
    (kept,) = (tmp_path / "cache").glob("*.npz")
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    capsys.readouterr()
    open_path(path, dataset="coco", part="x", cache=tmp_path / "cache")
    assert capsys.readouterr().err.count("built anew") == 1
    assert kept.read_bytes() == whole
    open_path(path, dataset="coco", part="x", cache=tmp_path / "cache")
    assert parses == ["parse_coco", "parse_coco"]


def test_a_malformed_file_leaves_nothing_in_the_cache(tmp_path: Path) -> None:
    path = write_coco(tmp_path / "instances.json", box=(1, 2, -3, 4))
    for _ in range(2):
        with pytest.raises(BoxError):
            open_path(path, dataset="coco", part="x", cache=tmp_path / "cache")
    assert not list(tmp_path.glob("cache/*.npz"))


def test_without_a_cache_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    path = write_coco(tmp_path / "instances.json")
    open_path(path, dataset="coco", part="x", cache=False)
    assert not (tmp_path / "cache").exists()
    open_path(path, dataset="coco", part="x")
    assert list((tmp_path / "cache").glob("*.npz"))


def test_a_large_source_is_written_while_its_caller_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parses: list[str]
) -> None:
    monkeypatch.setattr(opening, "_LARGE", 0)
    path = write_coco(tmp_path / "instances.json", images=20_000)
    for _ in range(3):
        open_path(path, dataset="coco", part="x", cache=tmp_path / "cache")
    assert parses == ["parse_coco"]
