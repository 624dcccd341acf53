"""Options made from a signature and its docstring: every kind of parameter, its help, and what the function gets."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from curation.cli.outputs import OUTPUT_FILE
from curation.cli.signature import add_arguments, add_commands, call, pairs
from curation.core.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files are read.

    Attributes
    ----------
    no_cache
        parse again
    unknown : {"drop", "split"}
        what becomes of signs
        across a seam
    """

    no_cache: bool = False
    unknown: Literal["drop", "split"] = "drop"


def command(
    manifest: Annotated[str, "MANIFEST"],
    files: tuple[Path, ...] = (),
    /,
    *,
    reading: Reading,
    source: Mapping[str, Path],
    set_: Annotated[Mapping[str, str], "KEY=VALUE"] = {},
    n: int = 7,
    share: float | None = None,
    part: tuple[str, ...] = (),
    every: bool = False,
    quiet: bool = False,
    truth: Annotated[Any, Path, "COCO"] = None,
    out: Annotated[Path | None, OUTPUT_FILE, "DIR"] = None,
) -> dict[str, Any]:
    """Do one thing, or 100 % of it.

    More words.

    Parameters
    ----------
    manifest : str
        the manifest
    n
        how many: 5 % more
    every, quiet
        how much is told
    out : Path, optional
        write it

    Raises
    ------
    part
        not a parameter's text
    """
    return dict(locals())


def parse(*words: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser, command)
    made: dict[str, Any] = call(command, parser.parse_args(words))
    return made


def test_what_a_function_gets() -> None:
    assert parse("m", "--source", "a=b=c") == {
        "manifest": "m",
        "files": (),
        "reading": Reading(),
        "source": {"a": Path("b=c")},
        "set_": {},
        "n": 7,
        "share": None,
        "part": (),
        "every": False,
        "quiet": False,
        "truth": None,
        "out": None,
    }
    given = parse(
        "m", "x", "y", "--source=a=b", "--source=c=d", "--set", "k=v", "-n", "3", "--share=0.5", "--part=p",
        "--part=q", "--quiet", "--truth=t.json", "--out=o", "--no-cache", "--set=unknown=split",
    )  # fmt: skip
    assert given["files"] == (Path("x"), Path("y"))
    assert given["source"] == {"a": Path("b"), "c": Path("d")}
    assert (given["set_"], given["n"], given["share"], given["part"]) == ({"k": "v"}, 3, 0.5, ("p", "q"))
    assert (given["truth"], given["out"], given["quiet"]) == (Path("t.json"), Path("o"), True)
    assert given["reading"] == Reading(no_cache=True, unknown="split")


@pytest.mark.parametrize(
    "words", [("--source=a=b",), ("m",), ("m", "--source=a=b", "-n", "x"), ("m", "--source=a=b", "--set=unknown=mend")]
)
def test_wrong_words_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises((argparse.ArgumentError, SystemExit)):
        parse(*words)


