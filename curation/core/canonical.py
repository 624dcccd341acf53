"""Canonical JSON and digests: one byte string for one value, on every machine.

The canonical form is the subset of RFC 8785 (JSON Canonicalization Scheme) in which no two implementations
can disagree: ASCII keys, strings, booleans, null, arrays, and integers that a double holds exactly. Floats are
refused; a threshold is written as a decimal string.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any

from curation.core.errors import CanonicalFormError

_LARGEST_EXACT_INTEGER = 2**53 - 1


def canonical_json(value: Any) -> bytes:
    """Return the canonical UTF-8 bytes of a value made of dicts, lists, strings, ints, booleans and None.

    Raises
    ------
    CanonicalFormError
        The value holds a float, a non-string or non-ASCII key, a lone surrogate, an integer beyond ±(2^53 − 1),
        or any other type.
    """
    _check(value, "$")
    # ASCII keys make code-point order equal to RFC 8785's UTF-16 order.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    # json.dumps writes U+007F raw and escapes only what RFC 8785 escapes, in the same short forms.
    return text.encode("utf-8")


def _check(value: Any, where: str) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise CanonicalFormError("A text holds a lone surrogate", where=where, found=ascii(value)[:80]) from None
    elif isinstance(value, int):
        if abs(value) > _LARGEST_EXACT_INTEGER:
            raise CanonicalFormError(
                "An integer is too large to be read exactly everywhere",
                where=where,
                expected="at most 9007199254740991 in size; write larger ones as strings",
                found=str(value)[:40],
            )
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str) or not key.isascii():
                raise CanonicalFormError(
                    "A key is not an ASCII string", where=where, expected="ASCII", found=repr(key)[:80]
                )
            _check(item, f"{where}.{key}")
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        for index, item in enumerate(value):
            _check(item, f"{where}[{index}]")
    else:
        raise CanonicalFormError(
            "A value has no canonical form",
            where=where,
            expected="text, integer, boolean, null, array or object; decimal numbers as strings",
            found=type(value).__name__,
        )


def sha256_of_value(value: Any) -> str:
    """Return ``sha256:<64 hex digits>`` of the canonical form of a value."""
    return "sha256:" + hashlib.sha256(canonical_json(value)).hexdigest()


def sha256_of_bytes(data: bytes) -> str:
    """Return ``sha256:<64 hex digits>`` of some bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def sha256_of_lines(lines: Iterable[str]) -> str:
    """Return the digest of an id file that holds these lines, each ended by a line feed, in UTF-8."""
    # One join is several times faster than formatting each line, and lists have a million of them.
    return sha256_of_bytes("\n".join([*lines, ""]).encode("utf-8"))


def sha256_of_file(path: Path) -> str:
    """Return ``sha256:<64 hex digits>`` of a file, read in blocks."""
    with path.open("rb") as stream:
        return sha256_of_stream(stream)


def sha256_of_stream(stream: BufferedReader) -> str:
    """Return ``sha256:<64 hex digits>`` of all that an open file still holds."""
    return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
