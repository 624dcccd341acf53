"""The command line as a whole: help is instant, wrong use exits with 2, a closed pipe is no error."""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from curation.cli import main
from curation.cli.signature import value_of
from curation.core.errors import UsageError
from tests.shell import Shell, parsers

HEAVY = ("torch", "fiftyone", "sklearn", "nltk", "open_clip", "matplotlib", "pandas", "pyarrow", "numpy", "msgspec")


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import curation", ()),
        ("curation.cli.main(['--help'])", ()),
        ("curation.cli.main(['list', '--help'])", ("numpy", "msgspec")),
        ("curation.cli.main(['evaluate', '--help'])", ("numpy", "msgspec")),
    ],
)
def test_import_and_help_load_nothing_heavy(statement: str, allowed: tuple[str, ...]) -> None:
    code = f"""
import contextlib, io, sys
import curation.cli
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    {statement}
print(*[name for name in {HEAVY!r} if name in sys.modules])
print(*[name for name in sys.modules if name.startswith("curation.") and name.endswith(("evaluation", "_engine"))])
"""
    heavy, evaluations = run_python(code).split("\n")[:2]
    assert set(heavy.split()) <= {*allowed}
    assert set(evaluations.split()) <= {"curation.evaluation"}


def test_every_command_has_help_and_json() -> None:
    for parser in parsers():
        assert parser.description not in (None, ".", "")
        assert "--json" in parser.format_help()


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


PARTS = {"where": "where", "expected": "expected", "found": "found", "try": "hint"}


def refusal(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the JSON of a refusal; it stands alone on standard output, its text on standard error."""
    assert main(words) == 2, words
    streams = capsys.readouterr()
    told: dict[str, Any] = json.loads(streams.out)
    assert {"error", "what", "where", "expected", "found", "hint"} == told.keys()
    assert told["what"]
    lines = [f"error: {told['what']}"]
    lines += [f"  {name}: {told[key]}" for name, key in PARTS.items() if told[key]]
    assert streams.err.split() == " ".join(lines).split()
    return told


def test_an_option_of_one_value_is_given_once() -> None:
    """Whatever else a command line lacks: values are refused before anything else is looked at."""
    tried = 0
    for parser in parsers():
        for members in parser._defaults["groups"].values():
            for option in members:
                if option.positional or option.kind in ("many", "pairs") or (option.kind == "flag" and not option.key):
                    continue
                value = option.choices[0] if option.choices else "1"
                text = f"{option.key}={value}" if option.key else value
                groups = {option.dest: members}
                with pytest.raises(UsageError) as error:
                    value_of(option, argparse.Namespace(**{option.dest: [text, text]}, groups=groups, prog=parser.prog))
                assert error.value.what == f"{option.title} is given twice"
                assert (error.value.where, error.value.found) == (parser.prog, value)
                tried += 1
    assert tried > 300


def test_a_flag_that_is_given_twice_is_given(shell: Shell) -> None:
    assert json.loads(shell.out("list", "manifests", "--json", "--json"))


REFUSED = [
    "biuld", "show", "show a b c", "evaluate coco", "evaluate coco --truth a --detections b --variant x",
    "evaluate coco --truth nowhere --detections b", "cut x -k q --out o",
    "build elephant --source coco=nowhere --out o", "hierarchy shw", "list --folder", "diff a", "audit nowhere",
    "show elephant/val2017 --on-error boxes=drp", "review", "pull nothing --out o", "list --kind=1", "",
]  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_every_refusal_is_json_where_json_is_asked_for(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    told = refusal([*line.split(), "--json"], capsys)
    assert not [*tmp_path.iterdir()]
    # Without it, the same text alone.
    if line:
        assert main(line.split()) == 2
        streams = capsys.readouterr()
        assert streams.out == ""
        assert told["what"].splitlines()[0] in streams.err
