"""OSOD-III from raw files to numbers: build, verify, export, evaluate, on native layouts of realistic size."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.benchmarks.building import read_parameters
from curation.benchmarks.osod3.lists import declare
from curation.benchmarks.registry import find_benchmark
from curation.cli import main
from curation.manifest.manifest import Manifest, read_manifest, write_manifest
from tests.evaluation import osod3_rows
from tests.protocols.osod3_native import write_open_images


@pytest.fixture(scope="module")
def open_images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_open_images(tmp_path_factory.mktemp("raw") / "openimages")


def run(*arguments: Any) -> None:
    assert main([str(one) for one in arguments]) == 0


def detections_of(truth: dict[str, Any], manifest: Manifest, mistaken: int) -> list[dict[str, Any]]:
    """Every object found, but for some unknown ones that are taken for the first known class, with a lower score."""
    names = {one["id"]: one["name"] for one in truth["categories"]}
    known = [entry.name for entry in manifest.header.classes if entry.role == "known"]
    found: list[dict[str, Any]] = []
    for one in truth["annotations"]:
        if one.get("iscrowd"):
            continue
        name, score = names[one["category_id"]], 0.9
        if name == "unknown" and mistaken:
            name, score, mistaken = known[0], 0.3, mistaken - 1
        found.append({"image_id": one["image_id"], "category": name, "bbox": one["bbox"], "score": score})
    return found


def evaluated(
    folder: Path, sources: list[str], mistaken: int, capsys: pytest.CaptureFixture[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Export the test part, score drawn detections on it, and return the truth and the result."""
    manifest, out = read_manifest(folder), folder.parent / f"{folder.name}-exported"
    run("export", folder, "--part", "test", "--format", "coco", "--out", out, *sources)
    exported = out / "test.json"
    data = json.loads(exported.read_text())
    found = folder.parent / f"{folder.name}-found.json"
    found.write_text(json.dumps(detections_of(data, manifest, mistaken)))
    capsys.readouterr()
    run("evaluate", "osod3", "--manifest", folder, "--truth", exported, "--detections", found, "--json")
    return data, osod3_rows.of_result(json.loads(capsys.readouterr().out))["test"]


@pytest.mark.parametrize("group_of", ["keep", "ignore"])
def test_open_images_from_raw_files_to_numbers(
    open_images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], group_of: str
) -> None:
    sources = [
        text for part in ("train", "validation", "test") for text in ("--source", f"openimages-{part}={open_images}")
    ]
    folder = tmp_path / "vehicle"
    run("build", "osod3", "--set", "superclass=vehicle", "--set", "rotation=2", "--set", f"group_of={group_of}",
        *sources, "--out", folder)  # fmt: skip
    run("verify", folder, *sources)
    manifest = read_manifest(folder)
    boxes = {part.name: part.boxes for part in manifest.header.parts}
    assert set(boxes["train"]) == {"known", "crowd", "difficult"}
    assert set(boxes["val"]) == {"known", "unknown", "crowd", "difficult"}
    data, result = evaluated(folder, sources, 40, capsys)
    crowd = sum(one.get("iscrowd", 0) for one in data["annotations"])
    assert (crowd > 0) == (group_of == "ignore")
    assert len(data["images"]) == len(manifest.ids("test")) == result["n"]["images"]
    assert result["AP_known"] > 99
    assert 90 < result["AP_unk"] < 100
    curve = {row["theta"]: row for row in result["curves"]["clean"]}
    assert curve[0.5]["AOSE"] <= curve[0.0]["AOSE"] - 40


def test_what_is_declared_is_completed_from_raw_files(open_images: Path, tmp_path: Path) -> None:
    sources = [
        text for part in ("train", "validation", "test") for text in ("--source", f"openimages-{part}={open_images}")
    ]
    declared = declare({}, read_parameters(find_benchmark("osod3"), {"superclass": "vehicle", "rotation": "3"}))
    write_manifest(declared, tmp_path / "declared")
    run("build", tmp_path / "declared", *sources, "--out", tmp_path / "whole")
    whole = read_manifest(tmp_path / "whole")
    assert whole.header.completes == declared.digest
    keys = {entry.aliases: entry.role for entry in whole.header.classes if entry.role in ("known", "unknown")}
    assert keys == {
        entry.aliases: entry.role for entry in declared.header.classes if entry.role in ("known", "unknown")
    }
    assert [len(whole.ids(part)) > 0 for part in ("train", "val", "test")] == [True] * 3
