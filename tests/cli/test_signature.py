"""Options made from a signature and its docstring: every kind of parameter, its help, and what the function gets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from curation.cli import Parser
from curation.cli.outputs import OUTPUT_FILE
from curation.cli.signature import add_arguments, call, pairs, summary_of
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
    n: Annotated[int, Meta(ge=1)] = 7,
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
    made: dict[str, Any] = shell_call(command, *words)
    return made


def shell_call(function: Callable[..., Any], *words: str) -> Any:
    parser = Parser(prog="it")
    add_arguments(parser, function)
    return call(function, parser.parse_args(words))


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


REFUSED = [
    ("", "MANIFEST and --source are missing", None),
    ("--source=a=b", "MANIFEST is missing", None),
    ("m --source=a=b --sorce=c=d", "--sorce of `it` does not exist", "--sorce"),
    ("m --source=a=b --source", "argument --source: expected one argument", None),
    ("m --source=a", "--source needs NAME=VALUE", "no name"),
    ("m --source=a=b --source=a=c", "--source names 'a' twice", None),
    ("m --source=a=b -n x", "--n cannot use this value", "'x'"),
    ("m --source=a=b -n 1.5", "--n cannot use this value", "'1.5'"),
    ("m --source=a=b -n 0", "--n cannot use this value", "'0'"),
    ("m --source=a=b --share nan", "--share cannot use this value", "'nan'"),
    ("m --source=a=b --share 1 --share 2", "--share is given twice", "2"),
    ("m --source=a=b --part x --part x", "--part cannot use this value", "'x, x'"),
    ("m --source=a=b --out=", "An output needs a name", "''"),
    ("m --source=a=b --truth=", "--truth cannot use this value", "''"),
    ("m --source=a=b --set unknown=mend", "--set unknown cannot use this value", "'mend'"),
    ("m --source=a=b --set unknown=split --set unknown=drop", "--set unknown is given twice", "drop"),
    ("m --source=a=b --no-cache=yes", "argument --no-cache: ignored explicit argument 'yes'", None),
]


@pytest.mark.parametrize(("line", "what", "found"), REFUSED)
def test_wrong_words_are_refused(line: str, what: str, found: str | None) -> None:
    with pytest.raises(UsageError) as error:
        parse(*line.split())
    assert (error.value.what, error.value.found) == (what, found)


def test_the_help_is_the_docstring(capsys: pytest.CaptureFixture[str]) -> None:
    assert summary_of(command) == "Do one thing, or 100 %% of it"
    with pytest.raises(SystemExit):
        parse("--help")
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


def test_parameters_share_an_option() -> None:
    assert parse("m", "--source=a=b", "--set", "k=v", "--set", "unknown=split")["reading"] == Reading(unknown="split")
    assert parse("m", "--source=a=b", "--set", "k=v", "--set", "unknown=split")["set_"] == {"k": "v"}


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
    parser = Parser()
    add_arguments(parser, lenient)
    text = " ".join(parser.format_help().split())
    assert "boxes=error|drop: unusable boxes (default: error)" in text
    assert "scores=error|keep: scores of any size" in text
    if made is None:
        with pytest.raises(UsageError):
            shell_call(lenient, *words)
    else:
        assert shell_call(lenient, *words) == made


def test_a_type_that_no_word_can_be_is_a_mistake_of_the_programmer() -> None:
    def wrong(*, one: dict[str, int]) -> None:
        """Take what nobody can type."""

    with pytest.raises(TypeError, match="one"):
        add_arguments(Parser(), wrong)


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
    return shell_call(keyed, "--detections", "d", *words)


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
    with pytest.raises(UsageError, match="given twice"):
        parsed("--truth", "x", "--detections", "e")


def worded(*, background: Annotated[tuple[str, ...], "[[NAME=]PLACE]"] = ()) -> Any:
    return background


def test_a_word_may_be_left_out() -> None:
    assert shell_call(worded, "--background", "--background", "a=last") == ("", "a=last")
    parser = Parser()
    add_arguments(parser, worded)
    assert "[NAME=]PLACE" in parser.format_help()


class StrictError(Exception):
    """A record of options that refuses itself."""


@dataclass(frozen=True, kw_only=True)
class Strict:
    strict: bool = False

    def __post_init__(self) -> None:
        if self.strict:
            raise StrictError


def long_work(*, number: int = 1) -> int:
    raise AssertionError("the work began")


def after_work(made: Annotated[int, long_work], /, *, record: Strict, share: float = 0.5) -> int:
    return made


def test_all_that_a_command_line_says_is_checked_before_any_work() -> None:
    with pytest.raises(AssertionError, match="began"):
        shell_call(after_work)
    for words, error in ((["--strict"], StrictError), (["--share", "x"], UsageError), (["--number", "x"], UsageError)):
        with pytest.raises(error):
            shell_call(after_work, *words)
