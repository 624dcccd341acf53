"""OSOD-III: the worked example, the golden case, an evaluator in loops, and what must not matter."""

import csv
import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.benchmarks.osod3.evaluation import (
    THETAS,
    VARIANTS,
    Outside,
    TruthView,
    detectors_figure,
    evaluate,
    evaluate_case,
    open_set_classes,
    open_set_truth,
    over_cases,
    thresholds_of,
    truth_view,
)
from curation.core.errors import UsageError
from curation.evaluation.measures import Measured, Value
from curation.evaluation.readers import read_task_detections
from curation.sources.opening import open_path
from tests.evaluation.osod3_rows import of_measured
from tests.evaluation.osod3_world import KNOWN, OBJECTS, UNKNOWN, random_world, write_world
from tests.protocols import osod3_world as manifests
from tests.real_files import real_files
from tests.worlds import osod3_reference as reference
from tests.worlds.boxes import Guess, Thing


def scored(
    paths: dict[str, Path],
    outside: Outside = "delete",
    view: TruthView | None = None,
    thetas: Sequence[str] = THETAS,
    **options: Any,
) -> dict[str, Any]:
    source = open_path(paths["gt"], dataset="coco", part="test")
    truth = open_set_truth(source, open_set_classes(paths["classes"], "test"), outside=outside, view=view)
    read = read_task_detections(paths["detections"], truth.task, source)
    found = evaluate_case(truth, read.detections, tuple(VARIANTS.values()), thresholds_of(thetas), **options)
    return of_measured(found)


def test_the_worked_example(tmp_path: Path) -> None:
    result = scored(write_world(tmp_path))
    at_floor = {name: rows[1] for name, rows in result["curves"].items()}
    assert {k: at_floor["voc"][k] for k in ("TP", "FP", "AOSE")} == {"TP": 3, "FP": 5, "AOSE": 2}
    assert {k: at_floor["clean"][k] for k in ("TP", "FP", "AOSE")} == {"TP": 3, "FP": 4, "AOSE": 2}
    assert at_floor["voc"]["WI"] == pytest.approx(1 / 3)
    assert at_floor["clean"]["WI"] == pytest.approx(2 / 5)
    assert at_floor["voc"]["WI_all_fp"] == pytest.approx(1 / 4)
    assert result["AP_unk"] == pytest.approx(100 * 9 / 10 * 51 / 101 / 2)
    assert result["AP_per_class"]["fox"] is None
    assert result["AP_known"] == pytest.approx((result["AP_per_class"]["cat"] + 100) / 2)
    assert result["n"]["outside_objects"] == 1


@real_files("held")
def check_the_golden_case(shared: Path) -> None:
    folder = shared / "golden/osod3/hand"
    expected = json.loads((folder / "expected.json").read_text())
    result = scored({"gt": folder / "gt.json", "detections": folder / "detections.json",
                     "classes": folder / "manifest.json"})  # fmt: skip
    averages = expected["scores_other_delete"]
    for name in ("AP_known", "AP_unk", "AP_known50", "AP_unk50", "AP_known75", "AP_unk75"):
        assert result[name] == pytest.approx(averages[name], abs=1e-9)
    for name, value in averages["AP_per_class"].items():
        assert result["AP_per_class"][name] == (None if value is None else pytest.approx(value, abs=1e-9))
    for profile, key in (("voc", "curve"), ("clean", "curve_clean")):
        for row, theirs in zip(result["curves"][profile], expected[key], strict=True):
            for name, value in theirs.items():
                # The golden file writes A-OSE with an underscore.
                assert row[name.replace("A_OSE", "AOSE")] == (
                    None if value is None else pytest.approx(value, abs=1e-12)
                ), (profile, name)


@pytest.mark.parametrize("seed", range(12))
def test_curves_are_what_loops_count(tmp_path: Path, seed: int) -> None:
    objects, detections = random_world(seed)
    objects += [(1, "cat", [0.0, 0.0, 9.0, 9.0], 0), (1, "lynx", [300.0, 300.0, 9.0, 9.0], 0)]
    thetas = ("0", "0.35", "0.7")
    result = scored(write_world(tmp_path, objects, detections, images=6), thetas=thetas)
    things = [Thing(image, name, whole(box), bool(crowd)) for image, name, box, crowd in objects]
    guesses = [Guess(image, name, whole(box), round(100 * score)) for image, name, score, box in detections]
    seen = reference.relabelled(things, KNOWN, UNKNOWN, "delete")
    for variant, rows in result["curves"].items():
        expected = reference.curve(seen, guesses, KNOWN, variant, [Fraction(one) for one in thetas])
        for row, theirs in zip(rows, expected, strict=True):
            assert row == {
                name: value if value is None else pytest.approx(float(value)) for name, value in theirs.items()
            }
            assert row["FP_open"] <= row["AOSE"]
        assert [row["AOSE"] for row in rows] == sorted((row["AOSE"] for row in rows), reverse=True)


