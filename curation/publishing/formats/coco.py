"""Parts as COCO JSON: known classes with their ids, renamed objects as ``unknown``, unique ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from curation.manifest.header import UNKNOWN_ID, Header
from curation.manifest.manifest import Manifest
from curation.manifest.views import class_positions
from curation.publishing.formats.content import OPEN_IMAGES, UNKNOWN_NAME, Content, gather
from curation.publishing.formats.plan import FormatOptions, Plan, PlannedFile, first_repeated, json_file, present
from curation.sources.datasets import family
from curation.sources.source import Int64s, Source

_FLAGS = ("isoccluded", "istruncated", "isgroupof", "isdepiction", "isinside")


def plan_coco(
    manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source], options: FormatOptions | None = None
) -> Plan:
    """Return the plan of a COCO JSON file with some parts under their label views.

    Images are in the order of the parts and their lists, annotations by image and in file order within an image. Boxes
    and areas are exactly those of the source, whole numbers without a decimal point. If the source is VOC, the four
    corners of a box are its ``segmentation``; COCO masks are not written (the ``elephant-json`` format writes them).

    Annotation ids are 1..m; the id in the source is written as ``original_id`` and the class as ``orig_category``. With
    tasks (annotation specificity of Revisiting Open World Object Detection) ids are those of the source, if
    `_annotation_ids` can keep them; the file has no original classes; and the categories are all classes known so far,
    so that a class has the same id in the files of all tasks, although a training part has only annotations of the
    classes of its task.

    ``iscrowd`` and ``difficult`` are flags of the source. ``ignore`` is 1 if the view ignores the object, unless it is
    only a crowd region: trainers handle ``iscrowd``, and some skip objects with ``ignore``. pycocotools derives its
    ``ignore`` from ``iscrowd`` alone. Annotations of Open Images also have its five flags; a group box is ``iscrowd``
    only if the view does not keep it as an ordinary object.

    Category ids are those of the dataset (see `category_ids`).

    Raises
    ------
    ExportError
        Two parts share an image, or belong to different tasks.
    ManifestError, MissingListError, PresenceOnlyError
        See `curation.publishing.formats.content.gather`.
    """
    options = options or FormatOptions()
    content = gather(manifest, parts, sources)
    images, objects = content.images, content.objects
    # If ids of images collide, all are new.
    renumbered = first_repeated(content.images.numbers) is not None
    numbers = np.arange(1, len(content.images) + 1, dtype=np.int64) if renumbered else content.images.numbers
    annotation_ids, own_renumbered = _annotation_ids(content)
    numbering = category_ids(manifest, content, sources, by_index=options.category_ids == "manifest")
    notable = content.of_tasks and own_renumbered
    file = PlannedFile(
        f"{'+'.join(parts)}.json",
        lambda: json_file(
            info=_info(manifest, content, numbering, renumbered, own_renumbered),
            categories=_categories(content, numbering),
            images=_images(content, numbers, renumbered),
            annotations=_annotations(content, numbers, annotation_ids, own_renumbered, numbering),
        ),
    )
    notes = _renumbered_notes(content, renumbered, notable)
    if any(source.federated is not None for source in sources.values()):
        notes.append("The source labels each image for some classes alone (LVIS); this file does not say which.")
    if content.classes:
        notes.append(numbering.note)
    return Plan(
        files=(file,),
        records=len(images) + len(objects) + 4,
        counts={
            "images": len(images),
            "annotations": len(objects),
            "categories": len(content.classes) + content.has_unknown,
            "unknown": int(objects.unknown.sum()),
            "ignored": int(objects.ignore.sum()),
            "crowd": int(objects.crowd.sum()),
            "difficult": int(objects.difficult.sum()),
        },
        changed=present(
            {
                "images_renumbered": len(images) * renumbered,
                "annotations_renumbered": len(objects) * notable,
                "file_names_made_from_ids": int((images.file_names == "").sum()),
            }
        ),
        left_out=present(content.left_out),
        notes=tuple(notes),
    )


class Numbering(NamedTuple):
    """The category id of every class of an export.

    Attributes
    ----------
    numbers : mapping of int to int
        From the index of each class to its id.
    unknown : int
        The id of ``unknown``, which no class has.
    origin : {"dataset", "manifest"}
    reason : str
        Why the indices of the manifest are used although they were not requested; else empty.
    """

    numbers: Mapping[int, int]
    unknown: int
    origin: str
    reason: str = ""

    @property
    def note(self) -> str:
        """The note of the export on category ids."""
        owner = "the dataset's own" if self.origin == "dataset" else "the manifest's indices"
        because = f", because {self.reason}" if self.reason else ""
        return f"Category ids are {owner}{because}; `unknown` is {self.unknown}."


def category_ids(
    manifest: Manifest, content: Content, sources: Mapping[str, Source], *, by_index: bool = False
) -> Numbering:
    """Return the category ids of an export: those of the dataset, as detectors trained on its files use them.

    They are the indices of the manifest if the files have different ids or no ids (VOC XML), lack a class or are not
    all given, and with `by_index`. ``unknown`` is -1, which no dataset uses; with the indices of a manifest with tasks
    it is the number of classes.
    """
    numbers, reason = ({}, "") if by_index else _dataset_numbers(manifest.header, content, sources)
    if by_index or reason:
        numbers = {entry.index: entry.index for entry in manifest.header.classes if entry.index >= 0}
        return Numbering(numbers, content.unknown_id, "manifest", reason)
    return Numbering(numbers, UNKNOWN_ID, "dataset")


def disagreeing_ids(sources: Mapping[str, Source]) -> list[str]:
    """Return a sentence for each dataset in whose files a class has different ids, of which a detector uses one."""
    notes: dict[str, str] = {}
    first: dict[tuple[str, str], tuple[str, int]] = {}
    for slot, source in sources.items():
        if not source.has_category_ids:
            continue
        for name, number in zip(source.categories.names, source.categories.numbers, strict=True):
            earlier, other = first.setdefault((source.dataset, name), (slot, number))
            if number != other:
                notes.setdefault(
                    source.dataset,
                    f"class {name[:80]!r} has the category id {other} in source {earlier} and {number} in {slot}: "
                    "export with --category-ids manifest, so that one id means one class in all parts",
                )
    return list(notes.values())


def _dataset_numbers(header: Header, content: Content, sources: Mapping[str, Source]) -> tuple[dict[int, int], str]:
    """Return the dataset's id of each class by its index, or the reason why the files have no common ids."""
    dataset_of = {entry.name: entry.dataset for entry in header.sources}
    # With several datasets, a class needs the same id in the files of all parts of the manifest.
    slots = dict.fromkeys(slot for part in header.parts for slot in part.sources)
    datasets = sorted({dataset_of[slot] for slot in slots})
    several = f"its parts come from several datasets ({', '.join(datasets)}), and " if len(datasets) > 1 else ""
    number_of: dict[str, int] = {}
    class_of: dict[int, str] = {}
    for slot in slots if several else content.slots:
        if slot not in sources:
            return {}, f"{several}{slot} is not given (--source {slot}=PATH)"
        source = sources[slot]
        if not source.has_category_ids:
            return {}, f"{several}the files of {slot} number no classes"
        positions = class_positions(header.classes, source).tolist()
        for name, position, number in zip(source.categories.names, positions, source.categories.numbers, strict=True):
            if position >= 0 and header.classes[position].index < 0:
                continue
            key = header.classes[position].name if position >= 0 else name
            if number_of.setdefault(key, number) != number or class_of.setdefault(number, key) != key:
                return {}, f"{several}the files number class {key[:80]!r} differently"
    if missing := [entry.name for entry in content.classes if entry.name not in number_of]:
        return {}, f"{several}the files have no category {missing[0][:80]!r}"
    return {entry.index: number_of[entry.name] for entry in header.classes if entry.name in number_of}, ""


