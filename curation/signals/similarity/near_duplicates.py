"""Photos that are the same, or nearly, under different names: by pixels and by perceptual hash.

Nothing is learned or downloaded: a perceptual hash is the sign of 64 low frequencies of the grey
photo, and `ImageHash` computes it without torch.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt

from curation.core.arguments import Workers, checked
from curation.core.engines.running import run_step
from curation.core.engines.shards import Step
from curation.core.errors import CurationWarning, MissingExtraError, UsageError, install_command
from curation.core.wording import counted
from curation.signals.similarity.neighbors import Pairs
from curation.sources.corpus import corpus_blocks, listed_blocks, photo_data
from curation.sources.photos import BrokenPhotoError, decode_photo, read_photo
from curation.sources.source import Int32s, Int64s

if TYPE_CHECKING:
    import pyarrow

Codes = npt.NDArray[np.uint64]

DISTANCE = 4
"""Maximum number of differing bits, of 64, between two hashes of nearly the same photo."""
LARGEST_DISTANCE = 12
"""Beyond this distance, hashes of unrelated photos agree by chance."""
UNEXPLAINED = 0.04
"""Copies stay below 0.03 down to JPEG of quality 10; two shapes of equal size on a plain background begin at 0.06."""
_SIDE, _BOX = 32, 4
"""Pixels of a side, and Pillow's number of the filter that averages."""
MOST_PAIRS = 5_000_000
_BITS = 64
_CHUNK = 1 << 22
_PHOTOS = 256
"""Photos in a block of listed photos: some seconds of work for a core."""


@dataclass(frozen=True)
class PhotoHashes:
    """Hashes of photos; unreadable photos are left out.

    Attributes
    ----------
    names : tuple of str, length n
        Names in input order.
    pixels : tuple of str, length n
        ``sha256:<hex>`` of width, height and the decoded RGB values: equal where every pixel is.
    perceptual : ndarray of uint64, shape (n,)
        The 64-bit pHash; few bits differ between a photo and its smaller or recompressed copy.
    failures : mapping of str to str
        Photos that could not be read, and why, in the order they were given.
    """

    names: tuple[str, ...]
    pixels: tuple[str, ...]
    perceptual: Codes
    failures: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def pixel_codes(self) -> Int64s:
        """Equal numbers for equal pixels, shape (n,)."""
        number_of = {digest: number for number, digest in enumerate(dict.fromkeys(self.pixels))}
        return np.array([number_of[digest] for digest in self.pixels], np.int64)


@dataclass(frozen=True)
class AlikePhotos:
    """Pairs of photos that are the same or nearly so, by first and then second photo.

    Attributes
    ----------
    first, second : ndarray of int32, shape (p,)
        Positions in `PhotoHashes.names`; `first` is the smaller one.
    distance : ndarray of int32, shape (p,)
        Bits in which the perceptual hashes differ.
    same_pixels : ndarray of bool, shape (p,)
        Whether all pixels are equal.
    """

    first: Int32s
    second: Int32s
    distance: Int32s
    same_pixels: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True)
