"""What rules select images by: which class each shows (`Shown`), and a rank without a seed (`hash_rank`)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from curation.core.columns import distinct
from curation.manifest.header import ClassEntry
from curation.manifest.views import class_positions
from curation.sources.source import Bools, Int64s, Source


@dataclass(frozen=True, slots=True)
class Shown:
    """Which class each image of a source shows, in the order in which images are selected.

    Attributes
    ----------
    source : Source
    order : ndarray of int64, shape (a,)
        Positions of the annotated images, by their first annotation.
    image, label : ndarray of int64, shape (p,)
        Pairs of image position and class position, each once; what crowd regions alone show is left out on demand.
    """

    source: Source
    order: Int64s
    image: Int64s
    label: Int64s

    def of(self, labels: Sequence[int]) -> Int64s:
        """Return the images that show any of some classes, in order."""
        return self.order[self.mask(labels)[self.order]]

    def by_label(self, usable: Bools) -> dict[int, Int64s]:
        """Return the images that show each class, of those that are usable, shape (n,); classes without any apart."""
        kept = usable[self.image]
        # Numbers of 16 bits are sorted digit by digit, larger ones by comparison.
        small = self.label.max(initial=0) < 1 << 15
        image, label = self.image[kept], self.label[kept].astype(np.int16 if small else np.int32)
        counts = np.bincount(label)
        grouped = np.split(image[np.argsort(label, kind="stable")], np.cumsum(counts)[:-1])
        return {number: images for number, images in enumerate(grouped) if len(images)}

    def mask(self, labels: Sequence[int]) -> Bools:
        """Return whether each image of the source shows any of some classes."""
        shows = np.zeros(len(self.source.images), np.bool_)
        shows[self.image[np.isin(self.label, labels)]] = True
        return shows


def shown(source: Source, classes: Sequence[ClassEntry], *, crowd: bool = True) -> Shown:
    """Return what the images of a source show.

    Parameters
    ----------
    classes : sequence of ClassEntry
        A source's category belongs to the class of its name or alias.
    crowd : bool
        Whether a crowd region shows its class, as in the published lists.
    """
    image, category = source.class_pairs()
    first = np.full(len(source.images), len(image), np.int64)
    np.minimum.at(first, image, np.arange(len(image)))
    annotated = np.flatnonzero(first < len(image))
    kept = slice(None) if crowd or source.objects is None else ~source.objects.crowd
    label = class_positions(classes, source)[category[kept]].astype(np.int64)
    # Sorting whole numbers is faster than sorting pairs.
    width = len(classes) + 1
    pairs = distinct(image[kept].astype(np.int64) * width + label + 1)
    return Shown(
        source=source,
        order=annotated[np.argsort(first[annotated], kind="stable")],
        image=pairs // width,
        label=pairs % width - 1,
    )


def images_with(source: Source, names: Collection[str]) -> Bools:
    """Return whether each image has an annotation, crowd included, of one of some categories, as the source names them.

    Where only presence is known, what it says.
    """
    image, category = source.class_pairs()
    chosen = np.isin(np.array(source.categories.names, object), list(names))
    shows = np.zeros(len(source.images), np.bool_)
    shows[image[chosen[category]]] = True
    return shows


def hash_rank(ids: Sequence[str], salt: str) -> Int64s:
    """Return the positions of the ids in the order of ``sha256(salt + id)``.

    The first n are a selection that is the same in every language, stays nested as n grows, and moves no image when
    others are added.

    Parameters
    ----------
    ids : sequence of str
        Namespaced ids, unique.
    salt : str
        Names the selection, so that two protocols do not pick the same images.
    """
    sha256 = hashlib.sha256
    digests = b"".join([sha256(text).digest() for text in _salted(ids, salt)])
    columns = np.frombuffer(digests, ">u8").reshape(-1, 4).astype(np.uint64)
    order = np.argsort(columns[:, 0], kind="stable")
    first = columns[order, 0]
    # Two digests that agree in 64 bits are not to be expected, and still have their order.
    return order if (first[1:] != first[:-1]).all() else np.lexsort(columns.T[::-1])


def _salted(ids: Sequence[str], salt: str) -> list[bytes]:
    """Return ``salt + id`` of each id in UTF-8: all encoded at once, unless one holds a line end."""
    together = (salt + f"\n{salt}".join(ids)).encode()
    if len(ids) and together.count(b"\n") == len(ids) - 1:
        return together.split(b"\n")
    return [(salt + image).encode() for image in ids]
