"""What a rule says when the data it needs are not there: which data, and how to give them."""

from __future__ import annotations

from collections.abc import Sequence

from curation.audit.labels import uncovered
from curation.audit.rule import Finding, Outcome, joined, not_applicable, outcome, undecidable
from curation.audit.target import AuditedList, AuditTarget

TASKS = "the classes of each task: --tasks reowod|ore|s-owodb, or a file that lists them"
ROLES = "the role of the lists: --role FILE=train:1, =finetune:2, =val:1, =test"
SOURCES = "the raw annotations of these images: --source NAME=PATH"
BOXES = "an annotation file with boxes in place of a table of image and class: --source NAME=PATH"
COMPLETE = (
    "an annotation file in place of a table of image and class, which may miss classes: --source NAME=PATH; "
    "--exhaustive NAME where the table misses none"
)
EXHAUSTIVE = (
    "whether every object of every class is annotated on every image of the source: --exhaustive NAME"
)
VIEWS = (
    "the labels that these lists carry: --labels LIST=FILE.json for what was written out, "
    "or --view ROLE=VIEW for the rule"
)
LABELS = "a label file that holds all images of the list: --labels LIST=FILE.json"
LISTS = "the id lists of these parts: `curation import` or `curation build` completes the manifest"


def missing_tasks(target: AuditTarget) -> Outcome | None:
    """Return what a rule on tasks says where there are none; None where there are some."""
    if target.tasks:
        return None
    if not target.expects_tasks:
        return not_applicable("the benchmark has no tasks")
    return outcome([undecidable("tasks", TASKS)])


def missing_roles(target: AuditTarget, *roles: str) -> Outcome | None:
    """Return what a rule on lists of some roles says where there are none; None where there are some."""
    if target.with_role(*roles):
        return None
    if target.lists:
        return not_applicable(f"there is no {' or '.join(roles)} list")
    return outcome([undecidable("lists", ROLES)])


def missing_lists(lists: Sequence[AuditedList]) -> list[Finding]:
    """Return the finding that some parts of a manifest have no list at hand."""
    names = [one.name for one in lists if not one.at_hand]
    return [undecidable(joined(names), LISTS)] if names else []


def unlocated_finding(target: AuditTarget, one: AuditedList, need: str = SOURCES) -> list[Finding]:
    """Return the finding that some images of a list are in no source at hand, but for those that LI3 tells of."""
    if not one.at_hand:
        return missing_lists([one])
    count = len(target.unlocated(one)) - len(target.absent(one))
    text = f"{count:,} of its {len(one.unique):,} images are in no source at hand"
    return [undecidable(one.name, need, text)] if count else []


def unlocated_need(target: AuditTarget, lists: Sequence[AuditedList]) -> str:
    """Return which data would tell what the images of some lists show: sources for some, or fuller ones for all."""
    return SOURCES if any(len(target.unlocated(one)) for one in lists) else COMPLETE


def uncovered_finding(target: AuditTarget, one: AuditedList, task: int) -> list[Finding]:
    """Return the finding that the label file of a list lacks some of its images: what it says of them is not known."""
    images = uncovered(target, one, task)
    if not len(images):
        return []
    return [
        undecidable(
            of_task(target, one, task),
            LABELS,
            _coverage_text(one, task, len(images)),
            target.examples(images, [one]),
        )
    ]


def label_warnings(target: AuditTarget) -> list[str]:
    """Return what is odd about label files: each that lacks images of its list, with the first few of them."""
    texts = []
    for one in target.lists:
        for task in sorted(one.labels):
            images = uncovered(target, one, task)
            if len(images):
                shown = "; ".join(target.examples(images, [one]))
                texts.append(
                    f"{of_task(target, one, task)}: {_coverage_text(one, task, len(images))}: {shown}"
                )
    return texts


def _coverage_text(one: AuditedList, task: int, count: int) -> str:
    name = one.labels[task].name
    if count == len(one.unique):
        return f"label file {name} holds none of its {count:,} images; it may be another list's"
    return f"{count:,} of its {len(one.unique):,} images are not in label file {name}"


def of_task(target: AuditTarget, one: AuditedList, task: int) -> str:
    """Return how findings call a list in a task."""
    name = target.tasks[task].name
    return one.name if len(one.tasks) == 1 else f"{one.name} at {name}"
