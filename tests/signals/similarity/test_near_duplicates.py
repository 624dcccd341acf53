"""Photos that are the same or nearly: copies are found, other photos are not, broken files are told of."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from curation.core.errors import UsageError
from curation.signals.similarity.near_duplicates import (
    LARGEST_DISTANCE,
    AlikePhotos,
    PhotoHashes,
    alike_photos,
    hash_photos,
    near_pairs,
)


def draw(seed: int, size: int = 96) -> Image.Image:
    """A photo-like picture: smooth patches of colour, different for every seed."""
    patches = np.random.default_rng(seed).integers(0, 256, (7, 7, 3), np.uint8)
    return Image.fromarray(patches).resize((size, size), Image.Resampling.BICUBIC)


def pairs(hashes: PhotoHashes, found: AlikePhotos) -> dict[tuple[str, str], bool]:
    return {
        (hashes.names[one], hashes.names[two]): same
        for one, two, same in zip(found.first.tolist(), found.second.tolist(), found.same_pixels.tolist(), strict=True)
    }


def test_copies_of_drawn_photos_are_found_and_nothing_else(tmp_path: Path) -> None:
    for seed in range(12):
        draw(seed).save(tmp_path / f"{seed}.png")
    draw(3).save(tmp_path / "same.png", compress_level=1)
    draw(4).save(tmp_path / "smaller_file.jpg", quality=60)
    draw(5).resize((48, 48)).save(tmp_path / "smaller.png")
    hashes = hash_photos({path.stem: path for path in sorted(tmp_path.iterdir())})
    assert hashes.failures == {}
    assert pairs(hashes, alike_photos(hashes)) == {
        ("3", "same"): True,
        ("4", "smaller_file"): False,
        ("5", "smaller"): False,
    }


def test_pixels_count_and_not_how_they_are_stored(tmp_path: Path) -> None:
    grey = draw(1).convert("L")
    grey.save(tmp_path / "grey.png")
    grey.convert("RGB").save(tmp_path / "colour.bmp")
    Image.fromarray(np.zeros((2, 8, 3), np.uint8)).save(tmp_path / "wide.png")
    Image.fromarray(np.zeros((8, 2, 3), np.uint8)).save(tmp_path / "high.png")
    hashes = hash_photos({name: tmp_path / name for name in ("grey.png", "colour.bmp", "wide.png", "high.png")})
    grey_hash, colour, wide, high = hashes.pixels
    assert grey_hash == colour
    # The same bytes in another shape are another photo.
    assert wide != high


def _png_that_claims(side: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def test_photos_that_cannot_be_read_are_told_of_and_the_others_are_hashed(tmp_path: Path) -> None:
    draw(1).save(tmp_path / "good.jpg")
    whole = (tmp_path / "good.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.jpg").write_text("no photo")
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "bomb.png").write_bytes(_png_that_claims(60_000))
    (tmp_path / "large.png").write_bytes(_png_that_claims(14_500))
    names = ("cut.jpg", "good.jpg", "text.jpg", "empty.jpg", "bomb.png", "large.png", "none.jpg")
    hashes = hash_photos({name: tmp_path / name for name in names})
    assert hashes.names == ("good.jpg",)
    assert list(hashes.failures) == [name for name in names if name != "good.jpg"]
    assert "cannot be decoded" in hashes.failures["cut.jpg"]
    assert "million pixels" in hashes.failures["bomb.png"]
    assert "million pixels" in hashes.failures["large.png"]
    assert hashes.failures["none.jpg"] == "it does not exist"


CODES = st.lists(
    st.builds(
        lambda centre, flips: centre ^ sum(1 << bit for bit in flips),
        st.sampled_from([0, 2**64 - 1, 0x0123456789ABCDEF]),
        st.sets(st.integers(0, 63), max_size=8),
    ),
    max_size=25,
)


@given(CODES, st.integers(0, LARGEST_DISTANCE))
def test_near_pairs_are_all_pairs_within_the_distance(codes: list[int], distance: int) -> None:
    first, second, bits = near_pairs(np.array(codes, np.uint64), distance)
    expected = [
        (i, j, (codes[i] ^ codes[j]).bit_count())
        for i in range(len(codes))
        for j in range(i + 1, len(codes))
        if (codes[i] ^ codes[j]).bit_count() <= distance
    ]
    assert list(zip(first.tolist(), second.tolist(), bits.tolist(), strict=True)) == expected


def test_distances_out_of_range_and_floods_of_pairs_are_refused() -> None:
    for distance in (-1, LARGEST_DISTANCE + 1):
        with pytest.raises(UsageError, match="out of range"):
            near_pairs(np.zeros(2, np.uint64), distance)
    with pytest.raises(UsageError, match="Too many pairs"):
        near_pairs(np.zeros(4000, np.uint64), 0)
