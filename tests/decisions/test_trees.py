"""YAML and JSON of lists of texts: places are right, and everything beyond plain lists is refused."""

import time

import pytest

from curation.decisions.authors_files import INTEGER, TEXT, Keyed, Leaf, parse_json_tree, parse_yaml_tree
from curation.errors import DecisionError


def test_scalars_carry_kind_and_line() -> None:
    tree = parse_yaml_tree(b"a:\n  - '001'\n  - 12\n  - 1e5\n  - '0012e34'\n  - plain\n  - null\n", "f.yaml")
    assert isinstance(tree, Keyed)
    leaves = tree.items[0][1]
    assert [(one.text, one.kind) for one in leaves] == [
        ("001", TEXT),
        ("12", INTEGER),
        ("1e5", "float"),
        ("0012e34", TEXT),
        ("plain", TEXT),
        ("null", "null"),
    ]
    assert [one.where for one in leaves] == [f"f.yaml, line {line}" for line in range(2, 8)]


def test_json_scalars_carry_kind_and_path() -> None:
    tree = parse_json_tree(b'{"a": ["x", 1, 1.5, true, null]}', "f.json")
    leaves = tree.items[0][1]
    assert leaves[0] == Leaf("x", TEXT, "f.json: a[0]")
    assert [one.kind for one in leaves] == [TEXT, INTEGER, "float", "bool", "null"]


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
        ("a: [1]\na: [2]", "stands twice"),
        ("? [a]\n: b", "A key is no text"),
        ("", "empty"),
        ("a: [1", "not YAML"),
        ("a: '\x07'", "not YAML"),
    ],
    ids=range(12),
)
def test_hostile_yaml_is_refused_at_once(text: str, message: str) -> None:
    began = time.perf_counter()
    with pytest.raises(DecisionError, match=message):
        parse_yaml_tree(text.encode(), "f.yaml")
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"a":1,"a":2}', "[" * 100_000, '{"a":' * 9 + "1" + "}" * 9, '{"\\u001b":1}', "1" * 5000],
    ids=range(7),
)
def test_hostile_json_is_refused(text: str) -> None:
    with pytest.raises(DecisionError) as caught:
        parse_json_tree(text.encode(), "f.json")
    assert "\x1b" not in str(caught.value)


def test_a_number_of_many_digits_is_shown_by_its_length_alone() -> None:
    assert parse_json_tree(b"[" + b"9" * 4000 + b"]", "f.json")[0].text == "a number of many digits"


def test_bytes_that_are_no_text_and_large_files_are_refused() -> None:
    for parse in (parse_yaml_tree, parse_json_tree):
        with pytest.raises(DecisionError):
            parse(b"\xff", "f")
        with pytest.raises(DecisionError, match="too large"):
            parse(b" " * ((16 << 20) + 1), "f")
