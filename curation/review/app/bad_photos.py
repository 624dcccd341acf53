"""Photos that cannot be looked at: found when a review is built, named, and left out.

Of every photo the head is read (is it an image, how large) and the end (is the mark there that closes a complete file).
A file whose end is not as it should be is decoded whole, which tells a truncated one from one with something behind it.
What breaks in the middle of a complete file is not found here: the App shows such a photo as far as it goes.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from curation.core.errors import CurationError, MissingExtraError
from curation.core.reading import open_binary
from curation.sources.photos import LARGEST_FILE, MEGAPIXELS, BrokenPhotoError, decode_photo, read_photo, shown_size

if TYPE_CHECKING:
    from typing import BinaryIO

BadPhoto = Literal["missing", "empty", "no image", "unsupported", "truncated", "huge", "unreadable"]
BAD_PHOTOS: dict[str, str] = {
    "missing": "no file of this name lies in the folder of photos",
    "empty": "the file has no bytes",
    "no image": "the file is not an image, or not in a format that can be read here",
    "unsupported": "an image of a kind that the App does not show, such as TIFF: convert it to PNG",
    "truncated": "the file ends before the picture does",
    "huge": f"more than {MEGAPIXELS} million pixels, or {LARGEST_FILE >> 20} MiB: not decoded",
    "unreadable": "the file cannot be opened or decoded",
}
"""What can be wrong with a photo, and what that means."""
assert tuple(BAD_PHOTOS) == get_args(BadPhoto)  # noqa: S101

_SHOWN = ("JPEG", "MPO", "PNG", "WEBP", "GIF", "BMP")
_ENDS = {"JPEG": b"\xff\xd9", "MPO": b"\xff\xd9", "PNG": b"IEND\xaeB\x60\x82", "GIF": b"\x3b"}
_BEGINNINGS = (b"\xff\xd8\xff", b"\x89PNG", b"RIFF", b"GIF8")
_TAIL = 4096
_MOST_THREADS, _AT_ONCE = 8, 64

Checked = tuple[BadPhoto | Literal[""], tuple[int, int]]
"""What is wrong with a photo, ``""`` for nothing, and its width and height as shown, 0 where it does not say."""


def check_photos(paths: Sequence[Path | None]) -> list[Checked]:
    """Return what is wrong with each photo, and its size; None stands for a photo that was not found.

    Raises
    ------
    MissingExtraError
        Pillow is not installed.
    """
    from tqdm import tqdm

    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise MissingExtraError("Checking photos needs Pillow", hint="pip install 'curation[review]'") from None
    threads = min(_MOST_THREADS, (os.cpu_count() or 1) * 2)
    at_once = max(1, min(_AT_ONCE, len(paths) // (4 * threads)))
    checked: list[Checked] = []
    # Waiting for the disk is most of it; warnings are set here, once, since their state is shared by all threads.
    with (
        warnings.catch_warnings(),
        ThreadPoolExecutor(threads) as pool,
        tqdm(desc="photos", total=len(paths), unit=" photos", disable=None) as bar,
    ):
        warnings.simplefilter("ignore")
        pieces = (paths[at : at + at_once] for at in range(0, len(paths), at_once))
        for some in pool.map(lambda piece: [check_photo(path) for path in piece], pieces):
            checked += some
            bar.update(len(some))
    return checked


def check_photo(path: Path | None) -> Checked:
    """Return what is wrong with one photo (see `check_photos`)."""
    if path is None:
        return "missing", (0, 0)
    try:
        with open_binary(path, kind="photo") as stream:
            return _checked(stream, path)
    except FileNotFoundError:
        return "missing", (0, 0)
    except (OSError, CurationError):
        return "unreadable", (0, 0)


def _checked(stream: BinaryIO, path: Path) -> Checked:
    from PIL import Image

    length = os.fstat(stream.fileno()).st_size
    if not length:
        return "empty", (0, 0)
    try:
        with Image.open(stream) as photo:
            kind, size = photo.format or "", shown_size(photo)
    except Image.DecompressionBombError:
        return "huge", (0, 0)
    # Pillow's readers of heads raise errors of many kinds on other files.
    except (OSError, ValueError, SyntaxError, EOFError, TypeError, KeyError, IndexError, OverflowError,
            ArithmeticError, MemoryError, AttributeError, RuntimeError, AssertionError):  # fmt: skip
        stream.seek(0)
        return ("truncated" if stream.read(4).startswith(_BEGINNINGS) else "no image"), (0, 0)
    if length > LARGEST_FILE or size[0] * size[1] > MEGAPIXELS * 1_000_000:
        return "huge", size
    if kind not in _SHOWN or not all(size):
        return ("unsupported" if all(size) else "no image"), size
    try:
        if not _is_whole(stream, kind, length):
            decode_photo(read_photo(path))
    except BrokenPhotoError as error:
        return ("truncated" if re.search("truncated|incomplete", str(error), re.IGNORECASE) else "unreadable"), size
    return "", size


def _is_whole(stream: BinaryIO, kind: str, length: int) -> bool:
    """Return whether a file closes as a complete one of its kind does; one that does not may still be whole."""
    if kind == "WEBP":
        stream.seek(4)
        return int.from_bytes(stream.read(4), "little") + 8 <= length
    if (end := _ENDS.get(kind)) is None:
        return False
    stream.seek(max(0, length - _TAIL))
    return stream.read(_TAIL).rstrip(b"\0\r\n ").endswith(end)
