"""Boxes of one or more reviewers: how far they agree, which of them are taken, and a manifest that names these."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from curation.arguments import checked
from curation.decisions.application import count_part
from curation.decisions.box_edits import BoxLogFile, BoxState, Replay, merged, read_box_log
from curation.errors import DecisionConflictError, DecisionError, UsageError
from curation.manifest.header import UNNAMED, Header, OverlayEntry, PartEntry
from curation.manifest.manifest import Manifest
from curation.manifest.overlay import Overlay, OverlayBox, OverlayImage, box_key
from curation.sources.source import Floats, Source

BoxesRule = Literal["error", "union", "agree", "senior"]
RULES: dict[BoxesRule, str] = {
    "error": "reviewers of one image must have drawn the same boxes",
    "union": "every box of every reviewer; those that match are one, as the first reviewer drew it",
    "agree": "boxes that all reviewers of an image drew, at least two, with one label",
    "senior": "of each image the boxes of the most senior reviewer who worked on it",
}
IOU = "0.5"
_SHOWN = 3


def counted(number: int, one: str, several: str = "") -> str:
    """Return ``1 image`` or ``2 images``."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


@dataclass(frozen=True, slots=True)
class BoxAgreement:
    """Two reviewers on the images that both declared complete, their boxes matched one to one.

    Attributes
    ----------
    images : int
    boxes : tuple of int
        Of the first and of the second.
    matched : int
        Pairs with an IoU of at least the threshold; the pair of highest IoU is taken first.
    same_label : int
        Of these, those with one label.
    f1, jaccard : float or None
        ``2 m / (a + b)`` and ``m / (a + b - m)``; None where neither drew a box.
    mean_iou : float or None
        Of matched pairs; None without one.
    """

    first: str
    second: str
    images: int
    boxes: tuple[int, int]
    matched: int
    same_label: int
    f1: float | None
    jaccard: float | None
    mean_iou: float | None


def threshold_of(text: str) -> Fraction:
    """Return an IoU threshold; anything but a decimal above 0 and up to 1 is a `UsageError`."""
    value = Fraction(text) if re.fullmatch(r"[01](?:\.\d{1,6})?", text) else Fraction(0)
    if not 0 < value <= 1:
        raise UsageError(
            "The IoU threshold is not usable", expected="a decimal above 0, up to 1", found=repr(text)[:40]
        )
    return value


def matched_pairs(
    first: Sequence[BoxState], second: Sequence[BoxState], threshold: Fraction
) -> list[tuple[int, int, float]]:
    """Return pairs of boxes, one to one, with their IoU: the pair of highest IoU first, ties in order of the boxes.

    Two people have no scores by which one could go first, as detections have: hence not the assignment of evaluations.
    """
    if not first or not second:
        return []
    one, other = _numbers(first)[:, None], _numbers(second)[None]
    low, high = np.maximum(one[..., :2], other[..., :2]), np.minimum(_ends(one), _ends(other))
    common = np.clip(high - low, 0, None).prod(-1)
    iou = common / (one[..., 2:].prod(-1) + other[..., 2:].prod(-1) - common)
    rows, columns = np.nonzero(iou >= float(threshold))
    pairs, used = [], (set[int](), set[int]())
    for place in np.lexsort((columns, rows, -iou[rows, columns])).tolist():
        row, column = int(rows[place]), int(columns[place])
        if row not in used[0] and column not in used[1]:
            used[0].add(row)
            used[1].add(column)
            pairs.append((row, column, float(iou[row, column])))
    return pairs


def _numbers(boxes: Sequence[BoxState]) -> Floats:
    return np.array([[float(number) for number in one.box] for one in boxes], np.float64)


def _ends(boxes: Floats) -> Floats:
    ends: Floats = boxes[..., :2] + boxes[..., 2:]
    return ends


def box_agreement(replay: Replay, iou: str = IOU) -> tuple[BoxAgreement, ...]:
    """Return the agreement of every two reviewers who declared at least one image complete both."""
    threshold = threshold_of(iou)
    reviewers = sorted({reviewer for _, reviewer in replay.complete})
    found = []
    for pair in combinations(reviewers, 2):
        of = [{image for image, name in replay.complete if name == reviewer} for reviewer in pair]
        if both := sorted(of[0] & of[1]):
            found.append(_agreement(replay, pair, both, threshold))
    return tuple(found)


