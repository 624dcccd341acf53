"""Sizes of photos on the user's disk, where annotations state none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from curation.errors import ExportError
from curation.manifest.manifest import Manifest
from curation.publishing.formats.content import gather_images, slots_of_parts
from curation.sources.photos import size_of_photo
from curation.sources.source import Int32s, Source
from curation.storage import inside


def photo_sizes(
    manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source], roots: Mapping[str, Path]
) -> Int32s:
    """Return width and height of each image of some parts, shape (n, 2): the source's, or else the photo's.

    Only the head of a photo is read. Orientation tags are not applied: datasets give the size of the stored pixels.

    Parameters
    ----------
    roots : mapping of str to Path
        Folder of photos by source name; the one named ``""`` serves every other source.

    Raises
    ------
    MissingExtraError
        Pillow is not installed.
    MissingFileError, ExportError, PathEscapeError
        A photo is not there, is no image, or its name leads out of the folder.
    """
    from tqdm import tqdm

    images = gather_images(manifest, parts, sources)
    slots = slots_of_parts(manifest, parts)
    sizes, names = images.sizes, images.photos
    lacking = np.flatnonzero((sizes <= 0).any(axis=1)).tolist()
    for place in tqdm(lacking, desc="photo sizes", unit=" photos", disable=None):
        root = roots.get(slots[images.slot[place]], roots.get(""))
        if root is not None:
            sizes[place] = size_of_photo(inside(root, names[place]), ExportError)
    return sizes
