"""Photos that lie beside the annotations of a source, and which of them are equal byte for byte.

Few photos are read: only those whose size, and then whose beginning, another photo has too. Names from files open
nothing but regular files below the folder.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from curation.core.grouping import grouped
from curation.sources.source import Int64s, Source

_VOC, _YOLO = "Annotations/*.xml", "labels/*.txt"
"""Records of the layouts in which the name of an image is that of a file below the root."""
MOST_PHOTOS = 50_000
"""Photos of a source that are looked for: a look at each costs time on a disk that is far away."""
_PROBES = 8
_BEGINNING = 4096
_LARGEST = 512 << 20


def file_names(source: Source) -> list[str]:
    """Return the file name of each image with forward slashes; of a VOC folder, the id tells it, whatever the XML."""
    names = [name.replace("\\", "/") for name in source.images.file_names.tolist()]
    if all(file.name != _VOC for file in source.files):
        return names
    natives = source.images.native.tolist()
    return [f"{native}{PurePosixPath(name).suffix or '.jpg'}" for native, name in zip(natives, names, strict=True)]


def folder_of(source: Source, path: Path | None) -> str:
    """Return the VOC or YOLO folder that a source was read from, ``""`` for another layout or an unknown place."""
    if path is None or all(file.name not in (_VOC, _YOLO) for file in source.files):
        return ""
    return str((path if path.is_dir() else path.parent).resolve())


def photos_beside(source: Source, path: Path) -> list[str]:
    """Return the path of each image's photo, ``""`` where none lies in a usual place beside the annotations.

    Parameters
    ----------
    path : Path
        The annotation file, or the root of the dataset.
    """
    names = [
        name if name and not name.startswith("/") and ".." not in name.split("/") else "" for name in file_names(source)
    ]
    nothing = [""] * len(names)
    stated = [name for name in names if name]
    if not stated or len(names) > MOST_PHOTOS:
        return nothing
    probes = stated[:: max(len(stated) // _PROBES, 1)]
    hits = [(sum(_size(f"{folder}/{name}") >= 0 for name in probes), folder) for folder in _folders(source, path)]
    most = max(count for count, _ in hits)
    folder = next(folder for count, folder in hits if count == most)
    if not most:
        return nothing
    return [f"{folder}/{name}" if name and _size(f"{folder}/{name}") >= 0 else "" for name in names]


def _folders(source: Source, path: Path) -> Iterator[str]:
    """Yield the folders in which photos usually lie: beside the annotations, in ``images``, in that of the part."""
    is_root = path.is_dir()
    base = path if is_root else path.parent
    stem = PurePosixPath(path.name.removesuffix(".gz")).stem.removeprefix("instances_")
    parts = dict.fromkeys(name for name in (source.part, "" if is_root else stem) if name)
    for above in (base,) if is_root else (base, base.parent):
        yield str(above)
        yield from (str(above / name) for name in ("images", "JPEGImages", "photos", "data"))
        yield from (str(above / folder / part) for part in parts for folder in ("", "images"))


def _size(path: str) -> int:
    """Return the bytes of a regular file, -1 for anything else."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) else -1


def equal_photos(paths: Sequence[str]) -> Int64s:
    """Return an integer for the bytes of each photo, equal for equal bytes; -1 for a photo that no other equals.

    Parameters
    ----------
    paths : sequence of str
        ``""`` where an image has no photo.
    """
    codes = np.full(len(paths), -1, np.int64)
    rows = [row for row, path in enumerate(paths) if path]
    alike = [list(rows) for rows in grouped(rows, lambda row: _size(paths[row])).values()]
    for most in (_BEGINNING, _LARGEST):
        # A name that leads two sources to one file says no more than the name.
        several = [group for group in alike if len({paths[row] for row in group}) > 1]
        digest = partial(_digest, paths, most=most)
        alike = [group for rows in several for group in grouped(rows, digest).values()]
    for number, group in enumerate(group for group in alike if len(group) > 1):
        codes[group] = number
    return codes


def _digest(paths: Sequence[str], row: int, most: int) -> bytes:
    try:
        with Path(paths[row]).open("rb") as file:
            return hashlib.sha256(file.read(most)).digest()
    except OSError:
        return paths[row].encode("utf-8", "surrogateescape")
