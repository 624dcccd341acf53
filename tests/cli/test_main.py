"""The command line as a whole: help is instant, wrong use exits with 2, a closed pipe is no error."""

import subprocess
import sys
from pathlib import Path

import pytest

from curation.cli import VERBS, main
from tests.shell import Shell

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


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["--help"])
    assert exit_info.value.code == 0
    text = capsys.readouterr().out
    assert all(verb in text for verb in VERBS)


COMMANDS = [[verb] for verb in sorted(set(VERBS) - {"evaluate", "hierarchy", "review", "similarity"})]
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


@pytest.mark.parametrize("more", [[], ["naive", "scores.json", "--gamma", "4"], ["--help"]])
def test_a_verb_that_is_gone_names_the_new_way(more: list[str], shell: Shell) -> None:
    (line,) = shell.err("baseline", *more).splitlines()
    assert line == "error: `curation baseline` is gone: use the functions of curation.baselines, docs/osod3.md"


def test_no_verb_prints_help_and_exits_2(shell: Shell) -> None:
    assert "VERB" in shell.out(status=2)


def test_unknown_verb_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["frobnicate"])
    assert exit_info.value.code == 2
    assert "frobnicate" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m curation list --json | head -c 1"
    finished = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, timeout=60)
    assert finished.stderr == b""


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["evaluate", "voc", "--iuo", "7"], "usage: curation evaluate voc"),
        (["show", "x", "--compositon"], "usage: curation show"),
        (["--vresion"], "usage: curation [-h]"),
    ],
)
def test_an_option_that_there_is_not_is_told_with_the_usage_of_its_command(
    words: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--truth", "a", "--detections", "b"] if words[0] == "evaluate" else []
    with pytest.raises(SystemExit) as caught:
        main([*words, *more])
    told = capsys.readouterr().err
    assert caught.value.code == 2
    assert told.startswith(usage)
    assert "unrecognized arguments" in told


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