def _agreement(replay: Replay, pair: tuple[str, str], images: Sequence[str], threshold: Fraction) -> BoxAgreement:
    counts, overlaps, same = [0, 0], list[float](), 0
    for image in images:
        first, second = (_drawn(replay, image, reviewer) for reviewer in pair)
        counts = [counts[0] + len(first), counts[1] + len(second)]
        for row, column, iou in matched_pairs(first, second, threshold):
            overlaps.append(iou)
            same += first[row].label == second[column].label
    matched, either = len(overlaps), sum(counts) - len(overlaps)
    return BoxAgreement(
        first=pair[0],
        second=pair[1],
        images=len(images),
        boxes=(counts[0], counts[1]),
        matched=matched,
        same_label=same,
        f1=2 * matched / sum(counts) if either else None,
        jaccard=matched / either if either else None,
        mean_iou=sum(overlaps) / matched if matched else None,
    )


def _drawn(replay: Replay, image: str, reviewer: str) -> list[BoxState]:
    """Return a reviewer's boxes on an image, sorted, so that the order of drawing decides nothing."""
    boxes = replay.boxes.get((image, reviewer), {}).values()
    return sorted(boxes, key=lambda one: (*map(Fraction, one.box), one.label))


@dataclass(frozen=True, slots=True)
class BoxConflict:
    """One image on which reviewers differ: boxes that not all drew, and boxes that got different labels."""

    image_id: str
    reviewers: tuple[str, ...]
    unmatched: int
    relabelled: int

    def text(self) -> str:
        """Return this as one line."""
        return (
            f"{self.image_id} ({', '.join(self.reviewers)}): {counted(self.unmatched, 'box', 'boxes')} not drawn by "
            f"all, {self.relabelled} with different labels"
        )


@dataclass(frozen=True, slots=True)
class BoxResolution:
    """The boxes that are taken, by a rule that is named.

    Attributes
    ----------
    overlay : Overlay
    rule : str
        One of `RULES`; ``given`` for the boxes of another manifest.
    log : str
        Digest of what stood in the logs.
    conflicts : tuple of BoxConflict
        Images on which reviewers differ, whatever the rule made of it.
    alone : int
        Images that ``agree`` leaves out, since one reviewer alone worked on them.
    """

    overlay: Overlay
    rule: str
    log: str
    conflicts: tuple[BoxConflict, ...] = ()
    alone: int = 0


def resolve_boxes(
    replay: Replay, rule: BoxesRule = "error", *, seniors: Sequence[str] = (), iou: str = IOU
) -> BoxResolution:
    """Return the boxes that a rule takes, and the images that are boxed exhaustively by it.

    An image is exhaustive where every reviewer whose boxes count declared it complete, and, but for ``union``, nothing
    is left in dispute.

    Parameters
    ----------
    rule : {"error", "union", "agree", "senior"}
        See `RULES`.
    seniors : sequence of str
        Whose word goes first, the most senior first; the others by name.
    iou : str
        From which on two boxes are of one object.

    Raises
    ------
    DecisionConflictError
        Reviewers differ, under ``error``.
    UsageError
        ``senior`` without a name, or a threshold that is none.
    """
    threshold = threshold_of(iou)
    if rule == "senior" and not seniors:
        raise UsageError("--rule boxes=senior needs to know who is senior", expected="--senior NAME")
    rank = {name: place for place, name in enumerate(seniors)}
    images, conflicts, alone = [], [], 0
    for image in replay.images:
        people = sorted(replay.reviewers_of(image), key=lambda name: (rank.get(name, len(rank)), name))
        if rule == "senior":
            people = people[:1]
        if rule == "agree" and len(people) < 2:
            alone += 1
            continue
        drawn = _Drawn.of({name: _drawn(replay, image, name) for name in people}, threshold)
        disputed = drawn.conflict(image)
        if disputed is not None:
            conflicts.append(disputed)
        boxes = drawn.shared() if rule == "agree" else drawn.every()
        declared = all((image, name) in replay.complete for name in people)
        exhaustive = declared and (disputed is None or rule == "union")
        if boxes or exhaustive:
            images.append(OverlayImage(image_id=image, exhaustive=exhaustive, boxes=tuple(sorted(boxes, key=box_key))))
    if rule == "error" and conflicts:
        raise DecisionConflictError(
            "Reviewers drew different boxes",
            found="; ".join(one.text() for one in conflicts[:_SHOWN]) + ("; …" if len(conflicts) > _SHOWN else ""),
            expected="the same boxes, or --rule boxes=" + "|".join(one for one in RULES if one != "error"),
            hint="curation review summary FILE … shows how far they agree",
        )
    return BoxResolution(Overlay(tuple(images)), rule, replay.digest, tuple(conflicts), alone)


