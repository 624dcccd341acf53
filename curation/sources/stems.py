"""Names of images without what stands around them: the stem of a path is its file without folder and suffix.

Lists are texts with one path a line, and stay so: columns of bytes, in blocks so that columns of positions stay small.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from curation.sources.source import Int32s, Int64s

IMAGE_SUFFIXES = ("jpg", "jpeg", "png", "gif", "bmp", "tif", "tiff", "webp", "xml", "nii.gz")
"""Suffixes that a stem does not have, in any case; one is taken off. What else follows a dot belongs to the name."""

FILE_SUFFIXES = (
    *IMAGE_SUFFIXES, "ppm", "pgm", "nii", "dcm", "npy", "npz", "h5", "mat", "avi", "mp4", "webm", "wav", "flac", "ply",
    "bin", "obj", "off",
)  # fmt: skip
"""Suffixes by which a word is known as a file; those that are no photo's belong to its stem."""
FILE_NAME = re.compile(r"[^/\\]\.(?:" + "|".join(map(re.escape, FILE_SUFFIXES)) + r")\Z", re.IGNORECASE)

_OUTER = re.compile(rb"^(?:\xef\xbb\xbf|[ \t\r])+|[ \t\r]+$", re.MULTILINE)
_HERE = re.compile(rb"^(?:\./)+(?=[^\n])", re.MULTILINE)

_BLOCK = 8 << 20
_WIDEST_COLUMN = 1 << 30
_LINE_FEED, _SLASH, _ZERO = 10, 47, 48


def stems(paths: bytes, *, parents: int = 0) -> bytes:
    r"""Return the stem of each line of a text, or with `parents` = 1 its last folder and stem.

    Examples
    --------
    >>> stems(b"a/b\\c d.JPEG\n000005\nbenthos_0.9994893\nval/COCO_val2014_000000000042.jpg\n").split()
    [b'c_d', b'000005', b'benthos_0.9994893', b'000000000042']
    >>> stems(b"a/b\\c d.JPEG\n000005\n", parents=1).split()
    [b'b/c_d', b'000005']
    """
    return b"".join(_stems_of_block(block, parents) for block in blocks_of(paths))


def normalised(paths: bytes) -> bytes:
    r"""Return each line of a text as a path, compared whole: slashes single and forward, no ``./`` before it.

    Case, suffix and ``..`` stay. A byte order mark, carriage returns and blanks at both ends go.

    Examples
    --------
    >>> normalised(b" ./a\\b//c.jpg \r\n../d.JPG\n").split(b"\n")
    [b'a/b/c.jpg', b'../d.JPG', b'']
    """
    if b"\\" in paths:
        paths = paths.replace(b"\\", b"/")
    if b"//" in paths:
        paths = re.sub(rb"/{2,}", b"/", paths)
    if b" " in paths or b"\t" in paths or b"\r" in paths or b"\xef\xbb\xbf" in paths:
        paths = _OUTER.sub(b"", paths)
    return _HERE.sub(b"", paths) if b"./" in paths else paths


def distinct(texts: bytes) -> bytes:
    """Return the lines of a text each once, sorted by code point, a line feed after each."""
    breaks = np.flatnonzero(np.frombuffer(texts, np.uint8) == _LINE_FEED)
    if not len(breaks):
        return b""
    starts = firsts(breaks)
    widths = breaks - starts
    width = int(widths.max()) + 1
    if width * len(breaks) > _WIDEST_COLUMN:
        return b"".join(line + b"\n" for line in sorted(set(texts.split(b"\n")[:-1])))
    # A column of fixed width, filled up with zeros that no entry holds, sorts several times faster than objects.
    column = np.zeros(len(breaks), f"S{width}")
    for length in np.flatnonzero(np.bincount(widths)).tolist():
        if length:
            rows = np.flatnonzero(widths == length)
            windows = np.ndarray(len(texts) - length + 1, f"S{length}", buffer=texts, strides=1)
            column[rows] = windows[starts[rows]]
    if not (column[1:] > column[:-1]).all():
        column.sort()
        column = column[np.concatenate([[True], column[1:] != column[:-1]])]
    # There is room for the line feed: the column is wider by one.
    cells = column.view(np.uint8)
    cells[np.arange(len(column)) * width + np.strings.str_len(column)] = _LINE_FEED
    return cells.tobytes().translate(None, b"\0")


def blocks_of(text: bytes, size: int = 0) -> Iterator[bytes]:
    """Yield a text in pieces of whole lines, by default of 8 MiB: columns of their positions stay small."""
    start, size = 0, size or _BLOCK
    while len(text) - start > size:
        end = text.rfind(b"\n", start, start + size) + 1 or text.find(b"\n", start) + 1 or len(text)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:] if start else text


