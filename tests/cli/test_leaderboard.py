"""``curation evaluate … --append`` and ``curation leaderboard``, from files to tables."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import curation
from curation.benchmarks.findmeifyoucan.evaluation import OodOptions
from curation.cli import main
from tests.evaluation.leaderboard_cases import row_data, write_rows
from tests.evaluation.ood_worlds import example_files
from tests.evaluation.oscr_cases import LABELS, SOFTMAX, table
from tests.evaluation.osod3_world import write_world
from tests.evaluation.owod_files import truth_file
from tests.shell import Shell

OPTIONS: dict[str, list[str]] = {
    "elephant": ["--variant", "all", "--set", "recalls=0.1,0.5"],
    "voc": [],
    "coco": [],
    "owod": ["--variant", "all"],
    "osod3": ["--variant", "all"],
    "findmeifyoucan": ["--set", "fpr=nearest"],
    "imagenet": ["--set", "queries=0.25,1"],
}


OSOD3_FILES = {"truth": "gt", "detections": "detections", "classes": "classes"}


def results(path: Path, images: range) -> Path:
    rows = [{"image_id": k, "category_id": 1, "bbox": [10, 10, 20, 20], "score": 1 / (1 + k)} for k in images]
    path.write_text(json.dumps(rows))
    return path


def command(protocol: str, folder: Path) -> list[str]:
    """Write small files of a protocol, and return the command that evaluates them."""
    if protocol == "findmeifyoucan":
        files = example_files(folder)
        given = [("--truth", files["truth"]), ("--detections", files["detections"]), ("--scores", files["id"])]
    elif protocol == "osod3":
        world = write_world(folder)
        given = [(f"--{one}", world[key]) for one, key in OSOD3_FILES.items()]
    elif protocol == "imagenet":
        np.savez(folder / "soft.npz", gt=np.array(LABELS, float), scores=np.array(table(SOFTMAX)))
        given = [("--scores", folder / "soft.npz")]
        return ["evaluate", protocol, *(str(word) for pair in given for word in pair)]
    else:
        given = []
        for part in ("closed", "wilderness") if protocol == "elephant" else ("test",):
            below = folder / part
            below.mkdir()
            objects = [(k, "unknown" if part == "wilderness" or (k % 3 == 0 and protocol == "owod") else "cat")
                       for k in range(1, 9)]  # fmt: skip
            truth = truth_file(below, ["cat", "unknown"], 8, objects)
            prefix = f"{part}=" if protocol == "elephant" else ""
            given += [("--truth", f"{prefix}{truth}")]
            given += [("--detections", f"{prefix}{results(below / 'model.json', range(1, 7))}")]
    return ["evaluate", protocol, *(str(word) for pair in given for word in pair)]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_nothing_is_evaluated_when_the_rows_could_not_be_appended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*command("voc", tmp_path), "--out", str(tmp_path / "out")]
    other = tmp_path / "verdicts.jsonl"
    other.write_text('{"image_id": "coco:1"}\n')
    for more, message in (
        (["--append", str(other)], "verdicts.jsonl, line 1"),
        (["--append", str(tmp_path / "results.json")], "JSON Lines"),
        (["--name", "mine"], "--append"),
        (["--append", str(tmp_path / "new.jsonl"), "--name", "a\nb"], "method name"),
    ):
        assert main([*given, *more]) == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
    assert other.read_text() == '{"image_id": "coco:1"}\n'


def test_the_table_and_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_rows(
        tmp_path / "rows.jsonl", row_data("ours", 0.125), row_data("theirs", 0.5), row_data("ours", 0.125)
    )
    with path.open("a") as stream:
        stream.write('{"torn')
    page = tmp_path / "page.html"
    assert main(["leaderboard", str(path), "--metric", "AWI@0.3"]) == 0
    shown = capsys.readouterr()
    lines = [line.split() for line in shown.out.splitlines()]
    assert ["1", "ours", "0.50", "0.1250"] in lines
    assert ["2", "theirs", "0.50", "0.5000"] in lines
    assert "line 3 duplicates line 1" in shown.out
    assert "cut off" in shown.err
    assert main(["leaderboard", str(path), "--metric", "AWI@0.3", "--out", str(page)]) == 0
    assert page.read_text().startswith("<!doctype html>")


def test_the_file_of_a_model_on_the_hub(tmp_path: Path, shell: Shell) -> None:
    hub = pytest.importorskip("huggingface_hub")
    path = write_rows(tmp_path / "rows.jsonl", row_data("ours", 0.125), row_data("theirs", 0.5))
    words = ("leaderboard", path, "--dataset", "me/parts@0a1b", "--format", "hub")
    assert "ours, theirs" in shell.err(*words)
    entries = hub.parse_eval_result_entries(yaml.safe_load(shell.out(*words, "--method", "ours")))
    assert {(entry.dataset_id, entry.dataset_revision) for entry in entries} == {("me/parts", "0a1b")}
    assert 0.125 in [entry.value for entry in entries]
    assert all("sha256:" in entry.notes for entry in entries)
    out = tmp_path / "ours.yaml"
    shell.out("leaderboard", path, "--dataset", "me/parts", "--method", "theirs", "--out", out)
    assert len(yaml.safe_load(out.read_text())) == len(entries)
    assert "go together" in shell.err("leaderboard", path, "--format", "hub")
    assert "a repository" in shell.err("leaderboard", path, "--format", "hub", "--dataset", "me", "--method", "ours")


SCORES = ("msp", "energy", "gen", "knn", "mahalanobis", "ddu", "ash_s", "dice", "react", "dice_react", "vim", "lard")
SPLITS = ("coco_near", "coco_far", "openimages_near", "openimages_far", "coco_farther", "openimages_farther")


def write_splits(folder: Path) -> list[str]:
    """Write truths and detections of six splits under twelve scores; return the command that evaluates them."""
    rng = np.random.default_rng(0)

    def records(images: range, mean: float) -> list[dict[str, Any]]:
        return [
            {"image_id": k, "bbox": [11, 12, 80, 80], "score": float(rng.uniform(0.4, 1)),
             "scores": {name: float(rng.normal(mean, 1)) for name in SCORES}}
            for k in images
        ]  # fmt: skip

    words = []
    (folder / "id.json").write_text(json.dumps(records(range(100, 120), 2)))
    for split in SPLITS:
        truth = truth_file(folder, ["thing"], 9, [(k, "thing") for k in range(1, 10)])
        truth = truth.rename(folder / f"{split}.json")
        (folder / f"{split}-detections.json").write_text(json.dumps(records(range(1, 8), 0)))
        words += ["--truth", f"{split}={truth}", "--detections", f"{split}={folder / split}-detections.json"]
    return ["evaluate", "findmeifyoucan", *words, "--scores", str(folder / "id.json"), "--variant", "paper"]


def test_twelve_methods_on_six_splits_fit_into_a_terminal(tmp_path: Path, shell: Shell) -> None:
    path = tmp_path / "results.jsonl"
    evaluated = shell.out(*write_splits(tmp_path), "--append", path).splitlines()
    board = shell.out("leaderboard", path).splitlines()
    metrics = list(lines_of(path)[0]["metrics"])
    assert {entry["unit"] for entry in lines_of(path)[0]["metrics"].values()} == {"share", "%", "count"}
    for lines, leading in ((evaluated, ["method"]), (board, ["rank", "method"])):
        assert max(len(line) for line in lines if "results.jsonl" not in line) <= 100
        heads = [number for number, line in enumerate(lines) if line.split() == [*leading, *metrics]]
        assert len(heads) == len(SPLITS)
        for number in heads:
            # A share beside percentages is one of them.
            assert lines[number + 1].split().count("%") == len(metrics) - 1
            rows = [line.split() for line in lines[number + 2 : number + 2 + len(SCORES)]]
            assert {row[len(leading) - 1] for row in rows} == set(SCORES)
            assert {len(row) for row in rows} == {len(leading) + len(metrics)}
    # An evaluation keeps the order of the splits; groups of a leaderboard that no manifest orders have any.
    titles = [line.partition(" (")[0] for line in evaluated if line.startswith("Measures")]
    assert titles == [f"Measures: {split} · paper" for split in SPLITS]
    titles = [line.split(" · ")[1] for line in board if line.startswith("Group")]
    assert sorted(titles) == sorted(SPLITS)
    # Files are whole, a column a measure; CSV and JSON keep the units of the measures.
    assert "AUROC $\\uparrow$ \\%" in shell.out("leaderboard", path, "--format", "latex")
    [header, first, *_] = shell.out("leaderboard", path, "--format", "csv").splitlines()
    values = dict(zip(header.split(","), next(csv.reader([first])), strict=True))
    assert 0 < float(values["AUROC"]) <= 1
    assert set(metrics) <= values.keys()


def test_the_figure_of_the_measures_shows_what_the_table_says(tmp_path: Path, shell: Shell) -> None:
    data = shell.data(*write_splits(tmp_path), "--out", tmp_path / "out", "--json")
    with (tmp_path / "out/measures_paper.csv").open(newline="") as stream:
        drawn = {(row["score"], row["split"], row["measure"]): float(row["value"]) for row in csv.DictReader(stream)}
    told = {(row["score"], row["split"], row["measure"]): row["value"] for row in data["measures"]}
    assert len(drawn) == len(SCORES) * len(SPLITS) * 6
    assert drawn == {key: told[key] for key in drawn}


def test_the_summary_of_a_result_is_in_one_unit_for_the_eye(tmp_path: Path) -> None:
    files = example_files(tmp_path)
    result = curation.evaluate.findmeifyoucan(
        truth=files["truth"], detections=files["detections"], id_scores=files["id"], options=OodOptions(variant="paper")
    )
    assert "AUROC $\\uparrow$ \\%" in result.latex()
    [value] = result.summary().frame()["AUROC"]
    assert f"{100 * value:.2f}" in result.latex()
    assert 0 < value < 1


def test_more_measures_than_a_line_holds_continue_below(tmp_path: Path, shell: Shell) -> None:
    names = [f"measure_{number:02}" for number in range(20)]
    metrics = {name: {"value": 0.5, "unit": "ratio", "better": "lower"} for name in names}
    path = write_rows(tmp_path / "rows.jsonl", row_data("ours", protocol="new", metrics=metrics))
    lines = shell.out("leaderboard", path).splitlines()
    assert max(map(len, lines)) <= 100
    heads = [line.split() for line in lines if line.split()[:2] == ["rank", "method"]]
    assert [name for head in heads for name in head[2:]] == names
    assert sum(line.split()[:2] == ["1", "ours"] for line in lines) == len(heads) > 1
