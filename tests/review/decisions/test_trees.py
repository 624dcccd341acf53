"""YAML and JSON of lists of texts: places are right, and everything beyond plain lists is refused."""

import time

import pytest

from curation.core.errors import DecisionError
from curation.review.decisions.files import parse_selection, parse_tree


def test_texts_and_plain_numbers_pass() -> None:
    assert parse_tree(b"a:\n  - '001'\n  - 12\n  - '0012e34'\n  - plain\n", "f.yaml") == {
        "a": ["001", 12, "0012e34", "plain"]
    }


@pytest.mark.parametrize("scalar", ["1e5", "null", "0012e34", "010", "yes"])
def test_other_scalars_are_refused_with_their_line(scalar: str) -> None:
    with pytest.raises(DecisionError) as caught:
        parse_tree(f"a:\n  - x\n  - {scalar}\n".encode(), "f.yaml")
    assert caught.value.where == "f.yaml, line 3"


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + k)}: &{chr(98 + k)} [{','.join(['*' + chr(97 + k)] * 9)}]\n" for k in range(20)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "anchors"),
        ("a: *nowhere", "anchors"),
        ("<<: &x {a: [1]}", "anchors"),
        ("a: !!python/object/apply:os.system ['true']", "tags"),
        ("a: !!binary aGk=", "tags"),
        ("a: [1]\n---\nb: [2]", "several documents"),
        ("a: " + "[" * 20_000, "nested too deep"),
        ("a: [1]\na: [2]", "Duplicate key"),
        ("? [a]\n: b", "Duplicate key"),
        ("", "empty"),
        ("a: [1", "not YAML"),
        ("a: '\x07'", "not YAML"),
    ],
    ids=range(12),
)
def test_hostile_yaml_is_refused_at_once(text: str, message: str) -> None:
    began = time.perf_counter()
    with pytest.raises(DecisionError, match=message):
        parse_tree(text.encode(), "f.yaml")
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a":1,"a":2}',
        "[" * 100_000,
        '{"a":' * 9 + "1" + "}" * 9,
        '{"\\u001b":1}',
        "1" * 5000,
        "[" + "9" * 4000 + "]",
    ],
    ids=range(8),
)
def test_hostile_json_is_refused(text: str) -> None:
    with pytest.raises(DecisionError) as caught:
        parse_selection(text.encode(), "f.json")
    assert "\x1b" not in str(caught.value)


def test_bytes_that_are_no_text_and_large_files_are_refused() -> None:
    for name in ("f.yaml", "f.json"):
        with pytest.raises(DecisionError):
            parse_tree(b"\xff", name)
        with pytest.raises(DecisionError, match="too large"):
            parse_tree(b" " * ((16 << 20) + 1), name)
