"""Small sources for the tests of proposals."""

from collections.abc import Mapping, Sequence

import numpy as np

from curation.sources.source import Categories, FileRecord, Images, Objects, Source


def source_of(
    images: Mapping[str, Sequence[str]],
    categories: Sequence[str],
    *,
    dataset: str = "coco",
    boxes: bool = True,
) -> Source:
    """Return a source whose images show some categories: one object for each mention."""
    native = list(images)
    pairs = [(row, categories.index(name)) for row, one in enumerate(native) for name in images[one]]
    image = np.array([row for row, _ in pairs], np.int32)
    category = np.array([place for _, place in pairs], np.int32)
    m, n = len(pairs), len(native)
    no = np.zeros(m, np.bool_)
    return Source(
        dataset=dataset,
        part="val",
        namespace="coco" if dataset.startswith("coco") else dataset,
        images=Images(
            native=np.array(native),
            numbers=np.arange(n, dtype=np.int64),
            file_names=np.array([f"{one}.jpg" for one in native], object),
            widths=np.full(n, 100, np.int32),
            heights=np.full(n, 100, np.int32),
        ),
        categories=Categories(
            tuple(range(1, len(categories) + 1)), tuple(categories), ("",) * len(categories)
        ),
        objects=Objects(
            image=image,
            category=category,
            boxes=np.tile(np.array([[1.0, 2.0, 3.0, 4.0]]), (m, 1)),
            areas=np.full(m, 12.0),
            numbers=np.arange(1, m + 1, dtype=np.int64),
            crowd=no,
            difficult=no,
            truncated=no,
            occluded=no,
            pose=np.zeros(m, np.int8),
        )
        if boxes
        else None,
        files=(FileRecord("instances.json", "sha256:" + "0" * 64, 1, m),),
        licence="none",
        presence=None if boxes else np.unique(np.stack([image, category], axis=1), axis=0),
    )
