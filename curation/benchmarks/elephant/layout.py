"""Parts in the layout of the authors' files, ``custom_voc_2007_test.json`` or ``WR1_Mixed_Unknowns.json``.

Facts on these files: the notebook ``Protocol_Creator.ipynb`` of Vastlab/Elephant-of-object-detection (cells 4 to 12).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from curation.benchmarks.elephant.lists import difference_order, image_numbers, known_images
from curation.core.canonical import sha256_of_bytes
from curation.core.errors import ExportError
from curation.core.files import read_bytes
from curation.core.ids import native_number
from curation.core.json_text import decode_json
from curation.manifest.header import UNKNOWN_ID, PartEntry
from curation.manifest.manifest import Manifest
from curation.publishing.exporting import ExportRequest, Format
from curation.publishing.formats.coco import corners, plain_number
from curation.publishing.formats.content import UNKNOWN_NAME, Content, gather
from curation.publishing.formats.plan import Plan, PlannedFile, json_file, present
from curation.sources.datasets import family
from curation.sources.source import Int64s, Source


def _plan(request: ExportRequest) -> Plan:
    files = _annotation_files(request)
    strict = request.options.strict_layout
    return plan_elephant_json(request.manifest, request.parts, request.sources, files, strict_layout=strict)


FORMATS = (Format("elephant-json", _plan, ("strict_layout",), file=".json"),)


def _annotation_files(request: ExportRequest) -> dict[str, Path]:
    """Return the annotation file of each source, where it is one file that can be found from where it was given."""
    files: dict[str, Path] = {}
    for entry in request.manifest.header.sources:
        raw = request.given.get(entry.name, request.given.get(entry.dataset))
        if not isinstance(raw, str | Path) or entry.name not in request.sources:
            continue
        root = Path(raw)
        for record in request.sources[entry.name].files:
            candidates = [root, root / record.name, root / "annotations" / record.name]
            if existing := [path for path in candidates if path.is_file()]:
                files[entry.name] = existing[0]
    return files


def plan_elephant_json(
    manifest: Manifest,
    parts: Sequence[str],
    sources: Mapping[str, Source],
    annotation_files: Mapping[str, Path],
    *,
    strict_layout: bool = False,
) -> Plan:
    """Return the plan of a file for each part, in the layout of the authors' file of that part.

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
    contents = [gather(manifest, [part], sources) for part in parts]
    files = tuple(_planned(manifest, content, sources, annotation_files, strict_layout) for content in contents)
    if not files or len({file.name for file in files}) < len(files):
        raise ExportError("Each part is exported once", expected="one or more parts", found=", ".join(parts))
    counts = {
        "images": sum(len(file.images) for file in contents),
        # What is passed on verbatim is held against the objects of the part: there are as many.
        "annotations": sum(len(file.objects) for file in contents),
    }
    return Plan(
        files=files,
        records=sum(counts.values()) + 4 * len(contents),
        counts=counts,
        left_out=present({"objects_dropped_by_view": sum(file.dropped for file in contents)}),
    )


def _planned(
    manifest: Manifest,
    content: Content,
    sources: Mapping[str, Source],
    annotation_files: Mapping[str, Path],
    strict_layout: bool,
) -> PlannedFile:
    (part,) = content.parts
    if len(content.slots) != 1:
        slots = ", ".join(content.slots)
        raise ExportError("The authors' layout holds one source a file", where=f"part {part.name}", found=slots)
    source = sources[content.slots[0]]
    if family(content.datasets[0]) == "voc":
        images, annotations = voc_records(content, strict_layout=strict_layout)
    else:
        digests = {f.sha256 for entry in manifest.header.sources if entry.name == content.slots[0] for f in entry.files}
        data = _stated_file(annotation_files.get(content.slots[0]), digests, content.slots[0], manifest)
        order = notebook_order(manifest, part.name, source)
        images, annotations = verbatim_records(content, source, data, order, strict_layout=strict_layout)
    categories = [{"supercategory": "none", "id": entry.index, "name": entry.name} for entry in content.classes]
    if content.has_unknown:
        categories.append({"supercategory": "none", "id": UNKNOWN_ID, "name": UNKNOWN_NAME})
    return PlannedFile(
        file_name(part, source), lambda: json_file(images=images(), annotations=annotations(), categories=categories)
    )


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


def notebook_order(manifest: Manifest, part: str, source: Source) -> Int64s:
    """Return the places in a part's list, in the order in which the authors' file of that part holds them.

    Where the manifest's rule takes images in CPython's set order, a part that is the beginning of that order (all of
    the wilderness, or WR1) has this order. Every other part keeps the order of its list.
    """
    ids = manifest.ids(part)
    as_listed = np.arange(len(ids))
    orders = manifest.header.rule.parameters.get("orders", ())
    if not isinstance(orders, tuple) or "cpython_set" not in orders:
        return as_listed
    shows_known = known_images(source, manifest.header.classes)
    walk = difference_order(image_numbers(source), shows_known)[: len(ids)]
    rank = {image: position for position, image in enumerate(ids)}
    positions = [rank.get(image, -1) for image in source.image_ids[walk].tolist()]
    return as_listed if -1 in positions or len(positions) < len(ids) else np.array(positions, np.int64)


