"""Parts as datasets: pictures of a list in its order, and targets as the label view leaves them."""

import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import curation
from curation.core.errors import (
    CurationWarning,
    ManifestError,
    MissingExtraError,
    MissingFileError,
    PresenceOnlyError,
    SourceError,
)
from curation.manifest.manifest import Manifest
from curation.sources.source import Source
from tests.made_source import as_table
from tests.manifest.conftest import CLASSES
from tests.small_world import SIZE, write_small_world

image = pytest.importorskip("PIL.Image")
torch = pytest.importorskip("torch")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for name in "1234":
        (tmp_path / "deep").mkdir(exist_ok=True)
        image.new("L", (100, 80), int(name)).save(tmp_path / "deep" / f"{name}.png")
    return tmp_path


def test_boxes_are_corners_and_labels_are_indices(manifest: Manifest, source: Source, photos: Path) -> None:
    dataset = manifest.dataset("closed", photos, {"toy": source})
    assert len(dataset) == 2
    assert len(repr(dataset)) < 80
    (picture, first), (_, second) = dataset
    assert (picture.mode, picture.size, picture.getpixel((0, 0))) == ("RGB", (100, 80), (1, 1, 1))
    assert first["boxes"].dtype == torch.float32
    # Of image 1: a cat, a difficult aeroplane, a cow, each written as x, y, w, h = k+1 … k+4.
    assert first["boxes"].tolist() == [[1, 2, 4, 6], [9, 10, 20, 22], [17, 18, 36, 38]]
    assert first["labels"].dtype == torch.int64
    assert (first["labels"].tolist(), first["ignore"].tolist()) == ([1, 2, 3], [False, True, False])
    assert first["area"].tolist() == [3 * 4, 11 * 12, 19 * 20]
    assert first["image_id"] == "toy:1"
    assert (second["labels"].tolist(), second["iscrowd"].tolist()) == ([-1, -1], [0, 1])
    empty = manifest.dataset("rest", photos, {"toy": source})[0][1]
    assert {name: tuple(column.shape) for name, column in empty.items() if name != "image_id"} == {
        "boxes": (0, 4),
        "labels": (0,),
        "area": (0,),
        "iscrowd": (0,),
        "ignore": (0,),
    }


def test_a_data_loader_takes_it_and_transforms_see_both(manifest: Manifest, source: Source, photos: Path) -> None:
    dataset = manifest.dataset("closed", photos, {"toy": source}, transforms=width_and_count)
    assert pickle.loads(pickle.dumps(dataset))[0] == (100, 3)  # noqa: S301
    [*batches] = torch.utils.data.DataLoader(dataset, batch_size=2, collate_fn=list)
    assert batches == [[(100, 3), (100, 2)]]


def width_and_count(picture: Any, target: Any) -> tuple[int, int]:
    return picture.width, len(target["labels"])


def test_coco_targets_name_images_as_the_file_does(
    manifest: Manifest, source: Source, photos: Path, make_manifest: Callable[..., Manifest]
) -> None:
    _, target = manifest.dataset("closed", photos, {"toy": source}, target="coco")[1]
    assert (target["image_id"], target["curation_id"]) == (2, "toy:2")
    assert target["annotations"][0] == {
        "image_id": 2,
        "bbox": [5, 6, 7, 8],
        "category_id": -1,
        "area": 56,
        "iscrowd": 0,
        "ignore": False,
    }
    repeated = make_manifest({"closed": ("toy:2", "toy:1", "toy:2")})
    again = repeated.dataset("closed", photos, {"toy": source}, target="coco")
    assert again[2][1] == again[0][1] == target
    texts = replace(source, images=replace(source.images, text_ids=source.images.native.astype(object)))
    with pytest.warns(CurationWarning, match="curation_id"):
        renumbered = repeated.dataset("closed", photos, {"toy": texts}, target="coco")
    assert [renumbered[line][1]["image_id"] for line in range(3)] == [1, 2, 1]


