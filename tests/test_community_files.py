"""What a host runs and shows: workflows, forms and the image name files, commands and packages that there are."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from curation.version import __version__
from tests.test_installation import build, run

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: Path) -> dict[Any, Any]:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(data, dict), path
    return data


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_what_there_is_and_may_no_more_than_it_says(path: Path) -> None:
    workflow = read(path)
    # YAML 1.1 reads the key `on` as true.
    assert set(workflow) <= {"name", True, "permissions", "concurrency", "jobs"}
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 90
        assert job.get("needs", "") in ("", *workflow["jobs"])
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            # A tag of the action's, or a commit: never a moving branch, but for the one that its maintainers ask for.
            assert "uses" not in step or re.fullmatch(
                r"[\w.-]+/[\w.-]+@(v\d+(\.\d+)*|[0-9a-f]{40}|release/v1)", step["uses"]
            )
    assert "secrets." not in path.read_text()


def test_a_release_needs_no_token_and_attests_what_it_uploads() -> None:
    workflow = read(ROOT / ".github" / "workflows" / "release.yml")
    assert workflow[True] == {"push": {"tags": ["v*"]}}
    job = workflow["jobs"]["publish"]
    assert job["permissions"] == {"id-token": "write"}
    assert job["environment"] == "pypi"
    (upload,) = (step for step in job["steps"] if step["uses"].startswith("pypa/gh-action-pypi-publish@"))
    assert upload["with"] == {"attestations": True}
    printed = subprocess.run([sys.executable, "-m", "curation", "--version"], cwd=ROOT, capture_output=True, text=True)
    # What the workflow compares the tag with.
    assert printed.stdout.strip() == f"curation {__version__}"


def instructions() -> list[tuple[str, str]]:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    return [(word, rest) for word, _, rest in (one.partition(" ") for one in lines if one and not one.startswith("#"))]


@pytest.mark.slow
def test_what_the_image_copies_is_enough_to_run_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its COPY, its installation without packages of others, and its CMD, in a smaller world."""
    source, site, home = (tmp_path / name for name in ("src", "site", "home"))
    allowed = (ROOT / ".dockerignore").read_text().split("\n")
    for word, rest in instructions():
        if word == "COPY":
            *names, target = rest.split()
            for name in names:
                assert f"!{name}" in allowed, name
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, source / target, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    (source / target).mkdir(exist_ok=True, parents=True)
                    shutil.copy2(ROOT / name, source / target)
    monkeypatch.setattr("tests.test_installation.ROOT", source)
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", "somebody/curation")
    (wheels := tmp_path / "wheels").mkdir()
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels))
    wheel = build(wheels, "pip", "wheel", *options, str(source))
    shutil.unpack_archive(wheel, site, format="zip")
    home.mkdir()
    (command,) = (json.loads(rest) for word, rest in instructions() if word == "CMD" and "demo" in rest)
    environment = os.environ | {"PYTHONPATH": str(site), "CURATION_CACHE": str(tmp_path / "cache")}
    words = [sys.executable, "-P", *command[1:]]
    done = subprocess.run(words, cwd=home, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (home / command[-1]).is_dir()
    assert run(site, home, "verify", "elephant/val2017").returncode == 0
    # The addresses are those of the repository that builds.
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (one for one in packed.namelist() if one.endswith(".dist-info/METADATA"))
        said = packed.read(name).decode()
    for title, address in (("Source", ""), ("Changelog", "/blob/main/CHANGELOG.md"), ("Issues", "/issues")):
        assert f"Project-URL: {title}, https://github.com/somebody/curation{address}\n" in said
    assert "Project-URL: Documentation, https://somebody.github.io/curation/\n" in said
