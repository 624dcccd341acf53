"""DS, data specificity: an image stands once in a list, and in one role."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np

from curation.audit.judgement import SOURCES, missing_lists
from curation.audit.rule import Finding, Outcome, Rule, not_applicable, undecidable
from curation.audit.rules.photos import photos_are_distinct
from curation.audit.target import AuditedList, AuditTarget, lines_of
from curation.sources.datasets import namespace_of

_APART = (
    (("train", "finetune"), ("val",)),
    (("train", "finetune", "val"), ("test",)),
)
"""Roles that share no image. A finetuning list lies inside the train lists (TI5)."""


def lists_name_images_once(target: AuditTarget) -> Iterator[Finding]:
    """DS1: no list names an image twice."""
    if not target.files:
        yield undecidable("lists", "a folder with lists of image ids")
    yield from missing_lists([one for one in target.files if not one.stated_repeats])
    for one in target.files:
        if one.stated_repeats and not one.available:
            text = f"{one.stated_repeats:,} lines repeat an image, as the manifest says"
            yield Finding("fail", one.name, one.stated_repeats, text)
    available = [one for one in target.files if one.available]
    for one in available:
        if repeats := len(one.members) - len(one.unique):
            yield _repeated(target, one, repeats)
    if sound := sum(len(one.members) == len(one.unique) for one in available):
        yield Finding("pass", "lists", text=f"{sound} lists name every image once")


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
    pairs = [
        pair for left, right in _APART for pair in product(target.with_role(*left), target.with_role(*right))
    ]
    if not pairs:
        return not_applicable("there are no lists of two roles")
    overlaps, count = _overlaps(target, pairs, "in")
    findings = [*missing_lists(target.with_role("train", "finetune", "val", "test")), *overlaps]
    available = sum(first.available and second.available for first, second in pairs)
    if sound := available - len(overlaps):
        findings.append(Finding("pass", "pairs of lists", text=f"{sound} pairs of lists share no image"))
    return Outcome((*findings, *_allowed(target)), count)


def _overlaps(
    target: AuditTarget, pairs: Sequence[tuple[AuditedList, AuditedList]], word: str
) -> tuple[list[Finding], int]:
    """Return the pairs of lists that share images, and how many images some pair shares."""
    findings = []
    shared_by_any = np.zeros(len(target.ids), np.bool_)
    for first, second in pairs:
        shared = target.shared(first, second)
        shared_by_any |= shared
        if len(images := np.flatnonzero(shared)):
            about, text = f"{second.name} {word} {first.name}", f"{len(images):,} images stand in both"
            examples = target.examples(images, [first, second])
            findings.append(Finding("fail", about, len(images), text, examples))
    return findings, int(shared_by_any.sum())


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
    lists = target.with_role("val")
    pairs = [pair for pair in combinations(lists, 2) if _of_different_tasks(*pair)]
    if not pairs:
        return not_applicable("there are no validation lists of different tasks")
    overlaps, count = _overlaps(target, pairs, "and")
    sound = Finding("pass", "validation lists", text=f"{len(pairs)} pairs of lists share no image")
    return Outcome((*missing_lists(lists), *overlaps) or (sound,), count)


def _of_different_tasks(one: AuditedList, two: AuditedList) -> bool:
    return bool(one.tasks and two.tasks) and not set(one.tasks) & set(two.tasks)


def ids_name_one_file(target: AuditTarget) -> list[Finding]:
    """DS5: an id names one image, not one in each of two datasets."""
    if target.kind == "manifest":
        return _namespaced(target)
    if not target.sources:
        return [undecidable("ids", SOURCES)]
    findings = list(_collisions(target))
    reached = int((target.home >= 0).sum())
    if reached < len(target.ids):
        text = f"{len(target.ids) - reached:,} of {len(target.ids):,} ids are in no source at hand"
        findings.append(undecidable("ids", SOURCES, text))
    return findings or [Finding("pass", "ids", text=f"{reached:,} ids, each of one dataset")]


def _namespaced(target: AuditTarget) -> list[Finding]:
    datasets: dict[str, set[str]] = {}
    for entry in target.entries:
        datasets.setdefault(entry.namespace, set()).add(namespace_of(entry.dataset))
    mixed = sorted(space for space, names in datasets.items() if len(names) > 1)
    if not mixed:
        return [Finding("pass", "ids", text="every namespace stands for one dataset")]
    text = f"datasets of different ids share the namespace {', '.join(mixed)}"
    return list(_collisions(target)) or [undecidable("ids", SOURCES, text)]


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
        tasks=False,
    ),
    Rule(
        "DS2",
        "error",
        "No image of a validation list is trained on in any task, and no test image is trained, tuned or validated on",
        "the lists with their roles",
        "remove the shared images from the train and finetune lists of every task",
        roles_share_no_image,
        roles=("train", "finetune", "val"),
        tasks=False,
    ),
    Rule(
        "DS3",
        "error",
        "No photo stands under two ids in lists of different roles (same pixels: error; nearly the same: warning)",
        "the lists with their roles, and the photos",
        "remove one of the two photos",
        photos_are_distinct,
        roles=("train", "finetune", "val", "test"),
        tasks=False,
    ),
    Rule(
        "DS4",
        "error",
        "Validation lists of different tasks share no image",
        "the validation lists",
        "draw the validation lists task by task, leaving out what was drawn before",
        validation_lists_are_disjoint,
        roles=("val",),
        tasks=False,
    ),
    Rule(
        "DS5",
        "error",
        "An id names one image, not one in each of two datasets",
        "the lists and their sources",
        "put the dataset before the id: coco:000000000139, voc2007:000012",
        ids_name_one_file,
        tasks=False,
    ),
)