def _annotation_ids(content: Content) -> tuple[Int64s, bool]:
    """Return the id of each annotation in the output, unique and positive, and whether the ids are new, 1..m.

    Without tasks they are always new. With tasks the ids of the sources are kept unless two collide or one is not
    positive: pycocotools treats an annotation with id 0 as missing, and its detection as false.
    """
    numbers = content.objects.numbers
    if content.of_tasks and first_repeated(numbers) is None and int(numbers.min(initial=1)) > 0:
        return numbers, False
    return np.arange(1, len(numbers) + 1, dtype=np.int64), True


def _renumbered_notes(content: Content, images: bool, annotations: bool) -> list[str]:
    notes = []
    if images:
        notes.append(
            f"Image ids were renumbered 1..{len(content.images)} because ids of the sources collide (first: "
            f"{first_repeated(content.images.numbers)}): predictions must use the new ids. The sources' ids are kept "
            "as original_id and curation_id."
        )
    if annotations:
        numbers = content.objects.numbers
        repeated = first_repeated(numbers)
        lowest = f"pycocotools needs positive ids (lowest: {int(numbers.min(initial=1))})"
        why = lowest if repeated is None else f"ids of the sources collide (first: {repeated})"
        notes.append(f"Annotation ids were renumbered 1..{len(numbers)}: {why}.")
    return notes


