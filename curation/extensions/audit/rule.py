"""`Rule`: a principle with its exact check; `Finding`: its result; and helpers that rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import msgspec
import numpy as np

from curation.core.columns import distinct
from curation.core.wording import counted, short_repr
from curation.extensions.audit.lists import AuditedList
from curation.extensions.audit.target import AuditTarget, ComparedPair
from curation.manifest.header import UNKNOWN_ID, ClassEntry, ClassRole, LabelView
from curation.manifest.views import EVERYTHING, PartImages, select_objects
from curation.sources.source import Bools, Int32s, Int64s

Severity = Literal["error", "warning", "info"]
Verdict = Literal["fail", "warn", "undecidable", "info", "pass", "not applicable"]

NOTHING: Verdict = "not applicable"

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""Strongest first: the verdict of a rule is the strongest among those of its findings."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a rule for a list, a pair of lists, a task or a source.

    Attributes
    ----------
    verdict : str
        One of `VERDICTS`.
    about : str
        Subject of the finding: ``t2-train``, ``val against train``.
    count : int
        Violations that are proven, or the number that an info rule reports. Where data are partly missing, the text
        says ``at least`` or ``at most``.
    text : str
        The result, a sentence without a final full stop.
    examples : tuple of str
        The first few violations with their place, sorted.
    need : str
        Only of undecidable findings: the missing data, and how to give them.
    of : int or None
        Total of which `count` is a part: lines, images or pairs.
    lists : tuple of str
        Names of the lists concerned.
    pairs : tuple of (str, str)
        Those of the pairs.
    asked : int
        Number of questions, one per rule and list or pair, that the finding covers; 0 for notes.
    like : str
        Common text of findings on many lists: three or more with the same text become one statement.
    brief : str
        Short subject, to tell such findings apart: ``art_painting``.
    hint : str
        How to fix it, if this differs from the hint of the rule.
    reason : str
        Of undecidable findings with `like`: the reason, by which many are counted in one sentence.
    drops : mapping of str to ndarray of int32
        Lines that a repair leaves out, by list; empty if nothing is proven.
    """

    verdict: Verdict
    about: str
    count: int = 0
    text: str = ""
    examples: tuple[str, ...] = ()
    need: str = ""
    of: int | None = None
    lists: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    asked: int = 1
    like: str = ""
    brief: str = ""
    hint: str = ""
    reason: str = ""
    drops: Mapping[str, Int32s] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The findings of a rule and their verdict.

    Attributes
    ----------
    findings : tuple of Finding
    total : int or None
        Violations over all findings if these overlap; None if their counts add up.
    """

    findings: tuple[Finding, ...]
    total: int | None = None

    @property
    def verdict(self) -> Verdict:
        """The strongest verdict of the findings; ``not applicable`` without findings."""
        present = {finding.verdict for finding in self.findings}
        return next((verdict for verdict in VERDICTS if verdict in present), "not applicable")

    @property
    def count(self) -> int:
        """The number of violations; 0 for a pass, whose findings may count other things."""
        if self.verdict == "pass":
            return 0
        if self.total is not None:
            return self.total
        return sum(finding.count for finding in self.findings if finding.verdict == self.verdict)


Check = Callable[..., Outcome | Iterable[Finding]]
"""``check(target)``, or ``check(ListInTask)`` for a rule that judges lists one by one."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the audit.

    Attributes
    ----------
    name : str
        ``CO1`` to ``PL17``; the letters name the principle.
    subject : str
        What it asks about, a few words: *groups on both sides*.
    definition : str
        What a sound benchmark satisfies, one sentence.
    fix : str
        What to do when it is broken.
    check : callable
        It returns findings, or an `Outcome` where these overlap: pure.
    roles : tuple of str
        Roles of the lists that it judges: without a list of any of them it is undecidable, or does not apply.
    tasks : bool
        Whether it judges tasks, and is undecidable where they are not known.
    not_shown : str
        What its findings do not prove.
    each : bool
        Whether lists are judged one by one: ``check(ListInTask)`` for each in each of its tasks.
    """

    name: str
    subject: str
    definition: str
    fix: str
    check: Check
    roles: tuple[str, ...] = ()
    tasks: bool = True
    not_shown: str = ""
    each: bool = False

    @property
    def of_published_lists(self) -> bool:
        """Whether it judges the files of a folder; such rules apply to folders only."""
        return self.name.startswith("PL")


def undecidable(about: str, need: str, text: str = "", examples: tuple[str, ...] = ()) -> Finding:
    """Return the finding that data are missing; `need` says which, and how to give them."""
    return Finding("undecidable", about, 0, text, examples, need)


def list_finding(
    verdict: Verdict, part: AuditedList, count: int, text: str, examples: Iterable[str] = (), **more: Any
) -> Finding:
    """Return a finding on one list."""
    return Finding(verdict, part.name, count, text, tuple(examples), lists=(part.name,), **more)


def pair_finding(
    verdict: Verdict, names: tuple[str, str], count: int, text: str, examples: Iterable[str] = (), **more: Any
) -> Finding:
    """Return a finding on two lists."""
    about = more.pop("about", f"{names[0]} and {names[1]}")
    return Finding(verdict, about, count, text, tuple(examples), lists=names, pairs=(names,), **more)


def loser_of(pair: ComparedPair) -> int:
    """Return the position, in a pair, of the list that loses lines in a repair: train or val before test."""
    return int(pair.roles == ("val", "val") or (pair.first.role, pair.second.role) == ("test", "wilderness"))


def not_applicable(text: str) -> Outcome:
    """Return the outcome of a rule that has nothing to judge here."""
    return Outcome((Finding("not applicable", "", text=text),))


def joined(names: Sequence[str], shown: int = 6) -> str:
    """Return the first few names as one text, with the number of the others."""
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")


TASKS = "the classes of each task: --tasks reowod|ore|s-owodb, or a file that lists them"
ROLES = "the role of the lists: --role LIST=train, =val, =test; of tasks =train:1, =finetune:2"
SOURCES = "the raw annotations of these images: --source NAME=PATH"
BOXES = "an annotation file with boxes instead of a table of image and class: --source NAME=PATH"
COMPLETE = (
    "an annotation file instead of a table of image and class, which may miss classes: --source NAME=PATH; "
    "--exhaustive NAME if the table misses none"
)
EXHAUSTIVE = "whether every object of every class is annotated on every image of the source: --exhaustive NAME"
VIEWS = "the labels that these lists carry: --view ROLE=VIEW"
LISTS = "the id lists of these parts: `curation import` or `curation build` completes the manifest"


def judged(rule: Rule, target: AuditTarget) -> Outcome:
    """Return the outcome of a rule on a target; undecidable if the tasks or lists that it needs are missing."""
    if rule.of_published_lists and target.published is None and rule.name != "PL7":
        return not_applicable("the benchmark is not a folder of lists")
    if rule.tasks and not target.tasks:
        if not target.expects_tasks:
            return not_applicable("the benchmark has no tasks")
        return Outcome((undecidable("tasks", TASKS),))
    if rule.roles and not target.with_role(*rule.roles) and not target.pairs:
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


@dataclass(frozen=True, slots=True)
class Labels:
    """Columns of m labelled objects.

    Attributes
    ----------
    image : ndarray of int32, shape (m,)
        Position in `AuditTarget.ids`.
    label : ndarray of int32, shape (m,)
        Position among the classes; their number for unknown.
    row : ndarray of int64, shape (m,)
        A number of each raw object, equal in all views.
    flagged : ndarray of bool, shape (m,)
        Whether it is crowd or difficult.
    unit : str
        ``boxes`` or ``image-class pairs``.
    origin : str
        Where the labels come from, for the report.
    """

    __repr__ = short_repr

    image: Int32s
    label: Int32s
    row: Int64s
    flagged: Bools
    unit: str
    origin: str

    def __len__(self) -> int:
        return len(self.image)

    def counted(self, number: int | None = None) -> str:
        """Return how many labels, all or some: ``1 box``, ``2 boxes``."""
        singular = "box" if self.unit == "boxes" else self.unit.removesuffix("s")
        return counted(len(self) if number is None else number, singular, self.unit)


def raw_labels(target: AuditTarget, part: AuditedList) -> Labels:
    """Return every object of a list's images whose class is one of the benchmark's, with its true class."""
    key = ("raw labels", part.name)
    if key not in target.cache:
        target.cache[key] = _applied(target, part, EVERYTHING, target.classes, "the sources")
    labels: Labels = target.cache[key]
    return labels


def ruled_labels(target: AuditTarget, part: AuditedList, task: int) -> Labels:
    """Return the labels that a list's view makes of the raw ones."""
    assert part.view is not None  # noqa: S101 - every list with a role has a view
    origin = "the declared view" if part.view_declared else "the view that the principle asks for"
    return _applied(target, part, part.view, classes_of_task(target, task), origin)


