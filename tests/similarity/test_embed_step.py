"""Embedding on either engine: the same store to the byte, whoever began it, and shards of a corpus."""

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.engines.running import EngineName
from curation.engines.shards import open_shards
from curation.errors import CurationWarning, EmbeddingError, EngineError
from curation.similarity import embed_step
from curation.similarity.embed import Photo, embed_photos
from curation.similarity.embed_step import STEPS, EmbedPhotos, embed_corpus, embed_on_ray, import_ray_shards
from curation.similarity.embeddings import open_embeddings
from curation.similarity.encoder import ColourEncoder
from curation.similarity.from_files import EncoderOptions, duplicates, embed
from curation.similarity.near_duplicates import HashPhotos, hash_photos
from tests.real_files import real_files
from tests.similarity.clip_world import write_config, write_photos

pytest.importorskip("PIL.Image")
COLOUR = EncoderOptions(encoder="colour")


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def boxed(folder: Path, count: int) -> list[Photo]:
    """Photos with one to three boxes each; one of them is broken, one has gone, one is of another size."""
    paths = write_photos(folder, count)
    photos = [
        Photo(f"toy:{number:03d}", path, tuple((float(box), 1.5, 20.0, 9.0) for box in range(1 + number % 3)), (40, 30))
        for number, path in enumerate(paths)
    ]
    paths[3].write_bytes(b"no photo")
    paths[8].unlink()
    photos[5] = Photo("toy:005", paths[5], ((0.0, 0.0, 5.0, 5.0),), (41, 30))
    return photos


@pytest.mark.ray
def test_ray_makes_the_same_store_as_threads(tmp_path: Path, ray_session: None) -> None:
    photos = boxed(tmp_path / "p", 30)
    one = embed_photos(photos, ColourEncoder(), tmp_path / "local", batch=4, shard=8)
    # Begun here, with one shard written, and finished by Ray.
    embed_photos(photos[:6], ColourEncoder(), tmp_path / "ray", batch=4, shard=8)
    two = embed_on_ray(photos, COLOUR, tmp_path / "ray", encoder=ColourEncoder(), batch=4, shard=8)
    assert content(tmp_path / "ray") == content(tmp_path / "local")
    assert (two.embedded, two.skipped) == (one.embedded, one.skipped)
    assert len(two.skipped) == 5
    assert two.computed + two.reused == one.computed
    assert two.reused > 0
    with pytest.raises(EmbeddingError, match="cannot be embedded"):
        embed_on_ray(photos, COLOUR, tmp_path / "none", encoder=ColourEncoder(), broken="refuse")


@pytest.mark.ray
def test_a_tiny_model_of_open_clip_gives_the_same_on_ray(tmp_path: Path, ray_session: None) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'curation[clip]'")
    write_photos(tmp_path / "p", 12)
    encoder = EncoderOptions(model=str(write_config(tmp_path)), random_weights=3, device="cpu")
    for name, engine in (("local", "local"), ("ray", "ray")):
        embed(images=tmp_path / "p", encoder=encoder, out=tmp_path / name, batch=5, engine=engine, workers=1)  # type: ignore[arg-type]
    assert content(tmp_path / "ray") == content(tmp_path / "local")


def test_what_ray_has_finished_is_gone_on_with_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = boxed(tmp_path / "p", 30)
    whole = embed_photos(photos, ColourEncoder(), tmp_path / "whole", batch=4, shard=8)

    def here(step: Any, blocks: Any, **named: Any) -> Any:
        return embed_step_run(step, blocks, **{**named, "engine": "local", "workers": 1})

    embed_step_run = embed_step.run_step
    monkeypatch.setattr(embed_step, "run_step", here)
    monkeypatch.setattr(EmbedPhotos, "__call__", failing_at("toy:020", EmbedPhotos.__call__))
    with pytest.raises(EngineError, match="failed"):
        embed_on_ray(photos, COLOUR, tmp_path / "s", encoder=ColourEncoder(), batch=4, shard=8)
    assert (tmp_path / "s" / STEPS).is_dir()
    import_ray_shards(tmp_path / "s", ColourEncoder())
    assert not (tmp_path / "s" / STEPS).exists()
    rest = embed_photos(photos, ColourEncoder(), tmp_path / "s", batch=4, shard=8)
    assert content(tmp_path / "s") == content(tmp_path / "whole")
    assert 0 < rest.reused < whole.computed == rest.computed + rest.reused


def failing_at(name: str, call: Any) -> Any:
    def fail(self: Any, table: Any) -> Any:
        if name in table.column("id").to_pylist():
            raise RuntimeError("a cable was pulled")
        return call(self, table)

    return fail


def test_a_corpus_becomes_shards_of_vectors(tmp_path: Path) -> None:
    paths = write_photos(tmp_path / "p", 9)
    paths[4].write_bytes(b"no photo")
    with tarfile.open(tmp_path / "0.tar", "w") as archive:
        for path in paths:
            member = tarfile.TarInfo(path.name)
            member.size = path.stat().st_size
            archive.addfile(member, io.BytesIO(path.read_bytes()))
    with pytest.warns(CurationWarning, match="cannot be decoded"):
        store = embed(images=tmp_path / "p", out=tmp_path / "store")
    made = embed(corpus=tmp_path / "0.tar", out=tmp_path / "shards")
    assert (made.kind, made.result.embedded, store.result.embedded) == ("shards", 8, 8)
    assert made.data()["skipped"] == {
        "it cannot be decoded: cannot identify image file": 1,
    }
    (table,) = open_shards(tmp_path / "shards").tables(["id", "vector"])
    assert table.column("id").to_pylist() == [f"0.tar/{path.name}" for path in paths]
    vectors = np.array(table.column("vector").drop_null().to_pylist(), np.float32)
    np.testing.assert_array_equal(vectors, open_embeddings(tmp_path / "store").vectors)


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
