"""The file that makes a COCO export known to detectron2: it compiles, and names what lies beside it."""

import json
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from curation.cli import main
from tests.small_world import write_small_world


def exported(folder: Path, *more: str) -> Path:
    world = write_small_world(folder)
    sources = [f"--source=voc2007-test={world.voc_root}", f"--source=coco={world.coco_json}", "--no-cache"]
    assert main(["build", "elephant", *sources, "--out", str(folder / "m")]) == 0
    out = folder / "out"
    given = ["--part", "wilderness", "--format", "coco", "--detectron2", *more, "--out", str(out)]
    assert main(["export", str(folder / "m"), *given, *sources]) == 0
    return out


def test_the_file_registers_the_annotations_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = exported(tmp_path)
    calls: list[tuple[Any, ...]] = []
    # detectron2 is no package that can be installed everywhere; its one function is stood in for.
    datasets = ModuleType("detectron2.data.datasets")
    datasets.register_coco_instances = lambda *given: calls.append(given)  # type: ignore[attr-defined]
    for name in ("detectron2", "detectron2.data"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "detectron2.data.datasets", datasets)
    module = runpy.run_path(str(out / "wilderness.detectron2.py"))
    name = module["register"]("photos")
    assert calls == [(name, {}, str(out / "wilderness.json"), "photos")]
    assert name == "elephant_custom_wilderness"


def test_unknown_comes_behind_every_class(tmp_path: Path) -> None:
    data = json.loads((exported(tmp_path) / "wilderness.json").read_text())
    ids = {one["name"]: one["id"] for one in data["categories"]}
    assert ids["unknown"] == max(ids.values()) > 0
    assert {one["category_id"] for one in data["annotations"]} <= set(ids.values())


def test_a_number_that_was_asked_for_is_kept(tmp_path: Path) -> None:
    data = json.loads((exported(tmp_path, "--set", "unknown_id=500") / "wilderness.json").read_text())
    assert {one["id"] for one in data["categories"] if one["name"] == "unknown"} == {500}


def test_one_file_cannot_hold_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = exported(tmp_path)
    given = ["--part", "wilderness", "--format", "coco", "--detectron2", "--out", str(tmp_path / "x.json")]
    assert main(["export", str(out.parent / "m"), *given]) == 2
    assert "writes a second file" in capsys.readouterr().err
    assert main(["export", str(out.parent / "m"), *given[:3], "voc", *given[4:]]) == 2
    assert "--detectron2 belongs to --format coco" in capsys.readouterr().err
