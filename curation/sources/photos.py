"""Photos of a folder, found by their names in annotations and decoded in one way.

The size of a photo is the one that viewers, OpenCV and trainers see: its orientation tag is applied, so that shares of
a size are shares of the picture as shown. Pixels are decoded as stored, without the tag, as encoders read them and as
their identity states. Only the first frame of an animated picture is read. Names from annotation files open only photos
below the folder.

Photos beside annotations are also compared byte for byte (`photos_beside`, `equal_photos`). Only photos that have the
size, and then the beginning, of another photo are read completely.
"""

from __future__ import annotations

import hashlib
import io
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from curation.core.errors import (
    CurationError,
    CurationWarning,
    DamagedFileError,
    MissingExtraError,
    MissingFileError,
    install_command,
)
from curation.core.files import files_below, missing_path, open_binary
from curation.core.tables import grouped
from curation.core.wording import counted, examples

if TYPE_CHECKING:
    from PIL.Image import Image

    from curation.sources.source import Int64s, Source

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
FURTHER_SUFFIXES = (".gif", ".bmp", ".tif", ".tiff", ".jp2", ".avif", ".heic", ".heif", ".jxl", ".ppm", ".pgm")
"""Suffixes of pictures that are counted but not read."""
PICTURES = SUFFIXES + FURTHER_SUFFIXES
LARGEST_FILE = 512 << 20
"""Maximum size in bytes of a photo file that is read."""
MEGAPIXELS = 170
"""Maximum number of decoded pixels, in millions: a file of a few bytes can claim gigabytes."""


class PhotoFolder:
    """The photos below a folder, listed once.

    Parameters
    ----------
    folder : Path
    others : tuple of str
        Further suffixes to search for; a file with one of `SUFFIXES` takes precedence.

    Raises
    ------
    MissingFileError
        The folder does not exist.
    """

    def __init__(self, folder: Path, others: tuple[str, ...] = ()) -> None:
        if not folder.is_dir():
            kind = "a file" if folder.exists() else None
            message = "The path of the photos is not a folder" if kind else "The folder of photos does not exist"
            raise missing_path(message, folder, expected="a folder", found=kind)
        self.folder = folder
        self._suffixes = SUFFIXES + others

    def find(self, names: Iterable[str]) -> Path | None:
        """Return the photo with the first of several names that exists: a path, file name or stem.

        Among photos with the same file name, the photo at the stated path comes first, then the one whose folders agree
        best with the name, or whose folder contains those of all others.

        Raises
        ------
        MissingFileError
            Two photos agree equally well: one of them belongs to another image.
        """
        for name in names:
            *folders, last = name.replace("\\", "/").split("/")
            if last and (paths := self._by_name.get(last)):
                return Path(paths[0]) if len(paths) == 1 else self._nearest([*map(Path, paths)], folders, name)
        return None

    def _nearest(self, photos: Sequence[Path], folders: Sequence[str], name: str) -> Path:
        last = name.replace("\\", "/").rpartition("/")[2]
        photos = [photo for photo in photos if photo.name == last] or photos
        agreement = [_agreement(folders[::-1], photo) for photo in photos]
        nearest = [photo for photo, agree in zip(photos, agreement, strict=True) if agree == max(agreement)]
        # An id is a stem: JPEGImages/1.jpg takes precedence over its mask, SegmentationClass/1.png.
        order = [self._suffixes.index(photo.suffix.lower()) for photo in nearest]
        nearest = [photo for photo, rank in zip(nearest, order, strict=True) if rank == min(order)]
        exact = [photo for photo in nearest if photo.parent == self.folder.absolute().joinpath(*folders)]
        first = min(exact or nearest, key=lambda photo: len(photo.parts))
        if not exact and not all(photo.is_relative_to(first.parent) for photo in nearest):
            raise MissingFileError(
                "Two photos have the same name",
                where=str(self.folder),
                expected="one photo of each name, or names with the folders of their photos",
                found=f"{name!r:.80}: "
                + " and ".join(str(photo.relative_to(self.folder.absolute())) for photo in nearest[:2]),
                hint="give the folder with the photos of only this dataset; for several sources: "
                "--photos SOURCE=FOLDER for each",
            )
        return first

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """All photos below the folder, sorted by path.

        Raises
        ------
        MissingFileError
            A folder is not readable.
        """
        return tuple(sorted(Path(path) for path, _, _ in photos_among(self._listed, str(self.folder))))

    @cached_property
    def _listed(self) -> tuple[tuple[str, str, str], ...]:
        return tuple(files_below(str(self.folder.absolute()), PICTURES))

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        paths_of: dict[str, list[str]] = {}
        for path, name, _ in sorted(self._listed, key=lambda listed: not listed[1].lower().endswith(SUFFIXES)):
            last = name.rpartition("/")[2]
            for key in (last, last.rpartition(".")[0]) if name.lower().endswith(self._suffixes) else ():
                paths_of.setdefault(key, []).append(path)
        return paths_of


