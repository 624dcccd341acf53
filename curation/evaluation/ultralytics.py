"""Category ids of Ultralytics: its ``predictions.json`` counts classes from 1, its ``data.yaml`` from 0."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

import msgspec
import numpy as np

from curation.core.reading import json_rows
from curation.evaluation.result_records import Records
from curation.sources.datasets import COCO_CATEGORIES

_COCO_IDS = [number for number, *_ in COCO_CATEGORIES]
_COCO_NAMES = [name for _, name, _ in COCO_CATEGORIES]


class _Named(msgspec.Struct, gc=False):
    image_id: int | str | None = None
    file_name: str | None = None


def ids_from_zero(records: Records, data: bytes, classes: Sequence[str]) -> tuple[Records, str]:
    """Return records with category ids as ``data.yaml`` counts classes, and what to say of it: see `numbering_of`."""
    position, text = numbering_of(records.used_ids, data, classes)
    if not position:
        return records, ""
    ids = records.category_ids
    numbers = ids.tolist() if isinstance(ids, np.ndarray) else ids
    return replace(records, category_ids=[None if id_ is None else position.get(id_, id_) for id_ in numbers]), text


def numbering_of(used: Collection[int], data: bytes, classes: Sequence[str]) -> tuple[dict[int, int], str]:
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

    References
    ----------
    ``DetectionValidator.pred_to_json`` and ``init_metrics`` (``class_map``) in ultralytics/models/yolo/detect/val.py.
    """
    used, n_classes = {*used} - {-1}, len(classes)
    if not used or min(used) < 1:
        return {}, ""
    if list(classes) == _COCO_NAMES and max(used) > n_classes and used <= {*_COCO_IDS}:
        position = {number: place for place, number in enumerate(_COCO_IDS)}
        numbering = f"the {n_classes} ids of COCO, 1 to {_COCO_IDS[-1]}"
    elif max(used) == n_classes or (max(used) < n_classes and _names_photos(data)):
        position = {number: number - 1 for number in range(1, n_classes + 1)}
        numbering = f"ids from 1 to {n_classes}"
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
