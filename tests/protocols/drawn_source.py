"""A source drawn in memory: which image shows which classes."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from curation.ids import coco_native
from curation.sources.source import Categories, FileRecord, Images, Objects, Source

Draw = Callable[..., Source]


def drawn_source(
    dataset: str,
    part: str,
    shown: Mapping[int, Sequence[str]],
    *,
    names: Sequence[str] | None = None,
    flagged: Callable[[int, str], bool] = lambda image, name: False,
    presence: bool = False,
) -> Source:
    """Return images with their classes: ``{number: [class, …]}``; `flagged` ones are difficult, or crowd in COCO."""
    numbers = list(shown)
    namespace = "coco" if dataset.startswith("coco") else dataset
    natives = [coco_native(number) if namespace == "coco" else f"{number:06d}" for number in numbers]
    known = list(names) if names else sorted({name for classes in shown.values() for name in classes})
    pairs = [(image, name) for image, number in enumerate(numbers) for name in shown[number]]
    image = np.array([one for one, _ in pairs], np.int32)
    category = np.array([known.index(name) for _, name in pairs], np.int32)
    flags = np.array([flagged(numbers[one], name) for one, name in pairs], np.bool_)
    m = len(pairs)
    off = np.zeros(m, np.bool_)
    boxes = np.tile([1.0, 2.0, 30.0, 40.0], (m, 1))
    objects = Objects(
        image=image,
        category=category,
        boxes=boxes,
        areas=boxes[:, 2] * boxes[:, 3],
        numbers=np.arange(1, m + 1),
        crowd=flags if namespace == "coco" else off,
        difficult=off if namespace == "coco" else flags,
        truncated=off,
        occluded=off,
        pose=np.zeros(m, np.int8),
    )
    stated = (
        np.unique(np.stack([image, category], 1), axis=0).astype(np.int32)
        if m
        else np.empty((0, 2), np.int32)
    )
    return Source(
        dataset=dataset,
        part=part,
        namespace=namespace,
        images=Images(
            native=np.array(natives, dtype=np.str_),
            numbers=np.array(numbers, np.int64),
            file_names=np.array([f"{native}.jpg" for native in natives], object),
            widths=np.zeros(len(numbers), np.int32),
            heights=np.zeros(len(numbers), np.int32),
        ),
        categories=Categories(tuple(range(1, len(known) + 1)), tuple(known), ("",) * len(known)),
        objects=None if presence else objects,
        files=(FileRecord(f"{dataset}_{part}.json", "sha256:" + "0" * 64, 1, m),),
        licence="stated",
        presence=stated if presence else None,
    )
