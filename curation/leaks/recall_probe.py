"""Planted copies: benchmark images altered as copies in corpora are, and sent through the same step.

What a leak check misses cannot be seen in the corpus. So some images of the benchmark are resized, re-encoded, cropped
or mirrored, and looked for as if the corpus held them: the share that is found is the recall of each kind.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.leaks.fingerprints import WINDOW, pictures_of
from curation.leaks.step import KINDS, FindLeaks
from curation.sources.photos import BrokenPhotoError, read_photo

if TYPE_CHECKING:
    from PIL.Image import Image

_Z = 1.959963984540054
_AT_ONCE = 64
_QUALITY, _LOW_QUALITY = 85, 50


def resized(picture: Image, name: str) -> bytes:
    """Return the picture at half its width and height."""
    width, height = picture.size
    return _jpeg(picture.resize((max(1, width // 2), max(1, height // 2))))


def re_encoded(picture: Image, name: str) -> bytes:
    """Return the picture as a JPEG of quality 50."""
    return _jpeg(picture, _LOW_QUALITY)


def cropped(picture: Image, name: str) -> bytes:
    """Return 90 % of the width and of the height, at a place that the name decides."""
    sizes = [max(1, round(one * WINDOW)) for one in picture.size]
    places = hashlib.sha256(f"leaks, crop of {name}".encode()).digest()
    left, top = (place * (whole - size) // 255 for place, whole, size in zip(places, picture.size, sizes, strict=False))
    return _jpeg(picture.crop((left, top, left + sizes[0], top + sizes[1])))


def mirrored(picture: Image, name: str) -> bytes:
    """Return the picture with left and right exchanged."""
    from PIL.Image import Transpose

    return _jpeg(picture.transpose(Transpose.FLIP_LEFT_RIGHT))


def _jpeg(picture: Image, quality: int = _QUALITY) -> bytes:
    made = io.BytesIO()
    picture.save(made, "JPEG", quality=quality)
    return made.getvalue()


ALTERATIONS: Mapping[str, Callable[[Image, str], bytes]] = {
    "resized": resized,
    "re-encoded": re_encoded,
    "cropped": cropped,
    "mirrored": mirrored,
}


def planted(step: FindLeaks, photos: Mapping[str, Path], n: int) -> dict[str, Any]:
    """Return how many planted copies are found, by alteration, and how many are taken for another image.

    Parameters
    ----------
    photos : mapping of str to Path
        The benchmark's readable photos by id.
    n : int
        Images that are altered: those of lowest sha256 of their ids.

    Returns
    -------
    dict
        ``images``; ``alterations``: by name ``planted``, ``found``, ``recall`` with ``low`` and ``high`` (Wilson,
        95 %), and how often each kind of evidence found it; ``copies``; ``taken_for_another``: copies that are like a
        benchmark image which the unaltered one is not like; ``share``, ``low``, ``high`` of these.
    """
    from tqdm import tqdm

    chosen = sorted(photos, key=lambda name: (hashlib.sha256(f"leaks, planted {name}".encode()).digest(), name))[:n]
    found: dict[str, dict[str, int]] = {name: dict.fromkeys(("planted", "found", *KINDS), 0) for name in ALTERATIONS}
    wrong = 0
    for start in tqdm(range(0, len(chosen), _AT_ONCE), desc="planted copies", disable=None, leave=False):
        copies = dict(_copies(chosen[start : start + _AT_ONCE], photos))
        seen = _found(step, copies)
        for (how, name), kinds_of in seen.items():
            if not how:
                continue
            record, own = found[how], kinds_of.get(name, set())
            record["planted"] += 1
            record["found"] += bool(own)
            for kind in own:
                record[kind] += 1
            wrong += bool(kinds_of.keys() - seen["", name].keys() - {name})
    copies_made = sum(one["planted"] for one in found.values())
    return {
        "images": len(chosen),
        "alterations": {how: one | share_record("recall", one["found"], one["planted"]) for how, one in found.items()},
        "copies": copies_made,
        "taken_for_another": wrong,
        **share_record("share", wrong, copies_made),
    }


def _copies(names: list[str], photos: Mapping[str, Path]) -> Iterator[tuple[tuple[str, str], bytes]]:
    for name in names:
        try:
            data = read_photo(photos[name])
            picture = pictures_of(data)[0]
        except BrokenPhotoError:
            # It was readable a moment ago: a photo that went away is planted in no kind.
            continue
        yield ("", name), data
        for how, alter in ALTERATIONS.items():
            yield (how, name), alter(picture, name)


def _found(step: FindLeaks, copies: Mapping[tuple[str, str], bytes]) -> dict[tuple[str, str], dict[str, set[str]]]:
    """Return the benchmark images that each copy is found to be, with the kinds of evidence."""
    import pyarrow

    keys = list(copies)
    numbers = [str(number) for number in range(len(keys))]
    nothing = pyarrow.nulls(len(keys), pyarrow.string())
    columns = (pyarrow.array(numbers), nothing, pyarrow.array(list(copies.values()), pyarrow.large_binary()), nothing)
    table = pyarrow.table(dict(zip(("id", "path", "data", "error"), columns, strict=True)))
    seen: dict[tuple[str, str], dict[str, set[str]]] = {key: {} for key in keys}
    for row in step(table).to_pylist():
        if row["kind"] in KINDS:
            seen[keys[int(row["corpus"])]].setdefault(row["benchmark"], set()).add(row["kind"])
    return seen


def share_record(name: str, count: int, n: int) -> dict[str, float | None]:
    """Return a share with its interval, None where there is nothing to take it of.

    >>> share_record("recall", 10, 10)
    {'recall': 1.0, 'low': 0.7224672001371107, 'high': 1.0}
    """
    if not n:
        return {name: None, "low": None, "high": None}
    low, high = wilson(count, n)
    return {name: count / n, "low": low, "high": high}


def wilson(count: int, n: int) -> tuple[float, float]:
    """Return the interval of a share, 95 % (Wilson, Journal of the American Statistical Association 22, 1927)."""
    share, square = count / n, _Z**2
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = _Z / (1 + square / n) * (share * (1 - share) / n + square / (4 * n * n)) ** 0.5
    return (0.0 if count == 0 else max(0.0, middle - half)), (1.0 if count == n else min(1.0, middle + half))
