"""DS, data specificity: an image stands once in a list, and in one role; no photo stands under two ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np

from curation.audit.judgement import SOURCES, missing_lists
from curation.audit.rule import Check, Finding, Outcome, not_applicable, undecidable
from curation.audit.target import SHOWN_EXAMPLES, AuditedList, AuditTarget, lines_of
from curation.similarity.near_duplicates import AlikePhotos, PhotoHashes, alike_photos, hash_photos
from curation.sources.datasets import namespace_of
from curation.sources.photos import PhotoFolder
from curation.sources.source import Bools, Int32s, Int64s

PHOTOS = "the photos of these images: --photos NAME=DIR"
_GROUPS = ("train", "val", "test")
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
    pairs = [pair for left, right in _APART for pair in product(target.with_role(*left), target.with_role(*right))]
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


def photos_are_distinct(target: AuditTarget) -> Outcome:
    """DS3: no photo stands in lists of two roles under different ids: by decoded pixels (error), by pHash (warning)."""
    roles = _roles(target)
    if roles.any(axis=1).sum() < 2 and not missing_lists(target.lists):
        return not_applicable("there are no lists of two roles")
    used = np.flatnonzero(roles.any(axis=0))
    photos = _photos(target, used)
    findings = missing_lists(target.lists)
    without = len(used) - len(photos)
    if without:
        findings.append(undecidable("photos", PHOTOS, f"{without:,} of {len(used):,} images have no photo at hand"))
    if photos:
        hashes = hash_photos({str(image): path for image, path in photos.items()})
        findings += _unreadable(target, hashes)
        findings += _alike(target, hashes, alike_photos(hashes), roles)
    return Outcome(tuple(findings))


def _roles(target: AuditTarget) -> Bools:
    """Return which images stand in train or finetune, in val, and in test lists, shape (3, u)."""
    groups = (("train", "finetune"), ("val",), ("test",))
    return np.array([target.mask(target.with_role(*group)) for group in groups])


def _photos(target: AuditTarget, images: Int64s) -> dict[int, Path]:
    """Return the photo of each image that has one below a given folder."""
    found: dict[int, Path] = {}
    for name, folder in sorted(target.photos.items()):
        photos = PhotoFolder(folder)
        for image, names in _file_names(target, name, images):
            if (path := photos.find(names)) is not None:
                found.setdefault(image, path)
    return dict(sorted(found.items()))


def _file_names(target: AuditTarget, name: str, images: Int64s) -> list[tuple[int, tuple[str, ...]]]:
    """Return the images whose photos a source has, each with the names under which its photo may lie."""
    numbers = [number for number, source in enumerate(target.sources) if source.name == name]
    if not numbers:
        spaces = {entry.namespace for entry in target.entries if entry.name == name}
        texts = [str(text) for text in target.ids[images].tolist()]
        return [
            (image, (text.partition(":")[2] or text,))
            for image, text in zip(images.tolist(), texts, strict=True)
            if not spaces or text.partition(":")[0] in spaces
        ]
    raw, places = target.sources[numbers[0]].raw, target.positions[numbers[0]]
    rows: list[tuple[int, tuple[str, ...]]] = []
    for image in images[places[images] >= 0].tolist():
        place = int(places[image])
        stated, native = str(raw.images.file_names[place]), str(raw.images.native[place])
        rows.append((image, (stated, native)))
    return rows


def _unreadable(target: AuditTarget, hashes: PhotoHashes) -> list[Finding]:
    if not hashes.failures:
        return []
    examples = [f"{target.ids[int(name)]}: {why}" for name, why in list(hashes.failures.items())[:SHOWN_EXAMPLES]]
    text = f"{len(hashes.failures):,} photos cannot be read: {'; '.join(examples[:2])}"
    return [undecidable("photos", "photos that can be decoded", text)]


def _alike(target: AuditTarget, hashes: PhotoHashes, alike: AlikePhotos, roles: Bools) -> list[Finding]:
    """Return the pairs of alike photos that stand in lists of different roles."""
    images = np.array([int(name) for name in hashes.names], np.int64)
    first, second = images[alike.first], images[alike.second]
    findings: list[Finding] = []
    for one, two in ((0, 1), (0, 2), (1, 2)):
        apart = (roles[one][first] & roles[two][second]) | (roles[two][first] & roles[one][second])
        about = f"{_GROUPS[two]} against {_GROUPS[one]}"
        for same in (True, False):
            rows = np.flatnonzero(apart & (alike.same_pixels == same))
            if len(rows):
                findings.append(_pairs(target, about, first[rows], second[rows], alike.distance[rows], same))
    if not findings:
        text = f"{len(hashes):,} photos, none alike in lists of different roles"
        findings.append(Finding("pass", "photos", text=text))
    return findings


def _pairs(target: AuditTarget, about: str, first: Int64s, second: Int64s, distance: Int32s, same: bool) -> Finding:
    named = sorted(
        (bits, *sorted((str(target.ids[one]), str(target.ids[two]))))
        for one, two, bits in zip(first.tolist(), second.tolist(), distance.tolist(), strict=True)
    )
    examples = tuple(
        f"{one} and {two}" + ("" if same else f" (pHash differs in {bits} of 64 bits)")
        for bits, one, two in named[:SHOWN_EXAMPLES]
    )
    what = "have the same pixels" if same else "are nearly the same"
    text = f"{len(named):,} pairs of photos under different ids {what}"
    return Finding("fail" if same else "warn", about, len(named), text, examples)


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


CHECKS: dict[str, Check] = {
    "DS1": lists_name_images_once,
    "DS2": roles_share_no_image,
    "DS3": photos_are_distinct,
    "DS4": validation_lists_are_disjoint,
    "DS5": ids_name_one_file,
}
