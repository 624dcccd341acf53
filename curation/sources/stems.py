"""Stems of image names: the stem of a path is its file name without folder and suffix.

Lists remain texts with one path per line; Arrow processes all lines at once.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.core.columns import arrow_of, values_of

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

IMAGE_SUFFIXES = ("jpg", "jpeg", "png", "gif", "bmp", "tif", "tiff", "webp", "xml", "nii.gz")
"""Suffixes that are removed from a stem, once, in upper or lower case; other text after a dot belongs to the name."""

FILE_SUFFIXES = (
    *IMAGE_SUFFIXES, "ppm", "pgm", "nii", "dcm", "npy", "npz", "h5", "mat", "avi", "mp4", "webm", "wav", "flac", "ply",
    "bin", "obj", "off",
)  # fmt: skip
"""Suffixes by which a word is recognised as a file; suffixes other than those of images belong to the stem."""
FILE_NAME = re.compile(r"[^/\\]\.(?:" + "|".join(map(re.escape, FILE_SUFFIXES)) + r")\Z", re.IGNORECASE)

# Patterns of lines, in the syntax of Arrow's regular expressions.
ANY_FILE = r"(?i).\.(?:" + "|".join(map(re.escape, FILE_SUFFIXES)) + ")$"
ANY_IMAGE = r"(?i).\.(?:" + "|".join(map(re.escape, IMAGE_SUFFIXES)) + ")$"
_WIDEST_COLUMN = 1 << 30
_WIDEST_SUFFIX = len(".nii.gz")
_COCO_NAME = "^COCO_(?:train|val|test)20[0-9]{2}_[0-9]{12}$"
_COCO_PREFIX = "^COCO_[a-z]+20[0-9]{2}_"
_OUTER = re.compile(rb"^(?:\xef\xbb\xbf|[ \t\r])+|[ \t\r]+$", re.MULTILINE)
_EDGES = (b"\n ", b" \n", b"\n\t", b"\t\n", b"\r", b"\xef\xbb\xbf")
_HERE = re.compile(rb"^(?:\./)+(?=[^\n])", re.MULTILINE)

_BLOCK, _SORTED_BLOCK = 8 << 20, 1 << 20
_LINE_FEED = 10


def cells_of(text: bytes) -> Any:
    """Return the lines of a text, each ending in a line feed, as a pyarrow.StringArray."""
    import pyarrow

    breaks = np.flatnonzero(np.frombuffer(text, np.uint8) == _LINE_FEED).astype(np.int32)
    offsets = np.concatenate([[0], breaks - np.arange(len(breaks), dtype=np.int32)]).astype(np.int32)
    buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(text.replace(b"\n", b""))]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(breaks), buffers)


def text_of(cells: Any) -> bytes:
    """Return the texts of an Arrow array, a line feed after each."""
    import pyarrow
    from pyarrow import compute

    edges = pyarrow.py_buffer(np.array([0, 0, 1], np.int32))
    between, after = pyarrow.Array.from_buffers(pyarrow.string(), 2, [None, edges, pyarrow.py_buffer(b"\n")])
    return bytes(compute.binary_join_element_wise(cells, between, after).buffers()[2] or b"")


def match_pattern(cells: Any, pattern: str) -> Bools:
    """Return a mask of the texts of an Arrow array that match a pattern, shape (n,)."""
    from pyarrow import compute

    is_match: Bools = values_of(compute.match_substring_regex(cells, pattern))
    return is_match


def suffix_widths(cells: Any, pattern: str) -> Int64s:
    """Return the length in bytes of each text's suffix (`ANY_FILE` or `ANY_IMAGE`), 0 without one, shape (n,)."""
    from pyarrow import compute

    ends = compute.binary_slice(cells.view("binary"), -1 - _WIDEST_SUFFIX, None).dictionary_encode()
    starts, lengths = compute.find_substring_regex(ends.dictionary, pattern), compute.binary_length(ends.dictionary)
    widths = values_of(lengths) - values_of(starts) - 1
    widths[values_of(starts) < 0] = 0
    width_of: Int64s = widths[values_of(ends.indices)]
    return width_of


def stems(paths: bytes, *, parents: int = 0) -> bytes:
    r"""Return the stem of each line of a text; `parents` = 1 includes the last folder, -1 all folders.

    Examples
    --------
    >>> stems(b"a/b\\c d.JPEG\n000005\nbenthos_0.9994893\nval/COCO_val2014_000000000042.jpg\n").split()
    [b'c_d', b'000005', b'benthos_0.9994893', b'000000000042']
    >>> stems(b"a/b\\c d.JPEG\n000005\n", parents=1).split()
    [b'b/c_d', b'000005']
    >>> stems(b"a/b\\c d.JPEG\n000005\n", parents=-1).split()
    [b'a/b/c_d', b'000005']
    """
    return b"".join(_stems_of_block(block, parents) for block in blocks_of(paths))


def _stems_of_block(paths: bytes, parents: int) -> bytes:
    from pyarrow import compute

    if not paths.isascii():
        paths = unicodedata.normalize("NFC", paths.decode()).encode()
    paths = _with_single_slashes(paths)
    if b" " in paths or b"\t" in paths:
        is_single = b"\t" not in paths and b"  " not in paths
        paths = paths.replace(b" ", b"_") if is_single else re.sub(rb"[ \t]+", b"_", paths)
    if not (b"/" in paths or b"." in paths or b"COCO_" in paths):
        return paths
    parts = compute.split_pattern(cells_of(paths), "/", max_splits=max(1, 1 + parents), reverse=True)
    first, last = values_of(parts.offsets)[:-1], values_of(parts.offsets)[1:] - 1
    names = parts.values.take(arrow_of(last))
    widths = suffix_widths(names, ANY_IMAGE)
    for width in np.unique(widths[widths > 0]).tolist():
        shorter = compute.binary_slice(names.view("binary"), 0, -width).view("string")
        names = compute.if_else(arrow_of(widths == width), shorter, names)
    if b"COCO_" in paths:
        is_coco = arrow_of(match_pattern(names, _COCO_NAME))
        names = compute.if_else(is_coco, compute.replace_substring_regex(names, _COCO_PREFIX, ""), names)
    if parents:
        folders = parts.values.take(arrow_of(np.maximum(last - 1, first)))
        joined = compute.binary_join_element_wise(folders, names, cells_of(b"/\n")[0])
        names = compute.if_else(arrow_of(last > first), joined, names)
    return text_of(names)


