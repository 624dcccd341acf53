"""The committed expectations are what the references say today, and the references share nothing with the package."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.worlds.expected import FOLDER, WORLDS, committed, differences, made
from tests.worlds.expected import main as rewrite

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", WORLDS)
def test_the_references_make_the_committed_file(name: str) -> None:
    now = made(name)
    assert differences(now, committed(name)) == []
    assert differences(committed(name), now) == []


def test_every_committed_file_has_a_world() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(WORLDS)


def test_no_expectation_is_made_by_the_package() -> None:
    code = "import sys; import tests.worlds.expected; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [one for one in found.stdout.split() if one.partition(".")[0] == "curation"] == []


def test_the_comparison_sees_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert differences({"a": [1.0, None], "more": 1}, {"a": [1.0, None]}) == []
    assert differences({"a": [1.0, 0.0]}, {"a": [1.0, None]}) == ["/a[1]: 0.0 for None"]
    assert differences({"a": [1.0 + 2e-11]}, {"a": [1.0]}) != []
    assert differences({"a": None}, {"a": 0.0}) == ["/a: None for 0.0"]
    assert differences({"a": 1}, {"a": True}) == []
    assert differences({}, {"a": 1}) == ["/a: missing"]
    assert differences({"a": [1]}, {"a": [1, 2]}) != []
    assert rewrite(["coco"]) == 0
    assert capsys.readouterr().out == ""