Record = Mapping[str, Any] | msgspec.Raw
Records = tuple[Callable[[], Iterator[Record]], Callable[[], Iterator[Record]]]
"""What yields the images, and what yields the annotations."""


def voc_records(content: Content, *, strict_layout: bool) -> Records:
    """Return images and annotations of a VOC part as the authors' files hold them; ``2008_000008`` is 2008000008."""
    native = [native_number(text) for text in content.images.native.tolist()]
    numbers = content.images.numbers.tolist() if None in native else native

    def images() -> Iterator[Record]:
        rows = zip(content.images.photos, content.images.sizes.tolist(), numbers, strict=True)
        for photo, (width, height), number in rows:
            yield {"file_name": photo, "height": height, "width": width, "id": number}

    def annotations() -> Iterator[Record]:
        objects = content.objects
        columns = (objects.image, objects.boxes, objects.category_id, objects.difficult)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for number, (image, box, category, difficult) in enumerate(rows, start=1):
            yield {
                "segmentation": [corners(box)],
                "area": plain_number(box[2] * box[3]),
                "iscrowd": 0,
                "image_id": numbers[image],
                "bbox": [plain_number(value) for value in box],
                "category_id": category,
                "id": number,
            } | ({} if strict_layout else {"difficult": int(difficult)})

    return images, annotations


class _Annotation(msgspec.Struct, gc=False):
    id: int | str | None = None


class _File(msgspec.Struct):
    """The two arrays that are passed on; every record stays the bytes it is."""

    images: list[msgspec.Raw]
    annotations: list[msgspec.Raw]


def verbatim_records(content: Content, source: Source, data: bytes, order: Int64s, *, strict_layout: bool) -> Records:
    """Return the records of a part as its COCO file holds them, byte for byte inside each value.

    Parameters
    ----------
    content : Content
        A part with a single source.
    source : Source
        What was read from the file.
    data : bytes
        Its content: 400 MB for train2017; records are views of it.
    order : ndarray of int64
        Places in the part's list, in the order of the output.

    Raises
    ------
    ExportError
        The records of the file are not those of the part.
    """
    from tqdm import tqdm

    file = decode_json(data, _File, ExportError, "The annotation file is not COCO JSON", where=source.files[0].name)
    rows = {number: row for row, number in enumerate(content.objects.numbers.tolist())}
    decode_id = msgspec.json.Decoder(_Annotation).decode
    records: dict[int, msgspec.Raw] = {}
    progress = tqdm(file.annotations, desc="records", unit=" annotations", disable=None)
    for count, raw in enumerate(progress, start=1):
        # A reader numbers annotations from 1 where the file does not.
        number = decode_id(raw).id
        row = rows.get(number if isinstance(number, int) else count)
        if row is not None:
            records[row] = raw
    if len(file.images) != len(source.images) or len(records) != len(content.objects):
        raise ExportError(
            "The records of the file are not the images and objects of the part",
            where=f"{source.files[0].name}, part {content.parts[0].name}",
            expected=f"{len(source.images)} images in all, {len(content.objects)} annotations of the part",
            found=f"{len(file.images)} and {len(records)}",
            hint="--format coco",
        )
    # A reader keeps the images of a file in file order, so the k-th record is the source's k-th image.
    position = {native: index for index, native in enumerate(source.images.native.tolist())}
    natives = content.images.native[order].tolist()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    by_image = np.argsort(rank[content.objects.image], kind="stable").tolist()
    objects = content.objects

    def images() -> Iterator[Record]:
        return (file.images[position[native]] for native in natives)

    def annotations() -> Iterator[Record]:
        decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
        for row in by_image:
            record: dict[str, Any] = decode(records[row])
            original = {"orig_category_id": record["category_id"], "orig_category": str(objects.original[row])}
            yield record | {"category_id": int(objects.category_id[row])} | ({} if strict_layout else original)

    return images, annotations


def _stated_file(path: Path | None, digests: set[str], slot: str, manifest: Manifest) -> bytes:
    """Return the bytes of the file that the manifest was made from; raise `ExportError` where it is another."""
    if path is None or not path.is_file():
        raise ExportError(
            "The authors' layout passes on the records of the COCO JSON file, and there is none",
            where=f"source {slot}",
            expected=f"--source {slot}=FILE.json",
            hint="--format coco writes the part from any source with boxes",
        )
    data = read_bytes(path, kind="annotation file")
    digest = sha256_of_bytes(data)
    if digest not in digests:
        name = f"{manifest.header.name}@{manifest.header.version}"
        raise ExportError(
            "The annotation file is not the one that the manifest was made from",
            where=str(path),
            expected=", ".join(sorted(digests)) or "a file whose digest the manifest states",
            found=digest,
            hint="--format coco accepts other files with the same images"
            if digests
            else f"`curation build {name}` writes one that states yours",
        )
    return data
