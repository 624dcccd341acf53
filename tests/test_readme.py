"""The shell blocks of README.md and docs run as written, on a small world laid out as they expect."""

import json
import re
import shlex
from pathlib import Path

import pytest

from curation.cli import main
from tests.small_world import write_detections, write_small_world

ROOT = Path(__file__).parents[1]
DECLARED = "curation build manifests/"


def commands(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```bash\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    write_small_world(tmp_path / "data", n_closed=30, n_wilderness=70)
    return tmp_path


def run(line: str) -> int:
    program, *arguments = shlex.split(line)
    assert program == "curation"
    return main(arguments)


@pytest.mark.parametrize("page", ["README.md", "docs/elephant.md"])
def test_every_command_of_a_page_runs(page: str, data: Path) -> None:
    lines = commands(page)
    assert len(lines) >= 5
    for line in lines:
        if line.startswith(DECLARED):
            continue
        if "-results.json" in line:
            for part in ("closed", "wilderness"):
                write_detections(data / "truth" / f"{part}.json", data / f"{part}-results.json")
        assert run(line) == 0, line


def test_completing_the_declared_manifest_refuses_other_data(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The small world is not train2017: the command must run, say which figures differ, and write nothing.
    (line,) = [line for line in commands("README.md") if line.startswith(DECLARED)]
    (data / "manifests").symlink_to(ROOT / "manifests")
    assert run(line) == 1
    assert "23,008" in capsys.readouterr().out
    assert not (data / shlex.split(line)[-1]).exists()


def test_results_of_the_readme_are_there(data: Path) -> None:
    for line in commands("README.md"):
        if "evaluate" in line:
            for part in ("closed", "wilderness"):
                write_detections(data / "truth" / f"{part}.json", data / f"{part}-results.json")
        if not line.startswith(DECLARED):
            assert run(line) == 0
    result = json.loads((data / "scores" / "results.json").read_text())
    assert result["profile"] == "paper"
    assert result["n_closed"] == 30


def test_links_and_pictures_exist() -> None:
    for page in ("README.md", "docs/elephant.md", "docs/manifests.md", "docs/metrics.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
        assert all((ROOT / page).parent.joinpath(target).exists() for target in targets), page
