"""Labels that a list must not carry: one judgement for the rules CO2, AS1 and AS2."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from curation.audit.labels import Labels, classes_of_task, uncovered, unsure, view_labels
from curation.audit.needs import COMPLETE, LABELS, VIEWS, of_task, uncovered_finding, unlocated_finding
from curation.audit.rule import Finding, joined, undecidable
from curation.audit.target import AuditedList, AuditTarget
from curation.manifest.header import LabelView
from curation.sources.source import Bools

Forbidden = Callable[[AuditedList, int], Bools]
"""``forbidden(list, task)``: which labels are breaches, shape (classes + 2,): classes, unknown, a foreign class."""


def judge_labels(target: AuditTarget, lists: list[AuditedList], forbidden: Forbidden) -> list[Finding]:
    """Return for each list and task whether it carries a forbidden label.

    A label file is judged by its annotations, on the images that it holds: what it says of others is not known, and a
    file without any label on a list's images proves nothing. A declared view that lets no forbidden label through is
    sound whatever the boxes; one that does is a breach, counted where the sources are at hand. A view that nobody
    declared is undecidable: that it could be made as the principle asks proves nothing.
    """
    return [
        finding
        for one in lists
        for task in one.tasks
        for finding in _judge(target, one, task, forbidden(one, task))
    ]


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


def _judge(target: AuditTarget, one: AuditedList, task: int, forbidden: Bools) -> list[Finding]:
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
        text = f"{least}{len(rows):,} {labels.unit} labelled {joined(names)} by {labels.origin}"
        found = [Finding("fail", about, len(rows), text, _examples(target, one, labels, rows))]
        return found + uncovered_finding(target, one, task)
    if task in one.labels:
        return _none_in_file(target, one, task, about, labels)
    return _none_by_view(target, one, about, labels)


def _none_in_file(
    target: AuditTarget, one: AuditedList, task: int, about: str, labels: Labels
) -> list[Finding]:
    covered = len(one.unique) - len(uncovered(target, one, task))
    text = f"none among {len(labels):,} boxes of {labels.origin} on {covered:,} images"
    if covered and not len(labels):
        return [undecidable(about, LABELS, text), *uncovered_finding(target, one, task)]
    passed = [Finding("pass", about, text=text)] if covered else []
    return passed + uncovered_finding(target, one, task)


def _none_by_view(target: AuditTarget, one: AuditedList, about: str, labels: Labels) -> list[Finding]:
    there = one.unique[target.home[one.unique] >= 0]
    if not len(there):
        text = "the declared view lets such labels through; no box was at hand to count"
        return [Finding("fail", about, text=text)]
    text = f"none among {len(labels):,} {labels.unit}"
    if target.incomplete(there).any():
        return [undecidable(about, COMPLETE, text)]
    return unlocated_finding(target, one) or [Finding("pass", about, text=text)]


def _examples(target: AuditTarget, one: AuditedList, labels: Labels, rows: np.ndarray) -> tuple[str, ...]:
    texts = []
    for image in target.first(np.unique(labels.image[rows])):
        label = labels.label[rows[labels.image[rows] == image]][0]
        [place] = target.examples(np.array([image], np.int32), [one])
        texts.append(f"{place}: {label_text(target, int(label))}")
    return tuple(texts)
