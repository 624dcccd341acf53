"""Reader of ImageNet: which image shows which class, from folders, lists or counts; no photo is opened.

Classes are wnids (``n02085620``); image ids are file names without suffix (``n02085620_10026``,
``ILSVRC2012_val_00001049``). Layouts: a folder of class folders (or a root that holds ``train`` and ``val``); a flat
``val`` folder with a file of its classes beside it; a list of training names; ``val.txt`` (name and class index);
``LOC_val_solution.csv``; a list of wnids in the order of the validation images; the development kit's numbers; JSON of
names by class; JSON of counts by class, which has no names at all.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from curation.errors import AnnotationFormatError, ImageIdError, MissingFileError
from curation.ids import check_native
from curation.sources.content import FileContent
from curation.sources.datasets import facts_of, namespace_of
from curation.sources.imagenet_lists import SUFFIXES, Labelled, is_wnid, read_labels, stem
from curation.sources.integrity import check_unique, texts
from curation.sources.source import Categories, FileRecord, Images, Source
from curation.sources.table import Split, parse_table
from curation.storage import open_binary

NO_NAMES = "image names: the file states counts alone"
"""Key of `Source.dropped` for a source whose images have numbers in place of names."""

_TABLES = (".csv", ".tsv", ".parquet")
_BELOW = ("", "ILSVRC/Data/CLS-LOC", "Data/CLS-LOC")
_GROUND_TRUTH = (
    "LOC_val_solution.csv",
    "val.txt",
    "caffe_ilsvrc12/val.txt",
    "imagenet_2012_validation_synset_labels.txt",
    "ILSVRC2012_validation_ground_truth.txt",
)


def read_imagenet(path: Path, *, dataset: str = "imagenet", part: str, split: Split | None = None) -> Source:
    """Return the source at a path: a presence-only one, each image with its one class.

    Parameters
    ----------
    path : Path
        See the module's first lines; or a plain table of image and class.
    part : str
        ``train`` or ``val``.

    Raises
    ------
    MissingFileError
        There is nothing, or a flat folder without a file that tells the classes.
    AnnotationFormatError
        A file is not what it should be.
    DuplicateIdError
        Two images have the same name.
    """
    if path.is_dir():
        return _from_folder(part_folder(path, part), dataset, part)
    if path.suffix.lower() in _TABLES and not _is_solution(path):
        return parse_table(FileContent(path), dataset=dataset, part=part, split=split)
    labelled = read_labels(path, part)
    return _source(labelled, dataset, part, labelled.record)


def class_of_images(source: Source) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return the position in `Source.categories` of each image's one class, shape (n,).

    Raises
    ------
    AnnotationFormatError
        An image shows no class, or several (a source of another kind).
    """
    image, category = source.class_pairs()
    n = len(source.images)
    if len(image) != n or not np.array_equal(image, np.arange(n)):
        raise AnnotationFormatError(
            "A list of images by class names exactly one class for each image",
            where=f"source {source.dataset} {source.part}: {source.files[0].name if source.files else ''}",
            expected=f"{n} images with one class each",
            found=f"{len(image)} statements on {len(np.unique(image))} images",
        )
    return category


def _is_solution(path: Path) -> bool:
    try:
        with open_binary(path) as stream:
            return stream.read(24).startswith(b"ImageId,PredictionString")
    except OSError:
        return False


def part_folder(path: Path, part: str) -> Path:
    """Return the folder that holds a part's class folders, at a path or where a root keeps it."""
    for below in _BELOW:
        if (folder := path / below / part).is_dir():
            return folder
    return path


def _from_folder(folder: Path, dataset: str, part: str) -> Source:
    names: list[str] = []
    classes: list[str] = []
    stray: dict[str, int] = {}
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    folders = [entry.name for entry in found if entry.is_dir()]
    if not any(is_wnid(name) for name in folders):
        return _flat_folder(folder, [entry.name for entry in found], dataset, part)
    _count(stray, "entries beside the class folders", len(found) - sum(is_wnid(name) for name in folders))
    for wnid in filter(is_wnid, folders):
        images = _images_in(folder / wnid, stray)
        names += images
        classes += [wnid] * len(images)
    listing = "".join(f"{wnid}/{name}\n" for wnid, name in zip(classes, names, strict=True))
    # A name that is no UTF-8 is refused below, with its place.
    data = listing.encode("utf-8", "surrogateescape")
    record = FileRecord(
        f"{part}/*/* (names)",
        f"sha256:{hashlib.sha256(data).hexdigest()}",
        len(data),
        len(names),
        len(names),
    )
    return _source(Labelled(names, classes, record, stray), dataset, part, record)