def photos_among(pictures: Iterable[tuple[str, str, str]], folder: str) -> Iterator[tuple[str, str, str]]:
    """Yield the readable `PICTURES` below a folder; a `CurationWarning` counts the others."""
    unread: list[str] = []
    for picture in pictures:
        if picture[1].lower().endswith(SUFFIXES):
            yield picture
        else:
            unread.append(picture[1])
    if unread:
        message = f"{counted(len(unread), 'picture')} below {folder} not read: {examples(unread)}"
        warnings.warn(f"{message}. Formats read: {', '.join(SUFFIXES)}", CurationWarning, stacklevel=2)


def _agreement(folders: Sequence[str], path: Path) -> int:
    """Return how many folders above a photo match those in a name, counted from the innermost."""
    agree = [folder == name for folder, name in zip(path.parent.parts[::-1], folders, strict=False)]
    return [*agree, False].index(False)


def photos_of_ids(
    ids: Sequence[str], photos: Path | str | Mapping[str, Path], sources: Sequence[Source] = ()
) -> dict[str, Path]:
    """Return the photo of each image id.

    Parameters
    ----------
    ids : sequence of str
        Such as ``coco:000000000139``.
    photos : Path, or mapping of str to Path
        The folder of the photos, or a folder for each namespace of ids.
    sources : sequence of Source
        See `find_photos`.

    Raises
    ------
    MissingFileError
        A folder does not exist or photos are missing; the message states their number and the first one.
    """
    path_of = find_photos(ids, photos, sources)
    missing = [image for image in ids if image not in path_of]
    if missing:
        roots = photos if isinstance(photos, Mapping) else {"": photos}
        raise MissingFileError(
            f"{len(missing)} of {len(ids)} photos are in none of the folders",
            where=", ".join(f"{name or 'all'}: {root}" for name, root in roots.items())[:300],
            expected="files named as the dataset names them, or by id",
            found=f"no {examples(missing)}",
            hint=None if sources else FILE_NAMES,
        )
    return path_of


NO_PHOTO = f"no photo of it was found ({', '.join(SUFFIXES)})"
FILE_NAMES = (
    "a manifest contains only ids: if photos have other names, --source NAME=PATH finds them by the file names "
    "in the annotations"
)
"""Hint of the error for photos that are not found by id."""


def find_photos(
    ids: Sequence[str], photos: Path | str | Mapping[str, Path], sources: Sequence[Source] = ()
) -> dict[str, Path]:
    """Return the photo of each image id that has one (see `photos_of_ids`).

    Parameters
    ----------
    sources : sequence of Source
        The photo of an image in a source is searched for by the source's file name first, and then by id.
    """
    roots = photos if isinstance(photos, Mapping) else {"": photos}
    folders = {namespace: PhotoFolder(Path(root)) for namespace, root in roots.items()}
    file_names = {
        image: str(name)
        for source in sources
        for image, name in zip(source.image_ids.tolist(), source.images.file_names.tolist(), strict=True)
    }
    path_of: dict[str, Path] = {}
    for image in ids:
        namespace, _, native = image.partition(":")
        folder = folders.get(namespace, folders.get(""))
        path = None if folder is None else folder.find((file_names.get(image, ""), native))
        if path is not None:
            path_of[image] = path
    return path_of


class BrokenPhotoError(Exception):
    """A photo cannot be used; the text says why, without naming the photo."""


