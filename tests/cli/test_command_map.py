"""The commands as a whole: few enough to remember, listed in groups, one word an idea; what was called otherwise."""

import re

import pytest

from curation.cli import groups
from tests.shell import VERBS, Shell, parsers


def test_there_are_few_verbs_commands_and_options() -> None:
    commands = list(parsers())
    options = {name for one in commands for action in one._actions for name in action.option_strings}
    assert len(VERBS) <= 21
    assert len([one for one in commands if not one.prog.startswith("curation evaluate ")]) <= 35
    assert len({name for name in options if name.startswith("--")}) <= 150


def test_help_says_which_options_may_be_repeated_and_what_an_option_does_not_do() -> None:
    for command in parsers():
        several = {dest for dest, (option, *_) in command._defaults["groups"].items()
                   if option.key or (option.kind in ("many", "pairs") and not option.positional)}  # fmt: skip
        telling = {action.dest for action in command._actions if re.search("repeatable|once for", action.help or "")}
        assert several <= telling, command.prog
        assert "parses" not in command.format_help()


def test_the_help_lists_the_verbs_in_groups_on_one_screen(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = shell.out(status=2).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    for title, verbs in groups().items():
        at = lines.index(title)
        assert [line.split()[0] for line in lines[at + 1 : at + 1 + len(verbs)]] == list(verbs)


@pytest.mark.parametrize(
    ("words", "what", "hint"),
    [
        ("biuld owod", "There is no `curation biuld`", "did you mean build?"),
        ("build owd --out x", "No such benchmark", "did you mean owod?"),
        ("evaluate owd --json", "There is no `curation evaluate owd`", "did you mean owod?"),
        ("review aply", "There is no `curation review aply`", "did you mean apply?"),
        ("build owod --sorce x", "--sorce of `curation build` does not exist", "did you mean --source?"),
        ("renumber x", "There is no `curation renumber`", "curation inspect FILE --renumber NEW.json"),
        ("frobnicate", "There is no `curation frobnicate`", "curation --help"),
        ("show M \x1b[31m", "There are words that belong to no option", "curation show --help"),
        (
            "similarity duplicates --photos p x",
            "There are words that belong to no option",
            "curation similarity duplicates --help",
        ),
        ("build owod", "--out is missing", "curation build --help"),
        ("evaluate coco", "--truth and --detections are missing", "curation evaluate coco --help"),
    ],
)
def test_wrong_words_are_refused_with_what_to_do(words: str, what: str, hint: str | None, shell: Shell) -> None:
    lines = shell.err(*words.split(" ")).splitlines()
    assert lines[0] == f"error: {what}"
    assert "\x1b" not in "".join(lines)
    if hint:
        assert lines[-1] == f"  try: {hint}"


@pytest.mark.parametrize(
    ("words", "new"),
    [
        ("review apply M --added-boxes b.jsonl", "COCO JSON file as --source"),
        ("evaluate owod --exhaustive-only", "COCO JSON file as --source or --truth"),
        ("evaluate coco --engine both", "hotcoco computes"),
        (
            "evaluate elephant --truth closed=a --detections closed=b --set seam=split",
            "--set seam of `curation evaluate elephant` is gone: leave it out",
        ),
    ],
)
def test_an_option_of_an_earlier_version_says_what_to_do_instead(words: str, new: str, shell: Shell) -> None:
    (line,) = shell.err(*words.split()).splitlines()
    assert new in line
