"""`Embeddings`: vectors of images, boxes or texts, with the encoder that made them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.canonical import canonical_json, sha256_of_bytes
from curation.errors import SimilarityError

Vectors = npt.NDArray[np.float32]
_SMALLEST_NORM = 1e-30


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """What decides the numbers of an encoder; two sets of vectors may be compared only if all of it is equal.

    Attributes
    ----------
    model : str
        ``colour`` or ``open_clip ViT-B-32``.
    weights : str
        ``sha256:<hex>`` of the weights file; ``""`` for an encoder without weights.
    preprocessing : str
        Everything between the file and the network in one line.
    dtype : str
        Of the computation: ``float32``, ``float16``.
    output : str
        Which vector is taken: ``projected`` (the joint space of images and texts) or ``pooled`` (before projection).
    """

    model: str
    weights: str
    preprocessing: str
    dtype: str = "float32"
    output: str = "projected"

    @property
    def digest(self) -> str:
        """``sha256:<hex>`` of all fields."""
        return sha256_of_bytes(canonical_json(asdict(self)))

    def as_data(self) -> dict[str, Any]:
        """Return the fields and the digest."""
        return {**asdict(self), "digest": self.digest}


@dataclass(frozen=True)
class Embeddings:
    """Vectors as an encoder gave them.

    Attributes
    ----------
    ids : tuple of str, length n
        Image ids ``namespace:native``; ``id#number`` of a box; the text itself of a prompt. Unique.
    vectors : ndarray of float32, shape (n, d)
        Not normalised; may be memory-mapped.
    encoder : EncoderIdentity
    images : tuple of str, length n
        ``sha256:<hex>`` of the file that each vector was computed from (of the text for a prompt); ``""`` if unknown.
    failures : dict of str to str
        Images that could not be read, and why; they are not among `ids`.
    """

    ids: tuple[str, ...]
    vectors: Vectors
    encoder: EncoderIdentity
    images: tuple[str, ...]
    failures: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.ids)
        if self.vectors.ndim != 2 or len(self.vectors) != n or len(self.images) != n:
            raise SimilarityError(
                "Embeddings do not fit together",
                expected=f"{n} vectors and {n} digests for {n} ids",
                found=f"vectors of shape {self.vectors.shape}, {len(self.images)} digests",
            )
        if len(set(self.ids)) < n:
            twice = next(one for one in self.ids if self.ids.count(one) > 1)
            raise SimilarityError("An id stands twice among embeddings", found=twice[:120])

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def place(self) -> dict[str, int]:
        """Row of each id."""
        return {one: row for row, one in enumerate(self.ids)}

    def normalised(self) -> Vectors:
        """Return the vectors scaled to length 1, shape (n, d); a vector of zeros stays one.

        Raises
        ------
        SimilarityError
            A vector holds NaN or an infinity.
        """
        rows = np.asarray(self.vectors, np.float32)
        norms = np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64))
        if not np.isfinite(norms).all():
            raise SimilarityError(
                "A vector holds NaN or an infinity", where=self.ids[int(np.argmin(np.isfinite(norms)))][:120]
            )
        unit: Vectors = (rows / np.maximum(norms, _SMALLEST_NORM)[:, None]).astype(np.float32)
        return unit

    def take(self, ids: list[str]) -> Embeddings:
        """Return the embeddings of some ids, in that order; one that is not there is a `SimilarityError`."""
        missing = [one for one in ids if one not in self.place]
        if missing:
            raise SimilarityError(
                "There is no embedding of an image",
                expected=f"{len(ids)} ids among {len(self)}",
                found=f"{len(missing)} missing, the first {missing[0]}"[:200],
                hint="curation embed adds images to a store",
            )
        rows = [self.place[one] for one in ids]
        return Embeddings(
            tuple(ids), self.vectors[rows], self.encoder, tuple(self.images[row] for row in rows)
        )
