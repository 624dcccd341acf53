"""TI, task increment: each task adds classes to those before it, and its lists hold the images that show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from curation.audit.judgement import COMPLETE, SOURCES, ListInTask, missing_lists, unlocated, unlocated_need
from curation.audit.labels import raw_labels
from curation.audit.lists import AuditedList
from curation.audit.rule import Check, Finding, joined, undecidable
from curation.audit.target import SHOWN_EXAMPLES, AuditTarget
from curation.sources.source import Bools, Int64s
from curation.wording import counted

_SHOWN_CLASSES = 12


def tasks_increase(target: AuditTarget) -> list[Finding]:
    """TI1: introduced[t] is not empty and pairwise disjoint, K_t grows by it, U_t shrinks by it.

    What is left in U_T are classes that the benchmark says stay unknown for ever.
    """
    violations = [*_introductions(target), *_growth(target)]
    for_ever = {entry.name for entry in target.classes if entry.role != "known"}
    left = target.tasks[-1].unknown
    if forgotten := [name for name in left if name not in for_ever]:
        text = f"classes still unknown after the last task: {joined(forgotten)}"
        violations.append((target.tasks[-1].name, text))
    if not violations:
        sizes = ", ".join(str(len(task.introduced)) for task in target.tasks)
        never = f"; {len(left)} stay unknown" if left else ""
        return [Finding("pass", "tasks", text=f"{sizes} classes introduced{never}")]
    return _violated(violations)


def _violated(violations: Iterable[tuple[str, str]]) -> list[Finding]:
    """Return findings of what is wrong: what each is about, and what is said of it."""
    return [Finding("fail", about, 1, text, (f"{about}: {text}",)) for about, text in violations]


def _introductions(target: AuditTarget) -> dict[tuple[str, str], None]:
    found, home = dict[tuple[str, str], None](), dict[str, str]()
    for task in target.tasks:
        if not task.introduced:
            found[task.name, "introduces no class"] = None
        for name in task.introduced:
            first = home.setdefault(name, task.name)
            if first != task.name or task.introduced.count(name) > 1:
                found[task.name, f"introduces {name!r} again, after {first}"] = None
    return found


def _growth(target: AuditTarget) -> Iterator[tuple[str, str]]:
    """Compare stated classes of adjoining tasks; repeated introductions are told by `_introductions`."""
    for before, task in pairwise(target.tasks):
        gained, introduced = set(task.known) - set(before.known), set(task.introduced)
        if lost := sorted(set(before.known) - set(task.known)):
            yield task.name, f"classes known before are no longer known: {joined(lost)}"
        if other := sorted(gained - introduced):
            yield task.name, f"classes became known without being introduced: {joined(other)}"
        expected = set(before.unknown) - introduced
        if set(task.unknown) != expected:
            names = sorted(set(task.unknown) ^ expected)
            yield task.name, f"unknown is not the previous unknown minus the introduced: {joined(names)}"


def class_indices_are_stable(target: AuditTarget) -> list[Finding]:
    """TI2: the class order of a task begins with that of the task before; unknown keeps the index after the last."""
    violations = []
    for before, task in pairwise(target.tasks):
        moved = [(old, new) for old, new in zip(before.known, task.known, strict=False) if old != new]
        if moved or len(task.known) < len(before.known):
            lost = f"{before.known[-1]!r} of {before.name} has lost its index"
            told = "{1!r} has the index that {0!r} has in {2}".format(*moved[0], before.name) if moved else lost
            violations.append((task.name, told))
    unknown = len(target.classes)
    for entry in target.classes:
        if entry.role == "known" and entry.index >= unknown:
            text = f"index {entry.index} of {entry.name!r} is not below {unknown}, the index of unknown"
            violations.append(("classes", text))
    violations += _file_numbers(target)
    if not violations:
        known = sum(entry.role == "known" for entry in target.classes)
        text = f"indices 0 to {known - 1} in task order, unknown after all classes"
        return [Finding("pass", "tasks", text=text)]
    return _violated(violations)


def _file_numbers(target: AuditTarget) -> Iterator[tuple[str, str]]:
    """Yield where a label file gives a class another category id than an earlier one did."""
    number_of: dict[int, tuple[int, str]] = {}
    for file in {id(file.source): file for one in target.lists for file in one.labels.values()}.values():
        categories = file.source.categories
        for name, number in zip(categories.names, categories.numbers, strict=True):
            label = target.label_of(name)
            first, where = number_of.setdefault(label, (number, file.name))
            if label >= 0 and first != number:
                yield file.name, f"category id of {name!r} is {number}, but {first} in {where}"


def train_images_show_their_task(case: ListInTask) -> list[Finding]:
    """TI3: every train image of task t shows an object of a class that t introduces."""
    target, one = case.target, case.one
    if not one.available:
        return missing_lists([one])
    is_file = case.file is not None and not len(target.held(one))
    labels = case.labels if is_file else case.raw
    assert labels is not None  # noqa: S101
    own = np.append(target.introduced_in == case.task, [False, False])
    shown = target.where(labels.image[own[labels.label]])
    judged = case.covered if is_file else target.held(one)
    without = judged[~shown[judged]]
    silent = np.zeros(len(without), np.bool_) if is_file else target.incomplete(without)
    findings = case.uncovered_finding if is_file else unlocated(target, one)
    if len(proven := without[~silent]):
        text = f"{counted(len(proven), 'image')} without a class that {target.tasks[case.task].name} introduces"
        findings.append(case.of("fail", proven, text))
    if silent.any():
        text = f"the table names no class of the task for {int(silent.sum()):,} of {counted(len(one.unique), 'image')}"
        findings.append(undecidable(case.about, COMPLETE, text))
    return findings or case.passed(f"all {counted(len(one.unique), 'image')}")


def selection_is_complete(target: AuditTarget) -> Iterator[Finding]:
    """TI4: no image of the sources of train_t shows a class of introduced[t] and is missing from train_t, val, test."""
    for task in range(len(target.tasks)):
        if trains := target.with_role("train", task=task):
            yield from missing_lists(trains) or _left_out(target, task, trains)


def _left_out(target: AuditTarget, task: int, trains: list[AuditedList]) -> list[Finding]:
    about, held_out = joined([one.name for one in trains]), target.with_role("val", "test")
    drawn_from = _sources_of(target, trains)
    if not drawn_from:
        return unlocated(target, trains[0])
    findings = [finding for one in trains for finding in unlocated(target, one)]
    given = {source.name for source in target.sources}
    if not findings and (unseen := sorted({name for one in trains for name in one.sources} - given)):
        findings.append(undecidable(about, SOURCES, f"nothing is known about the images of {joined(unseen)}"))
    listed = target.mask([*trains, *held_out])
    for number in drawn_from:
        source = target.sources[number]
        objects = source.objects.require_objects("An audit")
        own = np.append(target.introduced_in == task, False)
        showing = np.zeros(len(source.raw.images), np.bool_)
        showing[objects.image[own[objects.category]]] = True
        places = target.positions[number]
        showing[places[(places >= 0) & listed]] = False
        natives = np.sort(source.raw.images.native[showing])
        least = "" if source.complete else "at least "
        images = counted(len(natives), "image")
        text = f"{least}{images} of {source.name} with a class of the task but in no list"
        if len(natives):
            found = Finding("warn", about, len(natives), text, tuple(natives[:SHOWN_EXAMPLES].tolist()))
            findings += missing_lists(held_out) or [found]
        elif source.complete:
            findings.append(Finding("pass", about, text=text))
        else:
            findings.append(undecidable(about, COMPLETE, text))
    return findings


def _sources_of(target: AuditTarget, lists: list[AuditedList]) -> list[int]:
    """Return the available sources that some lists draw from: those they name, else those that hold their images."""
    named = {name for one in lists for name in one.sources}
    if named:
        return [number for number, source in enumerate(target.sources) if source.name in named]
    homes = np.unique(np.concatenate([target.home[one.unique] for one in lists]))
    return [int(home) for home in homes if home >= 0]


def exemplars_are_balanced(case: ListInTask) -> list[Finding]:
    """TI5: finetune_t lies inside train_1 to train_t and holds N images of each class of K_t where these do."""
    target, steps = case.target, range(case.task + 1)
    earlier = [train for step in steps for train in target.with_role("train", task=step)]
    lacking = [target.tasks[step].name for step in steps if not target.with_role("train", task=step)]
    return missing_lists([case.one]) or [*_inside(case, earlier, lacking), *_exemplars(case, earlier, lacking)]


def _inside(case: ListInTask, earlier: list[AuditedList], lacking: list[str]) -> list[Finding]:
    about, images = f"{case.about}: subset", case.one.unique
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
    target, one, about = case.target, case.one, f"{case.about}: exemplars"
    if not len(target.held(one)):
        return unlocated(target, one)
    known = target.introduced_in <= case.task
    held, most = _images_of_classes(target, [one])
    offered, most_offered = _images_of_classes(target, earlier)
    if lacking or not all(other.available for other in earlier):
        most_offered = np.full_like(most_offered, target.exemplars)
    # "At least n" proves enough, never too few: that takes the most that there can be.
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
        silent = int(target.incomplete(one.unique).sum())
        text = (
            f"fewer than {target.exemplars} images seen for {int(open_classes.sum())} of {int(known.sum())} known "
            f"classes, but {silent:,} of its {len(one.unique):,} images, and those of the train lists, may show more"
        )
        names = _exemplar_counts(target, open_classes, held, most)
        findings.append(undecidable(about, unlocated_need(target, [one, *earlier]), text, names))
    smallest = int(held[known].min()) if known.any() else 0
    passed = Finding("pass", about, text=f"every known class has at least {counted(smallest, 'image')}")
    return findings or [passed]


def _exemplar_counts(target: AuditTarget, chosen: Bools, held: Int64s, most: Int64s) -> tuple[str, ...]:
    """Return the classes with the fewest images, each with how many it has at least."""
    places = np.flatnonzero(chosen)
    ranked = places[np.argsort(held[places], kind="stable")][:_SHOWN_CLASSES]
    return tuple(
        f"{target.classes[place].name} {'at least ' if most[place] > held[place] else ''}{held[place]}"
        for place in ranked.tolist()
    )


def _images_of_classes(target: AuditTarget, lists: list[AuditedList]) -> tuple[Int64s, Int64s]:
    """Return how many distinct images of some lists show each class, at least and at most, each shape (classes,).

    An image in no source, or in a table that may miss classes, may show any class.
    """
    n_classes = len(target.classes)
    pairs, images = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    for one in lists:
        labels = raw_labels(target, one)
        pairs.append(labels.image.astype(np.int64) * n_classes + labels.label)
        images.append(one.unique)
    shown = np.unique(np.concatenate(pairs))
    image, label = np.divmod(shown, max(n_classes, 1))
    least = np.bincount(label, minlength=n_classes)
    every = np.unique(np.concatenate(images))
    silent = every[target.incomplete(every)]
    on_silent = np.bincount(label[np.isin(image, silent)], minlength=n_classes)
    return least, least + len(silent) - on_silent


CHECKS: dict[str, Check] = {
    "TI1": tasks_increase,
    "TI2": class_indices_are_stable,
    "TI3": train_images_show_their_task,
    "TI4": selection_is_complete,
    "TI5": exemplars_are_balanced,
}
