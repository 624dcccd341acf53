"""``curation evaluate osod3`` and ``curation baseline`` from files, and wrong use."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from curation.ledger import LEDGER
from tests.evaluation.osod3_world import KNOWN, write_world


def as_json(capsys: pytest.CaptureFixture[str], *arguments: Any) -> dict[str, Any]:
    assert main([*map(str, arguments), "--no-cache", "--json"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_one_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_world(tmp_path)
    given = ("evaluate", "osod3", "--truth", paths["gt"], "--detections", paths["detections"], "--classes",
             paths["classes"], "--profile", "all", "--out", tmp_path / "out")  # fmt: skip
    result = as_json(capsys, *given)
    assert result["cases"]["test"]["AP_unk"] == pytest.approx(22.7228, abs=1e-4)
    written = {path.name for path in (tmp_path / "out").iterdir()} - {LEDGER}
    pictures = {f"open_set_error_{name}.{kind}" for name in ("clean", "voc") for kind in ("png", "svg", "csv")}
    assert written == pictures | {"average_precision.csv", "thresholds.csv", "results.json"}
    assert result["inputs"]["test"]["detections"]["sha256"].startswith("sha256:")


def test_cases_and_their_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_world(tmp_path)
    given = ("evaluate", "osod3", "--truth", paths["gt"], "--detections", f"t1={paths['detections']}",
             "--detections", f"t2={paths['detections']}", "--classes", paths["classes"])  # fmt: skip
    result = as_json(capsys, *given)
    assert list(result["cases"]) == ["t1", "t2"]
    assert result["over_cases"]["AP_unk"]["std_population"] == 0
    assert result["over_cases"]["AP_unk"]["n"] == 2


def test_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_world(tmp_path)
    base = ["evaluate", "osod3", "--truth", str(paths["gt"]), "--detections", str(paths["detections"])]
    for more, words in (
        ([], "known"),
        (["--classes", str(tmp_path / "none.json")], "exist"),
        (["--classes", str(paths["classes"]), "--manifest", "osod3/x"], "Two options"),
        (["--classes", f"t1={paths['classes']}"], "There is no such case"),
        (["--classes", str(paths["classes"]), "--thetas", "a,b"], "ascending"),
    ):
        assert main([*base, *more, "--no-cache"]) != 0
        assert words in capsys.readouterr().err


def score_file(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / name
    path.write_text(json.dumps(rows))
    return path


def test_naive_baseline_over_gamma(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_world(tmp_path)
    rows = [
        {"image_id": 1, "bbox": [10, 10, 100, 100], "scores": [0.8, 0.1, 0.05]},
        {"image_id": 1, "bbox": [200, 10, 100, 100], "scores": [0.4, 0.3, 0.2]},
        {"image_id": 2, "bbox": [10, 10, 80, 80], "scores": [0.1, 0.6, 0.0]},
    ]
    scores = score_file(tmp_path, "scores.json", rows)
    given = ("baseline", "naive", scores, "--classes", paths["classes"], "--truth", paths["gt"], "--out")
    result = as_json(capsys, *given, tmp_path / "out", "--gamma", "1,2,1e9")
    assert [row["unknown"] for row in result["settings"]] == [0, 1, 3]
    assert result["settings"][0]["AP_unk"] == 0
    assert result["settings"][1]["AP_unk"] > 0
    found = json.loads((tmp_path / "out/naive-2.json").read_text())
    unknown = [row for row in found if row["category"] == "unknown"]
    assert [row["score"] for row in unknown] == [pytest.approx(0.9)]
    assert {row["category_id"] for row in found if row["category"] == "dog"} == {2}
    assert (tmp_path / "out/sweep.png").exists()


def test_other_baselines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_world(tmp_path)
    objects = [(1, "cat", [10.0, 10, 100, 100], 0), (1, "dog", [200.0, 10, 50, 50], 0)]
    (tmp_path / "train").mkdir()
    train = write_world(tmp_path / "train", objects, [], images=1)
    full = {"known": KNOWN, "unknown": []}
    (tmp_path / "train/classes.json").write_text(json.dumps(full))
    boxes = [
        {
            "image_id": 1,
            "bbox": [10, 10, 100, 100],
            "scores": [0.8, 0.1, 0.0],
            "objectness": 0.9,
            "region": 0,
        },
        {"image_id": 1, "bbox": [200, 10, 50, 50], "scores": [0.1, 0.6, 0.0], "objectness": 0.4, "region": 1},
    ]
    scores = score_file(tmp_path, "scores.json", boxes)
    common = ("--classes", paths["classes"], "--out")
    cec = as_json(capsys, "baseline", "cec", scores, "--training", scores, "--training-truth", train["gt"],
                  "--alpha", "0,0.5", *common, tmp_path / "cec")  # fmt: skip
    assert [row["unknown"] for row in cec["settings"]] == [0, 0]
    # No training box shows a fox: that class expels nothing, and the result says so.
    assert ["fox" in note for note in cec["notes"]] == [True]
    assert [one["name"] for one in cec["inputs"]] == ["scores.json", "scores.json", "gt.json"]
    assert cec["parameters"] == {"phi": 0.9, "unknown_score": "one"}
    pad = as_json(capsys, "baseline", "pad", scores, "--auxiliary", scores, *common, tmp_path / "pad")
    assert pad["settings"][0]["unknown"] == 2
    again = score_file(tmp_path, "again.json", boxes)
    dropout = as_json(capsys, "baseline", "dropout", scores, again, *common, tmp_path / "drop")
    assert dropout["settings"][0]["boxes"] == 4
    merged = json.loads((tmp_path / "drop/dropout-merged.json").read_text())
    assert {row["passes"] for row in merged} == {2}
    assert merged[0]["entropy"] == pytest.approx(-sum(p * math.log(p) for p in (8 / 9, 1 / 9)))
    assert main(["baseline", "pad", str(paths["detections"]), "--auxiliary", str(scores), *map(str, common),
                 str(tmp_path / "x")]) != 0  # fmt: skip
    assert "scores" in capsys.readouterr().err


def test_whose_ids_a_results_file_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_world(tmp_path)
    box = {"image_id": 1, "bbox": [10, 10, 100, 100], "score": 0.5}
    given = ["baseline", "cross-nms", "--classes", str(paths["classes"]), "--iou", "0.5", "--no-cache"]
    with_truth = ["--truth", str(paths["gt"])]
    for name, row, more, words in (
        ("ids alone", {"category_id": 2}, [], "--truth"),
        ("disagreeing", {"category_id": 2, "category": "cat"}, with_truth, "agree"),
        ("ids of the truth", {"category_id": 2}, with_truth, ""),
        ("names", {"category_id": 2, "category": "cat"}, [], ""),
    ):
        out = tmp_path / name
        code = main([*given, str(score_file(tmp_path, "r.json", [box | row])), *more, "--out", str(out)])
        assert (code != 0) == bool(words)
        assert words in capsys.readouterr().err
        assert out.exists() == (not words)
    kept = [json.loads((tmp_path / one / "cross-nms-0.5.json").read_text()) for one in ("ids of the truth", "names")]
    assert [rows[0]["category"] for rows in kept] == ["dog", "cat"]


def test_nothing_is_written_for_boxes_on_other_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_world(tmp_path)
    scores = score_file(tmp_path, "s.json", [{"image_id": 77, "bbox": [1, 1, 9, 9], "scores": [0.8, 0.1, 0]}])
    given = [
        "baseline",
        "naive",
        scores,
        "--classes",
        paths["classes"],
        "--gamma",
        "2",
        "--truth",
        paths["gt"],
    ]
    assert main([*map(str, given), "--no-cache", "--out", str(tmp_path / "out")]) != 0
    assert "image_id 77" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_calibration_refuses_unknown_annotations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_world(tmp_path)
    rows = [{"image_id": 1, "bbox": [10, 10, 100, 100], "scores": [0.8, 0.1, 0.0]}]
    scores = score_file(tmp_path, "scores.json", rows)
    given = ["baseline", "cec", str(scores), "--training", str(scores), "--training-truth", str(paths["gt"]),
             "--classes", str(paths["classes"]), "--out", str(tmp_path / "out"), "--no-cache"]  # fmt: skip
    assert main(given) != 0
    assert "unknown classes" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
