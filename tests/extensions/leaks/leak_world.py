"""Pictures with the spectrum of photos, a benchmark of some, and a corpus that holds altered copies of it."""

import hashlib
import io
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from curation.manifest.header import ClassEntry
from tests.toy_manifests import write_toy

SIDE = 96


def resized(picture: Image.Image, name: str) -> bytes:
    """Return the picture at half its width and height."""
    width, height = picture.size
    return jpeg(picture.resize((max(1, width // 2), max(1, height // 2))), 85)


def cropped(picture: Image.Image, name: str) -> bytes:
    """Return 90 % of the width and of the height, at a position that the name decides."""
    sizes = [max(1, round(side * 0.9)) for side in picture.size]
    digest = hashlib.sha256(f"leaks, crop of {name}".encode()).digest()
    left, top = (byte * (extent - size) // 255 for byte, extent, size in zip(digest, picture.size, sizes, strict=False))
    return jpeg(picture.crop((left, top, left + sizes[0], top + sizes[1])), 85)


ALTERATIONS: Mapping[str, Callable[[Image.Image, str], bytes]] = {
    "resized": resized,
    "re-encoded": lambda picture, name: jpeg(picture, 50),
    "cropped": cropped,
    "mirrored": lambda picture, name: jpeg(picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT), 85),
}
COPIES = ("same", *ALTERATIONS)
"""What becomes of the first benchmark images in the corpus, one after the other."""


def picture(seed: int, width: int = SIDE, height: int = SIDE) -> Image.Image:
    """Return a picture whose amplitude falls with the frequency, as that of photos does (Field, JOSA A 4, 1987)."""
    rng = np.random.default_rng(seed)
    across, down = np.fft.rfftfreq(width), np.fft.fftfreq(height)[:, None]
    amplitude = 1 / np.maximum(np.hypot(across, down), 1 / max(width, height)) ** 1.2
    waves = rng.standard_normal((2, 3, height, width // 2 + 1))
    # The channels of a photo mostly go together.
    waves += 2 * waves[:, :1]
    field = np.fft.irfft2((waves[0] + 1j * waves[1]) * amplitude, s=(height, width))
    field = (field - field.mean()) / field.std() * 45 + 120
    return Image.fromarray(np.clip(np.rint(field), 0, 255).astype(np.uint8).transpose(1, 2, 0))


def jpeg(image: Image.Image, quality: int = 92) -> bytes:
    """Return a picture as JPEG."""
    made = io.BytesIO()
    image.save(made, "JPEG", quality=quality)
    return made.getvalue()


def write_benchmark(folder: Path, n: int) -> tuple[str, dict[str, bytes]]:
    """Write a manifest of n images, half of them in each of two parts, and their photos; return it and their bytes."""
    photos = {f"coco:{number:012d}": jpeg(picture(number)) for number in range(n)}
    (folder / "photos").mkdir(parents=True)
    for name, data in photos.items():
        (folder / "photos" / f"{name[5:]}.jpg").write_bytes(data)
    ids = tuple(photos)
    lists = {"one": ids[: n // 2], "two": ids[n // 2 :]}
    manifest = write_toy(
        folder / "manifest", lists, [ClassEntry(name="cat", role="known", index=0)], name="toy/leaks", taxonomy="OWOD"
    )
    return manifest, photos


def copies_of(photos: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return a copy of each photo by the name of what was done to it and its id, ways in turn."""
    made = {}
    for number, (name, data) in enumerate(photos.items()):
        how = COPIES[number % len(COPIES)]
        native = name.partition(":")[2]
        altered = data if how == "same" else ALTERATIONS[how](Image.open(io.BytesIO(data)).convert("RGB"), name)
        made[f"{how}-{native}.jpg"] = altered
    return made


def write_tar(path: Path, members: Iterable[tuple[str, bytes]]) -> None:
    """Write a tar shard."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
