"""DS, data specificity: an image stands once in a list, and in one role."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from curation.audit.needs import SOURCES, missing_lists, missing_roles
from curation.audit.rule import Finding, Outcome, Rule, not_applicable, outcome, undecidable
from curation.audit.rules.photos import photos_are_distinct
from curation.audit.target import AuditedList, AuditTarget, lines_of
from curation.sources.datasets import namespace_of
from curation.sources.source import Bools

_APART = (
    (("train", "finetune"), ("val",)),
    (("train", "finetune", "val"), ("test",)),
)
"""Roles that share no image. A finetuning list lies inside the train lists (TI5)."""


def lists_name_images_once(target: AuditTarget) -> Outcome:
    """DS1: no list names an image twice."""
    if not target.files:
        return outcome([undecidable("lists", "a folder with lists of image ids")])
    at_hand = [one for one in target.files if one.at_hand]
    findings = missing_lists([one for one in target.files if not one.stated_repeats])
    for one in target.files:
        if one.stated_repeats and not one.at_hand:
            text = f"{one.stated_repeats:,} lines repeat an image, as the manifest says"
            findings.append(Finding("fail", one.name, one.stated_repeats, text))
    for one in at_hand:
        repeats = len(one.members) - len(one.unique)
        if repeats:
            findings.append(_repeated(target, one, repeats))
    sound = sum(len(one.members) == len(one.unique) for one in at_hand)
    if sound:
        findings.append(Finding("pass", "lists", text=f"{sound} lists name every image once"))
    return outcome(findings)


def _repeated(target: AuditTarget, one: AuditedList, repeats: int) -> Finding:
    times = np.bincount(one.members)
    ids = np.flatnonzero(times > 1)
    text = (
        f"{repeats:,} lines repeat an image: {len(one.members):,} lines, {len(one.unique):,} images, "
        f"{len(ids):,} of them more than once (at most {int(times.max())} times)"
    )
    examples = []
    for image in target.first(ids):
        lines = lines_of(one, image)
        examples.append(f"{target.ids[image]} ({one.file} lines {', '.join(map(str, lines[:4]))})")
    return Finding("fail", one.name, repeats, text, tuple(examples))


def roles_share_no_image(target: AuditTarget) -> Outcome:
    """DS2: no image stands in train or finetune and in val, nor in any of these and in test, over all tasks."""
    if (missing := missing_roles(target, "train", "finetune", "val")) is not None:
        return missing
    pairs = list(_pairs_apart(target))
    if not pairs:
        return not_applicable("there are no lists of two roles")
    findings = missing_lists(target.with_role("train", "finetune", "val", "test"))
    shared_by_any = np.zeros(len(target.ids), np.bool_)
    sound = 0
    for first, second in pairs:
        shared = target.shared(first, second)
        shared_by_any |= shared
        sound += not shared.any() and first.at_hand and second.at_hand
        if shared.any():
            findings.append(_overlap(target, first, second, shared, "in"))
    if sound:
        findings.append(Finding("pass", "pairs of lists", text=f"{sound} pairs of lists share no image"))
    findings += _allowed(target)
    return outcome(findings, int(shared_by_any.sum()))


def _pairs_apart(target: AuditTarget) -> Iterator[tuple[AuditedList, AuditedList]]:
    for left, right in _APART:
        yield from product(target.with_role(*left), target.with_role(*right))


def _overlap(
    target: AuditTarget, first: AuditedList, second: AuditedList, shared: Bools, word: str
) -> Finding:
    images = np.flatnonzero(shared)
    text = f"{len(images):,} images stand in both"
    return Finding(
        "fail",
        f"{second.name} {word} {first.name}",
        len(images),
        text,
        target.examples(images, [first, second]),
    )


def _allowed(target: AuditTarget) -> list[Finding]:
    """Return what train lists of different tasks share: allowed, since each labels its own classes."""
    findings = []
    for first, second in combinations(target.with_role("train"), 2):
        if first.tasks != second.tasks and (count := int(target.shared(first, second).sum())):
            text = f"{count:,} images stand in both train lists (allowed)"
            findings.append(Finding("pass", f"{second.name} and {first.name}", count, text))
    return findings


def validation_lists_are_disjoint(target: AuditTarget) -> Outcome:
    """DS4: validation lists of different tasks share no image."""
    if (missing := missing_roles(target, "val")) is not None:
        return missing
    lists = target.with_role("val")
    findings = missing_lists(lists)
    shared_by_any = np.zeros(len(target.ids), np.bool_)
    pairs = [pair for pair in combinations(lists, 2) if _of_different_tasks(*pair)]
    if not pairs:
        return not_applicable("there are no validation lists of different tasks")
    for first, second in pairs:
        shared = target.shared(first, second)
        if shared.any():
            shared_by_any |= shared
            findings.append(_overlap(target, first, second, shared, "and"))
    if not findings:
        findings.append(
            Finding("pass", "validation lists", text=f"{len(pairs)} pairs of lists share no image")
        )
    return outcome(findings, int(shared_by_any.sum()))


def _of_different_tasks(one: AuditedList, two: AuditedList) -> bool:
    return bool(one.tasks and two.tasks) and not set(one.tasks) & set(two.tasks)


def ids_name_one_file(target: AuditTarget) -> Outcome:
    """DS5: an id names one image, not one in each of two datasets."""
    if target.kind == "manifest":
        return _namespaced(target)
    if not target.sources:
        return outcome([undecidable("ids", SOURCES)])
    findings = list(_collisions(target))
    reached = int((target.home >= 0).sum())
    if reached < len(target.ids):
        text = f"{len(target.ids) - reached:,} of {len(target.ids):,} ids are in no source at hand"
        findings.append(undecidable("ids", SOURCES, text))
    return outcome(findings or [Finding("pass", "ids", text=f"{reached:,} ids, each of one dataset")])


def _namespaced(target: AuditTarget) -> Outcome:
    datasets: dict[str, set[str]] = {}
    for entry in target.entries:
        datasets.setdefault(entry.namespace, set()).add(namespace_of(entry.dataset))
    mixed = sorted(space for space, names in datasets.items() if len(names) > 1)
    if not mixed:
        return outcome([Finding("pass", "ids", text="every namespace stands for one dataset")])
    findings = list(_collisions(target))
    if not findings:
        text = f"datasets of different ids share the namespace {', '.join(mixed)}"
        findings.append(undecidable("ids", SOURCES, text))
    return outcome(findings)


def _collisions(target: AuditTarget) -> Iterator[Finding]:
    """Yield the ids that sources of two datasets hold; parts of one dataset share ids by right."""
    for (one, first), (two, second) in combinations(enumerate(target.sources), 2):
        if namespace_of(first.raw.dataset) == namespace_of(second.raw.dataset):
            continue
        images = np.flatnonzero((target.positions[one] >= 0) & (target.positions[two] >= 0))
        if len(images):
            text = f"{len(images):,} ids name an image in either"
            about = f"{first.name} and {second.name}"
            yield Finding("fail", about, len(images), text, target.examples(images, target.files))


RULES = (
    Rule(
        "DS1",
        "error",
        "No list names an image twice",
        "the lists",
        "write every id once: `sort -u`, or keep the order and drop the later lines",
        lists_name_images_once,
    ),
    Rule(
        "DS2",
        "error",
        "No image of a validation list is trained on in any task, and no test image is trained, tuned or validated on",
        "the lists with their roles",
        "remove the shared images from the train and finetune lists of every task",
        roles_share_no_image,
    ),
    Rule(
        "DS3",
        "error",
        "No photo stands under two ids in lists of different roles (same pixels: error; nearly the same: warning)",
        "the lists with their roles, and the photos",
        "remove one of the two photos",
        photos_are_distinct,
    ),
    Rule(
        "DS4",
        "error",
        "Validation lists of different tasks share no image",
        "the validation lists",
        "draw the validation lists task by task, leaving out what was drawn before",
        validation_lists_are_disjoint,
    ),
    Rule(
        "DS5",
        "error",
        "An id names one image, not one in each of two datasets",
        "the lists and their sources",
        "put the dataset before the id: coco:000000000139, voc2007:000012",
        ids_name_one_file,
    ),
)