def whole(box: Any) -> Any:
    return tuple(map(int, box))


def test_more_than_a_hundred_boxes_of_a_label(tmp_path: Path) -> None:
    far = [(1, "cat", 0.9 - k / 1000, [300.0 + k, 300, 20, 20]) for k in range(100)]
    hit = [(1, "cat", 0.5, [10.0, 10, 100, 100])]
    assert scored(write_world(tmp_path, OBJECTS, [*far, *hit]))["AP_per_class"]["cat"] == 0
    assert scored(write_world(tmp_path, OBJECTS, [*far[1:], *hit]))["AP_per_class"]["cat"] > 0


def test_outside_objects_ignored(tmp_path: Path) -> None:
    paths = write_world(tmp_path)
    # The unknown detection on the teapot is neither right nor wrong then: the other one comes first.
    assert scored(paths, "ignore")["AP_unk"] == pytest.approx(100 * 9 / 10 * 51 / 101)
    assert scored(paths, "ignore")["AP_known"] == scored(paths)["AP_known"]


def test_what_a_view_ignores_is_neither_right_nor_wrong(tmp_path: Path) -> None:
    paths = write_world(tmp_path)
    of_class = scored(paths, view=TruthView(ignored=("teapot",)))
    assert of_class["AP_unk"] == scored(paths, "ignore")["AP_unk"]
    assert of_class["n"]["outside_objects"] == 0
    truth = json.loads(paths["gt"].read_text())
    marked = [one for one in truth["annotations"] if one["category_id"] in (3, 4)]
    marked[0]["ignore"] = 1
    paths["gt"].write_text(json.dumps(truth))
    # The lynx that was found is ignored: the other one was not, and no detection of a known class lies on the first.
    found = scored(paths, view=TruthView(marked_ignored=True))
    assert (found["AP_unk"], found["n"]["unknown_objects"]) == (0, 1)
    assert found["curves"]["voc"][0]["AOSE"] == 1
    assert scored(paths)["n"]["unknown_objects"] == 2


@pytest.mark.parametrize("inner", ["drop", "ignore"])
def test_the_view_of_a_manifest(inner: str) -> None:
    sources = {
        f"openimages-{part}": manifests.open_images(part, 300, seed)
        for seed, part in enumerate(("train", "validation", "test"))
    }
    manifest = manifests.built(sources, superclass="vehicle", inner_nodes=inner, group_of="drop")
    view = truth_view(manifest, "test")
    assert view.crowd == "drop"
    expected = {manifests.name_of(one) for one in manifests.INNER_NODES["vehicle"]}
    assert set(view.ignored) == (expected if inner == "ignore" else set())
    assert view.marked_ignored


def test_mean_and_both_deviations() -> None:
    names = ("AP_known", "AP_unk", "AP_known50", "AP_unk50", "AP_known75", "AP_unk75")
    cases = {
        f"t{k}": Measured([Value(name, None if (k, name) == (4, "AP_unk") else float(k)) for name in names], {})
        for k in (1, 2, 3, 4)
    }
    found = over_cases(cases)
    assert found["AP_known"]["mean"] == 2.5
    assert found["AP_known"]["std_population"] == pytest.approx(np.sqrt(1.25))
    assert found["AP_known"]["std_sample"] == pytest.approx(np.sqrt(5 / 3))
    assert found["AP_unk"]["n"] == 3
    assert found["AP_unk"]["left_out"] == ["t4"]


def test_one_figure_holds_the_curves_of_two_detectors(tmp_path: Path) -> None:
    files = write_world(tmp_path)
    given = {"truth": files["gt"], "classes": files["classes"]}
    first = evaluate(**given, detections=files["detections"], variant="clean")
    lower = [row | {"score": row["score"] / 2} for row in json.loads(files["detections"].read_text())]
    (tmp_path / "lower.json").write_text(json.dumps(lower))
    second = evaluate(**given, detections=tmp_path / "lower.json", variant="clean")
    paths = detectors_figure({"FCOS": first, "Faster R-CNN": second}, tmp_path / "two", variant="clean")
    with paths[-1].open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for name, result in (("FCOS", first), ("Faster R-CNN", second)):
        own = [float(row["AOSE"]) for row in rows if row["detector"] == name]
        assert own == result.table("thresholds")["AOSE"].tolist()
    with pytest.raises(UsageError, match="no curve of this variant"):
        detectors_figure({"FCOS": first}, tmp_path / "none", variant="voc")
