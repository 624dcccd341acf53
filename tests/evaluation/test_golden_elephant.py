"""Every number of the hand-checked case, through the command line: 1e-9 (paper, OWOD and the rest), 1e-6 (official)."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from tests.evaluation import elephant_rows
from tests.real_files import provided, real_files
from tests.worlds.expected import differences


@provided
def golden(shared: Path) -> Path:
    return shared / "golden" / "elephant" / "hand"


def evaluate(golden: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    arguments = ["evaluate", "elephant", "--json", *more]
    for part in ("closed", "wilderness"):
        arguments += ["--truth", f"{part}={golden / f'gt_{part}.json'}"]
        arguments += ["--detections", f"{part}={golden / f'dets_{part}.json'}"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    return {"wilderness_order": found["wilderness_order"], **elephant_rows.of_json(found)}


@real_files("held")
def check_every_number(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = json.loads((golden / "expected.json").read_text(encoding="utf-8"))
    ours = evaluate(golden, capsys, "--variant", "all")
    found = [
        difference
        for name, section in expected.items()
        for difference in differences(
            ours[name], section, name, tolerance=1e-6 if name.startswith("official") else 1e-9
        )
    ]
    assert not found
