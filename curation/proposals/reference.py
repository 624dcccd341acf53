"""How similar ID images are among themselves: what an OOD image's similarity to them is held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curation.proposals.thresholds import decimal_text

if TYPE_CHECKING:
    import numpy.typing as npt

    from curation.similarity.embeddings import Embeddings

MAD_TO_SIGMA = 1.4826
"""Of a normal distribution, the deviation is so many times the median absolute deviation."""
_FEWEST = 3


@dataclass(frozen=True)
class Reference:
    """Embedded ID images with the similarity of each to its nearest other one.

    Attributes
    ----------
    embeddings : Embeddings
    images : int
        With another image to compare with.
    median, sigma : float or None
        Median m0 of these similarities, and 1.4826 times their median absolute deviation (spec 3.3, step 1); None with
        fewer than three images.
    """

    embeddings: Embeddings
    images: int
    median: float | None
    sigma: float | None

    def as_texts(self) -> dict[str, str]:
        """Return the figures as texts, for the header of a proposals file."""
        texts = {"images": str(self.images), "encoder": self.embeddings.encoder.digest}
        if self.median is not None and self.sigma is not None:
            texts |= {"median": decimal_text(self.median), "sigma": decimal_text(self.sigma)}
        return texts


def reference_of(embeddings: Embeddings) -> Reference:
    """Return the leave-one-out reference of an ID sample; an image is never its own neighbour."""
    similar = leave_one_out(embeddings)
    if len(similar) < _FEWEST:
        return Reference(embeddings, len(similar), None, None)
    median = float(np.median(similar))
    return Reference(
        embeddings, len(similar), median, MAD_TO_SIGMA * float(np.median(np.abs(similar - median)))
    )


def leave_one_out(embeddings: Embeddings) -> npt.NDArray[np.float32]:
    """Return the cosine similarity of each embedding to the nearest one of another image, shape (n,)."""
    from curation.similarity.neighbors import nearest

    n = len(embeddings.ids)
    if n < 2:
        return np.empty(0, np.float32)
    unit = embeddings.normalised()
    indices, scores = nearest(unit, unit, 2)
    # An exact duplicate with a smaller index may stand before the image itself.
    itself = indices[:, 0] == np.arange(n)
    similar: npt.NDArray[np.float32] = np.where(itself, scores[:, 1], scores[:, 0])
    return similar
