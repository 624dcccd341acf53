"""Reader of Open Images' box CSVs: `read_openimages`.

A part is a CSV of boxes (16 million rows for train) and, beside it, what is there of: descriptions of the classes, a
list of the images (those without a box included), and a table of image sizes, which Open Images does not publish.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from curation.errors import DanglingIdError
from curation.sources.integrity import check_policy, positions, select
from curation.sources.openimages.boxes import BoxRows, read_boxes
from curation.sources.openimages.files import (
    OpenImagesContent,
    locate_openimages,
    read_descriptions,
    read_image_list,
    read_sizes,
)
from curation.sources.openimages.keys import Keys, hex_texts, ordered
from curation.sources.slots import BadBoxes
from curation.sources.source import Categories, FileRecord, Floats, Images, Int32s, Objects, Source

_ROWS_AT_ONCE = 1 << 20


def read_openimages(
    path: Path, part: str = "", *, dataset: str = "openimages", bad_boxes: BadBoxes = "error"
) -> Source:
    """Return the source that a box CSV of Open Images holds, group-of boxes included as `Objects.crowd`.

    Where the size of an image is known its boxes are in pixels: ``XMin*W, YMin*H, (XMax-XMin)*W, (YMax-YMin)*H``, not
    rounded. Else they stay shares of the image, and `Source.unit_boxes` says so. Classes are called by their names;
    `Categories.keys` holds their MIDs, and `Objects.numbers` the rows of the CSV, from 1.

    Parameters
    ----------
    path : Path
        A box CSV; or a root that holds ``PART-annotations-bbox.csv`` or ``oidv6-PART-annotations-bbox.csv``, itself or
        in ``annotations``, ``csv`` or ``PART``, or FiftyOne's ``PART/labels/detections.csv``. In the same
        folders are looked for: ``class-descriptions-boxable.csv``, ``PART-images-boxable-with-rotation.csv`` or
        ``PART-images-with-rotation.csv``, and ``PART-image-sizes.csv`` (``image_id,width,height``).
    part : str
        ``train``, ``validation`` or ``test``; by default what the file's name says or the root offers alone.
    bad_boxes : {"error", "drop"}
        Whether a box that is not finite, not within 0 to 1 or negative in size, that is of a class without
        description, or on an image that the list lacks stops the reading or is left out and counted in
        `Source.dropped`.

    Raises
    ------
    MissingFileError, UsageError
        There is no box file, or more than one.
    AnnotationFormatError, DuplicateIdError, DanglingIdError, BoxError
        A file is not what it should be; the error names the row.
    """
    content = OpenImagesContent(locate_openimages(path, part))
    return parse_openimages(content, dataset=dataset, bad_boxes=bad_boxes)


def parse_openimages(
    content: OpenImagesContent, *, dataset: str, bad_boxes: BadBoxes = "error", addresses: bool = False
) -> Source:
    """Return the source in files that were found already (see `read_openimages`).

    With `addresses`, `Images.addresses` holds the column ``OriginalURL`` of the list of images.
    """
    check_policy(bad_boxes)
    names = read_descriptions(content.descriptions) if content.descriptions else None
    rows = read_boxes(content.boxes, None if names is None else tuple(names), bad_boxes)
    keys, image_of_run = _images(rows)
    listed, urls = (None, None) if content.images is None else read_image_list(content.images, addresses=addresses)
    dropped = dict(rows.dropped)
    if listed is not None:
        keys, image_of_run = _relisted(keys, listed, image_of_run, rows, content, bad_boxes)
    image = rows.run if image_of_run is None else image_of_run[rows.run]
    sizes, counted = _sizes(content, keys)
    objects = _objects(rows, image, sizes)
    if len(objects) and image.min() < 0:
        keep = image >= 0
        dropped["box on an image that is not listed"] = int((~keep).sum())
        objects = select(objects, keep)
    return Source.of(
        dataset,
        content.part,
        images=Images.of(
            hex_texts(keys),
            numbers=np.arange(len(keys), dtype=np.int64),
            widths=np.ascontiguousarray(sizes[:, 0]),
            heights=np.ascontiguousarray(sizes[:, 1]),
            addresses=urls,
        ),
        categories=Categories.counted(rows.labels if names is None else tuple(names.values()), rows.labels),
        objects=objects,
        files=_records(content, rows, names, listed, counted),
        dropped=dropped,
        unit_boxes=True,
    )


def _images(rows: BoxRows) -> tuple[Keys, Int32s | None]:
    """Return the distinct images in the order of their first row, and the place of each run, None for its own."""
    runs = rows.runs
    if len(runs) < 2 or bool((runs[1:] > runs[:-1]).all()):
        return runs, None
    distinct, first, place = np.unique(runs, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return distinct[order], rank[place]


def _relisted(
    keys: Keys,
    listed: Keys,
    image_of_run: Int32s | None,
    rows: BoxRows,
    content: OpenImagesContent,
    bad_boxes: BadBoxes,
) -> tuple[Keys, Int32s]:
    """Return the listed images and the place of each run among them, -1 for one that is not listed."""
    places = positions(ordered(listed), ordered(keys))
    of_run = places if image_of_run is None else places[image_of_run]
    if len(places) and places.min() < 0 and bad_boxes == "error":
        row = int(np.flatnonzero(of_run[rows.run] < 0)[0])
        raise DanglingIdError(
            "A box is on an image that the list of images lacks",
            where=f"{content.boxes.name}: row {int(rows.numbers[row]) + 1}",
            expected=f"an image of {content.images.name if content.images else ''}",
            found=f"{hex_texts(rows.runs[rows.run[[row]]])[0]} ({int((places < 0).sum())} such images)",
            hint="--on-error boxes=drop (bad_boxes='drop') leaves such boxes out and counts them",
        )
    return listed, of_run


def _sizes(content: OpenImagesContent, keys: Keys) -> tuple[Int32s, int]:
    """Return width and height of each image, 0 where they are not known, and how many rows the table has."""
    sizes = np.zeros((len(keys), 2), np.int32)
    if content.sizes is None:
        return sizes, 0
    known, stated = read_sizes(content.sizes)
    # The table may speak of some of the images, or of more: photos are seldom all at hand.
    places = positions(ordered(known), ordered(keys))
    sizes[places >= 0] = stated[places[places >= 0]]
    return sizes, len(known)


def _objects(rows: BoxRows, image: Int32s, sizes: Int32s) -> Objects:
    boxes = rows.boxes
    if sizes.any():
        _scale(boxes, image, sizes)
    return Objects.of(image, rows.category, boxes, numbers=rows.numbers, **rows.columns)


def _scale(boxes: Floats, image: Int32s, sizes: Int32s) -> None:
    # In place and block by block: another copy of the boxes of train would take half a gigabyte.
    factors = np.where(sizes > 0, sizes, 1).astype(np.float64)
    for start in range(0, len(boxes), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        of_rows = factors[image[block]]
        boxes[block, :2] *= of_rows
        boxes[block, 2:] *= of_rows


def _records(
    content: OpenImagesContent, rows: BoxRows, names: dict[str, str] | None, listed: Keys | None, sizes: int
) -> tuple[FileRecord, ...]:
    records = [content.boxes.record(rows.rows)]
    if (described := content.descriptions) is not None:
        records.append(FileRecord(described.name, described.sha256, described.size, len(names or ())))
    if content.images is not None:
        records.append(content.images.record(0 if listed is None else len(listed)))
    if content.sizes is not None:
        records.append(content.sizes.record(sizes))
    return tuple(records)
