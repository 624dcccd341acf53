"""``curation verify results.json``: every benchmark's result is scored again, and a number that differs is named."""

import json
from pathlib import Path

import pytest

from tests.cli.test_leaderboard import OPTIONS, command
from tests.shell import Shell
from tests.worlds.runs import RUNS

WORLDS = ("imagenetood", "ninco", "openood", "ovcoco", "owod repeated", "ssb")
"""Runs of `RUNS` that are scored again: scores of images, of classifiers, and of the classes of COCO."""


def inputs_of(words: list[str]) -> list[str]:
    """Return the files of an evaluation's command as options of ``curation verify``."""
    given: list[str] = []
    for option, text in zip(words[2::2], words[3::2], strict=True):
        name, equals, path = text.rpartition("=")
        key, colon, named = name.partition(":")
        if colon:
            given += ["--input", f"{key}.{named}={path}"]
        elif option in ("--truth", "--detections", "--scores"):
            given += [option, text]
        elif option in ("--classes", "--lists"):
            given += ["--input", f"{option[2:]}.{name}={path}" if equals else f"{option[2:]}={path}"]
    return given


@pytest.mark.parametrize("benchmark", [*sorted(OPTIONS), *WORLDS])
def test_a_result_is_scored_again(benchmark: str, tmp_path: Path, shell: Shell) -> None:
    path = tmp_path / "out" / "results.json"
    words = (
        [*command(benchmark, tmp_path), *OPTIONS[benchmark]]
        if benchmark in OPTIONS
        else ["evaluate", *map(str, RUNS[benchmark](tmp_path).words)]
    )
    shell.out(*words, "--out", path.parent)
    assert shell.out("verify", path, *inputs_of(words)).startswith("equal: ")

    content = json.loads(path.read_text())
    row = next(row for row in content["measures"] if isinstance(row["value"], float))
    row["value"] += 0.25
    path.write_text(json.dumps(content))
    told = shell.out("verify", path, *inputs_of(words), status=1)
    assert row["measure"] in told
    assert "not equal: 1 value" in told


def test_the_advice_about_missing_files_works(tmp_path: Path, shell: Shell) -> None:
    words, path = command("coco", tmp_path), tmp_path / "out" / "results.json"
    shell.out(*words, "--out", path.parent)
    advice = shell.err("verify", path).partition("try: curation ")[2].split()
    files = {Path(text).name: text for text in words[3::2]}
    assert shell.out(*(files.get(word, word) for word in advice)).startswith("equal: ")
    extra = shell.err(*(files.get(word, word) for word in advice), "--scores", files["model.json"])
    assert "not made from this file" in extra
    assert "results.json" in shell.err("verify", "elephant/val2017", "--detections", files["model.json"])


def test_another_file_in_its_place_is_told_by_its_digest(tmp_path: Path, shell: Shell) -> None:
    words, path = command("voc", tmp_path), tmp_path / "out" / "results.json"
    shell.out(*words, "--out", path.parent)
    detections = Path(words[words.index("--detections") + 1])
    renamed = detections.rename(tmp_path / "renamed.json")
    given = [str(renamed) if word == str(detections) else word for word in inputs_of(words)]
    assert shell.out("verify", path, *given).startswith("equal: ")
    renamed.write_text(json.dumps(json.loads(renamed.read_text())[:-1]))
    told = shell.data("verify", path, *given, "--json", status=1)
    assert any(row["where"].endswith("detections.sha256") for row in told["differences"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"truht": 1}, "an option that this version does not have"),
        ({"reading": {"image_sets": "x"}}, "an option that this version does not have"),
        ({"truth": "elsewhere.json"}, "A file is missing: elsewhere.json"),
        ({"truth": 5}, "cannot use this value of truth"),
        ("none", "does not say how it was scored"),
    ],
)
def test_a_strangers_result_names_no_path_and_no_option(
    call: object, message: str, tmp_path: Path, shell: Shell
) -> None:
    words, path = command("coco", tmp_path), tmp_path / "out" / "results.json"
    shell.out(*words, "--out", path.parent)
    content = json.loads(path.read_text())
    content["call"] = {**content["call"], **call} if isinstance(call, dict) else call
    path.write_text(json.dumps(content))
    given = inputs_of(words)[2 if "truth" in str(call) and "truht" not in str(call) else 0 :]
    assert message in shell.err("verify", path, *given)
