"""Labels of a manifest's part, and samples brought into its order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from curation.errors import PredictionError, UsageError
from curation.evaluation.class_scores import NEGATIVE, UNKNOWN, Bools, Int64s
from curation.sources.imagenet import class_of_images, is_wnid, read_imagenet, stem

if TYPE_CHECKING:
    from curation.manifest.manifest import Manifest

Stray = Literal["error", "drop"]
_OTHERS = {"negative": NEGATIVE, "unknown": UNKNOWN}


@dataclass(frozen=True, slots=True)
class ProtocolClasses:
    """The classes of a protocol.

    Attributes
    ----------
    known : tuple of str
        In label order.
    labels : mapping of str to int
        Label of each class by name, -1 for negative, -2 for unknown ones.
    origins : mapping of str to int
        Number of each class among all.
    """

    known: tuple[str, ...]
    labels: Mapping[str, int]
    origins: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PartSamples:
    """The samples of a part in list order.

    Attributes
    ----------
    name : str
    images : tuple of str
        Ids without namespace.
    classes : ProtocolClasses
    labels, origin : ndarray of int64, shape (N,), or None
        Where the class of each image is told: by its name, or by the truth given.
    """

    name: str
    images: tuple[str, ...]
    classes: ProtocolClasses
    labels: Int64s | None
    origin: Int64s | None


def protocol_classes(manifest: Manifest) -> ProtocolClasses:
    """Return the classes of a manifest with roles known, negative and unknown; others are a `UsageError`."""
    entries = manifest.header.classes
    strangers = [entry for entry in entries if entry.role not in ("known", *_OTHERS)]
    known = sorted((entry for entry in entries if entry.role == "known"), key=lambda entry: entry.index)
    if strangers or not known or [entry.index for entry in known] != list(range(len(known))):
        raise UsageError(
            "The manifest is of no open-set classification protocol",
            where=f"{manifest.header.name} {manifest.header.version}",
            expected="classes known (0, 1, ...), negative and unknown",
            found=", ".join(f"{entry.name} {entry.role} {entry.index}" for entry in (strangers or known)[:3]),
        )
    return ProtocolClasses(
        known=tuple(entry.name for entry in known),
        labels={
            entry.name: entry.index if entry.role == "known" else _OTHERS[entry.role] for entry in entries
        },
        origins={entry.name: number for number, entry in enumerate(entries)},
    )


def part_samples(manifest: Manifest, part: str, truth: Path | None = None) -> PartSamples:
    """Return the samples of a part.

    Parameters
    ----------
    truth : Path, optional
        A dataset root or a file that tells the class of each image (see `curation.sources.imagenet.read_imagenet`);
        without one, classes come from names such as ``n02088632_3640`` where all images have these.

    Raises
    ------
    ManifestError, MissingListError, SourceError
        See `curation.manifest.views.locate_images` and `read_imagenet`.
    UsageError
        The manifest is of another kind of protocol.
    PredictionError
        An image of the part is of no class of the manifest.
    """
    classes = protocol_classes(manifest)
    images = tuple(one.partition(":")[2] for one in manifest.ids(part))
    names = _classes_by_name(images) if truth is None else _classes_by_truth(manifest, part, truth)
    if names is None:
        return PartSamples(part, images, classes, None, None)
    labels, origin = labels_of_names(names, classes, f"part {part}")
    return PartSamples(part, images, classes, labels, origin)


def labels_of_names(names: Sequence[str], classes: ProtocolClasses, where: str) -> tuple[Int64s, Int64s]:
    """Return the label and the number of the class that each sample's class name has."""
    for row, name in enumerate(names):
        if name not in classes.labels:
            raise PredictionError(
                "A sample is of a class that the manifest does not name",
                where=f"{where}: row {row}",
                expected=f"one of its {len(classes.labels)} classes",
                found=repr(name[:80]),
            )
    labels = np.array([classes.labels[name] for name in names], np.int64)
    return labels, np.array([classes.origins[name] for name in names], np.int64)


