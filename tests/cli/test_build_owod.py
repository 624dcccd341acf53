"""A user's own data through the whole house: task file, build, verify, show, audit, export, evaluate."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from curation.manifest.built_from import BUILT_FROM_FILE
from curation.manifest.manifest import read_manifest
from tests.evaluation.open_world_rows import of_result

TASKS = """
name = "mylab/shapes"
title = "Shapes, circle to star"
dataset = "shapes"
ignored = ["blob"]
exhaustive = true

[[tasks]]
name = "t1"
classes = ["circle", "square"]

[[tasks]]
name = "t2"
classes = ["triangle"]

[[tasks]]
name = "t3"
classes = ["star"]

[aliases]
circle = ["disc"]
"""
NAMES = ("star", "disc", "square", "triangle", "blob")


def write_coco(path: Path, prefix: str, n: int, seed: int) -> dict[str, Any]:
    """Write COCO JSON with text ids, as many annotation tools do."""
    rng = random.Random(seed)
    images = [
        {"id": f"{prefix}_{k:04d}", "file_name": f"{prefix}_{k:04d}.png", "width": 200, "height": 100} for k in range(n)
    ]
    annotations = [
        {
            "id": number,
            "image_id": image["id"],
            "category_id": rng.randrange(len(NAMES)) + 1,
            "bbox": [5 + 30 * place, 10, 20, 20],
            "area": 400,
            "iscrowd": 0,
        }
        for number, (image, place) in enumerate(
            ((image, place) for image in images[1:] for place in range(rng.randint(1, 4))), start=1
        )
    ]
    content = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": number, "name": name} for number, name in enumerate(NAMES, start=1)],
    }
    path.write_text(json.dumps(content))
    return content


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    write_coco(tmp_path / "train.json", "train", 200, 1)
    write_coco(tmp_path / "test.json", "test", 40, 2)
    (tmp_path / "tasks.toml").write_text(TASKS)
    return tmp_path


SOURCES = ["--source", "train=train.json", "--source", "test=test.json"]
SETTINGS = ["--set", "val_size=10", "--set", "exemplars=5"]
BUILD = ["build", "owod", "--tasks", "tasks.toml", *SOURCES, *SETTINGS, "--out", "m"]


def test_from_task_file_to_scores(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(BUILD) == 0
    manifest = read_manifest(folder / "m")
    assert manifest.header.name == "mylab/shapes"
    assert [part.name for part in manifest.header.parts] == [
        *("t1-train", "t1-val", "t1-test", "t2-train", "t2-finetune", "t2-val", "t2-test"),
        *("t3-train", "t3-finetune", "t3-val", "t3-test"),
    ]
    assert len(manifest.lists["t1-test"]) == 39
    assert manifest.lists["t1-test"][0].startswith("shapes:test_")
    assert main(["verify", "m", *SOURCES, "--rebuild", "--strict"]) == 0
    assert main(["show", "m", "--composition", *SOURCES]) == 0
    capsys.readouterr()
    assert main(["export", "m", "--part", "t2-test", "--format", "coco", "--out", "t2.json", *SOURCES]) == 0
    exported = json.loads((folder / "t2.json").read_text())
    assert [(one["id"], one["name"]) for one in exported["categories"]] == [
        (2, "circle"),
        (3, "square"),
        (4, "triangle"),
        (-1, "unknown"),
    ]
    detections = [
        {key: row[key] for key in ("image_id", "category_id", "bbox")} | {"score": 0.9}
        for row in exported["annotations"]
    ]
    (folder / "detections.json").write_text(json.dumps(detections))
    capsys.readouterr()
    command = ["evaluate", "owod", "--truth", "t2.json", "--detections", "detections.json", "--json"]
    assert main([*command, "--manifest", "m", "--task", "t2"]) == 0
    section = of_result(json.loads(capsys.readouterr().out))["t2/clean"]
    assert (section["UR"], section["mAP_both"], section["AOSE"]) == (100.0, 100.0, 0)


def test_a_detector_trained_on_ones_own_files_is_read_right(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Raw ids 1 to 5 against an export: no class is read as another, and indices never pass for raw ids."""
    assert main(BUILD) == 0
    given = ["--part", "t2-test", "--format", "coco", *SOURCES]
    assert main(["export", "m", *given, "--out", "t2.json"]) == 0
    assert main(["export", "m", *given, "--category-ids", "manifest", "--out", "index.json"]) == 0
    raw = json.loads((folder / "test.json").read_text())
    numbers = {one["file_name"]: one["id"] for one in json.loads((folder / "t2.json").read_text())["images"]}
    # A detector of task 2 knows disc, square and triangle (2, 3, 4), and calls the rest unknown.
    rows = [
        {
            "image_id": numbers[f"{one['image_id']}.png"],
            "category_id": one["category_id"] if one["category_id"] in (2, 3, 4) else -1,
            "bbox": one["bbox"],
            "score": 0.9,
        }
        for one in raw["annotations"]
        if f"{one['image_id']}.png" in numbers
    ]
    (folder / "raw.json").write_text(json.dumps(rows))
    indices = {2: 0, 3: 1, 4: 2, -1: 5}
    changed = [{**row, "category_id": indices[row["category_id"]]} for row in rows]
    (folder / "indices.json").write_text(json.dumps(changed))
    scored = ["evaluate", "owod", "--manifest", "m", "--task", "t2", "--json"]
    capsys.readouterr()

    def full(*given: str) -> None:
        assert main([*scored, *given]) == 0
        section = of_result(json.loads(capsys.readouterr().out))["t2/clean"]
        assert (section["UR"], section["mAP_both"]) == (100.0, 100.0), given

    full("--truth", "t2.json", "--detections", "raw.json")
    full("--truth", "index.json", "--detections", "indices.json")
    full("--truth", "t2.json", "--detections", "indices.json", "--category-ids", "manifest")
    for truth, detections in (("t2.json", "indices.json"), ("index.json", "raw.json")):
        for stray in ("error", "drop"):
            command = [*scored, "--truth", truth, "--detections", detections, "--on-error", f"stray={stray}"]
            assert main(command) == 2
            assert ("--category-ids manifest" in capsys.readouterr().err) == (truth == "t2.json")


