"""A benchmark that another package offers: installed as any package is, then built, audited, evaluated by name."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check"]
    # pip builds inside the folder that it is given: a copy keeps this one clean.
    subprocess.run(["cp", "-r", HERE / "owls", folder / "source"], check=True)
    command = [sys.executable, "-m", "pip", "install", *options, "--target", folder / "site", folder / "source"]
    subprocess.run(command, check=True)
    return folder / "site"


@pytest.fixture(scope="module")
def birds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("birds")
    shown = [(1, 1), (2, 2), (3, 3), (4, 3), (4, 1)]
    data = {
        "images": [{"id": one, "width": 90, "height": 90, "file_name": f"{one}.jpg"} for one in (1, 2, 3, 4)],
        "annotations": [
            {"id": 10 + place, "image_id": image, "category_id": category, "bbox": [place, 2, 30, 30], "area": 900,
             "iscrowd": 0}
            for place, (image, category) in enumerate(shown)
        ],
        "categories": [{"id": 1, "name": "owl"}, {"id": 2, "name": "finch"}, {"id": 3, "name": "bat"}],
    }  # fmt: skip
    (folder / "birds.json").write_text(json.dumps(data), encoding="utf-8")
    (folder / "classes.json").write_text(json.dumps({"known": ["owl", "finch"], "unknown": ["bat"]}))
    found = [
        {"image_id": image, "category_id": category, "bbox": [place, 2, 30, 30], "score": 0.9 - place / 10}
        for place, (image, category) in enumerate(shown)
        if category < 3
    ]
    (folder / "found.json").write_text(json.dumps(found), encoding="utf-8")
    return folder


def curation(site: Path, folder: Path, *words: str, status: int = 0) -> str:
    paths = os.pathsep.join([str(site), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "curation", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stderr
    return done.stdout


def test_a_benchmark_of_another_package(site: Path, birds: Path) -> None:
    assert "owls and finches" in curation(site, birds, "list", "benchmarks")
    curation(site, birds, "build", "owls", "--source", "birds=birds.json", "--out", "made")
    shown = json.loads(curation(site, birds, "show", "made", "--json"))
    assert {part["name"]: part["images"] for part in shown["parts"]} == {"train": 2, "test": 2}
    curation(site, birds, "verify", "made", "--source", "birds=birds.json")
    audit = json.loads(curation(site, birds, "audit", "made", "--source", "birds=birds.json", "--json"))
    # An audit knows no benchmark by name.
    assert "pass" in {one["gravity"] for one in audit["statements"]}
    given = ["--truth", "birds.json", "--detections", "found.json", "--classes", "classes.json"]
    result = json.loads(curation(site, birds, "evaluate", "owls", *given, "--json", "--out", "results"))
    assert [(row["measure"], row["value"]) for row in result["measures"]] == [("mAP_area", 100)]
    assert (birds / "results" / "classes.csv").read_text("utf-8").startswith("class,AP\n")


def test_a_command_of_another_package_is_listed_and_runs(site: Path, birds: Path) -> None:
    assert "Birds\n  hoot         count the hoots of an owl\n" in curation(site, birds, "--help")
    assert "Count the hoots of an owl." in curation(site, birds, "hoot", "--help")
    assert curation(site, birds, "hoot", "--hoots", "3") == "3 hoots\n"


def test_a_package_that_cannot_be_used_takes_nothing_away(site: Path, birds: Path, tmp_path: Path) -> None:
    broken = tmp_path / "site"
    (broken / "broken-1.dist-info").mkdir(parents=True)
    (broken / "broken-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (broken / "broken-1.dist-info" / "entry_points.txt").write_text("[curation.benchmarks]\nbroken = no_such:ONE\n")
    assert "elephant" in curation(broken, birds, "list", "benchmarks")
    done = subprocess.run(
        [sys.executable, "-m", "curation", "build", "broken", "--out", "x"],
        cwd=birds, env=os.environ | {"PYTHONPATH": os.pathsep.join([str(broken), str(ROOT)])},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "cannot be used" in done.stderr
    assert "no_such" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("module", ["no_such", "without_evaluate"])
def test_an_evaluation_that_cannot_be_loaded_takes_no_help_away(birds: Path, tmp_path: Path, module: str) -> None:
    """An optional dependency of an extension is missing or broken, or its module is of another version."""
    (tmp_path / "without_evaluate.py").write_text("REPORT = None\n")
    (tmp_path / "broken-1.dist-info").mkdir()
    (tmp_path / "broken-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    points = f"[curation.plain_evaluations]\ncolour = {module}\n[curation.commands]\npaint = {module}\n"
    (tmp_path / "broken-1.dist-info/entry_points.txt").write_text(points + f"similarity.hue = {module}:hue\n")
    text = curation(tmp_path, birds, "evaluate", "--help")
    assert all(name in text for name in ("elephant", "owod", "coco", "colour"))
    # Help reads sources without running them, and finds a missing module alone.
    assert "cannot be loaded" in text or module == "without_evaluate"
    for words in (["--help"], ["evaluate", "voc", "--help"], ["similarity", "--help"]):
        curation(tmp_path, birds, *words)
    for words in (["evaluate", "colour", "--help"], ["paint", "x"], ["similarity", "hue", "x"]):
        refusal = json.loads(curation(tmp_path, birds, *words, "--json", status=2))
        assert any("cannot be loaded" in str(text) for text in refusal.values())
