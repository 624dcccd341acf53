"""The measures of one open-world task under each variant: what becomes of each detection, and every number of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from curation.evaluation.curves import average_precision
from curation.evaluation.input_order import decided_by_order, kinds
from curation.evaluation.matching import assign, overlapping_pairs, positives
from curation.evaluation.open_set import (
    TENTHS,
    Outcomes,
    impact_at_recalls,
    operating_curve,
    recall_points,
    targets,
    unknown_by_class,
    unknown_counts,
)
from curation.evaluation.outcomes import Outcomes as SingleOutcomes
from curation.evaluation.problem import UNKNOWN, Detections, GroundTruth
from curation.evaluation.truth import TaskTruth
from curation.evaluation.variants import IOU, Rules, round_as_text

CLEAN = Rules(
    name="clean",
    meaning="continuous boxes, IoU >= 0.5 with the best object that is still free, crowd and difficult regions "
    "ignored, area AP, undefined is null",
    taken="best_free",
    crowd="cover",
)
TEXT = Rules(
    name="text",
    meaning="voc_eval: scores to 3 and corners to 1 decimal, whole ground-truth corners, IoU > 0.5 with the "
    "object of highest IoU of the class, crowd regions ordinary, difficult ones ignored",
    overlap=">",
    crowd="ordinary",
    text=True,
    nothing="zero",
    impact_without_objects=True,
)
"""What the codes share that write detections as VOC's text files: rooms make their variants of it."""
_NO_UNKNOWN = "no unknown object counts in this task"
_OF_UNKNOWN = (
    "AP_unknown",
    "UR",
    "UDR",
    "UDP",
    "UDR_excl_known_tp",
    "UDP_excl_known_tp",
    "A_OSE_detections",
    "A_OSE_objects",
)


def outcomes(truth: TaskTruth, detections: Detections, rules: Rules) -> Outcomes:
    """Return what becomes of each detection under a variant."""
    objects, detections = _compared(truth, scored_of(truth, detections, rules), rules)
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
        decided_by_order=decided_by_order(
            detections,
            kinds(matches.outcome, hit),
            claim=None if is_free else np.where(hit, -1, matches.claim),
            free=is_free,
            read_at_first=True,
        ),
    )


def scored_of(truth: TaskTruth, detections: Detections, rules: Rules) -> Detections:
    """Return the detections that a variant scores: those of known classes from a score on, where it says so."""
    if rules.known_above < 0:
        return detections
    return detections.take((detections.label == truth.unknown) | (detections.scores > rules.known_above))


def _compared(truth: TaskTruth, detections: Detections, rules: Rules) -> tuple[GroundTruth, Detections]:
    """Return both with the boxes that a variant compares."""
    return _as_text(truth, detections, rules.further_shift) if rules.text else (truth.truth, detections)


def single_outcomes(truth: TaskTruth, detections: Detections, rules: Rules) -> SingleOutcomes:
    """Return what became of each detection and object under a variant, as `outcomes` matched them."""
    found = outcomes(truth, detections, rules)
    scored = scored_of(truth, detections, rules)
    return SingleOutcomes.of(
        truth.truth,
        scored,
        rules,
        outcome=found.outcome,
        taken=found.taken,
        pairs=found.pairs,
        unknown=truth.truth.label == truth.unknown,
        counted=positives(truth.truth, rules),
        compared=_compared(truth, scored, rules),
    )


def _as_text(truth: TaskTruth, detections: Detections, shift: int) -> tuple[GroundTruth, Detections]:
    """Return both as the official evaluator reads them, in tenths of a pixel: whole numbers, so that IoU is exact.

    Ground truth: ``int(x + 1), int(y + 1), int(x + w + 1), int(y + h + 1)``, inclusive; as `int` truncates. Boxes that
    were such corners in the annotation file stay as they are. Left and upper edges of detections are moved by `shift`
    pixels besides.
    """
    objects = truth.truth
    x, y, w, h = objects.boxes.T
    further = np.where(truth.voc_corners[objects.image], 0, 1)
    left, top = np.trunc(x + 1) - 1, np.trunc(y + 1) - 1
    right, bottom = np.trunc(x + w + further), np.trunc(y + h + further)
    corners = np.stack([left, top, right - left, bottom - top], axis=1)
    if shift:
        moved = detections.boxes + np.array([shift, shift, -shift, -shift])
        detections = replace(detections, boxes=moved)
    text = round_as_text(detections)
    return (
        replace(objects, boxes=corners * 10),
        replace(text, boxes=np.rint(text.boxes * 10)),
    )


