"""Protocols are found by name, and declare what they need."""

import pytest

from curation.errors import UsageError
from curation.protocols.registry import PROTOCOLS, find_protocol


def test_names_and_near_names() -> None:
    assert find_protocol("elephant").paper.year == 2020
    with pytest.raises(UsageError, match="no such protocol") as caught:
        find_protocol("elefant")
    assert "did you mean elephant?" in str(caught.value)


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_declarations_are_whole(name: str) -> None:
    protocol = PROTOCOLS[name]
    assert protocol.name == name
    assert protocol.summary
    assert protocol.paper.bibtex.startswith("@")
    assert len({slot.name for slot in protocol.slots}) == len(protocol.slots)
    # These take any of their sources, and refuse to be built from none.
    assert any(slot.required for slot in protocol.slots) or name in ("imagenet", "findmeifyoucan", "osod3")
    assert all(slot.meaning for slot in protocol.slots)
    for parameter in protocol.parameters:
        assert parameter.meaning
        parameter.read(parameter.default)
