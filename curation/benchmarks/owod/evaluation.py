"""Everything measured of one OWOD task, as one result a profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from curation.benchmarks.owod.known import (
    TENTHS,
    average_precision,
    mean,
    on_unknown_objects,
    plateaus,
    wilderness_impact,
)
from curation.benchmarks.owod.unknown import operating_curve, targets, unknown_by_class, unknown_counts
from curation.evaluation.columns import Detections
from curation.evaluation.outcomes import PROFILES, Outcomes, Profile, outcomes
from curation.evaluation.task_truth import TaskTruth
from curation.evaluation.truth import UNKNOWN

_NO_UNKNOWN = "no unknown object counts in this task"
_BY_ORDER = "AP and WI (equal scores keep input order)"
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


def evaluate_task(
    truth: TaskTruth, detections: Detections, profiles: Sequence[str] = ("clean",)
) -> dict[str, Any]:
    """Return every number of a task, ``"TASK/PROFILE"`` to its section; undefined ones are None with a reason.

    Each section holds the numbers that `DEFINITIONS` names, ``AP_per_class``, ``classes`` (a table of every class),
    ``unknown_per_class`` (by original class, None where the truth does not say), ``WI_curve``, ``WI_points`` (each
    class at every recall it reaches), ``WI_left_out``, ``unknown_curve``, ``counts``, ``input_order``,
    ``settings``, ``undefined`` (reasons) and ``notes``.

    Parameters
    ----------
    truth : TaskTruth
    detections : Detections
        Labels as in `truth`; the last is unknown.
    profiles : sequence of {"clean", "ore", "owdetr"}
    """
    cached: dict[bool, Outcomes] = {}
    sections = {}
    for name in profiles:
        profile = PROFILES[name]
        # Profiles ore and owdetr differ in AP alone.
        if profile.as_text not in cached:
            cached[profile.as_text] = outcomes(truth, detections, profile)
        sections[f"{truth.task.name}/{name}"] = _Section(truth, cached[profile.as_text], profile).result()
    return sections


class _Section:
    """One task under one profile."""

    def __init__(self, truth: TaskTruth, found: Outcomes, profile: Profile) -> None:
        self.truth, self.found, self.profile = truth, found, profile
        self.classes = truth.truth.classes
        self.hits = on_unknown_objects(found)
        self.undefined: dict[str, str] = {}
        self.has_unknown = bool(found.target.any())
        # What the official code prints where there is nothing to divide by; also for no detections at all.
        self.nothing = 0.0 if profile.zero_for_nothing or not len(found.label) else None

    def result(self) -> dict[str, Any]:
        sections = {**self._known(), **self._unknown(), **self._impact(), **self._tables()}
        notes = self._notes()
        return {
            "task": self.truth.task.name,
            "profile": self.profile.name,
            "profile_meaning": self.profile.meaning,
            **sections,
            "counts": self._counts(),
            "input_order": self.found.order.record(_BY_ORDER),
            "settings": self._settings(),
            "undefined": self.undefined,
            "notes": notes,
        }

    def _known(self) -> dict[str, Any]:
        self.ap = average_precision(self.found, self.profile)
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
        self.targets = targets(self.truth, self.found)
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
        by_class = plateaus(self.found)
        curve = wilderness_impact(by_class, self.classes)
        readings = ("WI", "WI_closed_set_denominator")
        for name in readings:
            values = [
                value if above or value is not None else self.nothing
                for value, above in zip(curve[name], curve["on_unknown"], strict=True)
            ]
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
                name: "no objects" if not self.found.n_positive[number] else "no detections"
                for number, name in enumerate(self.classes[:-1])
                if number not in by_class
            },
            "WI_points": {self.classes[number]: one.as_lists() for number, one in by_class.items()},
        }

    def _tables(self) -> dict[str, Any]:
        return {
            "classes": self._class_rows(),
            "unknown_per_class": unknown_by_class(self.truth, self.found, self.targets)
            if self.has_unknown
            else None,
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
        counts = {
            name: np.bincount(labels, minlength=len(self.classes)).tolist()
            for name, labels in columns.items()
        }
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
            "detections_per_image": {
                name: count / lines if lines else None for name, count in per_image.items()
            },
            "FP_u": int(((self.found.label == self.truth.unknown) & (self.found.outcome == 0)).sum()),
        }

    def _settings(self) -> dict[str, Any]:
        text = self.profile.as_text
        return {
            "iou": "> 0.5" if text else ">= 0.5",
            "boxes": "scores .3f, corners .1f, whole ground-truth corners" if text else "continuous",
            "crowd": "ordinary objects" if text else "ignored",
            "difficult": "ignored (A-OSE and WI count overlaps with them)" if text else "ignored",
            "average_precision": "11-point, recalls k * 0.1 in floating point"
            if self.profile.eleven_points
            else "area",
            "ties": "equal scores in input order",
            "WI_recall": "0.8",
            "FN_u_star": "known true positives included",
            "repeats": self.truth.repeats,
        }

    def _notes(self) -> list[str]:
        empty = [name for name, n in zip(self.classes[:-1], self.found.n_positive, strict=False) if not n]
        notes = []
        if empty:
            notes.append(f"{len(empty)} known classes have no objects and are left out: {', '.join(empty)}")
        if len(self.found.label) and not (self.found.label == self.truth.unknown).any():
            notes.append("no detection is called unknown: UR is 0 by that alone")
        if not len(self.found.label):
            notes.append(
                "there are no detections: precision and WI are given as 0, as the official code does"
            )
        if self.profile.as_text and self.truth.truth.crowd.any():
            notes.append(
                f"{int(self.truth.truth.crowd.sum())} crowd regions count as ordinary objects, as in the official files"
            )
        if note := self.found.order.note(_BY_ORDER):
            notes.append(note)
        if self.truth.repeats == "keep" and self.truth.repeated_lines:
            notes.append(
                f"{self.truth.repeated_lines} repeated lines of the image list count again: they lower recall"
            )
        return notes
