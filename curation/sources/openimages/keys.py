"""Ids of sixteen hexadecimal digits (Open Images) as numbers of 64 bits, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from curation.sources.source import Int64s, Texts

DIGITS = 16
Keys = npt.NDArray[np.uint64]

_HEX = frozenset("0123456789abcdef")
_PAIRS = np.array([f"{octet:02x}" for octet in range(256)], "<U2").view(np.uint64)
_VALUES = np.full(256, 255, np.uint8)
_VALUES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)


def id_words(column: Any) -> list[str] | Keys:
    """Return a column of n texts of sixteen bytes as two words of eight bytes each, shape (n, 2); else as texts.

    Parameters
    ----------
    column : pyarrow.StringArray
    """
    n = len(column)
    if not n:
        return np.empty((0, 2), np.uint64)
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + n + 1]
    if bool((np.diff(ends) != DIGITS).any()):
        texts: list[str] = column.to_pylist()
        return texts
    octets = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    return np.ascontiguousarray(octets).view(np.uint64).reshape(n, 2)


def id_text(ids: list[str] | Keys, row: int) -> str:
    """Return the text that an id of `id_words` stands for."""
    one = ids[row]
    return one if isinstance(one, str) else one.tobytes().decode("utf-8", "replace")


def runs_of(ids: list[str] | Keys) -> tuple[Keys, Int64s, int]:
    """Return each run of equal ids: its key and its first row; and the first row that is no id.

    Parameters
    ----------
    ids : list of str or ndarray of uint64, shape (n, 2)
        See `id_words`.

    Returns
    -------
    keys : ndarray of uint64, shape (r,)
    starts : ndarray of int64, shape (r,)
    bad : int
        First row that is not sixteen digits of 0-9a-f, -1 where all are; keys and starts are then complete.
    """
    if isinstance(ids, list):
        # Some text is no id; those before it may be none either.
        is_bad = [len(text) != DIGITS or not set(text) <= _HEX for text in ids]
        return np.empty(0, np.uint64), np.empty(0, np.int64), is_bad.index(True)
    changed = np.ones(len(ids), np.bool_)
    changed[1:] = (ids[1:, 0] != ids[:-1, 0]) | (ids[1:, 1] != ids[:-1, 1])
    starts = np.flatnonzero(changed)
    digits = _VALUES[np.stack([column[starts] for column in ids.T], axis=1).view(np.uint8)]
    if bool((odd := digits > 15).any()):
        return np.empty(0, np.uint64), np.empty(0, np.int64), int(starts[np.argmax(odd) // DIGITS])
    octets = digits[:, ::2] << 4 | digits[:, 1::2]
    return np.ascontiguousarray(octets).view(">u8")[:, 0].astype(np.uint64), starts, -1


def hex_texts(keys: Keys) -> Texts:
    """Return keys as texts of sixteen digits, shape (n,).

    >>> hex_texts(np.array([0x00166893B16A03AB], np.uint64)).tolist()
    ['00166893b16a03ab']
    """
    octets = keys.astype(">u8").view(np.uint8)
    return _PAIRS[octets].view(f"<U{DIGITS}")


def ordered(keys: Keys) -> Int64s:
    """Return keys as signed numbers, for look-ups that take such; equal keys stay equal."""
    return keys.view(np.int64)