def _images_in(folder: Path, stray: dict[str, int]) -> list[str]:
    names = sorted(os.listdir(folder))  # noqa: PTH208 (a million names; a Path each would cost minutes)
    images = [name for name in names if name.lower().endswith(SUFFIXES) and not name.startswith(".")]
    _count(stray, "files that are no images", len(names) - len(images))
    return images


def _flat_folder(folder: Path, present: Sequence[str], dataset: str, part: str) -> Source:
    """Return the images of a folder without class folders, their classes from a file beside it."""
    places = [base / name for base in (folder, *folder.parents[:4]) for name in _GROUND_TRUTH]
    truth = next((place for place in places if place.is_file()), None)
    if truth is None:
        raise MissingFileError(
            "The folder has no class folders, and no file beside it says which image shows which class",
            where=str(folder),
            expected=f"folders such as n02085620, or one of {', '.join(_GROUND_TRUTH)} in it or above it",
            found=f"{len(present)} entries",
            hint=f"--source imagenet-{part}=LOC_{part}_solution.csv (or val.txt): the list alone is enough",
        )
    labelled = read_labels(truth, part)
    images = {
        stem(name): name for name in present if name.lower().endswith(SUFFIXES) and not name.startswith(".")
    }
    dropped = dict(labelled.dropped)
    kept = [(images[stem(name)], wnid) for name, wnid in labelled.pairs() if stem(name) in images]
    _count(dropped, "files that are no images", len(present) - len(images) - (truth.parent == folder))
    _count(dropped, "listed images that are not in the folder", len(labelled.names) - len(kept))
    _count(dropped, "images in the folder that are not listed", len(images) - len(kept))
    both = Labelled([name for name, _ in kept], [wnid for _, wnid in kept], labelled.record, dropped)
    return _source(both, dataset, part, labelled.record)


def _count(counts: dict[str, int], reason: str, number: int) -> None:
    if number:
        counts[reason] = counts.get(reason, 0) + number


def _source(labelled: Labelled, dataset: str, part: str, record: FileRecord) -> Source:
    names = labelled.names
    natives = [stem(name) for name in names]
    _check_natives(natives, record.name)
    check_unique(natives, "image", lambda row: f"{record.name}: image {row + 1}")
    classes = sorted(set(labelled.classes))
    number = {wnid: place for place, wnid in enumerate(classes)}
    n = len(names)
    presence = np.empty((n, 2), np.int32)
    presence[:, 0] = np.arange(n)
    presence[:, 1] = np.fromiter(map(number.__getitem__, labelled.classes), np.int32, n)
    zeros = np.zeros(n, np.int32)
    dropped = dict(labelled.dropped)
    if labelled.counts_alone:
        dropped[NO_NAMES] = n
    facts = facts_of(dataset)
    return Source(
        dataset=dataset,
        part=part,
        namespace=namespace_of(dataset),
        images=Images(
            native=np.array(natives, np.str_),
            numbers=np.arange(n, dtype=np.int64),
            file_names=texts(names),
            widths=zeros,
            heights=zeros.copy(),
        ),
        categories=Categories(tuple(range(len(classes))), tuple(classes), ("",) * len(classes)),
        objects=None,
        presence=presence,
        files=(record,),
        licence=facts.licence,
        media_redistributable=facts.media_redistributable,
        dropped=dropped,
    )


def _check_natives(natives: Iterable[str], where: str) -> None:
    for native in natives:
        # The common case costs two calls; the full check names what is wrong.
        if native.isascii() and native.replace("_", "a").isalnum() and len(native) < 200:
            continue
        try:
            check_native(native)
        except ImageIdError as error:
            raise AnnotationFormatError(
                "A file name cannot be an image id",
                where=f"{where}: {native[:80]!r}",
                expected=error.expected,
            ) from None
