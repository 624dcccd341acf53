"""Reader of Open Images' box CSVs: `parse_openimages`.

A part is a CSV of boxes (16 million rows for train) and, beside it, what is there of: descriptions of the classes, a
list of the images (those without a box included), and a table of image sizes, which Open Images does not publish.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from curation.core.errors import AnnotationFormatError, BoxError, DanglingIdError
from curation.sources.integrity import select
from curation.sources.openimages.files import (
    COORDINATES,
    REQUIRED,
    OpenImagesContent,
    check_ids,
    positions_of,
    read_descriptions,
    read_image_list,
    read_sizes,
)
from curation.sources.openimages.streamed_csv import StreamedCsv
from curation.sources.source import Bools, Categories, FileRecord, Floats, Images, Int32s, Int64s, Objects, Source
from curation.sources.source_specs import BadBoxes

_FLAGS = {
    "occluded": "IsOccluded",
    "truncated": "IsTruncated",
    "crowd": "IsGroupOf",
    "depiction": "IsDepiction",
    "inside": "IsInside",
}
"""Column of the file by name in `Objects`."""
_ALWAYS = ("occluded", "truncated", "crowd")
_UNSTATED, _EMPTY = -1, 2
_LEAVES_OUT = "--on-error boxes=drop leaves such boxes out and counts them"


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
    names = read_descriptions(content.descriptions) if content.descriptions else None
    rows = read_boxes(content.files["boxes"], None if names is None else tuple(names), bad_boxes)
    ids, image, dropped = rows.ids, rows.image, dict(rows.dropped)
    keep = np.ones(len(image), np.bool_)
    if "images" in content.files:
        ids = read_image_list(content.files["images"])
        image = positions_of(rows.ids, ids)[image]
        keep = image >= 0
    if unlisted := len(keep) - int(keep.sum()):
        row = int(keep.argmin())
        if bad_boxes == "error":
            raise DanglingIdError(
                "A box is on an image that the list of images lacks",
                where=f"{content.files['boxes'].name}: row {rows.numbers[row] + 1}",
                expected=f"an image of {content.files['images'].name}",
                found=f"{rows.ids[int(rows.image[row])]} ({unlisted} such boxes)",
                hint=_LEAVES_OUT,
            )
        dropped["box on an image that is not listed"] = unlisted
    sizes, n_sizes = np.zeros((len(ids), 2), np.int32), 0
    if "sizes" in content.files:
        sized, pixels = read_sizes(content.files["sizes"])
        # The table may speak of some of the images, or of more: photos are seldom all at hand.
        position, n_sizes = positions_of(ids, sized), len(sized)
        sizes[position >= 0] = pixels[position[position >= 0]]
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
            native := ids.to_numpy(zero_copy_only=False),
            text_ids=native,
            widths=np.ascontiguousarray(sizes[:, 0]),
            heights=np.ascontiguousarray(sizes[:, 1]),
        ),
        categories=Categories.counted(rows.labels if names is None else tuple(names.values()), rows.labels),
        objects=select(objects, keep) if unlisted else objects,
        files=tuple(FileRecord(file.name, file.sha256, file.size, read[kind]) for kind, file in content.each().items()),
        dropped=dropped,
        unit_boxes=True,
    )


class BoxRows(NamedTuple):
    """The rows of a box CSV, in file order, without those that were left out.

    Attributes
    ----------
    ids : pyarrow.StringArray
        Image ids, each once, in the order of their first row.
    labels : tuple of str
        Class keys (MIDs): those that were given, or else those that occur, in the order of their first row.
    image, category : ndarray of int32, shape (m,)
        Positions in `ids` and `labels`.
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` as shares of the image, 0 to 1, w and h the differences of the file's corners.
    numbers : ndarray of int64, shape (m,)
        Rows of the file, 1 for the first after the header.
    columns : dict of str to ndarray
        Columns of `Objects` by name: the flags that the file has.
    rows : int
        Rows read, those included that were left out.
    dropped : dict of str to int
    """

    ids: Any
    labels: tuple[str, ...]
    image: Int32s
    category: Int32s
    boxes: Floats
    numbers: Int64s
    columns: dict[str, Any]
    rows: int
    dropped: dict[str, int]


def read_boxes(file: StreamedCsv, labels: tuple[str, ...] | None, bad_boxes: BadBoxes) -> BoxRows:
    """Return the boxes of a file, read batch by batch.

    Parameters
    ----------
    labels : tuple of str or None
        The class keys there are; None: those that occur.
    bad_boxes : {"error", "drop"}
        Whether a box with a coordinate that is not finite or not within 0 to 1, with ``XMin > XMax`` or ``YMin >
        YMax``, or of a class that `labels` lacks stops the reading or is left out and counted.

    Raises
    ------
    AnnotationFormatError
        A column is missing, an image id is not sixteen digits of 0-9a-f, a flag is not -1, 0 or 1, a row is malformed.
    BoxError, DanglingIdError
        See `bad_boxes`.
    """
    import pyarrow

    file.require(REQUIRED)
    words = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    known = {"ImageID": pyarrow.string(), "LabelName": words}
    known |= dict.fromkeys(COORDINATES, pyarrow.float64()) | dict.fromkeys(_FLAGS.values(), pyarrow.int8())
    types = {name: kind for name, kind in known.items() if name in file.header}
    nothing = pyarrow.RecordBatch.from_pylist([], schema=pyarrow.schema(types))
    class_of = {key: number for number, key in enumerate(labels or ())}
    parts, ids, left_out = defaultdict[str, list[Any]](list), list[Any](), list[Int64s]()
    dropped, rows = Counter[str](), 0
    for batch in chain([nothing], file.batches(types)):
        where = _Where(file, rows)
        texts, lengths = _runs(batch.column("ImageID"), where)
        positions = np.arange(len(lengths), dtype=np.int32) + sum(map(len, ids))
        found: dict[str, Any] = {"image": np.repeat(positions, lengths)}
        ids.append(texts)
        found["category"] = _coded(batch.column("LabelName"), class_of, learns=labels is None)
        corners = [batch.column(name).to_numpy(zero_copy_only=False) for name in COORDINATES]
        found["boxes"], keep = _sound(corners, found["category"], where, bad_boxes, dropped)
        stated = _stated(batch, where)
        for name, column in (found | stated).items():
            kept = column if keep is None else column[keep]
            if name in _FLAGS:
                unstated = int(np.count_nonzero(kept == _UNSTATED))
                dropped[f"{_FLAGS[name]} flags that are not stated (read as 0)"] += unstated
                kept = kept == 1
            parts[name].append(kept)
        left_out.append(np.flatnonzero(() if keep is None else ~keep) + rows)
        rows += len(batch)
    columns = {name: np.concatenate(parts.pop(name)) for name in list(parts)}
    gone, numbers = np.concatenate(left_out), np.arange(1, rows + 1, dtype=np.int64)
    every = pyarrow.concat_arrays(ids).dictionary_encode()
    return BoxRows(
        ids=every.dictionary,
        labels=tuple(class_of),
        image=every.indices.to_numpy()[columns.pop("image")],
        category=columns.pop("category"),
        boxes=columns.pop("boxes"),
        numbers=np.delete(numbers, gone) if len(gone) else numbers,
        columns=columns,
        rows=rows,
        dropped={reason: count for reason, count in sorted(dropped.items()) if count},
    )


class _Where(NamedTuple):
    """Names the rows of a batch that stand behind others."""

    file: StreamedCsv
    before: int

    def __call__(self, row: int) -> str:
        return f"{self.file.name}: row {self.before + row + 2}"


def _runs(column: Any, where: _Where) -> tuple[Any, Int64s]:
    """Return each run of equal ids and its length."""
    from pyarrow import compute

    runs = compute.run_end_encode(column)
    lengths: Int64s = np.diff(runs.run_ends.to_numpy(), prepend=0)
    check_ids(runs.values, lambda run: where(int(lengths[:run].sum())))
    return runs.values, lengths


def _coded(words: Any, class_of: dict[str, int], *, learns: bool = False) -> Int32s:
    """Return the position of each word of a dictionary array, -1 for a strange one; or learn it in row order."""
    keys = words.dictionary.to_pylist()
    classes = [class_of.setdefault(key, len(class_of)) if learns else class_of.get(key, -1) for key in keys]
    found: Int32s = np.array([*classes, -1], np.int32)[words.indices.to_numpy()]
    return found


def _sound(
    corners: list[Floats], category: Int32s, where: _Where, bad_boxes: BadBoxes, dropped: Counter[str]
) -> tuple[Floats, Bools | None]:
    """Return the boxes of some rows, and which of them to keep; None: all."""
    left, right, top, bottom = corners
    # Of two corners that are not finite numpy would warn.
    with np.errstate(invalid="ignore"):
        boxes = np.stack([left, top, right - left, bottom - top], axis=1)
    # Minima and maxima clear a sound batch; a NaN fails every comparison.
    if not len(category) or (max(right.max(), bottom.max()) <= 1 and min(boxes.min(), category.min()) >= 0):
        return boxes, None
    all_corners = np.stack(corners)
    bad = {
        "not finite": ~np.isfinite(all_corners).all(axis=0),
        "not within 0 to 1": ~((all_corners >= 0) & (all_corners <= 1)).all(axis=0),
        "negative in size": (boxes[:, 2:] < 0).any(axis=1),
        "of a class without description": category < 0,
    }
    keep, first = np.ones(len(boxes), np.bool_), dict[str, int]()
    for reason, mask in bad.items():
        # Of several reasons a box has the first.
        mask &= keep
        keep &= ~mask
        dropped[f"box {reason}"] += int(mask.sum())
        if mask.any():
            first[reason] = int(mask.argmax())
    if not first or bad_boxes == "drop":
        return boxes, keep
    reason, row = min(first.items(), key=lambda item: item[1])
    if "class" in reason:
        what, expected = "A box is of a class that has no description", "a LabelName of the file of class descriptions"
        raise DanglingIdError(what, where=where(row), expected=expected, hint=_LEAVES_OUT)
    raise BoxError(
        f"A box is {reason}",
        where=where(row),
        expected="0 <= XMin <= XMax <= 1 and 0 <= YMin <= YMax <= 1",
        found=", ".join(f"{name} {side[row]:g}" for name, side in zip(COORDINATES, corners, strict=True)),
        hint=_LEAVES_OUT,
    )


def _stated(batch: Any, where: _Where) -> dict[str, Any]:
    """Return flags of some rows, -1 where they are not stated."""
    stated: dict[str, Any] = {}
    for flag, name in _FLAGS.items():
        if name in batch.schema.names:
            values = batch.column(name).fill_null(_EMPTY).to_numpy()
            if (odd := (values < _UNSTATED) | (values > 1)).any():
                row = int(odd.argmax())
                found = "nothing" if values[row] == _EMPTY else str(values[row])
                raise AnnotationFormatError(f"{name} is none of -1, 0 and 1", where=where(row), found=found)
            stated[flag] = values
        elif flag in _ALWAYS:
            stated[flag] = np.full(len(batch), _UNSTATED, np.int8)
    return stated
