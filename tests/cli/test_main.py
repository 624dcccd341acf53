"""The command line as a whole: help is instant, wrong use exits with 2, a closed pipe is no error."""

import subprocess
import sys
from pathlib import Path

import pytest

from curation.cli import main
from tests.shell import VERBS, Shell

HEAVY = ("torch", "fiftyone", "sklearn", "nltk", "open_clip", "matplotlib", "pandas", "pyarrow", "numpy")


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize("statement", ["import curation", "import curation.cli; curation.cli.main(['list', '--help'])"])
def test_import_and_help_load_nothing_heavy(statement: str) -> None:
    code = f"""
import contextlib, io, sys
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    {statement}
print(*[name for name in {HEAVY!r} if name in sys.modules])
"""
    loaded = set(run_python(code).split())
    assert loaded <= {"numpy"} if "list" in statement else not loaded


def test_top_help_loads_no_array_library() -> None:
    code = """
import contextlib, io, sys
import curation.cli
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    curation.cli.main(["--help"])
print("numpy" in sys.modules, "msgspec" in sys.modules)
"""
    assert run_python(code).split() == ["False", "False"]


COMMANDS = [[verb] for verb in sorted(VERBS - {"evaluate", "hierarchy", "review", "similarity"})]
COMMANDS += [["evaluate", protocol] for protocol in ("elephant", "voc", "coco")]
COMMANDS += [["evaluate", protocol] for protocol in ("owod", "osod3", "imagenet", "findmeifyoucan")]
COMMANDS += [["review", action] for action in ("propose", "start", "status", "export", "summary", "apply")]
COMMANDS += [["hierarchy", action] for action in ("show", "find", "similarity", "dropped", "related")]
COMMANDS += [["similarity", action] for action in ("embed", "neighbors", "duplicates", "leaks")]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main([*command, "--help"])
    assert exit_info.value.code == 0
    assert "--json" in capsys.readouterr().out


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m curation list --json | head -c 1"
    finished = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, timeout=60)
    assert finished.stderr == b""


@pytest.mark.parametrize(
    "words",
    [
        ["similarity", "duplicates", "--photos", "file.txt"],
        ["similarity", "embed", "--photos", "file.txt", "--out", "s"],
        ["list", "--folder", "file.txt"],
        ["evaluate", "voc", "--truth", "file.txt", "--detections", "file.txt", "--out", "file.txt"],
        ["cut", "file.txt", "-k", "2", "--out", "file.txt"],
    ],
)
def test_a_file_in_place_of_a_folder_is_called_one(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.txt").write_text("mine")
    assert "found: a file" in shell.err(*words)
    assert [one.name for one in tmp_path.iterdir()] == ["file.txt"]
