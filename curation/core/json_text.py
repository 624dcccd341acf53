"""JSON of users' files, whole or as JSON lines, decoded into types; a key that appears twice in one object is refused.

Decoders silently keep only the last value of a duplicate key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from curation.core.errors import CurationError

Decoded = TypeVar("Decoded")
Row = TypeVar("Row")
SMALL = 1 << 20
_RECORDS = 1 << 20
_KEY = re.compile(rb'[ \t\r\n]*("(?:[^"\\]|\\.)*")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_NEXT = re.compile(rb"[ \t\r\n]*,")
EXACT = 2**53
"""A float represents every integer up to this one exactly."""


def as_integer(value: Any) -> Any:
    """Return a whole float, such as 1.0, as an integer; other values are unchanged."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= EXACT
    return int(value) if is_whole else value


def decode_json(
    data: bytes,
    form: type[Decoded],
    error: type[CurationError],
    message: str,
    *,
    where: str,
    expected: str | None = None,
    hint: str | None = None,
) -> Decoded:
    """Return decoded JSON; raise `error` with `message` if the JSON is malformed or has another form.

    Duplicate keys are rejected, as by `refuse_repeated_keys`.
    """
    refuse_repeated_keys(data, where, error)
    try:
        return msgspec.json.decode(data, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise error(message, where=where, expected=expected, found=str(problem)[:200], hint=hint) from None


def refuse_repeated_keys(data: bytes, where: str, error: type[CurationError], *, everywhere: bool = False) -> None:
    """Raise an error for a duplicate key of a JSON object: at the top level, and in files up to 1 MiB at any depth.

    Other JSON values and malformed texts are left to the decoder that reads them.

    Parameters
    ----------
    everywhere : bool
        Whether to check any depth in a file of any size, for files whose keys are data such as image names.
    """
    key = _anywhere(data) if everywhere else repeated_key(data)
    if key is not None:
        raise error(
            "A key appears twice in one JSON object", where=where, expected="each key once", found=ascii(key[:80])
        )


def repeated_key(data: bytes) -> str | None:
    """Return a duplicate key of a JSON object, or None (see `refuse_repeated_keys`)."""
    return _anywhere(data) if len(data) <= SMALL else repeated_at_the_top(data)


def repeated_at_the_top(data: bytes) -> str | None:
    """Return a duplicate key of the outermost object, or None; values are skipped, not decoded."""
    try:
        values = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    position, seen = data.index(b"{") + 1, set[str]()
    while (name := _KEY.match(data, position)) is not None:
        key = msgspec.json.decode(name[1], type=str)
        value = memoryview(values[key])
        # The decoder kept the last value of each key: if the value here differs, the key is repeated later.
        if key in seen or not data.startswith(value, name.end()):
            return key
        position = name.end() + len(value)
        seen.add(key)
        comma = _NEXT.match(data, position)
        if comma is None:
            # The object ends here, unless the kept value is only the beginning of the value here.
            return key if data[position:].lstrip()[:1] != b"}" else None
        position = comma.end()
    return None


class RepeatedKeyError(ValueError):
    """A JSON object names a key twice; its argument is the key."""

    def __str__(self) -> str:
        return f"duplicate key {self.args[0][:40]!r}"


def each_key_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, given as its pairs: an ``object_pairs_hook`` of `json.loads`.

    Raises
    ------
    RepeatedKeyError
        A key is duplicated.
    """
    _each_once(pairs)
    return dict(pairs)


def _anywhere(data: bytes) -> str | None:
    try:
        json.loads(data, object_pairs_hook=_each_once)
    except RepeatedKeyError as error:
        return str(error.args[0])
    except (ValueError, RecursionError):
        pass
    return None


def _each_once(pairs: Sequence[tuple[str, Any]]) -> None:
    seen = set[str]()
    for key, _ in pairs:
        if key in seen:
            raise RepeatedKeyError(key)
        seen.add(key)


def is_json_lines(data: bytes) -> bool:
    """Return whether the first line of a text is a JSON object with an image: one record a line, without a list."""
    line = data.lstrip()[: 1 << 20].split(b"\n", 1)[0].strip()
    if not line.startswith(b"{"):
        return False
    try:
        # Unlike msgspec, json reads NaN, which another reader of the file may mend.
        record = json.loads(line.decode())
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and not {"image_id", "file_name"}.isdisjoint(record)


def plain_json(data: bytes) -> bytes:
    """Return JSON with NaN and Infinity, as Python writes them, replaced by null; other texts are unchanged."""
    if not any(name in data for name in (b"NaN", b"Infinity")):
        return data
    try:
        texts = [line for line in data.splitlines() if line.strip()] if is_json_lines(data) else [data]
        return b"\n".join(msgspec.json.encode(json.loads(text, object_pairs_hook=each_key_once)) for text in texts)
    except (ValueError, RecursionError):
        return data


def record_pieces(data: bytes, start: int, end: int, key: bytes, record: type[Row]) -> Iterator[list[Row]]:
    """Yield the records between two positions of a JSON text, a few thousand at a time.

    Records of a piece stay in the processor's cache while they become columns, and their memory is used again for the
    next piece. The end of a piece is guessed from the key with which each record begins. Decoding proves the guess:
    each piece must be a list of records by itself.

    Parameters
    ----------
    key : bytes
        Text with its quotes.

    Raises
    ------
    msgspec.DecodeError, UnicodeDecodeError, RecursionError
        A piece is not a list of such records.
    """
    boundary = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*(?=\{\s*" + key + rb"\s*:)")
    decoder = msgspec.json.Decoder(list[record])  # type: ignore[valid-type]
    view = memoryview(data)
    while start < end:
        border = boundary.search(data, min(start + _RECORDS, end), end)
        stop = end if border is None else border.start() + 1
        yield decoder.decode(b"".join((b"[", view[start:stop], b"]")))
        start = end if border is None else border.end()


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
        lines = enumerate(data.split(b"\n"), start=1) if len(data) <= SMALL else ()
        for number, line in lines:
            _refuse_repeated(line, f"line {number}: ")
        return rows
    rows = msgspec.json.decode(data, type=list[row])  # type: ignore[valid-type]
    if len(data) <= SMALL:
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
