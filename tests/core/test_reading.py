"""Compressed files, byte order marks and JSON lines: told by the content, bounded, and whole or refused."""

import gzip
import hashlib
import io
import os
import socket
import zlib
from pathlib import Path

import msgspec
import pytest

from curation.core import reading
from curation.core.errors import MissingFileError, PathEscapeError, SourceError
from curation.core.files import inside, missing_path, read_bytes
from curation.core.json_text import is_json_lines, json_rows
from curation.core.reading import InputFile, beginning, plain_bytes, read_plain

TEXT = b'{"images": [], "annotations": []}' * 50


class Row(msgspec.Struct):
    image_id: int
    score: float


def test_gzip_and_bom_are_told_by_the_content_and_the_digest_is_of_the_disk(tmp_path: Path) -> None:
    forms = {
        "plain.json": TEXT,
        "bom.json": b"\xef\xbb\xbf" + TEXT,
        "packed.json": gzip.compress(TEXT),
        "named.gz": TEXT,
        "both.json.gz": gzip.compress(b"\xef\xbb\xbf" + TEXT),
        "members.gz": gzip.compress(TEXT[:700]) + gzip.compress(b"") + gzip.compress(TEXT[700:]),
        "padded.gz": gzip.compress(TEXT) + b"\0" * 512,
    }
    for name, data in forms.items():
        path = tmp_path / name
        path.write_bytes(data)
        file = InputFile(path)
        assert file.data == read_plain(path) == TEXT, name
        assert (file.name, file.size) == (name, len(data))
        assert file.sha256 == "sha256:" + hashlib.sha256(data).hexdigest()
        assert beginning(path, 10) == TEXT[:10]


def test_the_beginning_is_as_long_as_was_asked_for_however_the_file_is_packed(tmp_path: Path) -> None:
    text = b",".join(b"column %d" % number for number in range(6_000))
    packed = gzip.compress(b"a,") + gzip.compress(text, compresslevel=0)
    (tmp_path / "x.csv.gz").write_bytes(packed)
    found = beginning(tmp_path / "x.csv.gz", 60_000)
    assert (b"a," + text).startswith(found)
    # Stored as they are, bytes take a little more than themselves, and no more of the file is read.
    assert len(found) > 59_800


@pytest.mark.parametrize("lost", [1, 8, 9, 30])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(TEXT)[:-lost])
    with pytest.raises(SourceError, match="cut short") as caught:
        read_plain(path)
    assert caught.value.where == str(path)


@pytest.mark.parametrize("place", [3, 14, -6])
def test_a_damaged_file_is_refused(place: int) -> None:
    data = bytearray(gzip.compress(TEXT))
    data[place] ^= 0xFF
    with pytest.raises(SourceError, match=r"damaged|cut short"):
        plain_bytes(bytes(data), "x")
    with pytest.raises(SourceError, match="damaged"):
        plain_bytes(gzip.compress(TEXT) + b"more", "x")


def test_a_bomb_is_refused_before_it_fills_the_memory() -> None:
    # A gibibyte of zeros in a mebibyte: 1,030 times its size, where annotation files reach 30 times theirs.
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    first, other = (packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    packed = first + 1023 * other
    lengths: list[int] = []
    with pytest.raises(SourceError, match="unpacks to more") as caught:
        lengths.extend(map(len, reading.unpacked(io.BytesIO(packed), "bomb.gz", len(packed))))
    assert max(lengths) <= 1 << 20
    assert sum(lengths) <= max(100 * len(packed), 64 << 20)
    assert "gzip -dc" in str(caught.value.hint)


def test_json_lines_are_rows() -> None:
    rows = [Row(3, 0.5), Row(4, 0.25)]
    lines = b'{"image_id": 3, "score": 0.5}\n\n{"image_id": 4, "score": 0.25, "more": []}\r\n'
    assert json_rows(lines, Row) == rows
    assert json_rows(b' [{"image_id":3,"score":0.5},\n{"image_id":4,"score":0.25}]', Row) == rows
    assert json_rows(b'{"image_id": 3, "score": 0.5}', Row) == rows[:1]


def test_json_lines_name_the_line_that_is_wrong() -> None:
    for bad in (b'{"image_id": 4', b'{"image_id": "x", "score": 1}', b"[]"):
        with pytest.raises(msgspec.DecodeError, match="line 3"):
            json_rows(b'{"image_id": 3, "score": 0.5}\n\n' + bad + b"\n", Row)


@pytest.mark.parametrize("text", [b"", b"[]", b'{"images": {"1": []}}', b'{"images": [],\n"annotations": []}', b"{"])
def test_other_json_is_no_lines(text: bytes) -> None:
    assert not is_json_lines(text)


@pytest.mark.parametrize(
    "text",
    [
        '[{"image_id": 1, "score": 0.1, "score": 0.9}]',
        '{"image_id": 2, "score": 1}\n\n{"image_id": 1, "score": 0, "score": 1}\n',
    ],
)
def test_a_record_that_names_a_key_twice_is_refused(text: str) -> None:
    with pytest.raises(msgspec.DecodeError, match="'score' appears twice in one object"):
        json_rows(text.encode(), Row)


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="The id list does not exist"):
        read_bytes(tmp_path / "no", kind="id list")
    with pytest.raises(MissingFileError, match="is a folder"):
        read_bytes(tmp_path)
    (tmp_path / "yes").write_bytes(b"1")
    with pytest.raises(MissingFileError, match="cannot be read"):
        read_bytes(tmp_path / "yes/below")
    assert read_bytes(tmp_path / "yes") == b"1"


@pytest.mark.parametrize("name", ["a.txt", "a/b.txt", "./a", "a//b", "a b", "a..b", "..a"])
def test_names_inside(tmp_path: Path, name: str) -> None:
    assert inside(tmp_path, name).resolve().is_relative_to(tmp_path.resolve())


@pytest.mark.parametrize(
    "name", ["../a", "a/../../b", "/etc/passwd", "..", "a/..\\..\\b", "\\\\host\\x", "C:\\x", "C:/x", "a\0b", "link/x"]
)
def test_names_that_lead_outside(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(PathEscapeError):
        inside(root, name)


@pytest.mark.parametrize("what", ["pipe", "/dev/zero", "socket"])
def test_what_is_no_regular_file_is_not_read(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(MissingFileError) as caught:
            read_bytes(tmp_path / what)
    assert caught.value.expected == "a regular file"
    assert caught.value.hint == "write it to a file first: COMMAND > FILE, then name FILE"


def test_where_nothing_is_at_a_path_the_name_most_like_it_is_asked_for(tmp_path: Path) -> None:
    for name in ("train.json", "test.json", "photos"):
        (tmp_path / name).touch()
    for name, meant in (("trian.json", "train.json"), ("photo", "photos")):
        assert missing_path("Gone", tmp_path / name).hint == f"did you mean {tmp_path / meant}?"
    for name in ("annotations.csv", "none/train.json", "train.json", "nope.json", "a\0b", "x" * 300):
        assert missing_path("Gone", tmp_path / name).hint is None, name