def _stems_of_block(paths: bytes, parents: int) -> bytes:
    if not paths.isascii():
        paths = unicodedata.normalize("NFC", paths.decode()).encode()
    paths = paths.replace(b"\\", b"/")
    if b"//" in paths:
        paths = re.sub(rb"/{2,}", b"/", paths)
    if b" " in paths or b"\t" in paths:
        paths = re.sub(rb"[ \t]+", b"_", paths)
    if not (b"/" in paths or b"." in paths or b"COCO_" in paths):
        return paths
    buffer = np.frombuffer(paths, np.uint8)
    breaks = np.flatnonzero(buffer == _LINE_FEED)
    first = firsts(breaks)
    names = _after_last_slash(buffer, first, breaks)
    starts = names
    if parents:
        inner = names > first
        starts = first.copy()
        # The slash before the name is not looked at: what stands before it ends at the one before that.
        starts[inner] = _after_last_slash(buffer, first[inner], names[inner] - 1)
    ends = before_suffix(buffer, names, breaks)
    prefixes = _coco_prefixes(buffer, names, ends) if b"COCO_" in paths else np.zeros(len(breaks), np.int64)
    if not prefixes.any():
        return gathered(buffer, (starts, ends), (breaks, breaks + 1))
    return gathered(buffer, (starts, names), (names + prefixes, ends), (breaks, breaks + 1))


def firsts(breaks: Int64s) -> Int64s:
    """Return where lines begin, from where their line feeds stand."""
    return np.concatenate([[0], breaks[:-1] + 1]).astype(np.int64)


def _after_last_slash(buffer: Any, first: Int64s, ends: Int64s) -> Int64s:
    slashes = np.flatnonzero(buffer == _SLASH)
    if not len(slashes):
        return first
    found = np.searchsorted(slashes, ends) - 1
    return np.maximum(np.where(found >= 0, slashes[found] + 1, 0), first)


def with_folder(paths: bytes) -> int:
    """Return in how many lines a folder stands."""
    buffer = np.frombuffer(paths, np.uint8)
    slashes = np.flatnonzero((buffer == _SLASH) | (buffer == ord("\\")))
    return len(np.unique(np.searchsorted(np.flatnonzero(buffer == _LINE_FEED), slashes)))


def with_suffix(paths: bytes, suffixes: tuple[str, ...] = IMAGE_SUFFIXES) -> int:
    """Return how many lines end in the suffix of an image, or another suffix."""
    buffer = np.frombuffer(paths, np.uint8)
    breaks = np.flatnonzero(buffer == _LINE_FEED)
    return int((before_suffix(buffer, firsts(breaks), breaks, suffixes) < breaks).sum())


def before_suffix(
    buffer: Any, starts: Int32s | Int64s, ends: Int32s | Int64s, suffixes: tuple[str, ...] = IMAGE_SUFFIXES
) -> Any:
    """Return where names end without the suffix of an image, or another suffix."""
    shorter = ends.copy()
    filled = np.flatnonzero(ends > starts)
    lasts = buffer[ends[filled] - 1] | 0x20
    for suffix in suffixes:
        wanted = f".{suffix}".encode()
        rows = filled[lasts == wanted[-1]]
        rows = rows[ends[rows] - starts[rows] > len(wanted)]
        rows = rows[buffer[ends[rows] - len(wanted)] == wanted[0]]
        for back, byte in enumerate(reversed(wanted[1:-1]), start=2):
            rows = rows[(buffer[ends[rows] - back] | (0x20 if byte != 46 else 0)) == byte]
        shorter[rows] = ends[rows] - len(wanted)
    return shorter


def _coco_prefixes(buffer: Any, starts: Int64s, ends: Int64s) -> Int64s:
    """Return the length of ``COCO_val2014_`` where it stands before 12 digits, else 0."""
    lengths = np.zeros(len(starts), np.int64)
    for part in (b"train", b"val", b"test"):
        fixed = b"COCO_" + part + b"20"
        rows = np.flatnonzero(ends - starts == len(fixed) + 15)
        texts = buffer[starts[rows, None] + np.arange(len(fixed) + 15)]
        digits = (texts[:, len(fixed) :] >= _ZERO) & (texts[:, len(fixed) :] <= _ZERO + 9)
        digits[:, 2] = texts[:, len(fixed) + 2] == ord("_")
        good = (texts[:, : len(fixed)] == np.frombuffer(fixed, np.uint8)).all(1) & digits.all(1)
        lengths[rows[good]] = len(fixed) + 3
    return lengths


def gathered(buffer: Any, *spans: tuple[Int32s | Int64s, Int32s | Int64s]) -> bytes:
    """Return the bytes of spans that do not overlap, in their order."""
    edges = np.zeros((len(spans[0][0]), len(spans), 2), np.int64)
    for place, (starts, ends) in enumerate(spans):
        edges[:, place, 0], edges[:, place, 1] = starts, ends
    lengths = np.diff(edges.ravel(), prepend=0, append=len(buffer))
    kept = np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)
    return bytes(buffer[kept])
