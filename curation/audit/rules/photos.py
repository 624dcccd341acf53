"""DS3: photos that are the same, or nearly, in lists of different roles under different ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from curation.audit.judgement import missing_lists
from curation.audit.rule import SHOWN_EXAMPLES, Finding, Outcome, not_applicable, undecidable
from curation.audit.target import AuditTarget
from curation.similarity.near_duplicates import AlikePhotos, PhotoHashes, alike_photos, hash_photos
from curation.sources.photos import PhotoFolder
from curation.sources.source import Bools, Int32s, Int64s

PHOTOS = "the photos of these images: --photos NAME=DIR"
_APART = ("train", "val", "test")


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
        findings.append(
            undecidable("photos", PHOTOS, f"{without:,} of {len(used):,} images have no photo at hand")
        )
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
    examples = [
        f"{target.ids[int(name)]}: {why}" for name, why in list(hashes.failures.items())[:SHOWN_EXAMPLES]
    ]
    text = f"{len(hashes.failures):,} photos cannot be read: {'; '.join(examples[:2])}"
    return [undecidable("photos", "photos that can be decoded", text)]


def _alike(target: AuditTarget, hashes: PhotoHashes, alike: AlikePhotos, roles: Bools) -> list[Finding]:
    """Return the pairs of alike photos that stand in lists of different roles."""
    images = np.array([int(name) for name in hashes.names], np.int64)
    first, second = images[alike.first], images[alike.second]
    findings: list[Finding] = []
    for one, two in ((0, 1), (0, 2), (1, 2)):
        apart = (roles[one][first] & roles[two][second]) | (roles[two][first] & roles[one][second])
        about = f"{_APART[two]} against {_APART[one]}"
        for same in (True, False):
            rows = np.flatnonzero(apart & (alike.same_pixels == same))
            if len(rows):
                findings.append(_pairs(target, about, first[rows], second[rows], alike.distance[rows], same))
    if not findings:
        text = f"{len(hashes):,} photos, none alike in lists of different roles"
        findings.append(Finding("pass", "photos", text=text))
    return findings


def _pairs(
    target: AuditTarget, about: str, first: Int64s, second: Int64s, distance: Int32s, same: bool
) -> Finding:
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