def test_a_class_label_is_the_one_class_of_an_image(
    make_manifest: Callable[..., Manifest], source: Source, photos: Path
) -> None:
    table = as_table(source)
    manifest = make_manifest({"open": ("toy:4", "toy:2"), "closed": ("toy:1",), "bare": ("toy:3",)})
    dataset = manifest.dataset("open", photos, {"toy": table})
    assert [dataset[line][1] for line in range(2)] == [4, -1]
    with pytest.raises(ManifestError, match="shows 3 classes") as several:
        manifest.dataset("closed", photos, {"toy": table})
    assert several.value.found == "'cat', 'aeroplane', 'cow'"
    with pytest.raises(ManifestError, match="shows 0 classes"):
        manifest.dataset("bare", photos, {"toy": source}, target="label")
    with pytest.raises(PresenceOnlyError):
        manifest.dataset("open", photos, {"toy": table}, target="boxes")
    # As the error advises.
    assert manifest.dataset("closed", photos, target="id")[0][1] == "toy:1"
    assert manifest.to_datasets("open", photos, {"toy": table})["label"][:] == [4, -1]


def test_hugging_face_gets_the_same_objects(
    manifest: Manifest, source: Source, photos: Path, make_manifest: Callable[..., Manifest]
) -> None:
    pytest.importorskip("datasets")
    made = manifest.to_datasets("closed", photos, {"toy": source})
    assert made["image_id"][:] == ["toy:1", "toy:2"]
    first = made[0]
    assert first["image"].size == (100, 80)
    assert first["objects"]["bbox"] == [[1, 2, 3, 4], [9, 10, 11, 12], [17, 18, 19, 20]]
    assert (first["objects"]["category"], first["objects"]["ignore"]) == ([1, 2, 3], [False, True, False])
    assert made[1]["objects"]["category"] == [-1, -1]
    category = made.features["objects"]["category"].feature
    assert [category.int2str(number) for number in range(5)] == ["background", "cat", "aeroplane", "cow", "smudge"]
    gap = (*CLASSES[:-1], msgspec.structs.replace(CLASSES[-1], index=90))
    numbered = make_manifest({"closed": ("toy:1",)}, classes=gap).to_datasets("closed", photos, {"toy": source})
    assert numbered.features["objects"]["category"].feature.dtype == "int64"


def test_what_is_missing_or_does_not_fit_is_named(
    manifest: Manifest, source: Source, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ManifestError, match="needs a source") as lacking:
        manifest.dataset("closed", photos)
    assert lacking.value.expected == "sources={'toy': PATH}"
    first = photos / "deep/1.png"
    turned = image.new("RGB", (80, 100))
    turned.getexif()[0x0112] = 6
    turned.save(first, exif=turned.getexif())
    dataset = manifest.dataset("closed", photos, {"toy": source})
    # Boxes are of the photo as viewers show it: so is the picture.
    assert dataset[0][0].size == (100, 80)
    image.new("RGB", (80, 100)).save(first)
    with pytest.raises(MissingFileError, match="The size of a photo differs") as wrong:
        dataset[0]
    assert (wrong.value.expected, wrong.value.found) == ("100 x 80", "80 x 100")
    first.write_bytes(b"no picture")
    with pytest.raises(MissingFileError, match="cannot be decoded"):
        dataset[0]
    first.unlink()
    with pytest.raises(MissingFileError, match="1 of 2"):
        manifest.dataset("closed", photos, {"toy": source})
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match="PyTorch"):
        manifest.dataset("rest", photos, {"toy": source})
    # As the error advises.
    assert len(manifest.dataset("rest", photos, {"toy": source}, target="coco")) == 2
    with pytest.raises(MissingExtraError, match="datasets"):
        manifest.to_datasets("rest", photos, {"toy": source})


def test_a_build_remembers_where_the_truth_lies(tmp_path: Path) -> None:
    world = write_small_world(tmp_path / "world", n_closed=4, n_wilderness=6)
    manifest = curation.build("elephant", {"voc2007-test": world.voc_root, "coco": world.coco_json}, ratios="1")
    (tmp_path / "photos").mkdir()
    for native in world.closed:
        image.new("RGB", (SIZE, SIZE)).save(tmp_path / "photos" / f"{native}.jpg")
    dataset = manifest.dataset("closed", tmp_path / "photos")
    counts = manifest.part("closed").boxes
    assert sum(len(target["labels"]) for _, target in dataset) == counts["known"] > 0
    assert sum(int(target["ignore"].sum()) for _, target in dataset) == counts["difficult"]
    world.coco_json.unlink()
    assert len(manifest.dataset("closed", tmp_path / "photos")) == 4
    world.voc_root.rename(tmp_path / "elsewhere")
    with pytest.raises(SourceError, match="no longer exists"):
        manifest.dataset("closed", tmp_path / "photos")
