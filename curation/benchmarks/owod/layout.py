"""The folder layout of the OWOD repositories (ORE, RE-OWOD): every class in VOC XML, lists under upstream names.

Facts on the layout: ``coco_annotation_to_voc_style.py`` and the data loader of RE-OWOD/RE-OWOD, the same in
JosephKJ/OWOD, OW-DETR and PROB. There the label views are made at load time, from the name of the dataset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from curation.core.columns import distinct
from curation.core.errors import ExportError
from curation.manifest.header import UNKNOWN_ID, PartEntry, classes_in
from curation.manifest.manifest import Manifest
from curation.manifest.views import EVERYTHING
from curation.publishing.exporting import Format
from curation.publishing.formats.content import Content, gather, slots_of_parts
from curation.publishing.formats.plan import Plan, PlannedFile, lines, present
from curation.publishing.formats.voc import image_stems, inclusive_corners, require_xml_text, voc_annotations
from curation.sources.datasets import family
from curation.sources.source import Bools, Floats, Int64s, Source

_UPSTREAM_ROLES = {"train": "train", "finetune": "ft", "val": "val", "test": "test"}
_NOTES = (
    "The photos are left to you: copy or link them as JPEGImages/STEM.jpg.",
    "Every object stands under its own class: the upstream loader makes the label views from the name of a dataset "
    "(train, ft, test, val), and labels val like test, where the paper keeps known classes only. --format coco writes "
    "the label views themselves.",
)


def plan_owod_layout(manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]) -> Plan:
    """Return the plan of a folder that the code of the OWOD repositories reads as its ``VOC2007`` folder.

    ``ImageSets/Main`` holds the lists of the parts under their upstream names (see `upstream_lists`), lines that name
    an image again included; ``Annotations`` one XML file an image with every object under the manifest's name of its
    class, ``difficult`` as the source says, and corners as upstream computes them (see `upstream_corners`). Upstream
    loses the crowd flag: crowd regions are ordinary objects there and here, but ``<crowd>1</crowd>`` follows their box,
    which the upstream loader ignores. Upstream writes no XML for an image without objects, and its loader skips a
    listed image without XML: here each image has one.

    Parameters
    ----------
    parts : sequence of str
        Parts may share images.

    Raises
    ------
    ExportError
        The manifest has no tasks; no part is chosen, or one twice; two lists would have the same name; an image id or a
        name cannot be part of a path or of XML; a class has no index.
    ManifestError, MissingListError, PresenceOnlyError
        See `curation.publishing.formats.content.gather`.
    """
    _require_tasks(manifest, parts)
    lists = upstream_lists(manifest, parts)
    content = _fully_labelled(manifest, parts, sources)
    images, objects = content.images, content.objects
    stems, prefixed = image_stems(images)
    corners, changed = _corners(content)
    require_xml_text(content)
    empty = len(images) - len(distinct(objects.image))
    n_crowd = int(objects.crowd.sum())
    return Plan(
        files=_files(content, stems, corners, lists),
        records=sum(map(len, lists.values())) + len(images),
        counts={
            "lists": len(lists),
            "lines": sum(map(len, lists.values())),
            "images": len(images),
            "annotations": len(objects),
            "crowd": n_crowd,
            "difficult": int(objects.difficult.sum()),
            "images_without_objects": empty,
        },
        changed=present({**changed, "crowd_written_as_ordinary_objects": n_crowd}),
        notes=(*_NOTES, *_notes(prefixed=prefixed, n_crowd=n_crowd, empty=empty)),
    )


FORMATS = (
    Format(
        "owod",
        lambda request: plan_owod_layout(request.manifest, request.parts, request.sources),
        each="never",
        usual_parts=lambda _: ["all"],
    ),
)


def upstream_lists(manifest: Manifest, parts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the ids of each list under its upstream name, repeated lines kept.

    ``t1-train`` is ``t1_train``, ``t2-finetune`` is ``t2_ft``. The test list that all tasks share is ``all_task_test``;
    if the lists differ, each task has one (``t1_test``). If the validation lists of all tasks are chosen, they follow
    one another in ``all_task_val``, as RE-OWOD publishes its four segments; a list that all tasks share is there once.
    Any other part keeps its name, with ``_`` for ``-``.

    Raises
    ------
    ExportError
        Two parts have one upstream name.
    """
    entries = [manifest.part(part) for part in parts]
    lists: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        name = _upstream_name(entry)
        if name in lists:
            raise ExportError(
                "Two parts have the same upstream name", where=f"ImageSets/Main/{name}.txt", found=entry.name
            )
        lists[name] = manifest.ids(entry.name)
    for role, name in (("val", "all_task_val"), ("test", "all_task_test")):
        every = [entry for entry in _in_task_order(manifest) if entry.role == role and _is_standard(entry)]
        chosen = [entry for entry in every if entry in entries]
        same = len({entry.sha256 for entry in every}) == 1
        has_all_segments = role == "val" and len(chosen) == len(every)
        if chosen and (same or has_all_segments) and name not in lists:
            for entry in chosen:
                del lists[_upstream_name(entry)]
            joined = chosen[:1] if same else chosen
            lists[name] = tuple(image for entry in joined for image in manifest.ids(entry.name))
    return lists


