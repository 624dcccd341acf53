"""`Evidence`: that a corpus image is a benchmark image; and the rows that a step makes of it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from curation.leaks.fingerprints import pictures_of

if TYPE_CHECKING:
    import pyarrow

Kind = Literal["same_pixels", "perceptual", "mirrored", "embedding"]
KINDS: tuple[Kind, ...] = ("same_pixels", "perceptual", "mirrored", "embedding")
"""How a corpus image is found to be a benchmark image, strongest first."""
_THUMBNAIL = 192


@dataclass(frozen=True, slots=True)
class Evidence:
    """That a corpus image is a benchmark image.

    Attributes
    ----------
    benchmark, corpus : str
        Ids; that of a corpus image in a tar shard begins with the name of the shard.
    kind : {"same_pixels", "perceptual", "mirrored", "embedding"}
    variant : str
        What of the benchmark image it is most like: ``whole``, ``crop 33``, ``mirrored`` …
    value, threshold : float
        Bits of 256 in which the codes differ, at most the threshold; of an embedding the cosine, at least that.
    """

    benchmark: str
    corpus: str
    kind: Kind
    variant: str
    value: float
    threshold: float


def thumbnail(data: bytes) -> bytes:
    """Return a small JPEG of a photo file."""
    small = pictures_of(data)[0]
    small.thumbnail((_THUMBNAIL, _THUMBNAIL))
    made = io.BytesIO()
    small.save(made, "JPEG", quality=80)
    return made.getvalue()


def as_table(rows: Sequence[tuple[Any, ...]]) -> pyarrow.Table:
    """Return rows of a step as a table: kind, benchmark, corpus, variant, value, threshold, thumbnail.

    Beside the kinds of evidence there are: ``read`` and ``embedded``, whose value says how many images there were;
    ``unreadable``, whose variant is the reason; ``plain``, an image that is compared by its pixels alone; ``decoy``, an
    image that is near a code by chance.
    """
    import pyarrow

    schema = pyarrow.schema(
        [
            *((name, pyarrow.string()) for name in ("kind", "benchmark", "corpus", "variant")),
            ("value", pyarrow.float64()),
            ("threshold", pyarrow.float64()),
            ("thumbnail", pyarrow.binary()),
        ]
    )
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pyarrow.Table.from_arrays(arrays, schema=schema)
