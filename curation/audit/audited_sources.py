"""Raw sources as the rules see them: classes under the benchmark's names, tables as objects without size.

And which image of a source an id in somebody's list means: by native id, by file name, or by number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np

from curation.audit.classes import ClassNames
from curation.audit.id_vocabulary import Vocabulary
from curation.audit.target import AuditedSource
from curation.manifest.header import ClassEntry
from curation.sources.datasets import COCO_CATEGORIES, VOC_NAMES, family
from curation.sources.integrity import select
from curation.sources.source import Categories, Int32s, Objects, Source

_EXHAUSTIVE: Mapping[str, tuple[str, ...]] = {
    "coco": tuple(name for _, name, _ in COCO_CATEGORIES),
    "voc": VOC_NAMES,
}
"""Classes that a family of datasets annotates on every image (crowds as regions)."""


def audited_source(
    name: str,
    source: Source,
    classes: Sequence[ClassEntry],
    *,
    stated: Sequence[str] = (),
    complete: Collection[str] = (),
) -> AuditedSource:
    """Return a source for an audit.

    Parameters
    ----------
    stated : sequence of str
        Classes that a manifest says are annotated exhaustively.
    complete : collection of str
        Names of the sources of which the user says that they miss no object of any of their classes.
    """
    exhaustive = tuple(stated) or known_exhaustive(source.dataset)
    if name in complete:
        exhaustive = source.categories.names
    return AuditedSource(
        name=name,
        raw=source,
        objects=_in_classes(source, classes),
        has_boxes=source.objects is not None,
        complete=source.objects is not None or name in complete,
        exhaustive=exhaustive,
    )


def known_exhaustive(dataset: str) -> tuple[str, ...]:
    """Return the classes that a dataset is known to annotate on every image; none where that is not known."""
    return _EXHAUSTIVE.get(family(dataset), ())


def _in_classes(source: Source, classes: Sequence[ClassEntry]) -> Source:
    """Return the source with the objects of classes of the benchmark alone, categories named as the benchmark does."""
    names = ClassNames(classes)
    position = np.array([*(names.position(name) for name in source.categories.names), -1], np.int32)
    objects = source.objects if source.objects is not None else _pairs(*source.class_pairs())
    mine = select(objects, position[objects.category] >= 0)
    return replace(
        source,
        objects=replace(mine, category=position[mine.category]),
        presence=None,
        categories=Categories(
            numbers=tuple(range(len(classes))),
            names=tuple(entry.name for entry in classes),
            supercategories=("",) * len(classes),
        ),
    )


def _pairs(image: Int32s, category: Int32s) -> Objects:
    """Return pairs of image and class as objects without size or flag."""
    return Objects.of(image, category, np.zeros((len(image), 4)))


def positions_of(vocabulary: Vocabulary, sources: Sequence[Source]) -> Int32s:
    """Return the position of each id among the images of each source, -1 where it has none.

    Returns
    -------
    ndarray of int32, shape (sources, ids)
    """
    positions = np.full((len(sources), len(vocabulary)), -1, np.int32)
    for number, source in enumerate(sources):
        rows = np.flatnonzero(vocabulary.may_be_of(source.namespace))
        positions[number, rows] = positions_in(source, vocabulary.natives[rows].tolist())
    return positions


def positions_in(source: Source, wanted: Sequence[str]) -> Int32s:
    """Return the position of each id among the images of a source, -1 where it has none.

    Lists name images by the dataset's own id, by the stem of the file name, or by the number in the annotation file.
    One way of naming holds for the whole source: the one that finds the most ids, in this order where several do.
    """
    best = np.full(len(wanted), -1, np.int32)
    for rows in _namings(source):
        found = np.array([rows.get(text, -1) for text in wanted], np.int32)
        if int((found >= 0).sum()) > int((best >= 0).sum()):
            best = found
        if len(wanted) and (best >= 0).all():
            break
    return best


def _namings(source: Source) -> Iterator[dict[str, int]]:
    images = source.images
    yield {native: row for row, native in enumerate(images.native.tolist())}
    names = images.file_names.tolist()
    yield {PurePosixPath(name.replace("\\", "/")).stem: row for row, name in enumerate(names) if name}
    # As the annotation file writes it: with leading zeros, COCO's 000000000005 and VOC's 000005 would be one number.
    yield {str(number): row for row, number in enumerate(images.numbers.tolist())}
