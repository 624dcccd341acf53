"""The table that is shipped can be made again from WordNet's files."""

import hashlib
import lzma
from pathlib import Path

import numpy as np

from curation.hierarchy.noun_table import DIGESTS, NounTable, structure_from
from tests.hierarchy.generate_wordnet import main, structure_bytes


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
