import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.core.errors import PredictionError
from curation.evaluation import score_files
from curation.evaluation.score_files import keys_of_npz, read_npy, read_npz

WANTED = ("scores", "gt")


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + data


def test_what_is_not_asked_for_is_not_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", scores=np.zeros((1, 2)), features=np.array([{}], object))
    found = read_npz(tmp_path / "a.npz", WANTED)
    assert list(found) == ["scores"]
    assert keys_of_npz(tmp_path / "a.npz") == ["features", "scores"]


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "sprung",)

    np.save(tmp_path / "a.npy", np.array([Trap()], object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", scores=np.array([[Trap()]], object))
    for read in (lambda: read_npy(tmp_path / "a.npy"), lambda: read_npz(tmp_path / "a.npz", WANTED)):
        with pytest.raises(PredictionError, match="cannot be read"):
            read()
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK",
        b"\x93NUMPY",
        b"\x93NUMPY\x09\x00\x00\x00",
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", b"\0" * 15),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", b"\0" * 17),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}", b"\0" * 8),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", b"\0" * 8),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999, 99999999999)}"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': ()}", b"\0" * 8),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1, 1)}", b"\0" * 8),
        npy("{'descr': '|V8', 'fortran_order': False, 'shape': (1,)}", b"\0" * 8),
        npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", b"\0" * 8),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'more': 1}", b"\0" * 8),
        npy("__import__('os').system('true')"),
        npy("(" * 2000 + ")" * 2000),
        npy("{" + " " * 20000 + "}"),
    ],
    ids=range(17),
)
def test_damaged_and_hostile_arrays(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(data)
    with pytest.raises(PredictionError) as caught:
        read_npy(tmp_path / "a.npy")
    assert "a.npy" in str(caught.value.where)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("scores.npy", data)
    with pytest.raises(PredictionError):
        read_npz(tmp_path / "a.npz", WANTED)


def saved(array: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, scores=array)
    return stream.getvalue()


@pytest.mark.parametrize("place", [0, 30, 90, 150, -60, -20, -5])
def test_a_damaged_byte_or_a_cut_never_passes_or_raises_another_error(tmp_path: Path, place: int) -> None:
    array = np.random.default_rng(0).random((20, 3))
    whole = bytearray(saved(array))
    whole[place] ^= 0xFF
    for data in (bytes(whole), bytes(whole[:place])):
        (tmp_path / "a.npz").write_bytes(data)
        try:
            found = read_npz(tmp_path / "a.npz", WANTED)
        except PredictionError:
            continue
        # A byte of a time stamp may differ: then the numbers do not.
        assert not found or np.array_equal(found["scores"], array)


def test_a_bomb_is_told_by_what_it_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.npz").write_bytes(saved(np.zeros((2000, 200))))
    monkeypatch.setattr(score_files, "_LARGE", 1 << 20)
    with pytest.raises(PredictionError, match="unpacks to far more"):
        read_npz(tmp_path / "a.npz", WANTED)


def test_an_archive_that_holds_a_key_twice(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.zeros((1, 1)))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("scores.npy", stream.getvalue())
        archive.writestr("scores", stream.getvalue())
    with pytest.raises(PredictionError, match="twice"):
        read_npz(tmp_path / "a.npz", WANTED)