def read_photo(path: Path) -> bytes:
    """Return the bytes of a photo file.

    Raises
    ------
    BrokenPhotoError
        It does not exist, cannot be read, or is larger than `LARGEST_FILE`.
    """
    try:
        with open_binary(path, kind="photo") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise BrokenPhotoError("it does not exist") from None
    except OSError as error:
        raise BrokenPhotoError(f"it cannot be read: {error.strerror}") from None
    if len(data) > LARGEST_FILE:
        raise BrokenPhotoError(f"it is larger than {LARGEST_FILE >> 20} MiB")
    return data


def size_of_photo(path: Path, error: type[CurationError] = DamagedFileError) -> tuple[int, int]:
    """Return the width and height of a photo as shown: those of its header, after its orientation tag.

    Raises
    ------
    MissingExtraError
        Pillow is not installed.
    MissingFileError, error
        The photo does not exist, or cannot be read.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise MissingExtraError("Reading the size of photos needs Pillow", hint=install_command("photos")) from None
    # Only the header is read, so a photo that would decode to gigabytes is harmless.
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    quiet = warnings.catch_warnings(action="ignore")
    try:
        with quiet, open_binary(path, kind="photo") as stream, Image.open(stream) as photo:
            size = shown_size(photo)
    except FileNotFoundError:
        raise MissingFileError(
            "A photo does not exist",
            where=str(path),
            hint="photos must be below the folder, with the names in the list",
        ) from None
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as why:
        raise error("A photo cannot be read", where=str(path), found=str(why).partition(" <_io.")[0][:200]) from None
    finally:
        Image.MAX_IMAGE_PIXELS = limit
    return size


_ORIENTATION = 0x0112
_SIDEWAYS = (5, 6, 7, 8)
"""Values of the orientation tag that exchange width and height."""


def shown_size(photo: Image) -> tuple[int, int]:
    """Return the size of an open photo after its orientation tag; its pixels are not decoded."""
    from PIL.Image import Exif

    if tags := getattr(photo, "tag_v2", None):
        # Recent versions of Pillow apply the tag of a TIFF themselves.
        width, height, orientation = tags.get(256), tags.get(257), tags.get(_ORIENTATION)
    else:
        # `getexif` would decode a PNG without a tag, and read descriptions (XMP) that OpenCV ignores.
        width, height = photo.size
        if not (data := photo.info.get("exif")):
            return width, height
        exif = Exif()
        # An unreadable tag is ignored, as by OpenCV.
        with suppress(Exception):
            exif.load(data)
        orientation = exif.get(_ORIENTATION)
    return (height, width) if orientation in _SIDEWAYS else (width, height)


def decode_photo(data: bytes) -> Image:
    """Return the RGB picture of a photo file's bytes: stored pixels, first frame, 8 bits a channel.

    Transparency is dropped, not blended. Pillow warns of large pictures: callers that decode in threads silence these
    warnings once, around all threads, since the state of warnings is shared.

    Raises
    ------
    BrokenPhotoError
        The file is not a picture, is truncated, has over 8 bits a channel or over `MEGAPIXELS` million pixels.
    MissingExtraError
        Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtraError("Reading photos needs Pillow", hint=install_command("photos")) from None
    try:
        with Image.open(io.BytesIO(data)) as photo:
            width, height = photo.size
            if width * height > MEGAPIXELS * 1_000_000:
                raise BrokenPhotoError(f"it has more than {MEGAPIXELS} million pixels: {width:,} x {height:,}")
            if photo.mode[0] in "IF":
                # Converting to 8 bits clips: different photos would become one.
                raise BrokenPhotoError(f"it has more than 8 bits a channel (mode {photo.mode})")
            return photo.convert("RGB")
    except Image.DecompressionBombError:
        raise BrokenPhotoError(f"it has more than {MEGAPIXELS} million pixels") from None
    # Pillow's decoders raise errors of many kinds on broken files.
    except (OSError, ValueError, SyntaxError, EOFError, TypeError, KeyError, IndexError, OverflowError,
            ArithmeticError, MemoryError, AttributeError, RuntimeError, AssertionError) as error:  # fmt: skip
        why = " ".join(str(error).split())[:120] or type(error).__name__
        # BytesIO's own description holds an address, which differs from run to run.
        raise BrokenPhotoError(f"it cannot be decoded: {why.partition(' <_io.')[0]}") from None


