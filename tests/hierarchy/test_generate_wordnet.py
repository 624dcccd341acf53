"""The table that is shipped can be made again from WordNet's files."""

import hashlib
import lzma
from pathlib import Path

import pytest

from curation.hierarchy.noun_table import DIGESTS, main


def test_it_writes_what_is_shipped(wordnet_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(wordnet_folder), str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for name, digest in DIGESTS.items():
        assert hashlib.sha256(lzma.decompress((tmp_path / name).read_bytes())).hexdigest() == digest
        assert digest in printed


def test_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main([str(tmp_path)]) == 2
    assert "There is no WordNet here" in capsys.readouterr().err
