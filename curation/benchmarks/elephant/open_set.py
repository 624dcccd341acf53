"""A-OSE on the Elephant paper's parts, and wilderness impact as the OWOD code computes it (``voc_eval``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from curation.benchmarks.elephant.variants import OWOD
from curation.evaluation.input_order import decided_by_order, joined, joined_claims, kinds
from curation.evaluation.matching import OperatingPoints, OverlappingPairs, assign, overlaps_any, recall_names
from curation.evaluation.open_set import TENTHS, Outcomes, RecallPoints, lies_on, recall_points
from curation.evaluation.problem import Bools, Detections, GroundTruth
from curation.evaluation.variants import IOU, round_as_text

Part = tuple[GroundTruth, Detections]


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
    found = _outcomes(rounded)
    detected = np.bincount(found.label, minlength=len(classes))
    by_class = recall_points(found, len(classes))
    impact, nearest = _impacts({classes[number]: one for number, one in by_class.items()})
    per_class = np.bincount(found.label[found.on_unknown()], minlength=len(classes))
    result: dict[str, Any] = {
        "WI": impact,
        "nearest_recall": nearest,
        "classes_left_out": {
            name: "no detections" if found.n_positive[number] else "no ground truth"
            for number, name in enumerate(classes)
            if not found.n_positive[number] or not detected[number]
        },
        "AOSE_total": int(found.on_unknown().sum()),
        "AOSE_per_class": dict(zip(classes, per_class.tolist(), strict=True)),
        "AOSE_instances": sum(_objects_hit(truth, detections) for truth, detections in rounded),
        "n_unknown": sum(int((truth.label < 0).sum()) for truth, _ in parts),
        "input_order": found.order.record("WI"),
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


def _outcomes(parts: tuple[Part, ...]) -> Outcomes:
    matches = [assign(truth, detections, OWOD) for truth, detections in parts]
    outcome = np.concatenate([one.outcome for one in matches])
    on_unknown = np.concatenate([_on_unknown(*part) for part in parts])
    everything = joined(*(detections for _, detections in parts))
    rows = np.flatnonzero(on_unknown)
    return Outcomes(
        label=everything.label,
        scores=everything.scores,
        outcome=outcome,
        n_positive=np.sum([one.n_positive for one in matches], axis=0),
        target=np.concatenate([truth.label < 0 for truth, _ in parts]),
        taken=np.concatenate([one.truth for one in matches]),
        # Which object each lies on is of no account here.
        pairs=OverlappingPairs(rows, np.zeros_like(rows), np.zeros(len(rows))),
        order=decided_by_order(
            everything,
            kinds(outcome, on_unknown),
            claim=np.where(on_unknown, -1, joined_claims(*(one.claim for one in matches))),
            read_at_first=True,
        ),
    )


def _on_unknown(truth: GroundTruth, detections: Detections) -> Bools:
    return lies_on(truth, detections, truth.label < 0, OWOD)


def _objects_hit(truth: GroundTruth, detections: Detections) -> int:
    return int(overlaps_any(truth, detections, truth.label < 0, iou_threshold=IOU, strict=OWOD.strict).sum())


def _impacts(
    by_class: dict[str, RecallPoints],
) -> tuple[dict[str, float | None], dict[str, dict[str, float]]]:
    impact: dict[str, float | None] = {}
    nearest: dict[str, dict[str, float]] = {}
    for tenths in TENTHS:
        name = f"0.{tenths}"
        places = {known: one.nearest(tenths / 10) for known, one in by_class.items()}
        kept = sum(int(by_class[known].kept[place]) for known, place in places.items())
        hits = sum(int(by_class[known].on_unknown[place]) for known, place in places.items())
        impact[name] = hits / kept if kept else None
        nearest[name] = {known: float(by_class[known].recall[place]) for known, place in places.items()}
    return impact, nearest
