"""CO, class openness: the unknown stays open. No label tells of a class before the task that introduces it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from curation.audit.classes import UNKNOWN_NAME, TaskClasses, fold
from curation.audit.judgement import (
    COMPLETE,
    forbidden_labels,
    missing_lists,
    of_task,
    uncovered_finding,
    unlocated_finding,
    unlocated_need,
)
from curation.audit.labels import Labels, hidden_unknowns, raw_labels, uncovered, unit_of, unsure, view_labels
from curation.audit.rule import Check, Finding, joined, undecidable
from curation.audit.target import SHOWN_EXAMPLES, AuditedList, AuditTarget
from curation.sources.source import Int32s
from curation.wording import counted


def known_and_unknown_are_apart(target: AuditTarget) -> list[Finding]:
    """CO1: K_t and U_t share no class under any spelling, and ``unknown`` is a member of neither."""
    violations: dict[str, list[str]] = {}
    for task in target.tasks:
        for text in _overlap(target, task) + _called_unknown(task):
            violations.setdefault(text, []).append(task.name)
    if not violations:
        return [Finding("pass", "tasks", text=f"{counted(len(target.tasks), 'task')}, {len(target.classes)} classes")]
    return [Finding("fail", joined(tasks), 1, text, (text,)) for text, tasks in violations.items()]


def _overlap(target: AuditTarget, task: TaskClasses) -> list[str]:
    unknown = target.names.variants(task.unknown)
    known = target.names.variants(task.known)
    return [
        f"{' = '.join(dict.fromkeys([*known[name], *unknown[name]]))} is known and unknown at once"
        for name in known
        if name in unknown
    ]


def _called_unknown(task: TaskClasses) -> list[str]:
    names = [name for name in (*task.known, *task.unknown) if fold(name) == UNKNOWN_NAME]
    return [f"a class is called {name!r}" for name in dict.fromkeys(names)]


def training_labels_are_known(target: AuditTarget, one: AuditedList, task: int) -> list[Finding]:
    """CO2: no label of a train, finetune or val view is outside K_t, or ``unknown`` (that of a val view: AS2)."""
    outside = np.append(target.introduced_in > task, [one.role != "val", True])
    return forbidden_labels(target, one, task, outside)


def tests_show_known_and_unknown(target: AuditTarget, one: AuditedList, task: int) -> list[Finding]:
    """CO3: while a class is unknown the test view holds known and unknown boxes; afterwards none unknown."""
    about = of_task(target, one, task)
    labels = view_labels(target, one, task)
    is_file = task in one.labels
    missing = uncovered_finding(target, one, task) if is_file else unlocated_finding(target, one)
    blank = len(uncovered(target, one, task)) == len(one.unique) if is_file else not len(target.held(one))
    if labels is None or (blank and missing):
        return missing
    silent = not is_file and bool(target.incomplete(one.unique).any())
    if not (len(labels) or is_file):
        text = "the test view holds no boxes"
        return missing or [undecidable(about, COMPLETE, text) if silent else Finding("fail", about, 1, text)]
    least = "at least " if len(unsure(target, one, task)) else ""
    unknown = int((labels.label == target.unknown_label).sum())
    known = int(((labels.label >= 0) & (labels.label < target.unknown_label)).sum())
    text = f"{least}{known:,} known and {least}{unknown:,} unknown {labels.unit} in {labels.origin}"
    if not target.tasks[task].unknown:
        if unknown:
            rows = np.unique(labels.image[labels.label == target.unknown_label])
            return [Finding("fail", about, unknown, text, target.examples(rows, [one]))]
        # A declared view of known classes alone gives no unknown box, whatever the images show.
        return (missing if is_file else []) or [Finding("pass", about, text=text)]
    if known and unknown:
        return [Finding("pass", about, text=text)]
    if is_file and missing:
        return missing
    need = unlocated_need(target, [one])
    return [undecidable(about, need, text) if silent else Finding("fail", about, 1, text)]


def classes_have_boxes(target: AuditTarget) -> Iterator[Finding]:
    """CO4: every class has a test box, and a training box in the task that introduces it."""
    if tests := target.with_role("test"):
        shown = [raw_labels(target, one) for one in tests]
        everywhere = np.arange(len(target.classes), dtype=np.int32)
        silent = [one.unique[target.incomplete(one.unique)] for one in tests]
        yield from _boxes_of(target, tests, shown, silent, everywhere, "test box")
    for task in range(len(target.tasks)):
        if trains := target.with_role("train", task=task):
            labels = [view_labels(target, one, task) for one in trains]
            own = np.flatnonzero(target.introduced_in == task).astype(np.int32)
            known = [one for one in labels if one is not None]
            silent = [unsure(target, one, task) for one in trains]
            what = f"training box in {target.tasks[task].name}"
            yield from _boxes_of(target, trains, known, silent, own, what)
            for one in trains:
                yield from uncovered_finding(target, one, task)


def _boxes_of(
    target: AuditTarget,
    lists: list[AuditedList],
    labels: list[Labels],
    silent: list[Int32s],
    classes: Int32s,
    what: str,
) -> list[Finding]:
    """Return whether each class has a box: one that is seen proves it, silence only where every image is known."""
    about = joined([one.name for one in lists])
    counts = np.zeros(len(target.classes) + 2, np.int64)
    for one in labels:
        counts += np.bincount(one.label + 1, minlength=len(target.classes) + 2)
    lacking = [target.classes[place].name for place in classes.tolist() if not counts[place + 1]]
    if not lacking:
        return [Finding("pass", about, text=f"{counted(len(classes), 'class', 'classes')}, each with a {what}")]
    if findings := missing_lists(lists):
        return findings
    if any(len(images) for images in silent):
        text = f"no {what} seen for {len(lacking)} of {len(classes)} classes: {joined(lacking)}"
        return [undecidable(about, unlocated_need(target, lists), text)]
    text = f"{counted(len(lacking), 'class', 'classes')} without a {what}: {joined(lacking)}"
    return [Finding("warn", about, len(lacking), text, tuple(sorted(lacking)[:SHOWN_EXAMPLES]))]


def hidden_unknown_objects(target: AuditTarget, one: AuditedList, task: int) -> list[Finding]:
    """CO5: how many train images of each task show objects of classes still unknown, unlabelled: allowed, reported."""
    if not len(target.held(one)):
        return unlocated_finding(target, one)
    images, n_objects = hidden_unknowns(target, one, task)
    later = target.introduced_in > task
    # Where no class is left for later, none can be hidden.
    silent = later.any() and target.unannotated(one.unique, later).any()
    least = "at least " if silent else ""
    text = (
        f"{least}{n_objects:,} {unit_of(target, one)} of classes still unknown, on {least}{len(images):,} of "
        f"{counted(len(one.unique), 'image')}"
    )
    return [Finding("info", of_task(target, one, task), len(images), text, target.examples(images, [one]))]


CHECKS: dict[str, Check] = {
    "CO1": known_and_unknown_are_apart,
    "CO2": training_labels_are_known,
    "CO3": tests_show_known_and_unknown,
    "CO4": classes_have_boxes,
    "CO5": hidden_unknown_objects,
}