def normalised_lines(paths: bytes) -> bytes:
    r"""Return each line of a text as a path for comparison: single forward slashes, no leading ``./``.

    Case, suffix and ``..`` are kept. A byte order mark, carriage returns and outer blanks are removed.

    Examples
    --------
    >>> normalised_lines(b" ./a\\b//c.jpg \r\n../d.JPG\n").split(b"\n")
    [b'a/b/c.jpg', b'../d.JPG', b'']
    """
    paths = _with_single_slashes(paths)
    whole = b"\n%b\n" % paths
    # Most blanks are inside a line.
    if any(mark in whole for mark in _EDGES):
        paths = _OUTER.sub(b"", paths)
    return _HERE.sub(b"", paths) if b"./" in paths else paths


def _with_single_slashes(paths: bytes) -> bytes:
    paths = paths.replace(b"\\", b"/")
    return re.sub(rb"/{2,}", b"/", paths) if b"//" in paths else paths


class DistinctLines:
    r"""The distinct lines of a text, sorted by code point.

    Parameters
    ----------
    text : callable
        Returns the text in blocks of whole lines.

    Examples
    --------
    >>> lines = DistinctLines(lambda: iter([b"b\na\n", b"b\n"]))
    >>> len(lines), list(lines.blocks())
    (2, [b'a\nb\n'])
    """

    def __init__(self, text: Callable[[], Iterable[bytes]]) -> None:
        self._text = text
        self._column: Any = None

    def __len__(self) -> int:
        return self._facts[0]

    @property
    def sha256(self) -> str:
        """Hex digest of the lines, a line feed after each."""
        return self._facts[1]

    @cached_property
    def _facts(self) -> tuple[int, str]:
        digest = hashlib.sha256()
        for block in self.blocks():
            digest.update(block)
        return len(self._column), digest.hexdigest()

    def release(self) -> None:
        """Free the memory of the lines; later use sorts them again."""
        self._column = None

    def blocks(self) -> Iterator[bytes]:
        """Yield the lines in blocks, a line feed after each line."""
        if self._column is None:
            self._column = _sorted_column(self._text())
        width = self._column.itemsize
        for start in range(0, len(self._column), count := max(_SORTED_BLOCK // (width + 1), 1)):
            part = self._column[start : start + count]
            if part.dtype == object:
                yield b"".join(line + b"\n" for line in part.tolist())
                continue
            rows = np.full((len(part), width + 1), _LINE_FEED, np.uint8)
            rows[:, :width] = part.view(np.uint8).reshape(len(part), width)
            yield rows.tobytes().translate(None, b"\0")


def _sorted_column(text: Iterable[bytes]) -> Any:
    """Return the distinct lines, ascending, as an array of fixed-width texts, or as objects if lines are very long.

    Texts of fixed width, padded with zero bytes that do not occur in lines, sort several times faster.
    """
    from pyarrow import compute

    parts = list[Any]()
    for block in text:
        cells = cells_of(block)
        width = compute.max(compute.binary_length(cells)).as_py() or 0
        padded = text_of(compute.ascii_rpad(cells, width, "\0"))
        parts.append(np.frombuffer(padded, np.uint8).reshape(len(cells), width + 1))
    count, width = sum(map(len, parts)), max([part.shape[1] for part in parts], default=2) - 1
    if width * count > _WIDEST_COLUMN:
        lines = {line.rstrip(b"\0") for part in parts for line in part.tobytes().split(b"\n")[:-1]}
        return np.array(sorted(lines), object)
    rows, end = np.zeros((count, max(width, 1)), np.uint8), count
    while parts:
        part = parts.pop()
        rows[end - len(part) : end, : part.shape[1] - 1] = part[:, :-1]
        end -= len(part)
    column = rows.view(f"S{rows.shape[1]}").ravel()
    if not (column[1:] > column[:-1]).all():
        column.sort()
        is_first = np.concatenate([[True], column[1:] != column[:-1]])
        column = column if is_first.all() else column[is_first]
    return column


def blocks_of(text: bytes, size: int = _BLOCK) -> Iterator[bytes]:
    """Yield a text in pieces of whole lines, by default of 8 MiB."""
    start = 0
    while len(text) - start > size:
        end = text.rfind(b"\n", start, start + size) + 1 or text.find(b"\n", start) + 1 or len(text)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:] if start else text


def label_of(photo: str) -> str:
    """Return the path of a photo's label file by the rule of Ultralytics; paths are relative to the folder of the YAML.

    ``labels`` replaces the last folder ``images``; without such a folder, the file is beside the photo.

    Examples
    --------
    >>> label_of("images/train/images/001.jpg"), label_of("photos/1.jpg")
    ('images/train/labels/001.txt', 'photos/1.txt')
    """
    folders = list(PurePosixPath(photo).parts)
    if "images" in folders[:-1]:
        folders[len(folders) - 2 - folders[-2::-1].index("images")] = "labels"
    return str(PurePosixPath(*folders).with_suffix(".txt"))
