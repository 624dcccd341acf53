"""Numbers of another evaluator beside ours: those of pycocotools itself, and the documented shapes of torchmetrics."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.cli import main
from curation.core.errors import EvaluationError, UsageError
from curation.extensions.detection_ap.other_evaluators import TORCHMETRICS, compare_with_external
from tests.frozen.version_1 import json_data
from tests.worlds import coco

TRUTH: dict[str, Any] = {
    "images": [{"id": 1, "width": 50, "height": 50, "file_name": "1.jpg"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 3, "bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0}],
    "categories": [{"id": 3, "name": "owl"}, {"id": 7, "name": "cat"}],
}
FOUND = [{"image_id": 1, "category_id": 3, "bbox": [0, 0, 9, 9], "score": 0.9}]
# What compute() returned, arrays for tensors; extended_summary adds names that are no numbers of the summary.
COMPUTED = {
    **dict.fromkeys(TORCHMETRICS, np.array(-1.0)),
    "map": np.array(0.75),
    "map_small": np.array(1.0),
    "map_per_class": np.array([1.0, -1.0]),
    "classes": np.array([3, 7]),
    "ious": {},
}


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def test_minus_one_is_undefined_with_the_reason_and_never_a_number() -> None:
    result = curation.evaluate.coco(truth=TRUTH, detections=FOUND, against=COMPUTED)
    rows = {row["measure"]: row for row in result.json_data()["against"]}
    assert list(rows) == [*TORCHMETRICS.values(), "AP of owl", "AP of cat"]
    assert rows["AP"]["theirs"] == 75
    assert rows["AP"]["difference"] == pytest.approx(-25)
    assert rows["APs"]["undefined"] == ""
    for name in ("AP50", "APm", "AR100"):
        assert rows[name]["theirs"] is rows[name]["difference"] is None
        assert "-1" in rows[name]["undefined"]
    assert (rows["AP of owl"]["theirs"], rows["AP of cat"]["theirs"]) == (100, None)
    assert result.data["external"]["passed_over"] == ["ious"]
    assert not (result.table("against")["theirs"] < 0).any()
    # Our own numbers, and what is logged and ranked, are what they are without.
    alone = curation.evaluate.coco(truth=TRUTH, detections=FOUND)
    assert result.flat() == alone.flat()
    assert alone.json_data()["against"] == []


def test_the_numbers_of_pycocotools_itself_are_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = coco.files(tmp_path)
    words = ["evaluate", "coco", "--truth", str(paths["truth"]), "--detections", str(paths["detections"])]
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    truth = COCO(str(paths["truth"]))
    evaluation = COCOeval(truth, truth.loadRes(str(paths["detections"])), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    (stats := tmp_path / "stats.json").write_text(json.dumps(evaluation.stats.tolist()))
    capsys.readouterr()
    assert main([*words, "--against", str(stats), "--out", str(tmp_path / "out"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["external"]["file"]["name"] == "stats.json"
    assert len(found["against"]) == 12
    for row in found["against"]:
        assert (row["ours"] is None) == (row["theirs"] is None), row["measure"]
        assert row["difference"] is None or abs(row["difference"]) < 1e-12
    assert (tmp_path / "out" / "against.csv").read_text().startswith("measure,ours,theirs,difference,undefined")


def test_one_class_and_no_classes_as_torchmetrics_squeezes_them() -> None:
    ours = json_data(curation.evaluate.coco(truth=TRUTH, detections=FOUND))
    one = compare_with_external(ours, {"map": 1.0, "map_per_class": 0.5, "classes": 3}, {3: "owl", 7: "cat"})
    assert one["against"]["measure"] == ["AP", "AP of owl"]
    # Without class_metrics: -1 for all classes together.
    none = compare_with_external(ours, {"map": 1.0, "map_per_class": -1.0, "classes": [3, 7]}, {3: "owl", 7: "cat"})
    assert none["against"]["measure"] == ["AP"]
    # A class that the truth does not have is told, not dropped.
    more = compare_with_external(
        ours, {"map": 1.0, "map_per_class": [0.5, 0.4], "classes": [3, 99]}, {3: "owl", 7: "cat"}
    )
    assert (more["against"]["measure"], more["passed_over"]) == (["AP", "AP of owl"], ["class 99"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"map": 75.0}, "not a share"),
        ({"map": -0.5}, "not a share"),
        ({"map": "high"}, "not a share"),
        ({"map": "0.5"}, "not a share"),
        ({"fitness": 0.5}, "no number of COCO's summary"),
        ([0.5] * 11, "not the twelve"),
        ({"map": 0.5, "map_per_class": [0.5, 0.4, 0.3], "classes": [3, 7]}, "not one number for each class"),
        ({"map": 0.5, "map_per_class": [0.5, 0.4], "classes": [3, 3]}, "not one number for each class"),
        ({"map": 0.5, "map_per_class": [0.5, 0.4]}, "not one number for each class"),
        ({"map": 10**400}, "not a share"),
    ],
)
def test_what_is_no_share_is_refused(tmp_path: Path, given: Any, said: str) -> None:
    (path := tmp_path / "theirs.json").write_text(json.dumps(given))
    with pytest.raises(EvaluationError, match=said):
        curation.evaluate.coco(truth=TRUTH, detections=FOUND, against=path)


@pytest.mark.parametrize("text", ["", "{", "0.5", '{"map": NaN}'])
def test_what_is_no_such_file_is_refused(tmp_path: Path, text: str) -> None:
    (path := tmp_path / "theirs.json").write_text(text)
    with pytest.raises(EvaluationError, match="cannot be read"):
        curation.evaluate.coco(truth=TRUTH, detections=FOUND, against=str(path))


def test_detections_of_images_as_torchmetrics_has_them() -> None:
    of_images = [
        {
            "image_id": 1,
            "boxes": np.array([[0.0, 0.0, 9.0, 9.0], [1.0, 2.0, 4.0, 6.0]], np.float32),
            "scores": np.array([0.5, 0.25], np.float32),
            "labels": np.array([3, 7]),
        }
    ]
    flat = [
        {"image_id": 1, "category_id": 3, "bbox": [0, 0, 9, 9], "score": 0.5},
        {"image_id": 1, "category_id": 7, "bbox": [1, 2, 3, 4], "score": 0.25},
    ]
    one, other = (curation.evaluate.coco(truth=TRUTH, detections=rows) for rows in (of_images, flat))
    assert one.numbers() == other.numbers()
    assert one["AP"] == pytest.approx(100)
    empty = [{**of_images[0], "boxes": np.zeros((0, 4)), "scores": np.zeros(0), "labels": np.zeros(0, int)}]
    assert curation.evaluate.coco(truth=TRUTH, detections=empty)["AP"] == 0
    for broken in (
        {"boxes": [[0, 0, 9]]},
        {"boxes": [1, 2]},
        {"boxes": [[0, 0, "9", 9], [0, 0, None, 9]]},
        {"scores": [0.5]},
        {"image_id": None, "labels": [1, 2, 3]},
    ):
        with pytest.raises(UsageError, match="Malformed boxes of an image") as caught:
            curation.evaluate.coco(truth=TRUTH, detections=[of_images[0], {**of_images[0], **broken}])
        assert caught.value.where == "detections[1]"


class Names:
    """Something with attributes, as results of other libraries have them."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__ |= attributes


