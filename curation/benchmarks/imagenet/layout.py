"""Parts as the CSV files of the authors, ``train/n02088632/n02088632_3640.JPEG,3``, and as folders of links."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from curation.errors import ExportError, MissingFileError, UsageError
from curation.evaluation.class_scores import GROUPS
from curation.manifest.header import ClassEntry
from curation.manifest.manifest import Manifest
from curation.manifest.views import locate_images
from curation.publishing.exporting import Format
from curation.publishing.formats.plan import Plan, PlannedFile, safe_name
from curation.sources.imagenet import class_of_images, part_folder
from curation.sources.source import Source

_ROWS = 10_000


class LabelledImages(NamedTuple):
    """The images of a part in its order: the source's part, and of each image its file name and class."""

    folder: str
    names: list[str]
    classes: list[ClassEntry]


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
        files=[PlannedFile(f"{stem}_{part}.csv", partial(_rows, one)) for part, one in images.items()],
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
    chosen = [known[one] for one in category]
    if None in chosen:
        raise ExportError(
            "An image of the part shows a class that has no role in the manifest",
            where=f"part {part}",
            found=source.categories.names[category[chosen.index(None)]],
        )
    names: list[str] = source.images.file_names[located.position].tolist()
    for name in names:
        safe_name(name, f"part {part}")
    return LabelledImages(source.part, names, chosen)


def _rows(images: LabelledImages) -> Iterator[bytes]:
    """Yield the rows of a file, several thousand a chunk."""
    rows = [
        (f"{images.folder}/{entry.name}/{name}", GROUPS.get(entry.role, entry.index))
        for entry, name in zip(images.classes, images.names, strict=True)
    ]
    for start in range(0, len(rows), _ROWS):
        # The authors' layout, byte for byte: no cell is escaped, and none can be taken for a formula, since each path
        # begins with the name of a folder and each label is a number.
        text = io.StringIO(newline="")
        csv.writer(text).writerows(rows[start : start + _ROWS])
        yield text.getvalue().encode("utf-8")


def plan_imagefolder(
    manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source], roots: Mapping[str, Path]
) -> Plan:
    """Return the plan of a tree of symbolic links, ``PART/ROLE/WNID/NAME``.

    ``ImageFolder(out/train/known)`` then numbers the known classes as the protocol does; negative and unknown images
    stand apart, since a loader would give them labels of their own.

    Parameters
    ----------
    roots : mapping of str to Path
        One folder: ImageNet's root, or that of a part. No link leads outside it.

    Raises
    ------
    ExportError
        A photo is not there, or is itself a link that leads outside the root; see also `plan_imagenet_csv`.
    MissingFileError
        The root is no folder.
    UsageError
        There is no root, or there are several.
    """
    images = {part: labelled_images(manifest, part, sources) for part in parts}
    if len(roots) != 1:
        raise UsageError("--format imagefolder needs the folder of the photos", expected="--photos ROOT, once")
    (root,) = roots.values()
    if not root.is_dir():
        raise MissingFileError("The folder of the photos does not exist", where=str(root))
    targets = {part: _targets(one, root.resolve(), part) for part, one in images.items()}
    links = (
        (f"{part}/{entry.role}/{entry.name}/{name}", target)
        for part, one in images.items()
        for entry, name, target in zip(one.classes, one.names, targets[part], strict=True)
    )
    counts = Counter(f"{part}/{entry.role}" for part, one in images.items() for entry in one.classes)
    return Plan((), sum(counts.values()), counts, links=links)


FORMATS = (
    Format("imagenet-csv", lambda one: plan_imagenet_csv(one.manifest, one.parts, one.sources)),
    Format(
        "imagefolder",
        lambda one: plan_imagefolder(one.manifest, one.parts, one.sources, one.photos),
        ("photos",),
    ),
)


def _targets(images: LabelledImages, root: Path, part: str) -> list[str]:
    """Return the path of each photo below the root: in its class's folder, or in a flat one."""
    folder = str(part_folder(root, images.folder))
    found: list[str] = []
    for entry, name in zip(images.classes, images.names, strict=True):
        paths = (f"{folder}/{entry.name}/{name}", f"{folder}/{name}")
        path = next((one for one in paths if os.path.isfile(one)), "")  # noqa: PTH113 (a million photos)
        if path and not os.path.realpath(path).startswith(f"{root}{os.sep}"):
            raise ExportError(
                "A photo is a link that leads outside the folder of the photos", where=path, expected=f"below {root}"
            )
        found.append(path)
    if "" in found:
        row = found.index("")
        raise ExportError(
            f"{found.count('')} of the {len(found)} photos of part {part!r} do not exist",
            where=folder,
            expected=f"{images.classes[row].name}/{images.names[row]}",
            hint="--photos ROOT: the folder that holds train and val",
        )
    return found
