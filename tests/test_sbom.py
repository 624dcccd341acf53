"""The bill of materials names what is installed, by version and licence, and is the same bytes twice."""

import json
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import sbom

ROOT = Path(__file__).parents[1]


def test_every_dependency_is_there_by_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one.json", "two.json"):
        assert sbom.main(["--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    made = json.loads((tmp_path / "one.json").read_text())
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.5")
    assert made["metadata"]["component"]["name"] == "curation"
    found = {canonicalize_name(one["name"]): one["version"] for one in made["components"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for text in project["dependencies"]:
        name = canonicalize_name(Requirement(text).name)
        assert found[name] == version(name)
    references = {made["metadata"]["component"]["bom-ref"], *(one["bom-ref"] for one in made["components"])}
    assert all(one["ref"] in references and references >= set(one["dependsOn"]) for one in made["dependencies"])
    assert "MIT" in capsys.readouterr().out


def test_licences_are_stated() -> None:
    """Of nearly all: two packages of the development set state none in their metadata, but in files."""
    made = sbom.bill()["components"]
    unstated = [one["name"] for one in made if "not stated" in str(one["licenses"])]
    assert len(unstated) <= 5 < len(made)
