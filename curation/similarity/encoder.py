"""`Encoder`: what turns pictures, and where it can texts, into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from curation.errors import EncoderError
from curation.similarity.embeddings import EncoderIdentity, Vectors

if TYPE_CHECKING:
    from PIL.Image import Image

Prepared = npt.NDArray[Any]
"""One picture, ready to be stacked with others; all of an encoder have the same shape and dtype."""


class Encoder(Protocol):
    """Turns RGB pictures into vectors.

    Work on a picture is cut in two: `prepare` may run in any thread, many at once; `encode_prepared` runs in one,
    unless the encoder has a method ``one_core_each`` (see `one_core_each`).
    """

    @property
    def identity(self) -> EncoderIdentity:
        """What the vectors are comparable by."""

    @property
    def dimension(self) -> int:
        """Length d of a vector."""

    def prepare(self, image: Image) -> Prepared:
        """Return a picture resized and cropped as the model wants it."""

    def encode_prepared(self, batch: Sequence[Prepared]) -> Vectors:
        """Return the vectors of prepared pictures, float32, shape (b, d)."""

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, float32, shape (b, d).

        Raises
        ------
        EncoderError
            The encoder has no text tower, or a text is longer than it reads.
        """


def one_core_each(encoder: Encoder) -> AbstractContextManager[bool]:
    """Let `encode_prepared` run in several threads at once, on one core each, while this lasts; False where it cannot.

    A model that takes all cores for a batch and threads that decode the next ones take the cores from each other, and
    wait for each other. Batches side by side, each on one core, leave no core idle.
    """
    own = getattr(encoder, "one_core_each", None)
    return nullcontext(False) if own is None else own()


def require_finite(vectors: Vectors, ids: Sequence[str]) -> None:
    """Raise `EncoderError` naming the first id whose vector holds NaN or infinity."""
    finite = np.asarray(np.isfinite(vectors).all(axis=1), np.bool_)
    if not finite.all():
        first = int(np.argmin(finite))
        raise EncoderError(
            "The encoder gave a vector that is not finite",
            where=ids[first],
            found=f"{int((~finite).sum())} of {len(finite)} vectors of the batch",
            hint="--precision float32, or other weights: these may be damaged",
        )
