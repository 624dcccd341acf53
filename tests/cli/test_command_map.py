"""The commands as a whole: few enough to remember, listed in groups, one word an idea; what was called otherwise."""

import re

import pytest

from curation.cli import GONE, groups, whole_parser
from curation.cli.outputs import commands_of
from curation.core.option_names import NAMES, renamed
from tests.shell import VERBS, Shell


def test_there_are_few_verbs_commands_and_options() -> None:
    commands = list(commands_of(whole_parser()))
    options = {name for one in commands for action in one._actions for name in action.option_strings}
    assert len(VERBS) <= 20
    assert len([one for one in commands if not one.prog.startswith("curation evaluate ")]) <= 35
    assert len({name for name in options if name.startswith("--")}) <= 150


def test_help_says_which_options_may_be_repeated_and_what_an_option_does_not_do() -> None:
    for command in commands_of(whole_parser()):
        several = {dest for dest, (option, *_) in command._defaults["groups"].items()
                   if option.key or (option.kind in ("many", "pairs") and not option.positional)}  # fmt: skip
        telling = {action.dest for action in command._actions if re.search("repeatable|once for", action.help or "")}
        assert several <= telling, command.prog
        assert "parses" not in command.format_help()


def test_every_option_that_may_name_a_file_counts_as_an_input() -> None:
    """What has choices is passed over where inputs are collected (see `curation.cli.outputs.guarded`)."""
    for command in commands_of(whole_parser()):
        for action in command._actions:
            members = command._defaults["groups"].get(action.dest, ())
            assert action.choices is None or all(option.choices for option in members), (command.prog, action.dest)


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
    ("words", "what", "hint"),
    [
        ("biuld owod", "There is no `curation biuld`", "did you mean build?"),
        ("build owd --out x", "No such benchmark", "did you mean owod?"),
        ("evaluate owd --json", "There is no `curation evaluate owd`", "did you mean owod?"),
        ("review aply", "There is no `curation review aply`", "did you mean apply?"),
        ("build owod --sorce x", "--sorce of `curation build` does not exist", "did you mean --source?"),
        ("frobnicate", "There is no `curation frobnicate`", "curation --help"),
        ("show M \x1b[31m", "There are words that belong to no option", "curation show --help"),
        (
            "similarity duplicates x",
            "There are words that belong to no option",
            "curation similarity duplicates --help",
        ),
        ("build owod", "--out is missing", "curation build --help"),
        ("evaluate coco", "--truth and --detections are missing", "curation evaluate coco --help"),
        ("--completion csh", "--completion cannot use this value", None),
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
        ("evaluate coco --stray drop", "--on-error stray=…"),
        ("evaluate voc --set seam=split", "--set seam of `curation evaluate voc` is gone: leave it out"),
        ("build osod3 --set=seam=widest", "left out and counted"),
        ("evaluate osod3 --engine=pycocotools", "else pycocotools"),
    ],
)
def test_an_option_of_an_earlier_version_names_the_new_one(words: str, new: str, shell: Shell) -> None:
    (line,) = shell.err(*words.split()).splitlines()
    assert new in line


def test_a_successor_that_the_command_lacks_is_not_named(shell: Shell) -> None:
    """``init`` has --on-error for boxes alone, and no verb has words without dashes as options."""
    assert "is now" not in shell.err("init", "--source", "a.json", "--stray", "drop")
    assert "is gone" not in shell.err("init", "--source", "a.json", "set", "seam")
    for words in (["init", "--source", "a.json", "--name"], ["review"]):
        message = shell.err(*words)
        assert "did you mean ?" not in message
        assert "None" not in message
    assert "propose" in shell.err("review")


def test_every_renamed_parameter_is_known_by_its_old_name() -> None:
    for name, now in NAMES.items():
        if now is not None:
            old = name.rpartition(".")[2].replace("_", "-")
            assert f"--{now.option}" in str(renamed(old, {f"--{now.option} {now.key}".rstrip()}))
            assert renamed(old, {"--other"}) is None
