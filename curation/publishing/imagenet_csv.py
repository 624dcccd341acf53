"""Parts of an ImageNet protocol as the CSV files of its authors: ``train/n02088632/n02088632_3640.JPEG,3``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from curation.errors import ExportError
from curation.manifest.header import ClassEntry
from curation.manifest.manifest import Manifest
from curation.manifest.views import locate_images
from curation.publishing.formats.plan import Plan, PlannedFile, safe_name
from curation.sources.imagenet import class_of_images
from curation.sources.source import Source

NEGATIVE, UNKNOWN = -1, -2
"""Labels of the classes that are not known (repository AIML-IfI/openset-imagenet)."""

_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class LabelledImages:
    """The images of a part in its order.

    Attributes
    ----------
    folder : str
        The source's part: ``train`` or ``val``.
    names, classes, roles : list of str
        File name, wnid, and role of each image's class.
    labels : list of int
        Index of a known class, `NEGATIVE` or `UNKNOWN`.
    """

    folder: str
    names: list[str]
    classes: list[str]
    roles: list[str]
    labels: list[int]


def plan_imagenet_csv(manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source]) -> Plan:
    r"""Return the plan of one file a part, ``p2_train.csv``: no header, path and label, lines that end in ``\r\n``.

    Raises
    ------
    ExportError
        The manifest is about boxes; a class has no role in it; a file or class name is hostile; no part or one twice.
    ManifestError, MissingListError
        See `curation.manifest.views.locate_images`.
    """
    if not parts or len(set(parts)) < len(parts):
        raise ExportError("Each part is exported once", expected="one or more parts", found=", ".join(parts))
    images = {part: labelled_images(manifest, part, sources) for part in parts}
    stem = manifest.header.name.rpartition("/")[2]
    return Plan(
        files=[PlannedFile(f"{stem}_{part}.csv", _Rows(one)) for part, one in images.items()],
        records=sum(-(-len(one.names) // _ROWS) for one in images.values()),
        counts={"rows": sum(len(one.names) for one in images.values())},
    )


def labelled_images(manifest: Manifest, part: str, sources: Mapping[str, Source]) -> LabelledImages:
    """Return the images of a part with class, role and label (see `plan_imagenet_csv` for the errors)."""
    located = locate_images(manifest, part, sources)
    if len(located.sources) != 1 or located.sources[0].objects is not None:
        raise ExportError(
            "A folder or list of images by class holds one label an image, and this manifest is about boxes",
            where=f"part {part}",
            expected="coco, voc, yolo or elephant-json for the boxes, txt for the images alone",
        )
    source = located.sources[0]
    category = class_of_images(source)[located.position].tolist()
    entries = {entry.name: entry for entry in manifest.header.classes}
    known = [entries.get(name) for name in source.categories.names]
    for entry in filter(None, known):
        safe_name(entry.name, f"part {part}: a class")
    chosen = [_with_role(known[one], source.categories.names[one], part) for one in category]
    names: list[str] = source.images.file_names[located.position].tolist()
    for name in names:
        safe_name(name, f"part {part}")
    return LabelledImages(
        folder=source.part,
        names=names,
        classes=[entry.name for entry in chosen],
        roles=[entry.role for entry in chosen],
        labels=[_label(entry) for entry in chosen],
    )


class _Rows:
    """The rows of a file, several thousand a chunk."""

    def __init__(self, images: LabelledImages) -> None:
        self._images = images

    def __call__(self) -> Iterator[bytes]:
        images = self._images
        paths = (
            f"{images.folder}/{wnid}/{name}" for wnid, name in zip(images.classes, images.names, strict=True)
        )
        rows = list(zip(paths, images.labels, strict=True))
        for start in range(0, len(rows), _ROWS):
            # The authors' layout, byte for byte: no cell is escaped, and none can be taken for a formula, since each
            # path begins with the name of a folder and each label is a number.
            text = io.StringIO(newline="")
            csv.writer(text).writerows(rows[start : start + _ROWS])
            yield text.getvalue().encode("utf-8")


def _with_role(entry: ClassEntry | None, name: str, part: str) -> ClassEntry:
    if entry is None:
        raise ExportError(
            "An image of the part shows a class that has no role in the manifest",
            where=f"part {part}",
            found=name,
        )
    return entry


def _label(entry: ClassEntry) -> int:
    return {"negative": NEGATIVE, "unknown": UNKNOWN}.get(entry.role, entry.index)
