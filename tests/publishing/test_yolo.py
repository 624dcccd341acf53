"""YOLO labels: shares that give the box back, classes from 0, nothing left out without a count."""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath

import msgspec
import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.core.errors import ExportError
from curation.manifest.manifest import Manifest
from curation.publishing.formats.plan import Plan, write_plan
from curation.publishing.formats.yolo import normalised, plan_yolo
from curation.sources.opening import open_path
from curation.sources.source import Source


def contents(plan: Plan) -> dict[str, str]:
    return {file.name: b"".join(file.chunks()).decode() for file in plan.files}


def boxes_of(text: str, width: int, height: int) -> np.ndarray:
    """Recompute pixel boxes from a label file, as a trainer does."""
    shares = np.array([[float(word) for word in line.split()[1:]] for line in text.splitlines()])
    size = np.array([width, height])
    extent = shares[:, 2:] * size
    return np.concatenate([shares[:, :2] * size - extent / 2, extent], axis=1)


@given(st.integers(1, 65_535), st.tuples(*[st.floats(0, 1)] * 4))
def test_twelve_decimals_keep_a_millionth_of_a_pixel(size: int, shares: tuple[float, ...]) -> None:
    x, y = sorted(shares[:2])[0] * size, sorted(shares[2:])[0] * size
    box = np.array([[x, y, abs(shares[0] - shares[1]) * size, abs(shares[2] - shares[3]) * size]])
    given_shares, cut, _ = normalised(box, np.array([[size, size]], np.int32))
    assert not cut.any()
    text = " ".join(f"{share:.12f}" for share in given_shares[0])
    assert np.abs(boxes_of(f"0 {text}\n", size, size) - box).max() < 1e-6


def test_boxes_are_cut_at_the_edge_and_lost_ones_counted(manifest: Manifest, sources: dict[str, Source]) -> None:
    boxes = sources["voc"].objects.boxes
    boxes[0] = (50, 20, 20, 20)  # image 000012 is 60 x 30
    boxes[1] = (60, 50, 5, 5)  # image 000009 is 50 x 40
    plan = plan_yolo(manifest, ["closed"], sources)
    files = contents(plan)
    assert np.allclose(boxes_of(files["labels/000012.txt"], 60, 30), [[50, 20, 10, 10]], atol=1e-9)
    assert files["labels/000009.txt"] == ""
    assert plan.changed == {"boxes_cut_at_the_image_edge": 1}
    assert plan.left_out == {"ignored": 1, "outside_the_image": 1}


def test_ignored_and_unknown_objects_are_left_out_by_count(manifest: Manifest, sources: dict[str, Source]) -> None:
    last = plan_yolo(manifest, ["wilderness"], sources)
    assert last.left_out == {"ignored": 1}
    assert last.counts == {"images": 2, "annotations": 2, "classes": 3}
    drop = plan_yolo(manifest, ["wilderness"], sources, unknown="drop")
    assert drop.left_out == {"ignored": 1, "unknown": 2}
    assert drop.counts == {"images": 2, "annotations": 0, "classes": 2}
    assert contents(drop)["labels/000000000100.txt"] == ""


def test_data_yaml_and_lists(manifest: Manifest, sources: dict[str, Source]) -> None:
    files = contents(plan_yolo(manifest, ["closed", "wilderness"], sources))
    assert files["data.yaml"] == (
        'path: .\ntrain: null\nval: null\ntest: ["closed.txt", "wilderness.txt"]\nnc: 3\nnames:\n'
        '  0: "cat"\n  1: "dog"\n  2: "unknown"\n'
    )
    assert files["closed.txt"] == "./images/000009.jpg\n./images/000012.jpg\n"
    assert [name for name in files if name.startswith("labels/")] == [
        "labels/000009.txt",
        "labels/000012.txt",
        "labels/000000000009.txt",
        "labels/000000000100.txt",
    ]


def test_a_hostile_class_name_stays_one_yaml_scalar(manifest: Manifest, sources: dict[str, Source]) -> None:
    name = 'x"\n!!python/object: {a: b} # '
    cat, *others = manifest.header.classes
    classes = (msgspec.structs.replace(cat, name=name, aliases=("cat",)), *others)
    hostile = Manifest(msgspec.structs.replace(manifest.header, classes=classes), manifest.lists)
    lines = contents(plan_yolo(hostile, ["closed"], sources))["data.yaml"].splitlines()
    assert len(lines) == 9
    assert json.loads(lines[6].removeprefix("  0: ")) == name


def test_missing_sizes_are_named_with_the_way_out(manifest: Manifest, sources: dict[str, Source]) -> None:
    sources["voc"].images.widths[1] = 0
    with pytest.raises(ExportError) as caught:
        plan_yolo(manifest, ["closed"], sources)
    assert "1 of 2 images" in caught.value.what
    assert caught.value.found == "voc2007:000012"
    assert "--photos" in caught.value.hint
    plan = plan_yolo(manifest, ["closed"], sources, sizes=np.array([[50, 40], [60, 30]], np.int32))
    assert plan.counts["annotations"] == 2


@pytest.mark.parametrize("name", ["../up.jpg", "/abs.jpg", "C:\\x.jpg", "line\nbreak.jpg", "a/../b.jpg"])
def test_hostile_photo_names_are_refused(name: str, manifest: Manifest, sources: dict[str, Source]) -> None:
    sources["voc"].images.file_names[0] = name
    with pytest.raises(ExportError, match="cannot become a file name"):
        plan_yolo(manifest, ["closed"], sources)


