"""The compact noun table: it is WordNet's own files, no more and no less."""

import lzma
from importlib import resources

import pytest

from curation.errors import DigestMismatchError
from curation.hierarchy import noun_table
from curation.hierarchy.noun_table import LEMMA_FILE, STRUCTURE_FILE, embedded_structure


def test_it_is_small_and_its_licence_lies_beside_it() -> None:
    folder = resources.files("curation.hierarchy")
    assert sum(len(folder.joinpath(name).read_bytes()) for name in (STRUCTURE_FILE, LEMMA_FILE)) < 1_200_000
    licence = folder.joinpath("WORDNET_LICENSE").read_text(encoding="utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in licence
    assert len(embedded_structure().offsets) == 82_115


def test_damage_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    data = lzma.decompress(resources.files("curation.hierarchy").joinpath(STRUCTURE_FILE).read_bytes())
    monkeypatch.setattr(noun_table.lzma, "decompress", lambda packed: data[:-1] + b"\x07")
    with pytest.raises(DigestMismatchError, match="damaged"):
        embedded_structure.__wrapped__()
