"""The hand-checked OOD case, through the command line: every number of both readings."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from tests.real_files import provided, real_files
from tests.worlds.version_1 import of_json


@provided
def golden(shared: Path) -> Path:
    return shared / "golden" / "findmeifyoucan" / "hand"


def evaluate(golden: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    given = ["evaluate", "findmeifyoucan", "--json", "--truth", str(golden / "gt.json")]
    given += ["--detections", str(golden / "detections.json"), "--scores", str(golden / "id_scores.json")]
    assert main([*given, *more]) == 0
    result: dict[str, Any] = of_json(json.loads(capsys.readouterr().out))
    return result


def flat(content: dict[str, Any], prefix: str = "") -> dict[str, float]:
    found: dict[str, float] = {}
    for key, value in content.items():
        found |= flat(value, f"{prefix}{key}/") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found


@real_files("held")
@pytest.mark.parametrize("rule", ["quantile", "zscore"])
@pytest.mark.parametrize("profile", ["official", "paper", "all"])
def check_every_number(golden: Path, capsys: pytest.CaptureFixture[str], rule: str, profile: str) -> None:
    expected = flat(json.loads((golden / "expected.json").read_text(encoding="utf-8")))
    ours = evaluate(golden, capsys, "--variant", profile, "--set", f"threshold={rule}")
    ours["official_code_output"] = ours.get("official")
    for key, value in expected.items():
        section, _, name = key.rpartition("/")
        if key == "official_code_agrees" or (section and profile not in ("all", section.split("_")[0])):
            continue
        found = ours[section][name] if section else ours[name]
        wanted = ours[f"threshold_{rule}"] if key == "threshold" else value
        assert found == pytest.approx(wanted, abs=1e-9), key


@real_files("held")
def check_the_code_itself_gives_the_official_reading(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    official = evaluate(golden, capsys)["official"]
    printed = json.loads((golden / "expected.json").read_text(encoding="utf-8"))["official_code_output"]
    assert {name: official[name] for name in printed} == printed
