"""Pairs of photos as images of a review: one picture shows both side by side, in every view of the App."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from curation.core.tables import grouped
from curation.core.wording import counted
from curation.review.app.images import Boxes, ReviewImages
from curation.review.decisions.pairs import POOL, PhotoPair, pair_id
from curation.sources.corpus import TarPhotos, photo_data
from curation.sources.photos import BrokenPhotoError, decode_photo, read_photo

if TYPE_CHECKING:
    from PIL.Image import Image

SHEETS = "pairs"
"""Folder of the pictures, in that of the review."""
_SIDE, _GAP = 800, 20
_GROUND = (30, 30, 34)


def pair_images(pairs: Sequence[PhotoPair], folder: Path) -> ReviewImages:
    """Return one image for each pair, the most doubtful first, and write the pictures that show both photos.

    A pair with an unreadable photo has no picture: `curation.review.app.images.arranged` leaves it out and lists it.

    Parameters
    ----------
    pairs : sequence of PhotoPair
    folder : Path
        Folder of the review.
    """
    from tqdm import tqdm

    sheets = folder / SHEETS
    sheets.mkdir(parents=True, exist_ok=True)
    paths: dict[str, Path | None] = {}
    with tqdm(total=len(pairs), desc="pairs", unit=" pairs", disable=None) as bar:
        # Each shard is read once for all pairs with the same two shards.
        for archives, some in grouped(pairs, _archives).items():
            files = {path for pair in some for path in (pair.left_path, pair.right_path)}
            members = {name: data for archive in {*archives} - {""} for name, data in _members(archive, files).items()}
            for pair in some:
                paths[pair_id(pair)] = _write_sheet(pair, members, sheets)
                bar.update()
    ordered = sorted(pairs, key=lambda pair: (-pair.value / (pair.threshold or 1), pair.left, pair.right))
    ids = tuple(map(pair_id, ordered))
    n = len(ids)
    return ReviewImages(
        ids=ids,
        parts=tuple(pair.kind for pair in ordered),
        pools=(POOL,) * n,
        paths=tuple(paths[name] for name in ids),
        sizes=np.zeros((n, 2), np.int32),
        classes=((),) * n,
        boxes=Boxes(np.zeros(0, np.int32), np.zeros((0, 4)), (), ()),
        details=tuple(
            (f"left: {pair.left} ({pair.left_in})", f"right: {pair.right} ({pair.right_in})",
             f"{pair.kind}: {counted(pair.value, 'bit')} differ, at most {pair.threshold}")
            for pair in ordered
        ),
    )  # fmt: skip


def _archive(path: str) -> str:
    """Return the shard of a photo, ``""`` for a photo in a separate file."""
    return path.partition(".tar!")[0] + ".tar" if ".tar!" in path else ""


def _archives(pair: PhotoPair) -> tuple[str, str]:
    return _archive(pair.left_path), _archive(pair.right_path)


def _members(archive: str, files: Collection[str]) -> dict[str, bytes | BrokenPhotoError]:
    """Return the photos of a shard that belong to `files`, by path."""
    photos = (photo for table in TarPhotos(archive, archive, "").tables() for photo in photo_data(table))
    return {path: data for name, data in photos if (path := f"{archive}!{name.removeprefix(archive)[1:]}") in files}


def _write_sheet(pair: PhotoPair, members: dict[str, bytes | BrokenPhotoError], folder: Path) -> Path | None:
    """Write the picture of a pair and return its path, or None if a photo cannot be read."""
    from PIL import Image

    try:
        left, right = (_photo(path, members) for path in (pair.left_path, pair.right_path))
    except BrokenPhotoError:
        return None
    # A margin separates neighbours in the grid.
    sheet = Image.new("RGB", (2 * _SIDE + 3 * _GAP, max(left.height, right.height) + 2 * _GAP), _GROUND)
    for start, photo in ((_GAP, left), (_SIDE + 2 * _GAP, right)):
        sheet.paste(photo, (start + (_SIDE - photo.width) // 2, (sheet.height - photo.height) // 2))
    path = folder / f"{pair_id(pair).partition(':')[2]}.jpg"
    sheet.save(path, quality=92)
    return path


def _photo(path: str, members: dict[str, bytes | BrokenPhotoError]) -> Image:
    """Return a photo as displayed, as large as its half of the picture."""
    from PIL import ImageOps

    data = members.get(path, BrokenPhotoError("the shard lacks it")) if _archive(path) else read_photo(Path(path))
    if isinstance(data, BrokenPhotoError):
        raise data
    return ImageOps.contain(ImageOps.exif_transpose(decode_photo(data)), (_SIDE, _SIDE))
