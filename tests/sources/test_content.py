"""The bytes of a file are those it held when it was opened, whatever becomes of it; its digest does not lie."""

import hashlib
from pathlib import Path

import pytest

from curation.errors import MissingFileError, SourceError
from curation.sources.content import FileContent

LARGE = bytes(range(256)) * (1 << 17)


def test_bytes_size_and_digest(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(LARGE)
    content = FileContent(path)
    assert (content.name, content.size, content.data) == ("a.json", len(LARGE), LARGE)
    assert content.sha256 == "sha256:" + hashlib.sha256(LARGE).hexdigest()


def test_a_large_file_that_is_truncated_after_opening_neither_ends_the_program_nor_passes(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(LARGE)
    content = FileContent(path)
    with path.open("r+b") as stream:
        stream.truncate(10)
    assert content.data == LARGE
    with pytest.raises(SourceError, match="changed while it was read"):
        _ = content.sha256


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="cannot be read"):
        FileContent(tmp_path / "absent.json")
    with pytest.raises(MissingFileError, match="is a folder"):
        FileContent(tmp_path)
