"""LVIS AP and Fixed AP against lvis-api's golden numbers, an independent reference and hotcoco's LVIS mode."""

import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import curation
from curation.cli import main
from curation.core.errors import EvaluationError, PredictionError, UsageError
from curation.extensions.detection_ap.federated import KEYS
from tests.extensions.detection_ap.lvis_reference import numbers
from tests.real_files import real_files

VARIANTS = {"lvis": ("image_id", "image_limit"), "lvis-fixed": ("category_id", "class_limit")}


def evaluated(folder: Path, truth: Any, results: Any, **options: Any) -> Any:
    for name, content in (("truth", truth), ("results", results)):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    options = {"truth": folder / "truth.json", "detections": folder / "results.json"} | options
    return curation.evaluate.coco(**options)


def drawn(seed: int, n_classes: int, n_images: int, per_image: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a federated truth and detections with ties, ignored and empty objects, and cells partly boxed alone."""
    rng = np.random.default_rng(seed)
    truth: dict[str, Any] = {"images": [], "annotations": [], "categories": []}
    results = []
    letters = "rcf"
    for number in range(1, n_classes + 1):
        truth["categories"].append({"id": number, "name": f"c{number}", "frequency": letters[int(rng.integers(3))]})
    for image in range(1, n_images + 1):
        near = rng.integers(1, n_classes + 1, 4).tolist()
        listed = {name: sorted({*rng.choice(near, 2).tolist()}) for name in ("neg", "not_exhaustive")}
        entry = {"id": image, "width": 640, "height": 480}
        truth["images"].append(entry | {f"{name}_category_ids": ids for name, ids in listed.items()})
        for _ in range(per_image):
            box = [*rng.integers(0, 300, 2).tolist(), *rng.integers(5, 180, 2).tolist()]
            number = int(rng.choice(near))
            if number not in listed["neg"] and rng.random() < 0.6:
                area = box[2] * box[3] * float(rng.choice([1, 0.5, 0], p=[0.5, 0.45, 0.05]))
                ignore = int(rng.random() < 0.1)
                annotation = {"image_id": image, "category_id": number, "bbox": box, "area": area, "ignore": ignore}
                truth["annotations"].append(annotation | {"id": len(truth["annotations"]) + 1})
            moved = [box[0] + int(rng.integers(0, 12)), box[1], box[2] * int(rng.random() < 0.97), box[3]]
            number = number if rng.random() < 0.9 else int(rng.choice([*near, n_classes + 7]))
            score = float(rng.integers(1, 20)) / 20
            results.append({"image_id": image, "category_id": number, "bbox": moved, "score": score})
            if rng.random() < 0.3:
                results.append({**results[-1], "bbox": box})
    return truth, results


def assert_numbers(result: Any, variant: str, expected: dict[str, Any], names: dict[int, str]) -> None:
    measured = {row.measure: row for row in result.measures[result.measures.variant == variant].itertuples()}
    for key in KEYS:
        value = measured[key].value
        if expected[key] is None:
            assert np.isnan(value), key
            assert measured[key].undefined
        else:
            assert value == pytest.approx(100 * expected[key], abs=1e-9), key
    table = result.table("average_precision")
    found = dict(zip(table["class"], table["AP"], strict=True))
    for number, name in names.items():
        value = expected[f"AP of {number}"]
        assert found[name] == pytest.approx(np.nan if value is None else 100 * value, abs=1e-9, nan_ok=True)


@real_files("held")
@pytest.mark.parametrize("engine", ["hotcoco", "pycocotools"])
@pytest.mark.parametrize(("variant", "limit"), [("lvis", 300), ("lvis", 4), ("lvis-fixed", 10_000), ("lvis-fixed", 5)])
def check_the_numbers_of_lvis_api(
    variant: str, limit: int, engine: str, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "hotcoco":
        pytest.importorskip("hotcoco", reason="hotcoco is not installed")
    else:
        monkeypatch.setitem(sys.modules, "hotcoco", None)
    folder = shared / "golden" / "lvis"
    whole = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    expected = whole["lvis" if variant == "lvis" else "fixed"][str(limit)]
    files: Any = {"truth": folder / "truth.json", "detections": folder / "results.json"}
    result = curation.evaluate.coco(**files, variant=variant, **{VARIANTS[variant][1]: limit})
    categories = json.loads((folder / "truth.json").read_text(encoding="utf-8"))["categories"]
    of_class = {f"AP of {number}": value for number, value in expected["AP_of_class"].items()}
    assert_numbers(result, variant, expected["numbers"] | of_class, {one["id"]: one["name"] for one in categories})
    told = result.data["variants"][variant]
    assert told["limit"] == f"{limit} detections of each {'image' if variant == 'lvis' else 'class'}"
    assert any("took places under the limit" in note for note in result.notes)


@real_files("held")
def check_the_worked_example(shared: Path, tmp_path: Path) -> None:
    worked = json.loads((shared / "golden" / "lvis" / "worked.json").read_text(encoding="utf-8"))
    quartered = [one | {"score": one["score"] / (4 if one["category_id"] == 2 else 1)} for one in worked["results"]]
    cases = {
        "limit_2_an_image": ("lvis", {"image_limit": 2}, worked["results"]),
        "limit_2_plate_scores_divided_by_4": ("lvis", {"image_limit": 2}, quartered),
        "fixed_2_a_class": ("lvis-fixed", {"class_limit": 2}, worked["results"]),
        "fixed_2_plate_scores_divided_by_4": ("lvis-fixed", {"class_limit": 2}, quartered),
        "fixed_1_a_class": ("lvis-fixed", {"class_limit": 1}, worked["results"]),
    }
    assert cases.keys() == worked["expected"].keys()
    for name, (variant, limit, results) in cases.items():
        result = evaluated(tmp_path, worked["truth"], results, variant=variant, **limit)
        for key, value in worked["expected"][name].items():
            assert result[key] == pytest.approx(100 * value, abs=1e-9), (name, key)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("variant", VARIANTS)
def test_drawn_worlds_equal_an_independent_reference(variant: str, seed: int, tmp_path: Path) -> None:
    truth, results = drawn(seed, 5, 8, 12)
    of, option = VARIANTS[variant]
    for limit in (3, 300):
        expected = numbers(truth, results, limit=limit, of=of)
        result = evaluated(tmp_path, truth, results, variant=variant, **{option: limit})
        assert_numbers(result, variant, expected, {one["id"]: one["name"] for one in truth["categories"]})


def test_1203_classes_equal_the_reference_and_hotcoco(tmp_path: Path) -> None:
    truth, results = drawn(1203, 1203, 150, 25)
    names = {one["id"]: one["name"] for one in truth["categories"]}
    result = evaluated(tmp_path, truth, results, variant=("lvis", "lvis-fixed"), image_limit=20)
    expected = numbers(truth, results, limit=20)
    assert_numbers(evaluated(tmp_path, truth, results, variant="lvis", image_limit=20), "lvis", expected, names)
    fixed: dict[str, Any] = numbers(truth, results, limit=10_000, of="category_id")
    assert result["lvis-fixed/AP"] == pytest.approx(100 * fixed["AP"], abs=1e-9)
    hotcoco = pytest.importorskip("hotcoco", reason="hotcoco is not installed")
    # hotcoco keeps detections and objects without area, and reads no `ignore`.
    plain = truth | {"annotations": [one for one in truth["annotations"] if one["area"] and not one["ignore"]]}
    sized = [one for one in results if one["bbox"][2] and one["category_id"] in names]
    (tmp_path / "plain.json").write_text(json.dumps(plain), encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()):
        annotated = hotcoco.LVIS(str(tmp_path / "plain.json"))
        evaluation = hotcoco.LVISEval(annotated, hotcoco.LVISResults(annotated, sized, max_dets=20), "bbox")
        evaluation.run()
    ours = evaluated(tmp_path, plain, sized, variant="lvis", image_limit=20)
    for key, name in {"AP": "AP", "AP50": "AP50", "APr": "APr", "APc": "APc", "APf": "APf"}.items():
        assert ours[key] == pytest.approx(100 * evaluation.get_results()[name], abs=1e-9), key


def test_todays_numbers_of_a_federated_truth_keep_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth, results = drawn(3, 5, 8, 12)
    results = [one for one in results if one["category_id"] <= 5]
    every = evaluated(tmp_path, truth, results, variant="all")
    assert [one.variant for one in every.scored] == ["coco", "coco-federated", "lvis", "lvis-fixed"]
    default = evaluated(tmp_path, truth, results)
    assert {one.variant for one in default.scored} == {"coco-federated"}
    assert default["AP"] == every["coco-federated/AP"] != every["coco/AP"]
    text = "\n".join(every.lines())
    assert "coco-federated  lvis" in text
    words = ["--truth", str(tmp_path / "truth.json"), "--detections", str(tmp_path / "results.json")]
    words += ["--variant", "lvis-fixed", "--variant", "coco", "--set", "class_limit=3"]
    assert main(["evaluate", "coco", *words]) == 0
    assert re.search(r"measure +unit +lvis-fixed +coco +meaning", capsys.readouterr().out)


def test_a_truth_without_frequencies_has_no_apr_and_says_why(tmp_path: Path) -> None:
    truth, results = drawn(4, 5, 8, 12)
    for one in truth["categories"]:
        del one["frequency"]
    result = evaluated(tmp_path, truth, results, variant="lvis")
    assert result["APr"] is None
    assert "frequency" in result.measures.set_index("measure").loc["APr", "undefined"]


def test_what_lvis_refuses(tmp_path: Path) -> None:
    truth, results = drawn(5, 5, 8, 12)
    strange = [one | {"category_id": 99} for one in results]
    with pytest.raises(PredictionError, match="not known"):
        evaluated(tmp_path, truth, strange, variant="lvis")
    with pytest.raises(PredictionError, match="not known"):
        evaluated(tmp_path, truth, results, variant="coco")
    with pytest.raises(UsageError, match="Invalid setting"):
        evaluated(tmp_path, truth, results, variant="lvis", image_limit=0)
    for image in truth["images"]:
        del image["neg_category_ids"], image["not_exhaustive_category_ids"]
    known = [one for one in results if one["category_id"] <= 5]
    for variant in ("lvis", "lvis-fixed", "coco-federated"):
        with pytest.raises(EvaluationError, match="labelled for"):
            evaluated(tmp_path, truth, known, variant=variant)
    assert {one.variant for one in evaluated(tmp_path, truth, known, variant="all").scored} == {"coco"}