def upstream_corners(boxes: Floats) -> Int64s:
    """Return the corners that upstream writes: ``int(x + 1), int(y + 1), int(x + w + 1), int(y + h + 1)``.

    The upstream loader takes 1 off the first two. What comes back starts up to one pixel too early and ends up to one
    pixel too late: a box of whole pixels keeps its start and grows by one pixel. A detection that fits a box of 2 x 2
    pixels exactly has an IoU of 4/9 with what comes back, so that at 0.5 such an object cannot be found.

    Parameters
    ----------
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` in pixels, origin top left.

    Returns
    -------
    ndarray of int64, shape (m, 4)
        ``xmin, ymin, xmax, ymax``.
    """
    start, end = boxes[:, :2] + 1, boxes[:, :2] + boxes[:, 2:] + 1
    # A cast to integers truncates towards zero, as Python's int does.
    corners: Int64s = np.concatenate([start, end], axis=1).astype(np.int64)
    return corners


def _files(
    content: Content, stems: Sequence[str], corners: Int64s, lists: Mapping[str, tuple[str, ...]]
) -> Iterator[PlannedFile]:
    """Yield the lists, then one XML file an image."""
    stem_of = dict(zip(content.images.ids, stems, strict=True))
    for name, ids in lists.items():
        yield PlannedFile(f"ImageSets/Main/{name}.txt", lines([stem_of[image] for image in ids]))
    yield from voc_annotations(content, stems, corners)


def _require_tasks(manifest: Manifest, parts: Sequence[str]) -> None:
    if not manifest.header.tasks:
        raise ExportError(
            "The upstream layout needs tasks, and the manifest has none",
            where=f"{manifest.header.name} {manifest.header.version}",
            hint="--format voc",
        )
    if not parts or len(set(parts)) < len(parts):
        raise ExportError("Each part is exported once", expected="one or more parts", found=", ".join(parts))


def _fully_labelled(manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]) -> Content:
    """Return every image of some parts once, with all objects under their original classes."""
    ids = tuple(dict.fromkeys(image for part in parts for image in manifest.ids(part)))
    every = PartEntry(
        name="every image",
        role="train",
        sources=slots_of_parts(manifest, parts),
        selection="",
        view=EVERYTHING,
        order="listed",
        images=len(ids),
    )
    header = msgspec.structs.replace(manifest.header, parts=(every,))
    content = gather(Manifest(header, {every.name: ids}), [every.name], sources)
    if (content.objects.category_id == UNKNOWN_ID).any():
        raise ExportError(
            "Some objects belong to classes without an index, which the upstream layout cannot name",
            where=f"{manifest.header.name} {manifest.header.version}",
            found=", ".join(entry.name for entry in classes_in(header, every) if entry.index == UNKNOWN_ID)[:300],
        )
    return content


def _corners(content: Content) -> tuple[Int64s, dict[str, int]]:
    """Return the corners of all objects, and the number of changed ones; those of VOC stay unchanged."""
    images, objects = content.images, content.objects
    sizes = np.stack([images.widths, images.heights], axis=1)[objects.image]
    from_voc: Bools = np.array([family(name) == "voc" for name in content.datasets], np.bool_)
    is_voc = from_voc[images.slot[objects.image]]
    corners = upstream_corners(objects.boxes)
    corners[is_voc], changed = inclusive_corners(objects.boxes[is_voc], sizes[is_voc])
    exact = np.concatenate([objects.boxes[:, :2], objects.boxes[:, :2] + objects.boxes[:, 2:]], axis=1) + 1
    truncated = ~is_voc & (corners != exact).any(axis=1)
    return corners, {**changed, "boxes_truncated_to_whole_pixels": int(truncated.sum())}


def _is_standard(entry: PartEntry) -> bool:
    return entry.task != "" and entry.name == f"{entry.task}-{entry.role}"


def _in_task_order(manifest: Manifest) -> list[PartEntry]:
    order = ["", *(task.name for task in manifest.header.tasks)]
    return sorted(manifest.header.parts, key=lambda entry: order.index(entry.task))


def _upstream_name(entry: PartEntry) -> str:
    if _is_standard(entry) and entry.role in _UPSTREAM_ROLES:
        return f"{entry.task}_{_UPSTREAM_ROLES[entry.role]}"
    return entry.name.replace("-", "_")


def _notes(*, prefixed: bool, n_crowd: int, empty: int) -> Iterator[str]:
    if prefixed:
        yield "Ids of the sources collide, so every stem carries its namespace (voc2007_000009)."
    if n_crowd:
        yield f"{n_crowd} crowd regions are ordinary objects, as upstream writes them, marked <crowd>1</crowd>."
    if empty:
        yield f"{empty} images have no object: their XML is empty, where upstream has none and skips the image."
