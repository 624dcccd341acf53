"""Keys that stand twice in one JSON object: a decoder keeps the last and drops the first without a word."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from curation.errors import CurationError

SMALL = 1 << 20
_KEY = re.compile(rb'[ \t\r\n]*("(?:[^"\\]|\\.)*")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_NEXT = re.compile(rb"[ \t\r\n]*,")


def refuse_repeated_keys(data: bytes, where: str, error: type[CurationError]) -> None:
    """Raise an error where a JSON object names a key twice: at its top, and in files up to 1 MiB at any depth.

    What is no JSON object, or malformed, is left to the decoder that reads it.
    """
    key = repeated_key(data)
    if key is not None:
        raise error(
            "A key stands twice in one JSON object",
            where=where,
            expected="each key once",
            found=ascii(key[:80]),
        )


def repeated_key(data: bytes) -> str | None:
    """Return a key that a JSON object names twice, None where there is none (see `refuse_repeated_keys`)."""
    return _anywhere(data) if len(data) <= SMALL else repeated_at_the_top(data)


def repeated_at_the_top(data: bytes) -> str | None:
    """Return a key that an object names twice, None where there is none; values are skipped, not built."""
    try:
        values = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    place, seen = data.index(b"{") + 1, set[str]()
    while (found := _KEY.match(data, place)) is not None:
        key = msgspec.json.decode(found[1], type=str)
        value = memoryview(values[key])
        place = found.end() + len(value)
        # The decoder kept the last value of each key: where another one stands here, the key comes again.
        if key in seen or memoryview(data)[found.end() : place] != value:
            return key
        seen.add(key)
        comma = _NEXT.match(data, place)
        if comma is None:
            # The object ends here, unless the kept value is only the beginning of the one that stands here.
            return key if data[place:].lstrip()[:1] != b"}" else None
        place = comma.end()
    return None


class _RepeatedError(Exception):
    """Carries the key out of the decoder."""


def _anywhere(data: bytes) -> str | None:
    try:
        json.loads(data, object_pairs_hook=_each_once)
    except _RepeatedError as error:
        return str(error)
    except (ValueError, RecursionError):
        pass
    return None


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    seen = set[str]()
    for key, _ in pairs:
        if key in seen:
            raise _RepeatedError(key)
        seen.add(key)
