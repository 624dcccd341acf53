"""Sizes from photos: read where annotations lack them, never from outside the folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from curation.core.errors import ExportError, MissingFileError, PathEscapeError
from curation.manifest.manifest import Manifest
from curation.publishing.exporting import photo_sizes
from curation.sources.photos import size_of_photo
from curation.sources.source import Source


@pytest.fixture
def photos(tmp_path: Path, sources: dict[str, Source]) -> Path:
    """Photos for the first VOC image and the COCO images, whose sources now state no size."""
    (tmp_path / "photos").mkdir()
    for name, size in {"000009.jpg": (31, 17), "000000000009.jpg": (5, 6), "000000000100.jpg": (7, 8)}.items():
        Image.new("RGB", size).save(tmp_path / "photos" / name)
    sources["voc"].images.widths[0] = 0
    sources["coco"].images.heights[:] = 0
    return tmp_path / "photos"


def test_only_unknown_sizes_are_read(manifest: Manifest, sources: dict[str, Source], photos: Path) -> None:
    sizes = photo_sizes(manifest, ["closed", "wilderness"], sources, {"": photos})
    assert sizes.tolist() == [[31, 17], [60, 30], [5, 6], [7, 8]]


def test_a_folder_may_serve_one_source(manifest: Manifest, sources: dict[str, Source], photos: Path) -> None:
    sizes = photo_sizes(manifest, ["closed", "wilderness"], sources, {"coco": photos})
    assert sizes.tolist() == [[0, 40], [60, 30], [5, 6], [7, 8]]


def test_missing_broken_and_escaping_photos(manifest: Manifest, sources: dict[str, Source], photos: Path) -> None:
    (photos / "000009.jpg").write_bytes(b"no photo")
    with pytest.raises(ExportError, match="cannot be read"):
        photo_sizes(manifest, ["closed"], sources, {"": photos})
    (photos / "000009.jpg").unlink()
    with pytest.raises(MissingFileError):
        photo_sizes(manifest, ["closed"], sources, {"": photos})
    sources["voc"].images.file_names[0] = "../secret.jpg"
    with pytest.raises(PathEscapeError):
        photo_sizes(manifest, ["closed"], sources, {"": photos})


def test_a_photo_that_would_unpack_to_gigabytes_is_only_measured(tmp_path: Path) -> None:
    # A PNG header that states 100,000 x 100,000 pixels, with no pixel behind it.
    import struct
    import zlib

    head = b"IHDR" + struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    data += struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
    (tmp_path / "bomb.png").write_bytes(data)
    assert size_of_photo(tmp_path / "bomb.png") == (100_000, 100_000)
