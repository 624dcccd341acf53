"""Declarations: TOML or JSON into a typed record."""

from pathlib import Path

import msgspec
import pytest

from curation.core.errors import MissingFileError, ProtocolError
from curation.core.reading import read_declaration


class Pair(msgspec.Struct, forbid_unknown_fields=True):
    """Two numbers."""

    first: int
    second: int = 2


def test_both_forms(tmp_path: Path) -> None:
    toml, plain = tmp_path / "a.toml", tmp_path / "a.json"
    toml.write_text("first = 1\n")
    plain.write_text('{"first": 1}')
    assert read_declaration(toml, Pair, ProtocolError) == Pair(1) == read_declaration(plain, Pair, ProtocolError)


@pytest.mark.parametrize("content", [b'{"first": "x"}', b'{"first": 1, "third": 3}', b"\xff", b"[" * 100_000])
def test_the_error_is_the_callers(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ProtocolError, match="cannot be read") as raised:
        read_declaration(path, Pair, ProtocolError)
    assert raised.value.expected == "fields first, second"


def test_sizes_and_absence(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        read_declaration(tmp_path / "a.json", Pair, ProtocolError)
    (tmp_path / "a.json").write_bytes(b" " * ((4 << 20) + 1))
    with pytest.raises(ProtocolError, match="too large"):
        read_declaration(tmp_path / "a.json", Pair, ProtocolError)


def test_a_number_of_thousands_of_digits_is_the_callers_error(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("first = " + "9" * 5000)
    with pytest.raises(ProtocolError, match="cannot be read"):
        read_declaration(tmp_path / "a.toml", Pair, ProtocolError)
