"""Contents of users' files without gzip compression and byte order marks.

Both are recognised by the content, not by the name: a file that is called ``.json`` may be compressed, and one that is
called ``.gz`` may not. The digest of a file is always that of its bytes on disk, as ``sha256sum`` prints it.
"""

from __future__ import annotations

import gzip
import io
import os
import tomllib
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import CurationError, SourceError, UsageError
from curation.core.files import open_file, read_bytes
from curation.core.json_text import decode_json

GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
MOST_TIMES = 100
"""Maximum size of the content relative to the compressed file; annotation files have 5 to 30 times their size."""
SMALL = 64 << 20
"""Bytes that any compressed file may unpack to, whatever its own size."""
MOST_BYTES = 8 << 30
"""Bytes that a compressed file may unpack to at most."""
_PIECE = 1 << 20
_HEAD = 1 << 12

Declared = TypeVar("Declared", bound=msgspec.Struct)


class InputFile:
    """A user's file in memory (see `read_bytes` for the parameters and errors).

    Attributes
    ----------
    path : Path
    name : str
        Plain file name.
    data : bytes
        Content, unpacked and without a byte order mark.
    size : int
        Bytes on disk.
    """

    def __init__(
        self, path: Path, *, kind: str = "file", most: int | None = None, error: type[CurationError] = UsageError
    ) -> None:
        self.path, self.name = path, path.name
        self._raw = read_bytes(path, kind=kind, most=most, error=error)
        self.size = len(self._raw)
        self.data = plain_bytes(self._raw, str(path))

    @cached_property
    def sha256(self) -> str:
        """``sha256:<hex>`` of the bytes on disk."""
        return sha256_of_bytes(self._raw)


def read_plain(path: Path, *, kind: str = "file") -> bytes:
    """Return the content of a file, unpacked and without a byte order mark (see `plain_bytes` for the errors)."""
    return plain_bytes(read_bytes(path, kind=kind), str(path))


def beginning(path: Path, count: int, *, kind: str = "file") -> bytes:
    """Return the first bytes of a file's content without reading the rest."""
    with open_file(path, kind=kind) as stream:
        start, size = stream.peek(len(GZIP))[: len(GZIP)], os.fstat(stream.fileno()).st_size
        pieces = unpacked(stream, str(path), size) if start == GZIP else iter([stream.read(count + _HEAD)])
        content = b""
        while len(content) < count + len(BOM) and (piece := next(pieces, b"")):
            content += piece
    return content.removeprefix(BOM)[:count]


def plain_bytes(data: bytes, where: str) -> bytes:
    """Return bytes unpacked if they are gzip, and without the byte order mark of UTF-8.

    Raises
    ------
    SourceError
        The gzip stream is cut short, damaged, or its content exceeds the limits of this module.
    """
    data = b"".join(unpacked(io.BytesIO(data), where, len(data))) if data.startswith(GZIP) else data
    return data.removeprefix(BOM)


def utf8_text(data: bytes, where: str, error: type[CurationError], message: str, *, encoding: str = "utf-8-sig") -> str:
    """Return UTF-8 bytes as text without a byte order mark; raise `error` with `message` for other bytes."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as problem:
        raise error(message, where=where, found=str(problem)[:200]) from None


def filled_lines(
    data: bytes, where: str, error: type[CurationError], message: str, *, encoding: str = "utf-8-sig"
) -> list[tuple[int, str]]:
    """Return number and text of each line that is not blank, without outer blanks (see `utf8_text`)."""
    lines = utf8_text(data, where, error, message, encoding=encoding).split("\n")
    return [(number, text) for number, line in enumerate(lines, start=1) if (text := line.strip())]


def unpacked(stream: BinaryIO, where: str, size: int) -> Iterator[bytes]:
    """Yield the content of a gzip file with one or more members, in pieces of at most a mebibyte.

    Parameters
    ----------
    where : str
        The name of the file in messages.
    size : int
        Its bytes on disk: they bound the content, so that a small file cannot fill the memory.

    Raises
    ------
    SourceError
        See `plain_bytes`.
    """
    limit, count = min(max(MOST_TIMES * size, SMALL), MOST_BYTES), 0
    try:
        with gzip.GzipFile(fileobj=stream, mode="rb") as content:
            while piece := content.read(_PIECE):
                count += len(piece)
                if count > limit:
                    raise SourceError(
                        "The compressed file unpacks to more than an annotation file should",
                        where=where,
                        expected=f"at most {MOST_TIMES} times its {size:,} bytes (or {SMALL:,} bytes), and at most "
                        f"{MOST_BYTES:,} bytes",
                        found=f"more than {limit:,} bytes",
                        hint="if the file is sound, unpack it yourself: gzip -dc FILE > NEW_FILE",
                    )
                yield piece
    except EOFError:
        raise SourceError(
            "The compressed file is cut short",
            where=where,
            expected="a whole gzip file",
            found=f"{size:,} bytes, without the end of the data",
            hint="copy or download it again; gzip -t FILE tests it",
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise SourceError(
            "The compressed file is damaged", where=where, expected="gzip", found=str(error)[:200]
        ) from None


_MOST_BYTES_OF_DECLARATION = 4 << 20


def read_declaration(
    path: Path, record: type[Declared], error: type[CurationError], *, kind: str = "declaration", example: str = ""
) -> Declared:
    """Return the record that a ``.toml`` or ``.json`` file declares: a small file that a user writes by hand.

    Parameters
    ----------
    kind, example : str
        Name of the file in messages, and an example of a valid one.

    Raises
    ------
    MissingFileError
        The file cannot be read.
    error
        It is neither TOML nor JSON, or has other fields or types than the record.
    """
    data = read_bytes(path, kind=kind, most=_MOST_BYTES_OF_DECLARATION, error=error).removeprefix(BOM)
    message, expected = f"The {kind} cannot be read", example or f"fields {', '.join(record.__struct_fields__)}"
    if path.suffix.lower() != ".toml":
        return decode_json(data, record, error, message, where=str(path), expected=expected)
    try:
        return msgspec.convert(tomllib.loads(data.decode("utf-8")), type=record)
    # ValueError: of TOML, of the types, of UTF-8, and of a number with thousands of digits.
    except (ValueError, RecursionError) as problem:
        raise error(message, where=str(path), expected=expected, found=str(problem)[:300]) from None
