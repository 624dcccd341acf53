"""Arrays from ``.npy`` and ``.npz`` files that may be hostile: no pickles, and sizes are checked before reading."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
import numpy.typing as npt

from curation.errors import MissingFileError, PredictionError
from curation.storage import open_binary

Array = npt.NDArray[Any]

LARGEST = 8 << 30
"""Bytes of one array: twice 1,281,167 samples of 1,000 float16 scores, and less than what would exhaust a machine."""
_LARGE = 256 << 20
_HIGHEST_RATIO = 100
_LONGEST_HEADER = 10_000
# OSError: a directory that lies about where its members begin makes seek fail.
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, ValueError, TypeError, EOFError, RuntimeError, OverflowError, SyntaxError, OSError,
    tokenize.TokenError,
)  # fmt: skip


def read_npy(path: Path) -> Array:
    """Return the array of a ``.npy`` file.

    Raises
    ------
    MissingFileError
        There is no such file.
    PredictionError
        It is no array of numbers or texts, is truncated, or is larger than `LARGEST`.
    """
    with _opened(path) as stream:
        try:
            return _array(stream, path.stat().st_size, str(path))
        except _DAMAGE as error:
            _refuse(str(path), error)


def read_npz(path: Path, keys: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, Array]]:
    """Return the arrays of a ``.npz`` file that are asked for; others are not read.

    Parameters
    ----------
    keys : mapping of what to the keys it may have, in order of preference

    Returns
    -------
    dict
        What to (key, array), for what the file holds.

    Raises
    ------
    MissingFileError
        There is no such file.
    PredictionError
        It is no archive of arrays, or one of the arrays wanted is not as in `read_npy`, is encrypted, is there twice,
        or unpacks to a hundred times its packed size.
    """
    with _opened(path) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                members = _members(archive, path)
                found = {}
                for what, names in keys.items():
                    key = next((name for name in names if name in members), None)
                    if key is not None:
                        found[what] = key, _member(archive, members[key], f"{path}: {key}")
                return found
        except _DAMAGE as error:
            _refuse(str(path), error)


def keys_of_npz(path: Path) -> list[str]:
    """Return the keys of a ``.npz`` file, for messages."""
    try:
        with zipfile.ZipFile(path) as archive:
            return sorted(name.removesuffix(".npy") for name in archive.namelist())
    except _DAMAGE:
        return []


def _opened(path: Path) -> IO[bytes]:
    try:
        return open_binary(path, kind="scores file")
    except FileNotFoundError:
        raise MissingFileError("The scores file does not exist", where=str(path)) from None
    except OSError as error:
        raise MissingFileError(f"The scores file cannot be read: {error.strerror}", where=str(path)) from None


def _members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        key = info.filename.removesuffix(".npy")
        if key in members:
            raise PredictionError("The archive holds an array twice", where=str(path), found=repr(key[:80]))
        members[key] = info
    return members


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> Array:
    if info.file_size > _LARGE and info.file_size > _HIGHEST_RATIO * max(info.compress_size, 1):
        raise PredictionError(
            "An array unpacks to far more than scores would",
            where=where,
            expected=f"at most {_HIGHEST_RATIO} times its packed size",
            found=f"{info.compress_size:,} bytes that claim to be {info.file_size:,}",
        )
    with archive.open(info) as stream:
        return _array(stream, info.file_size, where)


def _array(stream: IO[bytes], size: int, where: str) -> Array:
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"format version {version}")
    shape, fortran, dtype = readers[version](stream, max_header_size=_LONGEST_HEADER)
    if dtype.hasobject or dtype.kind not in "fiuU" or len(shape) not in (1, 2):
        raise PredictionError(
            "The array does not hold labels, scores or names",
            where=where,
            expected="one or two dimensions of integers, floats or texts (objects are never unpickled)",
            found=f"shape {shape}, {dtype}"[:200],
        )
    declared = math.prod(shape) * dtype.itemsize
    present = size - stream.tell()
    if declared > LARGEST or declared != present:
        raise PredictionError(
            "The array is too large"
            if declared > LARGEST
            else "The array's size is not what its header says",
            where=where,
            expected=f"{declared:,} bytes" if declared <= LARGEST else f"at most {LARGEST:,} bytes",
            found=f"{present:,} bytes" if declared <= LARGEST else f"{declared:,} bytes",
        )
    data = stream.read(declared)
    # One byte beyond makes the archive check its checksum.
    if len(data) != declared or stream.read(1):
        raise EOFError("the array ends early")
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


def _refuse(where: str, error: Exception) -> NoReturn:
    raise PredictionError(
        "The scores file cannot be read",
        where=where,
        expected="a .npy or .npz file as numpy.save and numpy.savez write them, without objects",
        found=f"{type(error).__name__}: {error}"[:200],
    ) from None
