"""Reader of Open Images' box CSVs: `parse_openimages`.

A part is a CSV of boxes (16 million rows for train) and, beside it, what is there of: descriptions of the classes, a
list of the images (those without a box included), and a table of image sizes, which Open Images does not publish.
"""

from __future__ import annotations

import numpy as np

from curation.errors import DanglingIdError
from curation.sources.integrity import check_policy, select
from curation.sources.openimages.boxes import LEAVES_OUT, read_boxes
from curation.sources.openimages.files import (
    OpenImagesContent,
    places_of,
    read_descriptions,
    read_image_list,
    read_sizes,
)
from curation.sources.source import Categories, FileRecord, Images, Objects, Source
from curation.sources.source_specs import BadBoxes


def parse_openimages(content: OpenImagesContent, *, dataset: str, bad_boxes: BadBoxes = "error") -> Source:
    """Return the source that a box CSV of Open Images holds, group-of boxes included as `Objects.crowd`.

    Where the size of an image is known its boxes are in pixels: ``XMin*W, YMin*H, (XMax-XMin)*W, (YMax-YMin)*H``, not
    rounded. Else they stay shares of the image, and `Source.unit_boxes` says so. Classes are called by their names;
    `Categories.keys` holds their MIDs, and `Objects.numbers` the rows of the CSV, from 1.

    Parameters
    ----------
    content : OpenImagesContent
        Of a box CSV; or of a root that holds ``PART-annotations-bbox.csv`` or ``oidv6-PART-annotations-bbox.csv``,
        itself or in ``annotations``, ``csv`` or ``PART``, or FiftyOne's ``PART/labels/detections.csv``. In the same
        folders are looked for: ``class-descriptions-boxable.csv``, ``PART-images-boxable-with-rotation.csv`` or
        ``PART-images-with-rotation.csv``, and ``PART-image-sizes.csv`` (``image_id,width,height``).
    bad_boxes : {"error", "drop"}
        Whether a box that is not finite, not within 0 to 1 or negative in size, that is of a class without
        description, or on an image that the list lacks stops the reading or is left out and counted in
        `Source.dropped`.

    Raises
    ------
    AnnotationFormatError, DuplicateIdError, DanglingIdError, BoxError
        A file is not what it should be; the error names the row.
    """
    check_policy(bad_boxes)
    names = read_descriptions(content.descriptions) if content.descriptions else None
    rows = read_boxes(content.files["boxes"], None if names is None else tuple(names), bad_boxes)
    ids, image, dropped = rows.ids, rows.image, dict(rows.dropped)
    keep = np.ones(len(image), np.bool_)
    if "images" in content.files:
        ids = read_image_list(content.files["images"])
        image = places_of(rows.ids, ids)[image]
        keep = image >= 0
    if unlisted := len(keep) - int(keep.sum()):
        row = int(keep.argmin())
        if bad_boxes == "error":
            raise DanglingIdError(
                "A box is on an image that the list of images lacks",
                where=f"{content.files['boxes'].name}: row {rows.numbers[row] + 1}",
                expected=f"an image of {content.files['images'].name}",
                found=f"{rows.ids[int(rows.image[row])]} ({unlisted} such boxes)",
                hint=LEAVES_OUT,
            )
        dropped["box on an image that is not listed"] = unlisted
    sizes, n_sizes = np.zeros((len(ids), 2), np.int32), 0
    if "sizes" in content.files:
        sized, pixels = read_sizes(content.files["sizes"])
        # The table may speak of some of the images, or of more: photos are seldom all at hand.
        place, n_sizes = places_of(ids, sized), len(sized)
        sizes[place >= 0] = pixels[place[place >= 0]]
    if n_sizes:
        factors = np.where(sizes > 0, sizes, 1).astype(np.float64)
        for side in range(4):
            # Column by column: another copy of the boxes of train would take half a gigabyte.
            rows.boxes[:, side] *= factors[image, side % 2]
    objects = Objects.of(image, rows.category, rows.boxes, numbers=rows.numbers, **rows.columns)
    read = {"boxes": rows.rows, "descriptions": len(names or ()), "images": len(ids), "sizes": n_sizes}
    return Source.of(
        dataset,
        content.part,
        images=Images.of(
            ids.to_numpy(zero_copy_only=False),
            numbers=np.arange(len(ids), dtype=np.int64),
            widths=np.ascontiguousarray(sizes[:, 0]),
            heights=np.ascontiguousarray(sizes[:, 1]),
        ),
        categories=Categories.counted(rows.labels if names is None else tuple(names.values()), rows.labels),
        objects=select(objects, keep) if unlisted else objects,
        files=tuple(FileRecord(one.name, one.sha256, one.size, read[kind]) for kind, one in content.each().items()),
        dropped=dropped,
        unit_boxes=True,
    )
