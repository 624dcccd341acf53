"""What users' files hold: gzip and byte order marks are taken off, and a JSON list may also stand as JSON lines.

Both are told by the content and not by the name: a file that is called ``.json`` may be compressed, and one that is
called ``.gz`` may not. The digest of a file is always that of its bytes on disk, as ``sha256sum`` prints it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
import zlib
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from functools import cached_property
from io import BufferedReader
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec

from curation.core.canonical import sha256_of_bytes
from curation.core.errors import CurationError, MissingFileError, PathEscapeError, SourceError, UsageError
from curation.core.json_keys import SMALL as LARGEST_SEARCHED
from curation.core.json_keys import decode_json, repeated_key

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
_RECORDS = 1 << 20
_HEAD = 1 << 12
_MOST_NAMES = 1000
_GZIP_WINDOW = 16 + zlib.MAX_WBITS

Row = TypeVar("Row")
Declared = TypeVar("Declared", bound=msgspec.Struct)


def open_binary(path: Path | str, *, kind: str = "file") -> BufferedReader:
    """Open somebody's file for reading.

    Raises
    ------
    MissingFileError
        It is a pipe, a device or a socket (see `require_regular`).
    OSError
        It does not exist or may not be read.
    """
    # Not to wait: a pipe that nobody writes to would be waited for, for ever.
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:  # A socket cannot even be opened.
            require_regular(Path(path), kind=kind)
        raise
    try:
        mode = os.fstat(handle).st_mode
        _require_regular_mode(mode, path, kind)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    except BaseException:
        os.close(handle)
        raise
    return open(handle, "rb")  # noqa: PTH123 (a descriptor has no path)


def read_bytes(
    path: Path | str, *, kind: str = "file", most: int | None = None, error: type[CurationError] = UsageError
) -> bytes:
    """Return the bytes of a file; absence or refusal is a `MissingFileError` that says what was looked for.

    Parameters
    ----------
    most : int, optional
        Bytes that such a file has at most; a larger one is an `error`, and not read.
    """
    try:
        with open_binary(path, kind=kind) as stream:
            if most is not None and (size := os.fstat(stream.fileno()).st_size) > most:
                expected = f"at most {most} bytes"
                raise error(f"The {kind} is too large to be one", where=str(path), expected=expected, found=str(size))
            return stream.read()
    except FileNotFoundError:
        raise missing_path(f"The {kind} does not exist", path) from None
    except IsADirectoryError:
        raise MissingFileError(f"The {kind} is a folder", where=str(path), expected="a file") from None
    except (PermissionError, OSError) as refused:
        raise MissingFileError(f"The {kind} cannot be read: {refused.strerror}", where=str(path)) from None


def missing_path(
    what: str, path: Path | str, *, expected: str | None = None, found: str | None = None
) -> MissingFileError:
    """Return the error for a path where nothing is, with the question whether another was meant."""
    return MissingFileError(what, where=str(path), expected=expected, found=found, hint=path_meant(Path(path)))


def path_meant(path: Path) -> str | None:
    """Return the question whether the name beside a missing path that is most like it was meant; None without one.

    A folder of more than a thousand names is not searched.
    """
    with suppress(OSError, ValueError):
        beside = [] if path.exists() else [entry.name for entry in islice(path.parent.iterdir(), _MOST_NAMES + 1)]
        near = get_close_matches(path.name, sorted(beside), 3) if len(beside) <= _MOST_NAMES else []
        # A common suffix makes no likeness: test.json is not meant by nope.json.
        if meant := [name for name in near if get_close_matches(path.stem, [Path(name).stem])]:
            return f"did you mean {path.with_name(meant[0])}?"
    return None


def inside(root: Path, relative: str) -> Path:
    """Return ``root/relative``, refusing any name from an input file that leads outside `root`.

    Raises
    ------
    PathEscapeError
        The name is absolute, holds ``..``, a drive, a NUL, or resolves outside `root` through a link.
    """
    pure = PurePosixPath(relative.replace("\\", "/"))
    hostile = pure.is_absolute() or ".." in pure.parts or "\0" in relative or ":" in (pure.parts or ("",))[0]
    path = root / pure
    # Not Path.resolve, which raises RuntimeError for a link that leads in a circle.
    if hostile or not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise PathEscapeError(
            "A path leads outside its folder", where=str(root), expected="a path below it", found=relative[:200]
        )
    return path


def require_regular(path: Path, *, kind: str = "file") -> None:
    """Raise `MissingFileError` for a pipe, a device or a socket: it may never end, and can be read only once."""
    with suppress(OSError, ValueError):  # What is not there, or cannot be, is told where it is read.
        _require_regular_mode(path.stat().st_mode, path, kind)


def _require_regular_mode(mode: int, path: Path | str, kind: str) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise MissingFileError(
            f"The {kind} is not a regular file, and could not be read more than once",
            where=str(path),
            expected="a regular file",
            found=file_kind(mode),
            hint="write it to a file first: COMMAND > FILE, then name FILE",
        )


def file_kind(mode: int) -> str:
    """Return what a file that is not a regular one is, in words."""
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    return kinds.get(stat.S_IFMT(mode), "no file")


class InputFile:
    """A user's file in memory (see `read_bytes` for the parameters and errors).

    Attributes
    ----------
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
        self.name = path.name
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
        # What cannot be opened is told as everywhere.
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
    except UnicodeDecodeError as found:
        raise error(what, where=where, found=str(found)[:200]) from None


