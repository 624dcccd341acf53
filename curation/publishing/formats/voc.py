"""Parts in the folder layout of PASCAL VOC: ``Annotations/STEM.xml`` and ``ImageSets/Main/PART.txt``."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from curation.core.errors import ExportError
from curation.manifest.header import UNKNOWN_ID
from curation.manifest.manifest import Manifest
from curation.publishing.formats.content import UNKNOWN_NAME, Content, ContentImages, gather
from curation.publishing.formats.plan import Plan, PlannedFile, first_repeated, lines, present, safe_name, single_chunk
from curation.sources.source import POSES, Floats, Int32s, Int64s, Source

_SAME = 1e-9


def plan_voc(manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]) -> Plan:
    """Return the plan of a VOC folder with some parts under their label views.

    ``difficult`` is 1 if the source marks the object or the view ignores it (crowd regions, ignored classes), because
    VOC evaluators do not count difficult objects. Such an object has ``<crowd>1</crowd>`` or ``<ignored>1</ignored>``
    after its box, and an object whose name changed has ``<original>`` (unless the manifest has tasks, see `Content`);
    VOC readers ignore these elements, because they look elements up by name.
    Pixels are 1-based and inclusive (see `inclusive_corners`).

    Raises
    ------
    ExportError
        An image id or a name is not allowed in a path or in XML; two parts share an image.
    ManifestError, MissingListError, PresenceOnlyError
        See `curation.publishing.formats.content.gather`.
    """
    content = gather(manifest, parts, sources)
    images, objects = content.images, content.objects
    stems, prefixed = image_stems(images)
    corners, changed = inclusive_corners(objects.boxes, images.sizes[objects.image])
    require_xml_text(content)

    def files() -> Iterator[PlannedFile]:
        for number, part in enumerate(content.parts):
            yield PlannedFile(f"ImageSets/Main/{part.name}.txt", lines([stems[at] for at in images.of_part(number)]))
        yield from voc_annotations(content, stems, corners)

    flagged = objects.ignore & ~objects.difficult
    notes = ["Ids of the sources collide, so every stem carries its namespace (voc2007_000009)."] * prefixed
    if unsized := int((images.sizes <= 0).any(axis=1).sum()):
        notes.append(f"{unsized} images have no width and height in their source: their <size> says 0.")
    return Plan(
        files=files(),
        records=2 * len(images),
        counts={
            "images": len(images),
            "annotations": len(objects),
            "unknown": int(objects.unknown.sum()),
            "difficult": int((objects.difficult | objects.ignore).sum()),
            "crowd": int(objects.crowd.sum()),
        },
        changed=present({**changed, "ignored_written_as_difficult": flagged.sum()}),
        left_out=present(content.left_out),
        notes=tuple(notes),
    )


def inclusive_corners(boxes: Floats, sizes: Int32s) -> tuple[Int64s, dict[str, int]]:
    """Return VOC's pixel corners of boxes, and the number of boxes changed in each way.

    VOC's pixels ``xmin..xmax`` (1-based, inclusive) cover the continuous span ``xmin - 1`` to ``xmax``, so a box of
    whole numbers has ``xmin = x + 1`` and ``xmax = x + w`` exactly: the inverse of the reader. Other edges are rounded
    to the nearest whole number (halves to the even one), at most half a pixel away; a box that would vanish becomes the
    pixel at its centre. If the size of the image is known, the corners are clipped to it.

    Parameters
    ----------
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` in pixels, origin top left.
    sizes : ndarray of int, shape (m, 2)
        Width and height of the image of each box, 0 if unknown.

    Returns
    -------
    corners : ndarray of int64, shape (m, 4)
        ``xmin, ymin, xmax, ymax``; ``1 <= xmin <= xmax``, the same for y.
    changed : dict
        ``boxes_rounded``, ``boxes_widened_to_a_pixel``, ``boxes_clipped_to_the_image``. A box may be in several.
    """
    start, end = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    low, high = np.rint(start) + 1, np.rint(end)
    rounded = (np.abs(low - 1 - start) > _SAME) | (np.abs(high - end) > _SAME)
    vanished = high < low
    centre = np.floor((start + end) / 2) + 1
    low, high = np.where(vanished, centre, low), np.where(vanished, centre, high)
    last = np.where(sizes > 0, sizes, np.inf)
    inside_low, inside_high = np.clip(low, 1, last), np.clip(high, 1, last)
    clipped = (inside_low != low) | (inside_high != high)
    changed = {
        "boxes_rounded": int(rounded.any(axis=1).sum()),
        "boxes_widened_to_a_pixel": int(vanished.any(axis=1).sum()),
        "boxes_clipped_to_the_image": int(clipped.any(axis=1).sum()),
    }
    return np.concatenate([inside_low, inside_high], axis=1).astype(np.int64), changed


def image_stems(images: ContentImages) -> tuple[tuple[str, ...], bool]:
    """Return the file stem of each image, its native id, and whether stems need namespaces to be distinct.

    Raises
    ------
    ExportError
        An id cannot be a file stem.
    """
    stems: list[str] = images.native.tolist()
    prefixed = len(stems) > 0 and first_repeated(np.array(stems)) is not None
    if prefixed:
        stems = [image.replace(":", "_", 1) for image in images.ids]
    for stem, image in zip(stems, images.ids, strict=True):
        if "/" in safe_name(stem, image):
            raise ExportError(
                "An image id with a slash cannot be the stem of a VOC file", where=image[:300], hint="--format coco"
            )
    return tuple(stems), prefixed


def voc_annotations(content: Content, stems: Sequence[str], corners: Int64s) -> Iterator[PlannedFile]:
    """Yield an XML file for each image, including images without objects.

    Parameters
    ----------
    stems : sequence of str, length n
    corners : ndarray of int64, shape (m, 4)
        ``xmin, ymin, xmax, ymax`` of each object.
    """
    images, objects = content.images, content.objects
    names = {entry.index: entry.name for entry in content.classes} | {UNKNOWN_ID: UNKNOWN_NAME}
    bounds = np.searchsorted(objects.image, np.arange(len(stems) + 1)).tolist()
    for image, (stem, photo) in enumerate(zip(stems, images.photos, strict=True)):
        dataset = _text(content.datasets[images.slot[image]])
        rows = range(bounds[image], bounds[image + 1])
        objects_text = "".join(
            _object(content, row, names[int(objects.category_id[row])], corners[row]) for row in rows
        )
        text = (
            "<annotation>\n"
            f"\t<folder>{dataset}</folder>\n"
            f"\t<filename>{_text(photo)}</filename>\n"
            f"\t<source><database>{dataset}</database><image>{_text(images.ids[image])}</image></source>\n"
            f"\t<size><width>{images.widths[image]}</width><height>{images.heights[image]}</height>"
            "<depth>3</depth></size>\n"
            "\t<segmented>0</segmented>\n"
            f"{objects_text}</annotation>\n"
        )
        yield PlannedFile(f"Annotations/{stem}.xml", single_chunk(text), "Annotations/*.xml")


def _object(content: Content, row: int, name: str, box: Int64s) -> str:
    objects, original = content.objects, content.objects.original[row]
    crowd, difficult, ignore = (bool(column[row]) for column in (objects.crowd, objects.difficult, objects.ignore))
    marks = "\t\t<crowd>1</crowd>\n" * crowd + "\t\t<ignored>1</ignored>\n" * (ignore and not (difficult or crowd))
    if original != name and not content.of_tasks:
        marks += f"\t\t<original>{_text(original)}</original>\n"
    xmin, ymin, xmax, ymax = box.tolist()
    return (
        "\t<object>\n"
        f"\t\t<name>{_text(name)}</name>\n"
        f"\t\t<pose>{POSES[objects.pose[row]] or 'Unspecified'}</pose>\n"
        f"\t\t<truncated>{objects.truncated[row]:d}</truncated>\n"
        f"\t\t<occluded>{objects.occluded[row]:d}</occluded>\n"
        f"\t\t<difficult>{difficult or ignore:d}</difficult>\n"
        f"\t\t<bndbox><xmin>{xmin}</xmin><ymin>{ymin}</ymin><xmax>{xmax}</xmax><ymax>{ymax}</ymax></bndbox>\n"
        f"{marks}\t</object>\n"
    )


def _text(value: str) -> str:
    return html.escape(value, quote=False)


def require_xml_text(content: Content) -> None:
    """Raise `ExportError` if the name of an image or a class has characters that XML does not allow."""
    names = [entry.name for entry in content.classes]
    columns = [("an image", content.images.file_names), ("an object", content.objects.original)]
    for kind, column in [*columns, ("a class", np.array(names, object))]:
        for name in dict.fromkeys(column.tolist()):
            if not name.isprintable():
                raise ExportError(
                    f"The name of {kind} cannot be written in XML",
                    expected="printable characters",
                    found=ascii(name[:80]),
                    hint="--format coco",
                )