def _info(
    manifest: Manifest, content: Content, numbering: Numbering, renumbered: bool, own_renumbered: bool
) -> dict[str, Any]:
    header, states = manifest.header, ("original", "renumbered")
    info = {
        "description": header.title,
        "manifest": f"{header.name} {header.version}",
        "manifest_digest": manifest.digest,
        "parts": [part.name for part in content.parts],
        "image_ids": states[renumbered],
        "category_ids": numbering.origin,
    }
    of_task = {"task": content.parts[0].task, "annotation_ids": states[own_renumbered]}
    return info | of_task if content.of_tasks else info


def _categories(content: Content, numbering: Numbering) -> list[dict[str, Any]]:
    numbered = [(numbering.numbers[entry.index], entry.name) for entry in content.classes]
    numbered += [(numbering.unknown, UNKNOWN_NAME)] * content.has_unknown
    return [{"supercategory": "none", "id": number, "name": name} for number, name in numbered]


def _images(content: Content, numbers: Int64s, renumbered: bool) -> Iterator[dict[str, Any]]:
    images, several = content.images, len(content.parts) > 1
    rows = zip(numbers.tolist(), images.photos, images.sizes.tolist(), strict=True)
    for row, (number, photo, (width, height)) in enumerate(rows):
        record: dict[str, Any] = {"id": number, "file_name": photo}
        if width and height:
            record |= {"width": width, "height": height}
        if renumbered:
            record["original_id"] = int(images.numbers[row])
        record["curation_id"] = images.ids[row]
        if several:
            record["part"] = content.parts[images.part[row]].name
        yield record


def _annotations(
    content: Content, images: Int64s, annotation_ids: Int64s, own_renumbered: bool, numbering: Numbering
) -> Iterator[dict[str, Any]]:
    objects = content.objects
    dataset = np.array(content.datasets, object)[content.images.slot[objects.image]].tolist()
    flags = np.stack([objects.occluded, objects.truncated, objects.group, objects.depiction, objects.inside], axis=1)
    numbers = {**numbering.numbers, UNKNOWN_ID: numbering.unknown}
    columns = (
        annotation_ids,
        images[objects.image],
        objects.category_id,
        objects.boxes,
        objects.areas,
        objects.crowd,
        objects.difficult,
        objects.ignore & (objects.difficult | ~objects.crowd),
        objects.numbers,
        objects.original,
        objects.original_number,
        flags,
    )
    rows = zip(dataset, *(column.tolist() for column in columns), strict=True)
    for source, id_, image, index, box, area, crowd, difficult, ignore, number, original, original_id, flagged in rows:
        record = {
            "id": id_,
            "image_id": image,
            "category_id": numbers[index],
            "bbox": [plain_number(value) for value in box],
            "area": plain_number(area),
            "iscrowd": int(crowd),
            "difficult": int(difficult),
            "ignore": int(ignore),
        }
        if not content.of_tasks:
            record |= {"orig_category": original, "orig_category_id": original_id}
        if own_renumbered:
            record["original_id"] = number
        if family(source) == "voc":
            record["segmentation"] = [corners(box)]
        if source == OPEN_IMAGES:
            record |= dict(zip(_FLAGS, map(int, flagged), strict=True))
        yield record


def plain_number(value: float) -> int | float:
    """Return a whole float as an integer, and any other float unchanged."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def corners(box: Sequence[float]) -> list[int | float]:
    """Return the corners of a box in the authors' order: ``x,y, x,y+h, x+w,y+h, x+w,y``."""
    x, y, width, height = box
    outline = (x, y, x, y + height, x + width, y + height, x + width, y)
    return [plain_number(value) for value in outline]
