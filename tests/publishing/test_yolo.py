"""YOLO labels: shares that give the box back, classes from 0, nothing left out without a count."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import ExportError
from curation.manifest.manifest import Manifest
from curation.publishing.formats.plan import Plan
from curation.publishing.formats.yolo import normalised, plan_yolo
from curation.sources.source import Source


def contents(plan: Plan) -> dict[str, str]:
    return {file.name: b"".join(file.chunks()).decode() for file in plan.files}


def boxes_of(text: str, width: int, height: int) -> np.ndarray:
    """Recompute pixel boxes from a label file, as a trainer does."""
    shares = np.array([[float(word) for word in line.split()[1:]] for line in text.splitlines()])
    size = np.array([width, height])
    extent = shares[:, 2:] * size
    return np.concatenate([shares[:, :2] * size - extent / 2, extent], axis=1)


def test_labels_give_the_boxes_back(manifest: Manifest, sources: dict[str, Source]) -> None:
    files = contents(plan_yolo(manifest, ["wilderness"], sources))
    assert (
        np.abs(
            boxes_of(files["labels/000000000100.txt"], 640, 480) - [[0.1, 1 / 3, 10.25, 0.001], [2.5, 3.5, 9, 9]]
        ).max()
        < 1e-6
    )
    assert {line.split()[0] for line in files["labels/000000000100.txt"].splitlines()} == {"2"}


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


def test_photos_that_would_share_a_label_file_are_refused(manifest: Manifest, sources: dict[str, Source]) -> None:
    sources["voc"].images.file_names[0] = "000012.png"
    with pytest.raises(ExportError, match="share one label file") as caught:
        plan_yolo(manifest, ["closed"], sources)
    assert caught.value.found == "voc2007:000009 and voc2007:000012"
