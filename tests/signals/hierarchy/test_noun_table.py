"""The compact noun table is WordNet's own files, no more and no less."""

import hashlib
import lzma
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from curation.core.errors import DigestMismatchError
from curation.signals.hierarchy import wordnet
from curation.signals.hierarchy.wordnet import (
    DIGESTS,
    LEMMA_FILE,
    STRUCTURE_FILE,
    NounTable,
    embedded_structure,
    structure_from,
)
from tests.signals.hierarchy.generate_wordnet import main, structure_bytes


def test_it_is_small_and_its_licence_lies_beside_it() -> None:
    folder = resources.files("curation.signals.hierarchy")
    assert sum(len(folder.joinpath(name).read_bytes()) for name in (STRUCTURE_FILE, LEMMA_FILE)) < 1_200_000
    licence = folder.joinpath("WORDNET_LICENSE").read_text(encoding="utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in licence
    assert len(embedded_structure().offsets) == 82_115


def test_damage_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    data = lzma.decompress(resources.files("curation.signals.hierarchy").joinpath(STRUCTURE_FILE).read_bytes())
    monkeypatch.setattr(wordnet.lzma, "decompress", lambda packed: data[:-1] + b"\x07")
    with pytest.raises(DigestMismatchError, match="damaged"):
        embedded_structure.__wrapped__()


def test_it_writes_what_is_shipped(wordnet_folder: Path, tmp_path: Path) -> None:
    main(wordnet_folder, tmp_path)
    for name, digest in DIGESTS.items():
        assert hashlib.sha256(lzma.decompress((tmp_path / name).read_bytes())).hexdigest() == digest


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
