"""Helpers shared by the rules: judging a rule, lists in a task, and texts for missing data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from curation.core.columns import distinct
from curation.core.wording import counted
from curation.extensions.audit.labels import (
    Labels,
    classes_of_task,
    file_labels,
    positions_in_file,
    raw_labels,
    ruled_labels,
    unit_of,
)
from curation.extensions.audit.lists import AuditedList, LabelFile
from curation.extensions.audit.rule import Finding, Outcome, Rule, Verdict, joined, not_applicable, undecidable
from curation.extensions.audit.target import AuditTarget
from curation.sources.source import Bools, Int32s, Int64s

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
    """Return the outcome of a rule on a target; undecidable if the tasks or lists that it needs are missing."""
    if rule.of_published_lists and target.published is None and rule.name != "PL7":
        return not_applicable("the benchmark is not a folder of lists")
    if rule.tasks and not target.tasks:
        if not target.expects_tasks:
            return not_applicable("the benchmark has no tasks")
        return Outcome((undecidable("tasks", TASKS),))
    if rule.roles and not target.with_role(*rule.roles):
        if target.lists or (target.published is not None and len(target.files) < 2):
            return not_applicable(f"there is no {' or '.join(rule.roles)} list")
        finding = undecidable("lists", ROLES, "no name says train, val or test" if target.published else "")
        return Outcome((replace(finding, lists=tuple(part.name for part in target.files)),))
    if not rule.each:
        result = rule.check(target)
        return result if isinstance(result, Outcome) else Outcome(tuple(result))
    findings: list[Finding] = []
    for case in cases(target, *rule.roles):
        findings += rule.check(case)  # type: ignore[arg-type]  # a check of a list gives findings
    return Outcome(tuple(findings))


@dataclass(frozen=True, eq=False)
class ListInTask:
    """A list in one of its tasks: what it labels there, of which images that is known, and what is missing."""

    target: AuditTarget
    part: AuditedList
    task: int

    @property
    def about(self) -> str:
        """How findings call it."""
        return self.part.name + (f" at {self.target.tasks[self.task].name}" if len(self.part.tasks) != 1 else "")

    @property
    def file(self) -> LabelFile | None:
        """Its label file."""
        return self.part.labels.get(self.task)

    @property
    def is_stated(self) -> bool:
        """Whether a label file or a declared view states its labels."""
        return self.file is not None or self.part.view_declared

    @property
    def raw(self) -> Labels:
        """Every object of its images, with its true class."""
        return raw_labels(self.target, self.part)

    @cached_property
    def labels(self) -> Labels | None:
        """What it carries: of its label file, else of its view; None without a view."""
        if self.file is not None:
            return file_labels(self.target, self.part, self.file, self._positions)
        return ruled_labels(self.target, self.part, self.task)

    @cached_property
    def _positions(self) -> Int32s:
        assert self.file is not None  # noqa: S101
        return positions_in_file(self.target, self.part, self.file)

    @property
    def uncovered(self) -> Int32s:
        """Its images that its label file lacks: none where no such file is given."""
        return self.part.unique[:0] if self.file is None else self.part.unique[self._positions < 0]

    @property
    def covered(self) -> Int32s:
        """Its images whose labels are known: those in its label file or, without such a file, in a source."""
        if self.file is None:
            return self.target.held(self.part)
        return self.part.unique[self._positions >= 0]

    @property
    def unsure(self) -> Int32s:
        """Its images whose labels may be more than is seen.

        They are not in the label file or, without such a file, in no source, or in a table that may miss classes.
        """
        images = self.part.unique
        return images[self.target.incomplete(images)] if self.file is None else self.uncovered

    @property
    def missing(self) -> list[Finding]:
        """What is not known of its labels: images that are not in the label file or, without one, in no source."""
        return unlocated(self.target, self.part) if self.file is None else self.uncovered_finding

    @property
    def uncovered_finding(self) -> list[Finding]:
        """The finding that its label file lacks some of its images, whose labels are unknown."""
        images = self.uncovered
        if self.file is None or not len(images):
            return []
        count, size = len(images), len(self.part.unique)
        text = f"label file {self.file.name} lacks {count:,} of its {counted(size, 'image')}"
        if count == size:
            every = f"all of its {size:,} images" if size > 1 else "its only image"
            text = f"label file {self.file.name} lacks {every}; it may belong to another list"
        return [undecidable(self.about, LABELS, text, self.target.examples(images, [self.part]))]

    def unseen_boxes(self, about: str) -> list[Finding]:
        """Return the finding that nothing is known of its raw boxes; none where some are there."""
        if not self.part.available:
            return missing_lists([self.part])
        if not len(self.target.held(self.part)):
            return [undecidable(about, SOURCES)]
        return [undecidable(about, BOXES)] if unit_of(self.target, self.part) != "boxes" else []

    def of(self, verdict: Verdict, images: Int32s, text: str, count: int | None = None, about: str = "") -> Finding:
        """Return a finding on some of its images; it counts these unless a count is given."""
        examples = self.target.examples(images, [self.part])
        return Finding(verdict, about or self.about, len(images) if count is None else count, text, examples)

    def passed(self, text: str) -> list[Finding]:
        """Return the finding that it keeps the rule."""
        return [Finding("pass", self.about, text=text)]

    def emitted(self) -> Bools:
        """Return which labels its view can give, shape (classes + 2,): classes, unknown, a foreign class."""
        table = np.zeros(len(self.target.classes) + 2, np.bool_)
        for position, entry in enumerate(classes_of_task(self.target, self.task)):
            treatment = getattr(self.part.view, entry.role)
            if treatment == "rename:unknown":
                table[self.target.unknown_label] = True
            elif treatment != "drop":
                table[position] = True
        return table


def cases(target: AuditTarget, *roles: str) -> list[ListInTask]:
    """Return the lists of some roles in each of their tasks."""
    return [ListInTask(target, part, task) for part in target.with_role(*roles) for task in part.tasks]


def missing_lists(lists: Sequence[AuditedList]) -> list[Finding]:
    """Return the finding that some parts of a manifest have no list."""
    names = [part.name for part in lists if not part.available]
    return [undecidable(joined(names), LISTS)] if names else []


def unlocated(target: AuditTarget, part: AuditedList) -> list[Finding]:
    """Return the finding that some images of a list are in no available source; LI3 reports absent test images."""
    if not part.available:
        return missing_lists([part])
    count = len(target.unlocated(part)) - (len(target.absent(part)) if part.role == "test" else 0)
    text = f"no available source holds {count:,} of its {counted(len(part.unique), 'image')}"
    return [undecidable(part.name, SOURCES, text)] if count else []


def unlocated_need(target: AuditTarget, lists: Sequence[AuditedList]) -> str:
    """Return which data would tell what the images of some lists show: sources for some, or fuller ones for all."""
    return SOURCES if any(len(target.unlocated(part)) for part in lists) else COMPLETE


def reading_doubts(target: AuditTarget) -> list[str]:
    """Return doubts about how files were read, each with the name of the file."""
    files = target.published.files if target.published else {}
    return [f"{name}: {text}" for name, file in files.items() for text in file.doubts]


def label_warnings(target: AuditTarget) -> list[str]:
    """Return the label files that lack images of their list, each with the first few of these images."""
    return [
        f"{finding.about}: {finding.text}: {'; '.join(finding.examples)}"
        for part in target.lists
        for task in sorted(part.labels)
        for finding in ListInTask(target, part, task).uncovered_finding
    ]


def label_text(target: AuditTarget, label: int) -> str:
    """Return the name of a label."""
    if label == target.unknown_label:
        return "unknown"
    return target.classes[label].name if label >= 0 else "a class outside the benchmark"


def forbidden_labels(case: ListInTask, forbidden: Bools) -> list[Finding]:
    """Return whether a list carries a forbidden label in a task: one judgement for the rules CO2, AS1 and AS2.

    A label file is judged by its annotations on the images that it holds; labels of other images are unknown, and a
    file without labels on the images of a list proves nothing. A declared view that excludes forbidden labels passes
    whatever the boxes are; otherwise it fails, and the labels are counted if the sources are available. An undeclared
    view is undecidable: that the principle's view is possible proves nothing.

    Parameters
    ----------
    forbidden : ndarray of bool, shape (classes + 2,)
        Which labels are violations: classes, unknown, a foreign class.
    """
    target, part, about = case.target, case.part, case.about
    if case.file is None:
        if part.view is None or not part.view_declared:
            return [undecidable(about, VIEWS)]
        if not (case.emitted() & forbidden).any():
            return case.passed("the declared view lets none through")
    labels = case.labels
    assert labels is not None  # noqa: S101
    rows = np.flatnonzero(forbidden[labels.label])
    if len(rows):
        names = list(dict.fromkeys(label_text(target, label) for label in labels.label[rows].tolist()))
        least = "at least " if len(case.unsure) else ""
        text = f"{least}{labels.counted(len(rows))} labelled {joined(names)} in {labels.origin}"
        finding = Finding("fail", about, len(rows), text, _examples(case, labels, rows))
        return [finding, *case.uncovered_finding]
    if case.file is not None:
        covered = len(case.covered)
        text = f"none among {labels.counted()} of {labels.origin} on {counted(covered, 'image')}"
        if covered and not len(labels):
            return [undecidable(about, LABELS, text), *case.uncovered_finding]
        return (case.passed(text) if covered else []) + case.uncovered_finding
    held = target.held(part)
    if not len(held):
        return [
            Finding("fail", about, text="the declared view lets such labels through; no boxes were available to count")
        ]
    text = f"none among {labels.counted()}"
    if target.incomplete(held).any():
        return [undecidable(about, COMPLETE, text)]
    return case.missing or case.passed(text)


def _examples(case: ListInTask, labels: Labels, rows: Int64s) -> tuple[str, ...]:
    texts = []
    for image in case.target.first(distinct(labels.image[rows])):
        label = labels.label[rows[labels.image[rows] == image]][0]
        [where] = case.target.examples(np.array([image], np.int32), [case.part])
        texts.append(f"{where}: {label_text(case.target, int(label))}")
    return tuple(texts)
