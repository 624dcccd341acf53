"""Parts as YOLO label files in the layout of Ultralytics, with a list of images for each part, and ``data.yaml``.

Ultralytics reads the label file of ``…/images/NAME.jpg`` from ``…/labels/NAME.txt``; it replaces the last folder
``images`` of a path. So a photo whose name has no such folder is listed as ``./images/NAME``, others as ``./NAME``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

import numpy as np

from curation.core.errors import ExportError
from curation.manifest.header import UNKNOWN_ID
from curation.manifest.manifest import Manifest
from curation.publishing.formats.content import UNKNOWN_NAME, Content, ContentImages, gather
from curation.publishing.formats.plan import Plan, PlannedFile, lines, present, safe_name, single_chunk
from curation.sources.source import Bools, Floats, Int32s, Source
from curation.sources.stems import label_of
from curation.sources.yolo import placeholder

UnknownClass = Literal["last", "drop"]

_DIGITS = 12
_PIXEL_TOLERANCE = 1e-6
_SUFFIXES = (
    ".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".dng", ".mpo", ".pfm", ".heic", ".heif", ".avif",
    ".jp2",
)  # fmt: skip
"""Suffixes of photos that Ultralytics reads; it ignores other files without a message."""
_NOTE = "Put or link the photos at images/ in this folder: the lists name them as ./images/FILE."
_SPLITS = {"train": "train", "finetune": "train", "val": "val", "test": "test", "wilderness": "test"}


def plan_yolo(
    manifest: Manifest,
    parts: Sequence[str],
    sources: Mapping[str, Source],
    *,
    unknown: UnknownClass = "last",
    sizes: Int32s | None = None,
) -> Plan:
    """Return the plan of a YOLO folder with some parts under their label views.

    A line is ``class cx cy w h``: the class counted from 0 in the order of the manifest's class indices, the centre and
    size of the box as shares of the image with 12 decimals (1e-6 pixel is kept for images of up to 65,535 pixels). The
    format cannot express ignored objects: they are left out and counted. Boxes are clipped at the edge of the image,
    because trainers drop an image with a share above 1. An image without objects gets an empty file.

    With tasks the number of a class is its index, the same at every task; unknown has its number in the manifest. YOLO
    allows no gap below it, so, if unknown is a class, the numbers of later classes are named ``unused_20``, …; readers
    of this package do not treat these as classes.

    Parameters
    ----------
    unknown : {"last", "drop"}
        Unknown objects become the last class, or are left out and counted.
    sizes : ndarray of int32, shape (n, 2), optional
        Width and height of each image in the order of `gather`, if sources lack them.

    Raises
    ------
    ExportError
        An image has no size; a file name is missing, unsafe, not unique, or not readable for Ultralytics; two parts
        share an image.
    ManifestError, MissingListError, PresenceOnlyError
        See `curation.publishing.formats.content.gather`.
    """
    content = gather(manifest, parts, sources)
    objects = content.objects
    sizes = _sizes(content.images, sizes)
    photos = listed_photos(content)
    shares, moved, outside = normalised(objects.boxes, sizes[objects.image])
    hidden = objects.unknown & (unknown == "drop")
    written = ~(objects.ignore | hidden | outside)
    number_of = _class_numbers(content)
    name_of = {number_of[entry.index]: entry.name for entry in content.classes}
    if content.has_unknown and unknown == "last":
        name_of[number_of[UNKNOWN_ID]] = UNKNOWN_NAME
    classes = [name_of.get(number, placeholder(number)) for number in range(max(name_of, default=-1) + 1)]

    def files() -> Iterator[PlannedFile]:
        yield PlannedFile("data.yaml", single_chunk(_yaml(content, classes)))
        for number, part in enumerate(content.parts):
            chosen = [f"./{photos[row]}" for row in content.images.of_part(number)]
            yield PlannedFile(f"{part.name}.txt", lines(chosen))
        numbers = [number_of[index] for index in objects.category_id[written].tolist()]
        texts = [_line(*row) for row in zip(numbers, shares[written].tolist(), strict=True)]
        bounds = np.searchsorted(objects.image[written], np.arange(len(photos) + 1)).tolist()
        for photo, start, end in zip(photos, bounds, bounds[1:], strict=False):
            yield PlannedFile(label_of(photo), single_chunk("".join(texts[start:end])), "labels/*.txt")

    return Plan(
        files=files(),
        records=2 * len(photos) + 1,
        counts={"images": len(photos), "annotations": int(written.sum()), "classes": len(classes)},
        changed=present({"boxes_cut_at_the_image_edge": (moved & written).sum()}),
        left_out=present(
            {
                **content.left_out,
                "ignored": objects.ignore.sum(),
                "unknown": (hidden & ~objects.ignore).sum(),
                "outside_the_image": (outside & ~objects.ignore & ~hidden).sum(),
            }
        ),
        notes=(_note(photos, content),),
    )


def _class_numbers(content: Content) -> dict[int, int]:
    """Return the number of each class, by its index, and of unknown: counted from 0, or with tasks the index."""
    indices = [entry.index for entry in content.classes]
    if content.of_tasks:
        return {**{index: index for index in indices}, UNKNOWN_ID: content.unknown_id}
    return {**{index: number for number, index in enumerate(indices)}, UNKNOWN_ID: len(indices)}


def _yaml(content: Content, classes: Sequence[str]) -> str:
    # A JSON string is a valid YAML double-quoted scalar for any name; JSON lists are flow sequences.
    lists: dict[str, list[str]] = {"train": [], "val": [], "test": []}
    for part in content.parts:
        lists[_SPLITS[part.role]].append(f"{part.name}.txt")
    # Trainers require the keys train and val, and accept null for them.
    items = {split: files if len(files) > 1 else files[0] if files else None for split, files in lists.items()}
    head = ["path: .", *(f"{split}: {json.dumps(files)}" for split, files in items.items()), f"nc: {len(classes)}"]
    return "\n".join([*head, "names:", *(f"  {n}: {json.dumps(name)}" for n, name in enumerate(classes))]) + "\n"


def normalised(boxes: Floats, sizes: Int32s) -> tuple[Floats, Bools, Bools]:
    """Return boxes as shares of their images, which of them were clipped, and which are outside the image.

    Parameters
    ----------
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` in pixels, origin top left.
    sizes : ndarray of int, shape (m, 2)
        Width and height of the image of each box, positive.

    Returns
    -------
    shares : ndarray of float64, shape (m, 4)
        ``cx, cy, w, h``, each in [0, 1].
    cut, outside : ndarray of bool, shape (m,)
        Whether an edge moved by more than 1e-6 pixel; whether no part of the box is inside the image.
    """
    low, high = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    inner_low, inner_high = np.clip(low, 0, sizes), np.clip(high, 0, sizes)
    moved = np.maximum(np.abs(inner_low - low), np.abs(inner_high - high)).max(axis=1, initial=0)
    extent = inner_high - inner_low
    shares = np.concatenate([(inner_low + inner_high) / 2 / sizes, extent / sizes], axis=1)
    return shares, moved > _PIXEL_TOLERANCE, extent.min(axis=1, initial=np.inf) <= 0


def listed_photos(content: Content) -> list[str]:
    """Return the path of each photo below the output folder; `label_of` returns its label file.

    If two sources have a photo of the same name, the photos of each source are in a folder with its name.

    Raises
    ------
    ExportError
        Two photos of a source would share a label file, or Ultralytics does not read a name.
    """
    images = content.images
    names = [_readable_name(name, image) for name, image in zip(images.photos, images.ids, strict=True)]
    slots = [content.slots[slot] for slot in images.slot.tolist()]
    labels = [label_of(_listed(name)) for name in names]
    if len(set(labels)) < len(set(zip(slots, labels, strict=True))):
        names = [safe_name(f"{slot}/{name}", image) for slot, name, image in zip(slots, names, images.ids, strict=True)]
    photos = [_listed(name) for name in names]
    rows: dict[str, int] = {}
    for row, photo in enumerate(photos):
        label = label_of(photo)
        first = rows.setdefault(label, row)
        if first != row:
            in_one_part = images.part[first] == images.part[row]
            raise ExportError(
                "Two photos would share one label file",
                where=label,
                found=f"{images.ids[first]} and {images.ids[row]}",
                hint="--format coco" if in_one_part else "--each exports every part separately; or --format coco",
            )
    return photos


def _listed(name: str) -> str:
    path = PurePosixPath(name)
    return str(path if "images" in path.parts[:-1] else PurePosixPath("images", path))


def _readable_name(name: str, image: str) -> str:
    """Return the file name of a photo as a path; Ultralytics must be able to read it from a list."""
    path = PurePosixPath(safe_name(name, image))
    wrong, expected = "", ""
    if path.suffix.lower() not in _SUFFIXES:
        wrong, expected = "A photo has no suffix that Ultralytics reads", ", ".join(_SUFFIXES)
    elif "./" in name:
        # It replaces every ./ in a line by the folder of the list.
        wrong, expected = "Ultralytics cannot read the path of a photo", "no folder whose name ends in a dot"
    if wrong:
        raise ExportError(wrong, where=image, expected=expected, found=name[:200], hint="--format coco")
    return str(path)


def _note(photos: Sequence[str], content: Content) -> str:
    """Return a note on where the lists expect the photos."""
    if photos == [f"images/{name}" for name in content.images.photos]:
        return _NOTE
    return f"Put or link each photo where the lists name it below this folder, such as ./{photos[0]}."


def _sizes(images: ContentImages, known_sizes: Int32s | None) -> Int32s:
    sizes = images.sizes if known_sizes is None else known_sizes
    lacking = np.flatnonzero((sizes <= 0).any(axis=1)).tolist()
    if lacking:
        raise ExportError(
            f"{len(lacking)} of {len(images)} images have no width and height in their source, and YOLO needs them",
            found=", ".join(images.ids[row] for row in lacking[:3]),
            hint="--photos ROOT (or --photos SOURCE=ROOT) reads the sizes from the photos",
        )
    return sizes


def _line(number: int, shares: Sequence[float]) -> str:
    decimals = (f"{share:.{_DIGITS}f}".rstrip("0").rstrip(".") for share in shares)
    return f"{number} {' '.join(decimals)}\n"
