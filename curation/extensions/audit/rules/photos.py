"""DS3: photos of lists of two roles, compared by perceptual hashes and pixels."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from curation.core.wording import counted
from curation.extensions.audit.rule import Finding, Outcome, Verdict, missing_lists, not_applicable, undecidable
from curation.extensions.audit.target import SHOWN_EXAMPLES, AuditTarget
from curation.review.decisions.pairs import PhotoPair
from curation.signals.similarity.near_duplicates import (
    DISTANCE,
    AlikePhotos,
    PhotoHashes,
    alike_photos,
    hash_photos,
    show_the_same,
)
from curation.sources.photos import PhotoFolder
from curation.sources.source import Bools, Int64s

PHOTOS = "the photos of these images: --photos NAME=DIR"
_GROUPS = ("train", "val", "test")
_ROLES_OF = (("train", "finetune"), ("val",), ("test",))


def photos_are_distinct(target: AuditTarget) -> Outcome:
    """DS3: No photo occurs under two ids in lists of different roles (same pixels: error; nearly the same: warning).

    Perceptual hashes propose pairs, and pixels decide.
    """
    roles = _roles(target)
    if roles.any(axis=1).sum() < 2 and not missing_lists(target.lists):
        return not_applicable("there are no lists of two roles")
    used = np.flatnonzero(roles.any(axis=0))
    photos = _photos(target, used)
    findings = missing_lists(target.lists)
    if without := len(used) - len(photos):
        size = f"{without:,} of {counted(len(used), 'image')}"
        text, need = f"no photo available for {size}", PHOTOS
        if target.published is not None and not target.photos and (home := target.published.photo_folder):
            text = f"the pixels of {size} were not compared"
            need = f"--photos photos={shlex.quote(home)}"
        findings.append(undecidable("photos", need, text))
    if photos:
        hashes = hash_photos({str(image): path for image, path in photos.items()})
        findings += _unreadable(target, hashes)
        findings += _alike(target, hashes, photos, roles)
    return Outcome(tuple(findings))


def _roles(target: AuditTarget) -> Bools:
    """Return which images are in train or finetune, in val, and in test lists, shape (3, u)."""
    return np.array([target.mask(target.with_role(*group)) for group in _ROLES_OF])


def _photos(target: AuditTarget, images: Int64s) -> dict[int, Path]:
    """Return the photo of each image that has one below a given folder."""
    paths: dict[int, Path] = {}
    for name, folder in sorted(target.photos.items()):
        photos = PhotoFolder(folder)
        for image, names in _file_names(target, name, images):
            if (path := photos.find(names)) is not None:
                paths.setdefault(image, path)
    return dict(sorted(paths.items()))


def _file_names(target: AuditTarget, name: str, images: Int64s) -> list[tuple[int, tuple[str, ...]]]:
    """Return the images of a source, each with the file names that its photo may have."""
    numbers = [number for number, source in enumerate(target.sources) if source.name == name]
    if not numbers:
        spaces = {entry.namespace for entry in target.entries if entry.name == name}
        texts = [str(text) for text in target.ids[images].tolist()]
        return [
            (image, (text.partition(":")[2] or text,))
            for image, text in zip(images.tolist(), texts, strict=True)
            if not spaces or text.partition(":")[0] in spaces
        ]
    raw, positions = target.sources[numbers[0]].raw, target.positions[numbers[0]]
    rows: list[tuple[int, tuple[str, ...]]] = []
    for image in images[positions[images] >= 0].tolist():
        row = int(positions[image])
        file_name, native = str(raw.images.file_names[row]), str(raw.images.native[row])
        rows.append((image, (file_name, native)))
    return rows


def _unreadable(target: AuditTarget, hashes: PhotoHashes) -> list[Finding]:
    if not hashes.failures:
        return []
    examples = [f"{target.ids[int(name)]}: {why}" for name, why in list(hashes.failures.items())[:SHOWN_EXAMPLES]]
    text = f"{counted(len(hashes.failures), 'unreadable photo')}: {'; '.join(examples[:2])}"
    return [undecidable("photos", "photos that can be decoded", text)]


_RELATIONS: Mapping[str, tuple[Verdict, str]] = {
    "same_pixels": ("fail", "with the same pixels"),
    "judged": ("fail", "that a person judged the same"),
    "nearly_same": ("warn", "that are nearly the same"),
}
"""The verdict and the words for each relation of two photos."""


def _alike(target: AuditTarget, hashes: PhotoHashes, photos: Mapping[int, Path], roles: Bools) -> list[Finding]:
    """Return the findings on alike photos in lists of different roles; a person's decision overrules pixels."""
    alike = alike_photos(hashes)
    images = np.array([int(name) for name in hashes.names], np.int64)
    first, second = images[alike.first], images[alike.second]
    findings: list[Finding] = []
    pairs: list[PhotoPair] = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        forward, backward = roles[a][first] & roles[b][second], roles[b][first] & roles[a][second]
        rows: defaultdict[str, list[PhotoPair]] = defaultdict(list)
        lost: defaultdict[str, list[int]] = defaultdict(list)
        for row in np.flatnonzero(forward | backward).tolist():
            left, right = (first[row], second[row]) if forward[row] else (second[row], first[row])
            pair = _photo_pair(target, photos, (int(left), int(right)), (_GROUPS[a], _GROUPS[b]), alike, row)
            if pair is not None:
                pairs.append(pair)
                relation = "judged" if pair.decision == "same" and pair.kind != "same_pixels" else pair.kind
                if pair.decision != "different":
                    rows[relation].append(pair)
                    lost[relation].append(int(left))
        for relation, (verdict, words) in _RELATIONS.items():
            if relation in rows:
                drops = {
                    part.name: part.lines[np.isin(part.members, lost[relation])]
                    for part in target.with_role(*_ROLES_OF[a])
                    if verdict == "fail" and part.available
                }
                bits = "" if relation == "same_pixels" else " (pHash differs in {} of 64 bits)"
                ranked = sorted((pair.value, *sorted((pair.left, pair.right))) for pair in rows[relation])
                examples = tuple(
                    f"{left} and {right}{bits.format(value)}" for value, left, right in ranked[:SHOWN_EXAMPLES]
                )
                text = f"{counted(len(ranked), 'pair')} of photos under different ids {words}"
                about = f"{_GROUPS[b]} against {_GROUPS[a]}"
                findings.append(Finding(verdict, about, len(ranked), text, examples, drops=drops))
    target.cache["photo pairs", ""] = sorted(pairs, key=lambda pair: (pair.value, pair.left, pair.right))
    if not findings:
        text = f"{counted(len(hashes), 'photo')}, no two alike in lists of different roles"
        findings.append(Finding("pass", "photos", text=text))
    return findings


def _photo_pair(
    target: AuditTarget, photos: Mapping[int, Path], images: tuple[int, int], roles: tuple[str, str],
    alike: AlikePhotos, row: int,
) -> PhotoPair | None:  # fmt: skip
    """Return a pair for a person to judge; None for different pixels without a decision."""
    left, right = (str(target.ids[image]) for image in images)
    paths, decision = [photos[image] for image in images], target.judged.get(frozenset((left, right)), "")
    same = bool(alike.same_pixels[row])
    if not (same or decision or show_the_same(*paths)):
        return None
    kind, threshold = ("same_pixels", 0) if same else ("nearly_same", DISTANCE)
    bits = int(alike.distance[row])
    return PhotoPair(left, right, str(paths[0]), str(paths[1]), *roles, kind, bits, threshold, decision)