class HashPhotos(Step):
    """Pixel digest and perceptual hash of each photo of a table, or why it cannot be read (see `PhotoHashes`)."""

    name = "hash"
    version = 1

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return the columns id, pixels (text), perceptual (uint64) and error of photos (see `corpus_blocks`)."""
        import pyarrow

        phash = _phash()
        rows: list[tuple[str, str | None, int | None, str | None]] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, data in photo_data(table):
                try:
                    if isinstance(data, BrokenPhotoError):
                        raise data
                    colours = decode_photo(data)
                except BrokenPhotoError as error:
                    rows.append((name, None, None, str(error)))
                    continue
                digest = hashlib.sha256("{}x{}:".format(*colours.size).encode() + colours.tobytes())
                code = int.from_bytes(np.packbits(phash(colours).hash).tobytes())
                rows.append((name, f"sha256:{digest.hexdigest()}", code, None))
        kinds = {"id": pyarrow.string(), "pixels": pyarrow.string(), "perceptual": pyarrow.uint64()}
        kinds |= {"error": pyarrow.string()}
        columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
        return pyarrow.table(
            {name: pyarrow.array(column, kinds[name]) for name, column in zip(kinds, columns, strict=True)}
        )


def _phash() -> Callable[[Any], Any]:
    try:
        import imagehash
        from PIL import Image as Image
    except ImportError:
        raise MissingExtraError("Comparing photos needs Pillow and ImageHash", hint=install_command("photos")) from None
    phash: Callable[[Any], Any] = imagehash.phash
    return phash


def hash_photos(
    photos: Mapping[str, Path] | str | Path, *, workers: int | None = None, out: Path | None = None
) -> PhotoHashes:
    """Return the hashes of photos by name, and the photos that cannot be read.

    The stored pixels count: an orientation tag is not applied. Of an animated picture the first frame counts. A photo
    of more than 170 million pixels is not decoded.

    Parameters
    ----------
    photos : mapping of str to Path, str or Path
        Photos by name; or a corpus (see `curation.sources.corpus.corpus_blocks`), whose ids are the names.
    workers, out
        See `curation.core.engines.running.run_step`; without a folder nothing is kept.

    Raises
    ------
    MissingExtraError
        Pillow or ImageHash is not installed.
    """
    _phash()
    blocks = corpus_blocks(photos) if isinstance(photos, str | Path) else listed_blocks(photos.items(), _PHOTOS)
    with TemporaryDirectory(prefix="curation-hashes-") if out is None else nullcontext(out) as folder:
        shards = run_step(HashPhotos(), blocks, out=Path(folder), workers=workers)
        tables = list(shards.tables())
    names: list[str] = []
    pixels: list[str] = []
    codes = [np.empty(0, np.uint64)]
    failures: dict[str, str] = {}
    for table in tables:
        good = table.filter(table.column("error").is_null())
        names += good.column("id").to_pylist()
        pixels += good.column("pixels").to_pylist()
        codes.append(good.column("perceptual").to_numpy())
        bad = table.filter(table.column("error").is_valid())
        failures |= dict(zip(bad.column("id").to_pylist(), bad.column("error").to_pylist(), strict=True))
    return PhotoHashes(tuple(names), tuple(pixels), np.concatenate(codes), failures)


def alike_photos(hashes: PhotoHashes, distance: int = DISTANCE) -> AlikePhotos:
    """Return all pairs of photos with equal pixels, or whose perceptual hashes differ in at most some bits.

    Raises
    ------
    UsageError
        The distance is out of range, or too many pairs are alike to be listed.
    """
    first, second, bits = near_pairs(hashes.perceptual, distance)
    codes = hashes.pixel_codes
    return AlikePhotos(first, second, bits, codes[first] == codes[second])


def show_the_same(first: Path, second: Path) -> bool:
    """Return whether the pixels of two photos differ by size, compression, brightness and contrast alone.

    A perceptual hash has 64 bits: two drawn shapes on a plain background may differ in none. Here 32 x 32 colours of
    a photo must explain those of the other but for `UNEXPLAINED` of their variance. Plain-coloured photos never do.
    """
    try:
        sides = [decode_photo(read_photo(path)).convert("RGB").resize((_SIDE, _SIDE), _BOX) for path in (first, second)]
    except BrokenPhotoError:
        return False
    colours = [np.asarray(side, np.float64) for side in sides]
    if any(np.ptp(side, axis=2).max() == 0 for side in colours):
        # One photo may be a grey copy of the other.
        colours = [np.asarray(side.convert("L"), np.float64) for side in sides]
    x, y = (side.ravel() - side.mean() for side in colours)
    return bool(min(x @ x, y @ y) > x.size and (x @ y) ** 2 >= (1 - UNEXPLAINED) * (x @ x) * (y @ y) and x @ y > 0)


def near_pairs(codes: Codes, distance: int) -> tuple[Int32s, Int32s, Int32s]:
    """Return all pairs of 64-bit codes that differ in at most some bits: positions, and the number of bits.

    Exact: two codes that differ in at most d bits agree in at least one of d + 1 bands of bits (Norouzi et al., Fast
    Search in Hamming Space with Multi-Index Hashing, CVPR 2012), so that only codes which share a band are compared.

    Parameters
    ----------
    codes : ndarray of uint64, shape (n,)
    distance : int
        From 0 to `LARGEST_DISTANCE`.

    Returns
    -------
    first, second, bits : ndarray of int32, shape (p,)
        ``first < second``; sorted by first, then second.

    Raises
    ------
    UsageError
        The distance is out of range, or more than `MOST_PAIRS` pairs are found.
    """
    if not 0 <= distance <= LARGEST_DISTANCE:
        raise UsageError(
            "The distance of perceptual hashes is out of range",
            expected=f"0 to {LARGEST_DISTANCE} of {_BITS} bits",
            found=str(distance),
        )
    pairs: list[tuple[Int64s, Int64s, Int64s]] = []
    edges = [_BITS * band // (distance + 1) for band in range(distance + 2)]
    masks = [np.uint64(((1 << high) - (1 << low)) & (2**_BITS - 1)) for low, high in pairwise(edges)]
    n_found = 0
    for band, mask in enumerate(masks):
        for pair in _within_band(codes, masks[:band], mask, distance):
            pairs.append(pair)
            n_found += len(pair[0])
            if n_found > MOST_PAIRS:
                raise UsageError(
                    "Too many pairs of photos are alike to be listed",
                    expected=f"at most {MOST_PAIRS:,}",
                    hint="choose a smaller distance, or remove blank photos",
                )
    columns = [np.concatenate([pair[column] for pair in pairs] or [np.empty(0, np.int64)]) for column in range(3)]
    order = np.lexsort((columns[1], columns[0]))
    first, second, bits = (column[order].astype(np.int32) for column in columns)
    return first, second, bits


def _within_band(codes: Codes, earlier: Sequence[np.uint64], mask: np.uint64, distance: int) -> Any:
    """Yield the near pairs that agree in one band and in none before it, so that each pair comes once."""
    order = np.argsort(codes & mask, kind="stable")
    band, ranked = (codes & mask)[order], codes[order]
    for start in range(0, len(codes), _CHUNK):
        live = np.arange(start, min(start + _CHUNK, len(codes)))
        shift = 0
        # Codes that share a band are adjacent: each is compared with the next, then the one after, until none is left.
        while len(live):
            shift += 1
            live = live[live + shift < len(codes)]
            live = live[band[live + shift] == band[live]]
            differing = ranked[live] ^ ranked[live + shift]
            bits = np.bitwise_count(differing)
            near = bits <= distance
            for other in earlier:
                near &= (differing & other) != 0
            if near.any():
                first, second = order[live[near]], order[live[near] + shift]
                yield np.minimum(first, second), np.maximum(first, second), bits[near].astype(np.int64)


@checked
def duplicates(
    *,
    images: Annotated[str | Path, "CORPUS"],
    against: Annotated[str | Path | None, "CORPUS"] = None,
    distance: Annotated[int, "BITS"] = DISTANCE,
    hashes: Annotated[Path | None, "DIR"] = None,
    workers: Workers | None = None,
) -> Pairs:
    """Return photos that are the same, or nearly the same, under different names.

    Parameters
    ----------
    images
        photos of a folder, or in tar shards
    against
        only pairs of a photo of --photos and one of this corpus
    distance
        of perceptual hashes (of 64 bits)
    hashes
        keep what is computed of each photo: the same command resumes after an interruption
    workers
        processes that compute hashes (one per core)
    """
    corpora = {"images": images} | ({} if against is None else {"against": against})
    hashed = [hash_photos(corpus, workers=workers, out=hashes and hashes / name) for name, corpus in corpora.items()]
    first = hashed[0]
    both = PhotoHashes(
        tuple(name for corpus in hashed for name in corpus.names),
        tuple(digest for corpus in hashed for digest in corpus.pixels),
        np.concatenate([corpus.perceptual for corpus in hashed]),
        {name: why for corpus in hashed for name, why in corpus.failures.items()},
    )
    unreadable = sum(len(corpus.failures) for corpus in hashed)
    if unreadable:
        name, why = next(iter(both.failures.items()))
        warnings.warn(
            f"{counted(unreadable, 'photo')} cannot be read, such as {name}: {why}", CurationWarning, stacklevel=3
        )
    alike = alike_photos(both, distance)
    columns = (alike.first.tolist(), alike.second.tolist(), alike.distance.tolist(), alike.same_pixels.tolist())
    rows = [
        (both.names[i], both.names[j], "same pixels" if same else "perceptual hash, bits", float(bits))
        for i, j, bits, same in zip(*columns, strict=True)
        if against is None or i < len(first) <= j
    ]
    facts = {"images": len(both), "unreadable": unreadable}
    return Pairs("duplicates", ("first", "second", "how", "value"), rows, facts)