def classes_of_task(target: AuditTarget, task: int) -> tuple[ClassEntry, ...]:
    """Return the classes with their roles in a task; a class that no task introduces keeps its role."""
    roles: tuple[ClassRole, ...] = ("previous", "known", "unknown")
    return tuple(
        entry
        if step == len(target.tasks)
        else msgspec.structs.replace(entry, role=roles[1 + int(step > task) - int(step < task)])
        for entry, step in zip(target.classes, target.introduced_in.tolist(), strict=True)
    )


def unit_of(target: AuditTarget, part: AuditedList) -> str:
    """Return the unit of the objects of a list: boxes, or pairs of image and class if a source is a table."""
    homes = np.unique(target.home[part.unique])
    units = [target.sources[home].unit for home in homes.tolist() if home >= 0]
    return next((unit for unit in units if unit != "boxes"), "boxes")


def _applied(
    target: AuditTarget, part: AuditedList, view: LabelView, classes: tuple[ClassEntry, ...], origin: str
) -> Labels:
    images = target.held(part)
    if not len(images):
        empty = np.empty(0, np.int32)
        return Labels(empty, empty, np.empty(0, np.int64), np.empty(0, np.bool_), "boxes", origin)
    located = PartImages(
        sources=tuple(source.objects for source in target.sources),
        source=target.home[images],
        position=target.positions[target.home[images], images],
    )
    selected = select_objects(classes, view, located)
    renamed = (selected.category_id == UNKNOWN_ID) & (view is not EVERYTHING)
    return Labels(
        image=images[selected.image],
        label=np.where(renamed, np.int32(target.unknown_label), selected.label),
        row=(selected.source.astype(np.int64) << 32) + selected.index,
        flagged=selected.crowd | selected.difficult,
        unit=unit_of(target, part),
        origin=origin,
    )