_VOC, _YOLO, CLASS_FOLDERS = "Annotations/*.xml", "labels/*.txt", "*/* (names)"
"""File records of the layouts in which the name of an image is a file name below the root."""
MOST_PHOTOS = 50_000
"""Maximum number of photos of a source to search for: each access takes time on a remote disk."""
_PROBES = 8
_BEGINNING = 4096


def file_names(source: Source) -> list[str]:
    """Return the file name of each image with forward slashes; in a VOC folder it follows from the id, not the XML."""
    names = _forward(source.images.file_names.tolist())
    if all(file.name != _VOC for file in source.files):
        return names
    natives = source.images.native.tolist()
    return [f"{native}{PurePosixPath(name).suffix or '.jpg'}" for native, name in zip(natives, names, strict=True)]


def _forward(names: list[str]) -> list[str]:
    """Return names with forward slashes."""
    return [name.replace("\\", "/") for name in names] if "\\" in "".join(names) else names


def without_folders(names: list[str]) -> list[str]:
    """Return file names without the folders before them.

    Examples
    --------
    >>> without_folders(["train/1.jpg", "2.jpg"])
    ['1.jpg', '2.jpg']
    """
    # Most lists have no folders: one look at all names is faster than one at each.
    forward = _forward(names)
    return [name.rpartition("/")[2] for name in forward] if "/" in "".join(forward) else forward


def folder_of(source: Source, path: Path | None) -> str:
    """Return the VOC, YOLO or class folder that a source was read from, ``""`` for another layout."""
    if path is None or all(file.name not in (_VOC, _YOLO, CLASS_FOLDERS) for file in source.files):
        return ""
    return str((path if path.is_dir() else path.parent).resolve())


def photos_beside(source: Source, path: Path) -> list[str]:
    """Return the path of each image's photo, ``""`` if it is in no usual folder beside the annotations.

    Parameters
    ----------
    path : Path
        The annotation file, or the root of the dataset.
    """
    nothing = [""] * len(source.images)
    if len(nothing) > MOST_PHOTOS:
        return nothing
    names = [
        name if name and not name.startswith("/") and ".." not in name.split("/") else "" for name in file_names(source)
    ]
    present_names = [name for name in names if name]
    if not present_names:
        return nothing
    probes = present_names[:: max(len(present_names) // _PROBES, 1)]
    hits = [(sum(_size(f"{folder}/{name}") >= 0 for name in probes), folder) for folder in _folders(source, path)]
    most = max(count for count, _ in hits)
    folder = next(folder for count, folder in hits if count == most)
    if not most:
        return nothing
    return [f"{folder}/{name}" if name and _size(f"{folder}/{name}") >= 0 else "" for name in names]


def _folders(source: Source, path: Path) -> Iterator[str]:
    """Yield the usual folders of photos: beside the annotations, ``images``, and the folder of the part."""
    is_root = path.is_dir()
    base = path if is_root else path.parent
    stem = PurePosixPath(path.name.removesuffix(".gz")).stem.removeprefix("instances_")
    parts = dict.fromkeys(name for name in (source.part, "" if is_root else stem) if name)
    for above in (base,) if is_root else (base, base.parent):
        yield str(above)
        yield from (str(above / name) for name in ("images", "JPEGImages", "photos", "data"))
        yield from (str(above / folder / part) for part in parts for folder in ("", "images"))


def _size(path: str) -> int:
    """Return the size in bytes of a regular file, -1 for anything else."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return -1
    return status.st_size if stat.S_ISREG(status.st_mode) else -1


def equal_photos(paths: Sequence[str]) -> Int64s:
    """Return an integer for the bytes of each photo, equal for equal bytes; -1 for a photo that no other equals.

    Parameters
    ----------
    paths : sequence of str
        ``""`` for an image without a photo.
    """
    codes = np.full(len(paths), -1, np.int64)
    rows = [row for row, path in enumerate(paths) if path]
    alike = [list(rows) for rows in grouped(rows, lambda row: _size(paths[row])).values()]
    for most in (_BEGINNING, LARGEST_FILE):
        # The same path in two sources is not a proof of equal bytes.
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