def evaluate_task(truth: TaskTruth, detections: Detections, variants: Sequence[Rules] = (CLEAN,)) -> dict[str, Any]:
    """Return every number of a task, ``"TASK/VARIANT"`` to its section; undefined ones are None with a reason.

    Each section holds the numbers that `curation.evaluation.open_world.report.DEFINITIONS` names,
    ``AP_per_class``, ``classes`` (a table of every class),
    ``unknown_per_class`` (by original class, None where the truth does not say), ``WI_curve``, ``WI_points`` (each
    class at every recall it reaches), ``WI_left_out``, ``unknown_curve``, ``counts``, ``decided_by_order``,
    ``settings``, ``undefined`` (reasons) and ``notes``.

    Parameters
    ----------
    truth : TaskTruth
    detections : Detections
        Labels as in `truth`; the last is unknown.
    variants : sequence of Rules
    """
    cached: dict[Rules, Outcomes] = {}
    sections = {}
    for rules in variants:
        # Variants that differ in AP alone share the rest.
        same = replace(rules, name="", meaning="", average_precision="area")
        if same not in cached:
            cached[same] = outcomes(truth, detections, rules)
        sections[f"{truth.task.name}/{rules.name}"] = _Section(truth, cached[same], rules).result()
    return sections


class _Section:
    """One task under one profile."""

    def __init__(self, truth: TaskTruth, found: Outcomes, rules: Rules) -> None:
        self.truth, self.found, self.rules = truth, found, rules
        self.classes = truth.truth.classes
        self.hits = found.on_unknown()
        self.undefined: dict[str, str] = {}
        self.has_unknown = bool(found.target.any())
        # What the official code prints where there is nothing to divide by; also for no detections at all.
        self.nothing = 0.0 if rules.nothing == "zero" or not len(found.label) else None

    def result(self) -> dict[str, Any]:
        sections = {**self._known(), **self._unknown(), **self._impact(), **self._tables()}
        notes = self._notes()
        return {
            "task": self.truth.task.name,
            "profile": self.rules.name,
            "profile_meaning": self.rules.meaning,
            **sections,
            "counts": self._counts(),
            "decided_by_order": self.found.decided_by_order,
            "settings": self._settings(),
            "undefined": self.undefined,
            "notes": notes,
        }

    def _average_precisions(self) -> list[float | None]:
        """Return the AP of each class, unknown last, in percent; None for a class without objects."""
        found = self.found
        values: list[float | None] = []
        for number, rows in found.ranked():
            n = int(found.n_positive[number])
            rows = rows[found.outcome[rows] >= 0]
            ap = average_precision(found.scores[rows], found.outcome[rows] == 1, n, self.rules)
            values.append(100 * ap if n else None)
        return values

    def _known(self) -> dict[str, Any]:
        self.ap = self._average_precisions()
        n_previous = len(self.truth.task.previous)
        groups = {
            "mAP_prev": self.ap[:n_previous],
            "mAP_cur": self.ap[n_previous:-1],
            "mAP_both": self.ap[:-1],
        }
        for name, values in groups.items():
            if mean(values) is None:
                self.undefined[name] = "no class has objects" if values else "there are no such classes"
        return {
            **{name: mean(values) for name, values in groups.items()},
            "AP_per_class": dict(zip(self.classes[:-1], self.ap[:-1], strict=True)),
        }

    def _unknown(self) -> dict[str, Any]:
        self.targets = targets(self.truth, self.found, added=self.rules.added_objects)
        counts = unknown_counts(self.targets)
        is_unknown = self.found.label == self.truth.unknown
        counted = int((is_unknown & (self.found.outcome >= 0)).sum())
        precision = 100 * counts["TP_u"] / counted if counted else self.nothing
        if not self.has_unknown:
            counts["A_OSE_objects"] = None
            self.undefined |= dict.fromkeys(_OF_UNKNOWN, _NO_UNKNOWN)
        elif counts["UDP"] is None or counts["UDP_excl_known_tp"] is None:
            names = [name for name in ("UDP", "UDP_excl_known_tp") if counts[name] is None]
            self.undefined |= dict.fromkeys(names, "TP_u + FN_u_star is 0")
        if precision is None:
            self.undefined["P_unknown"] = "no detection called unknown counts"
        return {
            **counts,
            "AP_unknown": self.ap[-1],
            "P_unknown": precision,
            "A_OSE_detections": int(self.hits.sum()) if self.has_unknown else None,
        }

    def _impact(self) -> dict[str, Any]:
        rules = self.rules
        by_class = recall_points(
            self.found,
            self.truth.unknown,
            without_objects=rules.impact_without_objects,
            added=rules.added_objects,
        )
        curve = impact_at_recalls(by_class, self.classes)
        readings = ("WI", "WI_closed_set_denominator")
        for name in readings:
            # The code prints 0 where no class has detections; where the first of all are ignored it has 0 / 0.
            values = curve[name] if by_class else [self.nothing] * len(curve[name])
            curve[name] = values if self.has_unknown else [None] * len(values)
            at_08 = curve[name][curve["recall"].index("0.80")]
            if at_08 is None:
                self.undefined[name] = "the denominator is 0" if self.has_unknown else _NO_UNKNOWN
        place = {f"0.{tenths}": 10 * tenths - 1 for tenths in TENTHS}
        return {
            **{name: curve[name][place["0.8"]] for name in readings},
            "WI_at_recall": {recall: curve["WI"][at] for recall, at in place.items()},
            "WI_curve": curve,
            "WI_left_out": {
                name: "no detections" if rules.impact_without_objects or self.found.n_positive[number] else "no objects"
                for number, name in enumerate(self.classes[:-1])
                if number not in by_class
            },
            "WI_points": {self.classes[number]: one.as_lists() for number, one in by_class.items()},
        }

    def _tables(self) -> dict[str, Any]:
        return {
            "classes": self._class_rows(),
            "unknown_per_class": unknown_by_class(self.truth, self.found, self.targets) if self.has_unknown else None,
            "unknown_curve": operating_curve(self.targets, self.found, self.truth.unknown),
        }

    def _class_rows(self) -> list[dict[str, Any]]:
        label, outcome, n_previous = self.found.label, self.found.outcome, len(self.truth.task.previous)
        columns = {
            "detections": label,
            "tp": label[outcome == 1],
            "fp": label[outcome == 0],
            "ignored": label[outcome < 0],
            "on_unknown": label[self.hits],
        }
        counts = {name: np.bincount(labels, minlength=len(self.classes)).tolist() for name, labels in columns.items()}
        rows = []
        for number, (name, n) in enumerate(zip(self.classes, self.found.n_positive.tolist(), strict=True)):
            role = "previous" if number < n_previous else "current"
            row = {
                "class": name,
                "role": UNKNOWN if number == self.truth.unknown else role,
                "AP": self.ap[number],
                "n": n,
                **{column: values[number] for column, values in counts.items()},
            }
            row["max_recall"] = row["tp"] / n if n else None
            if number == self.truth.unknown:
                row["on_unknown"] = None
            rows.append(row)
        return rows

    def _counts(self) -> dict[str, Any]:
        truth = self.truth.truth
        lines = int(self.truth.lines.sum())
        n_unknown = int((self.found.label == self.truth.unknown).sum())
        total = len(self.found.label)
        per_image = {"all": total, "known": total - n_unknown, "unknown": n_unknown}
        return {
            "images": truth.n_images,
            "lines": lines,
            "images_without_annotation": truth.n_images - len(np.unique(truth.image)),
            "objects": len(truth.label),
            "unknown_objects": int((truth.label == self.truth.unknown).sum()),
            "crowd": int(truth.crowd.sum()),
            "difficult": int(truth.difficult.sum()),
            "detections": total,
            "detections_per_image": {name: count / lines if lines else None for name, count in per_image.items()},
            "FP_u": int(((self.found.label == self.truth.unknown) & (self.found.outcome == 0)).sum()),
        }

    def _settings(self) -> dict[str, Any]:
        text = self.rules.text
        return {
            "iou": "> 0.5" if text else ">= 0.5",
            "boxes": "scores .3f, corners .1f, whole ground-truth corners" if text else "continuous",
            "crowd": "ordinary objects" if text else "ignored",
            "difficult": "ignored (A-OSE and WI count overlaps with them)" if text else "ignored",
            "average_precision": "11-point, recalls k * 0.1 in floating point"
            if self.rules.average_precision == "eleven_point_in_floats"
            else "area",
            "ties": "equal scores in input order",
            "WI_recall": "0.8",
            "FN_u_star": "known true positives included",
            "repeats": self.truth.repeats,
            **({"known_scores": f"> {self.rules.known_above}"} if self.rules.known_above >= 0 else {}),
            **({"left_and_upper_edges": f"+{self.rules.further_shift} once more"} if self.rules.further_shift else {}),
            **({"recall": f"found / (objects + {self.rules.added_objects:g})"} if self.rules.added_objects else {}),
            **({"WI_without_objects": "first detection"} if self.rules.impact_without_objects else {}),
        }

    def _notes(self) -> list[str]:
        empty = [name for name, n in zip(self.classes[:-1], self.found.n_positive, strict=False) if not n]
        notes = []
        if empty:
            note = f"{len(empty)} known classes have no objects and are left out: {', '.join(empty)}"
            first = "; WI counts the first detection of each, as the code does"
            notes.append(note + first * self.rules.impact_without_objects)
        if len(self.found.label) and not (self.found.label == self.truth.unknown).any():
            notes.append("no detection is called unknown: UR is 0 by that alone")
        if not len(self.found.label):
            notes.append("there are no detections: precision and WI are given as 0, as the official code does")
        if self.rules.text and self.truth.truth.crowd.any():
            notes.append(
                f"{int(self.truth.truth.crowd.sum())} crowd regions count as ordinary objects, as in the official files"
            )
        if self.truth.repeats == "keep" and self.truth.repeated_lines:
            notes.append(f"{self.truth.repeated_lines} repeated lines of the image list count again: they lower recall")
        return notes


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the numbers among some values; None where there is none."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None
