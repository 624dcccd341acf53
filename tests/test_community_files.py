"""What a host runs and shows: workflows, forms and the image name files, commands and packages that there are."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from curation.version import __version__
from tests.portability.cells import CELLS
from tests.shell import VERBS
from tests.test_installation import build, run

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUN = [*WORKFLOWS, *FORMS, ROOT / "Dockerfile", ROOT / ".devcontainer" / "devcontainer.json"]


def read(path: Path) -> dict[Any, Any]:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(data, dict), path
    return data


@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_commands_name_targets_verbs_and_extras_that_there_are(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"(?:sudo|run:|&&|\") ?make ([a-z]+)", text)) <= TARGETS
    assert set(re.findall(r"(?:-m |`|review )curation ([a-z]+)", text)) <= VERBS
    extras = {extra for found in re.findall(r"\.\[([a-z,]+)\]", text) for extra in found.split(",")}
    assert extras <= set(PROJECT["optional-dependencies"])
    for cells in re.findall(r"tests\.portability --cells ([\w ]+)", text):
        assert set(cells.split()) <= {one.name for one in CELLS}


def test_all_files_that_a_stranger_looks_for_are_there() -> None:
    wanted = "CODE_OF_CONDUCT.md CONTRIBUTING.md SECURITY.md CITATION.cff LICENSE Dockerfile .dockerignore"
    for name in (*wanted.split(), ".devcontainer/devcontainer.json", ".github/PULL_REQUEST_TEMPLATE.md"):
        assert (ROOT / name).is_file(), name
    assert {"authors", "cff-version", "message", "title"} <= set(read(ROOT / "CITATION.cff"))
    assert [path.stem for path in WORKFLOWS] == ["docs", "release", "test"]
    assert "published digest" in (ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md").read_text()


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


def test_the_image_runs_as_nobody_special_and_names_what_there_is() -> None:
    stages: list[tuple[str, str, str]] = []
    users: dict[str, str] = {}
    for word, rest in instructions():
        if word == "FROM":
            image, _, name = rest.partition(" AS ")
            stages.append((image, name, users.get(image, "root")))
        users[stages[-1][1]] = rest if word == "USER" else users.get(stages[-1][1], stages[-1][2])
    names = {name for _, name, _ in stages}
    assert stages[0][0].startswith("python:3.")
    assert "-slim" in stages[0][0]
    assert {image for image, _, _ in stages[1:]} <= names
    assert "review" in names
    assert users[stages[-1][1]] == users["review"] == "curator"


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