def test_the_help_is_the_docstring(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser(prog="it")
    add_commands(parser, {"do": command}, "ACTION")
    parser.print_help()
    assert "Do one thing, or 100 % of it" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        parser.parse_args(["do", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for told in (
        "MANIFEST the manifest",
        "-n N, --n N how many: 5 % more (default: 7)",
        "--quiet how much is told",
        "--out DIR write it",
        "unknown=drop|split: what becomes of signs across a seam (default: drop)",
        "--no-cache parse again",
        "--set KEY=VALUE",
        "--source NAME=PATH",
        "--truth COCO",
    ):
        assert told in text, told
    assert "not a parameter" not in text


def test_the_output_keeps_its_kind() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser, command)
    assert any(action.type is OUTPUT_FILE for action in parser._actions)


def test_parameters_share_an_option() -> None:
    assert parse("m", "--source=a=b", "--set", "k=v", "--set", "unknown=split")["reading"] == Reading(unknown="split")
    assert parse("m", "--source=a=b", "--set", "k=v", "--set", "unknown=split")["set_"] == {"k": "v"}
    with pytest.raises(UsageError, match="--set unknown is given twice"):
        parse("m", "--source=a=b", "--set", "unknown=split", "--set", "unknown=drop")


def lenient(*, bad_boxes: Literal["error", "drop"] = "error", any_scores: bool = False, seed: int = 0) -> Any:
    """Read what may be wrong.

    Parameters
    ----------
    bad_boxes
        unusable boxes
    any_scores
        scores of any size
    seed
        of the bootstrap
    """
    return bad_boxes, any_scores, seed


@pytest.mark.parametrize(
    ("words", "made"),
    [
        ([], ("error", False, 0)),
        (["--on-error", "boxes=drop", "--on-error", "scores=keep", "--bootstrap", "seed=3"], ("drop", True, 3)),
        (["--on-error", "boxes=keep"], None),
        (["--on-error", "bxs=drop"], None),
        (["--bootstrap", "3"], None),
        (["--bootstrap", "seed="], None),
    ],
)
def test_keys_of_an_option(words: list[str], made: Any) -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser, lenient)
    text = " ".join(parser.format_help().split())
    assert "boxes=error|drop: unusable boxes (default: error)" in text
    assert "scores=error|keep: scores of any size" in text
    if made is None:
        with pytest.raises(argparse.ArgumentError):
            parser.parse_args(words)
    else:
        assert call(lenient, parser.parse_args(words)) == made


def test_a_type_that_no_word_can_be_is_a_mistake_of_the_programmer() -> None:
    def wrong(*, one: dict[str, int]) -> None:
        """Take what nobody can type."""

    with pytest.raises(TypeError, match="one"):
        add_arguments(argparse.ArgumentParser(), wrong)


def test_pairs() -> None:
    assert pairs(["a=b=c", "d=e"], "--set") == {"a": "b=c", "d": "e"}
    for texts in (["a"], ["=b"], ["a="], ["a=b", "a=c"]):
        with pytest.raises(UsageError):
            pairs(texts, "--set")


def test_pairs_whose_key_may_be_left_out() -> None:
    assert pairs(["x", "a=b"], "--photos", bare="") == {"": "x", "a": "b"}
    assert pairs(["c=x", "a=b"], "--photos", bare="", known=["a"]) == {"": "c=x", "a": "b"}
    with pytest.raises(UsageError, match="--photos is given twice for all"):
        pairs(["x", "y"], "--photos", bare="")
    with pytest.raises(UsageError, match="names 'a' twice"):
        pairs(["a=x", "a=y"], "--photos", bare="")


def keyed(
    *,
    truth: Mapping[str, Path] | Path,
    detections: Path,
    scores: Annotated[Mapping[str, Path] | Path, "[NAME=]FILE"] = {},  # noqa: B006
) -> Any:
    return scores or truth


def parsed(*words: str) -> Any:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser, keyed)
    return call(keyed, parser.parse_args(["--detections", "d", *words]))


def test_a_value_may_stand_without_a_key(tmp_path: Path) -> None:
    assert parsed("--truth", "a=x", "--truth", "b=y=z") == {"a": Path("x"), "b": Path("y=z")}
    assert parsed("--truth", "x") == Path("x")
    assert parsed("--truth", "dir/t=1.json") == Path("dir/t=1.json")
    assert parsed("--truth", "a=x", "--truth", "y") == {"a": Path("x"), "": Path("y")}
    assert parsed("--scores", "d/x.json", "--scores", "y", "--scores", "a=z", "--truth", "t") == {
        "x": Path("d/x.json"), "y": Path("y"), "a": Path("z"),
    }  # fmt: skip
    with pytest.raises(UsageError, match="given twice for all"):
        parsed("--truth", "x", "--truth", "y")
    (tmp_path / "t=1").touch()
    assert parsed("--truth", str(tmp_path / "t=1")) == tmp_path / "t=1"
    with pytest.raises(UsageError, match="'a' twice"):
        parsed("--truth", "a=x", "--truth", "a=y")


def test_a_required_value_is_given_once() -> None:
    with pytest.raises(argparse.ArgumentError, match="given twice"):
        parsed("--truth", "x", "--detections", "e")


def worded(*, background: Annotated[tuple[str, ...], "[[NAME=]PLACE]"] = ()) -> Any:
    return background


def test_a_word_may_be_left_out() -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser, worded)
    options = parser.parse_args(["--background", "--background", "a=last"])
    assert call(worded, options) == ("", "a=last")
    assert "[NAME=]PLACE" in parser.format_help()
