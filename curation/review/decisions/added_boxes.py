"""Boxes of one or more reviewers: which of them are taken, and a manifest that names these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from curation.core.errors import DecisionConflictError, DecisionError
from curation.core.wording import counted, examples
from curation.manifest.added_boxes import AddedBox, AddedBoxes, BoxedImage, box_key
from curation.manifest.header import UNNAMED, Header
from curation.manifest.manifest import Manifest
from curation.review.decisions.application import count_part
from curation.review.decisions.box_edits import BoxLogFile, BoxState, Replay, read_box_log
from curation.review.decisions.files import require_different
from curation.sources.source import Source

BoxesRule = Literal["error", "union"]
IOU = 0.5
"""Boxes of two reviewers are of the same object from this IoU on."""
_SHOWN = 3


def matched_pairs(first: Sequence[BoxState], second: Sequence[BoxState]) -> list[tuple[int, int]]:
    """Return pairs of boxes, one to one: the pair of highest IoU first, ties in order of the boxes.

    Two people have no scores by which one could go first, as detections have: hence not the assignment of evaluations.
    """
    from pycocotools import mask

    if not first or not second:
        return []
    drawn, others = (np.array([box.box for box in boxes], np.float64) for boxes in (first, second))
    iou = mask.iou(drawn, others, [0] * len(others))
    pairs, rows, columns = [], set[int](), set[int]()
    for pair in np.argsort(-iou, axis=None, kind="stable").tolist():
        row, column = divmod(pair, len(others))
        if iou[row, column] >= IOU and row not in rows and column not in columns:
            rows.add(row)
            columns.add(column)
            pairs.append((row, column))
    return pairs


def _drawn(replay: Replay, image: str, reviewer: str) -> list[BoxState]:
    """Return a reviewer's boxes on an image, sorted, so that the order of drawing decides nothing."""
    boxes = replay.boxes.get((image, reviewer), {}).values()
    return sorted(boxes, key=lambda box: (*map(Fraction, box.box), box.label))


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
    overlay : AddedBoxes
    rule : str
        That of `resolve_boxes`; ``given`` for the boxes of another manifest.
    log : str
        Digest of what stood in the logs.
    conflicts : tuple of BoxConflict
        Images on which reviewers differ, whatever the rule made of it.
    """

    overlay: AddedBoxes
    rule: str
    log: str
    conflicts: tuple[BoxConflict, ...] = ()


def resolve_boxes(replay: Replay, rule: BoxesRule = "error") -> BoxResolution:
    """Return the boxes that a rule takes, and the images that are boxed exhaustively by it.

    An image is exhaustive where every reviewer who worked on it declared it complete.

    Parameters
    ----------
    rule : {"error", "union"}
        ``error``: reviewers of one image must have drawn the same boxes. ``union``: every box of every reviewer; those
        that match are one, as the first reviewer drew it.

    Raises
    ------
    DecisionConflictError
        Reviewers differ, under ``error``.
    """
    images, conflicts = [], []
    for image in replay.images:
        people = replay.reviewers_of(image)
        objects = _objects(replay, image, people)
        unmatched = sum(len(labels) < len(people) for _, labels in objects)
        relabelled = sum(len(set(labels.values())) > 1 for _, labels in objects)
        if unmatched or relabelled:
            conflicts.append(BoxConflict(image, tuple(people), unmatched, relabelled))
        boxes = [AddedBox(box=box.box, label=box.label, reviewers=tuple(sorted(labels))) for box, labels in objects]
        exhaustive = all((image, name) in replay.complete for name in people)
        if boxes or exhaustive:
            images.append(BoxedImage(image_id=image, exhaustive=exhaustive, boxes=tuple(sorted(boxes, key=box_key))))
    if rule == "error" and conflicts:
        raise DecisionConflictError(
            "Reviewers drew different boxes",
            found=examples((conflict.text() for conflict in conflicts), joint="; "),
            expected="the same boxes, or --rule boxes=union",
        )
    return BoxResolution(AddedBoxes(tuple(images)), rule, replay.digest, tuple(conflicts))


def _objects(replay: Replay, image: str, people: Sequence[str]) -> list[tuple[BoxState, dict[str, str]]]:
    """Return the boxes of an image, those that match as one: as the first reviewer drew it, with the labels of all."""
    found: list[tuple[BoxState, dict[str, str]]] = []
    for name in people:
        boxes = _drawn(replay, image, name)
        pairs = {column: row for row, column in matched_pairs([box for box, _ in found], boxes)}
        for index, box in enumerate(boxes):
            if index in pairs:
                found[pairs[index]][1][name] = box.label
            else:
                found.append((box, {name: box.label}))
    return found


def read_box_logs(paths: Sequence[Path]) -> list[BoxLogFile]:
    """Return the rows of some box logs; one that is named twice is an error."""
    require_different(paths)
    return [read_box_log(path) for path in paths]


@dataclass(frozen=True, slots=True)
class Added:
    """A manifest that names the boxes of reviewers.

    Attributes
    ----------
    manifest : Manifest
    resolution : BoxResolution
    left_out : tuple of str
        Images with boxes that are in no list of the manifest; their boxes were left out.
    uncounted : tuple of str
        Parts whose counts of objects were dropped, since their sources were not given.
    notes : tuple of str
        Warnings.
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
            "conflicts": [asdict(conflict) for conflict in self.resolution.conflicts],
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
        A label is not a class of the manifest, or no box is on an image of its lists.
    """
    header = manifest.header
    listed = {image for ids in manifest.lists.values() for image in ids}
    kept = tuple(image for image in resolution.overlay.images if image.image_id in listed)
    left_out = tuple(image.image_id for image in resolution.overlay.images if image.image_id not in listed)
    _require_classes(header, kept)
    if not kept:
        found = f"{len(left_out)} other images" if left_out else "no image"
        raise DecisionError(
            "No box is on an image of the manifest", where=f"{header.name} {header.version}", found=found
        )
    overlay = AddedBoxes(kept)
    entry = overlay.entry(resolution.rule, resolution.log)
    note = f"Boxes that reviewers added: {entry.summary} (rule {entry.rule})."
    header = msgspec.structs.replace(header, overlay=entry, notes=(*header.notes, note))
    made = Manifest(header, manifest.lists, overlay)
    touched = {image.image_id for image in (*kept, *(manifest.added_boxes.images if manifest.added_boxes else ()))}
    parts = list(header.parts)
    for index, part in enumerate(parts):
        if touched.intersection(manifest.lists.get(part.name, ())):
            annotated, boxes = count_part(made, part, sources or {})
            parts[index] = msgspec.structs.replace(part, annotated_images=annotated, boxes=boxes)
    uncounted = [old.name for old, new in zip(header.parts, parts, strict=True) if old.boxes and not new.boxes]
    made = Manifest(msgspec.structs.replace(header, parts=tuple(parts)), manifest.lists, overlay)
    return Added(made, resolution, left_out, tuple(uncounted), tuple(_doubts(made, resolution, left_out)))


def _require_classes(header: Header, images: Iterable[BoxedImage]) -> None:
    names = {entry.name for entry in header.classes} | {UNNAMED}
    strange = sorted({box.label for image in images for box in image.boxes} - names)
    if strange:
        where, expected = (
            f"{header.name} {header.version}",
            f"{UNNAMED}, or one of {', '.join(sorted(names - {UNNAMED}))}",
        )
        what, found = "The label of a box is not a class of the manifest", ", ".join(strange[:_SHOWN])[:200]
        raise DecisionError(what, where=where, expected=expected[:300], found=found)


def _doubts(made: Manifest, resolution: BoxResolution, left_out: Sequence[str]) -> Iterable[str]:
    if left_out:
        yield f"{counted(len(left_out), 'image')} in no list of the manifest left out, such as {left_out[0]}."
    if resolution.conflicts:
        yield (
            f"reviewers differ on {counted(len(resolution.conflicts), 'image')}, rule {resolution.rule}: "
            f"{resolution.conflicts[0].text()}."
        )
    known = {entry.name for entry in made.header.classes if entry.role == "known"}
    images = made.added_boxes.images if made.added_boxes is not None else ()
    showing = {image.image_id for image in images if any(box.label in known for box in image.boxes)}
    for part in made.header.parts:
        shown = sorted(showing.intersection(made.lists.get(part.name, ())))
        if part.role == "wilderness" and shown:
            yield (
                f"part {part.name} is to show no known class, and reviewers boxed one on "
                f"{counted(len(shown), 'image')}, such as {shown[0]}: a decision `remove` takes it out."
            )
