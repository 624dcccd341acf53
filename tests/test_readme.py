"""What README.md promises of its commands, beyond that they run (tests/test_docs_blocks.py)."""

import json
import shlex
from pathlib import Path

import pytest

from curation.cli import main
from curation.protocols.owod_tasks import read_task_file
from tests.docs.pages import blocks_of, commands_of
from tests.docs.worlds import data_of, draw_detections, lay

DECLARED = "curation build manifests/"


def commands() -> list[str]:
    return [
        one.text for block in blocks_of("README.md") if block.language == "bash" for one in commands_of(block)
    ]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_CACHE", str(tmp_path / "cache"))
    lay("README.md", tmp_path)
    return tmp_path


def test_pages_print_one_task_file() -> None:
    assert data_of("README.md", "toml") == data_of("docs/owod.md", "toml")


def test_init_writes_the_task_file_that_the_page_prints(data: Path) -> None:
    (line,) = [line for line in commands() if line.startswith("curation init ")]
    assert not (data / "tasks.toml").exists()
    assert main(shlex.split(line)[1:]) == 0
    (data / "printed.toml").write_text(data_of("README.md", "toml")[0])
    assert read_task_file(data / "tasks.toml") == read_task_file(data / "printed.toml")


def test_completing_the_declared_manifest_refuses_other_data(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The small world is not train2017: the command must run, say which figures differ, and write nothing.
    (line,) = [line for line in commands() if line.startswith(DECLARED)]
    assert main(shlex.split(line)[1:]) == 1
    assert "23,008" in capsys.readouterr().out
    assert not (data / shlex.split(line)[-1]).exists()


def test_results_of_the_readme_are_there(data: Path) -> None:
    for line in commands():
        draw_detections(line, data)
        if not line.startswith(DECLARED):
            assert main(shlex.split(line)[1:]) == 0
    result = json.loads((data / "scores" / "results.json").read_text())
    assert result["profile"] == "paper"
    assert result["n_closed"] == 30
    section = json.loads((data / "scores-t2" / "results.json").read_text())["t2/clean"]
    assert (section["UR"], section["mAP_both"]) == (100.0, 100.0)
