"""Category ids of another numbering than the truth's: Ultralytics' two, and the indices of a manifest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

import msgspec
import numpy as np

from curation.core.json_text import json_rows
from curation.evaluation.matching import best_overlap
from curation.evaluation.problem import MAX_COORDINATE, Detections, GroundTruth, Int32s
from curation.evaluation.result_records import Records
from curation.sources.datasets import COCO_CATEGORIES

_COCO_IDS = [number for number, *_ in COCO_CATEGORIES]
_COCO_NAMES = [name for _, name, _ in COCO_CATEGORIES]


class _Named(msgspec.Struct, gc=False):
    image_id: int | str | None = None
    file_name: str | None = None


def ids_from_zero(records: Records, data: bytes, truth: GroundTruth) -> tuple[Records, str]:
    """Return records with category ids as in the truth's ``data.yaml``, and a note about them (see `numbering_of`)."""
    labels = {number: label for label, number in enumerate(truth.class_numbers) if number is not None}
    images = truth.resolve(records.image_ids, records.file_names).position

    def fit(position: Mapping[int, int]) -> int:
        label = replace(records, categories=[]).labels({key: labels.get(n, -1) for key, n in position.items()})
        return _on_their_class(records, images, label, truth)

    position, text = numbering_of(records.used_ids, data, truth.yolo_classes, fit)
    if not position:
        return records, ""
    ids = records.category_ids
    numbers = ids.tolist() if isinstance(ids, np.ndarray) else ids
    return replace(records, category_ids=[None if id_ is None else position.get(id_, id_) for id_ in numbers]), text


def numbering_of(
    used: Collection[int], data: bytes, classes: Sequence[str], fit: Callable[[Mapping[int, int]], int]
) -> tuple[dict[int, int], str]:
    """Return the class, counted from 0, of each category id of Ultralytics, and a sentence; nothing for other files.

    Ultralytics writes ids from 1 to the number of classes, or COCO's ids where it validates on COCO's val2017. A file
    is such a ``predictions.json`` if no id is 0 and either an id is one that counting from 0 cannot reach, or each
    record names its photo as Ultralytics does: ``file_name``, with ``image_id`` its stem.

    Parameters
    ----------
    used : collection of int
        The category ids in the file; -1, which is unknown, may be among them.
    data : bytes
        JSON of the records.
    classes : sequence of str
        Names in the ``data.yaml`` of the truth.
    fit : callable
        Returns how many detections lie on objects of their class under a numbering. It decides for ids that both of
        Ultralytics' numberings have: COCO's ids 12 to 80 mean other classes than positions from 1.

    References
    ----------
    ``DetectionValidator.pred_to_json`` and ``init_metrics`` (``class_map``) in ultralytics/models/yolo/detect/val.py.
    """
    used, n_classes = {*used} - {-1}, len(classes)
    if not used or min(used) < 1:
        return {}, ""
    of_coco = {number: index for index, number in enumerate(_COCO_IDS)}
    from_one = {number: number - 1 for number in range(1, n_classes + 1)}
    is_coco = list(classes) == _COCO_NAMES and used <= of_coco.keys()
    is_from_one = max(used) == n_classes or (max(used) < n_classes and _names_photos(data))
    if is_coco and (max(used) > n_classes or (is_from_one and fit(of_coco) > fit(from_one))):
        position, numbering = of_coco, f"the {n_classes} ids of COCO, 1 to {_COCO_IDS[-1]}"
    elif is_from_one:
        position, numbering = from_one, f"ids from 1 to {n_classes}"
    else:
        return {}, ""
    read_as = ", ".join(f"{number} as {classes[position[number]]}" for number in sorted(used)[:3])
    text = f"category ids are those of Ultralytics' predictions.json ({numbering}), data.yaml counts from 0: {read_as}"
    return position, text + (", …" if len(used) > 3 else "")


def _names_photos(data: bytes) -> bool:
    """Return whether each record has a ``file_name``, and for ``image_id`` its stem, as a number where it is one."""
    try:
        rows = json_rows(data, _Named)
    except msgspec.DecodeError:
        return False
    stems = (PurePosixPath(row.file_name or "").stem for row in rows)
    return all(
        stem and row.image_id == (int(stem) if stem.isascii() and stem.isdigit() else stem)
        for stem, row in zip(stems, rows, strict=True)
    )


def _on_their_class(records: Records, position: Int32s, label: Int32s, truth: GroundTruth) -> int:
    """Return how many detections overlap an object of their class by half (IoU)."""
    rows = (position >= 0) & (label >= 0) & (np.abs(records.boxes) <= MAX_COORDINATE).all(axis=1)
    detections = Detections(position[rows], label[rows], records.boxes[rows], records.scores[rows])
    return int((best_overlap(truth, detections, same_class=True)[1] >= 0.5).sum())
