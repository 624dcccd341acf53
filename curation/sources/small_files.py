"""`SmallFiles`: many files that make one source together, in memory, with one digest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from curation.canonical import sha256_of_bytes
from curation.errors import AnnotationFormatError, ImageIdError
from curation.ids import check_native
from curation.sources.integrity import check_unique
from curation.sources.source import FileRecord
from curation.storage import inside, read_bytes

_PLAIN_NAME = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*\Z")


class SmallFiles:
    """Files below a folder.

    Parameters
    ----------
    root : Path
    names : sequence of str
        Paths below it with ``/``.

    Attributes
    ----------
    data : dict of str to bytes
        Bytes by name, in the order of `names`.

    Raises
    ------
    MissingFileError
        A file cannot be read.
    PathEscapeError
        A name leads outside `root`.
    """

    def __init__(self, root: Path, names: Sequence[str]) -> None:
        paths = zip(names, paths_below(root, names), strict=True)
        self.data = {name: read_bytes(Path(path), kind="annotation file") for name, path in paths}

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(map(len, self.data.values()))

    @property
    def sha256(self) -> str:
        """``sha256:<hex>`` that changes with any of the files."""
        return self.record("", list(self.data), 0).sha256

    def record(self, name: str, files: Sequence[str], rows: int) -> FileRecord:
        """Return one file, or several under one name, for `Source.files`."""
        if len(files) == 1 and name == files[0]:
            return FileRecord(name, sha256_of_bytes(self.data[name]), len(self.data[name]), rows)
        lines = [f"{sha256_of_bytes(self.data[one]).removeprefix('sha256:')}  {one}\n" for one in files]
        digest = sha256_of_bytes("".join(sorted(lines)).encode("utf-8"))
        return FileRecord(name, digest, sum(len(self.data[one]) for one in files), rows, len(files))


def paths_below(root: Path, names: Sequence[str]) -> list[str]:
    """Return the path of each name below a folder; one that leads outside it is a `PathEscapeError`."""
    # Resolving links costs more than reading a small file, so a name of plain characters is not resolved.
    return [f"{root}/{name}" if _PLAIN_NAME.match(name) else str(inside(root, name)) for name in names]


def listed_names(data: bytes, where: str) -> tuple[str, ...]:
    """Return the image names that a list holds, one a line, blank lines passed over.

    Raises
    ------
    AnnotationFormatError, DuplicateIdError
        It is not UTF-8, or a line is no image name, or stands twice.
    """
    try:
        lines = [line.strip() for line in data.decode("utf-8-sig").split("\n")]
    except UnicodeDecodeError as error:
        raise AnnotationFormatError(
            "The list is not UTF-8 text", where=where, found=str(error)[:200]
        ) from None
    for number, line in enumerate(lines, start=1):
        if line:
            check_name(line, f"{where}: line {number}")
    names = tuple(filter(None, lines))
    check_unique(names, "image", lambda row: f"{where}: image {row + 1}")
    return names


def check_name(name: str, where: str) -> None:
    """Raise `AnnotationFormatError` unless a name can be an image id."""
    try:
        check_native(name)
    except ImageIdError as error:
        raise AnnotationFormatError(
            "A name cannot be an image id", where=where, expected=error.expected, found=repr(name[:80])
        ) from None