@dataclass(frozen=True, eq=False)
class ListInTask:
    """A list in one of its tasks: the labels of its view there, and the raw objects of its images."""

    target: AuditTarget
    part: AuditedList
    task: int

    @property
    def about(self) -> str:
        """The subject of its findings."""
        return self.part.name + (f" at {self.target.tasks[self.task].name}" if len(self.part.tasks) != 1 else "")

    @property
    def raw(self) -> Labels:
        """Every object of its images, with its true class."""
        return raw_labels(self.target, self.part)

    @cached_property
    def labels(self) -> Labels:
        """The labels that its view gives."""
        return ruled_labels(self.target, self.part, self.task)

    @property
    def is_partly_unknown(self) -> bool:
        """Whether some of its images are in no source, or in a table that may miss classes."""
        return bool(self.target.incomplete(self.part.unique).any())

    @property
    def missing(self) -> list[Finding]:
        """The finding that some of its images are in no source."""
        return unlocated(self.target, self.part)

    def unseen_boxes(self, about: str) -> list[Finding]:
        """Return the finding that its raw boxes are unknown; none if some are available."""
        if not self.part.available:
            return missing_lists([self.part])
        if not len(self.target.held(self.part)):
            return [undecidable(about, SOURCES)]
        return [undecidable(about, BOXES)] if unit_of(self.target, self.part) != "boxes" else []

    def of(self, verdict: Verdict, images: Int32s, text: str, count: int | None = None, about: str = "") -> Finding:
        """Return a finding on some of its images, with their number as the count by default."""
        examples = self.target.examples(images, [self.part])
        return Finding(verdict, about or self.about, len(images) if count is None else count, text, examples)

    def passed(self, text: str) -> list[Finding]:
        """Return the finding that it satisfies the rule."""
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
    """Return the data that are needed to know the objects of some lists: further sources, or complete ones."""
    return SOURCES if any(len(target.unlocated(part)) for part in lists) else COMPLETE


def reading_doubts(target: AuditTarget) -> list[str]:
    """Return doubts about how files were read, each with the name of the file."""
    files = target.published.files if target.published else {}
    return [f"{name}: {text}" for name, file in files.items() for text in file.doubts]


def label_text(target: AuditTarget, label: int) -> str:
    """Return the name of a label."""
    return "unknown" if label == target.unknown_label else target.classes[label].name


def forbidden_labels(case: ListInTask, forbidden: Bools) -> list[Finding]:
    """Return whether a list carries a forbidden label in a task: the common check of the rules CO2, AS1 and AS2.

    A declared view that excludes forbidden labels passes whatever the boxes are; another one fails, and its forbidden
    labels are counted if the sources are available. An undeclared view is undecidable.

    Parameters
    ----------
    forbidden : ndarray of bool, shape (classes + 2,)
        Which labels are violations: classes, unknown, a foreign class.
    """
    target, part, about = case.target, case.part, case.about
    if part.view is None or not part.view_declared:
        return [undecidable(about, VIEWS)]
    if not (case.emitted() & forbidden).any():
        return case.passed("the declared view lets none through")
    labels = case.labels
    rows = np.flatnonzero(forbidden[labels.label])
    if len(rows):
        names = list(dict.fromkeys(label_text(target, label) for label in labels.label[rows].tolist()))
        least = "at least " if case.is_partly_unknown else ""
        text = f"{least}{labels.counted(len(rows))} labelled {joined(names)} in {labels.origin}"
        return [Finding("fail", about, len(rows), text, _examples(case, labels, rows))]
    held = target.held(part)
    if not len(held):
        text = "the declared view lets such labels through; no boxes were available to count"
        return [Finding("fail", about, text=text)]
    text = f"none among {labels.counted()}"
    if target.incomplete(held).any():
        return [undecidable(about, COMPLETE, text)]
    return case.missing or case.passed(text)


def _examples(case: ListInTask, labels: Labels, rows: Int64s) -> tuple[str, ...]:
    images = distinct(labels.image[rows])
    label_of = dict(zip(labels.image[rows][::-1].tolist(), labels.label[rows][::-1].tolist(), strict=True))
    names = (label_text(case.target, label_of[image]) for image in case.target.first(images))
    return tuple(
        f"{where}: {name}" for where, name in zip(case.target.examples(images, [case.part]), names, strict=True)
    )
