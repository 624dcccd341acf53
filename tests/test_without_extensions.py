"""The nine rooms work without the extensions, whose entry points are still registered."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of the package from which ``extensions/`` is deleted."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "curation", folder / "curation", ignore=shutil.ignore_patterns("extensions", "__pycache__"))
    (folder / "manifests").symlink_to(ROOT / "manifests")
    return folder


def python(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(site)}
    return subprocess.run([sys.executable, *words], cwd=site, env=environment, capture_output=True, text=True)


def test_every_module_of_the_nine_rooms_is_imported(site: Path) -> None:
    paths = sorted((site / "curation").rglob("*.py"))
    names = [".".join(path.relative_to(site).with_suffix("").parts) for path in paths if "plugin" not in path.parts]
    assert len(names) > 200
    code = "import importlib, sys; print([importlib.import_module(name) for name in sys.argv[1:]])"
    done = python(site, "-c", code, *(name for name in names if not name.endswith("__main__")))
    assert done.returncode == 0, done.stderr
    assert str(site) in done.stdout


def test_list_and_verify_run(site: Path) -> None:
    listed = python(site, "-m", "curation", "list")
    assert listed.returncode == 0, listed.stderr
    assert "elephant" in listed.stdout
    assert "openood" not in listed.stdout.partition("Available manifests")[0]
    verified = python(site, "-m", "curation", "verify", "elephant/val2017")
    assert verified.returncode == 0, verified.stderr


def test_detection_is_evaluated(site: Path, tmp_path: Path) -> None:
    box = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9]}
    truth = {
        "images": [{"id": 1, "file_name": "1.jpg", "width": 60, "height": 60}],
        "annotations": [{"id": 1, "area": 81, "iscrowd": 0, **box}],
        "categories": [{"id": 1, "name": "owl"}],
    }
    wild = {**truth, "annotations": [], "images": [{**truth["images"][0], "id": 2}]}
    files = {"closed": (truth, [{**box, "score": 0.9}]), "wilderness": (wild, [])}
    words = []
    for part, pair in files.items():
        for option, content in zip(("truth", "detections"), pair, strict=True):
            path = tmp_path / f"{part}-{option}.json"
            path.write_text(json.dumps(content))
            words += [f"--{option}", f"{part}={path}"]
    done = python(site, "-m", "curation", "evaluate", "elephant", *words, "--json")
    assert done.returncode == 0, done.stderr
    values = {row["measure"]: row["value"] for row in json.loads(done.stdout)["measures"]}
    assert values["mAP11"] == 100


@pytest.mark.parametrize("words", [["audit", "x"], ["diff", "a", "b"], ["similarity", "leaks", "x"]], ids=" ".join)
def test_a_command_whose_module_is_missing_is_one_error(site: Path, words: list[str]) -> None:
    done = python(site, "-m", "curation", *words, "--json")
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"error: The command `curation {' '.join(words[: 2 if words[0] == 'similarity' else 1])}`"
    )
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["error"] == "UsageError"
    shown = python(site, "-m", "curation", "--help")
    assert shown.returncode == 0
    assert "cannot be loaded" in shown.stdout