def rows_of_part(
    images: Sequence[str] | None, n: int, part: PartSamples, where: str, stray: Stray = "error"
) -> tuple[Int64s, int]:
    """Return the row of each image of a part in a file, and how many rows belong to none.

    Parameters
    ----------
    images : sequence of str, length n, or None
        Ids, file names or paths; without them rows are taken in the part's order.

    Raises
    ------
    PredictionError
        An image is there twice, is missing, or (unless dropped) is not in the part; without names: the number of rows
        is not that of the part.
    """
    if images is None:
        if n != len(part.images):
            raise PredictionError(
                "The number of rows is not that of the part's images",
                where=where,
                expected=f"{len(part.images)} rows, in the order of part {part.name}",
                found=str(n),
                hint="add image names (column or array 'image'), or choose another --part",
            )
        return np.arange(n), 0
    row_of: dict[str, int] = {}
    for row, text in enumerate(images):
        name = native_name(text)
        if name in row_of:
            raise PredictionError(
                "An image is there twice", where=f"{where}: rows {row_of[name]} and {row}", found=name[:80]
            )
        row_of[name] = row
    rows = np.array([row_of.get(name, -1) for name in part.images], np.int64)
    _require_all(rows, part, where)
    strangers = len(row_of) - len(rows)
    if strangers and stray == "error":
        listed = set(part.images)
        raise PredictionError(
            "Images are not in the part",
            where=f"{where}: row {next(row for name, row in row_of.items() if name not in listed)}",
            expected=f"the {len(rows)} images of part {part.name}",
            found=f"{strangers} others",
            hint="--stray drop leaves them out and reports how many",
        )
    return rows, strangers


def require_same_labels(stated: npt.NDArray[Any], part: PartSamples, rows: Int64s, where: str) -> None:
    """Raise `PredictionError` where the labels of a file are not those of the part; `stated` is in the part's order."""
    if part.labels is None:
        return
    n_known = len(part.classes.known)
    wrong: Bools = np.asarray((stated != part.labels) & ~((stated == n_known) & (part.labels == NEGATIVE)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise PredictionError(
            "A label is not that of the part's image",
            where=f"{where}: row {int(rows[row])}, image {part.images[row]}",
            expected=str(int(part.labels[row])),
            found=f"{stated[row]}; such rows: {int(wrong.sum())}"[:80],
            hint="rows without image names must stand in the order of the part",
        )


def native_name(text: str) -> str:
    """Return the id without namespace that an id, file name or path means.

    >>> native_name("train/n02088632/n02088632_3640.JPEG"), native_name("imagenet:ILSVRC2012_val_00000077")
    ('n02088632_3640', 'ILSVRC2012_val_00000077')
    """
    return stem(text.replace("\\", "/").rpartition("/")[2].rpartition(":")[2])


def _classes_by_name(images: Sequence[str]) -> list[str] | None:
    names = [image.partition("_")[0] for image in images]
    return names if all(is_wnid(name) for name in names) else None


def _classes_by_truth(manifest: Manifest, part: str, truth: Path) -> list[str]:
    from curation.manifest.views import locate_images

    by_name = {entry.name: entry for entry in manifest.header.sources}
    sources = {
        name: read_imagenet(truth, dataset=by_name[name].dataset, part=by_name[name].part)
        for name in manifest.part(part).sources
        if name in by_name
    }
    located = locate_images(manifest, part, sources)
    names = [""] * len(located)
    for number, source in enumerate(located.sources):
        category = class_of_images(source)
        for row in np.flatnonzero(located.source == number).tolist():
            names[row] = source.categories.names[category[located.position[row]]]
    return names


def _require_all(rows: Int64s, part: PartSamples, where: str) -> None:
    missing = rows < 0
    if missing.any():
        raise PredictionError(
            "Images of the part have no scores",
            where=where,
            expected=f"the {len(rows)} images of part {part.name}",
            found=f"{int(missing.sum())} missing, first {part.images[int(np.argmax(missing))]}",
        )
