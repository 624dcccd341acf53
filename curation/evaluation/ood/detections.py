"""Detections with out-of-distribution scores: COCO results, or one list of records an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from curation.errors import PredictionError
from curation.evaluation.columns import Bools, Floats, GroundTruth, Int32s
from curation.evaluation.detections import Policy, RawColumns, check_values, locate, report, stray_error
from curation.evaluation.ood.logits import ClassReading, logit_scores, read_classes
from curation.evaluation.ood.records import (
    LARGEST_SCORE,
    Record,
    RecordFile,
    image_key,
    methods_of,
    named_scores,
    read_records,
)

_SHOWN = 300


@dataclass(frozen=True, slots=True)
class OodDetections:
    """Detections of one OOD split above the detector's own confidence cut.

    They are in the order of images in the ground truth, then of the file: this order decides ties.

    Attributes
    ----------
    image : ndarray of int32, shape (d,)
        Position in the ground truth's images.
    corners : ndarray of float64, shape (d, 4)
        ``x1, y1, x2, y2`` in pixels, origin top left.
    confidence : ndarray of float64, shape (d,)
        The detector's own score, by which unknown detections are ranked; not the OOD score.
    background : ndarray of bool, shape (d,)
        Where the official code takes the class to be ``unknown`` whatever the score: the highest logit stands at the
        index of the number of ID classes. All False unless asked for.
    scores : mapping of str to ndarray of float64, shape (d,)
        OOD scores by method; higher is more ID.
    """

    image: Int32s
    corners: Floats
    confidence: Floats
    background: Bools
    scores: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.confidence)


@dataclass(frozen=True, slots=True)
class ReadOodDetections:
    """Detections of a split with what is to be told about their file.

    Attributes
    ----------
    detections : OodDetections
    name, sha256 : str
    rows : int
        Records in the file.
    reported : dict of str to int
        What was left out or changed, with counts.
    image_ids : frozenset of str
        Ids of the images with detections, as `image_key` writes them.
    logits_length : int or None
    notes : tuple of str
    """

    detections: OodDetections
    name: str
    sha256: str
    rows: int
    reported: dict[str, int]
    image_ids: frozenset[str]
    logits_length: int | None
    notes: tuple[str, ...] = ()

    @property
    def file(self) -> dict[str, Any]:
        """What a result says about this input."""
        return {
            "name": self.name,
            "sha256": self.sha256,
            "rows": self.rows,
            "scores": sorted(self.detections.scores),
            "reported": self.reported,
        }


def read_ood_detections(
    path: Path,
    truth: GroundTruth,
    policy: Policy | None = None,
    *,
    classes: ClassReading | None = None,
    t_star: float | None = None,
) -> ReadOodDetections:
    """Return the detections of a file with their OOD scores.

    Parameters
    ----------
    path : Path
        A JSON list of records, or ``{"images": {id: [records]}}``. A record has ``image_id``; ``bbox`` (``x, y, w, h``)
        or ``bbox_xyxy``; ``score`` (the confidence) or ``logits``, whose highest softmax is the confidence then; and
        ``ood_score`` or ``scores``, one number a method. All records name the same methods. MSP, energy and GEN follow
        from logits where a file does not give them.
    truth : GroundTruth
        The images of the split; ids may be integers or texts.
    policy : Policy, optional
    classes : ClassReading, optional
        How many ID classes the logits have, and whether the official background quirk is reproduced.
    t_star : float, optional
        Detections of lower confidence are left out and counted.

    Raises
    ------
    MissingFileError
        There is no such file.
    PredictionError
        It is malformed, names an image twice, lies on images that the truth lacks, has boxes or scores that are not
        finite, logits of unequal length, or records that disagree on the methods. The message names the record.
    """
    policy = policy or Policy()
    file = read_records(path)
    read = read_classes(file, classes or ClassReading())
    columns = RawColumns(_boxes(file), read.confidence, file.where, "record", 0)
    negative = check_values(columns, policy)
    scores = method_scores(file)
    position, found = locate([_id(record) for record in file.records], truth, columns)
    if not found.all() and policy.stray == "error":
        first = file.records[int(np.argmin(found))]
        raise stray_error(columns, found, f"image_id {first.image_id!s:.80}", truth)
    counts = report(stray=int((~found).sum()), negative=negative)
    low = np.zeros_like(found) if t_star is None else found & (read.confidence < t_star)
    if low.any():
        counts["left out: detections of confidence below t*"] = int(low.sum())
    kept = np.flatnonzero(found & ~low)
    kept = kept[np.argsort(position[kept], kind="stable")]
    detections = OodDetections(
        position[kept],
        _corners(file, columns.boxes)[kept],
        read.confidence[kept],
        read.background[kept],
        {name: values[kept] for name, values in scores.items()},
    )
    images = frozenset(image_key(_id(file.records[row])) for row in kept.tolist())
    return ReadOodDetections(
        detections, file.name, file.sha256, len(file.records), counts, images, read.length, read.notes
    )


def method_scores(file: RecordFile) -> dict[str, Floats]:
    """Return the OOD scores of all records by method, in file order, those that follow from logits included.

    Raises
    ------
    PredictionError
        A record lacks a score that another has, or a score is not finite.
    """
    names = methods_of(file)
    rows = [named_scores(record) for record in file.records]
    scores = {name: np.fromiter((row[name] for row in rows), np.float64, len(rows)) for name in names}
    for name, values in scores.items():
        usable = np.abs(values) <= LARGEST_SCORE
        if not usable.all():
            row = int(np.argmin(usable))
            raise PredictionError(
                "An OOD score is not finite, or beyond any scale",
                where=file.place(row),
                expected=f"{name[:_SHOWN]}: a finite number of at most {LARGEST_SCORE:g}",
                found=repr(float(values[row])),
            )
    derived = logit_scores(file)
    return scores | {name: values for name, values in derived.items() if name not in scores}


def _id(record: Record) -> int | str:
    return "" if record.image_id is None else record.image_id


def _boxes(file: RecordFile) -> Floats:
    """Return ``x, y, w, h`` of every record, shape (n, 4)."""
    boxes = np.empty((len(file.records), 4))
    for row, record in enumerate(file.records):
        if (record.bbox is None) == (record.bbox_xyxy is None):
            raise PredictionError(
                "A detection has no box" if record.bbox is None else "A detection has two boxes",
                where=file.place(row),
                expected='either "bbox": [x, y, w, h] or "bbox_xyxy": [x1, y1, x2, y2]',
            )
        if record.bbox_xyxy is None:
            boxes[row] = record.bbox
        else:
            x1, y1, x2, y2 = record.bbox_xyxy
            boxes[row] = x1, y1, x2 - x1, y2 - y1
    return boxes


def _corners(file: RecordFile, boxes: Floats) -> Floats:
    """Return ``x1, y1, x2, y2`` of checked boxes: as the file has them where it has corners: no digit may change."""
    corners = np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)
    for row, record in enumerate(file.records):
        if record.bbox_xyxy is not None and (boxes[row, 2:] > 0).all():
            corners[row] = record.bbox_xyxy
    return corners
