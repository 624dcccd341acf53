"""Photos by the ids of images, anywhere below a folder or below one folder for each namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.errors import MissingFileError
from curation.sources.photos import photos_of_ids

IDS = ["coco:000000000009", "voc2007:000012"]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    (tmp_path / "deep" / "val").mkdir(parents=True)
    (tmp_path / "deep" / "val" / "000000000009.png").touch()
    (tmp_path / "000012.png").touch()
    return tmp_path


def test_photos_are_found_by_file_name_or_id_anywhere_below(photos: Path) -> None:
    expected = [photos / "deep/val/000000000009.png", photos / "000012.png"]
    assert list(photos_of_ids(IDS, photos).values()) == expected
    folders = {"coco": photos / "deep", "voc2007": photos}
    assert list(photos_of_ids(IDS, folders).values()) == expected
    with pytest.raises(MissingFileError, match="1 of 2 photos"):
        photos_of_ids(IDS, {"coco": photos / "deep"})


def test_missing_photos_are_counted_and_named(photos: Path) -> None:
    with pytest.raises(MissingFileError, match="10 of 11 photos") as refused:
        photos_of_ids([f"coco:{number:012d}" for number in range(9, 20)], photos)
    assert "coco:000000000010" in (refused.value.found or "")
    with pytest.raises(MissingFileError, match="folder"):
        photos_of_ids(IDS, photos / "absent")


def test_no_id_opens_what_lies_outside(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x.png").touch()
    for name in (f"../{outside.name}/x.png", str(outside / "x.png")):
        with pytest.raises(MissingFileError, match="1 of 1 photos"):
            photos_of_ids([f"coco:{name}"], photos)