SUMMARY = [0.5, 0.75, 0.25, -1, 0.5, -1, 0.5, 0.5, 0.5, -1, 0.5, -1]
THEIRS: list[tuple[Any, dict[str, float | None]]] = [
    (Names(stats=np.array(SUMMARY)), {"AP": 50, "AP50": 75, "AP75": 25, "APs": None}),
    # LVISEval.results: AR is of 300 detections, which COCO has not.
    (Names(results={"AP": 0.5, "AP50": 0.75, "APr": -1, "AR@300": 0.5}), {"AP": 50, "AP50": 75}),
    # supervision: MeanAveragePrecisionResult, and the row of its to_pandas().
    (
        Names(
            map50_95=0.5, map50=0.75, map75=0.25, small_objects=Names(map50_95=-1.0), medium_objects=None,
            large_objects=None, ap_per_class=np.array([[0.25, 0.75], [-1.0, -1.0]]), matched_classes=np.array([3, 7]),
        ),
        {"AP": 50, "AP50": 75, "AP75": 25, "APs": None, "AP of owl": 50, "AP of cat": None},
    ),
    ({"mAP@50:95": {"0": 0.5}, "mAP@50": {"0": 0.75}}, {"AP": 50, "AP50": 75}),
    # Ultralytics: results_dict of an object, and summary(), a row a class.
    (
        Names(
            results_dict={"metrics/precision(B)": 0.5, "metrics/mAP50(B)": 0.75, "metrics/mAP50-95(B)": 0.5},
            names={0: "owl", 1: "cat"}, ap_class_index=[0], maps=np.array([0.25, 0.5]),
        ),
        {"AP": 50, "AP50": 75, "AP of owl": 25},
    ),
    ([{"Class": "owl", "Instances": 1, "mAP50": 0.5, "mAP50-95": 0.25}], {"AP of owl": 25}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), THEIRS)
