"""Parameters of the ImageNet protocols."""

import json
from pathlib import Path

import msgspec
import pytest

from curation.benchmarks.imagenet import RULES, declaration_of, read_protocol
from curation.errors import ProtocolError

OWN = 'name = "cats"\nknown = ["n02120997"]\nunknown = ["n02131653"]\ncut = "KN"\n'


def test_a_file_is_kept_in_the_manifest_itself(tmp_path: Path) -> None:
    path = tmp_path / "cats.toml"
    path.write_text(OWN)
    text = read_protocol(str(path))
    path.unlink()
    assert read_protocol(text) == text
    assert declaration_of(text).known == ("n02120997",)
    assert json.loads(text)["cut"] == "KN"
    assert msgspec.structs.asdict(declaration_of("p2")) == {"name": "p2", **msgspec.structs.asdict(RULES["p2"])}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"cats"', '"P1!"'), "cannot be read"),
        (('"cats"', '"p1"'), "inconsistent"),
        (('"KN"', '"thirds"'), "cannot be read"),
        (('"n02131653"', '"n02120997"'), "inconsistent"),
        (('"n02131653"', '"n02123045"'), "inconsistent"),
        (('["n02120997"]', "[]"), "cannot be read"),
        (('["n02120997"]', "3"), "cannot be read"),
        (("cut =", "cuts ="), "cannot be read"),
    ],
)
def test_malformed_declarations(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = tmp_path / "cats.toml"
    path.write_text(OWN.replace(*change))
    with pytest.raises(ProtocolError, match=message):
        read_protocol(str(path))


def test_what_is_neither_protocol_nor_file() -> None:
    for text in ("p4", "p" * 5000, "p\0"):
        with pytest.raises(ProtocolError, match="no such ImageNet protocol"):
            read_protocol(text)
    with pytest.raises(ProtocolError, match="cannot be read"):
        read_protocol('{"name": 3}')
