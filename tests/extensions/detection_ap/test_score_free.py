"""Detections without scores: golden numbers of two rules, the range of AP against enumeration, refusals, open sets."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.core.errors import PredictionError
from curation.evaluation.problem import Detections, GroundTruth
from curation.evaluation.readers import Policy
from curation.extensions.detection_ap import score_free
from curation.extensions.detection_ap.coco_summary import coco_average_precision
from tests.evaluation.worlds import truth_of_rows
from tests.real_files import real_files

RULES = {"greedy": "score-free", "best": "score-free-best", "in order": "score-free-in-order"}
CLASSES = ({"id": 1, "name": "cat"}, {"id": 2, "name": "dog"})


def written(folder: Path, truth: Any, results: Any) -> dict[str, Path]:
    for name, content in (("truth", truth), ("results", results)):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return {"truth": folder / "truth.json", "detections": folder / "results.json"}


def small(*boxes: list[float], crowd: int = 0) -> dict[str, Any]:
    return {
        "images": [{"id": 1, "width": 400, "height": 200}, {"id": 2, "width": 400, "height": 200}],
        "categories": list(CLASSES),
        "annotations": [
            {"id": number, "image_id": 1, "category_id": 1, "bbox": box, "iscrowd": int(number <= crowd)}
            for number, box in enumerate(boxes, start=1)
        ],
    }


def box_of(box: list[float], image: int = 1, category: int = 1, **more: Any) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "bbox": box, **more}


@real_files("held")
@pytest.mark.parametrize("rule", RULES)
def check_the_golden_numbers_of_each_rule(rule: str, shared: Path) -> None:
    folder = shared / "golden" / "score_free"
    whole = json.loads((folder / "prf_expected.json").read_text(encoding="utf-8"))
    expected = whole[rule]
    result = curation.evaluate.coco(
        truth=folder / "prf_truth.json", detections=folder / "prf_results.json", variant=RULES[rule]
    )
    for key in ("precision", "recall", "F1"):
        assert result[key] == pytest.approx(100 * expected["all"][key], abs=1e-9)
    assert result["F1_classes"] == pytest.approx(100 * expected["mean_F1_of_classes"], abs=1e-9)
    table = result.table("score_free").set_index("class")
    for name, of_class in expected["by_class"].items():
        row = table.loc[name]
        assert (row["TP"], row["truths"], row["boxes"]) == tuple(of_class[key] for key in ("true", "truths", "boxes"))
        for key in ("precision", "recall", "F1"):
            value = of_class[key]
            assert row[key] == pytest.approx(np.nan if value is None else 100 * value, abs=1e-9, nan_ok=True)
        for end, value in (("lowest", whole["AP50_over_all_orders"]["lowest"][name]),
                           ("highest", whole["AP50_over_all_orders"]["highest"][name])):  # fmt: skip
            assert row[f"AP50_{end}"] == pytest.approx(np.nan if value is None else 100 * value, abs=1e-9, nan_ok=True)
    settings = result.data["variants"][RULES[rule]]
    assert settings["matching"].startswith(rule)


@real_files("held")
def check_the_golden_numbers_of_lmms_eval(shared: Path, tmp_path: Path) -> None:
    folder = shared / "golden" / "score_free"
    given = json.loads((folder / "lmms_input.json").read_text(encoding="utf-8"))
    expected = json.loads((folder / "lmms_expected.json").read_text(encoding="utf-8"))
    read = {one["image_id"]: one for one in expected["images"]}
    found: dict[str, list[Any]] = {}
    for name in ("Alpha", "Beta"):
        images = [one for one in given if one["dataset_name"] == name]
        classes = images[0]["categories"]
        objects = [
            {"image_id": one["image_id"], "category_id": classes.index(label) + 1, "bbox": [x1, y1, x2 - x1, y2 - y1]}
            for one in images
            for label, (x1, y1, x2, y2) in zip(one["labels"], one["bboxes"], strict=True)
        ]
        truth = {
            "images": [
                {"id": one["image_id"], "width": one["image_width"], "height": one["image_height"]} for one in images
            ],
            "categories": [{"id": number, "name": label} for number, label in enumerate(classes, start=1)],
            "annotations": [one | {"id": number} for number, one in enumerate(objects, start=1)],
        }
        results = [
            {"image_id": one["image_id"], "bbox": [x1, y1, x2 - x1, y2 - y1], "category": box["label"]}
            for one in images
            for box in read[one["image_id"]]["boxes_as_read"]
            for x1, y1, x2, y2 in [box["bbox"]]
        ]
        result = curation.evaluate.coco(
            **written(tmp_path, truth, results), variant="lmms-eval", policy=Policy(negative_sizes="empty")
        )
        for ours, theirs in (("AP", "mAP"), ("AP50", "mAP50"), ("AP75", "mAP75")):
            assert result[ours] == pytest.approx(100 * expected["coco_by_dataset"][name][theirs], abs=1e-9)
        sums = [read[one["image_id"]] for one in images]
        n = sum(one["truths"] for one in sums)
        assert result["IoU"] == pytest.approx(100 * sum(one["sum_of_overlap"] for one in sums) / n, abs=1e-9)
        for level in score_free.ACCURACIES:
            hits = sum(one["sum_of_hits"][level] for one in sums)
            assert result[f"ACC@{level}"] == pytest.approx(100 * hits / n, abs=1e-9)
        for key, value in result.numbers().items():
            found.setdefault(key.rpartition("/")[2], []).append(value)
    of = {"AP": "mAP", "AP50": "mAP50", "AP75": "mAP75"}
    assert {of.get(key, key): sum(values) / 200 for key, values in found.items()} == pytest.approx(
        expected["metrics"], abs=1e-11
    )


def drawn(seed: int, n_boxes: int = 5, *, crowds: int = 0) -> tuple[GroundTruth, Detections]:
    """Return one class whose boxes compete for truths that overlap, some of them in crowd regions."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    image = np.sort(rng.integers(0, 2, n)).astype(np.int32)
    boxes = np.column_stack([rng.integers(0, 60, n), np.zeros(n), np.full(n, 100), np.full(n, 100)]).astype(float)
    crowd = [(0, 0, (left, 0, 90, 100)) for left in (70, -60)[:crowds]]
    truth = truth_of_rows([*crowd, *((place, 0, box) for place, box in zip(image, boxes, strict=True))], 2, ("cat",))
    truth = replace(truth, crowd=np.arange(len(truth.label)) < crowds)
    moved = np.column_stack([rng.integers(-30, 110, n_boxes), np.zeros(n_boxes), np.full(n_boxes, 100),
                             rng.integers(60, 101, n_boxes)]).astype(float)  # fmt: skip
    places = rng.integers(0, 2, n_boxes).astype(np.int32)
    return truth, Detections(places, np.zeros(n_boxes, np.int32), moved, np.ones(n_boxes))


