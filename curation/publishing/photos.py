"""Sizes of photos on the user's disk, where annotations state none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from curation.core.errors import ExportError, MissingFileError
from curation.core.files import inside
from curation.core.writing import write_text
from curation.manifest.manifest import Manifest
from curation.publishing.formats.content import gather_images, slots_of_parts
from curation.sources.photos import size_of_photo
from curation.sources.source import Int32s, Source

_PHOTOS = (".jpg", ".jpeg", ".png")


def photo_sizes(
    manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source], roots: Mapping[str, Path]
) -> Int32s:
    """Return width and height of each image of some parts, shape (n, 2): the source's, or else the photo's.

    Only the head of a photo is read. Its orientation tag is applied: trainers turn a photo before they read its labels.

    Parameters
    ----------
    roots : mapping of str to Path
        Folder of photos by source name; the one named ``""`` serves every other source.

    Raises
    ------
    MissingExtraError
        Pillow is not installed.
    MissingFileError, ExportError, PathEscapeError
        A photo is missing, is not an image, or its name leads out of the folder.
    """
    from tqdm import tqdm

    images = gather_images(manifest, parts, sources)
    slots = slots_of_parts(manifest, parts)
    sizes, names = images.sizes, images.photos
    lacking = np.flatnonzero((sizes <= 0).any(axis=1)).tolist()
    for row in tqdm(lacking, desc="photo sizes", unit=" photos", disable=None):
        root = roots.get(slots[images.slot[row]], roots.get(""))
        if root is not None:
            sizes[row] = size_of_photo(inside(root, names[row]), ExportError)
    return sizes


def write_image_sizes(photos: Path, table: Path) -> int:
    """Write ``image_id,width,height`` of every photo in a folder as CSV, sorted by id, and return how many there are.

    With Open Images' boxes in shares of the image, the table puts them into pixels when it lies beside them under the
    name ``PART-image-sizes.csv``. The id is the file's name without suffix; files other than jpg and png are skipped.

    Raises
    ------
    MissingExtraError
        Pillow is not installed.
    MissingFileError, ExportError
        The folder does not exist or holds no photo, or a photo cannot be read.
    """
    from tqdm import tqdm

    photo_of = {path.stem: path for path in photos.glob("*") if path.suffix.lower() in _PHOTOS}
    if not photo_of:
        raise MissingFileError(
            "The folder holds no photos", where=str(photos), expected="files such as 00166893b16a03ab.jpg"
        )
    lines = ["image_id,width,height\n"]
    for name in tqdm(sorted(photo_of), desc="photo sizes", unit=" photos", disable=None):
        width, height = size_of_photo(photo_of[name], ExportError)
        lines.append(f"{name},{width},{height}\n")
    write_text(table, "".join(lines))
    return len(photo_of)
