"""What is to be embedded: the photos of sources or of a folder, whole or box by box."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from curation.errors import DuplicateIdError, EmbeddingError
from curation.ids import ImageId, native_of
from curation.sources.photos import PhotoFolder
from curation.sources.source import Source

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Photo:
    """A photo, and the pictures that are made of it.

    Attributes
    ----------
    id : str
        Image id ``namespace:native``.
    path : Path or None
        None where no photo of the image is at hand.
    boxes : tuple of (float, float, float, float), or None
        ``x, y, w, h`` in stored pixels, origin top left: a picture each, ``id#0``, ``id#1``, …; None: the whole photo.
    size : (int, int)
        Width and height that the annotations state, (0, 0) where they do not.
    """

    id: str
    path: Path | None
    boxes: tuple[Box, ...] | None = None
    size: tuple[int, int] = (0, 0)

    @property
    def pictures(self) -> tuple[tuple[str, Box | None], ...]:
        """Id and box of each picture."""
        if self.boxes is None:
            return ((self.id, None),)
        return tuple((f"{self.id}#{number}", box) for number, box in enumerate(self.boxes))


def photos_of_sources(
    sources: Mapping[str, Source], folders: Mapping[str, PhotoFolder], *, boxes: bool
) -> list[Photo]:
    """Return the photos of sources, in the order of the sources and of their files.

    Parameters
    ----------
    folders : mapping of str to PhotoFolder
        By name of source; the one named ``""`` serves every other source.
    boxes : bool
        Whether each annotated box is a picture, crowd boxes too; images without a box have none then.

    Raises
    ------
    EmbeddingError
        No folder of photos was given for a source.
    DuplicateIdError
        Two sources hold the same image.
    PresenceOnlyError, UnitBoxesError
        Boxes are asked for and the source has none, or not in pixels.
    """
    photos: list[Photo] = []
    for name, source in sources.items():
        folder = folders.get(name, folders.get(""))
        if folder is None:
            raise EmbeddingError(
                "There is no folder of photos for a source",
                where=f"source {name}",
                hint=f"--photos {name}=DIR",
            )
        photos += _of_source(source, folder, boxes=boxes)
    _require_unique(photo.id for photo in photos)
    return photos


def _of_source(source: Source, folder: PhotoFolder, *, boxes: bool) -> Iterable[Photo]:
    of_image = _boxes(source) if boxes else None
    images = source.images
    columns = zip(
        source.image_ids.tolist(), images.native.tolist(), images.file_names.tolist(),
        images.widths.tolist(), images.heights.tolist(), strict=True,
    )  # fmt: skip
    for number, (image, native, file_name, width, height) in enumerate(columns):
        if of_image is None or of_image.get(number):
            path = folder.find((str(file_name), str(native)))
            yield Photo(
                str(image), path, None if of_image is None else tuple(of_image[number]), (width, height)
            )


def _boxes(source: Source) -> dict[int, list[Box]]:
    objects = source.require_pixels("Embedding boxes")
    found: dict[int, list[Box]] = {}
    for image, (x, y, w, h) in zip(objects.image.tolist(), objects.boxes.tolist(), strict=True):
        found.setdefault(image, []).append((x, y, w, h))
    return found


def photos_of_folder(folder: PhotoFolder, namespace: str) -> list[Photo]:
    """Return the photos below a folder by path; the native id is the path below it without its suffix.

    Raises
    ------
    DuplicateIdError
        Two photos differ in their suffix only.
    EmbeddingError
        There is no photo.
    """
    root = folder.folder.absolute()
    photos = []
    for path in folder.paths:
        inside = PurePosixPath(path.relative_to(root).as_posix())
        photos.append(Photo(str(ImageId(namespace, native_of(str(inside.with_suffix("")), namespace))), path))
    if not photos:
        raise EmbeddingError("The folder holds no photos", where=str(folder.folder))
    _require_unique(photo.id for photo in photos)
    return photos


def crop_of(box: Box, size: tuple[int, int]) -> tuple[int, int, int, int] | None:
    """Return the whole pixels that a box touches, as left, upper, right, lower; None where it misses the photo.

    >>> crop_of((1.5, 2.0, 3.0, 4.0), (100, 100))
    (1, 2, 5, 6)
    """
    x, y, width, height = box
    if not np.isfinite(box).all() or width <= 0 or height <= 0:
        return None
    left, upper = max(0, math.floor(x)), max(0, math.floor(y))
    right, lower = min(size[0], math.ceil(x + width)), min(size[1], math.ceil(y + height))
    return (left, upper, right, lower) if left < right and upper < lower else None


def box_text(box: Box | None) -> str:
    """Return the text under which a box is kept, ``""`` for a whole photo."""
    return "" if box is None else ",".join(repr(float(number)) for number in box)


def _require_unique(ids: Iterable[str]) -> None:
    counts = Counter(ids)
    repeated = [one for one, count in counts.items() if count > 1]
    if repeated:
        raise DuplicateIdError(
            "Two photos have the same id",
            where=repeated[0],
            found=f"{len(repeated)} ids more than once",
            hint="give each dataset once, under a name of its own",
        )
