"""Sources written out by hand or drawn in memory, row by row."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from curation.sources.source import POSES, Categories, FileRecord, Images, Objects, Source

ImageRow = tuple[str, int, str, int, int]
"""Native id, number, file name, width, height."""
ObjectRow = tuple[Any, ...]
"""Position of the image, class, box; and a mapping of ``id``, ``area``, ``crowd``, ``difficult`` … where it differs."""


def image_rows(
    natives: Sequence[str], *, size: tuple[int, int] = (0, 0), numbers: Sequence[int] | None = None
) -> list[ImageRow]:
    """Return images named by their ids; they are numbered from 0 unless numbers are given."""
    return [
        (native, number, f"{native}.jpg", *size)
        for native, number in zip(natives, numbers or range(len(natives)), strict=True)
    ]


def make_source(
    dataset: str,
    namespace: str,
    images: Sequence[ImageRow],
    objects: Sequence[ObjectRow],
    names: Mapping[int, str],
    *,
    part: str = "test",
    labels: Sequence[str] = (),
    file: str = "",
    digit: str = "0",
    file_size: int = 1,
    licence: str = "",
) -> Source:
    """Return a source of rows; `names` are classes by number, `file` is said to hold them, its digest all one digit."""
    flags = [row[3] if len(row) > 3 else {} for row in objects]

    def flag(name: str) -> np.ndarray:
        return np.array([bool(one.get(name)) for one in flags], np.bool_)

    boxes = np.array([row[2] for row in objects], np.float64).reshape(-1, 4)
    place = {name: position for position, name in enumerate(names.values())}
    areas = [one.get("area", box[2] * box[3]) for one, box in zip(flags, boxes, strict=True)]
    return Source(
        dataset=dataset,
        part=part,
        namespace=namespace,
        images=Images(
            native=np.array([row[0] for row in images], np.str_),
            numbers=np.array([row[1] for row in images], np.int64),
            file_names=np.array([row[2] for row in images], object),
            widths=np.array([row[3] for row in images], np.int32),
            heights=np.array([row[4] for row in images], np.int32),
        ),
        categories=Categories(
            tuple(names),
            tuple(names.values()),
            ("",) * len(names),
            tuple(labels),
            numbering="file" if file.endswith(".json") else "none",
        ),
        objects=Objects(
            image=np.array([row[0] for row in objects], np.int32),
            category=np.array([place[row[1]] for row in objects], np.int32),
            boxes=boxes,
            areas=np.array(areas, np.float64),
            numbers=np.array([one.get("id", k + 1) for k, one in enumerate(flags)], np.int64),
            crowd=flag("crowd"),
            difficult=flag("difficult"),
            truncated=flag("truncated"),
            occluded=flag("occluded"),
            pose=np.array([POSES.index(one.get("pose", "")) for one in flags], np.int8),
        ),
        files=(FileRecord(file, f"sha256:{digit * 64}", file_size, len(objects)),) if file else (),
        licence=licence,
    )


def as_table(source: Source) -> Source:
    """Return what a table of image and class says of a source: no boxes."""
    objects = source.objects
    assert objects is not None
    pairs = np.stack([objects.image, objects.category], axis=1)
    shown = np.unique(pairs, axis=0).astype(np.int32) if len(pairs) else np.empty((0, 2), np.int32)
    return Source(**{**vars(source), "objects": None, "presence": shown})
