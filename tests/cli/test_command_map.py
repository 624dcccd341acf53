"""The commands as a whole: few enough to remember, listed in groups, one word an idea; what was called otherwise."""

import argparse
import re
from collections.abc import Iterator

import pytest

from curation.cli import GONE, groups, whole_parser
from curation.core.option_names import NAMES, renamed
from tests.shell import VERBS, Shell


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in below:
        for command in dict.fromkeys(action.choices.values()):
            yield from leaves(command)
    if not below:
        yield parser


def test_there_are_few_verbs_commands_and_options() -> None:
    commands = list(leaves(whole_parser()))
    options = {name for one in commands for action in one._actions for name in action.option_strings}
    assert len(VERBS) <= 20
    assert len(commands) <= 40
    assert len({name for name in options if name.startswith("--")}) <= 150


def test_help_says_which_options_may_be_repeated_and_what_an_option_does_not_do() -> None:
    for command in leaves(whole_parser()):
        several = [action for action in command._actions if isinstance(action, argparse._AppendAction)]
        silent = [action.dest for action in several if not re.search("repeatable|once for", action.help or "")]
        assert not silent, command.prog
        assert "--no-cache parses" not in command.format_help()


def test_the_help_lists_the_verbs_in_groups_on_one_screen(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = shell.out(status=2).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    for title, verbs in groups().items():
        at = lines.index(title)
        assert [line.split()[0] for line in lines[at + 1 : at + 1 + len(verbs)]] == list(verbs)


@pytest.mark.parametrize("old", GONE)
def test_a_verb_of_an_earlier_version_names_the_new_one(old: str, shell: Shell) -> None:
    (line,) = shell.err(*old.split(), "--out", "x").splitlines()
    assert line == f"error: `curation {old}` is now `curation {GONE[old]}`"


@pytest.mark.parametrize(
    ("words", "right"),
    [
        ("biuld owod", "did you mean build?"),
        ("build owd", "did you mean owod?"),
        ("evaluate owd --json", "did you mean owod?"),
        ("review aply", "did you mean apply?"),
        ("build owod --sorce x", "did you mean --source?"),
        ("frobnicate", "see `curation --help`"),
        ("show M \x1b[31m", "unrecognized arguments: \N{REPLACEMENT CHARACTER}[31m"),
        ("similarity duplicates x", "unrecognized arguments: x: see `curation similarity duplicates --help`"),
        ("build owod", "required: --out: see `curation build --help`"),
        ("build elephant/train2017", "required: --out: see `curation build --help`"),
    ],
)
def test_wrong_words_are_answered_in_one_line(words: str, right: str, shell: Shell) -> None:
    (line,) = shell.err(*words.split(" ")).splitlines()
    assert line.startswith("error: ")
    assert right in line


@pytest.mark.parametrize(
    ("words", "new"),
    [
        ("evaluate owod --profile all", "--variant"),
        ("evaluate imagenet --grid=all", "--variant"),
        ("evaluate voc --bad-boxes drop", "--on-error boxes=…"),
        ("evaluate owod --images list.txt", "--lists"),
        ("similarity embed --images photos", "--photos"),
        ("build owod --declare", "--header-only"),
        ("review apply M --added-boxes b.jsonl", "COCO JSON file as --source"),
        ("build owod --added-boxes b.jsonl", "COCO JSON file as --source"),
        ("evaluate owod --exhaustive-only", "COCO JSON file as --source or --truth"),
        ("evaluate coco --engine both", "hotcoco computes"),
        ("evaluate voc --set seam=split", "--set seam of `curation evaluate voc` is gone: leave it out"),
        ("build osod3 --set=seam=widest", "left out and counted"),
        ("evaluate osod3 --engine=pycocotools", "else pycocotools"),
    ],
)
def test_an_option_of_an_earlier_version_names_the_new_one(words: str, new: str, shell: Shell) -> None:
    (line,) = shell.err(*words.split()).splitlines()
    assert new in line


def test_every_renamed_parameter_is_known_by_its_old_name() -> None:
    for name, now in NAMES.items():
        if now is not None:
            old = name.rpartition(".")[2].replace("_", "-")
            assert f"--{now.option}" in str(renamed(old, {f"--{now.option}"}))
            assert renamed(old, {"--other"}) is None
