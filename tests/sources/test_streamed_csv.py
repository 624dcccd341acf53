"""Large CSV files in blocks: nothing lost at the seams, and the digest of all bytes."""

import gzip
import hashlib
from pathlib import Path

import pyarrow
import pytest

from curation.core.errors import AnnotationFormatError, MissingFileError, SourceError
from curation.sources import openimages
from curation.sources.openimages import StreamedCsv


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "table.csv"
    path.write_bytes(data)
    return path


def texts(file: StreamedCsv, name: str = "a") -> list[str]:
    """Return a column of a file as texts."""
    return [one for batch in file.batches({name: pyarrow.string()}) for one in batch.column(name).to_pylist()]


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
    expected = texts(StreamedCsv(write(tmp_path, text)))
    packed = gzip.compress(text)
    file = StreamedCsv(write(tmp_path, packed))
    assert (file.header, texts(file)) == (("a", "b"), expected)
    found = pyarrow.Table.from_batches(file.batches({"a": pyarrow.int64()}))
    assert found.column("a").to_pylist() == list(range(300_000))
    assert (file.sha256, file.size) == ("sha256:" + hashlib.sha256(packed).hexdigest(), len(packed))
    cut = StreamedCsv(write(tmp_path, packed[:-20]))
    with pytest.raises(SourceError, match="cut short"):
        texts(cut)


def test_an_endless_line_is_refused_before_it_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openimages, "_CSV_BLOCK", 1000)
    with pytest.raises(AnnotationFormatError, match="cannot be read"):
        texts(StreamedCsv(write(tmp_path, b"a\n" + b"x" * 100_000)))


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, b"a\n1\n")
    file = StreamedCsv(path)
    path.write_bytes(b"a\n1\n2\n")
    with pytest.raises(SourceError, match="changed"):
        texts(file)
    with pytest.raises(SourceError, match="changed"):
        _ = file.sha256


def test_a_reading_that_breaks_off_leaves_a_digest_of_the_whole_file(tmp_path: Path) -> None:
    data = b"a\n" + b"x\n" * 1000
    file = StreamedCsv(write(tmp_path, data))
    next(file.batches({"a": pyarrow.string()}))
    assert file.sha256 == "sha256:" + hashlib.sha256(data).hexdigest()
