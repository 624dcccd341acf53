"""Parts as COCO JSON: known classes with their index, everything renamed as ``unknown``, ids unique in the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np

from curation.errors import ExportError
from curation.manifest.manifest import Manifest
from curation.manifest.roles import UNKNOWN_ID
from curation.publishing.content import OPEN_IMAGES, UNKNOWN_NAME, Content, gather
from curation.publishing.detectron2_file import NOTE as REGISTERED
from curation.publishing.detectron2_file import plan_detectron2
from curation.publishing.original_categories import NOTE, plan_original_categories
from curation.publishing.plan import Plan, PlannedFile, first_repeated, joined, present
from curation.sources.source import Int64s, Source

Renumber = Literal["always", "auto", "never"]

_encode = msgspec.json.Encoder().encode
_FLAGS = ("isoccluded", "istruncated", "isgroupof", "isdepiction", "isinside")


_LARGEST_ID = 2**31 - 1


@dataclass(frozen=True, slots=True)
class CocoOptions:
    """Choices of a COCO export.

    Attributes
    ----------
    renumber : {"auto", "always", "never"}
        Whether images get new ids 1..n: ``auto`` where the ids of the sources are not unique together.
    unknown_id : int, "manifest" or "next"
        Category id of ``unknown``. ``manifest``: -1 as in the Elephant paper's files, or, with tasks, the number of
        classes, the same at every task (80 for COCO). ``next``: the largest index of a class in the file plus one.
    sidecar : bool
        Whether a second file, ``PARTS.original_categories.json``, tells the original category of every annotation.
    detectron2 : bool
        Whether ``PARTS.detectron2.py`` registers the file with detectron2. ``manifest`` is then read as ``next``
        where it means -1: detectron2 numbers categories by ascending id, and would put unknown before every class.
    """

    renumber: Renumber = "auto"
    unknown_id: int | Literal["manifest", "next"] = "manifest"
    sidecar: bool = False
    detectron2: bool = False


def plan_coco(
    manifest: Manifest,
    parts: Sequence[str],
    sources: Mapping[str, Source],
    options: CocoOptions | None = None,
) -> Plan:
    """Return the plan of one COCO JSON file that holds some parts under their label views.

    Images stand in the order of the parts and their lists, annotations by image and in file order within an image.
    Boxes and areas are those of the source to the last bit, whole numbers without a decimal point. A box's four corners
    stand as its ``segmentation`` where the source is VOC, whose boxes are its masks; COCO masks are not kept (the
    ``elephant-json`` format does).

    Annotation ids are 1..m, the source's own id is kept as ``original_id`` and the class as ``orig_category``. With
    tasks (annotation specificity of Revisiting Open World Object Detection) the ids are the source's own, as far as
    `annotation_ids` can keep them; no original class stands in the file; and the categories are all classes known so
    far, so that a class has one id in the files of all tasks, though a training part has annotations of the task's own
    classes alone.

    ``iscrowd`` and ``difficult`` are the source's flags. ``ignore`` is 1 where the view ignores the object for another
    reason than its being a crowd region: trainers know what to do with ``iscrowd``, and some skip what says ``ignore``.
    pycocotools derives its own ``ignore`` from ``iscrowd`` alone. Annotations of Open Images carry its five flags
    too; a group box is ``iscrowd`` only where the view does not keep it as an ordinary object.

    Raises
    ------
    ExportError
        Ids collide under ``renumber="never"``; the id of unknown is that of a class; two parts share an image, or
        belong to different tasks.
    ManifestError, MissingListError, PresenceOnlyError
        See `curation.publishing.content.gather`.
    """
    options = options or CocoOptions()
    content = gather(manifest, parts, sources)
    numbers, renumbered = image_ids(content, options.renumber)
    annotations, annotations_renumbered = annotation_ids(content, options.renumber)
    behind = options.detectron2 and options.unknown_id == "manifest" and not content.of_tasks
    unknown_id = _unknown_id(manifest, content, "next" if behind else options.unknown_id)
    file = CocoFile(manifest, content, numbers, renumbered, annotations, annotations_renumbered, unknown_id)
    images, objects = content.images, content.objects
    stem = "+".join(parts)
    files = [PlannedFile(name=f"{stem}.json", chunks=file.chunks)]
    notes = [_renumbered_note(content)] if renumbered else []
    told = content.of_tasks and annotations_renumbered
    if told:
        notes.append(f"Annotation ids were renumbered 1..{len(objects)}: {_why_renumbered(content)}.")
    if options.sidecar:
        files.append(plan_original_categories(content, annotations, stem))
        notes.append(NOTE)
    records = len(images) + len(objects) * len(files) + 4
    if options.detectron2:
        files.append(plan_detectron2(manifest, stem))
        notes.append(REGISTERED)
    return Plan(
        files=tuple(files),
        records=records + options.detectron2,
        counts={
            "images": len(images),
            "annotations": len(objects),
            "categories": len(content.classes) + content.has_unknown,
            "unknown": int((objects.category_id == UNKNOWN_ID).sum()),
            "ignored": int(objects.ignore.sum()),
            "crowd": int(objects.crowd.sum()),
            "difficult": int(objects.difficult.sum()),
        },
        changed=present(
            {
                "images_renumbered": len(images) * renumbered,
                "annotations_renumbered": len(objects) * told,
                "file_names_made_from_ids": int((images.file_names == "").sum()),
            }
        ),
        left_out=present(content.left_out),
        notes=tuple(notes),
    )


def image_ids(content: Content, renumber: Renumber) -> tuple[Int64s, bool]:
    """Return the integer id of each image in the output, unique, and whether these are new.

    Raises
    ------
    ExportError
        The sources' ids collide and `renumber` is ``never``.
    """
    numbers = content.images.numbers
    repeated = first_repeated(numbers)
    if renumber == "always" or (renumber == "auto" and repeated is not None):
        return np.arange(1, len(numbers) + 1, dtype=np.int64), True
    if repeated is not None:
        both = [content.images.ids[place] for place in np.flatnonzero(numbers == repeated)[:2].tolist()]
        raise ExportError(
            "Two images have the same integer id, so one file cannot hold both under it",
            where=" + ".join(part.name for part in content.parts),
            found=f"{repeated}: {' and '.join(both)}",
            hint="--renumber auto, or export the parts one by one",
        )
    return numbers, False


def annotation_ids(content: Content, renumber: Renumber) -> tuple[Int64s, bool]:
    """Return the id of each annotation in the output, unique and positive, and whether these are new, 1..m.

    Without tasks they are always new. With tasks the sources' own are kept unless two collide or one is not positive:
    pycocotools takes an annotation with id 0 for no annotation, and counts what finds it as false.

    Raises
    ------
    ExportError
        The sources' ids cannot be kept and `renumber` is ``never``.
    """
    numbers = content.objects.numbers
    sound = first_repeated(numbers) is None and int(numbers.min(initial=1)) > 0
    if content.of_tasks and sound and renumber != "always":
        return numbers, False
    if content.of_tasks and renumber == "never":
        raise ExportError(
            "The annotation ids of the sources cannot be kept",
            where=" + ".join(part.name for part in content.parts),
            found=_why_renumbered(content),
            hint="--renumber auto",
        )
    return np.arange(1, len(numbers) + 1, dtype=np.int64), True


def _why_renumbered(content: Content) -> str:
    repeated = first_repeated(content.objects.numbers)
    if repeated is not None:
        return f"ids of the sources collide (first: {repeated})"
    lowest = int(content.objects.numbers.min(initial=1))
    return "as asked" if lowest > 0 else f"pycocotools needs positive ids (lowest: {lowest})"


def _unknown_id(manifest: Manifest, content: Content, asked: int | str) -> int:
    if isinstance(asked, int) and not -_LARGEST_ID <= asked <= _LARGEST_ID:
        raise ExportError(
            "The category id of unknown is out of range",
            where="--unknown-id",
            expected=f"-{_LARGEST_ID} to {_LARGEST_ID}: readers of COCO files keep ids in 32 bits",
            found=str(asked)[:40],
        )
    taken = {entry.index: entry.name for entry in manifest.header.classes if entry.index >= 0}
    if asked == "next":
        unknown = max((entry.index for entry in content.classes), default=0) + 1
    else:
        unknown = content.unknown_id if asked == "manifest" else int(asked)
    if content.has_unknown and unknown in taken:
        raise ExportError(
            "The category id of unknown is that of a class",
            where="--unknown-id",
            expected=f"-1, or a number outside {min(taken)} to {max(taken)}",
            found=f"{unknown}, which is {taken[unknown]}",
        )
    return unknown


def _renumbered_note(content: Content) -> str:
    repeated = first_repeated(content.images.numbers)
    why = "as asked" if repeated is None else f"because ids of the sources collide (first: {repeated})"
    return (
        f"Image ids were renumbered 1..{len(content.images)} {why}: predictions must use the new ids. "
        "The sources' ids are kept as original_id and curation_id."
    )


@dataclass(frozen=True, slots=True)
class CocoFile:
    """The one file of a COCO export, given out record by record."""

    manifest: Manifest
    content: Content
    numbers: Int64s
    renumbered: bool
    annotation_numbers: Int64s
    annotations_renumbered: bool
    unknown_id: int

    def chunks(self) -> Iterator[bytes]:
        """Yield the file's bytes: one record a line."""
        yield b'{"info":' + _encode(self._info()) + b",\n"
        yield b'"categories":[\n' + b",\n".join(map(_encode, self._categories())) + b"\n],\n"
        yield b'"images":[\n'
        yield from joined(self._images())
        yield b'],\n"annotations":[\n'
        yield from joined(self._annotations())
        yield b"]}\n"

    def _info(self) -> dict[str, Any]:
        header = self.manifest.header
        content = self.content
        of_task = {"task": content.parts[0].task} if content.of_tasks else {}
        own_ids = {"annotation_ids": "renumbered" if self.annotations_renumbered else "original"}
        return {
            "description": header.title,
            "manifest": f"{header.name} {header.version}",
            "manifest_digest": self.manifest.digest,
            "parts": [part.name for part in content.parts],
            "image_ids": "renumbered" if self.renumbered else "original",
        } | (of_task | own_ids if content.of_tasks else {})

    def _categories(self) -> list[dict[str, Any]]:
        own = [{"supercategory": "none", "id": one.index, "name": one.name} for one in self.content.classes]
        unknown = {"supercategory": "none", "id": self.unknown_id, "name": UNKNOWN_NAME}
        return [*own, unknown] if self.content.has_unknown else own

    def _images(self) -> Iterator[dict[str, Any]]:
        images = self.content.images
        several = len(self.content.parts) > 1
        for place, (number, native, name, width, height) in enumerate(
            zip(
                self.numbers.tolist(),
                images.native.tolist(),
                images.file_names.tolist(),
                images.widths.tolist(),
                images.heights.tolist(),
                strict=True,
            )
        ):
            record: dict[str, Any] = {"id": number, "file_name": name or f"{native}.jpg"}
            if width and height:
                record |= {"width": width, "height": height}
            if self.renumbered:
                record["original_id"] = int(images.numbers[place])
            record["curation_id"] = images.ids[place]
            if several:
                record["part"] = self.content.parts[images.part[place]].name
            yield record

    def _annotations(self) -> Iterator[dict[str, Any]]:
        objects, images = self.content.objects, self.content.images
        with_corners = np.array([name.startswith("voc") for name in self.content.datasets], np.bool_)
        slot = images.slot[objects.image]
        cornered = with_corners[slot]
        flagged = np.array([name == OPEN_IMAGES for name in self.content.datasets], np.bool_)[slot]
        flags = np.stack(
            [objects.occluded, objects.truncated, objects.group, objects.depiction, objects.inside], axis=1
        )
        category = np.where(objects.category_id == UNKNOWN_ID, self.unknown_id, objects.category_id)
        columns = (
            self.annotation_numbers,
            self.numbers[objects.image],
            category,
            objects.boxes,
            objects.areas,
            objects.crowd,
            objects.difficult,
            objects.ignore & (objects.difficult | ~objects.crowd),
            objects.numbers,
            objects.original,
            objects.original_number,
            cornered,
            flagged,
            flags,
        )
        for row in zip(*(column.tolist() for column in columns), strict=True):
            yield self._annotation(row)

    def _annotation(self, row: tuple[Any, ...]) -> dict[str, Any]:
        own, image, category, box, area, crowd, difficult, ignore, number, original, original_id, *rest = row
        cornered, flagged, flags = rest
        record = {
            "id": own,
            "image_id": image,
            "category_id": category,
            "bbox": [plain_number(value) for value in box],
            "area": plain_number(area),
            "iscrowd": int(crowd),
            "difficult": int(difficult),
            "ignore": int(ignore),
        }
        if not self.content.of_tasks:
            record |= {"orig_category": original, "orig_category_id": original_id}
        if self.annotations_renumbered:
            record["original_id"] = number
        if cornered:
            record["segmentation"] = [corners(box)]
        if flagged:
            record |= dict(zip(_FLAGS, map(int, flags), strict=True))
        return record


def plain_number(value: float) -> int | float:
    """Return a whole float as an integer, any other as it is: no digit is lost and none invented."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def corners(box: Sequence[float]) -> list[int | float]:
    """Return a box's corners in the authors' order: ``x,y, x,y+h, x+w,y+h, x+w,y``."""
    x, y, width, height = box
    outline = (x, y, x, y + height, x + width, y + height, x + width, y)
    return [plain_number(value) for value in outline]
