"""Embedding of a corpus into shards, the same on either engine."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from curation.engines.running import EngineName
from curation.engines.shards import open_shards
from curation.errors import CurationWarning, UsageError
from curation.similarity.embed import embed_corpus
from curation.similarity.embeddings import open_embeddings
from curation.similarity.encoder import ColourEncoder
from curation.similarity.from_files import EncoderOptions, duplicates, embed
from curation.similarity.near_duplicates import HashPhotos, hash_photos
from tests.real_files import real_files
from tests.similarity.clip_world import write_photos

pytest.importorskip("PIL.Image")
COLOUR = EncoderOptions(encoder="colour")


def test_a_corpus_becomes_shards_of_vectors(tmp_path: Path) -> None:
    paths = write_photos(tmp_path / "p", 9)
    paths[4].write_bytes(b"no photo")
    with tarfile.open(tmp_path / "0.tar", "w") as archive:
        for path in paths:
            member = tarfile.TarInfo(path.name)
            member.size = path.stat().st_size
            archive.addfile(member, io.BytesIO(path.read_bytes()))
    with pytest.warns(CurationWarning, match="cannot be decoded"):
        store = embed(photos=tmp_path / "p", out=tmp_path / "store")
    made = embed(corpus=tmp_path / "0.tar", out=tmp_path / "shards")
    assert (made.kind, made.result.embedded, store.result.embedded) == ("shards", 8, 8)
    assert made.data()["skipped"] == {"it cannot be decoded: cannot identify image file": 1}
    (table,) = open_shards(tmp_path / "shards").tables(["id", "vector"])
    assert table.column("id").to_pylist() == [f"0.tar/{path.name}" for path in paths]
    vectors = np.array(table.column("vector").drop_null().to_pylist(), np.float32)
    np.testing.assert_array_equal(vectors, open_embeddings(tmp_path / "store").vectors)
    with pytest.raises(UsageError, match="apply to --corpus"):
        embed(photos=tmp_path / "p", out=tmp_path / "ray", engine="ray")


def both(tmp_path: Path, photos: Path) -> None:
    """Hash and embed the same corpus on both engines and hold all digests against each other."""
    engines: tuple[EngineName, ...] = ("local", "ray")
    made = [embed_corpus(photos, COLOUR, tmp_path / f"e-{one}", encoder=ColourEncoder(), engine=one) for one in engines]
    assert made[0].digest == made[1].digest
    found = [hash_photos(photos, engine=one, out=tmp_path / f"h-{one}") for one in engines]
    digests = [open_shards(tmp_path / f"h-{one}").digest for one in engines]
    assert digests[0] == digests[1]
    assert found[0].pixels == found[1].pixels
    assert open_shards(tmp_path / "h-ray").step == HashPhotos().digest


@pytest.mark.ray
def test_hashes_and_vectors_of_a_corpus_are_the_same_on_ray(
    tmp_path: Path, ray_session: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("curation.sources.corpus.PHOTOS", 8)
    write_photos(tmp_path / "p", 30)[7].write_bytes(b"no photo")
    both(tmp_path, tmp_path / "p")
    with pytest.warns(CurationWarning, match="cannot be read"):
        kept = duplicates(images=tmp_path / "p", engine="ray", hashes=tmp_path / "kept").data()
    with pytest.warns(CurationWarning, match="cannot be read"):
        again = duplicates(images=tmp_path / "p", hashes=tmp_path / "kept").data()
    assert again == kept


@real_files("coco_table")
def check_hashes_and_vectors_of_real_photos_are_the_same_on_ray(
    shared: Path, tmp_path: Path, ray_session: None
) -> None:
    both(tmp_path, shared / "data" / "coco" / "mini")
