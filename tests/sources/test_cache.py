import json
import os
import random
import subprocess
import sys
import time
import tracemalloc
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from curation.core.writing import PARTIAL, _host
from curation.sources import cache as cache_module
from curation.sources.cache import Cache, Stamp, cache_key, default_folder, frozen
from curation.sources.coco import read_coco
from curation.sources.opening import open_path
from curation.sources.source import Source, texts

KEY = cache_key("sha256:" + "0" * 64, {"dataset": "coco"})


def content() -> dict[str, object]:
    return {
        "images": [{"id": number, "file_name": f"zürich {number}.jpg", "width": number} for number in range(1, 30)],
        "annotations": [
            {"id": number, "image_id": number, "category_id": 3, "bbox": [0.1, 2, 3, 4], "orig_category": "gnu"}
            for number in range(1, 30, 2)
        ],
        "categories": [{"id": 3, "name": "thing", "supercategory": "stuff"}],
    }


@pytest.fixture
def source(tmp_path: Path) -> Source:
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(content()))
    return frozen(read_coco(path, dataset="mine", part="test"))


def assert_same(one: Source | None, other: Source) -> None:
    assert one is not None
    for name in ("dataset", "part", "namespace", "categories", "files", "licence", "media_redistributable", "dropped"):
        assert getattr(one, name) == getattr(other, name), name
    for field in fields(other.images):
        assert_same_column(getattr(one.images, field.name), getattr(other.images, field.name))
    assert (one.objects is None) == (other.objects is None)
    if one.objects is not None and other.objects is not None:
        for field in fields(other.objects):
            assert_same_column(getattr(one.objects, field.name), getattr(other.objects, field.name))
    assert_same_column(one.presence, other.presence)


def assert_same_column(one: object, other: object) -> None:
    if other is None:
        assert one is None
        return
    assert isinstance(one, np.ndarray)
    assert isinstance(other, np.ndarray)
    assert one.dtype == other.dtype
    assert one.flags.writeable == other.flags.writeable
    np.testing.assert_array_equal(one, other)


def stored(folder: Path, source: Source) -> tuple[Cache, Path]:
    cache = Cache(folder / "cache")
    cache.store(KEY, 100, source)
    (path,) = (folder / "cache").glob("*.npz")
    return cache, path


