"""Parts in the layout of the authors' files, ``custom_voc_2007_test.json`` or ``WR1_Mixed_Unknowns.json``.

Facts on these files: the notebook ``Protocol_Creator.ipynb`` of Vastlab/Elephant-of-object-detection (cells 4 to 12).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from curation.benchmarks.elephant.lists import known_images
from curation.benchmarks.elephant.orders import difference_order, image_numbers
from curation.errors import ExportError
from curation.ids import native_number
from curation.json_keys import decode_json
from curation.manifest.header import UNKNOWN_ID, ClassEntry, LabelView, PartEntry
from curation.manifest.manifest import Manifest
from curation.publishing.exporting import Format, Request
from curation.publishing.formats.coco import corners, plain_number
from curation.publishing.formats.content import UNKNOWN_NAME, Content, gather
from curation.publishing.formats.plan import Plan, PlannedFile, first_repeated, json_file, present
from curation.sources.source import Int64s, Source
from curation.storage import read_bytes


def _plan(one: Request) -> Plan:
    files = _annotation_files(one)
    strict = one.options.strict_layout
    return plan_elephant_json(one.manifest, one.parts, one.sources, files, strict_layout=strict)


FORMATS = (Format("elephant-json", _plan, ("strict_layout",), file=".json"),)


def _annotation_files(request: Request) -> dict[str, Path]:
    """Return the annotation file of each source, where it is one file that can be found from where it was given."""
    files: dict[str, Path] = {}
    for entry in request.manifest.header.sources:
        given = request.given.get(entry.name, request.given.get(entry.dataset))
        if not isinstance(given, str | Path) or entry.name not in request.sources:
            continue
        root = Path(given)
        for record in request.sources[entry.name].files:
            candidates = [root, root / record.name, root / "annotations" / record.name]
            if found := [path for path in candidates if path.is_file()]:
                files[entry.name] = found[0]
    return files


def plan_elephant_json(
    manifest: Manifest,
    parts: Sequence[str],
    sources: Mapping[str, Source],
    annotation_files: Mapping[str, Path],
    *,
    strict_layout: bool = False,
) -> Plan:
    """Return the plan of one file a part, each in the layout of the authors' file of that part.

    A VOC part is ``custom_voc_YEAR_PART.json``: whole-pixel boxes with their four corners, ids 1..n, 20 categories in a
    training file and ``unknown`` (-1) last in a test file. A COCO part is ``Mixed_Unknowns.json`` or
    ``WR1_Mixed_Unknowns.json``: image and annotation records as the COCO file holds them, byte for byte inside each
    value, with ``category_id`` -1, and in the notebook's set order where the manifest says ``cpython_set``.

    Parameters
    ----------
    annotation_files : mapping of str to Path
        The COCO JSON file of each COCO source.
    strict_layout : bool
        Leave out what the authors' files lack and we keep: ``difficult`` (their notebook deletes the flag), and
        ``orig_category_id`` and ``orig_category`` (theirs lose the class that the paper's Fig. 4 needs).

    Raises
    ------
    ExportError
        The manifest has tasks; a part comes from several sources; a COCO source is no JSON file, or not the one the
        manifest was made from; its records are not those of the part.
    ManifestError, MissingListError, PresenceOnlyError
        See `curation.publishing.formats.content.gather`.
    """
    if manifest.header.tasks:
        raise ExportError(
            "The Elephant authors' layout has no tasks",
            where=f"{manifest.header.name} {manifest.header.version}",
            hint="--format coco, or --format owod for the layout of the OWOD repositories",
        )
    files = [_planned(manifest, part, sources, annotation_files, strict_layout) for part in parts]
    names = [file.name for file, _ in files]
    repeated = first_repeated(np.array(names)) if names else None
    if not names or repeated is not None:
        raise ExportError("Each part is exported once", expected="one or more parts", found=", ".join(parts))
    totals = Counter[str]()
    for _, counts in files:
        totals.update(counts)
    dropped = totals.pop("objects_dropped_by_view")
    return Plan(
        files=tuple(file for file, _ in files),
        records=totals["images"] + totals["annotations"] + 4 * len(files),
        counts=totals,
        left_out=present({"objects_dropped_by_view": dropped}),
    )


def _planned(
    manifest: Manifest,
    part: str,
    sources: Mapping[str, Source],
    annotation_files: Mapping[str, Path],
    strict_layout: bool,
) -> tuple[PlannedFile, dict[str, int]]:
    content = gather(manifest, [part], sources)
    if len(content.slots) != 1:
        raise ExportError(
            "The authors' layout holds one source a file",
            where=f"part {part}",
            found=", ".join(content.slots),
        )
    slot = content.slots[0]
    records: VocRecords | VerbatimRecords
    if content.datasets[0].startswith("voc"):
        records = VocRecords(content, strict_layout)
    else:
        order = notebook_order(manifest, part, sources[slot])
        path = annotation_files.get(slot)
        records = read_verbatim(manifest, content, sources[slot], path, order=order, strict_layout=strict_layout)
    file = PlannedFile(
        file_name(manifest.part(part), sources[slot]),
        lambda: json_file(images=records.images(), annotations=records.annotations(), categories=_categories(content)),
    )
    # What is passed on verbatim is held against the objects of the part: there are as many.
    counts = {"images": len(content.images), "annotations": len(content.objects)}
    return file, {**counts, "objects_dropped_by_view": content.dropped}


def file_name(part: PartEntry, source: Source) -> str:
    """Return the authors' name for a part's file: ``custom_voc_2007_test.json``, ``WR1_Mixed_Unknowns.json``.

    A part that the authors do not have is named by the same pattern (``WR0.5_Mixed_Unknowns.json``).
    """
    voc = re.fullmatch(r"voc([0-9]{4})", source.dataset)
    if voc and source.part:
        return f"custom_voc_{voc[1]}_{source.part}.json"
    if part.role != "wilderness":
        return f"custom_{part.name}.json"
    if part.name == "wilderness":
        return "Mixed_Unknowns.json"
    return f"{re.sub('^wr', 'WR', part.name)}_Mixed_Unknowns.json"


@dataclass(frozen=True, slots=True)
class VocRecords:
    """Images and annotations of a VOC part as the authors' files hold them."""

    content: Content
    strict_layout: bool

    def images(self) -> Iterator[dict[str, Any]]:
        """Yield ``file_name, height, width, id`` of each image; VOC2012's ``2008_000008`` has id 2008000008."""
        images = self.content.images
        for photo, (width, height), number in zip(images.photos, images.sizes.tolist(), self._numbers(), strict=True):
            yield {"file_name": photo, "height": height, "width": width, "id": number}

    def annotations(self) -> Iterator[dict[str, Any]]:
        """Yield the authors' fields of each object, and ``difficult`` unless the layout is strict."""
        objects = self.content.objects
        numbers = self._numbers()
        columns = (objects.image, objects.boxes, objects.category_id, objects.difficult)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for place, (image, box, category, difficult) in enumerate(rows, start=1):
            yield {
                "segmentation": [corners(box)],
                "area": plain_number(box[2] * box[3]),
                "iscrowd": 0,
                "image_id": numbers[image],
                "bbox": [plain_number(value) for value in box],
                "category_id": category,
                "id": place,
            } | ({} if self.strict_layout else {"difficult": int(difficult)})

    def _numbers(self) -> list[int]:
        images = self.content.images
        found = [native_number(native) for native in images.native.tolist()]
        numbers = [number for number in found if number is not None]
        return numbers if len(numbers) == len(found) else images.numbers.tolist()


def _categories(content: Content) -> list[dict[str, Any]]:
    own = [{"supercategory": "none", "id": entry.index, "name": entry.name} for entry in content.classes]
    unknown = {"supercategory": "none", "id": -1, "name": UNKNOWN_NAME}
    return [*own, unknown] if content.has_unknown else own


def notebook_order(manifest: Manifest, part: str, source: Source) -> Int64s:
    """Return the places in a part's list, in the order in which the authors' file of that part holds them.

    Where the manifest's rule takes images in CPython's set order, a part that is the beginning of that order (all of
    the wilderness, or WR1) stands in it. Every other part stands in the order of its list.
    """
    ids = manifest.ids(part)
    as_listed = np.arange(len(ids))
    orders = manifest.header.rule.parameters.get("orders", ())
    if not isinstance(orders, tuple) or "cpython_set" not in orders:
        return as_listed
    shows_known = known_images(source, manifest.header.classes)
    walk = difference_order(image_numbers(source), shows_known)[: len(ids)]
    place = {image: position for position, image in enumerate(ids)}
    places = [place.get(image, -1) for image in source.image_ids[walk].tolist()]
    return as_listed if -1 in places or len(places) < len(ids) else np.array(places, np.int64)


class _File(msgspec.Struct):
    """The two arrays that are passed on; every record stays the bytes it is."""

    images: list[msgspec.Raw]
    annotations: list[msgspec.Raw]
    categories: list[_Category]


class _Category(msgspec.Struct):
    id: int
    name: str


class _ImageKey(msgspec.Struct, gc=False):
    id: int | str


class _AnnotationKey(msgspec.Struct, gc=False):
    image_id: int | str
    category_id: int
    iscrowd: int = 0


@dataclass(frozen=True, slots=True)
class Treatment:
    """What a category of the file becomes."""

    name: str
    category_id: int
    dropped: bool


@dataclass(frozen=True, slots=True)
class VerbatimRecords:
    """The records of a part, image by image in the order asked for, annotations in file order within an image."""

    image_records: list[msgspec.Raw]
    annotation_records: list[list[tuple[msgspec.Raw, Treatment]]]
    strict_layout: bool

    def images(self) -> Iterator[msgspec.Raw]:
        """Yield each image record, byte for byte."""
        yield from self.image_records

    def annotations(self) -> Iterator[dict[str, Any]]:
        """Yield each annotation with its values byte for byte, the category renamed, and the original one kept."""
        decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
        for records in self.annotation_records:
            for raw, treatment in records:
                record: dict[str, Any] = decode(raw)
                original = record["category_id"]
                record["category_id"] = treatment.category_id
                if not self.strict_layout:
                    record |= {"orig_category_id": original, "orig_category": treatment.name}
                yield record


def read_verbatim(
    manifest: Manifest,
    content: Content,
    source: Source,
    path: Path | None,
    *,
    order: Int64s,
    strict_layout: bool,
) -> VerbatimRecords:
    """Return the raw records of a part, read from the very file that the manifest was made from.

    The file lies in memory once (400 MB for train2017); records are views of it.

    Parameters
    ----------
    content : Content
        One part of one source.
    source : Source
        What was read from the file at `path`.
    order : ndarray of int64
        Places in the part's list, in the order of the output.

    Raises
    ------
    ExportError
        There is no JSON file, it is not the one that the manifest states, or its records are not those of the part.
    """
    slot = content.slots[0]
    if path is None or not path.is_file():
        raise ExportError(
            "The authors' layout passes on the records of the COCO JSON file, and there is none",
            where=f"source {slot}",
            expected=f"--source {slot}=FILE.json",
            hint="--format coco writes the part from any source with boxes",
        )
    data = read_bytes(path, kind="annotation file")
    _require_stated(manifest, slot, path, data)
    file = _decoded(data, path)
    treatments = _treatments(manifest.header.classes, content.parts[0].view, file.categories)
    records, wanted = _ranked_images(file, source, content, order, path)
    annotations = _annotations(file, wanted, treatments, content)
    found = sum(map(len, annotations))
    if found != len(content.objects):
        raise ExportError(
            "The records of the file are not the objects of the part",
            where=f"{path.name}, part {content.parts[0].name}",
            expected=f"{len(content.objects)} annotations",
            found=f"{found}: was the source read under a policy that leaves boxes out?",
            hint="--format coco",
        )
    return VerbatimRecords(records, annotations, strict_layout)


def _require_stated(manifest: Manifest, slot: str, path: Path, data: bytes) -> None:
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    stated = {file.sha256 for source in manifest.header.sources if source.name == slot for file in source.files}
    if digest not in stated:
        raise ExportError(
            "The annotation file is not the one that the manifest was made from",
            where=str(path),
            expected=", ".join(sorted(stated)) or "a file whose digest the manifest states",
            found=digest,
            hint="--format coco accepts other files with the same images"
            if stated
            else f"`curation build {manifest.header.name}@{manifest.header.version}` writes one that states yours",
        )


def _decoded(data: bytes, path: Path) -> _File:
    return decode_json(data, _File, ExportError, "The annotation file is not COCO JSON", where=str(path))


def _treatments(
    classes: tuple[ClassEntry, ...], view: LabelView, categories: list[_Category]
) -> Mapping[int, Treatment]:
    by_name = {name: entry for entry in classes for name in (*entry.aliases, entry.name)}
    treatments = {}
    for category in categories:
        entry = by_name.get(category.name)
        if entry is not None:
            word = getattr(view, entry.role)
            number = UNKNOWN_ID if word == "rename:unknown" else entry.index
            treatments[category.id] = Treatment(category.name, number, word == "drop")
    return treatments


def _ranked_images(
    file: _File, source: Source, content: Content, order: Int64s, path: Path
) -> tuple[list[msgspec.Raw], dict[str, int]]:
    """Return the image records in the order of the output, and the rank of each of their ids there."""
    # A reader keeps the images of a file in file order, so the k-th record is the source's k-th image.
    if len(file.images) != len(source.images):
        raise ExportError(
            "The annotation file does not hold the images of its source",
            where=str(path),
            expected=f"{len(source.images)} images",
            found=str(len(file.images)),
        )
    decode = msgspec.json.Decoder(_ImageKey).decode
    position = {native: place for place, native in enumerate(source.images.native.tolist())}
    records = [file.images[position[native]] for native in content.images.native[order].tolist()]
    return records, {str(decode(raw).id): rank for rank, raw in enumerate(records)}


def _annotations(
    file: _File, wanted: Mapping[str, int], treatments: Mapping[int, Treatment], content: Content
) -> list[list[tuple[msgspec.Raw, Treatment]]]:
    from tqdm import tqdm

    drop_crowd = content.parts[0].view.crowd == "drop"
    decode = msgspec.json.Decoder(_AnnotationKey).decode
    records: list[list[tuple[msgspec.Raw, Treatment]]] = [[] for _ in wanted]
    for raw in tqdm(file.annotations, desc="records", unit=" annotations", disable=None):
        key = decode(raw)
        rank = wanted.get(str(key.image_id))
        if rank is None:
            continue
        treatment = treatments.get(key.category_id)
        if treatment is not None and not treatment.dropped and not (drop_crowd and key.iscrowd):
            records[rank].append((raw, treatment))
    return records
