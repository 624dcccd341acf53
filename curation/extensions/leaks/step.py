"""`FindLeaks`: compare the benchmark of a leak check with the tables of a corpus, one at a time.

A photo is recognised by its `Fingerprints`: its pixels, and the signs of 256 low frequencies of its grey levels. All
counting is in whole numbers, so that a code depends on nothing but the grey levels: the picture is reduced to
160 x 160 by averaging, its aspect ratio aside, and multiplied with cosines in thousandths; the products are whole
numbers below 2**53, which float64 holds whatever the order of a sum. The signs of the 64 lowest frequencies are a
code by themselves, by which candidates are found; all 256 confirm them. A code survives resizing, re-encoding, and
changes of brightness or contrast. Mirroring a picture turns the sign of each frequency that is odd across, so that the
code of the mirrored picture follows without it. A crop has other frequencies: crops are found because the benchmark
side also has the codes of windows of 90 % of each side, at 5 x 5 places.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from curation.core.engines.shards import Step
from curation.signals.similarity.embed import quiet
from curation.sources.corpus import Photo, photo_data
from curation.sources.photos import BrokenPhotoError, decode_photo
from curation.sources.source import Int64s

if TYPE_CHECKING:
    import pyarrow
    from PIL.Image import Image

Codes = npt.NDArray[np.uint64]

SIDE = 160
BITS = 256
FIRST_BITS = 64
WORDS = BITS // 64
WINDOW = 0.9
"""Width and height of a window, as a share of the picture's: what a crop of 10 % leaves of each side."""
_STEPS = 5
_HIGHEST = 18
_SCALE = 1000
_PLAIN = 0.05
"""Grey levels: weaker frequencies carry no information about the picture."""
_ENOUGH = BITS // 2
_ORIENTATION = 0x0112

VARIANTS: tuple[str, ...] = tuple(
    f"{'mirrored' if mirrored else ''}{' ' if mirrored and window else ''}{window}" or "whole"
    for mirrored in (False, True)
    for window in ("", *(f"crop {row}{column}" for row in range(1, _STEPS + 1) for column in range(1, _STEPS + 1)))
)
"""Variant of each code of a benchmark image: ``whole``, ``crop 11`` (top left) to ``crop 55``, ``mirrored`` …"""
N_WINDOWS = len(VARIANTS) // 2


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Digests and codes of the pictures of a photo.

    A photo with an orientation tag has two pictures: as displayed and as stored. A copy may have kept, applied or lost
    the tag.

    Attributes
    ----------
    pixels : tuple of str, length p
        ``sha256:<hex>`` of ``WIDTHxHEIGHT:`` and the RGB values, row by row.
    codes : ndarray of uint64, shape (p, variants, 4)
        Signs of frequencies, lowest first; one variant, or one each of `VARIANTS`.
    plain : tuple of bool, length p
        Whether the picture shows too little for its code, such as a blank page or a plain gradient.
    """

    pixels: tuple[str, ...]
    codes: Codes
    plain: tuple[bool, ...]


def fingerprints(pictures: Sequence[Image], *, variants: bool = False) -> Fingerprints:
    """Return the fingerprints of the pictures of a photo; with `variants`, also of mirrored and cropped copies."""
    pairs = [code_of(picture, variants=variants) for picture in pictures]
    codes = np.stack([codes for codes, _ in pairs])
    return Fingerprints(tuple(map(pixel_digest, pictures)), codes, tuple(plain for _, plain in pairs))


def pictures_of(data: bytes) -> tuple[Image, ...]:
    """Return the picture of a photo file as displayed and, if its orientation tag differs, also as stored.

    Raises
    ------
    BrokenPhotoError
        See `curation.sources.photos.decode_photo`.
    """
    from PIL import ImageOps

    photo = decode_photo(data)
    try:
        turned = photo.getexif().get(_ORIENTATION, 1) != 1
        upright = ImageOps.exif_transpose(photo) if turned else photo
    # A malformed tag is ignored; Pillow's parser raises errors of many kinds.
    except (OSError, ValueError, SyntaxError, TypeError, KeyError, IndexError, ArithmeticError, AttributeError,
            RuntimeError) as error:  # fmt: skip
        del error
        return (photo,)
    return (upright, photo) if turned else (photo,)


def pixel_digest(picture: Image) -> str:
    """Return ``sha256:<hex>`` of width, height and the RGB values."""
    width, height = picture.size
    return f"sha256:{hashlib.sha256(f'{width}x{height}:'.encode() + picture.tobytes()).hexdigest()}"


def code_of(picture: Image, *, variants: bool = False) -> tuple[Codes, bool]:
    """Return the code of a picture, shape (1, 4), or one each of `VARIANTS`; and whether it shows too little."""
    from PIL.Image import Resampling

    grey = np.asarray(picture.convert("L").resize((SIDE, SIDE), Resampling.BOX), np.float64)
    full, *shifted = _bases() if variants else _bases()[:1]
    rows, columns = _frequencies()
    tables = [(full @ grey @ full.T)[rows, columns]]
    for down in shifted:
        half = down @ grey
        tables += [(half @ across.T)[rows, columns] for across in shifted]
    products = np.stack(tables)
    if variants:
        products = np.concatenate([products, products * np.where(columns % 2, -1.0, 1.0)])
    plain = int((np.abs(tables[0]) >= _PLAIN * (SIDE * _SCALE / 2) ** 2).sum()) < _ENOUGH
    return np.packbits(products > 0, axis=1).view(">u8").astype(np.uint64), plain


@cache
def _frequencies() -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the 256 lowest frequencies but that of the mean: half waves down and across, lowest first."""
    every = [(down, across) for down in range(_HIGHEST + 1) for across in range(_HIGHEST + 1)]
    chosen = sorted(every, key=lambda wave: (wave[0] ** 2 + wave[1] ** 2, wave))[1 : BITS + 1]
    down, across = zip(*chosen, strict=True)
    return np.array(down), np.array(across)