def columns_of(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as archive:
        return dict(archive)


def test_a_source_with_boxes_comes_back_whole(tmp_path: Path, source: Source) -> None:
    cache, _ = stored(tmp_path, source)
    assert_same(cache.load(KEY, 100), source)
    assert cache.may_hold(100)
    assert not cache.may_hold(101)


def test_a_presence_only_source_comes_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("image,class\nb.jpg,dog\na.jpg,\n")
    source = open_path(path, dataset="mine", part="test", cache=False)
    cache, _ = stored(tmp_path, source)
    assert_same(cache.load(KEY, 100), source)


def test_the_same_source_is_stored_as_the_same_bytes(tmp_path: Path, source: Source) -> None:
    _, one = stored(tmp_path / "a", source)
    _, other = stored(tmp_path / "b", source)
    assert one.read_bytes() == other.read_bytes()


def test_every_truncation_is_noticed(tmp_path: Path, source: Source, capsys: pytest.CaptureFixture[str]) -> None:
    cache, path = stored(tmp_path, source)
    data = path.read_bytes()
    for size in range(0, len(data), 37):
        path.write_bytes(data[:size])
        assert cache.load(KEY, 100) is None
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert "built anew" in told


def test_a_changed_byte_is_noticed_or_changes_nothing(tmp_path: Path, source: Source) -> None:
    cache, path = stored(tmp_path, source)
    data = path.read_bytes()
    rng = random.Random(11)
    refused = 0
    for _ in range(600):
        position = rng.randrange(len(data))
        changed = bytearray(data)
        changed[position] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        found = cache.load(KEY, 100)
        if found is None:
            refused += 1
        else:
            assert_same(found, source)
    assert refused > 400


FOREIGN = {
    "text": b"hello",
    "empty": b"",
    "empty zip": b"PK\x05\x06" + bytes(18),
    "pickle": b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94",
}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_file_is_ignored(
    tmp_path: Path, source: Source, data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    cache, path = stored(tmp_path, source)
    path.write_bytes(data)
    assert cache.load(KEY, 100) is None
    assert "built anew" in capsys.readouterr().err


def test_an_array_of_pickled_objects_is_never_loaded(tmp_path: Path, source: Source) -> None:
    cache, path = stored(tmp_path, source)
    columns = columns_of(path)
    columns["images.widths"] = np.array([{"a": 1}] * 29, object)
    with path.open("wb") as stream:
        np.savez(stream, allow_pickle=True, **columns)
    assert cache.load(KEY, 100) is None


def test_a_file_of_another_key_is_ignored(tmp_path: Path, source: Source) -> None:
    cache, path = stored(tmp_path, source)
    other = cache_key("sha256:" + "1" * 64, {})
    path.rename(path.with_name(f"100-{other[:40]}.npz"))
    assert cache.load(other, 100) is None


def test_a_file_of_another_version_is_ignored(tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, _ = stored(tmp_path, source)
    monkeypatch.setattr(cache_module, "READER_VERSION", 10_000)
    assert cache.load(KEY, 100) is None


def test_a_file_with_missing_rows_is_ignored(tmp_path: Path, source: Source) -> None:
    cache, path = stored(tmp_path, source)
    columns = columns_of(path)
    columns["objects.boxes"] = columns["objects.boxes"][:-1]
    with path.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **columns)
    assert cache.load(KEY, 100) is None


def test_a_small_file_of_large_columns_is_never_unpacked(
    tmp_path: Path, source: Source, capsys: pytest.CaptureFixture[str]
) -> None:
    cache, path = stored(tmp_path, source)
    columns = columns_of(path)
    rows = 8 << 20
    columns["objects.boxes"] = np.zeros((rows, 4))
    header = json.loads(columns["header"].tobytes())
    header["columns"]["objects.boxes"] = ["<f8", rows]
    columns["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with path.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **columns)
    assert path.stat().st_size < 1 << 20
    del columns
    tracemalloc.start()
    assert cache.load(KEY, 100) is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
    assert "larger than the file" in capsys.readouterr().err


def test_texts_that_overlap_are_never_cut_out(
    tmp_path: Path, source: Source, capsys: pytest.CaptureFixture[str]
) -> None:
    cache, path = stored(
        tmp_path, replace(source, images=replace(source.images, file_names=texts(["x" * 90] + ["y"] * 28)))
    )
    columns = columns_of(path)
    lengths = columns["images.file_names.lengths"]
    lengths[1:] = np.resize([-lengths[0], lengths[0]], len(lengths) - 1)
    with path.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **columns)
    assert cache.load(KEY, 100) is None
    assert "does not match its text" in capsys.readouterr().err


def test_a_file_in_the_place_of_the_folder_is_told_once(
    tmp_path: Path, source: Source, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cache").write_text("in the way")
    cache = Cache(tmp_path / "cache")
    assert cache.load(KEY, 100) is None
    capsys.readouterr()
    cache.store(KEY, 100, source)
    cache.store(KEY, 100, source)
    assert capsys.readouterr().err.count("not kept") == 1


def test_leftovers_of_killed_processes_are_removed_and_those_of_living_ones_not(tmp_path: Path, source: Source) -> None:
    cache, path = stored(tmp_path, source)
    digests = path.parent / "digests"
    digests.mkdir()
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    dead = [
        folder / f".{path.stem}{PARTIAL}{_host()}-{process.pid}-aa{suffix}"
        for folder, suffix in ((path.parent, ".npz"), (digests, ".json"))
    ]
    living = path.with_name(f".{path.stem}{PARTIAL}{_host()}-{os.getppid()}-bb.npz")
    for leftover in (*dead, living):
        leftover.write_bytes(b"half")
    cache.sweep()
    assert not any(leftover.exists() for leftover in dead)
    assert living.exists()
    assert cache.load(KEY, 100) is not None


def test_the_folder_is_the_named_one_or_that_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("CURATION_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == tmp_path / "xdg" / "curation"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "curation"


DIGEST = "sha256:" + "a" * 64


@pytest.fixture
def settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that has not changed for as long as an entry needs to be trusted."""
    path = tmp_path / "file.json"
    path.write_text("{}")
    later = time.time_ns() + 10_000_000_000
    monkeypatch.setattr("curation.sources.cache.time.time_ns", lambda: later)
    return path


def test_an_unchanged_file_is_remembered(tmp_path: Path, settled: Path) -> None:
    cache = Cache(tmp_path / "cache")
    assert cache.remembered(Stamp([str(settled)])) is None
    cache.remember(Stamp([str(settled)]), DIGEST, 2)
    assert cache.remembered(Stamp([str(settled)])) == (DIGEST, 2)


def test_a_changed_touched_or_replaced_file_is_not(tmp_path: Path, settled: Path) -> None:
    cache = Cache(tmp_path / "cache")
    cache.remember(Stamp([str(settled)]), DIGEST, 2)
    facts = settled.stat()
    settled.write_text("[]")
    # The size is the same and the times are set back: the change time cannot be.
    os.utime(settled, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert cache.remembered(Stamp([str(settled)])) is None


def test_a_file_that_changed_a_moment_ago_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text("{}")
    cache = Cache(tmp_path / "cache")
    cache.remember(Stamp([str(path)]), DIGEST, 2)
    assert cache.remembered(Stamp([str(path)])) is None


def test_one_changed_file_among_many_counts(tmp_path: Path, settled: Path) -> None:
    other = tmp_path / "other.xml"
    other.write_text("<a/>")
    cache = Cache(tmp_path / "cache")
    cache.remember(Stamp([str(settled), str(other)]), DIGEST, 6)
    assert cache.remembered(Stamp([str(settled), str(other)])) == (DIGEST, 6)
    assert cache.remembered(Stamp([str(other), str(settled)])) is None
    other.write_text("<b/>")
    assert cache.remembered(Stamp([str(settled), str(other)])) is None


@pytest.mark.parametrize("data", [b"", b"{}", b"[1, 2]", b'{"listing": 3}', b"\xff\xfe", b'{"digest": "sha256:'])
def test_a_damaged_entry_is_no_entry(tmp_path: Path, settled: Path, data: bytes) -> None:
    cache = Cache(tmp_path / "cache")
    cache.remember(Stamp([str(settled)]), DIGEST, 2)
    (entry,) = (tmp_path / "cache" / "digests").iterdir()
    entry.write_bytes(data)
    assert cache.remembered(Stamp([str(settled)])) is None
