"""Embeddings and their stores: what is kept, what is refused, and that no damage is read as embeddings."""

import dataclasses
import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from curation.core.canonical import sha256_of_file
from curation.core.errors import EmbeddingError, MissingFileError
from curation.core.writing import PARTIAL, _host
from curation.signals.similarity.embeddings import (
    Embeddings,
    EmbeddingStore,
    EncoderIdentity,
    Row,
    StoreHeader,
    batch_of,
    open_embeddings,
    rows_of_unit_length,
)
from tests.rounding import gamma

IDENTITY = EncoderIdentity("m", "sha256:1", "p", "float32")
HEADER = StoreHeader(kind="images", encoder=IDENTITY, dimension=2, batch=4)
ROWS = [Row(f"coco:{number:012d}", f"sha256:{number}") for number in range(5)]
VECTORS = np.arange(10, dtype=np.float32).reshape(5, 2)


def finished(folder: Path) -> Path:
    store = EmbeddingStore(folder, HEADER)
    store.add(ROWS[:3], VECTORS[:3])
    store.add(ROWS[3:], VECTORS[3:])
    store.finish(ROWS)
    return folder


def test_what_was_added_is_opened_in_the_order_of_the_rows(tmp_path: Path) -> None:
    store = EmbeddingStore(tmp_path / "s", HEADER)
    store.add(ROWS[3:], VECTORS[3:])
    store.add(ROWS[:3], VECTORS[:3])
    store.finish(ROWS)
    found = open_embeddings(tmp_path / "s", kind="images")
    np.testing.assert_array_equal(found.vectors, VECTORS)
    assert found.ids == tuple(row.id for row in ROWS)
    assert found.images == tuple(row.image for row in ROWS)
    assert found.encoder == IDENTITY
    assert isinstance(found.vectors, np.memmap)
    assert not found.vectors.flags.writeable
    assert batch_of(tmp_path / "s") == 4
    assert batch_of(tmp_path / "none") is None


def test_bytes_do_not_depend_on_how_shards_were_cut(tmp_path: Path) -> None:
    finished(tmp_path / "a")
    store = EmbeddingStore(tmp_path / "b", HEADER)
    for row, vector in zip(ROWS, VECTORS, strict=True):
        store.add([row], vector[None])
    store.finish(ROWS)
    files = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in "ab"]
    assert files[0] == files[1]


def test_shards_of_an_unfinished_store_are_found_again(tmp_path: Path) -> None:
    EmbeddingStore(tmp_path, HEADER).add(ROWS[:3], VECTORS[:3])
    with pytest.raises(EmbeddingError, match="not finished"):
        open_embeddings(tmp_path)
    again = EmbeddingStore(tmp_path, HEADER)
    assert [row in again for row in ROWS] == [True, True, True, False, False]
    assert Row(ROWS[0].id, "sha256:other") not in again


@pytest.mark.parametrize("suffix", [".npy", ".json"])
def test_a_damaged_shard_counts_for_nothing(tmp_path: Path, suffix: str) -> None:
    store = EmbeddingStore(tmp_path, HEADER)
    store.add(ROWS[:2], VECTORS[:2])
    store.add(ROWS[2:], VECTORS[2:])
    torn = sorted((tmp_path / "shards").glob(f"*{suffix}"))[0]
    torn.write_bytes(torn.read_bytes()[:-3])
    assert len(EmbeddingStore(tmp_path, HEADER)) in (2, 3)
    other = torn.with_suffix(".npy" if suffix == ".json" else ".json")
    other.unlink()
    assert len(EmbeddingStore(tmp_path, HEADER)) in (2, 3)


def test_a_damaged_array_is_refused_and_made_anew(tmp_path: Path) -> None:
    folder = finished(tmp_path / "s")
    array = next(folder.glob("vectors-*.npy"))
    good = array.read_bytes()
    array.write_bytes(good[:-1] + b"\x7f")
    with pytest.raises(EmbeddingError, match="do not match the listing"):
        open_embeddings(folder)
    assert len(EmbeddingStore(folder, HEADER)) == 0
    finished(folder)
    assert array.read_bytes() == good
    array.unlink()
    with pytest.raises(MissingFileError, match="missing"):
        open_embeddings(folder)


def test_other_rows_are_let_go_and_nothing_is_left_over(tmp_path: Path) -> None:
    folder = finished(tmp_path / "s")
    EmbeddingStore(folder, HEADER).finish([ROWS[4], ROWS[1]])
    np.testing.assert_array_equal(open_embeddings(folder).vectors, [[8, 9], [2, 3]])
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": "texts"}, "kind"),
        ({"batch": 8}, "batch"),
        ({"dimension": 3}, "dimension"),
        ({"encoder": EncoderIdentity("m", "sha256:2", "p", "float32")}, "weights"),
        ({"encoder": EncoderIdentity("m", "sha256:1", "p", "float32", "pooled")}, "embedding"),
    ],
)
def test_a_store_of_something_else_is_refused(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    folder = finished(tmp_path / "s")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    arguments: dict[str, object] = {"encoder": IDENTITY, "dimension": 2, "kind": "images", "batch": 4} | changes
    with pytest.raises(EmbeddingError, match=f"another {said}"):
        EmbeddingStore(folder, StoreHeader(**arguments))  # type: ignore[arg-type]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("all of it")
    with pytest.raises(EmbeddingError, match="is not an embedding store"):
        EmbeddingStore(tmp_path, HEADER)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(EmbeddingError, match="is not an embedding store"):
        EmbeddingStore(tmp_path / "thesis.tex", HEADER)


def test_what_a_kill_left_of_the_header_does_not_stand_in_the_way(tmp_path: Path) -> None:
    (tmp_path / f".store{PARTIAL}{_host()}-999999999-aa.json").write_bytes(b"{")
    finished(tmp_path)
    assert len(open_embeddings(tmp_path)) == 5
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("store.json", {"format": 2}),
        ("store.json", {"kind": "videos"}),
        ("store.json", {"dimension": "2"}),
        ("store.json", {"dimension": 10**30}),
        ("store.json", {"encoder": {"model": "m"}}),
        ("store.json", {"more": 1}),
        ("rows.json", {"sha256": "../../etc/passwd"}),
        ("rows.json", {"ids": ["coco:1"]}),
        ("rows.json", {"ids": [1, 2, 3, 4, 5]}),
        ("rows.json", {"boxes": None}),
        ("rows.json", {"images": ["x"] * 5}),
        ("rows.json", {"ids": [], "images": [], "boxes": []}),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, name: str, change: dict[str, object]) -> None:
    folder = finished(tmp_path / "s")
    (folder / name).write_text(json.dumps(json.loads((folder / name).read_text()) | change))
    with pytest.raises((EmbeddingError, MissingFileError)):
        open_embeddings(folder)


