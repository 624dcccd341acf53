"""Every number of the hand-checked case, through the command line: 1e-9 (paper, OWOD and the rest), 1e-6 (official)."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from tests.real_files import provided, real_files


@provided
def golden(shared: Path) -> Path:
    return shared / "golden" / "elephant" / "hand"


def differences(ours: Any, theirs: Any, tolerance: float, where: str = "") -> list[str]:
    """Return every place of `theirs` at which `ours` says something else; what it says beyond is its own."""
    if isinstance(theirs, dict):
        if not isinstance(ours, dict):
            return [f"{where}: {ours!r} for a mapping"]
        missing = [f"{where}/{key}: missing" for key in theirs if key not in ours]
        return missing + [
            found
            for key in theirs
            if key in ours
            for found in differences(ours[key], theirs[key], tolerance, f"{where}/{key}")
        ]
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return [f"{where}: {ours!r} for {theirs!r}"]
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [found for k, (a, b) in pairs for found in differences(a, b, tolerance, f"{where}[{k}]")]
    numbers = isinstance(theirs, int | float) and isinstance(ours, int | float)
    same = abs(ours - theirs) <= tolerance if numbers else ours == theirs
    return [] if same else [f"{where}: {ours!r} for {theirs!r}"]


def evaluate(golden: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    arguments = ["evaluate", "elephant", "--json", "--no-cache", *more]
    for part in ("closed", "wilderness"):
        arguments += ["--truth", f"{part}={golden / f'gt_{part}.json'}"]
        arguments += ["--detections", f"{part}={golden / f'dets_{part}.json'}"]
    assert main(arguments) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


@real_files("held_elephant")
def check_every_number(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = json.loads((golden / "expected.json").read_text(encoding="utf-8"))
    ours = evaluate(golden, capsys, "--profile", "all")
    found = [
        difference
        for name, section in expected.items()
        for difference in differences(
            ours[name], section, 1e-6 if name.startswith("official") else 1e-9, name
        )
    ]
    assert not found


@real_files("held_elephant")
@pytest.mark.parametrize(
    ("options", "name"),
    [
        ((), "paper"),
        (("--difficult", "count"), "paper_difficult_counted"),
        (("--profile", "official"), "official"),
        (("--profile", "official", "--level-counts", "float32"), "official_float32_counts"),
    ],
)
def check_each_reading_alone(
    golden: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], name: str
) -> None:
    expected = json.loads((golden / "expected.json").read_text(encoding="utf-8"))
    ours = evaluate(golden, capsys, *options)
    assert not differences(ours[name], expected[name], 1e-9, name)
    assert {key for key in expected if key.startswith(("paper", "official"))} & set(ours) == {name}


def test_the_comparison_sees_a_difference() -> None:
    assert differences({"a": [1.0, None]}, {"a": [1.0, None]}, 0) == []
    assert differences({"a": [1.0, 0.0]}, {"a": [1.0, None]}, 1) != []
    assert differences({"a": [1.0]}, {"a": [1.0 + 2e-9]}, 1e-9) != []
    assert differences({}, {"a": 1}, 1) == ["/a: missing"]
