"""Completion at the shell, made by shtab from the parser of every verb."""

import argparse
import subprocess
from pathlib import Path

import pytest

from curation.cli import main, whole_parser
from curation.cli.outputs import commands_of
from tests.shell import VERBS


def test_the_parser_has_every_verb_and_knows_what_is_a_file() -> None:
    parser = whole_parser()
    (verbs,) = [one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    assert verbs.keys() == VERBS
    for command in commands_of(parser):
        for action in command._actions:
            (option, *_) = command._defaults.get("groups", {}).get(action.dest, (None,))
            assert hasattr(action, "complete") == (
                option is not None and (option.word is Path or action.type is not None)
            )


def test_bash_completes_protocols_options_choices_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--completion", "bash"])
    assert ended.value.code == 0
    script = tmp_path / "completion.bash"
    script.write_text(capsys.readouterr().out)
    (tmp_path / "tasks.toml").write_text("")
    for words, completed in (
        (["eval"], "evaluate"),
        (["evaluate", "owo"], "owod"),
        (["evaluate", "owod", "--vari"], "--variant"),
        (["evaluate", "owod", "--variant", "cl"], "clean"),
        (["build", "owod", "--tasks", "tas"], "tasks.toml"),
    ):
        line = " ".join(["curation", *words])
        program = (
            f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; "
            "$(complete -p curation | sed 's/.*-F //; s/ .*//') curation "
            f"{words[-1]} ''; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
        assert done.stdout.split() == [completed], words
