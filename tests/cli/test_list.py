"""``curation list``: what can be built, from what, and what is at hand."""

import json
from pathlib import Path

import pytest

from curation.cli import main


def test_protocols(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["list", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    elephant = next(one for one in data["protocols"] if one["name"] == "elephant")
    assert elephant["paper"]["year"] == 2020
    assert [slot["name"] for slot in elephant["sources"] if slot["required"]] == ["voc2007-test", "coco"]
    assert {one["name"] for one in elephant["parameters"]} == {"ratios", "orders", "salt"}
    assert data["manifests"] == []
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    assert "voc2007-test" in text
    assert "cpython_set" in text
    assert "No manifests at hand" in text


def test_manifests_at_hand_and_a_damaged_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.small_world import write_small_world

    world = write_small_world(tmp_path)
    monkeypatch.chdir(tmp_path)
    sources = [
        "--source",
        f"voc2007-test={world.voc_root}",
        "--source",
        f"coco={world.coco_json}",
        "--no-cache",
    ]
    for version in ("1.0.0", "1.0.1"):
        out = [
            "--out",
            f"manifests/elephant/small/{version}",
            "--name",
            "elephant/small",
            "--version",
            version,
        ]
        assert main(["build", "elephant", *sources, *out]) == 0
    (tmp_path / "manifests/elephant/small/1.0.1/ids/closed.txt").write_bytes(b"")
    capsys.readouterr()
    assert main(["list", "--json"]) == 0
    captured = capsys.readouterr()
    assert [(one["name"], one["version"]) for one in json.loads(captured.out)["manifests"]] == [
        ("elephant/small", "1.0.0")
    ]
    assert "1.0.1" in captured.err
