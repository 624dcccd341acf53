"""Raw sources as the rules see them: classes under the benchmark's names, tables as objects without size."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from curation.audit.class_names import ClassNames
from curation.audit.target import AuditedSource
from curation.manifest.header import ClassEntry
from curation.sources.coco_categories import COCO_CATEGORIES
from curation.sources.datasets import VOC_NAMES, family
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
