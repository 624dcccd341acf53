"""Plain COCO AP: hotcoco against pycocotools and others, hand-checked cases, and real boxes."""

import contextlib
import copy
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.evaluation import coco_precision as adapter
from curation.evaluation.problem import Detections, GroundTruth
from curation.extensions.detection_ap.coco_summary import STATISTICS, coco_average_precision
from tests.evaluation.worlds import detections_of_rows as detections_of
from tests.evaluation.worlds import truth_of_rows
from tests.real_files import real_files


def truth_of(
    objects: list[tuple[int, int, list[float], bool]], *, n_images: int, classes: tuple[str, ...]
) -> GroundTruth:
    """Rows of (image, label, box, crowd)."""
    rows = sorted(objects, key=lambda row: row[0])
    return truth_of_rows(
        rows,
        n_images,
        classes,
        image_numbers=np.arange(n_images, dtype=np.int64) * 7,
        class_numbers=tuple(range(3, 3 + len(classes))),
        crowd=np.array([row[3] for row in rows], bool),
    )


BOX = [10.0, 10.0, 50.0, 40.0]
HAND_TRUTH = truth_of(
    [(0, 0, BOX, False), (1, 0, BOX, False), (1, 1, [0.0, 0.0, 20.0, 20.0], False)],
    n_images=3,
    classes=("cat", "dog", "cow"),
)


