"""Evidence from annotations: what each image is labelled with, as overlap, near, far, or nothing known."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from curation.proposals.category_judgement import Judged, evidence_of
from curation.proposals.proposal import Evidence

if TYPE_CHECKING:
    import numpy.typing as npt

    from curation.sources.source import Source

NO_ANNOTATION = "no annotation"
_NOTHING = Evidence(kind="unjudged", detail=NO_ANNOTATION)


def label_evidence(
    source: Source, judged: Sequence[Judged], *, near_wup: Decimal
) -> list[tuple[Evidence, ...]]:
    """Return what the annotations of each image are evidence of, in the order of the source's images.

    Every category of an image that overlaps an ID class or is near one is a piece of evidence. Of the rest only what
    decides is told: the unjudged categories, or else the one nearest to an ID class. An image without an annotation
    gets one piece, of kind ``unjudged``.

    Parameters
    ----------
    source : Source
    judged : sequence of Judged
        One for each category of the source, in its order.
    """
    images, categories, objects = _counted(source)
    starts = np.searchsorted(images, np.arange(len(source.images) + 1)).tolist()
    # A large source repeats few pairs of category and number of objects: each is put into words once.
    worded = cache(lambda category, n: evidence_of(judged[category], n, near_wup))
    pairs = list(zip(categories.tolist(), objects.tolist(), strict=True))
    return [
        tuple(worded(*pair) for pair in _telling(pairs[start:end], judged)) or (_NOTHING,)
        for start, end in pairwise(starts)
    ]


def _telling(pairs: list[tuple[int, int]], judged: Sequence[Judged]) -> list[tuple[int, int]]:
    """Return the categories, with their numbers of objects, that decide about an image."""
    telling = [pair for pair in pairs if judged[pair[0]].judgement in ("overlap", "part", "broader", "near")]
    if telling or not pairs:
        return telling
    unjudged = [pair for pair in pairs if judged[pair[0]].judgement == "unjudged"]
    return unjudged or [max(pairs, key=lambda pair: _closeness(judged[pair[0]]))]


def _closeness(one: Judged) -> tuple[float, str]:
    return (one.nearest.score if one.nearest else 0.0, one.category)


def _counted(source: Source) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the pairs of image and category, sorted, and how many objects each has; 0 where only presence is known."""
    image, category = source.class_pairs()
    width = max(len(source.categories), 1)
    pairs, counts = np.unique(image.astype(np.int64) * width + category, return_counts=True)
    if source.objects is None:
        counts = np.zeros_like(counts)
    return pairs // width, pairs % width, counts.astype(np.int64)
