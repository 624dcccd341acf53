"""Wilderness impact and absolute open-set error as the OWOD code computes them (``voc_eval``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.evaluation.columns import Bools, Detections, Floats, GroundTruth, Int64s
from curation.evaluation.input_order import InputOrder, decided_by_order, joined, joined_claims, kinds
from curation.evaluation.matching import (
    OperatingPoints,
    best_overlap,
    match,
    overlaps_any,
    recall_names,
    rows_by_class,
)

IOU = 0.5
"""An overlap counts when it is strictly above."""

Part = tuple[GroundTruth, Detections]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Of each detection: its class, rounded score, whether it is TP or FP, TP, and on an unknown object."""

    label: Int64s
    scores: Floats
    counted: Bools
    correct: Bools
    on_unknown: Bools
    n_positive: Int64s
    order: InputOrder


def owod_metrics(parts: tuple[Part, ...]) -> dict[str, Any]:
    """Return OWOD's wilderness impact at recalls 0.1 to 0.9 and its A-OSE, over all parts taken together.

    As in the official text files, scores are rounded to 3 decimals and corners to 1. Equal scores keep input order
    (the official sort is unstable). A class without ground truth is left out of wilderness impact and listed.

    Returns
    -------
    dict
        ``WI[recall]``: mean over classes of detections on an unknown object / mean of TP + FP, each at the index whose
        recall is nearest; None with ``reason`` where no class has detections and ground truth. ``nearest_recall``:
        the recall found, by class. ``AOSE_total``, ``AOSE_per_class``: detections of any score with IoU > 0.5 to an
        unknown object, difficult and crowd ones included. ``AOSE_instances``: distinct unknown objects hit.
        ``n_unknown``: unknown objects. ``classes_left_out`` with reasons. ``input_order``: see `InputOrder.record`.
    """
    rounded = tuple((truth, round_as_text(detections)) for truth, detections in parts)
    classes = parts[0][0].classes
    outcome = _outcome(rounded)
    indices: dict[str, tuple[Floats, Int64s, Int64s]] = {}
    left_out = {}
    for number, rows in rows_by_class(outcome.label, len(classes)):
        n = int(outcome.n_positive[number])
        if not n or not len(rows):
            left_out[classes[number]] = "no detections" if n else "no ground truth"
            continue
        rows = rows[np.argsort(-outcome.scores[rows], kind="stable")]
        recall = np.cumsum(outcome.correct[rows]) / n
        indices[classes[number]] = (
            recall,
            np.cumsum(outcome.counted[rows]),
            np.cumsum(outcome.on_unknown[rows]),
        )
    impact, nearest = _impacts(indices)
    per_class = np.bincount(outcome.label[outcome.on_unknown], minlength=len(classes))
    result: dict[str, Any] = {
        "WI": impact,
        "nearest_recall": nearest,
        "classes_left_out": left_out,
        "AOSE_total": int(outcome.on_unknown.sum()),
        "AOSE_per_class": dict(zip(classes, per_class.tolist(), strict=True)),
        "AOSE_instances": sum(_objects_hit(truth, detections) for truth, detections in rounded),
        "n_unknown": sum(int((truth.label < 0).sum()) for truth, _ in parts),
        "input_order": outcome.order.record("WI"),
    }
    if None in impact.values():
        result["reason"] = "no class has both ground truth and detections, or none is right or wrong so far"
    return result


def open_set_errors(parts: tuple[Part, ...], points: OperatingPoints) -> dict[str, Any]:
    """Return A-OSE at all scores and at each operating point: detections of a known class on an unknown object.

    Boxes and scores as they are, IoU > 0.5 (Miller et al., ICRA 2018, count at an operating point; OWOD at all
    scores).

    Returns
    -------
    dict
        ``all`` and each recall: ``total``, ``per_class`` (None for a class without threshold), ``instances``:
        distinct unknown objects hit; also ``n_unknown``.
    """
    classes = parts[0][0].classes
    hits = tuple((truth, detections.take(_on_unknown(truth, detections))) for truth, detections in parts)
    everything = np.full(len(classes), -np.inf)
    limits = dict(zip(("all", *recall_names(points)), (everything, *points.threshold), strict=True))
    result: dict[str, Any] = {"n_unknown": sum(int((truth.label < 0).sum()) for truth, _ in parts)}
    for name, limit in limits.items():
        kept = [(truth, hit.take(hit.scores >= limit[hit.label])) for truth, hit in hits]
        counts = sum(np.bincount(hit.label, minlength=len(classes)) for _, hit in kept)
        result[name] = {
            "total": int(np.sum(counts)),
            "per_class": {
                known: None if np.isnan(limit[number]) else int(np.asarray(counts)[number])
                for number, known in enumerate(classes)
            },
            "instances": sum(_objects_hit(truth, hit) for truth, hit in kept),
        }
    return result


