"""The confidence cut at the best mAP on the ID test."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.benchmarks.findmeifyoucan.evaluation import best_t_star
from curation.core.errors import EvaluationError, UsageError
from tests.evaluation.ood_worlds import example_files
from tests.shell import Shell

CLASSES = ("cat", "dog")


def write(folder: Path, seed: int) -> tuple[Path, Path]:
    """Write a drawn ID test with detections on objects, beside them, and of another class; return both files."""
    rng = np.random.default_rng(seed)
    images = [{"id": k, "file_name": f"{k}.jpg", "width": 400, "height": 300} for k in range(500, 520)]
    objects, found = [], []
    for image in images:
        for place in range(int(rng.integers(0, 4))):
            box = [100 * place, 50, 60, 60]
            kind = int(rng.integers(1, 3))
            objects.append({"id": len(objects) + 1, "image_id": image["id"], "category_id": kind, "bbox": box})
            for _ in range(int(rng.integers(0, 3))):
                moved = [box[0] + int(rng.integers(0, 40)), *box[1:]]
                guess = kind if rng.random() < 0.7 else 3 - kind
                score = round(float(rng.uniform(0.01, 1)), 2)
                found.append({"image_id": image["id"], "category_id": guess, "bbox": moved, "score": score})
    categories = [{"id": k, "name": name} for k, name in enumerate(CLASSES, 1)]
    truth = {"images": images, "annotations": objects, "categories": categories}
    (folder / "id-truth.json").write_text(json.dumps(truth))
    (folder / "id-detections.json").write_text(json.dumps([row | {"ood_score": 5 + row["score"]} for row in found]))
    return folder / "id-truth.json", folder / "id-detections.json"


def mean_ap(shell: Shell, truth: Path, detections: Path, folder: Path, cut: float) -> float:
    kept = [row for row in json.loads(detections.read_text()) if row["score"] >= cut]
    (folder / "cut.json").write_text(json.dumps(kept))
    data = shell.data("evaluate", "voc", "--truth", truth, "--detections", folder / "cut.json", "--json")
    [value] = [row["value"] for row in data["measures"] if row["measure"] == "mAP_area" and row["variant"] == "voc"]
    return float(value)


@pytest.mark.parametrize("seed", range(3))
def test_no_cut_has_a_higher_map_and_none_above_it_the_same(seed: int, tmp_path: Path, shell: Shell) -> None:
    truth, detections = write(tmp_path, seed)
    best = best_t_star(truth, detections)
    scores = sorted({row["score"] for row in json.loads(detections.read_text())})
    by_cut = {cut: mean_ap(shell, truth, detections, tmp_path, cut) for cut in scores[:12]}
    highest = max(by_cut.values())
    assert best == max(cut for cut, value in by_cut.items() if value == pytest.approx(highest, abs=1e-9))


def arguments(folder: Path) -> list[Any]:
    files = example_files(folder)
    return ["evaluate", "findmeifyoucan", "--truth", files["truth"], "--detections", files["detections"], "--json"]


def test_both_files_are_cut_there_and_the_result_says_where(tmp_path: Path, shell: Shell) -> None:
    truth, detections = write(tmp_path, 1)
    best = best_t_star(truth, detections)
    command = [*arguments(tmp_path), "--scores", detections]
    cut = shell.data(*command, "--id-truth", truth, "--set", "t_star=best")
    given = shell.data(*command, "--set", f"t_star={best!r}")
    assert cut["settings"]["t_star_by_split"] == {"ood": best}
    assert cut["measures"] == given["measures"]
    assert cut["option_files"]["id_truth"]["name"] == "id-truth.json"
    assert cut["scored"][0]["operating_point"]["t_star"] == f"best, {best:.7g}"


def test_what_it_needs_is_said(tmp_path: Path, shell: Shell) -> None:
    truth, detections = write(tmp_path, 1)
    command = [*arguments(tmp_path), "--scores", detections]
    for more in (["--set", "t_star=best"], ["--id-truth", truth]):
        assert "need each other" in shell.err(*command, *more)
    np.save(tmp_path / "s.npy", np.arange(5.0))
    with pytest.raises(UsageError, match="the ID detections themselves"):
        best_t_star(truth, tmp_path / "s.npy")
    (tmp_path / "none.json").write_text('[{"image_id": 500, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 0.5}]')
    with pytest.raises(EvaluationError, match="No detection matches an object"):
        best_t_star(truth, tmp_path / "none.json")
