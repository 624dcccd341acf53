"""`FindLeaks`: the benchmark's side of a leak check, held against one table of a corpus after the other."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from curation.engines.step import Step
from curation.errors import UsageError
from curation.leaks.fingerprints import (
    BITS,
    FIRST_BITS,
    N_WINDOWS,
    VARIANTS,
    WORDS,
    Codes,
    Fingerprints,
    fingerprints,
    pictures_of,
)
from curation.similarity.embed import quiet
from curation.similarity.embeddings import Vectors, unit_rows
from curation.similarity.encoder import Encoder, Prepared
from curation.similarity.from_files import EncoderOptions
from curation.sources.corpus import Photo, photo_data
from curation.sources.photos import BrokenPhotoError
from curation.sources.source import Int64s

if TYPE_CHECKING:
    import pyarrow

RADIUS, FIRST_RADIUS = 64, 12
"""Bits of 256, and of the first 64, in which the codes of a photo and its copy differ at most (docs/leaks.md)."""
_ROWS, _COLUMNS = 8, 1 << 12
"""Codes compared at a time: what that takes fits into a core's own cache."""
_BATCH = 16
"""Pictures encoded at a time."""
_AT_ONCE = 64
"""Photos whose bytes are held at a time."""
_DECOY_PARTS = 8


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

    Beside the kinds of evidence there are: ``read``, whose value says how many images there were; ``unreadable``, whose
    variant is the reason; ``plain``, an image that is compared by its pixels alone; ``decoy``, an image that is near a
    code by chance.
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


MARGIN = 0.5
"""How far from the most similar other benchmark image to the same one a cosine must be."""
DECIMALS = 4
"""Cosines are rounded to so many: the last bits of a product depend on how many were computed at once."""
LOOKS = ("whole", "mirrored")
_COSINES = 16


class Near(NamedTuple):
    """A row of vectors, the benchmark image that it is near to, which variant of that, the cosine and its bound."""

    row: int
    owner: int
    variant: str
    cosine: float
    bound: float


@dataclass(frozen=True, eq=False)
class Look:
    """What the images of a benchmark look like to an encoder.

    Attributes
    ----------
    vectors : ndarray of float32, shape (n * variants, d)
        Unit vectors: of each image whole and mirrored.
    bounds : ndarray of float32, shape (n,)
        The least cosine with each image that is reported.
    """

    vectors: Vectors
    bounds: Vectors

    @classmethod
    def of(cls, vectors: Vectors, n: int, margin: float) -> Look:
        """Return the look of n images, bounded by a share of the way from the most similar other image to itself.

        How similar unrelated photos are depends on the encoder and on the photo; the benchmark's own images say it.

        Raises
        ------
        UsageError
            The margin is out of range.
        """
        if not 0 < margin <= 1:
            raise UsageError(
                "The margin of cosines is a share", where=f"--set margin={margin}", expected="above 0, at most 1"
            )
        vectors = unit_rows(vectors)
        variants = len(vectors) // n if n else 1
        nearest = np.zeros(n, np.float32)
        whole = vectors[::variants]
        for start in range(0, n, _COSINES):
            cosines = (whole[start : start + _COSINES] @ vectors.T).reshape(-1, n, variants).max(axis=2)
            here = np.arange(len(cosines))
            cosines[here, start + here] = 0
            nearest[start : start + _COSINES] = cosines.max(axis=1, initial=0)
        bounds = np.round(nearest + np.float32(margin) * (1 - nearest), DECIMALS).astype(np.float32)
        return cls(vectors, bounds)

    def near(self, vectors: Vectors) -> Iterator[Near]:
        """Yield the pairs at or above a bound, by row; the whole image goes first where both are as similar."""
        n = len(self.bounds)
        for start in range(0, len(vectors) if n else 0, _COSINES):
            products = np.round(unit_rows(vectors[start : start + _COSINES]) @ self.vectors.T, DECIMALS)
            cosines = products.reshape(len(products), n, -1)
            variant = cosines.argmax(axis=2)
            for row, owner in np.argwhere(cosines.max(axis=2) >= self.bounds).tolist():
                chosen = int(variant[row, owner])
                value, bound = cosines[row, owner, chosen], self.bounds[owner]
                rounded = (round(float(one), DECIMALS) for one in (value, bound))
                yield Near(start + row, owner, LOOKS[chosen], *rounded)


class Known(NamedTuple):
    """A readable photo of the benchmark: id, what it is recognised by, and its vectors, whole and mirrored, if any."""

    id: str
    found: Fingerprints
    vectors: Vectors | None = None


