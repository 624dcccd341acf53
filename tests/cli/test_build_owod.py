"""A user's own data through every command: benchmark file, build, verify, show, export, evaluate."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from curation.manifest.manifest import read_manifest
from tests.evaluation.open_world_rows import of_result

TASKS = """
rule = "tasks"
name = "mylab/shapes"
title = "Shapes, circle to star"

[sources]
train = { dataset = "shapes", exhaustive = true }
test = { dataset = "shapes", exhaustive = true }

[parameters]
validation = 10
exemplars = 5

[classes]
ignored = ["blob"]
aliases = { circle = ["disc"] }

[[classes.tasks]]
name = "t1"
classes = ["circle", "square"]

[[classes.tasks]]
name = "t2"
classes = ["triangle"]

[[classes.tasks]]
name = "t3"
classes = ["star"]
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


def test_from_benchmark_file_to_scores(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "tasks.toml", *SOURCES, "--out", "m"]) == 0
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["owod", "--set", "split=custom"], "m-owodb"),
        (["owod"], "curation init tasks"),
        (["tasks.toml", "--set", "split=reowod"], "holds its own parameters"),
        (["none.toml"], "does not exist"),
        (["tasks.toml", "--source", "coco-train2017=train.json"], "Unknown source"),
        (["earlier.toml"], "[[classes.tasks]]"),
    ],
)
def test_slips_on_the_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (folder / "earlier.toml").write_text('name = "mylab/shapes"\n[[tasks]]\nname = "t1"\nclasses = ["circle"]\n')
    assert main(["build", *arguments, "--source", "test=test.json", "--out", "m"]) != 0
    assert message in capsys.readouterr().err
