"""Parts in the layout of the authors' files, ``custom_voc_2007_test.json`` or ``WR1_Mixed_Unknowns.json``.

Facts on these files: the notebook ``Protocol_Creator.ipynb`` of Vastlab/Elephant-of-object-detection (cells 4 to 12).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from curation.benchmarks.parts import images_with_roles
from curation.benchmarks.rules.set_order import difference_order, image_numbers
from curation.benchmarks.rules.wilderness import orders_of
from curation.core.errors import ExportError
from curation.core.ids import native_number
from curation.manifest.header import UNKNOWN_ID, PartEntry
from curation.manifest.manifest import Manifest
from curation.publishing.exporting import Format
from curation.publishing.formats.coco import corners, plain_number
from curation.publishing.formats.content import UNKNOWN_NAME, Content, gather
from curation.publishing.formats.plan import Plan, PlannedFile, json_file, present
from curation.sources.datasets import family
from curation.sources.source import Int64s, Source


def plan_elephant_json(manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]) -> Plan:
    """Return the plan of a file for each part, in the layout of the authors' file of that part.

    A VOC part is ``custom_voc_YEAR_PART.json``: whole-pixel boxes with their four corners, ids 1..n, 20 categories in a
    training file and ``unknown`` (-1) last in a test file. A COCO part is ``Mixed_Unknowns.json`` or
    ``WR1_Mixed_Unknowns.json``: the same fields with COCO's annotation ids, areas and crowd flags, ``category_id`` -1,
    and images in the notebook's set order where the manifest says ``cpython_set``.

    Three fields are additions: ``difficult`` (the notebook deletes the flag), and ``orig_category_id`` and
    ``orig_category`` (the authors' files lose the class that the paper's Fig. 4 needs).

    Raises
    ------
    ExportError
        The manifest has tasks; a part comes from several sources.
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
    files = tuple(_planned(manifest, content, sources) for content in contents)
    if not files or len({file.name for file in files}) < len(files):
        raise ExportError("Each part is exported once", expected="one or more parts", found=", ".join(parts))
    counts = {
        "images": sum(len(file.images) for file in contents),
        "annotations": sum(len(file.objects) for file in contents),
    }
    return Plan(
        files=files,
        records=sum(counts.values()) + 4 * len(contents),
        counts=counts,
        left_out=present({"objects_dropped_by_view": sum(file.dropped for file in contents)}),
    )


FORMATS = (
    Format(
        "elephant-json",
        lambda request: plan_elephant_json(request.manifest, request.parts, request.sources),
        file=".json",
    ),
)


def _planned(manifest: Manifest, content: Content, sources: Mapping[str, Source]) -> PlannedFile:
    (part,) = content.parts
    if len(content.slots) != 1:
        slots = ", ".join(content.slots)
        raise ExportError("The authors' layout has one source per file", where=f"part {part.name}", found=slots)
    source = sources[content.slots[0]]
    categories = [{"supercategory": "none", "id": entry.index, "name": entry.name} for entry in content.classes]
    if content.has_unknown:
        categories.append({"supercategory": "none", "id": UNKNOWN_ID, "name": UNKNOWN_NAME})
    return PlannedFile(file_name(part, source), partial(_chunks, manifest, content, source, categories))


def file_name(part: PartEntry, source: Source) -> str:
    """Return the authors' name for a part's file: ``custom_voc_2007_test.json``, ``WR1_Mixed_Unknowns.json``.

    Parts that the authors lack are named by the same pattern (``WR0.5_Mixed_Unknowns.json``).
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
    """Return the positions in the list of a part, in the order of the authors' file of that part.

    If the manifest uses CPython's set order, a part that is the beginning of that order (all of the wilderness, or WR1)
    has this order. Every other part keeps the order of its list.
    """
    ids = manifest.ids(part)
    as_listed = np.arange(len(ids))
    if "cpython_set" not in orders_of(manifest.header) or family(source.dataset) == "voc":
        return as_listed
    shows_known = images_with_roles(source, manifest.header.classes, "known")
    walk = difference_order(image_numbers(source), shows_known)[: len(ids)]
    rank = {image: position for position, image in enumerate(ids)}
    positions = [rank.get(image, -1) for image in source.image_ids[walk].tolist()]
    return as_listed if -1 in positions or len(positions) < len(ids) else np.array(positions, np.int64)


def _chunks(manifest: Manifest, content: Content, source: Source, categories: Sequence[Any]) -> Iterator[bytes]:
    """Yield the bytes of a file; the image ``2008_000008`` of VOC has the id 2008000008."""
    order = notebook_order(manifest, content.parts[0].name, source)
    is_voc, photos, sizes = family(source.dataset) == "voc", content.images.photos, content.images.sizes.tolist()
    numbers = content.images.numbers.tolist()
    if is_voc and None not in (natives := [native_number(text) for text in content.images.native.tolist()]):
        numbers = natives
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    objects = content.objects

    def images() -> Iterator[dict[str, Any]]:
        for row in order.tolist():
            width, height = sizes[row]
            yield {"file_name": photos[row], "height": height, "width": width, "id": numbers[row]}

    def annotations() -> Iterator[dict[str, Any]]:
        for number, row in enumerate(np.argsort(rank[objects.image], kind="stable").tolist(), start=1):
            box = objects.boxes[row].tolist()
            original = {"orig_category_id": int(objects.original_number[row]), "orig_category": objects.original[row]}
            yield {
                "segmentation": [corners(box)],
                "area": plain_number(box[2] * box[3] if is_voc else float(objects.areas[row])),
                "iscrowd": 0 if is_voc else int(objects.crowd[row]),
                "image_id": numbers[objects.image[row]],
                "bbox": [plain_number(value) for value in box],
                "category_id": int(objects.category_id[row]),
                "id": number if is_voc else int(objects.numbers[row]),
            } | ({"difficult": int(objects.difficult[row])} if is_voc else original)

    return json_file(images=images(), annotations=annotations(), categories=categories)
