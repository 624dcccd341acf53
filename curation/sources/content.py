"""Small files of a dataset with their digests, and the names of images in lists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import AnnotationFormatError, ImageIdError
from curation.core.files import inside, read_bytes
from curation.core.ids import check_native
from curation.core.reading import filled_lines
from curation.sources.integrity import check_unique
from curation.sources.source import FileRecord

KIND = "annotation file"
"""What messages call a raw file."""
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
        self.data = {name: read_bytes(path, kind=KIND) for name, path in paths}

    def record(self, name: str, files: Sequence[str], rows: int) -> FileRecord:
        """Return one file, or several under one name, for `Source.files`."""
        if len(files) == 1 and name == files[0]:
            return FileRecord(name, sha256_of_bytes(self.data[name]), len(self.data[name]), rows)
        return record_of_many(name, {file: self.data[file] for file in files}, rows)


def record_of_many(name: str, data: Mapping[str, bytes], rows: int) -> FileRecord:
    """Return the record of several files under one name; their digest is that of the lines of a checksum file."""
    lines = [f"{sha256_of_bytes(held).removeprefix('sha256:')}  {file}\n" for file, held in data.items()]
    digest = sha256_of_bytes("".join(sorted(lines)).encode("utf-8"))
    return FileRecord(name, digest, sum(map(len, data.values())), rows, len(data))


def paths_below(root: Path, names: Sequence[str]) -> list[str]:
    """Return the path of each name below a folder; one that leads outside it is a `PathEscapeError`."""
    # Resolving links costs more than reading a small file, so a name of plain characters is not resolved.
    return [f"{root}/{name}" if _PLAIN_NAME.match(name) else str(inside(root, name)) for name in names]


def listed_names(data: bytes, where: str) -> tuple[str, ...]:
    """Return the image names that a list holds, one a line, blank lines passed over.

    Raises
    ------
    AnnotationFormatError, DuplicateIdError
        It is not UTF-8, or a line is repeated or cannot be an image name.
    """
    lines = filled_lines(data, where, AnnotationFormatError, "The list is not UTF-8 text")
    for number, line in lines:
        check_image_name(line, f"{where}: line {number}")
    names = tuple(line for _, line in lines)
    check_unique(names, "image", lambda row: f"{where}: image {row + 1}")
    return names


def check_image_name(name: str, where: str) -> None:
    """Raise `AnnotationFormatError` unless a name can be an image id."""
    try:
        check_native(name)
    except ImageIdError as error:
        raise AnnotationFormatError(
            "A name cannot be an image id", where=where, expected=error.expected, found=repr(name[:80])
        ) from None
