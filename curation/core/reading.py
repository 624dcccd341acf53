"""What users' files hold, without gzip and byte order marks.

Both are recognised by the content, not by the name: a file that is called ``.json`` may be compressed, and one that is
called ``.gz`` may not. The digest of a file is always that of its bytes on disk, as ``sha256sum`` prints it.
"""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import CurationError, SourceError, UsageError
from curation.core.files import open_binary, read_bytes
from curation.core.json_text import decode_json

GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
MOST_TIMES = 100
"""A compressed file may unpack to so many times its own size; annotation files unpack to 5 to 30 times theirs."""
SMALL = 64 << 20
"""Bytes that any compressed file may unpack to, whatever its own size."""
MOST_BYTES = 8 << 30
"""Bytes that a compressed file may unpack to at most."""
_PIECE = 1 << 20
_FED = 16 << 10
_HEAD = 1 << 12
_GZIP_WINDOW = 16 + zlib.MAX_WBITS

Declared = TypeVar("Declared", bound=msgspec.Struct)


class InputFile:
    """A user's file in memory (see `read_bytes` for the parameters and errors).

    Attributes
    ----------
    path : Path
    name : str
        Plain file name.
    data : bytes
        What it holds, unpacked and without a byte order mark.
    size : int
        Bytes on disk.
    """

    def __init__(
        self, path: Path, *, kind: str = "file", most: int | None = None, error: type[CurationError] = UsageError
    ) -> None:
        self.path, self.name = path, path.name
        self._raw = read_bytes(path, kind=kind, most=most, error=error)
        self.size = len(self._raw)
        self.data = plain(self._raw, str(path))

    @cached_property
    def sha256(self) -> str:
        """``sha256:<hex>`` of the bytes on disk."""
        return sha256_of_bytes(self._raw)


def read_plain(path: Path, *, kind: str = "file") -> bytes:
    """Return what a user's file holds, unpacked and without a byte order mark (see `plain` for the errors)."""
    return plain(read_bytes(path, kind=kind), str(path))


def beginning(path: Path, count: int, *, kind: str = "file") -> bytes:
    """Return the first bytes of what a user's file holds, without reading the rest of it."""
    try:
        with open_binary(path, kind=kind) as stream:
            start = stream.read(max(count, _HEAD) + len(BOM))
    except OSError:
        # `read_bytes` reports a file that cannot be opened.
        start = read_bytes(path, kind=kind)
    if start.startswith(GZIP):
        pieces = Unpacking(str(path), len(start)).feed(start)
        start = b""
        while len(start) < count + len(BOM) and (piece := next(pieces, b"")):
            start += piece
    return start.removeprefix(BOM)[:count]


def plain(data: bytes, where: str) -> bytes:
    """Return bytes unpacked if they are gzip, and without the byte order mark of UTF-8.

    Raises
    ------
    SourceError
        The gzip stream is cut short, damaged, or unpacks to more than is sound.
    """
    if data.startswith(GZIP):
        unpacking = Unpacking(where, len(data))
        data = b"".join((*unpacking.feed(data), *unpacking.end()))
    return data.removeprefix(BOM)


def utf8_text(data: bytes, where: str, error: type[CurationError], what: str, *, encoding: str = "utf-8-sig") -> str:
    """Return bytes as text without a byte order mark; any that are not UTF-8 are an `error` that says `what`."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as problem:
        raise error(what, where=where, found=str(problem)[:200]) from None


def filled_lines(
    data: bytes, where: str, error: type[CurationError], what: str, *, encoding: str = "utf-8-sig"
) -> list[tuple[int, str]]:
    """Return number and text of each line that is not blank, blanks around it taken off (see `utf8_text`)."""
    lines = utf8_text(data, where, error, what, encoding=encoding).split("\n")
    return [(number, text) for number, line in enumerate(lines, start=1) if (text := line.strip())]


class Unpacking:
    """Decompresses the bytes of a gzip file with one or more members, piece by piece.

    Parameters
    ----------
    where : str
        What messages call the file.
    size : int
        Its bytes on disk: what it unpacks to is held against them, so that a small file cannot fill the memory.
    """

    def __init__(self, where: str, size: int) -> None:
        self._where = where
        self._limit = min(max(MOST_TIMES * size, SMALL), MOST_BYTES)
        self._size = size
        self._out = 0
        self._member = zlib.decompressobj(_GZIP_WINDOW)
        self._between = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what the next bytes of the file hold, in pieces of at most a mebibyte."""
        # zlib copies what a call leaves over: of little at a time that is little, however many members there are.
        for start in range(0, len(data), _FED):
            yield from self._feed(data[start : start + _FED])

    def _feed(self, rest: bytes) -> Iterator[bytes]:
        while rest:
            if self._between:
                # Members may be padded with zeros, as on tapes; anything else has to be a member.
                rest = rest.lstrip(b"\0")
                if not rest:
                    return
                self._member, self._between = zlib.decompressobj(_GZIP_WINDOW), False
            try:
                piece = self._member.decompress(rest, _PIECE)
            except zlib.error as error:
                raise SourceError(
                    "The compressed file is damaged", where=self._where, expected="gzip", found=str(error)[:200]
                ) from None
            self._out += len(piece)
            if self._out > self._limit:
                raise self._too_large()
            if piece:
                yield piece
            self._between = self._member.eof
            rest = self._member.unused_data if self._member.eof else self._member.unconsumed_tail

    def end(self) -> Iterator[bytes]:
        """Yield what is left at the end of the file; a file that ends within a member is a `SourceError`."""
        if not self._between:
            piece = self._member.flush(_PIECE)
            self._out += len(piece)
            if piece:
                yield piece
            if not self._member.eof:
                raise SourceError(
                    "The compressed file is cut short",
                    where=self._where,
                    expected="a whole gzip file",
                    found=f"{self._size:,} bytes, which end within the data",
                    hint="copy or download it again; gzip -t FILE tests it",
                )

    def _too_large(self) -> SourceError:
        return SourceError(
            "The compressed file unpacks to more than an annotation file should",
            where=self._where,
            expected=f"at most {MOST_TIMES} times its {self._size:,} bytes (or {SMALL:,} bytes), and at most "
            f"{MOST_BYTES:,} bytes",
            found=f"more than {self._limit:,} bytes",
            hint="if the file is sound, unpack it yourself: gunzip -k FILE",
        )


_MOST_BYTES_OF_DECLARATION = 4 << 20


def read_declaration(
    path: Path, record: type[Declared], error: type[CurationError], *, kind: str = "declaration", example: str = ""
) -> Declared:
    """Return the record that a ``.toml`` or ``.json`` file declares: a small file that a user writes by hand.

    Parameters
    ----------
    kind, example : str
        What messages call the file, and what they show of a good one.

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