@pytest.mark.parametrize("text", ["", "[", "null", "[" * 100_000, '"\\ud800"'])
@pytest.mark.parametrize("name", ["store.json", "rows.json"])
def test_broken_json_is_refused(tmp_path: Path, name: str, text: str) -> None:
    folder = finished(tmp_path / "s")
    (folder / name).write_text(text)
    with pytest.raises(EmbeddingError):
        open_embeddings(folder)


def test_an_id_that_stands_twice_and_infinite_vectors_are_refused(tmp_path: Path) -> None:
    store = EmbeddingStore(tmp_path / "twice", HEADER)
    rows = [Row("coco:1", "sha256:1"), Row("coco:1", "sha256:2")]
    store.add(rows, VECTORS[:2])
    store.finish(rows)
    with pytest.raises(EmbeddingError, match="twice"):
        open_embeddings(tmp_path / "twice")
    store = EmbeddingStore(tmp_path / "infinite", HEADER)
    store.add(rows[:1], np.array([[1, np.inf]], np.float32))
    store.finish(rows[:1])
    with pytest.raises(EmbeddingError, match="not finite"):
        open_embeddings(tmp_path / "infinite")


def pickled() -> bytes:
    made = io.BytesIO()
    np.save(made, np.array([[print, 1]] * 5, dtype=object), allow_pickle=True)
    return made.getvalue()


def array_with(header: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(40)


HEADERS = (b"(" * 300, b"'a' + " * 2000 + b"'b'", b"{'descr': '<f4'", b"{'shape': (2**70,)}", b"-" * 9000 + b"1")


@pytest.mark.parametrize("content", [*map(array_with, HEADERS), pickled()])
def test_an_array_of_pickles_or_with_a_header_that_cannot_be_parsed_is_refused(tmp_path: Path, content: bytes) -> None:
    folder = finished(tmp_path / "s")
    array = next(folder.glob("vectors-*.npy"))
    array.write_bytes(content)
    listing = json.loads((folder / "rows.json").read_text()) | {"sha256": sha256_of_file(array)}
    (folder / "rows.json").write_text(json.dumps(listing))
    with pytest.raises(EmbeddingError, match="cannot be read"):
        open_embeddings(folder)


def test_absent_stores_and_other_kinds_are_told(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="No embedding store"):
        open_embeddings(tmp_path / "none")
    with pytest.raises(EmbeddingError, match="another kind"):
        open_embeddings(finished(tmp_path / "s"), kind="texts")


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(EncoderIdentity)])
def test_every_field_counts_for_the_digest(name: str) -> None:
    assert dataclasses.replace(IDENTITY, **{name: "other"}).digest != IDENTITY.digest


def test_equal_identities_have_equal_digests() -> None:
    assert EncoderIdentity("m", "sha256:1", "p", "float32", "projected").digest == IDENTITY.digest


def test_normalised_rows_are_three_four_five() -> None:
    vectors = np.array([[3, 4], [0, 0], [-6, 8]], np.float32)
    unit = Embeddings(("a", "b", "c"), vectors, IDENTITY, ("", "", "")).normalised()
    np.testing.assert_array_equal(unit, np.array([[0.6, 0.8], [0, 0], [-0.6, 0.8]], np.float32))
    assert unit.dtype == np.float32


@given(hnp.arrays(np.float32, (3, 4), elements=st.floats(-(2.0**127), 2.0**127, width=32)))
def test_rows_have_unit_length_however_large_or_small(vectors: np.ndarray) -> None:
    lengths = np.linalg.norm(rows_of_unit_length(vectors).astype(np.float64), axis=1)
    zero = ~vectors.any(axis=1)
    assert (lengths[zero] == 0).all()
    # Each number is rounded once, from a quotient in float64.
    np.testing.assert_allclose(lengths[~zero], 1, rtol=0, atol=gamma(2))


def test_take_keeps_ids_vectors_and_digests_together() -> None:
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    taken = Embeddings(("a", "b", "c"), vectors, IDENTITY, ("x", "y", "z")).take([2, 0])
    assert (taken.ids, taken.images, len(taken)) == (("c", "a"), ("z", "x"), 2)
    np.testing.assert_array_equal(taken.vectors, [[4, 5], [0, 1]])
    assert Embeddings((), vectors[:0], IDENTITY, ()).take([]).vectors.shape[0] == 0
