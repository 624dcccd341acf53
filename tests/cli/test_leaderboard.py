"""``curation evaluate … --append`` and ``curation leaderboard``, from files to tables."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.benchmarks.registry import measures_of
from curation.cli import main
from tests.evaluation.leaderboard_cases import row_data, write_rows
from tests.evaluation.ood_worlds import example_files
from tests.evaluation.oscr_cases import LABELS, SOFTMAX, table
from tests.evaluation.osod3_world import write_world
from tests.evaluation.owod_files import truth_file

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


@pytest.mark.parametrize("protocol", OPTIONS)
def test_rows_hold_the_ranked_numbers_of_the_result(
    protocol: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    given = [*command(protocol, tmp_path), *OPTIONS[protocol], "--append", str(rows)]
    assert main([*given, "--json"]) == 0
    numbers: dict[str, dict[str, Any]] = {}
    ranked = {one.base for one in measures_of(protocol)}
    for row in json.loads(capsys.readouterr().out)["measures"]:
        if row["measure"] in ranked:
            key = "@".join(filter(None, (row["measure"], row["parameters"].partition("=")[2])))
            numbers.setdefault(row["variant"], {})[key] = row["value"]
    in_rows: dict[str, dict[str, Any]] = {}
    for row in lines_of(rows):
        in_rows.setdefault(row["variant"], {}).update({name: one["value"] for name, one in row["metrics"].items()})
    assert numbers == in_rows
    assert all(any(value is not None for value in found.values()) for found in numbers.values())
    before, n = rows.read_bytes(), len(lines_of(rows))
    assert n == len(numbers) * (2 if protocol == "elephant" else 1)
    assert main([*given, "--name", "again"]) == 0
    assert f"appended {n} row" in capsys.readouterr().out
    assert rows.read_bytes().startswith(before)
    assert lines_of(rows)[n:] == [row | {"name": "again"} for row in lines_of(rows)[:n]]
    assert main(["leaderboard", str(rows), "--json"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert len(groups) == n
    assert all([row["rank"] for row in group["rows"]] == [1, 1] for group in groups)


def test_a_manifest_pins_the_ground(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.small_world import write_detections, write_small_world

    world = write_small_world(tmp_path)
    sources = [f"--source=voc2007-test={world.voc_root}", f"--source=coco={world.coco_json}"]
    folder = str(tmp_path / "m")
    assert main(["build", "elephant", *sources, "--out", folder]) == 0
    given = ["evaluate", "elephant", "--manifest", folder]
    for part in ("closed", "wilderness"):
        truth = str(tmp_path / f"{part}.json")
        assert main(["export", folder, "--part", part, "--format", "coco", *sources, "--out", truth]) == 0
        write_detections(Path(truth), tmp_path / f"{part}-found.json")
        given += ["--truth", f"{part}={truth}", "--detections", f"{part}={tmp_path / part}-found.json"]
    rows = tmp_path / "rows.jsonl"
    assert main([*given, "--append", str(rows), "--name", "a"]) == 0
    assert (
        main([*given, "--append", str(rows), "--name", "b", "--part", "wilderness=wr1", "--on-error", "stray=drop"])
        == 0
    )
    header = json.loads((tmp_path / "m" / "manifest.json").read_text())
    known = [one["name"] for one in header["classes"] if one["role"] == "known"]
    (tmp_path / "classes.json").write_text(json.dumps({"known": known}))
    assert main([*given, "--append", str(rows), "--classes", str(tmp_path / "classes.json")]) == 0
    capsys.readouterr()
    closed, first, closed_again, second, *other_classes = lines_of(rows)
    assert not any(row["pinned"] for row in other_classes)
    assert first["manifest"]["digest"] == second["manifest"]["digest"] == header["digest"]
    parts = [row["part"] for row in (closed, first, closed_again, second)]
    assert parts == ["closed", "closed + wilderness", "closed", "closed + wr1"]
    # The numbers of the closed set are comparable whatever the wilderness.
    assert {**closed_again, "name": "a"} == closed
    assert first["pinned"]


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
    assert "line 3 says again what line 1 says" in shown.out
    assert "cut off" in shown.err
    assert main(["leaderboard", str(path), "--metric", "AWI@0.3", "--out", str(page)]) == 0
    assert page.read_text().startswith("<!doctype html>")


def test_rows_of_one_name_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row_data("a", value, operating_point={"t_star": point}) for value, point in ((1, "0.05"), (2, "0.1"))]
    assert main(["leaderboard", str(write_rows(tmp_path / "rows.jsonl", *rows))]) == 0
    told = capsys.readouterr().out
    assert all(f"t_star {point}" in told for point in ("0.05", "0.1"))
    assert main(["leaderboard", str(write_rows(tmp_path / "rows.jsonl", rows[0], row_data("b")))]) == 0
    assert "t_star" not in capsys.readouterr().out
    same_point = row_data("a", 1, predictions="sha256:" + "7" * 64)
    assert main(["leaderboard", str(write_rows(tmp_path / "rows.jsonl", row_data("a"), same_point))]) == 0
    told = capsys.readouterr().out
    assert "a (line 1)" in told
    assert "a (line 2)" in told


def test_one_group_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_rows(tmp_path / "rows.jsonl", row_data("a"), row_data("b", variant="official"))
    assert main(["leaderboard", str(path), "--group", "2"]) == 0
    shown = capsys.readouterr().out
    assert "Group 2" in shown
    assert "Group 1" not in shown
    for group in ("-1", "0", "3"):
        assert main(["leaderboard", str(path), f"--group={group}"]) == 2
        assert "--group" in capsys.readouterr().err