def test_forms_of_other_evaluators(given: Any, expected: dict[str, float | None]) -> None:
    result = curation.evaluate.coco(truth=TRUTH, detections=FOUND, against=given)
    rows = {row["measure"]: row["theirs"] for row in result.json_data()["against"]}
    assert {key: rows[key] for key in expected} == expected
    assert len(rows) == (12 if hasattr(given, "stats") else len(expected))


def test_a_table_of_epochs_and_a_result_with_a_file(tmp_path: Path) -> None:
    (csv := tmp_path / "results.csv").write_text(
        "                  epoch,   metrics/mAP50(B),metrics/mAP50-95(B)\n      1,   0.25,0.125\n      2,   0.75,0.5\n"
    )
    result = curation.evaluate.coco(truth=TRUTH, detections=FOUND, against=csv)
    rows = {row["measure"]: row["theirs"] for row in result.json_data()["against"]}
    assert rows == {"AP50": 75, "AP": 50}
    assert result.data["external"]["passed_over"] == ["1 rows before the last", "epoch"]
    difference: Any = curation.diff(result, csv)
    assert difference.frame().set_index("measure")["difference"].to_dict() == pytest.approx({"AP50": -25, "AP": -50})
    assert difference.lines()[-1] == "not compared: 1 rows before the last, epoch"
    assert difference.reasons == ()
    assert "Against another evaluator" in "\n".join(result.lines(whole=False))
    with pytest.raises(UsageError, match="goes before"):
        curation.diff(csv, result)
    (tmp_path / "truth.json").write_text('{"images": []}')
    with pytest.raises(EvaluationError, match="not a result"):
        curation.diff(csv, tmp_path / "truth.json")


def test_in_a_table_classes_stay_texts_and_what_is_no_number_is_refused(tmp_path: Path) -> None:
    (csv := tmp_path / "summary.csv").write_text("Class, mAP50-95\nowl,0.5\n1e1,0.25\n")
    external = curation.evaluate.coco(truth=TRUTH, detections=FOUND, against=csv).json_data()
    assert [row["theirs"] for row in external["against"]] == [50]
    assert external["external"]["passed_over"] == ["class 1e1"]
    csv.write_text("map\nhigh\n")
    with pytest.raises(EvaluationError, match="not a share"):
        curation.evaluate.coco(truth=TRUTH, detections=FOUND, against=csv)
