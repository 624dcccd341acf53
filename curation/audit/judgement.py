"""What rules share: how one is judged, what it says when data are missing, and which labels a list must not carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from curation.audit.labels import Labels, classes_of_task, uncovered, unit_of, unsure, view_labels
from curation.audit.rule import Finding, Outcome, Rule, joined, not_applicable, undecidable
from curation.audit.target import AuditedList, AuditTarget
from curation.manifest.header import LabelView
from curation.sources.source import Bools, Int64s
from curation.wording import counted

TASKS = "the classes of each task: --tasks reowod|ore|s-owodb, or a file that lists them"
ROLES = "the role of the lists: --role LIST=train, =val, =test; of tasks =train:1, =finetune:2"
SOURCES = "the raw annotations of these images: --source NAME=PATH"
BOXES = "an annotation file with boxes instead of a table of image and class: --source NAME=PATH"
COMPLETE = (
    "an annotation file instead of a table of image and class, which may miss classes: --source NAME=PATH; "
    "--exhaustive NAME if the table misses none"
)
EXHAUSTIVE = "whether every object of every class is annotated on every image of the source: --exhaustive NAME"
VIEWS = (
    "the labels that these lists carry: --labels LIST=FILE.json for published labels, "
    "or --view ROLE=VIEW for the rule behind them"
)
LABELS = "a label file that holds all images of the list: --labels LIST=FILE.json"
LISTS = "the id lists of these parts: `curation import` or `curation build` completes the manifest"


def judged(rule: Rule, target: AuditTarget) -> Outcome:
    """Return what a rule says of a target; without the tasks or the lists that it needs, that they are missing."""
    if rule.of_published_lists and target.published is None:
        return not_applicable("the benchmark is not a folder of lists")
    if rule.tasks and not target.tasks:
        if not target.expects_tasks:
            return not_applicable("the benchmark has no tasks")
        return Outcome((undecidable("tasks", TASKS),))
    if rule.roles and not target.with_role(*rule.roles):
        if target.lists or (target.published is not None and len(target.files) < 2):
            return not_applicable(f"there is no {' or '.join(rule.roles)} list")
        found = undecidable("lists", ROLES, "no name says train, val or test" if target.published else "")
        return Outcome((replace(found, lists=tuple(one.name for one in target.files)),))
    return rule.on(target)


def missing_lists(lists: Sequence[AuditedList]) -> list[Finding]:
    """Return the finding that some parts of a manifest have no list."""
    names = [one.name for one in lists if not one.available]
    return [undecidable(joined(names), LISTS)] if names else []


def unlocated_finding(target: AuditTarget, one: AuditedList, need: str = SOURCES) -> list[Finding]:
    """Return the finding that some images of a list are in no available source, but for test images, told by LI3."""
    if not one.available:
        return missing_lists([one])
    count = len(target.unlocated(one)) - (len(target.absent(one)) if one.role == "test" else 0)
    text = f"no available source holds {count:,} of its {counted(len(one.unique), 'image')}"
    return [undecidable(one.name, need, text)] if count else []


def unlocated_need(target: AuditTarget, lists: Sequence[AuditedList]) -> str:
    """Return which data would tell what the images of some lists show: sources for some, or fuller ones for all."""
    return SOURCES if any(len(target.unlocated(one)) for one in lists) else COMPLETE


def uncovered_finding(target: AuditTarget, one: AuditedList, task: int) -> list[Finding]:
    """Return the finding that the label file of a list lacks some of its images: what it says of them is not known."""
    images = uncovered(target, one, task)
    if not len(images):
        return []
    name, count, size = one.labels[task].name, len(images), len(one.unique)
    text = f"label file {name} lacks {count:,} of its {counted(size, 'image')}"
    if count == size:
        every = f"all of its {size:,} images" if size > 1 else "its only image"
        text = f"label file {name} lacks {every}; it may belong to another list"
    return [undecidable(of_task(target, one, task), LABELS, text, target.examples(images, [one]))]


def label_warnings(target: AuditTarget) -> list[str]:
    """Return the label files that lack images of their list, each with the first few of these images."""
    return [
        f"{found.about}: {found.text}: {'; '.join(found.examples)}"
        for one in target.lists
        for task in sorted(one.labels)
        for found in uncovered_finding(target, one, task)
    ]


def unseen_boxes(target: AuditTarget, one: AuditedList, about: str) -> list[Finding]:
    """Return the finding that nothing is known of the raw boxes of a list; none where some are there."""
    if not one.available:
        return missing_lists([one])
    if not len(target.held(one)):
        return [undecidable(about, SOURCES)]
    return [undecidable(about, BOXES)] if unit_of(target, one) != "boxes" else []


def of_task(target: AuditTarget, one: AuditedList, task: int) -> str:
    """Return how findings call a list in a task."""
    name = target.tasks[task].name
    return one.name if len(one.tasks) == 1 else f"{one.name} at {name}"


def emitted(target: AuditTarget, view: LabelView, task: int) -> Bools:
    """Return which labels a view can give in a task, shape (classes + 2,): classes, unknown, a foreign class."""
    table = np.zeros(len(target.classes) + 2, np.bool_)
    for position, entry in enumerate(classes_of_task(target, task)):
        treatment = getattr(view, entry.role)
        if treatment == "rename:unknown":
            table[target.unknown_label] = True
        elif treatment != "drop":
            table[position] = True
    return table


def label_text(target: AuditTarget, label: int) -> str:
    """Return the name of a label."""
    if label == target.unknown_label:
        return "unknown"
    return target.classes[label].name if label >= 0 else "a class outside the benchmark"


def forbidden_labels(target: AuditTarget, one: AuditedList, task: int, forbidden: Bools) -> list[Finding]:
    """Return whether a list carries a forbidden label in a task: one judgement for the rules CO2, AS1 and AS2.

    A label file is judged by its annotations, on the images that it holds: what it says of others is not known, and a
    file without any label on a list's images proves nothing. A declared view that lets no forbidden label through is
    sound whatever the boxes; one that does is a violation, counted where the sources are available. A view that nobody
    declared is undecidable: that it could be made as the principle asks proves nothing.

    Parameters
    ----------
    forbidden : ndarray of bool, shape (classes + 2,)
        Which labels are violations: classes, unknown, a foreign class.
    """
    about = of_task(target, one, task)
    if task not in one.labels:
        if one.view is None or not one.view_declared:
            return [undecidable(about, VIEWS)]
        through = emitted(target, one.view, task) & forbidden
        if not through.any():
            return [Finding("pass", about, text="the declared view lets none through")]
    labels = view_labels(target, one, task)
    assert labels is not None  # noqa: S101
    rows = np.flatnonzero(forbidden[labels.label])
    if len(rows):
        names = list(dict.fromkeys(label_text(target, label) for label in labels.label[rows].tolist()))
        least = "at least " if len(unsure(target, one, task)) else ""
        text = f"{least}{labels.counted(len(rows))} labelled {joined(names)} in {labels.origin}"
        found = [Finding("fail", about, len(rows), text, _examples(target, one, labels, rows))]
        return found + uncovered_finding(target, one, task)
    if task in one.labels:
        missing = uncovered_finding(target, one, task)
        covered = len(one.unique) - len(uncovered(target, one, task))
        text = f"none among {labels.counted()} of {labels.origin} on {counted(covered, 'image')}"
        if covered and not len(labels):
            return [undecidable(about, LABELS, text), *missing]
        return ([Finding("pass", about, text=text)] if covered else []) + missing
    held = target.held(one)
    if not len(held):
        return [
            Finding("fail", about, text="the declared view lets such labels through; no boxes were available to count")
        ]
    text = f"none among {labels.counted()}"
    if target.incomplete(held).any():
        return [undecidable(about, COMPLETE, text)]
    return unlocated_finding(target, one) or [Finding("pass", about, text=text)]


def _examples(target: AuditTarget, one: AuditedList, labels: Labels, rows: Int64s) -> tuple[str, ...]:
    texts = []
    for image in target.first(np.unique(labels.image[rows])):
        label = labels.label[rows[labels.image[rows] == image]][0]
        [place] = target.examples(np.array([image], np.int32), [one])
        texts.append(f"{place}: {label_text(target, int(label))}")
    return tuple(texts)
