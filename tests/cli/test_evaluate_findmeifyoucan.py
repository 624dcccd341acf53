import json
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from curation.manifest.header import ClassEntry
from tests.evaluation.ood_reference import EXAMPLE, EXPECTED
from tests.evaluation.ood_worlds import example_files, hexadecimal, plain, results_content, truth_content, write
from tests.frozen.version_1 import of_json
from tests.shell import Shell
from tests.toy_manifests import write_toy


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return example_files(tmp_path)


def arguments(files: dict[str, Path], *more: str) -> list[str]:
    given = ["evaluate", "findmeifyoucan", "--truth", str(files["truth"])]
    return [*given, "--detections", str(files["detections"]), "--scores", str(files["id"]), *more]


def answer(shell: Shell, *given: object) -> dict[str, Any]:
    found: dict[str, Any] = of_json(shell.data(*given))
    return found


@pytest.mark.parametrize("name", [plain, hexadecimal])
def test_the_worked_example(tmp_path: Path, shell: Shell, name: Any) -> None:
    found = answer(shell, *arguments(example_files(tmp_path, name)), "--json")
    for profile, expected in EXPECTED.items():
        assert {key: found[profile][key] for key in expected} == pytest.approx(expected, abs=5e-4)
    assert found["pct_images_without_predictions"] == 16.67
    assert found["results"]["ood"]["paper"] == found["paper"]


@pytest.mark.usefixtures("unpainted")
def test_several_splits_and_scores(tmp_path: Path, shell: Shell) -> None:
    rows = results_content(EXAMPLE)
    for row in rows:
        row["scores"] = {"energy": row.pop("ood_score"), "noise": 1.0}
    files = {**example_files(tmp_path), "detections": write(tmp_path / "d.json", rows)}
    ids = write(tmp_path / "ids.json", {"scores": {"energy": EXAMPLE.ids, "noise": [1.0] * 20}})
    given = ["evaluate", "findmeifyoucan", "--scores", str(ids)]
    for split in ("near", "far"):
        given += ["--truth", f"{split}={files['truth']}", "--detections", f"{split}={files['detections']}"]
    found = answer(shell, *given, "--json")
    assert set(found["results"]) == {f"{split}/{score}" for split in ("near", "far") for score in ("energy", "noise")}
    assert "AUROC" not in found
    assert found["results"]["far/energy"]["paper"]["TP_U"] == 3
    assert found["results"]["near/noise"]["AUROC"] == 0.5
    one = answer(shell, *given, "--score", "energy", "--out", tmp_path / "out", "--json")
    assert set(one["results"]) == {"near", "far"}


def test_background_is_unknown_only_with_official_compat(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shell: Shell
) -> None:
    rows = results_content(EXAMPLE)
    for row in rows:
        row["logits"] = [0.0, 1.0, 9.0 if row["ood_score"] == 9.0 else 0.5]
    files = {**example_files(tmp_path), "detections": write(tmp_path / "d.json", rows)}
    clean = answer(shell, *arguments(files, "--set", "id_classes=2"), "--json")
    compat = answer(shell, *arguments(files, "--set", "id_classes=2", "--set", "official_compat=yes"), "--json")
    assert (clean["official"]["n_det_unknown"], compat["official"]["n_det_unknown"]) == (6, 7)
    assert compat["counts"]["background_taken_as_unknown"] == 1
    listed = write(tmp_path / "classes.json", {"known": ["a", "b"], "unknown": []})
    assert answer(shell, *arguments(files, "--classes", str(listed)), "--json")["settings"]["id_classes"] == 2
    assert "disagree" in shell.err(*arguments(files, "--classes", str(listed), "--set", "id_classes=3"))
    # Without K nothing says that the third column is the background: refused, or told.
    assert "needs the number of ID classes" in shell.err(*arguments(files, "--set", "official_compat=yes"))
    assert main(arguments(files)) == 0
    assert "3 columns" in " ".join(capsys.readouterr().err.split())


