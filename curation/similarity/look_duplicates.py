"""Photos that look the same to an encoder: pairs whose embeddings are nearly parallel."""

from __future__ import annotations

import numpy as np

from curation.errors import UsageError
from curation.similarity.embeddings import Embeddings
from curation.similarity.set_similarity import require_same_encoder

_BLOCK = 2048
MOST_PAIRS = 5_000_000


def look_duplicates(
    embeddings: Embeddings, others: Embeddings | None = None, threshold: float = 0.95
) -> list[tuple[str, str, float]]:
    """Return all pairs of images with a cosine of at least `threshold`, by first and second image.

    Parameters
    ----------
    others : Embeddings, optional
        Pair each image with those of another set; by default the images of one set with each other, each pair once.

    Raises
    ------
    SimilarityError
        The encoders differ.
    UsageError
        The threshold is outside [-1, 1], or more than 5 million pairs are found.
    """
    if not -1 <= threshold <= 1:
        raise UsageError("The threshold is a cosine", expected="-1 to 1", found=str(threshold))
    second = embeddings if others is None else others
    require_same_encoder(embeddings, second)
    rows, columns = embeddings.normalised(), second.normalised()
    found: list[tuple[str, str, float]] = []
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        for other in range(0 if others is not None else start, len(columns), _BLOCK):
            scores = block @ columns[other : other + _BLOCK].T
            hit, column = np.nonzero(scores >= np.float32(threshold))
            hit, column = hit + start, column + other
            if others is None:
                kept = column > hit
                hit, column = hit[kept], column[kept]
            values = scores[hit - start, column - other].tolist()
            found += [
                (embeddings.ids[one], second.ids[two], value)
                for one, two, value in zip(hit.tolist(), column.tolist(), values, strict=True)
            ]
            if len(found) > MOST_PAIRS:
                raise UsageError(
                    "Too many pairs look alike to be listed",
                    expected=f"at most {MOST_PAIRS:,}",
                    hint="ask for a higher threshold",
                )
    return sorted(found, key=lambda pair: pair[:2])
