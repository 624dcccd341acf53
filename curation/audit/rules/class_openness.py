"""CO, class openness: the unknown stays open. No label tells of a class before the task that introduces it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from curation.audit.classes import UNKNOWN_NAME, fold
from curation.audit.judgement import (
    COMPLETE,
    ListInTask,
    cases,
    forbidden_labels,
    missing_lists,
    unlocated,
    unlocated_need,
)
from curation.audit.labels import Labels, raw_labels, unit_of
from curation.audit.lists import AuditedList
from curation.audit.rule import Check, Finding, joined, undecidable
from curation.audit.target import SHOWN_EXAMPLES, AuditTarget
from curation.sources.source import Bools
from curation.wording import counted


def known_and_unknown_are_apart(target: AuditTarget) -> list[Finding]:
    """CO1: K_t and U_t share no class under any spelling, and ``unknown`` is a member of neither."""
    violations: dict[str, list[str]] = {}
    for task in target.tasks:
        known, unknown = target.names.variants(task.known), target.names.variants(task.unknown)
        both = [dict.fromkeys([*known[name], *unknown[name]]) for name in known if name in unknown]
        called = [name for name in dict.fromkeys((*task.known, *task.unknown)) if fold(name) == UNKNOWN_NAME]
        for text in (
            *(f"{' = '.join(names)} is known and unknown at once" for names in both),
            *(f"a class is called {name!r}" for name in called),
        ):
            violations.setdefault(text, []).append(task.name)
    if not violations:
        sizes = f"{counted(len(target.tasks), 'task')}, {counted(len(target.classes), 'class', 'classes')}"
        return [Finding("pass", "tasks", text=sizes)]
    return [Finding("fail", joined(tasks), 1, text, (text,)) for text, tasks in violations.items()]


def training_labels_are_known(case: ListInTask) -> list[Finding]:
    """CO2: no label of a train, finetune or val view is outside K_t, or ``unknown`` (that of a val view: AS2)."""
    return forbidden_labels(case, np.append(case.target.introduced_in > case.task, [case.one.role != "val", True]))


def tests_show_known_and_unknown(case: ListInTask) -> list[Finding]:
    """CO3: while a class is unknown the test view holds known and unknown boxes; afterwards none unknown."""
    target, one, labels, missing = case.target, case.one, case.labels, case.missing
    is_file = case.file is not None
    if labels is None or (missing and not len(case.covered)):
        return missing
    silent = not is_file and bool(target.incomplete(one.unique).any())
    if not (len(labels) or is_file):
        text = "the test view holds no boxes"
        return missing or [undecidable(case.about, COMPLETE, text) if silent else Finding("fail", case.about, 1, text)]
    least = "at least " if len(case.unsure) else ""
    unknown = int((labels.label == target.unknown_label).sum())
    known = int(((labels.label >= 0) & (labels.label < target.unknown_label)).sum())
    text = f"{least}{known:,} known and {least}{unknown:,} unknown {labels.unit} in {labels.origin}"
    if not target.tasks[case.task].unknown:
        if unknown:
            return [case.of("fail", np.unique(labels.image[labels.label == target.unknown_label]), text, unknown)]
        # A declared view of known classes alone gives no unknown box, whatever the images show.
        return (missing if is_file else []) or case.passed(text)
    if known and unknown:
        return case.passed(text)
    if is_file and missing:
        return missing
    need = unlocated_need(target, [one])
    return [undecidable(case.about, need, text) if silent else Finding("fail", case.about, 1, text)]


def classes_have_boxes(target: AuditTarget) -> Iterator[Finding]:
    """CO4: every class has a test box, and a training box in the task that introduces it."""
    if tests := target.with_role("test"):
        shown = [raw_labels(target, one) for one in tests]
        silent = any(target.incomplete(one.unique).any() for one in tests)
        yield from _boxes_of(target, tests, shown, np.ones(len(target.classes), np.bool_), "test box", silent=silent)
    trains = cases(target, "train")
    for task in range(len(target.tasks)):
        if own := [case for case in trains if case.task == task]:
            labels = [case.labels for case in own if case.labels is not None]
            lists, what = [case.one for case in own], f"training box in {target.tasks[task].name}"
            silent = any(len(case.unsure) for case in own)
            yield from _boxes_of(target, lists, labels, target.introduced_in == task, what, silent=silent)
            for case in own:
                yield from case.uncovered_finding


def _boxes_of(
    target: AuditTarget, lists: list[AuditedList], labels: list[Labels], classes: Bools, what: str, *, silent: bool
) -> list[Finding]:
    """Return whether each class has a box: one that is seen proves it, silence only where every image is known."""
    about = joined([one.name for one in lists])
    counts = np.zeros(len(target.classes) + 2, np.int64)
    for one in labels:
        counts += np.bincount(one.label + 1, minlength=len(target.classes) + 2)
    lacking = [target.classes[place].name for place in np.flatnonzero(classes & (counts[1:-1] == 0)).tolist()]
    size = int(classes.sum())
    if not lacking:
        return [Finding("pass", about, text=f"{counted(size, 'class', 'classes')}, each with a {what}")]
    if findings := missing_lists(lists):
        return findings
    if silent:
        text = f"no {what} seen for {len(lacking)} of {size} classes: {joined(lacking)}"
        return [undecidable(about, unlocated_need(target, lists), text)]
    text = f"{counted(len(lacking), 'class', 'classes')} without a {what}: {joined(lacking)}"
    return [Finding("warn", about, len(lacking), text, tuple(sorted(lacking)[:SHOWN_EXAMPLES]))]


def hidden_unknown_objects(case: ListInTask) -> list[Finding]:
    """CO5: how many train images of each task show objects of classes still unknown, unlabelled: allowed, reported."""
    target, one, raw = case.target, case.one, case.raw
    if not len(target.held(one)):
        return unlocated(target, one)
    later = target.introduced_in > case.task
    rows = np.flatnonzero(np.append(later, [True, False])[raw.label])
    images = np.unique(raw.image[rows])
    # Where no class is left for later, none can be hidden.
    least = "at least " if later.any() and target.unannotated(one.unique, later).any() else ""
    text = (
        f"{least}{len(rows):,} {unit_of(target, one)} of classes still unknown, on {least}{len(images):,} of "
        f"{counted(len(one.unique), 'image')}"
    )
    return [case.of("info", images, text)]


CHECKS: dict[str, Check] = {
    "CO1": known_and_unknown_are_apart,
    "CO2": training_labels_are_known,
    "CO3": tests_show_known_and_unknown,
    "CO4": classes_have_boxes,
    "CO5": hidden_unknown_objects,
}
