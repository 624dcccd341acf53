"""The open-world metrics of one detector, task by task: one section a task and profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from curation.benchmarks.owod.outcomes import PROFILES, outcomes
from curation.benchmarks.owod.report import DEFINITIONS, REPORT
from curation.errors import UsageError
from curation.evaluation.curves import average_precision
from curation.evaluation.inputs import (
    POLICY,
    READING,
    CategoryIds,
    Policy,
    Reading,
    Truth,
    by_name,
    file_records,
    manifest_record,
    require_manifest_for_ids,
)
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
from curation.evaluation.problem import (
    UNKNOWN,
    Detections,
    OwodTask,
    choose_tasks,
    numbered,
    task_of_truth,
    tasks_of_file,
    tasks_of_manifest,
)
from curation.evaluation.readers import TaskDetections, read_task_detections
from curation.evaluation.result import Result
from curation.evaluation.truth import REPEATS, Repeats, TaskTruth, read_image_list, task_truth
from curation.evaluation.variants import Rules
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.progress import steps
from curation.sources.source import Source

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


Profile = Literal["clean", "ore", "owdetr", "all"]
_COLUMNS = ("WI_points", "unknown_curve")
"""What has an entry for each object found: CSV files and figures hold it, JSON does not."""


def evaluate(
    *,
    truth: Annotated[Mapping[str, Truth] | Truth, "[TASK=]FILE"],
    detections: Annotated[Mapping[str, Path] | Path, "[TASK=]FILE"],
    manifest: Annotated[Manifest | str | None, "MANIFEST"] = None,
    category_ids: CategoryIds | None = None,
    task: Annotated[tuple[str, ...], "TASK"] = (),
    part: Annotated[str | None, "PART"] = None,
    classes: Path | None = None,
    images: Path | None = None,
    profile: Profile | tuple[Profile, ...] = "clean",
    repeats: Repeats = "error",
    reading: Reading = READING,
    policy: Policy = POLICY,
) -> Result:
    """Score open-world detection: UR, UDR, UDP, A-OSE, wilderness impact, mAP of previous and current classes.

    Parameters
    ----------
    truth : Path or Source, or mapping of str to such
        COCO JSON, or a dataset root; of one task, or of all
    detections : Path, or mapping of str to Path
        COCO results, as a JSON list or one record a line, or a folder of VOC results (comp4_det_test_CLASS.txt); may be
        compressed by gzip
    manifest : Manifest or str, optional
        take tasks, class ids and the images of part TASK-test from it
    category_ids : {"manifest", "truth"}, optional
        of the detections: those of the manifest's classes or those of the ground truth; to be chosen where the two
        differ
    task : sequence of str
        score this task; by default all that have detections; may be repeated
    part : str, optional
        image list of the manifest, for one task (default: TASK-test)
    classes : Path, optional
        {"tasks": [{"name": "t1", "prev": [...], "cur": [...], "rest": [...]}]}
    images : Path, optional
        image list without a manifest: an id a line, repeats count
    profile : {"clean", "ore", "owdetr", "all"}, or several of them
        variant of the metrics
    repeats : {"error", "keep", "drop"}
        an image list that names an image twice: refuse it, count every line as the official code does, or take each
        image once
    reading : Reading
    policy : Policy
        detections of classes that are unknown in the task are strays too

    Returns
    -------
    Result
        Sections ``TASK/PROFILE``.

    Raises
    ------
    UsageError, MissingFileError, EvaluationError, PredictionError
        Options do not fit together; a file is not there, or does not hold what it should.
    """
    _check(manifest, classes, images, part, task)
    require_manifest_for_ids(category_ids, manifest=manifest, classes=classes)
    taken = load_manifest(manifest) if isinstance(manifest, str) else manifest
    opening = reading.opener()
    tasks = _tasks(truth, task, taken, classes, opening)
    names = [one.name for one in tasks]
    hint = f"one plain --detections FILE goes with --task {(task or names)[0]}"
    files: dict[str, Path] = by_name(detections, "--detections", "task", names, wanted=task, hint=hint)
    truths: dict[str, Truth] = by_name(truth, "--truth", "task", names, wanted=list(files), shared=True)
    profiles = ("clean", "ore", "owdetr") if profile == "all" else (profile,) if isinstance(profile, str) else profile
    inputs: dict[str, tuple[TaskTruth, TaskDetections]] = {}
    for one in steps([one for one in tasks if one.name in files], "reading tasks"):
        source = opening(truths[one.name])
        numbers = numbered(one, source, category_ids)
        lines = _list_of(taken, part, images, numbers)
        found = task_truth(source, numbers, lines, repeats=repeats)
        inputs[numbers.name] = found, read_task_detections(files[numbers.name], found, source, policy)
    whole: dict[str, Any] = {}
    for found, read in steps(inputs.values(), "evaluating tasks"):
        whole |= evaluate_task(found, read.detections, profiles)
    return Result(
        REPORT,
        _about(taken, part, inputs, profiles, repeats, {"classes": classes, "images": images}),
        {
            name: {key: entry for key, entry in section.items() if key not in _COLUMNS}
            for name, section in whole.items()
        },
        columns={name: {key: section[key] for key in _COLUMNS} for name, section in whole.items()},
        notes=[note for section in whole.values() for note in section["notes"]],
    )


def _check(manifest: object, classes: object, images: object, part: str | None, task: Sequence[str]) -> None:
    if manifest and (classes or images):
        raise UsageError(
            "--manifest names tasks and images already",
            expected="--manifest alone, or --classes and --images without it",
        )
    if part and not (manifest and len(task) == 1):
        raise UsageError("--part chooses a list of a manifest for one task", expected="--manifest MANIFEST --task TASK")


def _tasks(
    truth: Mapping[str, Truth] | Truth,
    task: Sequence[str],
    manifest: Manifest | None,
    classes: Path | None,
    opening: Callable[[Truth], Source],
) -> tuple[OwodTask, ...]:
    if manifest is not None:
        tasks = tasks_of_manifest(manifest)
    elif classes is not None:
        tasks = tasks_of_file(classes)
    else:
        if isinstance(truth, Mapping) or len(task) > 1:
            raise UsageError(
                "Several tasks need a list of their classes", expected="--classes FILE or --manifest MANIFEST"
            )
        return (task_of_truth(opening(truth), (task or ("test",))[0]),)
    choose_tasks(tasks, task)
    return tasks


def _list_of(
    manifest: Manifest | None, part: str | None, images: Path | None, task: OwodTask
) -> tuple[str, ...] | None:
    if manifest is not None:
        return manifest.ids(part or f"{task.name}-test")
    return None if images is None else read_image_list(images)


def _about(
    manifest: Manifest | None,
    part: str | None,
    inputs: Mapping[str, tuple[TaskTruth, TaskDetections]],
    profiles: Sequence[str],
    repeats: str,
    option_files: Mapping[str, Path | None],
) -> dict[str, Any]:
    """Return what the numbers rest on: version, digests of all inputs, classes by task, and what was left out."""
    from curation import __version__

    first = next(iter(inputs.values()))[0].task
    return {
        "protocol": "owod",
        "curation": __version__,
        "known_classes_from": first.origin,
        "category_ids": first.ids_from,
        "manifest": manifest_record(manifest, parts=[part or f"{task}-test" for task in inputs]),
        "option_files": file_records(option_files),
        "inputs": {
            task: {
                "truth": truth.file,
                "detections": {**read.read.file, "repeated_images": read.copies or None},
            }
            for task, (truth, read) in inputs.items()
        },
        "tasks": {
            task: {
                "previous": list(truth.task.previous),
                "current": list(truth.task.current),
                "unknown": None if truth.task.rest is None else list(truth.task.rest),
            }
            for task, (truth, _) in inputs.items()
        },
        "profiles": {name: PROFILES[name].meaning for name in profiles},
        "repeats": {repeats: REPEATS[repeats]},
        "definitions": DEFINITIONS,
    }


def evaluate_task(truth: TaskTruth, detections: Detections, profiles: Sequence[str] = ("clean",)) -> dict[str, Any]:
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
        rules = PROFILES[name]
        # Profiles ore and owdetr differ in AP alone.
        if rules.text not in cached:
            cached[rules.text] = outcomes(truth, detections, rules)
        sections[f"{truth.task.name}/{name}"] = _Section(truth, cached[rules.text], rules).result()
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
            "input_order": self.found.order.record(_BY_ORDER),
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
        by_class = recall_points(self.found, self.truth.unknown)
        curve = impact_at_recalls(by_class, self.classes)
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
        }

    def _notes(self) -> list[str]:
        empty = [name for name, n in zip(self.classes[:-1], self.found.n_positive, strict=False) if not n]
        notes = []
        if empty:
            notes.append(f"{len(empty)} known classes have no objects and are left out: {', '.join(empty)}")
        if len(self.found.label) and not (self.found.label == self.truth.unknown).any():
            notes.append("no detection is called unknown: UR is 0 by that alone")
        if not len(self.found.label):
            notes.append("there are no detections: precision and WI are given as 0, as the official code does")
        if self.rules.text and self.truth.truth.crowd.any():
            notes.append(
                f"{int(self.truth.truth.crowd.sum())} crowd regions count as ordinary objects, as in the official files"
            )
        if note := self.found.order.note(_BY_ORDER):
            notes.append(note)
        if self.truth.repeats == "keep" and self.truth.repeated_lines:
            notes.append(f"{self.truth.repeated_lines} repeated lines of the image list count again: they lower recall")
        return notes


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the numbers among some values; None where there is none."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None
