"""Files in memory: the bytes they held when they were opened, digests that tell them apart, names in their folder."""

import hashlib
from pathlib import Path

import pytest

from curation.core.errors import AnnotationFormatError, DuplicateIdError, MissingFileError, PathEscapeError
from curation.sources.integrity import SmallFiles, listed_names, paths_below


def test_the_digest_is_that_of_the_sorted_lines_of_a_checksum_file(tmp_path: Path) -> None:
    for name, text in (("b.json", "two"), ("a.json", "one")):
        (tmp_path / name).write_text(text)
    files = SmallFiles(tmp_path, ["b.json", "a.json"])
    lines = sorted(
        f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in (("a.json", b"one"), ("b.json", b"two"))
    )
    record = files.record("*.json", ["b.json", "a.json"], 5)
    assert record.sha256 == "sha256:" + hashlib.sha256("".join(lines).encode()).hexdigest()
    assert (record.size, record.rows, record.files) == (6, 5, 2)
    single = files.record("a.json", ["a.json"], 1)
    assert single.sha256 == "sha256:" + hashlib.sha256(b"one").hexdigest()
    with pytest.raises(MissingFileError):
        SmallFiles(tmp_path, ["absent.json"])


@pytest.mark.parametrize("name", ["../a", "x/../../a", "/etc/passwd", "..", "a/../b", "C:/a", "x\\..\\..\\y"])
def test_a_name_that_leads_outside_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PathEscapeError):
        paths_below(tmp_path, [name])


def test_lists_hold_each_name_once() -> None:
    assert listed_names(b"\xef\xbb\xbfa\r\n\n b \n", "list.txt") == ("a", "b")
    with pytest.raises(DuplicateIdError, match="same image"):
        listed_names(b"a\nb\na\n", "list.txt")
    for bad in (b"\xff\n", b"a\x1bb\n"):
        with pytest.raises(AnnotationFormatError):
            listed_names(bad, "list.txt")
