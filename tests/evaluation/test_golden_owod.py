"""The hand-checked OWOD case, through the command line: every number of every profile to 1e-9."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from tests.evaluation.open_world_rows import of_result
from tests.real_files import provided, real_files
from tests.worlds import version_1
from tests.worlds.expected import differences


@provided
def golden(shared: Path) -> Path:
    return shared / "golden" / "owod" / "handmade"


def evaluate(golden: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    given = ["evaluate", "owod", "--json", "--truth", str(golden / "gt.json")]
    given += ["--detections", str(golden / "detections.json"), "--classes", str(golden / "protocol.json")]
    assert main([*given, *more]) == 0
    found: dict[str, Any] = version_1.renamed(of_result(json.loads(capsys.readouterr().out)), "owod")
    return found


@real_files("held")
@pytest.mark.parametrize("profile", ["clean", "ore", "owdetr", "all"])
def check_every_number(golden: Path, capsys: pytest.CaptureFixture[str], profile: str) -> None:
    expected = json.loads((golden / "expected.json").read_text(encoding="utf-8"))["expected"]
    wanted = {name: section for name, section in expected.items() if profile in ("all", name.split("/")[1])}
    ours = evaluate(golden, capsys, "--variant", profile)
    assert wanted
    assert not differences(ours, wanted, tolerance=1e-9)
    assert set(ours) == set(wanted)