def test_without_objects_no_rate_is_a_number(tmp_path: Path, shell: Shell) -> None:
    files = example_files(tmp_path)
    truth = json.loads(files["truth"].read_text(encoding="utf-8"))
    files = {**files, "truth": write(tmp_path / "empty.json", {**truth, "annotations": []})}
    found = answer(shell, *arguments(files), "--json")
    for profile in ("official", "paper"):
        assert {found[profile][rate] for rate in ("P_U", "R_U", "AP_U", "nOSE")} == {None}
        assert "N_U is 0" in found[profile]["undefined"]["P_U"]
        assert found[profile]["unrounded"]["P_U"] is None


def test_shared_images_are_refused_or_told(files: dict[str, Path], shell: Shell) -> None:
    shared = write(files["id"], {"scores": EXAMPLE.ids, "image_ids": [1] * 20})
    assert "share images" in shell.err(*arguments({**files, "id": shared}))
    assert "share 1 image ids: 1" in shell.err(
        *arguments({**files, "id": shared}, "--on-error", "shared-ids=report", "--json"), status=0
    )


@pytest.mark.parametrize(
    ("which", "content", "told"),
    [
        (
            "detections",
            [{"image_id": 77, "bbox": [1, 1, 2, 2], "score": 0.5, "ood_score": 1}],
            "not in the ground truth",
        ),
        ("detections", '[{"image_id": 1, "bbox": [1, 1, 2, 2], "score": 0.5, "ood_score": NaN}]', "cannot be read"),
        ("detections", [{"image_id": 1, "bbox": [1, 1, 2, 1e99], "score": 0.5, "ood_score": 1}], "impossible box"),
        ("detections", [{"image_id": 1, "bbox": [1, 1, 2, 2], "score": 0.5}], "no OOD score in common"),
        ("detections", truth_content(EXAMPLE), "ground-truth file"),
        ("id", "[]x", "cannot be read"),
        ("truth", {"images": [{"id": 1}, {"id": 1}], "annotations": [], "categories": []}, "id"),
        (
            "truth",
            {
                "images": [{"id": 1}],
                "annotations": [{"id": 1, "image_id": 9, "category_id": 1, "bbox": [0, 0, 1, 1]}],
                "categories": [{"id": 1, "name": "fox"}],
            },
            "9",
        ),
    ],
)
def test_bad_files_are_told(files: dict[str, Path], shell: Shell, which: str, content: Any, told: str) -> None:
    write(files[which], content)
    assert told in shell.err(*arguments(files))


def test_empty_files_are_evaluated(files: dict[str, Path], tmp_path: Path, shell: Shell) -> None:
    write(files["detections"], [])
    found = answer(shell, *arguments(files, "--out", str(tmp_path / "out")), "--json")
    assert found["AUROC"] is None
    assert found["pct_images_without_predictions"] == 100
    write(files["id"], {"scores": []})
    assert answer(shell, *arguments(files, "--out", str(tmp_path / "out"), "--force"), "--json")["threshold"] is None


def manifest_of(folder: Path, lists: dict[str, tuple[str, ...]]) -> str:
    """Write a manifest whose parts are OOD splits."""
    fox = ClassEntry(name="fox", role="unknown", index=0)
    return write_toy(folder, lists, [fox], name="findmeifyoucan/toy", taxonomy="OSOD-I")


def test_a_manifest_names_splits_and_their_images(files: dict[str, Path], tmp_path: Path, shell: Shell) -> None:
    ids = {image: f"coco:{image:012d}" for image in EXAMPLE.objects}
    lists = {"near": tuple(ids[image] for image in (1, 2, 4)), "far": tuple(ids[image] for image in (3, 5, 6))}
    given = ["evaluate", "findmeifyoucan", "--manifest", manifest_of(tmp_path / "toy", lists)]
    given += ["--truth", str(files["truth"]), "--scores", str(files["id"]), "--on-error", "stray=drop"]
    both = [*given, "--detections", f"near={files['detections']}", "--detections", f"far={files['detections']}"]
    found = answer(shell, *both, "--json")
    assert found["manifest"]["parts"] == ["near", "far"]
    near, far = found["results"]["near"], found["results"]["far"]
    assert (near["images"], far["images"]) == (3, 3)
    assert near["paper"]["TP_U"] + far["paper"]["TP_U"] == 3
    assert near["pct_images_without_predictions"] == 33.33
    assert "does not say which split" in shell.err(*given, "--detections", files["detections"])
