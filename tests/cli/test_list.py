"""``curation list``: what can be built, from what, and what is at hand."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.cli import main
from curation.manifest.header import Supersedes
from curation.manifest.manifest import Manifest, read_manifest, write_manifest
from tests.shell import Shell


def test_protocols(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = shell.data("list", "--json")
    elephant = next(one for one in data["benchmarks"] if one["name"] == "elephant")
    assert elephant["paper"]["year"] == 2020
    assert [slot["name"] for slot in elephant["sources"] if slot["required"]] == ["voc2007-test", "coco"]
    assert {one["name"] for one in elephant["parameters"]} == {"ratios", "orders", "salt"}
    assert {one["name"] for one in data["manifests"]} >= {"elephant/val2017", "owod/reowod-published"}
    assert all(one["packaged"] for one in data["manifests"])
    text = shell.out("list")
    assert "elephant/val2017@1.0.0" in text
    assert "WACV 2020" in text


def test_manifests_at_hand_and_a_damaged_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.small_world import write_small_world

    world = write_small_world(tmp_path)
    monkeypatch.chdir(tmp_path)
    sources = [*world.arguments()]
    for version in ("1.0.0", "1.0.1"):
        out = ["--out", f"manifests/elephant/small/{version}", "--name", "elephant/small", "--version", version]
        assert main(["build", "elephant", *sources, *out]) == 0
    (tmp_path / "manifests/elephant/small/1.0.1/manifest.json").write_bytes(b"{")
    capsys.readouterr()
    assert main(["list", "--json"]) == 0
    captured = capsys.readouterr()
    assert [(one["name"], one["version"]) for one in listed(captured.out)] == [("elephant/small", "1.0.0")]
    assert "1.0.1" in captured.err


def listed(text: str) -> list[dict[str, Any]]:
    """Return the manifests of a printed list that do not come with the package."""
    return [one for one in json.loads(text)["manifests"] if not one["packaged"]]


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two versions of one manifest in another folder, and none at hand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CURATION_MANIFESTS", raising=False)
    first = version("1.0.0")
    for one in (first, version("1.0.1", Supersedes(version="1.0.0", digest=first.digest, reason="a fix"))):
        write_manifest(one, tmp_path / "mine" / one.header.name / one.header.version)
    return tmp_path


def version(number: str, supersedes: Supersedes | None = None) -> Manifest:
    base = read_manifest(Path(__file__).parents[2] / "manifests/elephant/val2017/1.0.0")
    header = msgspec.structs.replace(base.header, version=number, supersedes=supersedes)
    return Manifest(header, base.lists)


def test_manifests_of_a_folder_with_the_versions_they_replace(house: Path, shell: Shell) -> None:
    first, second = listed(shell.out("list", "manifests", "--folder", "mine", "--json"))
    assert second["supersedes"] == {"version": "1.0.0", "digest": first["digest"], "reason": "a fix"}
    shown = shell.out("list", "manifests", "--folder", "mine")
    assert second["digest"][7:19] in shown
    assert "supersedes" in shown
    assert "elephant/val2017" not in shell.out("list", "benchmarks", "--folder", "mine")


def test_one_protocol_with_its_sources_parameters_parts_page_and_manifests(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    text = shell.out("list", "owod")
    for said in ("coco-train2017", "--set KEY=VALUE", "val_size", "tN-finetune", "page: docs/owod.md"):
        assert said in text, said
    assert "owod/reowod-published" in text
    assert "elephant" not in text
    data = shell.data("list", "owod", "--json")
    assert [one["name"] for one in data["benchmarks"]] == ["owod"]
    assert {one["protocol"] for one in data["manifests"]} == {"owod", "as_published"}
    assert "tN-test" in [one["name"] for one in data["benchmarks"][0]["parts"]]


def test_a_name_that_is_no_protocol_is_told_the_nearest(shell: Shell) -> None:
    said = shell.err("list", "elefant")
    assert "did you mean elephant?" in said
    assert "openmibood_oasis3, benchmarks, manifests" in said


def test_a_folder_that_is_not_there_is_not_passed_over(tmp_path: Path, shell: Shell) -> None:
    assert "does not exist" in shell.err("list", "manifests", "--folder", tmp_path / "nowhere")