@cache
def _bases() -> tuple[npt.NDArray[np.float64], ...]:
    """Return cosines in thousandths, over the whole side and over each window, shape (frequencies, 160) each."""
    size = round(SIDE * WINDOW)
    windows = [(0, SIDE), *((round(step * (SIDE - size) / (_STEPS - 1)), size) for step in range(_STEPS))]
    bases = []
    for start, length in windows:
        phase = (np.arange(length) + 0.5) / length
        basis = np.zeros((_HIGHEST + 1, SIDE))
        # Rounded to thousandths, each cosine is the same whole number on every machine, and waves are symmetric.
        basis[:, start : start + length] = np.rint(_SCALE * np.cos(np.pi * np.arange(_HIGHEST + 1)[:, None] * phase))
        bases.append(basis)
    return tuple(bases)


RADIUS, FIRST_RADIUS = 64, 12
"""Bits of 256, and of the first 64, in which the codes of a photo and its copy differ at most (docs/leaks.md)."""
LARGEST_RADIUS = BITS // 2 - 32
"""Codes of unrelated photos differ in about half of the bits."""
_ROWS, _COLUMNS = 8, 1 << 12
"""Number of codes compared at a time, so that the data fit into a core's cache."""
_AT_ONCE = 64
"""Number of photos in memory at a time."""

