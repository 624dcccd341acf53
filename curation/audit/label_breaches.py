"""Labels that a list must not carry: one judgement for the rules CO2, AS1 and AS2."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from curation.audit.labels import Labels, classes_of_task, view_labels
from curation.audit.needs import VIEWS, of_task, unlocated_finding
from curation.audit.rule import Finding, joined, undecidable
from curation.audit.target import AuditedList, AuditTarget
from curation.manifest.header import LabelView
from curation.sources.source import Bools

Forbidden = Callable[[AuditedList, int], Bools]
"""``forbidden(list, task)``: which labels are breaches, shape (classes + 2,): classes, unknown, a foreign class."""


def judge_labels(target: AuditTarget, lists: list[AuditedList], forbidden: Forbidden) -> list[Finding]:
    """Return for each list and task whether it carries a forbidden label.

    A label file is judged by its annotations. A declared view that lets no forbidden label through is sound whatever
    the boxes; one that does is a breach, counted where the sources are at hand. A view that nobody declared is
    undecidable: that it could be made as the principle asks proves nothing.
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
    return _counted(target, one, about, labels, forbidden, is_file=task in one.labels)


def _counted(
    target: AuditTarget, one: AuditedList, about: str, labels: Labels, forbidden: Bools, *, is_file: bool
) -> list[Finding]:
    rows = np.flatnonzero(forbidden[labels.label])
    if len(rows):
        names = list(dict.fromkeys(label_text(target, label) for label in labels.label[rows].tolist()))
        text = f"{len(rows):,} {labels.unit} labelled {joined(names)} by {labels.origin}"
        return [Finding("fail", about, len(rows), text, _examples(target, one, labels, rows))]
    if is_file:
        return [Finding("pass", about, text=f"{len(labels):,} boxes of {labels.origin}")]
    if not len(labels):
        return [
            Finding(
                "fail", about, text="the declared view lets such labels through; no box was at hand to count"
            )
        ]
    return unlocated_finding(target, one) or [
        Finding("pass", about, text=f"none among {len(labels):,} {labels.unit}")
    ]


def _examples(target: AuditTarget, one: AuditedList, labels: Labels, rows: np.ndarray) -> tuple[str, ...]:
    texts = []
    for image in target.first(np.unique(labels.image[rows])):
        label = labels.label[rows[labels.image[rows] == image]][0]
        [place] = target.examples(np.array([image], np.int32), [one])
        texts.append(f"{place}: {label_text(target, int(label))}")
    return tuple(texts)
