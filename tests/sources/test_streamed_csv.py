"""Large CSV files in blocks: nothing lost at the seams, and the digest of all bytes."""

import gzip
import hashlib
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.errors import AnnotationFormatError, MissingFileError, SourceError
from curation.sources.openimages import streamed_csv
from curation.sources.openimages.streamed_csv import StreamedCsv


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "table.csv"
    path.write_bytes(data)
    return path


@given(
    st.lists(st.binary(min_size=1, max_size=9).map(lambda one: one.hex()), max_size=30),
    st.integers(1, 40),
    st.booleans(),
)
def test_lines_come_whole_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], block: int, is_cut: bool
) -> None:
    data = "".join(f"{row}\n" for row in ["a", *rows]).encode()
    path = write(tmp_path_factory.mktemp("csv"), data[:-1] if is_cut else data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streamed_csv, "_LINES", block)
        file = StreamedCsv(path)
        blocks = list(file.lines())
    assert all(one.endswith(b"\n") for one in blocks)
    assert b"".join(blocks).decode().split() == rows
    assert file.sha256 == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def test_batches_skip_other_columns_and_hash_all_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, b'\xef\xbb\xbfa,note,b\r\nx,"one, two",1\r\ny,,2')
    file = StreamedCsv(path)
    assert file.header == ("a", "note", "b")
    found = pyarrow.Table.from_batches(file.batches({"a": pyarrow.string(), "b": pyarrow.int64()}))
    assert found.to_pydict() == {"a": ["x", "y"], "b": [1, 2]}
    assert file.sha256 == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    assert StreamedCsv(path).sha256 == file.sha256


def test_malformed_tables_are_refused(tmp_path: Path) -> None:
    cases = {
        b"": "empty",
        b"\n": "empty",
        b"a,a\n1,2\n": "one name",
        b"\xff\xfe\n": "header",
        gzip.compress(b"\n"): "empty",
    }
    for data, message in cases.items():
        with pytest.raises(AnnotationFormatError, match=message):
            StreamedCsv(write(tmp_path, data))
    with pytest.raises(MissingFileError):
        StreamedCsv(tmp_path / "absent.csv")
    with pytest.raises(AnnotationFormatError, match="lacks a column"):
        StreamedCsv(write(tmp_path, b"a,b\n")).require(["a", "c"])
    with pytest.raises(AnnotationFormatError, match="conversion error to int64: invalid value 'x'"):
        list(StreamedCsv(write(tmp_path, b"a\n1\nx\n")).batches({"a": pyarrow.int64()}))


def test_a_compressed_table_is_the_same_table(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbfa,b\r\n" + b"".join(b"%d,x\r\n" % number for number in range(300_000))
    expected = b"".join(StreamedCsv(write(tmp_path, text)).lines())
    packed = gzip.compress(text)
    file = StreamedCsv(write(tmp_path, packed))
    assert file.header == ("a", "b")
    assert b"".join(file.lines()) == expected
    assert file.sha256 == "sha256:" + hashlib.sha256(packed).hexdigest()
    file = StreamedCsv(write(tmp_path, packed))
    found = pyarrow.Table.from_batches(file.batches({"a": pyarrow.int64()}))
    assert found.column("a").to_pylist() == list(range(300_000))
    assert (file.sha256, file.size) == ("sha256:" + hashlib.sha256(packed).hexdigest(), len(packed))
    cut = StreamedCsv(write(tmp_path, packed[:-20]))
    for read in (cut.lines, lambda: cut.batches({"a": pyarrow.int64()})):
        with pytest.raises(SourceError, match="cut short"):
            list(read())


def test_an_endless_line_is_refused_before_it_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_csv, "_LINES", 100)
    monkeypatch.setattr(streamed_csv, "_MAX_LINE", 1000)
    file = StreamedCsv(write(tmp_path, b"a\n" + b"x" * 100_000))
    with pytest.raises(AnnotationFormatError, match="too long"):
        list(file.lines())


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, b"a\n1\n")
    file = StreamedCsv(path)
    path.write_bytes(b"a\n1\n2\n")
    with pytest.raises(SourceError, match="changed"):
        list(file.lines())
    with pytest.raises(SourceError, match="changed"):
        _ = file.sha256


def test_the_digest_is_that_of_the_file_however_far_hashing_falls_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"a\n" + b"x\n" * 100_000
    path = write(tmp_path, data)
    monkeypatch.setattr(streamed_csv, "_LINES", 1000)
    for behind in (0, 2500, 1 << 30):
        monkeypatch.setattr(streamed_csv, "_BEHIND", behind)
        file = StreamedCsv(path)
        assert sum(map(len, file.lines())) == len(data) - 2
        assert file.sha256 == "sha256:" + hashlib.sha256(data).hexdigest()


def test_a_reading_that_breaks_off_leaves_a_digest_of_the_whole_file(tmp_path: Path) -> None:
    data = b"a\n" + b"x\n" * 1000
    file = StreamedCsv(write(tmp_path, data))
    next(file.lines())
    assert file.sha256 == "sha256:" + hashlib.sha256(data).hexdigest()