@pytest.fixture(params=["hotcoco", "pycocotools"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have one of the two libraries compute."""
    if request.param == "hotcoco":
        pytest.importorskip("hotcoco", reason="hotcoco is not installed")
    else:
        monkeypatch.setitem(sys.modules, "hotcoco", None)
    return str(request.param)


def test_hand_checked_case(engine: str) -> None:
    """One of two cats found exactly (plus a false one above it), the dog found exactly, no cow anywhere.

    Cat: precision 1/2 up to recall 1/2, i.e. at 51 of the 101 recall points: AP = 51 * 0.5 / 101. Dog: AP 1.
    """
    detections = detections_of([(2, 0, BOX, 0.9), (0, 0, BOX, 0.8), (1, 1, [0.0, 0.0, 20.0, 20.0], 0.7)])
    result = coco_average_precision(HAND_TRUTH, detections)
    cat = 51 * 0.5 / 101
    assert result["per_class"] == {"cat": pytest.approx(cat, abs=1e-12), "dog": pytest.approx(1.0), "cow": None}
    assert result["AP"] == pytest.approx((cat + 1) / 2, abs=1e-12)
    assert result["AP50"] == result["AP75"] == pytest.approx(result["AP"], abs=1e-12)
    assert result["APs"] == pytest.approx(1.0)
    assert result["APm"] == pytest.approx(cat, abs=1e-12)
    assert result["APl"] is None
    assert result["AR1"] == result["AR100"] == pytest.approx((0.5 + 1) / 2)
    assert result["undefined"] == {
        "APl": "no object above 96^2 pixels, crowd aside",
        "ARl": "no object above 96^2 pixels, crowd aside",
        "cow": "no object of this class, crowd aside",
    }
    assert (result["engine"], result["n_images"], result["n_objects"]) == (engine, 3, 3)


@pytest.mark.usefixtures("engine")
def test_no_objects_leave_everything_undefined() -> None:
    empty = truth_of([], n_images=2, classes=("cat",))
    result = coco_average_precision(empty, detections_of([(0, 0, BOX, 0.5)]))
    assert [result[name] for name in STATISTICS] == [None] * 12
    assert set(result["undefined"]) == {*STATISTICS, "cat"}


@pytest.mark.usefixtures("engine")
def test_unknown_objects_are_left_out_and_counted() -> None:
    rows = [(0, 0, BOX, False), (0, -1, [100.0, 100.0, 50.0, 50.0], False)]
    result = coco_average_precision(truth_of(rows, n_images=1, classes=("cat",)), detections_of([(0, 0, BOX, 0.8)]))
    assert (result["AP"], result["left_out"], result["n_objects"]) == (pytest.approx(1.0), 1, 1)


boxes = st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(1, 120), st.integers(1, 120)).map(
    lambda box: [float(side) for side in box]
)
objects = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), boxes, st.booleans()), max_size=12)
found = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), boxes, st.sampled_from([0.1, 0.3, 0.5, 0.5000001, 0.9])),
    max_size=25,
)


@settings(max_examples=60)
@given(objects, found, st.integers(0, 10))
def test_libraries_agree_and_change_nothing(rows: list[Any], more: list[Any], copies: int) -> None:
    truth = truth_of(rows, n_images=4, classes=("a", "b", "c"))
    exact = [(row[0], row[1], row[2], 0.7) for row in rows[:copies]]
    detections = detections_of(exact + more)
    before = copy.deepcopy((truth, detections))
    result = coco_average_precision(truth, detections)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "hotcoco", None)
        assert coco_average_precision(truth, detections) == result | {"engine": "pycocotools"}
    for name in GroundTruth.__slots__:
        np.testing.assert_array_equal(getattr(truth, name), getattr(before[0], name))
    for name in ("image", "label", "boxes", "scores"):
        np.testing.assert_array_equal(getattr(detections, name), getattr(before[1], name))
    if detections_of(exact).scores.size == len(rows) and not more and any(not row[3] for row in rows):
        assert result["AP"] is not None


def random_world(seed: int) -> tuple[GroundTruth, Detections]:
    """Return a world whose boxes are, by seed, whole numbers with empty ones, on the edges of area ranges, or any.

    Every second one has few scores, so that most are ties; every seventh more than 100 detections an image and class.
    """
    rng = np.random.default_rng(seed)
    n_images, n_classes, n_objects, n_found = (int(rng.integers(*ends)) for ends in ((1, 9), (1, 5), (0, 60), (0, 200)))
    if seed % 7 == 0:
        n_images, n_found = 2, n_found + 700
    style = seed % 4

    def boxes(n: int) -> Any:
        if style == 0:
            return np.hstack([rng.integers(0, 40, (n, 2)), rng.integers(0, 60, (n, 2))]).astype(float)
        if style == 1:
            sides = rng.choice([16, 32, np.nextafter(32, 33), 96, 100, 1e5], (n, 2))
            return np.hstack([rng.integers(0, 10, (n, 2)) * 16.0, sides])
        return np.hstack([rng.uniform(-50, 200, (n, 2)), np.exp(rng.uniform(-3, 7, (n, 2)))]).round(
            2 if style == 2 else 9
        )

    objects = boxes(n_objects)
    areas = objects[:, 2] * objects[:, 3] * (rng.uniform(0.3, 1, n_objects) if style > 1 else 1)
    edges = rng.choice([0, np.nextafter(1024, 0), 1024, 9216, 1e10, 1e10 + 1], n_objects)
    truth = GroundTruth(
        image_numbers=np.arange(n_images, dtype=np.int64),
        classes=tuple(f"class {number}" for number in range(n_classes)),
        class_numbers=tuple(range(n_classes)),
        image=np.sort(rng.integers(0, n_images, n_objects)).astype(np.int32),
        label=rng.integers(0, n_classes, n_objects).astype(np.int32),
        boxes=objects,
        crowd=rng.random(n_objects) < rng.choice([0, 0.1, 0.4]),
        difficult=np.zeros(n_objects, bool),
        areas=np.where(rng.random(n_objects) < 0.3, edges, areas) if style == 1 else areas,
    )
    image, label = rng.integers(0, n_images, n_found), rng.integers(0, n_classes, n_found)
    found = boxes(n_found)
    if n_objects:
        near, of = rng.random(n_found) < 0.6, rng.integers(0, n_objects, n_found)
        moved = objects[of] + rng.normal(0, 0.1, (n_found, 4)) * objects[of][:, [2, 3, 2, 3]]
        moved[:, 2:] = np.maximum(moved[:, 2:], 0)
        found = np.where(near[:, None], moved.round(0) if style == 0 else moved, found)
        image, label = np.where(near, truth.image[of], image), np.where(near, truth.label[of], label)
    scores = rng.choice([0, 0.1, 0.5, 0.5000001, 1], n_found) if seed % 2 else rng.random(n_found)
    return truth, Detections(image.astype(np.int32), label.astype(np.int32), found, scores)


@pytest.mark.parametrize("worlds", [range(start, start + 50) for start in range(0, 200, 50)], ids=str)
def test_hotcoco_has_the_arrays_of_pycocotools_to_the_last_bit(worlds: range) -> None:
    pytest.importorskip("hotcoco", reason="hotcoco is not installed")
    for seed in worlds:
        truth, detections = random_world(seed)
        arrays = []
        for make in (adapter._in_hotcoco, adapter._in_pycocotools):
            with contextlib.redirect_stdout(io.StringIO()):
                evaluation = make(truth, detections)
                if seed % 3 == 0:
                    evaluation.params.maxDets = [1, 3, 7]
                    evaluation.params.areaRng = [[0, 1e10], [0, 400], [400, 1024], [1024, 1e5]]
                evaluation.evaluate()
                evaluation.accumulate()
            arrays.append([np.asarray(evaluation.eval[name]) for name in ("precision", "recall", "scores")])
        for ours, theirs in zip(*arrays, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=f"world {seed}", strict=True)


def test_the_twelve_numbers_are_those_that_ultrafast_pycocotools_finds_in_files(tmp_path: Path) -> None:
    pytest.importorskip("ultrafast_pycocotools", reason="ultrafast-pycocotools has no wheel for this machine")
    from ultrafast_pycocotools.coco import COCO
    from ultrafast_pycocotools.cocoeval import COCOeval

    for seed in range(40):
        truth, detections = random_world(seed)
        if not len(detections):
            continue
        keys = ("id", "image_id", "category_id", "bbox", "area", "iscrowd")
        columns = (truth.image, truth.label, truth.boxes, truth.areas, truth.crowd.astype(int))
        rows = zip(range(1, len(truth.image) + 1), *(column.tolist() for column in columns), strict=True)
        content = {
            "images": [{"id": number} for number in range(len(truth.image_numbers))],
            "categories": [{"id": number, "name": name} for number, name in enumerate(truth.classes)],
            "annotations": [dict(zip(keys, row, strict=True)) for row in rows],
        }
        found = (detections.image, detections.label, detections.boxes, detections.scores)
        records = [
            dict(zip(("image_id", "category_id", "bbox", "score"), row, strict=True))
            for row in zip(*(column.tolist() for column in found), strict=True)
        ]
        (tmp_path / "truth.json").write_text(json.dumps(content))
        (tmp_path / "results.json").write_text(json.dumps(records))
        with contextlib.redirect_stdout(io.StringIO()):
            annotated = COCO(str(tmp_path / "truth.json"))
            evaluation = COCOeval(annotated, annotated.loadRes(str(tmp_path / "results.json")), "bbox")
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
        ours = coco_average_precision(truth, detections)
        numbers = [-1 if ours[name] is None else ours[name] for name in STATISTICS]
        np.testing.assert_array_equal(numbers, evaluation.stats[:12], err_msg=f"world {seed}")


@real_files("coco")
def check_real_boxes_of_val2017(shared: Path) -> None:
    """Perturbed boxes score between 0 and AP50; the objects themselves, given as detections, score 1."""
    content = json.loads((shared / "data/coco/instances_val2017_rebuilt.json").read_text(encoding="utf-8"))
    numbers = sorted(image["id"] for image in content["images"])[:600]
    position = {number: index for index, number in enumerate(numbers)}
    names = {category["id"]: index for index, category in enumerate(content["categories"])}
    rows = [
        (position[row["image_id"]], names[row["category_id"]], row["bbox"], False)
        for row in content["annotations"]
        if row["image_id"] in position
    ]
    classes = tuple(category["name"] for category in content["categories"])
    truth = truth_of(rows, n_images=len(numbers), classes=classes)
    generator = np.random.Generator(np.random.PCG64(5))
    noise = truth.boxes * (1 + generator.normal(0, 0.1, truth.boxes.shape))
    detections = Detections(truth.image, truth.label, np.abs(noise), generator.random(len(noise)))
    result = coco_average_precision(truth, detections)
    assert 0.1 < result["AP"] < result["AP50"] <= 1
    perfect = Detections(truth.image, truth.label, truth.boxes, detections.scores)
    # More than 100 objects of one class in an image are cut by COCO's own limit.
    assert coco_average_precision(truth, perfect)["AP"] == pytest.approx(1, abs=0.02)
