"""Random small OOD splits, and their conversion to files and columns."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from curation.benchmarks.findmeifyoucan.detections import OodDetections
from curation.evaluation.problem import GroundTruth
from tests.evaluation.ood_reference import EXAMPLE, Found, OodWorld

# Few values, so that ties and IoU of exactly one half are the rule.
_SIDES = st.sampled_from((2, 4, 8))
_PLACES = st.sampled_from((0, 1, 2, 4))
_BOXES = st.tuples(_PLACES, _PLACES, _SIDES, _SIDES)
_CONFIDENCES = st.sampled_from((0.3, 0.3004, 0.5, 0.5005, 0.9))
SCORES = st.sampled_from((-3.0, -1.0, 0.0, 0.5, 1.0, 2.0))


@st.composite
def ood_worlds(draw: st.DrawFn) -> OodWorld:
    n = draw(st.integers(1, 5))
    objects = {image: draw(st.lists(_BOXES, max_size=3)) for image in range(1, n + 1)}
    found = {}
    for image in draw(st.sets(st.integers(1, n))):
        boxes = draw(st.lists(st.one_of(_BOXES, st.sampled_from(objects[image] or [(0, 0, 2, 2)])), max_size=4))
        found[image] = [Found((x, y, x + w, y + h), draw(_CONFIDENCES), draw(SCORES)) for x, y, w, h in boxes]
    ids = draw(st.lists(SCORES, min_size=1, max_size=45))
    return OodWorld({k: [tuple(map(float, b)) for b in v] for k, v in objects.items()}, found, ids)  # type: ignore[misc]


def columns(world: OodWorld) -> tuple[GroundTruth, OodDetections]:
    images = sorted(world.objects)
    boxes = [(k, box) for k, image in enumerate(images) for box in world.objects[image]]
    rows = [(k, one) for k, image in enumerate(images) for one in world.found.get(image, [])]
    m, d = len(boxes), len(rows)
    truth = GroundTruth(
        image_numbers=np.array(images, np.int64),
        classes=(),
        class_numbers=(),
        image=np.array([k for k, _ in boxes], np.int32),
        label=np.full(m, -1, np.int32),
        boxes=np.array([box for _, box in boxes], np.float64).reshape(m, 4),
        crowd=np.zeros(m, bool),
        difficult=np.zeros(m, bool),
        areas=np.ones(m),
    )
    detections = OodDetections(
        np.array([k for k, _ in rows], np.int32),
        np.array([one.box for _, one in rows], np.float64).reshape(d, 4),
        np.array([one.confidence for _, one in rows], np.float64),
        np.zeros(d, bool),
        {"s": np.array([one.score for _, one in rows], np.float64)},
    )
    return truth, detections


def plain(image: int) -> int:
    return image


def hexadecimal(image: int) -> str:
    return f"{0xA0 + image:016x}"


def truth_content(world: OodWorld, name: Callable[[int], int | str] = plain) -> dict[str, Any]:
    images = [
        {"id": name(image), "file_name": f"{name(image)}.jpg", "width": 400, "height": 300} for image in world.objects
    ]
    annotations = [
        {"image_id": name(image), "bbox": list(box), "category_id": 7, "iscrowd": int(image == 4)}
        for image, boxes in world.objects.items()
        for box in boxes
    ]
    numbered = [{"id": k, **one} for k, one in enumerate(annotations, 1)]
    return {"images": images, "annotations": numbered, "categories": [{"id": 7, "name": "fox"}]}


def results_content(world: OodWorld, name: Callable[[int], int | str] = plain) -> list[dict[str, Any]]:
    return [
        {"image_id": name(image), "bbox_xyxy": list(one.box), "score": one.confidence, "ood_score": one.score}
        for image, found in world.found.items()
        for one in found
    ]


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def example_files(folder: Path, name: Callable[[int], int | str] = plain) -> dict[str, Path]:
    return {
        "truth": write(folder / "truth.json", truth_content(EXAMPLE, name)),
        "detections": write(folder / "detections.json", results_content(EXAMPLE, name)),
        "id": write(folder / "id.json", {"scores": EXAMPLE.ids}),
    }