def filled_lines(
    data: bytes, where: str, error: type[CurationError], what: str, *, encoding: str = "utf-8-sig"
) -> list[tuple[int, str]]:
    """Return number and text of each line that is not blank, blanks around it taken off (see `utf8_text`)."""
    lines = utf8_text(data, where, error, what, encoding=encoding).split("\n")
    return [(number, text) for number, line in enumerate(lines, start=1) if (text := line.strip())]


class Unpacking:
    """Takes the bytes of a gzip file, of one or more members, and gives out what they hold, piece by piece.

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


def is_json_lines(data: bytes) -> bool:
    """Return whether the first line of a text is a JSON object of one image: one record a line, no list around them."""
    line = data.lstrip()[: 1 << 20].split(b"\n", 1)[0].strip()
    if not line.startswith(b"{"):
        return False
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(record, dict) and "image_id" in record


def record_pieces(data: bytes, start: int, end: int, key: bytes, record: type[Row]) -> Iterator[list[Row]]:
    """Yield the records between two places of a JSON text, some thousand at a time.

    Records of a piece stay in the processor's cache while they become columns, and their memory serves the next piece.
    Where a piece may end is guessed, by the key with which each record begins, and proved: each piece is by itself a
    list of records, so that all of them are one with commas between.

    Parameters
    ----------
    key : bytes
        With its quotes.

    Raises
    ------
    msgspec.DecodeError, UnicodeDecodeError, RecursionError
        A piece is no list of such records.
    """
    boundary = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*(?=\{\s*" + key + rb"\s*:)")
    decoder = msgspec.json.Decoder(list[record])  # type: ignore[valid-type]
    whole = memoryview(data)
    while start < end:
        found = boundary.search(data, min(start + _RECORDS, end), end)
        stop = end if found is None else found.start() + 1
        yield decoder.decode(b"".join((b"[", whole[start:stop], b"]")))
        start = end if found is None else found.end()


def json_rows(data: bytes, row: type[Row]) -> list[Row]:
    """Return the records of a JSON list, or of JSON lines whose records name their image (COCO results).

    Raises
    ------
    msgspec.DecodeError, UnicodeDecodeError, RecursionError
        They are not such records; or one of them, in a file of up to 1 MiB, names a key twice.
    """
    if is_json_lines(data):
        decoder = msgspec.json.Decoder(row)
        try:
            rows = decoder.decode_lines(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            _first_failing_line(decoder, data)
            raise
        lines = enumerate(data.split(b"\n"), start=1) if len(data) <= LARGEST_SEARCHED else ()
        for number, line in lines:
            _refuse_repeated(line, f"line {number}: ")
        return rows
    rows = msgspec.json.decode(data, type=list[row])  # type: ignore[valid-type]
    if len(data) <= LARGEST_SEARCHED:
        _refuse_repeated(data)
    return rows


def _refuse_repeated(data: bytes, where: str = "") -> None:
    if (key := repeated_key(data)) is not None:
        raise msgspec.DecodeError(f"{where}the key {key[:80]!a} appears twice in one object")


def _first_failing_line(decoder: msgspec.json.Decoder[Row], data: bytes) -> None:
    for number, line in enumerate(data.split(b"\n"), start=1):
        try:
            if line.strip():
                decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise msgspec.DecodeError(f"line {number}: {error}") from None


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
    what, expected = f"The {kind} cannot be read", example or f"fields {', '.join(record.__struct_fields__)}"
    if path.suffix.lower() != ".toml":
        return decode_json(data, record, error, what, where=str(path), expected=expected)
    try:
        return msgspec.convert(tomllib.loads(data.decode("utf-8")), type=record)
    # ValueError: of TOML, of the types, of UTF-8, and of a number with thousands of digits.
    except (ValueError, RecursionError) as problem:
        raise error(what, where=str(path), expected=expected, found=str(problem)[:300]) from None
