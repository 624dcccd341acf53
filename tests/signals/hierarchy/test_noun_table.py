"""The compact noun table is WordNet's own files, no more and no less; and these files, drawn small."""

import hashlib
import lzma
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from curation.core.errors import DigestMismatchError, HierarchyError
from curation.signals.hierarchy import wordnet
from curation.signals.hierarchy.wordnet import (
    DIGESTS,
    LEMMA_FILE,
    STRUCTURE_FILE,
    NounTable,
    embedded_structure,
    structure_from,
)
from tests.signals.hierarchy.generate_wordnet import main, read_noun_lines, senses_in, structure_bytes


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


HEAD = "  1 This is a licence\n"


def write(folder: Path, *records: str, head: str = HEAD) -> Path:
    text = head
    for record in records:
        text += f"{len(text):08d} {record}\n"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data.noun").write_bytes(text.encode("latin-1"))
    return folder


def test_lemmas_and_pointers_in_order(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        "03 n 01 entity 0 000 | all there is",
        "05 n 02 dog 0 domestic_dog 0 004 @ 00000022 n 0000 ~ 00000099 n 0000 @i 00000022 n 0000 + 1 v 0101 | x | y",
    )
    entity, dog = read_noun_lines(folder)
    assert (entity.offset, entity.lemmas, entity.parents) == (22, ("entity",), ())
    assert dog.lemmas == ("dog", "domestic_dog")
    assert dog.parents == ((22, False), (22, True))


def test_word_counts_are_hexadecimal(tmp_path: Path) -> None:
    words = " ".join(f"w{number} 0" for number in range(16))
    (line,) = read_noun_lines(write(tmp_path, f"03 n 10 {words} 000 | sixteen words"))
    assert len(line.lemmas) == 16


@pytest.mark.parametrize("record", ["03 n zz entity 0 000 | x", "03 n 05 entity 0 000 | x", "garbage", ""])
def test_a_malformed_line_is_named(tmp_path: Path, record: str) -> None:
    with pytest.raises(HierarchyError, match="cannot be read") as raised:
        list(read_noun_lines(write(tmp_path, "03 n 01 entity 0 000 | x", record)))
    assert "line 3" in (raised.value.where or "")


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    folder = write(tmp_path, "03 n 01 entity 0 000 | x")
    path = folder / "data.noun"
    path.write_bytes(b"  one line more\n" + path.read_bytes())
    with pytest.raises(HierarchyError, match="is not at its offset"):
        list(read_noun_lines(folder))


def test_senses_are_in_the_order_of_the_index() -> None:
    assert senses_in(b"  head\nleopard n 2 2 @ ~ 2 0 14765422 02128385\n", "x") == {"leopard": [14765422, 2128385]}
    with pytest.raises(HierarchyError, match="cannot be read"):
        senses_in(b"leopard n many\n", "x")
