"""A part of a manifest with the photos on the user's disk, as data loaders take it."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from curation.core.errors import MissingFileError
from tests.extensions.audit.benchmark_world import World

image = pytest.importorskip("PIL.Image")


@pytest.fixture
def photos(tmp_path: Path) -> dict[str, Path]:
    manifest = World().manifest
    for place, one in enumerate(manifest.ids("t1-train")):
        namespace, _, native = one.partition(":")
        (tmp_path / namespace / "deep").mkdir(parents=True, exist_ok=True)
        image.new("RGB", (4 + place, 3), "red").save(tmp_path / namespace / "deep" / f"{native}.png")
    return {folder.name: folder for folder in tmp_path.iterdir()}


def width(picture: Any, image_id: str) -> tuple[int, str]:
    return picture.width, image_id


def test_items_are_the_photos_of_the_list_in_its_order(photos: dict[str, Path]) -> None:
    manifest = World().manifest
    dataset, ids = manifest.dataset("t1-train", photos), manifest.ids("t1-train")
    assert len(dataset) == len(ids)
    assert len(repr(dataset)) < 80
    assert [dataset[place][1] for place in range(len(ids))] == [*ids]
    assert dataset[1][0].size == (5, 3)
    sent = pickle.loads(pickle.dumps(manifest.dataset("t1-train", photos, width)))  # noqa: S301
    assert sent[1] == (5, ids[1])


def test_a_photo_that_is_missing_or_broken_is_named(photos: dict[str, Path]) -> None:
    manifest = World().manifest
    first = manifest.photos("t1-train", photos)[manifest.ids("t1-train")[0]]
    first.write_bytes(b"no picture")
    with pytest.raises(MissingFileError, match="cannot be decoded"):
        manifest.dataset("t1-train", photos)[0]
    first.unlink()
    with pytest.raises(MissingFileError, match="1 of"):
        manifest.dataset("t1-train", photos)


def test_a_data_loader_takes_it(photos: dict[str, Path]) -> None:
    torch = pytest.importorskip("torch")
    dataset = World().manifest.dataset("t1-train", photos, width)
    [*batches] = torch.utils.data.DataLoader(dataset, batch_size=len(dataset), collate_fn=list)
    assert batches == [[dataset[place] for place in range(len(dataset))]]