@dataclass(slots=True)
class _Drawn:
    """The boxes of one image, those that match as one: as the first reviewer drew it, and the labels of the others."""

    people: tuple[str, ...]
    boxes: list[BoxState] = field(default_factory=list)
    by: list[dict[str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, drawn: Mapping[str, Sequence[BoxState]], threshold: Fraction) -> _Drawn:
        found = cls(tuple(drawn))
        for name, boxes in drawn.items():
            pairs = {column: row for row, column, _ in matched_pairs(found.boxes, boxes, threshold)}
            for place, one in enumerate(boxes):
                if place in pairs:
                    found.by[pairs[place]][name] = one.label
                else:
                    found.boxes.append(one)
                    found.by.append({name: one.label})
        return found

    def conflict(self, image: str) -> BoxConflict | None:
        unmatched = sum(len(one) < len(self.people) for one in self.by)
        relabelled = sum(len(set(one.values())) > 1 for one in self.by)
        if not (unmatched or relabelled):
            return None
        return BoxConflict(image, self.people, unmatched, relabelled)

    def every(self) -> list[OverlayBox]:
        return [self._taken(place) for place in range(len(self.boxes))]

    def shared(self) -> list[OverlayBox]:
        return [
            self._taken(place)
            for place, one in enumerate(self.by)
            if len(one) == len(self.people) and len(set(one.values())) == 1
        ]

    def _taken(self, place: int) -> OverlayBox:
        one = self.boxes[place]
        return OverlayBox(box=one.box, label=one.label, reviewers=tuple(sorted(self.by[place])))


@dataclass(frozen=True, slots=True)
class BoxReport:
    """All that is told of some box logs."""

    files: tuple[BoxLogFile, ...]
    replay: Replay
    agreement: tuple[BoxAgreement, ...]
    iou: str

    def reviewers(self) -> list[dict[str, Any]]:
        """Return for each reviewer the images, boxes and images declared complete."""
        names = sorted({reviewer for _, reviewer in self.replay.boxes})
        return [
            {
                "reviewer": name,
                "images": sum(one == name for _, one in self.replay.boxes),
                "boxes": sum(len(boxes) for (_, one), boxes in self.replay.boxes.items() if one == name),
                "complete": sum(one == name for _, one in self.replay.complete),
            }
            for name in names
        ]

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "files": [{"name": one.name, "sha256": one.digest, "rows": len(one.rows)} for one in self.files],
            "standing": self.replay.digest,
            "reviewers": self.reviewers(),
            "edits": {
                "refused": self.replay.refused,
                "unknown": self.replay.unknown,
                "without_outcome": len(self.replay.pending),
            },
            "iou": self.iou,
            "agreement": [asdict(one) for one in self.agreement],
            "notes": [note for one in self.files for note in one.notes()],
        }


@checked
def report_boxes(files: tuple[Path, ...], /, *, iou: str = IOU) -> BoxReport:
    """Return what box logs say: boxes and complete images of each reviewer, and how far every two agree.

    Parameters
    ----------
    files
        boxes.jsonl of a review (repeatable)
    iou
        from which on two boxes are of one object
    """
    read = read_box_logs(files)
    replay = merged(read)
    return BoxReport(tuple(read), replay, box_agreement(replay, iou), iou)


def read_box_logs(paths: Sequence[Path]) -> list[BoxLogFile]:
    """Return the rows of some box logs; one that is named twice is an error."""
    if len({path.absolute() for path in paths}) < len(paths):
        raise UsageError("A box log is named twice", where=", ".join(map(str, paths))[:300])
    return [read_box_log(path) for path in paths]


@dataclass(frozen=True, slots=True)
class Added:
    """A manifest that names the boxes of reviewers.

    Attributes
    ----------
    manifest : Manifest
    resolution : BoxResolution
    left_out : tuple of str
        Images with boxes that stand in no list of the manifest; their boxes were left out.
    uncounted : tuple of str
        Parts whose counts of objects were dropped, since their sources were not given.
    notes : tuple of str
        What to look at.
    """

    manifest: Manifest
    resolution: BoxResolution
    left_out: tuple[str, ...]
    uncounted: tuple[str, ...]
    notes: tuple[str, ...]

    def data(self) -> dict[str, Any]:
        """Return what was added as plain data."""
        return {
            "overlay": msgspec.to_builtins(self.manifest.header.overlay),
            "conflicts": [asdict(one) for one in self.resolution.conflicts],
            "left_out": list(self.left_out),
            "uncounted": list(self.uncounted),
        }


