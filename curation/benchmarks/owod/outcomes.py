"""What becomes of each detection of an OWOD task under each variant: the clean reading, and the code of others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from curation.evaluation.input_order import contested_objects, decided_by_order, kinds
from curation.evaluation.matching import assign, overlapping_pairs, positives
from curation.evaluation.open_set import Outcomes
from curation.evaluation.problem import Detections, GroundTruth
from curation.evaluation.truth import TaskTruth
from curation.evaluation.variants import IOU, Rules, round_as_text

_OFFICIAL = (
    "voc_eval: scores to 3 and corners to 1 decimal, whole ground-truth corners, IoU > 0.5 with the "
    "object of highest IoU of the class, crowd regions ordinary, difficult ones ignored"
)
CLEAN = Rules(
    name="clean",
    meaning="continuous boxes, IoU >= 0.5 with the best object that is still free, crowd and difficult regions "
    "ignored, area AP, undefined is null",
    taken="best_free",
    crowd="cover",
)
ORE = Rules(
    name="ore",
    meaning=f"the code of ORE and RE-OWOD, {_OFFICIAL}, area AP",
    overlap=">",
    crowd="ordinary",
    text=True,
    nothing="zero",
)
OWDETR = replace(
    ORE,
    name="owdetr",
    meaning=f"the code of OW-DETR and PROB, {_OFFICIAL}, 11-point AP at the recalls numpy.arange(0, 1.1, 0.1) in "
    "floating point: 0.3, 0.6 and 0.7 are a hair higher there",
    average_precision="eleven_point_in_floats",
)
PROFILES: dict[str, Rules] = {one.name: one for one in (CLEAN, ORE, OWDETR)}


def outcomes(truth: TaskTruth, detections: Detections, rules: Rules) -> Outcomes:
    """Return what becomes of each detection under a variant (specs of OWOD's ``voc_eval``; `PROFILES`)."""
    objects = truth.truth
    if rules.text:
        objects, detections = _as_text(truth, detections)
    matches = assign(objects, detections, rules)
    positive = positives(objects, rules)
    unknown = objects.label == truth.unknown
    known_rows = np.flatnonzero(detections.label < truth.unknown)
    pairs = overlapping_pairs(
        objects,
        detections.take(known_rows),
        same_class=False,
        # The official A-OSE and WI count an overlap with a difficult unknown object too.
        mask=unknown if rules.text else unknown & positive,
        iou_threshold=IOU,
        strict=rules.strict,
    )
    hit = np.zeros(len(detections), bool)
    hit[known_rows[pairs.row]] = True
    is_free = rules.taken == "best_free"
    order = decided_by_order(
        detections,
        kinds(matches.outcome, hit),
        claim=None if is_free else np.where(hit, -1, matches.claim),
        contested=contested_objects(objects, detections, positive) if is_free else None,
        read_at_first=True,
    )
    counted = np.bincount(
        objects.label[positive],
        weights=truth.lines[objects.image[positive]],
        minlength=len(objects.classes),
    )
    return Outcomes(
        label=detections.label,
        scores=detections.scores,
        outcome=matches.outcome,
        n_positive=counted.astype(np.int64),
        target=unknown & positive,
        taken=matches.truth,
        pairs=replace(pairs, row=known_rows[pairs.row]),
        order=order,
    )


def _as_text(truth: TaskTruth, detections: Detections) -> tuple[GroundTruth, Detections]:
    """Return both as the official evaluator reads them, in tenths of a pixel: whole numbers, so that IoU is exact.

    Ground truth: ``int(x + 1), int(y + 1), int(x + w + 1), int(y + h + 1)``, inclusive; as `int` truncates. Boxes that
    were such corners in the annotation file stay as they are.
    """
    objects = truth.truth
    x, y, w, h = objects.boxes.T
    further = np.where(truth.voc_corners[objects.image], 0, 1)
    left, top = np.trunc(x + 1) - 1, np.trunc(y + 1) - 1
    right, bottom = np.trunc(x + w + further), np.trunc(y + h + further)
    corners = np.stack([left, top, right - left, bottom - top], axis=1)
    text = round_as_text(detections)
    return (
        replace(objects, boxes=corners * 10),
        replace(text, boxes=np.rint(text.boxes * 10)),
    )
