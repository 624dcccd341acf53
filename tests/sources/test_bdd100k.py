"""BDD100K's own JSON: boxes as the data set's converter has them, but for the pixel that it adds."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import curation
from curation.core.errors import CurationError
from curation.sources.source import Source

FRAMES: list[dict[str, Any]] = [
    {
        "name": "b1c66a42-6f7d68ca.jpg",
        "attributes": {"weather": "overcast", "scene": "city street"},
        "timestamp": 10000,
        "labels": [
            {"id": "0", "category": "traffic sign", "manualShape": True, "attributes": {"occluded": False,
             "truncated": False, "trafficLightColor": "NA"}, "box2d": {"x1": 1000.5, "y1": 281.9, "x2": 1040.5,
             "y2": 326.9}},
            {"id": "1", "category": "car", "attributes": {"occluded": 1, "truncated": True, "crowd": True},
             "box2d": {"x1": 45.25, "y1": 254.5, "x2": 357.75, "y2": 487.5}},
            {"id": "2", "category": "drivable area", "poly2d": [{"vertices": [[1, 2], [3, 4]], "closed": True}]},
        ],
    },
    {"name": "b1c9c847-3bda4659.jpg", "labels": None, "size": {"width": 1280, "height": 720}},
]  # fmt: skip


def read(tmp_path: Path, content: Any) -> Source:
    path = tmp_path / "det_val.json"
    path.write_text(json.dumps(content))
    return curation.open_source("bdd100k", path)


@pytest.mark.parametrize("form", ["list", "frames"])
def test_frames_are_images_and_their_labels_objects(form: str, tmp_path: Path) -> None:
    source = read(tmp_path, FRAMES if form == "list" else {"frames": FRAMES, "config": {}})
    found = source.require_objects("the test")
    assert source.images.file_names.tolist() == [frame["name"] for frame in FRAMES]
    assert source.images.numbers.tolist() == [1, 2]
    assert source.images.widths.tolist() == [0, 1280]
    assert [source.categories.numbers[at] for at in found.category] == [10, 3]
    assert found.boxes.tolist() == [[1000.5, 281.9, 40, 45], [45.25, 254.5, 312.5, 233]]
    assert (found.occluded.tolist(), found.crowd.tolist()) == ([False, True], [False, True])
    assert source.dropped == {"labels without a box": 1}


@pytest.mark.parametrize(
    ("names", "numbers"), [(("person", "bike"), (1, 8)), (("pedestrian", "rider"), (1, 2)), (("van", "cat"), (2, 1))]
)
def test_classes_have_the_numbers_of_their_year(names: Any, numbers: Any, tmp_path: Path) -> None:
    frames = copy.deepcopy(FRAMES)
    for label, name in zip(frames[0]["labels"], names, strict=False):
        label["category"] = name
    source = read(tmp_path, frames)
    found = source.require_objects("the test")
    assert tuple(source.categories.numbers[at] for at in found.category) == numbers
    assert tuple(source.categories.names[at] for at in found.category) == names


DAMAGES: dict[str, Any] = {
    "no name": lambda frames: frames[0].pop("name"),
    "a number as name": lambda frames: frames[0].update(name=5),
    "labels in an object": lambda frames: frames[0].update(labels={"a": 1}),
    "no category": lambda frames: frames[0]["labels"][0].pop("category"),
    "a text as side": lambda frames: frames[0]["labels"][0]["box2d"].update(x1="5"),
    "a side too few": lambda frames: frames[0]["labels"][0]["box2d"].pop("y2"),
    "a list as box": lambda frames: frames[0]["labels"][0].update(box2d=[1, 2, 3, 4]),
    "corners swapped": lambda frames: frames[0]["labels"][0]["box2d"].update(x2=3),
    "no frame": lambda frames: frames.append(7),
    "a huge side": lambda frames: frames[0]["labels"][0]["box2d"].update(x2=1e300),
    "a size of texts": lambda frames: frames[0].update(size={"width": "a"}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_frames_are_one_error(damage: str, tmp_path: Path) -> None:
    frames = copy.deepcopy(FRAMES)
    DAMAGES[damage](frames)
    with pytest.raises(CurationError) as refused:
        read(tmp_path, frames)
    assert "det_val.json" in str(refused.value.where)


def test_a_cut_file_is_one_error(tmp_path: Path) -> None:
    text = json.dumps(FRAMES)
    for size in (400, 500, len(text) - 1):
        (tmp_path / "cut.json").write_text(text[:size])
        with pytest.raises(CurationError):
            curation.open_source("bdd100k", tmp_path / "cut.json")
