"""A key that appears twice in a JSON object is found, wherever Python's own decoder finds it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.core.errors import SourceError
from curation.core.json_text import refuse_repeated_keys, repeated_at_the_top

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)
MEMBERS = st.lists(st.tuples(st.sampled_from(["a", "b", 'c"', "d\\", "é", ""]), VALUES), max_size=5)


@given(MEMBERS, st.sampled_from([None, 1]), st.booleans())
def test_the_top_of_an_object(members: list[tuple[str, Any]], indent: int | None, ascii_only: bool) -> None:
    inside = ",\r\n ".join(
        f"{json.dumps(key, ensure_ascii=ascii_only)} :\t{json.dumps(value, indent=indent, ensure_ascii=ascii_only)}"
        for key, value in members
    )
    data = f" {{ {inside} }} ".encode()
    keys = [key for key, _ in members]
    found = repeated_at_the_top(data)
    assert (found is not None) == (len(set(keys)) < len(keys))
    assert found is None or keys.count(found) > 1


@pytest.mark.parametrize("values", [("12", "1"), ("1", "12"), ("1", "1"), ('"a"', "1"), ("[1]", "[1]")])
def test_a_value_that_begins_like_the_other(values: tuple[str, str]) -> None:
    first, second = values
    assert repeated_at_the_top(f'{{"a":{first},"b":0,"a":{second}}}'.encode()) == "a"
    assert repeated_at_the_top(f'{{"a":{first},"b":{second}}}'.encode()) is None


def test_small_files_at_any_depth_and_large_ones_at_the_top() -> None:
    nested = b'{"a": [{"b": {"c": 1, "c": 2}}]%s}'
    with pytest.raises(SourceError, match="appears twice") as caught:
        refuse_repeated_keys(nested % b"", "x.json", SourceError)
    assert (caught.value.where, caught.value.found) == ("x.json", "'c'")
    refuse_repeated_keys(nested % (b" " * (1 << 20)), "x.json", SourceError)
    with pytest.raises(SourceError):
        refuse_repeated_keys(b'{"a": "%s", "a": 1}' % (b"x" * (1 << 20)), "x.json", SourceError)


@pytest.mark.parametrize("data", [b"", b"[1]", b"{", b'{"a":1', b'"a"', b"\xff", b"[" * 100_000, b'{"a":1}x'])
def test_what_is_no_object_is_left_to_its_reader(data: bytes) -> None:
    assert repeated_at_the_top(data) is None
    refuse_repeated_keys(data, "x", SourceError)