def read_as_ultralytics(folder: Path) -> dict[Path, list[list[float]]]:
    """Return the lines of the label file of each listed photo, found by the rules of ultralytics/data (8.3).

    `BaseDataset.get_img_files` reads the lists, `img2label_paths` finds the labels; a photo without one is background.
    """
    stated = yaml.safe_load((folder / "data.yaml").read_text(encoding="utf-8"))
    photos: list[str] = []
    for split in ("train", "val", "test"):
        lists = stated[split] if isinstance(stated[split], list) else [stated[split]]
        for path in [folder / name for name in lists if name]:
            lines = path.read_text(encoding="utf-8").strip().splitlines()
            parent = str(path.parent) + os.sep
            photos += [line.replace("./", parent) if line.startswith("./") else line for line in lines]
    formats = {"bmp", "dng", "jpeg", "jpg", "mpo", "png", "tif", "tiff", "webp", "pfm", "heic"}
    photos = [photo for photo in photos if photo.rpartition(".")[-1].lower() in formats]
    images, labels = f"{os.sep}images{os.sep}", f"{os.sep}labels{os.sep}"
    found = [labels.join(photo.rsplit(images, 1)).rsplit(".", 1)[0] + ".txt" for photo in photos]
    return {
        Path(photo): [[float(word) for word in line.split()] for line in Path(label).read_text().splitlines()]
        for photo, label in zip(photos, found, strict=True)
        if Path(label).is_file()
    }


FOLDERS = st.sampled_from(["images", "labels", "train", "Images", "images2", "my images", "bilder ü", "v1.0", "写真"])
STEMS = st.sampled_from(["0001", "images", "labels", "a b", "x.y", "ü", "1 (2)", ".hidden", "data"])
FILES = st.builds(
    lambda folders, stem, suffix: "/".join([*folders, stem + suffix]),
    st.lists(FOLDERS, max_size=3),
    STEMS,
    st.sampled_from([".jpg", ".JPG", ".png"]),
)


@given(names=st.lists(FILES, min_size=4, max_size=4))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ultralytics_finds_the_labels_of_every_photo(
    names: list[str], manifest: Manifest, sources: dict[str, Source], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two parts of two sources; photos lie in any folders, and may have equal names."""
    sources["voc"].images.file_names[:] = names[:2]
    coco = sources["coco"].images.file_names
    coco[:] = [f"other/{row}.jpg" for row in range(len(coco))]
    coco[sources["coco"].image_ids.tolist().index("coco:000000000009")] = names[2]
    coco[sources["coco"].image_ids.tolist().index("coco:000000000100")] = names[3]
    folder = tmp_path_factory.mktemp("images") / "out images"
    # images/a.jpg and a.jpg of one source would be one photo, and a.jpg and a.png have one label file.
    photos = [
        PurePosixPath(name) if "images" in name.split("/")[:-1] else PurePosixPath("images", name) for name in names
    ]
    places = [photo.with_suffix("") for photo in photos]
    if places[0] == places[1] or places[2] == places[3]:
        with pytest.raises(ExportError, match="Two photos would share one label file"):
            plan_yolo(manifest, ["closed", "wilderness"], sources)
        return
    plan = plan_yolo(manifest, ["closed", "wilderness"], sources)
    write_plan(plan, folder, single=False, summary={})
    found = read_as_ultralytics(folder)
    assert len(found) == plan.counts["images"] == 4
    assert len({*found}) == 4
    assert sum(map(len, found.values())) == plan.counts["annotations"]
    written = [path for path in folder.rglob("*.txt") if path.parent != folder]
    assert len(written) == 4
    # The number of its boxes tells a photo of one part from another.
    counts = [(photo.relative_to(folder).as_posix(), len(lines)) for photo, lines in found.items()]
    for name, count in zip(names, [1, 1, 0, 2], strict=True):
        assert any(path.endswith(name) and number == count for path, number in counts)


@pytest.mark.parametrize("name", ["v1./a.jpg", "a", "a.gif", "a.v2", "images/a"])
def test_a_photo_that_ultralytics_cannot_read_is_refused(
    name: str, manifest: Manifest, sources: dict[str, Source]
) -> None:
    sources["voc"].images.file_names[0] = name
    with pytest.raises(ExportError, match="Ultralytics") as caught:
        plan_yolo(manifest, ["closed"], sources)
    assert caught.value.hint == "--format coco"


def test_an_export_is_read_back_by_its_own_reader(
    manifest: Manifest, sources: dict[str, Source], tmp_path: Path
) -> None:
    image = pytest.importorskip("PIL.Image")
    sources["voc"].images.file_names[:] = ["train/images/a.jpg", "images/b.jpg"]
    write_plan(plan_yolo(manifest, ["closed"], sources), tmp_path / "out", single=False, summary={})
    for photo, size in (("train/images/a.jpg", (50, 40)), ("images/b.jpg", (60, 30))):
        (tmp_path / "out" / photo).parent.mkdir(parents=True, exist_ok=True)
        image.new("L", size).save(tmp_path / "out" / photo)
    back = open_path(tmp_path / "out", dataset="toy", part="test")
    assert back.images.file_names.tolist() == ["train/images/a.jpg", "images/b.jpg"]
    objects = back.require_objects("a test")
    assert np.bincount(objects.image, minlength=2).tolist() == [1, 1]
