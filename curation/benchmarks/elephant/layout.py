"""Parts in the layout of the Elephant authors' files, ``custom_voc_2007_test.json`` or ``WR1_Mixed_Unknowns.json``.

Facts on these files: the notebook ``Protocol_Creator.ipynb`` of Vastlab/Elephant-of-object-detection (cells 4 to 12).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from curation.benchmarks.elephant.set_order import notebook_order
from curation.errors import ExportError
from curation.ids import native_number
from curation.manifest.header import PartEntry
from curation.manifest.manifest import Manifest
from curation.publishing.formats.coco import corners, plain_number
from curation.publishing.formats.content import UNKNOWN_NAME, Content, gather
from curation.publishing.formats.plan import Plan, PlannedFile, first_repeated, joined, present
from curation.publishing.verbatim import read_verbatim
from curation.sources.source import Source

_encode = msgspec.json.Encoder().encode


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
    totals: dict[str, int] = {}
    for _, counts in files:
        for name, count in counts.items():
            totals[name] = totals.get(name, 0) + count
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
    name = file_name(manifest.part(part), sources[slot])
    if content.datasets[0].startswith("voc"):
        voc = VocRecords(content, strict_layout)
        counts = {"images": len(content.images), "annotations": len(content.objects)}
        file = PlannedFile(name, lambda: _file(voc.images(), voc.annotations(), _categories(content)))
    else:
        order = notebook_order(manifest, part, sources[slot])
        path = annotation_files.get(slot)
        coco = read_verbatim(manifest, content, sources[slot], path, order=order, strict_layout=strict_layout)
        counts = {"images": len(content.images), "annotations": coco.n_annotations}
        file = PlannedFile(name, lambda: _file(coco.images(), coco.annotations(), _categories(content)))
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
        rows = zip(
            images.file_names.tolist(),
            images.native.tolist(),
            images.heights.tolist(),
            images.widths.tolist(),
            self._numbers(),
            strict=True,
        )
        for name, native, height, width, number in rows:
            yield {"file_name": name or f"{native}.jpg", "height": height, "width": width, "id": number}

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


def _file(
    images: Iterator[Any], annotations: Iterator[Any], categories: Sequence[dict[str, Any]]
) -> Iterator[bytes]:
    yield b'{"images":[\n'
    yield from joined(images)
    yield b'],\n"annotations":[\n'
    yield from joined(annotations)
    yield b'],\n"categories":[\n' + b",\n".join(map(_encode, categories)) + b"\n]}\n"
