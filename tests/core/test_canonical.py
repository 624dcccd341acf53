"""The canonical form is RFC 8785's (package rfc8785 as oracle), and refuses what that form does not pin down."""

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from curation.core.canonical import (
    canonical_json,
    sha256_of_bytes,
    sha256_of_file,
    sha256_of_lines,
    sha256_of_stream,
    sha256_of_value,
)
from curation.core.errors import CanonicalFormError

texts = st.text(st.characters(exclude_categories=["Cs"]))
keys = st.text(st.characters(max_codepoint=127))
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(keys, inner, max_size=5)),
    max_leaves=20,
)


@given(values)
def test_same_bytes_as_rfc8785(value: Any) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


@given(values)
def test_reading_gives_the_value_back(value: Any) -> None:
    assert json.loads(canonical_json(value)) == value


@given(st.dictionaries(keys, scalars, min_size=2, max_size=6))
def test_insertion_order_of_keys_has_no_part_in_it(value: dict[str, Any]) -> None:
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)


def test_by_hand() -> None:
    value = {"b": [1, True, None, "é\n\u2028\x7f"], "a": {"Z": "", "A": -0}}
    assert canonical_json(value) == '{"a":{"A":0,"Z":""},"b":[1,true,null,"é\\n\u2028\x7f"]}'.encode()
    assert canonical_json((1, 2)) == b"[1,2]"


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        float("nan"),
        [0.5],
        {"a": {"b": 1.5}},
        2**53,
        -(2**53),
        {"é": 1},
        {1: 1},
        "\ud800",
        ["\udfff"],
        b"bytes",
        bytearray(b"x"),
        {1, 2},
        print,
    ],
    ids=repr,
)
def test_what_has_no_canonical_form(value: Any) -> None:
    with pytest.raises(CanonicalFormError):
        canonical_json(value)


def test_digests_are_those_of_sha256sum(tmp_path: Path) -> None:
    # FIPS 180-4: sha256("abc").
    abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    path = tmp_path / "abc"
    path.write_bytes(b"abc")
    assert sha256_of_bytes(b"abc") == sha256_of_file(path) == sha256_of_stream(io.BytesIO(b"abc")) == abc


@given(st.lists(texts.filter(lambda text: "\n" not in text), max_size=6))
def test_digest_of_lines_is_that_of_the_file(lines: list[str]) -> None:
    data = "".join(line + "\n" for line in lines).encode()
    expected = "sha256:" + hashlib.sha256(data).hexdigest()
    assert sha256_of_lines(lines) == sha256_of_lines(iter(lines)) == expected


def test_digest_of_a_value_and_of_large_streams() -> None:
    assert sha256_of_value({"a": 1}) == sha256_of_bytes(b'{"a":1}')
    large = b"x" * (3 << 20) + b"y"
    assert sha256_of_stream(io.BytesIO(large)) == sha256_of_bytes(large)