Kind = Literal["same_pixels", "perceptual", "mirrored"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds of evidence that a corpus image is a benchmark image, strongest first."""
_THUMBNAIL = 192


@dataclass(frozen=True, slots=True)
class LeakEvidence:
    """The evidence that a corpus image is a benchmark image.

    Attributes
    ----------
    benchmark, corpus : str
        Ids; the id of an image in a tar shard begins with the name of the shard.
    kind : {"same_pixels", "perceptual", "mirrored"}
    variant : str
        Variant of the benchmark image that it is most similar to: ``whole``, ``crop 33``, ``mirrored`` …
    value, threshold : float
        Bits of 256 in which the codes differ, at most the threshold.
    """

    benchmark: str
    corpus: str
    kind: Kind
    variant: str
    value: float
    threshold: float


def thumbnail(data: bytes) -> bytes:
    """Return a small JPEG of a photo file."""
    small, stream = pictures_of(data)[0], io.BytesIO()
    small.thumbnail((_THUMBNAIL, _THUMBNAIL))
    small.save(stream, "JPEG", quality=80)
    return stream.getvalue()


class _Row(NamedTuple):
    """A row of a step's output: evidence, or a count of images.

    In addition to the kinds of evidence: ``read``, whose value is the number of images; ``unreadable``, whose variant
    is the reason; ``plain``, an image that is compared only by its pixels.
    """

    kind: str
    benchmark: str = ""
    corpus: str = ""
    variant: str = ""
    value: float = 0.0
    threshold: float = 0.0
    thumbnail: bytes | None = None


@dataclass(frozen=True, eq=False)
class FindLeaks(Step):
    """A step that finds the images of a benchmark in a table of a corpus.

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
    """

    name: ClassVar[str] = "leaks"
    version: ClassVar[int] = 2

    ids: tuple[str, ...]
    pixels: tuple[str, ...]
    pixel_owners: Int64s
    codes: Codes
    code_owners: Int64s
    radius: int = RADIUS
    first_radius: int = FIRST_RADIUS

    @classmethod
    def of_photos(cls, photos: Mapping[str, Fingerprints], radius: int = RADIUS) -> FindLeaks:
        """Return the step for a benchmark's photos, by image id."""
        owners = np.array([number for number, photo in enumerate(photos.values()) for _ in photo.pixels], np.int64)
        has_code = np.array([not plain for photo in photos.values() for plain in photo.plain], np.bool_)
        codes = np.concatenate(
            [np.empty((0, len(VARIANTS), WORDS), np.uint64), *(photo.codes for photo in photos.values())]
        )
        return cls(
            ids=tuple(photos),
            pixels=tuple(digest for photo in photos.values() for digest in photo.pixels),
            pixel_owners=owners,
            codes=np.ascontiguousarray(codes[has_code]),
            code_owners=owners[has_code],
            radius=radius,
            # A wider radius must also widen the search for candidates.
            first_radius=max(FIRST_RADIUS, radius * FIRST_BITS // BITS - 4),
        )

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return the evidence in a table of a corpus (see `curation.sources.corpus.photo_data`): rows of `Row`."""
        import pyarrow

        rows = [_Row("read", value=table.num_rows)]
        photos = photo_data(table)
        with quiet():
            while batch := list(islice(photos, _AT_ONCE)):
                rows += self._rows_of(batch)
        text, number = pyarrow.string(), pyarrow.float64()
        types = (text, text, text, text, number, number, pyarrow.binary())
        schema = pyarrow.schema(list(zip(_Row._fields, types, strict=True)))
        return pyarrow.Table.from_pylist([row._asdict() for row in rows], schema=schema)

    def _rows_of(self, photos: Sequence[Photo]) -> Iterator[_Row]:
        readable: list[tuple[str, bytes]] = []
        prints: list[Fingerprints] = []
        for name, data in photos:
            try:
                if isinstance(data, BrokenPhotoError):
                    raise data
                pictures = pictures_of(data)
            except BrokenPhotoError as error:
                yield _Row("unreadable", corpus=name, variant=str(error))
                continue
            readable.append((name, data))
            prints.append(fingerprints(pictures))
            if all(prints[-1].plain):
                yield _Row("plain", corpus=name)
        for (index, owner), (kind, bits, variant) in sorted(self._matches(prints).items()):
            name, data = readable[index]
            yield _Row(KINDS[kind], self.ids[owner], name, VARIANTS[variant], bits, self.radius, thumbnail(data))

    def _matches(self, photos: Sequence[Fingerprints]) -> dict[tuple[int, int], tuple[int, int, int]]:
        """Return the strongest kind, its bits and its variant of each pair of a photo and a benchmark image."""
        best: dict[tuple[int, int], tuple[int, int, int]] = {}
        positions = [index for index, photo in enumerate(photos) for plain in photo.plain if not plain]
        codes = [photo.codes[~np.array(photo.plain), 0] for photo in photos]
        queries = np.concatenate([*codes, np.empty((0, WORDS), np.uint64)])
        for number, code, bits in near_codes(queries, self.codes.reshape(-1, WORDS), self.radius, self.first_radius):
            picture, variant = divmod(code, len(VARIANTS))
            kind = KINDS.index("mirrored" if variant >= N_WINDOWS else "perceptual")
            pair = positions[number], int(self.code_owners[picture])
            # The nearest variant describes the change of the photo; of equally near variants, the first one counts.
            if pair not in best or (bits, variant) < best[pair][1:]:
                best[pair] = kind, bits, variant
        for index, photo in enumerate(photos):
            for digest in photo.pixels:
                for owner in self._owners_of.get(digest, ()):
                    best[index, owner] = 0, 0, 0
        return best

    @cached_property
    def _owners_of(self) -> dict[str, list[int]]:
        owners: dict[str, list[int]] = {}
        for digest, owner in zip(self.pixels, self.pixel_owners.tolist(), strict=True):
            if owner not in owners.setdefault(digest, []):
                owners[digest].append(owner)
        return owners


def near_codes(codes: Codes, known: Codes, radius: int, first_radius: int) -> list[tuple[int, int, int]]:
    """Return all pairs of 256-bit codes that differ in few bits: position, position, and the number of bits.

    Every pair is compared by the first word, and pairs within `first_radius` by all four words, so that none is missed.
    Bands of bits, as in multi-index hashing, would not save time: with 12 bits of 64, bands have five bits, and half of
    the codes share one.

    Parameters
    ----------
    codes, known : ndarray of uint64, shapes (a, 4), (k, 4)
    """
    pairs: list[tuple[int, int, int]] = []
    differing = np.empty((_ROWS, _COLUMNS), np.uint64)
    counts = np.empty((_ROWS, _COLUMNS), np.uint8)
    near = np.empty((_ROWS, _COLUMNS), np.bool_)
    firsts = np.ascontiguousarray(known[:, 0])
    for start in range(0, len(codes), _ROWS):
        rows = codes[start : start + _ROWS]
        for low in range(0, len(known), _COLUMNS):
            columns = firsts[low : low + _COLUMNS]
            part = np.s_[: len(rows), : len(columns)]
            np.bitwise_xor(rows[:, :1], columns[None], out=differing[part])
            np.bitwise_count(differing[part], out=counts[part])
            np.less_equal(counts[part], first_radius, out=near[part])
            # `nonzero` costs four times as much as all steps before it, and most blocks have no hit.
            if near[part].any():
                row, column = np.nonzero(near[part])
                bits = np.bitwise_count(rows[row] ^ known[low + column]).sum(axis=1, dtype=np.int64)
                hits = bits <= radius
                pairs += zip(
                    (start + row[hits]).tolist(), (low + column[hits]).tolist(), bits[hits].tolist(), strict=True
                )
    return pairs