def add_boxes(manifest: Manifest, resolution: BoxResolution, sources: Mapping[str, Source] | None = None) -> Added:
    """Return a manifest whose header names the boxes of a resolution, in place of those it named before.

    Lists stay as they are. Objects are counted anew where sources are given; else the counts of parts that hold an
    image with boxes are dropped. Name and version are the caller's to change.

    Raises
    ------
    DecisionError
        A label is no class of the manifest, or no box is on an image of its lists.
    """
    header = manifest.header
    listed = {image for ids in manifest.lists.values() for image in ids}
    kept = tuple(one for one in resolution.overlay.images if one.image_id in listed)
    left_out = tuple(one.image_id for one in resolution.overlay.images if one.image_id not in listed)
    _require_classes(header, kept)
    if not kept:
        raise DecisionError(
            "No box is on an image of the manifest",
            where=f"{header.name} {header.version}",
            expected="boxes of accepted reviewers on its images",
            found=f"{len(left_out)} other images" if left_out else "no image",
        )
    overlay = Overlay(kept)
    entry = overlay.entry(resolution.rule, resolution.log)
    header = msgspec.structs.replace(header, overlay=entry)
    made = Manifest(header, manifest.lists, overlay)
    touched = {one.image_id for one in kept}
    if manifest.overlay is not None:
        touched |= {one.image_id for one in manifest.overlay.images}
    parts, uncounted = [], []
    for part in header.parts:
        now = part
        if touched.intersection(manifest.lists.get(part.name, ())):
            annotated, boxes = count_part(made, part, sources or {})
            now = msgspec.structs.replace(part, annotated_images=annotated, boxes=boxes)
            if part.boxes and not boxes:
                uncounted.append(part.name)
        parts.append(now)
    header = msgspec.structs.replace(header, parts=tuple(parts), notes=(*header.notes, _note(entry)))
    made = Manifest(header, manifest.lists, overlay)
    notes = tuple(_doubts(made, resolution, left_out))
    return Added(made, resolution, left_out, tuple(uncounted), notes)


def _note(entry: OverlayEntry) -> str:
    return f"Boxes that reviewers added: {entry.told} (rule {entry.rule})."


def _require_classes(header: Header, images: Iterable[OverlayImage]) -> None:
    names = {entry.name for entry in header.classes} | {UNNAMED}
    strange = sorted({box.label for one in images for box in one.boxes} - names)
    if strange:
        raise DecisionError(
            "A box has a label that is no class of the manifest",
            where=f"{header.name} {header.version}",
            expected=f"{UNNAMED}, or one of {', '.join(sorted(names - {UNNAMED}))}"[:300],
            found=", ".join(strange[:_SHOWN])[:200],
        )


def _doubts(made: Manifest, resolution: BoxResolution, left_out: Sequence[str]) -> Iterable[str]:
    if left_out:
        yield f"{counted(len(left_out), 'image')} in no list of the manifest left out, such as {left_out[0]}."
    if resolution.alone:
        yield f"{counted(resolution.alone, 'image')} of one reviewer alone left out by the rule agree."
    if resolution.conflicts:
        yield (
            f"reviewers differ on {counted(len(resolution.conflicts), 'image')}, rule {resolution.rule}: "
            f"{resolution.conflicts[0].text()}."
        )
    wild = [part for part in made.header.parts if part.role == "wilderness"]
    for part in wild:
        if shown := sorted(_with_known(made, part)):
            yield (
                f"part {part.name} is to show no known class, and reviewers boxed one on "
                f"{counted(len(shown), 'image')}, such as {shown[0]}: a decision `remove` takes it out."
            )


def _with_known(made: Manifest, part: PartEntry) -> set[str]:
    known = {entry.name for entry in made.header.classes if entry.role == "known"}
    images = made.overlay.images if made.overlay is not None else ()
    showing = {one.image_id for one in images if any(box.label in known for box in one.boxes)}
    return showing.intersection(made.lists.get(part.name, ()))
