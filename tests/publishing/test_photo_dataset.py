"""Rows of a table with photos of one's own disk."""

from __future__ import annotations

import doctest
import pickle
from pathlib import Path
from typing import Any

import pytest

from curation.errors import MissingFileError
from curation.publishing import photos as photo_module
from curation.publishing.photos import PhotoDataset

image = pytest.importorskip("PIL.Image")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    (tmp_path / "deep" / "val").mkdir(parents=True)
    image.new("RGB", (4, 3), "red").save(tmp_path / "deep" / "val" / "000000000009.png")
    image.new("RGB", (5, 3), "blue").save(tmp_path / "renamed.png")
    return tmp_path


ROWS: list[dict[str, Any]] = [
    {"image_id": "coco:000000000009", "file_name": None, "objects": []},
    {"image_id": "voc2007:000012", "file_name": "renamed.png", "objects": [{"category_id": 1}]},
]


def width(picture: Any, row: Any) -> tuple[int, str]:
    return picture.width, row["image_id"]


def test_the_example_of_the_docstring_runs() -> None:
    assert doctest.testmod(photo_module).failed == 0
    assert doctest.testmod(photo_module).attempted > 5


def test_photos_are_found_by_file_name_or_id_anywhere_below(photos: Path) -> None:
    dataset = PhotoDataset(ROWS, photos)
    assert len(dataset) == 2
    picture, row = dataset[1]
    assert (picture.size, row) == ((5, 3), ROWS[1])
    assert [dataset[place][0].size for place in range(2)] == [(4, 3), (5, 3)]


def test_each_namespace_can_have_its_folder(photos: Path) -> None:
    dataset = PhotoDataset(ROWS, {"coco": photos / "deep", "voc2007": photos}, width)
    assert [dataset[0], dataset[1]] == [(4, "coco:000000000009"), (5, "voc2007:000012")]
    with pytest.raises(MissingFileError, match="1 of 2 photos"):
        PhotoDataset(ROWS, {"coco": photos / "deep"})


def test_missing_photos_are_counted_and_named(photos: Path) -> None:
    rows = [{"image_id": f"coco:{one:012d}"} for one in range(9, 20)]
    with pytest.raises(MissingFileError, match="10 of 11 photos") as refused:
        PhotoDataset(rows, photos)
    assert "coco:000000000010" in (refused.value.found or "")
    with pytest.raises(MissingFileError, match="folder"):
        PhotoDataset(ROWS, photos / "absent")


def test_no_id_opens_what_lies_outside(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    image.new("RGB", (1, 1)).save(outside / "x.png")
    for name in (f"../{outside.name}/x.png", str(outside / "x.png")):
        with pytest.raises(MissingFileError, match="1 of 1 photos"):
            PhotoDataset([{"image_id": "coco:1", "file_name": name}], photos)


def test_a_broken_photo_is_told_when_it_is_asked_for(photos: Path) -> None:
    (photos / "renamed.png").write_bytes(b"no picture")
    dataset = PhotoDataset(ROWS, photos)
    assert dataset[0][0].size == (4, 3)
    with pytest.raises(MissingFileError, match="cannot be decoded"):
        dataset[1]


def test_it_can_be_sent_to_another_process(photos: Path) -> None:
    dataset = pickle.loads(pickle.dumps(PhotoDataset(ROWS, photos, width)))  # noqa: S301
    assert dataset[1] == (5, "voc2007:000012")


def test_a_data_loader_takes_it(photos: Path) -> None:
    torch = pytest.importorskip("torch")
    loader = torch.utils.data.DataLoader(PhotoDataset(ROWS, photos, width), batch_size=2, collate_fn=list)
    assert list(loader) == [[(4, "coco:000000000009"), (5, "voc2007:000012")]]
