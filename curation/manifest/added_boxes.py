"""`AddedBoxes`: boxes that reviewers added to the annotations of a source, and the images that they boxed exhaustively.

It is a file of its own beside a manifest, ``overlay.jsonl``, one line an image in the order of ids, each in canonical
form; numbers are decimal texts. The header names its digest. Whatever reads boxes of a part reads them with it:

    {"boxes":[{"box":["10.5","20","30","12.25"],"label":"unknown","reviewers":["anna"]}],"exhaustive":true,
     "image_id":"coco:000000000139"}

Laying it on a source is idempotent: a box that the source holds already, as an exported truth file does, stays one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np

from curation.core.canonical import canonical_json, sha256_of_bytes
from curation.core.errors import CurationError, DigestMismatchError, ManifestError, UnitBoxesError
from curation.core.files import read_bytes
from curation.core.ids import parse_image_id
from curation.manifest.header import OVERLAY_FILE, UNKNOWN_ID, UNNAMED, ClassEntry, OverlayEntry
from curation.sources.datasets import family
from curation.sources.source import Categories, FileRecord, Floats, Int32s, Int64s, Objects, Source, texts

MAX_BYTES = 512 << 20
BoxText = tuple[str, str, str, str]
"""``x, y, w, h`` in pixels, origin top left, as decimal texts with at most three places."""
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,6})(?:\.[0-9]{0,2}[1-9])?")
_SAME = 1e-6


class AddedBox(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One added box, its class, and who drew it (each reviewer whose box is this one)."""

    box: BoxText
    label: str
    reviewers: tuple[str, ...]

    @property
    def numbers(self) -> tuple[float, ...]:
        """Return ``x, y, w, h`` in pixels."""
        return tuple(map(float, self.box))