@dataclass(frozen=True, eq=False)
class FindLeaks(Step):
    """Which images of a table are among those of a benchmark.

    Attributes
    ----------
    ids : tuple of str, length n
        The benchmark's readable images.
    pixels, pixel_owners : tuple of str, ndarray of int64, length p
        Digests of the pixels, and the image of each.
    codes : ndarray of uint64, shape (c, variants, 4)
        Codes of the pictures that show enough, one each of `VARIANTS`; `code_owners` has the image of each.
    radius, first_radius : int
        Bits of 256, and of the first 64, that codes of the same photo differ in at most.
    look : Look, optional
        What the images, whole and mirrored, look like to an encoder.
    encoder : EncoderOptions, optional
        What makes the vectors of the corpus.
    """

    name: ClassVar[str] = "leaks"
    version: ClassVar[int] = 1

    ids: tuple[str, ...]
    pixels: tuple[str, ...]
    pixel_owners: Int64s
    codes: Codes
    code_owners: Int64s
    radius: int = RADIUS
    first_radius: int = FIRST_RADIUS
    look: Look | None = None
    encoder: EncoderOptions | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The fields but the encoder's options: paths of weights are not what vectors depend on, and `look` is."""
        return {name: one for name, one in super().parameters.items() if name != "encoder"}

    @classmethod
    def of(
        cls, photos: Sequence[Known], *, radius: int = RADIUS, margin: float = MARGIN,
        encoder: EncoderOptions | None = None,
    ) -> FindLeaks:  # fmt: skip
        """Return the step of a benchmark's photos.

        Raises
        ------
        UsageError
            The radius or the margin is out of range.
        """
        if not 0 <= radius <= BITS // 2 - 32:
            raise UsageError(
                "The radius of perceptual hashes is out of range",
                where=f"--set radius={radius}",
                expected=f"0 to {BITS // 2 - 32} of {BITS} bits: codes of unrelated photos differ in about {BITS // 2}",
            )
        owners = [number for number, one in enumerate(photos) for _ in one.found.pixels]
        shown = np.array([not plain for photo in photos for plain in photo.found.plain], np.bool_)
        codes = np.concatenate(
            [photo.found.codes for photo in photos] or [np.empty((0, len(VARIANTS), WORDS), np.uint64)]
        )
        given = [photo.vectors for photo in photos if photo.vectors is not None]
        return cls(
            ids=tuple(photo.id for photo in photos),
            pixels=tuple(digest for photo in photos for digest in photo.found.pixels),
            pixel_owners=np.array(owners, np.int64),
            codes=np.ascontiguousarray(codes[shown]),
            code_owners=np.array(owners, np.int64)[shown],
            radius=radius,
            # A wider radius is asked for to find more: candidates must be found as widely.
            first_radius=max(FIRST_RADIUS, radius * FIRST_BITS // BITS - 4),
            look=Look.of(np.concatenate(given), len(given), margin) if given else None,
            encoder=encoder,
        )

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return the evidence of one table of a corpus (see `curation.sources.corpus.photo_data`).

        Returns
        -------
        pyarrow.Table
            See `as_table`.
        """
        rows: list[tuple[Any, ...]] = [("read", "", "", "", float(table.num_rows), 0.0, None)]
        photos = photo_data(table)
        with quiet():
            while some := list(islice(photos, _AT_ONCE)):
                rows += self._rows_of(some)
        return as_table(rows)

    def _rows_of(self, photos: Sequence[Photo]) -> Iterator[tuple[Any, ...]]:
        readable: list[tuple[str, bytes]] = []
        found: list[Fingerprints] = []
        prepared: list[Prepared] = []
        for name, data in photos:
            try:
                if isinstance(data, BrokenPhotoError):
                    raise data
                pictures = pictures_of(data)
            except BrokenPhotoError as error:
                yield "unreadable", "", name, str(error), 0.0, 0.0, None
                continue
            readable.append((name, data))
            found.append(fingerprints(pictures))
            if self.look is not None:
                prepared.append(self._open_encoder.prepare(pictures[0]))
            if all(found[-1].plain):
                yield "plain", "", name, "", 0.0, 0.0, None
        for place, kind, owner, variant, value, threshold in [*self._by_hash(found), *self._by_look(prepared)]:
            name, data = readable[place]
            benchmark, shown = ("", None) if kind == "decoy" else (self.ids[owner], thumbnail(data))
            yield kind, benchmark, name, variant, value, threshold, shown

    def _by_hash(self, photos: Sequence[Fingerprints]) -> list[tuple[int, str, int, str, float, float]]:
        """Return photo, kind, benchmark image, variant, bits and radius, once for each pair: the strongest."""
        best: dict[tuple[int, int], tuple[int, int, int, str]] = {}
        places = [place for place, one in enumerate(photos) for plain in one.plain if not plain]
        shown = [photo.codes[~np.array(photo.plain), 0] for photo in photos]
        asked = np.concatenate([*shown, np.empty((0, WORDS), np.uint64)])
        for number, code, bits in near_codes(asked, self._flat, self.radius, self.first_radius):
            picture, variant = divmod(code, len(VARIANTS))
            kind = KINDS.index("mirrored" if variant >= N_WINDOWS else "perceptual")
            pair = places[number], int(self.code_owners[picture])
            found = kind, bits, variant, VARIANTS[variant]
            # The nearest variant says what was done to the photo; of equally near ones the first, unmirrored ones.
            if pair not in best or (bits, variant) < best[pair][1:3]:
                best[pair] = found
        for place, one in enumerate(photos):
            for digest in one.pixels:
                for owner in self._owners_of.get(digest, ()):
                    best[place, owner] = 0, 0, 0, VARIANTS[0]
        rows = [
            (place, KINDS[kind], owner, variant, float(bits), float(self.radius))
            for (place, owner), (kind, bits, _, variant) in sorted(best.items())
        ]
        fooled: dict[int, int] = {}
        for number, _, bits in near_codes(asked, self._decoys, self.radius, self.first_radius):
            fooled[places[number]] = min(bits, fooled.get(places[number], BITS))
        return [
            *rows,
            *((place, "decoy", 0, "", float(bits), float(self.radius)) for place, bits in sorted(fooled.items())),
        ]

    def _by_look(self, pictures: Sequence[Prepared]) -> Iterator[tuple[int, str, int, str, float, float]]:
        for start in range(0, len(pictures) if self.look else 0, _BATCH):
            vectors = self._open_encoder.encode_prepared(pictures[start : start + _BATCH])
            for one in self.look.near(vectors) if self.look else ():
                yield start + one.row, "embedding", one.owner, one.variant, one.cosine, one.bound

    @cached_property
    def _flat(self) -> Codes:
        return self.codes.reshape(-1, WORDS)

    @cached_property
    def _owners_of(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for digest, owner in zip(self.pixels, self.pixel_owners.tolist(), strict=True):
            if owner not in found.setdefault(digest, []):
                found[digest].append(owner)
        return found

    @cached_property
    def _decoys(self) -> Codes:
        """Codes that no photo has, as many as there are, shape (c * variants, 4).

        Each is put together of eight parts from eight benchmark pictures, so that every frequency, and neighbouring
        ones together, have the signs that photos have. What of a corpus is near a decoy is near it by chance: so often
        are unrelated photos taken for the same (as searches of spectra are judged by decoys: Elias and Gygi, Nature
        Methods 4, 2007). Below eight pictures there are none.
        """
        if not self.has_decoys:
            return np.empty((0, WORDS), np.uint64)
        parts = self.codes.view(np.uint32).copy()
        step = len(parts) // _DECOY_PARTS
        for part in range(_DECOY_PARTS):
            parts[..., part] = np.roll(parts[..., part], part * step, axis=0)
        return parts.view(np.uint64).reshape(-1, WORDS)

    @property
    def has_decoys(self) -> bool:
        """Whether the benchmark has enough pictures to make decoys of."""
        return len(self.codes) >= _DECOY_PARTS

    @cached_property
    def _open_encoder(self) -> Encoder:
        return (self.encoder or EncoderOptions()).open()


def near_codes(asked: Codes, known: Codes, radius: int, first_radius: int) -> list[tuple[int, int, int]]:
    """Return all pairs of 256-bit codes that differ in few bits: position, position, and the number of bits.

    Every pair is compared, by the first word; those within `first_radius` there by all four: none is missed. Bands of
    bits, as in multi-index hashing, save nothing here: with 12 bits of 64, bands are of five bits, and half of the
    codes share one.

    Parameters
    ----------
    asked, known : ndarray of uint64, shapes (a, 4), (k, 4)
    """
    found: list[tuple[int, int, int]] = []
    differing = np.empty((_ROWS, _COLUMNS), np.uint64)
    counts = np.empty((_ROWS, _COLUMNS), np.uint8)
    near = np.empty((_ROWS, _COLUMNS), np.bool_)
    firsts = np.ascontiguousarray(known[:, 0])
    for start in range(0, len(asked), _ROWS):
        rows = asked[start : start + _ROWS]
        for place in range(0, len(known), _COLUMNS):
            columns = firsts[place : place + _COLUMNS]
            part = np.s_[: len(rows), : len(columns)]
            np.bitwise_xor(rows[:, :1], columns[None], out=differing[part])
            np.bitwise_count(differing[part], out=counts[part])
            np.less_equal(counts[part], first_radius, out=near[part])
            # Finding where costs four times as much as all before it, and mostly nothing is there.
            if near[part].any():
                row, column = np.nonzero(near[part])
                bits = np.bitwise_count(rows[row] ^ known[place + column]).sum(axis=1, dtype=np.int64)
                kept = bits <= radius
                found += zip(
                    (start + row[kept]).tolist(), (place + column[kept]).tolist(), bits[kept].tolist(), strict=True
                )
    return found
