"""The compact noun table: it is WordNet's own files, no more and no less."""

import lzma
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from curation.errors import DigestMismatchError, HierarchyError, MissingFileError
from curation.hierarchy import noun_table
from curation.hierarchy.noun_table import (
    LEMMA_FILE,
    STRUCTURE_FILE,
    NounTable,
    embedded_lemmas,
    embedded_structure,
    structure_bytes,
    structure_from,
    table_of,
)


def test_it_is_the_table_of_the_files(wordnet_folder: Path) -> None:
    table, lemmas = table_of(wordnet_folder)
    built_in = embedded_structure()
    for column in ("offsets", "starts", "parents", "instances", "senses"):
        assert np.array_equal(getattr(table, column), getattr(built_in, column)), column
    assert lemmas == embedded_lemmas()


def test_it_is_small_and_its_licence_lies_beside_it() -> None:
    folder = resources.files("curation.hierarchy")
    assert sum(len(folder.joinpath(name).read_bytes()) for name in (STRUCTURE_FILE, LEMMA_FILE)) < 1_200_000
    licence = folder.joinpath("WORDNET_LICENSE").read_text(encoding="utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in licence
    assert len(embedded_structure().offsets) == 82_115


def test_structure_survives_its_bytes() -> None:
    table = NounTable(
        offsets=np.array([5, 9, 300_000], np.int32),
        starts=np.array([0, 0, 1, 3], np.int32),
        parents=np.array([0, 1, 0], np.int32),
        instances=np.array([False, True, False]),
        senses=np.array([1, 2, 1], np.uint8),
    )
    again = structure_from(structure_bytes(table))
    for column in ("offsets", "starts", "parents", "instances", "senses"):
        assert np.array_equal(getattr(table, column), getattr(again, column)), column


def test_damage_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    data = lzma.decompress(resources.files("curation.hierarchy").joinpath(STRUCTURE_FILE).read_bytes())
    monkeypatch.setattr(noun_table.lzma, "decompress", lambda packed: data[:-1] + b"\x07")
    with pytest.raises(DigestMismatchError, match="damaged"):
        embedded_structure.__wrapped__()


def test_another_wordnet_is_recognised(tmp_path: Path) -> None:
    head = "  1 WordNet 3.1 Copyright 2011 by Princeton University.  All rights reserved.\n"
    line = f"{len(head):08d} 03 n 01 entity 0 000 | that which is\n"
    (tmp_path / "data.noun").write_text(head + line)
    (tmp_path / "index.noun").write_text(f"entity n 1 0 1 0 {len(head):08d}\n")
    with pytest.raises(HierarchyError, match=r"not WordNet 3\.0") as raised:
        table_of(tmp_path)
    assert raised.value.found == "1 of WordNet 3.1"


def test_a_folder_without_wordnet_lists_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="no WordNet here") as raised:
        table_of(tmp_path)
    assert "corpora/wordnet/data.noun" in (raised.value.expected or "")
