"""The hand-checked OWOD case, through the command line: every number of every profile to 1e-6."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from tests.real_files import provided, real_files


@provided
def golden(shared: Path) -> Path:
    return shared / "golden" / "owod" / "handmade"


def evaluate(golden: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    given = ["evaluate", "owod", "--json", "--no-cache", "--truth", str(golden / "gt.json")]
    given += ["--detections", str(golden / "detections.json"), "--classes", str(golden / "protocol.json")]
    assert main([*given, *more]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def differences(ours: Any, theirs: Any, where: str) -> list[str]:
    if isinstance(theirs, dict):
        return [
            found
            for key in theirs
            for found in (
                differences(ours[key], theirs[key], f"{where}/{key}")
                if key in ours
                else [f"{where}/{key}: missing"]
            )
        ]
    same = ours is None if theirs is None else ours is not None and abs(ours - theirs) <= 1e-6
    return [] if same else [f"{where}: {ours!r} for {theirs!r}"]


@real_files("held_open_world")
@pytest.mark.parametrize("profile", ["clean", "ore", "owdetr", "all"])
def check_every_number(golden: Path, capsys: pytest.CaptureFixture[str], profile: str) -> None:
    expected = json.loads((golden / "expected.json").read_text(encoding="utf-8"))["expected"]
    wanted = {name: section for name, section in expected.items() if profile in ("all", name.split("/")[1])}
    ours = evaluate(golden, capsys, "--profile", profile)
    assert wanted
    assert not differences(ours, wanted, "")
    assert {name for name in ours if "/" in name} == set(wanted)


def test_the_comparison_sees_a_difference() -> None:
    assert differences({"a": {"b": 1.0}}, {"a": {"b": 1.0}}, "") == []
    assert differences({"a": 0.0}, {"a": None}, "") == ["/a: 0.0 for None"]
    assert differences({"a": 1.000002}, {"a": 1.0}, "") != []
    assert differences({}, {"a": 1.0}, "") == ["/a: missing"]
