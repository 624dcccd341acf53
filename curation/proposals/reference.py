"""How similar ID images are among themselves: what an OOD image's similarity to them is held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from curation.proposals.thresholds import decimal_text

if TYPE_CHECKING:
    from curation.similarity.embeddings import Embeddings


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
    from curation.similarity.set_similarity import reference_statistics

    found = reference_statistics(embeddings)
    return Reference(embeddings, found.n, found.median, found.sigma)
