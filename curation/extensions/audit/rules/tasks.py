"""CO, TI, AS: unknown classes stay unlabelled, each task adds classes, and each role has its labels.

No label is of a class before the task that introduces it. Train lists label the classes of their task, finetune and val
lists the known classes, test lists all classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from curation.core.columns import distinct
from curation.core.wording import counted
from curation.extensions.audit.classes import UNKNOWN_NAME, fold
from curation.extensions.audit.lists import AuditedList
from curation.extensions.audit.rule import (
    COMPLETE,
    SOURCES,
    VIEWS,
    Finding,
    Labels,
    ListInTask,
    cases,
    forbidden_labels,
    joined,
    missing_lists,
    raw_labels,
    undecidable,
    unit_of,
    unlocated,
    unlocated_need,
)
from curation.extensions.audit.target import SHOWN_EXAMPLES, AuditTarget
from curation.sources.source import Bools, Int64s


def known_and_unknown_are_apart(target: AuditTarget) -> list[Finding]:
    """CO1: Known and unknown classes are disjoint under every spelling, and no class is called unknown."""
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
    """CO2: No label in a train, finetune or val view is of a class not yet known, and none is unknown in training.

    Labels of unknown objects in a val view are for AS2.
    """
    return forbidden_labels(case, np.append(case.target.introduced_in > case.task, [case.part.role != "val", True]))


def tests_show_known_and_unknown(case: ListInTask) -> list[Finding]:
    """CO3: While classes remain unknown, the test view holds known boxes and boxes labelled unknown; afterwards none
    unknown.
    """
    target, part, labels, missing = case.target, case.part, case.labels, case.missing
    if missing and not len(target.held(part)):
        return missing
    silent = case.is_partly_unknown
    if not len(labels):
        text = "the test view holds no boxes"
        return missing or [undecidable(case.about, COMPLETE, text) if silent else Finding("fail", case.about, 1, text)]
    least = "at least " if silent else ""
    is_unknown = labels.label == target.unknown_label
    unknown, known = int(is_unknown.sum()), int((~is_unknown).sum())
    text = f"{least}{known:,} known and {least}{unknown:,} unknown {labels.unit} in {labels.origin}"
    if not target.tasks[case.task].unknown:
        # A declared view of only known classes has no unknown box, whatever the images show.
        return [case.of("fail", distinct(labels.image[is_unknown]), text, unknown)] if unknown else case.passed(text)
    if known and unknown:
        return case.passed(text)
    need = unlocated_need(target, [part])
    return [undecidable(case.about, need, text) if silent else Finding("fail", case.about, 1, text)]


def classes_have_boxes(target: AuditTarget) -> Iterator[Finding]:
    """CO4: Every class has a box in the test lists, and a training box in the task that introduces it."""
    if tests := target.with_role("test"):
        raw = [raw_labels(target, test) for test in tests]
        silent = any(target.incomplete(test.unique).any() for test in tests)
        yield from _boxes_of(target, tests, raw, np.ones(len(target.classes), np.bool_), "test box", silent=silent)
    trains = cases(target, "train")
    for task in range(len(target.tasks)):
        if task_cases := [case for case in trains if case.task == task]:
            labels = [case.labels for case in task_cases]
            lists, subject = [case.part for case in task_cases], f"training box in {target.tasks[task].name}"
            silent = any(case.is_partly_unknown for case in task_cases)
            yield from _boxes_of(target, lists, labels, target.introduced_in == task, subject, silent=silent)


def _boxes_of(
    target: AuditTarget, lists: list[AuditedList], labels: list[Labels], classes: Bools, subject: str, *, silent: bool
) -> list[Finding]:
    """Return whether each class has a box; a class without one is proven to lack it only if all images are known."""
    about = joined([part.name for part in lists])
    counts = np.zeros(len(target.classes) + 2, np.int64)
    for table in labels:
        counts += np.bincount(table.label + 1, minlength=len(target.classes) + 2)
    lacking = [target.classes[row].name for row in np.flatnonzero(classes & (counts[1:-1] == 0)).tolist()]
    size = int(classes.sum())
    if not lacking:
        return [Finding("pass", about, text=f"{counted(size, 'class', 'classes')}, each with a {subject}")]
    if findings := missing_lists(lists):
        return findings
    if silent:
        text = f"no {subject} seen for {len(lacking)} of {size} classes: {joined(lacking)}"
        return [undecidable(about, unlocated_need(target, lists), text)]
    text = f"{counted(len(lacking), 'class', 'classes')} without a {subject}: {joined(lacking)}"
    return [Finding("warn", about, len(lacking), text, tuple(sorted(lacking)[:SHOWN_EXAMPLES]))]


def hidden_unknown_objects(case: ListInTask) -> list[Finding]:
    """CO5: Train images of each task that show unlabelled objects of classes still unknown (allowed)."""
    target, part, raw = case.target, case.part, case.raw
    if not len(target.held(part)):
        return unlocated(target, part)
    later = target.introduced_in > case.task
    rows = np.flatnonzero(np.append(later, [True, False])[raw.label])
    images = distinct(raw.image[rows])
    # If no class is left for later tasks, none can be hidden.
    least = "at least " if later.any() and target.unannotated(part.unique, later).any() else ""
    text = (
        f"{least}{len(rows):,} {unit_of(target, part)} of classes still unknown, on {least}{len(images):,} of "
        f"{counted(len(part.unique), 'image')}"
    )
    return [case.of("info", images, text)]


_SHOWN_CLASSES = 12


def tasks_increase(target: AuditTarget) -> list[Finding]:
    """TI1: Every task introduces classes that no other task does; known grows and unknown shrinks by exactly these,
    until only classes declared to stay unknown remain.

    Classes that are unknown after the last task are those that the benchmark declares to stay unknown.
    """
    violations = [*_introductions(target), *_growth(target)]
    last, stay_unknown = target.tasks[-1], {entry.name for entry in target.classes if entry.role != "known"}
    if undeclared := [name for name in last.unknown if name not in stay_unknown]:
        violations.append((last.name, f"classes still unknown after the last task: {joined(undeclared)}"))
    sizes = ", ".join(str(len(task.introduced)) for task in target.tasks)
    rest = f"; {len(last.unknown)} stay unknown" if last.unknown else ""
    return _violated(violations) or [Finding("pass", "tasks", text=f"{sizes} classes introduced{rest}")]


def _violated(violations: Iterable[tuple[str, str]]) -> list[Finding]:
    """Return an error for each violation, a pair of subject and text."""
    return [Finding("fail", about, 1, text, (f"{about}: {text}",)) for about, text in violations]


def _introductions(target: AuditTarget) -> dict[tuple[str, str], None]:
    problems, home = dict[tuple[str, str], None](), dict[str, str]()
    for task in target.tasks:
        if not task.introduced:
            problems[task.name, "introduces no class"] = None
        for name in task.introduced:
            first = home.setdefault(name, task.name)
            if first != task.name or task.introduced.count(name) > 1:
                problems[task.name, f"introduces {name!r} again, after {first}"] = None
    return problems


def _growth(target: AuditTarget) -> Iterator[tuple[str, str]]:
    """Yield how the stated classes of consecutive tasks violate the rule; `_introductions` has repeated ones."""
    for before, task in pairwise(target.tasks):
        gained, introduced = set(task.known) - set(before.known), set(task.introduced)
        if lost := sorted(set(before.known) - set(task.known)):
            yield task.name, f"classes known before are no longer known: {joined(lost)}"
        if unexplained := sorted(gained - introduced):
            yield task.name, f"classes became known without being introduced: {joined(unexplained)}"
        expected = set(before.unknown) - introduced
        if set(task.unknown) != expected:
            names = sorted(set(task.unknown) ^ expected)
            yield task.name, f"unknown is not the previous unknown minus the introduced: {joined(names)}"


def class_indices_are_stable(target: AuditTarget) -> list[Finding]:
    """TI2: A class keeps its index in all later tasks, and unknown keeps the index after the last class."""
    violations = []
    for before, task in pairwise(target.tasks):
        moved = [(old, new) for old, new in zip(before.known, task.known, strict=False) if old != new]
        if moved or len(task.known) < len(before.known):
            lost = f"{before.known[-1]!r} of {before.name} has lost its index"
            change = "{1!r} has the index that {0!r} has in {2}".format(*moved[0], before.name) if moved else lost
            violations.append((task.name, change))
    unknown = len(target.classes)
    for entry in target.classes:
        if entry.role == "known" and entry.index >= unknown:
            text = f"index {entry.index} of {entry.name!r} is not below {unknown}, the index of unknown"
            violations.append(("classes", text))
    known = sum(entry.role == "known" for entry in target.classes)
    text = f"indices 0 to {known - 1} in task order, unknown after all classes"
    return _violated(violations) or [Finding("pass", "tasks", text=text)]


def train_images_show_their_task(case: ListInTask) -> list[Finding]:
    """TI3: Every train image of a task shows an object of a class that the task introduces."""
    target, part = case.target, case.part
    if not part.available:
        return missing_lists([part])
    introduced = np.append(target.introduced_in == case.task, [False, False])
    has_object = target.where(case.raw.image[introduced[case.raw.label]])
    judged = target.held(part)
    without = judged[~has_object[judged]]
    silent, findings = target.incomplete(without), unlocated(target, part)
    if len(proven := without[~silent]):
        text = f"{counted(len(proven), 'image')} without a class that {target.tasks[case.task].name} introduces"
        findings.append(case.of("fail", proven, text))
    if silent.any():
        text = f"the table names no class of the task for {int(silent.sum()):,} of {counted(len(part.unique), 'image')}"
        findings.append(undecidable(case.about, COMPLETE, text))
    return findings or case.passed(f"all {counted(len(part.unique), 'image')}")


def selection_is_complete(target: AuditTarget) -> Iterator[Finding]:
    """TI4: Every source image that shows a class of the task is in its train list, in validation or in test."""
    for task in range(len(target.tasks)):
        if trains := target.with_role("train", task=task):
            yield from missing_lists(trains) or _left_out(target, task, trains)


def _left_out(target: AuditTarget, task: int, trains: list[AuditedList]) -> list[Finding]:
    about, held_out = joined([train.name for train in trains]), target.with_role("val", "test")
    drawn_from = _sources_of(target, trains)
    if not drawn_from:
        return unlocated(target, trains[0])
    findings = [finding for train in trains for finding in unlocated(target, train)]
    available = {source.name for source in target.sources}
    if not findings and (unseen := sorted({name for train in trains for name in train.sources} - available)):
        findings.append(undecidable(about, SOURCES, f"nothing is known about the images of {joined(unseen)}"))
    listed = target.mask([*trains, *held_out])
    for number in drawn_from:
        source = target.sources[number]
        objects = source.objects.require_objects("An audit")
        introduced = np.append(target.introduced_in == task, False)
        showing = np.zeros(len(source.raw.images), np.bool_)
        showing[objects.image[introduced[objects.category]]] = True
        positions = target.positions[number]
        showing[positions[(positions >= 0) & listed]] = False
        natives = np.sort(source.raw.images.native[showing])
        least = "" if source.complete else "at least "
        images = counted(len(natives), "image")
        text = f"{least}{images} of {source.name} with a class of the task but in no list"
        if len(natives):
            warning = Finding("warn", about, len(natives), text, tuple(natives[:SHOWN_EXAMPLES].tolist()))
            findings += missing_lists(held_out) or [warning]
        elif source.complete:
            findings.append(Finding("pass", about, text=text))
        else:
            findings.append(undecidable(about, COMPLETE, text))
    return findings


def _sources_of(target: AuditTarget, lists: list[AuditedList]) -> list[int]:
    """Return the available sources of some lists: those that they name, else those that contain their images."""
    names = {name for part in lists for name in part.sources}
    if names:
        return [number for number, source in enumerate(target.sources) if source.name in names]
    homes = np.unique(np.concatenate([target.home[part.unique] for part in lists]))
    return [int(home) for home in homes if home >= 0]


def exemplars_are_balanced(case: ListInTask) -> list[Finding]:
    """TI5: A finetuning list is a subset of the train lists up to its task (error) and holds N images of every known
    class, as far as these offer them (warning).
    """
    target, steps = case.target, range(case.task + 1)
    earlier = [train for step in steps for train in target.with_role("train", task=step)]
    lacking = [target.tasks[step].name for step in steps if not target.with_role("train", task=step)]
    return missing_lists([case.part]) or [*_inside(case, earlier, lacking), *_exemplars(case, earlier, lacking)]


def _inside(case: ListInTask, earlier: list[AuditedList], lacking: list[str]) -> list[Finding]:
    about, images = f"{case.about}: subset", case.part.unique
    outside = images[~case.target.mask(earlier)[images]]
    if not len(outside):
        return [Finding("pass", about, text=f"train lists up to this task hold all {counted(len(images), 'image')}")]
    if findings := missing_lists(earlier):
        return findings
    share = f"{len(outside):,} of {counted(len(images), 'image')}"
    if lacking:
        text = f"the available train lists lack {share}"
        return [undecidable(about, f"the train lists of {joined(lacking)}", text)]
    return [case.of("fail", outside, f"the train lists of these tasks lack {share}", about=about)]


def _exemplars(case: ListInTask, earlier: list[AuditedList], lacking: list[str]) -> list[Finding]:
    target, part, about = case.target, case.part, f"{case.about}: exemplars"
    if not len(target.held(part)):
        return unlocated(target, part)
    known = target.introduced_in <= case.task
    held, most = _images_of_classes(target, [part])
    offered, most_offered = _images_of_classes(target, earlier)
    if lacking or not all(other.available for other in earlier):
        most_offered = np.full_like(most_offered, target.exemplars)
    # "At least n" proves enough images; too few are proven by the largest possible number.
    few = known & (most < np.minimum(np.maximum(offered, held), target.exemplars))
    enough = held >= np.minimum(most_offered, target.exemplars)
    findings = []
    if few.any():
        text = (
            f"fewer images than the train lists offer, up to {target.exemplars}, for {int(few.sum())} of "
            f"{counted(int(known.sum()), 'known class', 'known classes')}"
        )
        names = _exemplar_counts(target, few, held, most)
        findings.append(Finding("warn", about, int(few.sum()), text, names))
    if (open_classes := known & ~enough & ~few).any():
        silent = int(target.incomplete(part.unique).sum())
        text = (
            f"fewer than {target.exemplars} images seen for {int(open_classes.sum())} of {int(known.sum())} known "
            f"classes, but {silent:,} of its {len(part.unique):,} images, and those of the train lists, may show more"
        )
        names = _exemplar_counts(target, open_classes, held, most)
        findings.append(undecidable(about, unlocated_need(target, [part, *earlier]), text, names))
    smallest = int(held[known].min()) if known.any() else 0
    passed = Finding("pass", about, text=f"every known class has at least {counted(smallest, 'image')}")
    return findings or [passed]


def _exemplar_counts(target: AuditTarget, chosen: Bools, held: Int64s, most: Int64s) -> tuple[str, ...]:
    """Return the classes with the fewest images, each with the number, or its lower bound."""
    rows = np.flatnonzero(chosen)
    ranked = rows[np.argsort(held[rows], kind="stable")][:_SHOWN_CLASSES]
    return tuple(
        f"{target.classes[row].name} {'at least ' if most[row] > held[row] else ''}{held[row]}"
        for row in ranked.tolist()
    )


def _images_of_classes(target: AuditTarget, lists: list[AuditedList]) -> tuple[Int64s, Int64s]:
    """Return the least and the largest possible number of images of some lists with each class, shape (classes,) each.

    An image in no source, or in a table that may miss classes, may show any class.
    """
    n_classes = len(target.classes)
    pairs, images = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    for part in lists:
        labels = raw_labels(target, part)
        pairs.append(labels.image.astype(np.int64) * n_classes + labels.label)
        images.append(part.unique)
    keys = distinct(np.concatenate(pairs))
    image, label = np.divmod(keys, max(n_classes, 1))
    least = np.bincount(label, minlength=n_classes)
    every = distinct(np.concatenate(images))
    silent = every[target.incomplete(every)]
    on_silent = np.bincount(label[np.isin(image, silent)], minlength=n_classes)
    return least, least + len(silent) - on_silent


def views_fit_their_purpose(target: AuditTarget) -> Iterator[Finding]:
    """AS1: A train view labels only classes that its task introduces; every test view holds each raw box once, those of
    classes not yet known labelled unknown.

    Labels of classes that are not known yet in train, finetune and val views are reported by CO2 and AS2.
    """
    for case in cases(target, "train"):
        yield from forbidden_labels(case, np.append(target.introduced_in < case.task, [False, False]))
    for case in cases(target, "test"):
        yield from _test_view(case)


def _test_view(case: ListInTask) -> list[Finding]:
    if not case.part.view_declared:
        return [undecidable(case.about, VIEWS)]
    if not case.part.available:
        return missing_lists([case.part])
    if text := _lossy(case):
        return [Finding("fail", case.about, 0 if case.unseen_boxes("") else _lost_boxes(case), text)]
    if missing := case.unseen_boxes(case.about):
        return missing if len(case.target.held(case.part)) else case.missing
    text = f"{counted(len(case.raw), 'raw box', 'raw boxes')}, each once in {case.labels.origin}"
    return [*case.passed(text), *case.missing]


def _lost_boxes(case: ListInTask) -> int:
    """Return the number of raw boxes that a view drops or labels otherwise than the principle."""
    target, raw = case.target, case.raw
    known = np.append(target.introduced_in <= case.task, [False, False])
    expected = np.where(known[raw.label], raw.label, target.unknown_label)
    size = len(target.classes) + 1
    return int((~np.isin(raw.row * size + expected, case.labels.row * size + case.labels.label)).sum())


def _lossy(case: ListInTask) -> str:
    """Return how a declared view violates the principle whatever the boxes; empty if it does not."""
    view = case.part.view
    assert view is not None  # noqa: S101
    labels = case.emitted()
    known = case.target.introduced_in <= case.task
    if (known & ~labels[:-2]).any():
        return "the declared view does not keep the known classes"
    if labels[:-2][~known].any():
        return "the declared view keeps the names of classes of later tasks"
    if (~known).any() and not labels[case.target.unknown_label]:
        return "the declared view drops the classes of later tasks"
    return "the declared view drops crowd or difficult boxes" if "drop" in (view.crowd, view.difficult) else ""


def validation_knows_no_unknown(case: ListInTask) -> list[Finding]:
    """AS2: No label of a validation view is unknown: a method tuned on it would have seen what it must not know.

    ORE fitted its energy model to labels of unknown objects.
    """
    return forbidden_labels(case, np.append(np.zeros(len(case.target.classes), np.bool_), [True, False]))


def flags_survive(case: ListInTask) -> list[Finding]:
    """AS3: Boxes flagged crowd or difficult carry their flag into every view that keeps them."""
    if not case.part.view_declared:
        return [undecidable(case.about, VIEWS)]
    if unseen := case.unseen_boxes(case.about):
        return unseen
    if not (flagged := int(case.raw.flagged.sum())):
        return case.missing or [Finding("not applicable", case.about, text="no raw box of its images is flagged")]
    return case.missing or case.passed(counted(flagged, "flagged raw box", "flagged raw boxes"))