@pytest.mark.parametrize(
    ("seed", "crowds"), [*((seed, 0) for seed in range(12)), *((seed, 1 + seed % 2) for seed in range(12, 30))]
)
def test_the_range_is_that_of_all_orders(seed: int, crowds: int) -> None:
    truth, boxes = drawn(seed, crowds=crowds)
    every = [
        coco_average_precision(truth, replace(boxes, scores=np.array(order) / 10))["AP50"]
        for order in itertools.permutations(range(1, len(boxes) + 1))
    ]
    measured = score_free.score_free(truth, boxes, "score-free")
    assert measured.value("AP50_highest") == pytest.approx(100 * max(every), abs=1e-9)
    lowest, reason = measured.value("AP50_lowest"), measured.tables["score_free"]["undefined"][0]
    if lowest is None:
        assert float(reason.rpartition(" ")[2]) <= 100 * min(every) + 0.01
    else:
        assert lowest == pytest.approx(100 * min(every), abs=1e-9)


def test_a_lowest_ap_that_is_not_tried_is_undefined_with_a_bound(tmp_path: Path) -> None:
    twins = small([0, 0, 100, 100], [2, 0, 100, 100])
    files = written(tmp_path, twins, [box_of([1, shift, 100, 100]) for shift in range(9)])
    result = curation.evaluate.coco(**files, variant="score-free")
    assert result["AP50_lowest"] is None
    assert result["AP50_highest"] == 100
    assert "at least" in str(result.measures.set_index("measure").loc["AP50_lowest", "undefined"])


def test_crowd_is_no_truth_and_what_lies_in_it_is_left_out(tmp_path: Path) -> None:
    truth = small([0, 0, 300, 200], [300, 0, 50, 50], crowd=1)
    results = [box_of([10, 10, 50, 50]), box_of([300, 0, 50, 50]), box_of([340, 150, 40, 40])]
    row = curation.evaluate.coco(**written(tmp_path, truth, results), variant="score-free").table("score_free").iloc[0]
    assert (row["truths"], row["boxes"], row["TP"]) == (1, 2, 1)


@pytest.mark.parametrize("rule", RULES.values())
def test_a_second_box_on_a_truth_in_crowd_is_left_out(rule: str, tmp_path: Path) -> None:
    """pycocotools: a detection without a free truth that lies in crowd is ignored, whatever it overlaps."""
    truth = small([0, 0, 300, 200], [100, 50, 50, 50], crowd=1)
    results = [box_of([100, 50, 50, 50]), box_of([102, 50, 50, 50])]
    result = curation.evaluate.coco(**written(tmp_path, truth, results), variant=rule)
    keys = ("precision", "recall", "F1", "precision_levels", "AP50_lowest", "AP50_highest")
    assert [result[key] for key in keys] == pytest.approx([100] * len(keys))
    assert result.table("score_free")["boxes"][0] == 1