def test_files_that_number_their_images_alike_keep_their_category_ids(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two names keep the images apart; a detector trained on the one file is read by the ids of the other."""
    write_coco(folder / "train.json", "x", 40, 1)
    write_coco(folder / "test.json", "x", 40, 2)
    names = '\n[datasets]\ntrain = "shapes_a"\ntest = "shapes_b"\n'
    (folder / "tasks.toml").write_text(TASKS + names, encoding="utf-8")
    assert main(BUILD) == 0
    given = ["export", "m", "--part", "t2-test", "--format", "coco"]
    assert main([*given, *SOURCES, "--out", "own.json"]) == 0
    exported = json.loads((folder / "own.json").read_text())
    assert {one["name"]: one["id"] for one in exported["categories"]} == {
        "circle": 2,
        "square": 3,
        "triangle": 4,
        "unknown": -1,
    }
    capsys.readouterr()
    # What only one of the files is known of has the indices, and says why.
    (folder / "m" / BUILT_FROM_FILE).unlink()
    assert main([*given, *SOURCES[2:], "--out", "index.json"]) == 0
    assert "and train is not given" in capsys.readouterr().err
    assert json.loads((folder / "index.json").read_text())["info"]["category_ids"] == "manifest"
    content = json.loads((folder / "train.json").read_text())
    content["categories"][0]["id"], content["categories"][1]["id"] = 2, 1
    (folder / "train.json").write_text(json.dumps(content))
    assert main([*given, *SOURCES, "--out", "x.json"]) == 0
    assert "the files number class" in capsys.readouterr().err


def test_files_that_number_classes_differently_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(BUILD) == 0
    assert "category id" not in capsys.readouterr().err
    content = json.loads((folder / "test.json").read_text())
    for one in content["categories"]:
        one["id"] = 6 - one["id"]
    for one in content["annotations"]:
        one["category_id"] = 6 - one["category_id"]
    (folder / "test.json").write_text(json.dumps(content))
    assert main([*BUILD[:-1], "n"]) == 0
    error = capsys.readouterr().err
    assert "class 'star' has the category id 1 in source train and 5 in test" in error
    assert "--category-ids manifest" in error


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('classes = ["star"]', 'classes = ["stars"]'), "is 'star' an alias of 'stars'?"),
        (('ignored = ["blob"]\n', ""), "does not name"),
        (('circle = ["disc"]', 'circle = ["disk"]'), "does not name"),
        (('dataset = "shapes"', 'dataset = "a b"'), "lower-case"),
        (('name = "t2"', 'name = "t1"'), "twice"),
    ],
)
def test_slips_in_the_task_file(
    folder: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], told: str
) -> None:
    assert change[0] in TASKS
    (folder / "tasks.toml").write_text(TASKS.replace(*change))
    assert main(BUILD) != 0
    assert told in capsys.readouterr().err
    assert not (folder / "m").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--set", "split=custom"], "--tasks"),
        (["--tasks", "tasks.toml", "--set", "split=reowod"], "replaces this parameter"),
        (["--tasks", "none.toml"], "does not exist"),
        (["--tasks", "tasks.toml", "--source", "coco-train2017=train.json"], "No such source"),
    ],
)
def test_slips_on_the_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert main(["build", "owod", *arguments, "--source", "test=test.json", "--out", "m"]) != 0
    assert told in capsys.readouterr().err


def test_two_files_that_number_alike_need_two_namespaces(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_coco(folder / "test.json", "train", 20, 2)
    assert main(BUILD) != 0
    assert "[datasets]" in capsys.readouterr().err
    (folder / "tasks.toml").write_text(TASKS + '\n[datasets]\ntrain = "shapes_train"\ntest = "shapes_test"\n')
    assert main(BUILD) == 0
    assert read_manifest(folder / "m").lists["t1-test"][0].startswith("shapes_test:")


def test_sizes_of_the_task_file_yield_to_the_command_line(folder: Path) -> None:
    (folder / "tasks.toml").write_text("validation = 4\nexemplars = 2\n" + TASKS)
    command = ["build", "owod", "--tasks", "tasks.toml", *SOURCES]
    assert main([*command, "--out", "a"]) == 0
    assert main([*command, "--set", "val_size=6", "--out", "b"]) == 0
    assert [len(read_manifest(folder / name).ids("t1-val")) for name in "ab"] == [4, 6]
    assert read_manifest(folder / "a").header.rule.parameters["exemplars"] == 2
    for name in "ab":
        assert main(["verify", name, *SOURCES, "--rebuild", "--strict"]) == 0


def test_a_class_of_no_task_is_offered_the_lists_of_unknown_and_ignored_classes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "tasks.toml").write_text(TASKS.replace('ignored = ["blob"]', ""))
    assert main(BUILD) == 2
    said = capsys.readouterr().err
    offered = next(line for line in said.splitlines() if line.startswith("  try: "))
    assert 'unknown = ["blob"] where their objects stay unknown' in offered
    # What it offers works.
    (folder / "tasks.toml").write_text(TASKS.replace('ignored = ["blob"]', 'unknown = ["blob"]'))
    assert main(BUILD) == 0


@pytest.mark.parametrize("role", ["ignored", "unknown"])
def test_what_is_exported_is_what_the_audit_asks_for(
    role: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Classes that no task introduces break no rule, nor do the label files of any part."""
    (folder / "tasks.toml").write_text(TASKS.replace('ignored = ["blob"]', f'{role} = ["blob"]'))
    assert main(BUILD) == 0
    assert main(["export", "m", "--part", "t*", "--each", "--format", "coco", *SOURCES, "--out", "views"]) == 0
    parts = [part.name for part in read_manifest(folder / "m").header.parts]
    labels = [text for part in parts for text in ("--labels", f"{part}=views/{part}.json")]
    capsys.readouterr()
    assert main(["audit", "m", *SOURCES, "--set", "exemplars=5", *labels, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    found = {(one["rule"], one["gravity"]) for one in data["statements"] if one["gravity"] not in ("note", "pass")}
    assert found == {("DS3", "undecidable")}
    assert data["warnings"] == []