class BoxedImage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The boxes added to one image, and whether every unknown object of it is boxed now."""

    image_id: str
    exhaustive: bool
    boxes: tuple[AddedBox, ...]


@dataclass(frozen=True)
class AddedBoxes:
    """What reviewers added: images in the order of their ids."""

    images: tuple[BoxedImage, ...]

    def __repr__(self) -> str:
        return f"<AddedBoxes: {self.entry().summary}, {self.digest[:19]}>"

    @cached_property
    def data(self) -> bytes:
        """The bytes of the file."""
        return b"".join(canonical_json(msgspec.to_builtins(image)) + b"\n" for image in self.images)

    @cached_property
    def digest(self) -> str:
        """``sha256:<hex>`` of the bytes of the file."""
        return sha256_of_bytes(self.data)

    @cached_property
    def exhaustive(self) -> frozenset[str]:
        """The images on which every unknown object is boxed."""
        return frozenset(image.image_id for image in self.images if image.exhaustive)

    def entry(self, rule: str = "", log: str = "") -> OverlayEntry:
        """Return what a header says of it."""
        boxes = [box for image in self.images for box in image.boxes]
        return OverlayEntry(
            sha256=self.digest,
            images=len(self.images),
            boxes=len(boxes),
            unnamed=sum(box.label == UNNAMED for box in boxes),
            exhaustive_images=len(self.exhaustive),
            rule=rule,
            log=log,
        )

    def record(self) -> FileRecord:
        """Return it as one of the files that a source was read from."""
        return FileRecord(OVERLAY_FILE, self.digest, len(self.data), self.entry().boxes)


def check_box(box: Sequence[str], *, where: str, size: tuple[int, int] | None = None) -> None:
    """Raise `ManifestError` unless a box is four plain decimal texts, of a width and height, inside its image."""
    if len(box) != 4 or not all(map(_NUMBER.fullmatch, box)):
        _refuse(where, "x, y, w, h as decimal texts, at most three places, none below 0", " ".join(box))
    x, y, w, h = map(Decimal, box)
    if not (w and h):
        _refuse(where, "a width and a height", " ".join(box))
    if size is not None and (x + w > size[0] or y + h > size[1]):
        _refuse(where, f"a box inside the image of {size[0]} x {size[1]} pixels", " ".join(box))


def parse_added_boxes(data: bytes, *, where: str, entry: OverlayEntry | None = None) -> AddedBoxes:
    """Return the added boxes of a file; they must be those that a header names, byte by byte, where there is one.

    Raises
    ------
    DigestMismatchError
        It is another file than the header names.
    ManifestError
        It is not a file of added boxes, or not in its canonical form.
    """
    if entry is not None and (found := sha256_of_bytes(data)) != entry.sha256:
        what = "The added boxes do not match their digest in the manifest"
        hint = "fetch the file again; other boxes need a new version: curation review apply MANIFEST --added-boxes FILE"
        raise DigestMismatchError(what, where=where, expected=entry.sha256, found=found, hint=hint)
    try:
        images = tuple(msgspec.json.decode(line, type=BoxedImage) for line in data.split(b"\n") if line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        what, expected = "The file does not hold added boxes", "a line an image: image_id, exhaustive, boxes"
        raise ManifestError(what, where=where, expected=expected, found=str(error)[:200]) from None
    added = AddedBoxes(images)
    for image in images:
        _check_image(image, f"{where}: {image.image_id[:200]}")
    ids = [image.image_id for image in images]
    if ids != sorted(set(ids)):
        _refuse(where, "images sorted by id, each once", "another order")
    if added.data != data:
        _refuse(where, "the canonical form, as curation writes it", "the same content in other bytes")
    if entry is not None and added.entry(entry.rule, entry.log) != entry:
        _refuse(where, "the counts that the header states", repr(added))
    return added


def read_added_boxes(path: Path, *, entry: OverlayEntry | None = None) -> AddedBoxes:
    """Return the boxes that reviewers added, from ``overlay.jsonl`` of a manifest (see `parse_added_boxes`).

    Raises
    ------
    MissingFileError, ManifestError
        No such file, or it does not hold added boxes.
    """
    data = read_bytes(path, kind="file of added boxes", most=MAX_BYTES, error=ManifestError)
    return parse_added_boxes(data, where=str(path), entry=entry)


def _check_image(image: BoxedImage, where: str) -> None:
    try:
        parse_image_id(image.image_id)
    except CurationError as error:
        raise ManifestError(error.what, where=where, expected=error.expected, found=error.found) from None
    if not (image.boxes or image.exhaustive):
        _refuse(where, "a box, or exhaustive", "neither")
    for box in image.boxes:
        check_box(box.box, where=where)
        for text in (box.label, *box.reviewers):
            if not 0 < len(text) <= 200 or not text.isprintable():
                _refuse(where, "a label and reviewers of 1 to 200 printable characters", ascii(text[:60]))
    if list(image.boxes) != sorted(image.boxes, key=box_key):
        _refuse(where, "boxes sorted by their numbers", "another order")


def box_key(box: AddedBox) -> tuple[Any, ...]:
    """Return what orders the boxes of an image."""
    return (*map(Decimal, box.box), box.label, box.reviewers)


def _refuse(where: str, expected: str, found: str) -> NoReturn:
    raise ManifestError("Invalid added box", where=where, expected=expected, found=ascii(found[:160])[1:-1])


def with_added_boxes(
    source: Source, added: AddedBoxes, positions: Int32s | Int64s, classes: Sequence[ClassEntry] = ()
) -> tuple[Source, int]:
    """Return a source with added boxes behind its own, and how many were there already.

    Parameters
    ----------
    positions : ndarray of int, shape (images of `added`,)
        Where the source holds each image, -1 where it does not.
    classes : sequence of ClassEntry
        Whose names the labels are, with their aliases in the source. A class that the source has no category for is its
        category ``unknown`` where there is one (an exported truth), else a new category.

    Raises
    ------
    UnitBoxesError
        The source states boxes of such an image as shares of an unknown size.
    """
    if source.objects is None:
        return source, 0
    placed = _placed(added, positions)
    held = _held(source, source.objects, placed)
    fresh = [image for image, row in zip(placed, held, strict=True) if row < 0]
    _require_pixels(source, [position for position, _ in fresh])
    files = (*source.files, added.record())
    if not fresh:
        return replace(source, files=files), len(placed)
    labels = [box.label for _, box in fresh]
    categories, numbers = _categories(source.categories, labels, classes)
    more = _objects([position for position, _ in fresh], [box.numbers for _, box in fresh], labels, numbers, categories)
    objects = source.objects.followed_by(more)
    return replace(source, categories=categories, objects=objects, files=files), len(placed) - len(fresh)


def _placed(added: AddedBoxes, positions: Int32s | Int64s) -> list[tuple[int, AddedBox]]:
    """Return the boxes of those images that a source holds, each with the position of its image there."""
    found = zip(positions.tolist(), added.images, strict=True)
    return [(int(position), box) for position, image in found for box in image.boxes if position >= 0]


def _held(source: Source, objects: Objects, placed: Sequence[tuple[int, AddedBox]]) -> list[int]:
    """Return the object that each added box is, -1 where the source does not hold it; no object is two boxes."""
    rows: dict[int, list[int]] = {position: [] for position, _ in placed}
    for row in np.flatnonzero(np.isin(objects.image, list(rows))).tolist():
        rows[int(objects.image[row])].append(row)
    # VOC holds whole pixels: an exported box lies within one of the box that was drawn.
    near = 1 + _SAME if family(source.dataset) == "voc" else _SAME
    found = []
    for position, box in placed:
        corners = _corners(objects.boxes[rows[position]])
        distance = np.abs(corners - _corners(np.array([box.numbers]))).max(axis=1, initial=0)
        best = int(distance.argmin()) if len(distance) else -1
        found.append(rows[position].pop(best) if best >= 0 and distance[best] <= near else -1)
    return found


def _corners(boxes: Floats) -> Floats:
    return np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])


def _require_pixels(source: Source, positions: Sequence[int]) -> None:
    unsized = [position for position in positions if source.unit_boxes and source.images.widths[position] == 0]
    if unsized:
        raise UnitBoxesError(
            "Added boxes need boxes in pixels",
            where=f"source {source.title}",
            expected="the width and height of every image that reviewers drew on",
            found=f"{len(set(unsized))} images of unknown size, the first {source.images.native[unsized[0]]}",
            hint=f"put a table image_id,width,height beside the boxes, named {source.part or 'PART'}-image-sizes.csv",
        )


def _categories(own: Categories, labels: Sequence[str], classes: Sequence[ClassEntry]) -> tuple[Categories, list[int]]:
    """Return the categories of a source with those that labels add, and the position of each label's."""
    aliases = {entry.name: entry.aliases for entry in classes}
    position_of = {name: position for position, name in reversed(list(enumerate(own.names)))}
    position_of |= {key: position for position, key in enumerate(own.keys)}
    names, numbers, found = list(own.names), list(own.numbers), dict[str, int]()
    for label in dict.fromkeys(labels):
        position = next(
            (position_of[name] for name in (label, *aliases.get(label, ()), UNNAMED) if name in position_of), -1
        )
        if position < 0:
            position = len(names)
            names.append(label)
            numbers.append(UNKNOWN_ID if label == UNNAMED else max(numbers, default=0) + 1)
        found[label] = position
    added = tuple(names[len(own.names) :])
    keys = (*own.keys, *added) if own.keys else ()
    supercategories = (*own.supercategories, *("" for _ in added))
    numbering = "file" if added and own.numbering == "yolo" else own.numbering
    categories = Categories(tuple(numbers), tuple(names), supercategories, keys, numbering=numbering)
    return categories, [found[label] for label in labels]


def _objects(
    image: Sequence[int], boxes: Sequence[Any], labels: Sequence[str], category: Sequence[int], categories: Categories
) -> Objects:
    # A class that an exported truth holds as unknown is told as the original one, as an export tells it.
    named = [categories.names[code] for code in category]
    original = [label if name == UNNAMED != label else "" for label, name in zip(labels, named, strict=True)]
    stated = {"original": texts(original)} if any(original) else {}
    return Objects.of(image, category, np.array(boxes, np.float64).reshape(-1, 4), **stated)