def round_as_text(detections: Detections) -> Detections:
    """Return the detections as detectron2's VOC text files hold them: score ``.3f``, corners ``.1f`` (1-based)."""
    x, y, w, h = detections.boxes.T
    left, top = round_decimal(x + 1, 1) - 1, round_decimal(y + 1, 1) - 1
    right, bottom = round_decimal(x + w, 1), round_decimal(y + h, 1)
    boxes = np.stack([left, top, right - left, bottom - top], axis=1)
    return Detections(detections.image, detections.label, boxes, round_decimal(detections.scores, 3))


def round_decimal(values: Floats, places: int) -> Floats:
    """Return the numbers that ``float(format(value, f".{places}f"))`` gives: exact decimal rounding, half to even.

    `numpy.round` multiplies first and so rounds 0.0005 (which lies above the decimal half) to 0.
    """
    factor = 10.0**places
    # Of the magnitude: the fraction of a number that is not negative is exact, that of a negative one is not.
    size = np.abs(values)
    product = size * factor
    # Veltkamp's split: both halves times the factor are exact, hence so is the error of the product.
    split = size * 134217729.0
    high = split - (split - size)
    error = (high * factor - product) + (size - high) * factor
    floor = np.floor(product)
    beyond_half = product - floor - 0.5
    up = (beyond_half > 0) | ((beyond_half == 0) & ((error > 0) | ((error == 0) & (floor % 2 == 1))))
    return np.asarray(np.copysign((floor + up) / factor, values), np.float64)


def _outcome(parts: tuple[Part, ...]) -> _Outcome:
    matches = [match(truth, detections, iou_threshold=IOU, strict=True) for truth, detections in parts]
    outcome = np.concatenate([one.outcome for one in matches])
    on_unknown = np.concatenate([_on_unknown(*part) for part in parts])
    everything = joined(*(detections for _, detections in parts))
    return _Outcome(
        label=everything.label.astype(np.int64),
        scores=everything.scores,
        counted=outcome >= 0,
        correct=outcome == 1,
        on_unknown=on_unknown,
        order=decided_by_order(
            everything,
            kinds(outcome, on_unknown),
            claim=np.where(on_unknown, -1, joined_claims(*(one.claim for one in matches))),
            read_at_first=True,
        ),
        n_positive=np.sum([one.n_positive for one in matches], axis=0),
    )


def _on_unknown(truth: GroundTruth, detections: Detections) -> Bools:
    hit: Bools = best_overlap(truth, detections, same_class=False, mask=truth.label < 0)[1] > IOU
    return hit


def _objects_hit(truth: GroundTruth, detections: Detections) -> int:
    return int(overlaps_any(truth, detections, truth.label < 0, iou_threshold=IOU, strict=True).sum())


def _impacts(
    indices: dict[str, tuple[Floats, Int64s, Int64s]],
) -> tuple[dict[str, float | None], dict[str, dict[str, float]]]:
    impact: dict[str, float | None] = {}
    nearest: dict[str, dict[str, float]] = {}
    for tenths in range(1, 10):
        name = f"0.{tenths}"
        # In floats, as the official code does: at a midpoint the nearer one is what it takes for nearer.
        places = {known: int(np.argmin(np.abs(column[0] - tenths / 10))) for known, column in indices.items()}
        kept = sum(int(indices[known][1][place]) for known, place in places.items())
        hits = sum(int(indices[known][2][place]) for known, place in places.items())
        impact[name] = hits / kept if kept else None
        nearest[name] = {known: float(indices[known][0][place]) for known, place in places.items()}
    return impact, nearest