@pytest.mark.parametrize("seed", range(8))
def test_boxes_in_order_count_as_pycocotools_counts_them(seed: int) -> None:
    from pycocotools.cocoeval import COCOeval

    truth, boxes = drawn(seed, 9, crowds=2)
    ours = score_free.score_free(truth, boxes, "score-free-in-order").tables["score_free"]
    evaluation = COCOeval(iouType="bbox")
    n = 0
    for image in range(2):
        rows, own = np.flatnonzero(truth.image == image), np.flatnonzero(boxes.image == image)
        evaluation._gts[image, 1] = [
            {"id": int(row) + 1, "bbox": truth.boxes[row].tolist(), "iscrowd": int(truth.crowd[row]), "area": 1,
             "ignore": int(truth.crowd[row])} for row in rows]  # fmt: skip
        evaluation._dts[image, 1] = [
            {"id": int(row) + 1, "bbox": boxes.boxes[row].tolist(), "score": 1 - row / 100, "area": 1} for row in own
        ]
        evaluation.params.imgIds, evaluation.params.catIds, evaluation.params.maxDets = [image], [1], [100]
        evaluation.ious = {(image, 1): evaluation.computeIoU(image, 1)}
        found = evaluation.evaluateImg(image, 1, [0, 1e9], 100)
        n += 0 if found is None else int((found["dtIgnore"][0] == 0).sum())
    assert ours["boxes"][0] == n


def test_presence_asks_only_whether_the_class_is_in_the_image(tmp_path: Path) -> None:
    results = [
        box_of([200, 100, 9, 9]),
        box_of([0, 0, 9, 9]),
        box_of([0, 0, 9, 9], image=2),
        box_of([0, 0, 9, 9], 2, 2),
    ]
    result = curation.evaluate.coco(**written(tmp_path, small([0, 0, 90, 90]), results), variant="score-free")
    assert (result["presence_precision"], result["presence_recall"]) == (pytest.approx(100 / 3), 100)
    assert (result["presence_F1"], result["F1"]) == (50, 0)


def test_scores_are_asked_for_by_name(tmp_path: Path) -> None:
    truth = small([0, 0, 90, 90])
    partly = [box_of([0, 0, 90, 90], score=0.9), box_of([0, 0, 80, 90])]
    files = written(tmp_path, truth, partly)
    for variants in ((), "coco", ("coco", "score-free")):
        with pytest.raises(PredictionError, match="A detection has no score") as caught:
            curation.evaluate.coco(**files, variant=variants)
        assert "record 1" in (caught.value.where or "")
        assert "score-free" in (caught.value.hint or "")
    with pytest.raises(PredictionError, match="A detection has no score"):
        curation.evaluate.voc(**files)
    every = curation.evaluate.coco(**files, variant="all")
    assert [one.variant for one in every.scored] == list(RULES.values())
    assert any("passes over the scores that 1 of 2" in note for note in every.notes)
    null = written(tmp_path, truth, [box_of([0, 0, 90, 90], score=None)])
    assert curation.evaluate.coco(**null, variant="score-free")["recall"] == 100


def test_open_set_errors_need_no_score(tmp_path: Path) -> None:
    truth = small([0, 0, 90, 90], [200, 0, 90, 90], [300, 100, 60, 60])
    truth["categories"] = [{"id": 1, "name": "cat"}, {"id": 2, "name": "unknown"}]
    for one in truth["annotations"][1:]:
        one["category_id"] = 2
    results = [
        box_of([0, 0, 90, 90]),
        box_of([200, 0, 90, 90]),
        box_of([202, 0, 90, 90]),
        box_of([300, 100, 60, 60], category=2),
    ]
    files = written(tmp_path, truth, results)
    with pytest.raises(PredictionError, match="A detection has no score"):
        curation.evaluate.owod(**files)
    result = curation.evaluate.owod(**files, variant="score-free")
    assert (result["AOSE"], result["AOSE_objects"], result["UR"], result["UDR"]) == (2, 1, 50, 100)
    for key in ("WI", "mAP_both", "AP_unknown"):
        assert result[key] is None
    undefined = result.measures.set_index("measure").undefined
    assert "needs scores" in undefined["WI"]
    assert "needs scores" in undefined["mAP_both"]
    scored = written(tmp_path, truth, [one | {"score": 0.5} for one in results])
    clean = curation.evaluate.owod(**scored)
    assert all(clean[key] == result[key] for key in ("AOSE", "AOSE_objects", "UR", "UDR", "UDP", "P_unknown"))
