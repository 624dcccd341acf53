"""`Fingerprints`: what a photo is recognised by: its pixels, and the signs of 256 low frequencies of its grey levels.

All counting is in whole numbers, so that a code depends on nothing but the grey levels: the picture is reduced to
160 x 160 by averaging, its aspect ratio aside, and multiplied with cosines in thousandths; the products are whole
numbers below 2**53, which float64 holds whatever the order of a sum. The signs of the 64 lowest frequencies are a
code by themselves, by which candidates are found; all 256 confirm them. A code survives resizing, re-encoding, and
changes of brightness or contrast. Mirroring a picture turns the sign of each frequency that is odd across, so that the
code of the mirrored picture follows without it. A crop has other frequencies: crops are found because the benchmark
side also has the codes of windows of 90 % of each side, at 5 x 5 places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from curation.sources.photos import decode_photo

if TYPE_CHECKING:
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
"""Grey levels: a frequency that is weaker says nothing of the picture."""
_ENOUGH = BITS // 2
_ORIENTATION = 0x0112

VARIANTS: tuple[str, ...] = tuple(
    f"{'mirrored' if mirrored else ''}{' ' if mirrored and place else ''}{place}" or "whole"
    for mirrored in (False, True)
    for place in ("", *(f"crop {row}{column}" for row in range(1, _STEPS + 1) for column in range(1, _STEPS + 1)))
)
"""What each code of a benchmark image is of: ``whole``, ``crop 11`` (top left) to ``crop 55``, ``mirrored`` …"""
N_WINDOWS = len(VARIANTS) // 2


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """What some pictures of one photo are recognised by.

    A photo whose file says that it is to be turned is two pictures: as shown, and as stored. Whoever copies it may
    have kept the note, obeyed it, or lost it.

    Attributes
    ----------
    pixels : tuple of str, length p
        ``sha256:<hex>`` of ``WIDTHxHEIGHT:`` and the RGB values, row by row.
    codes : ndarray of uint64, shape (p, variants, 4)
        Signs of frequencies, lowest first; one variant, or one each of `VARIANTS`.
    plain : tuple of bool, length p
        Whether the picture shows so little (a blank page, a plain gradient) that its code means nothing.
    """

    pixels: tuple[str, ...]
    codes: Codes
    plain: tuple[bool, ...]


def fingerprints(pictures: Sequence[Image], *, variants: bool = False) -> Fingerprints:
    """Return what the pictures of a photo are recognised by; with `variants`, also its mirrored and cropped copies."""
    found = [code_of(picture, variants=variants) for picture in pictures]
    codes = np.stack([codes for codes, _ in found])
    return Fingerprints(tuple(map(pixel_digest, pictures)), codes, tuple(plain for _, plain in found))


def pictures_of(data: bytes) -> tuple[Image, ...]:
    """Return the picture of a photo file as it is to be shown and, where its orientation tag differs, as it is stored.

    Raises
    ------
    BrokenPhotoError
        See `curation.sources.photos.decode_photo`.
    """
    from PIL import ImageOps

    photo = decode_photo(data)
    try:
        turned = photo.getexif().get(_ORIENTATION, 1) != 1
        shown = ImageOps.exif_transpose(photo) if turned else photo
    # A malformed tag is none; Pillow's parser raises errors of many kinds.
    except (OSError, ValueError, SyntaxError, TypeError, KeyError, IndexError, ArithmeticError, AttributeError,
            RuntimeError) as error:  # fmt: skip
        del error
        return (photo,)
    return (shown, photo) if turned else (photo,)


def pixel_digest(picture: Image) -> str:
    """Return ``sha256:<hex>`` of width, height and the RGB values."""
    width, height = picture.size
    return f"sha256:{hashlib.sha256(f'{width}x{height}:'.encode() + picture.tobytes()).hexdigest()}"


def code_of(picture: Image, *, variants: bool = False) -> tuple[Codes, bool]:
    """Return the code of a picture, shape (1, 4), or one each of `VARIANTS`; and whether it shows too little."""
    from PIL.Image import Resampling

    grey = np.asarray(picture.convert("L").resize((SIDE, SIDE), Resampling.BOX), np.float64)
    whole, *shifted = _bases() if variants else _bases()[:1]
    rows, columns = _frequencies()
    tables = [(whole @ grey @ whole.T)[rows, columns]]
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
    chosen = sorted(every, key=lambda one: (one[0] ** 2 + one[1] ** 2, one))[1 : BITS + 1]
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
