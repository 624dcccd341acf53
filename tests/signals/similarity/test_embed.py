"""Embedding: the right vector for each picture, whatever is broken, killed, changed or threaded."""

import io
import json
import multiprocessing
import signal
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.core.engines.running import EngineName
from curation.core.engines.shards import open_shards
from curation.core.errors import (
    CurationWarning,
    DuplicateIdError,
    EmbeddingError,
    EncoderError,
    EngineError,
    UsageError,
)
from curation.signals.similarity import embed as embedding
from curation.signals.similarity.embed import (
    Embedded,
    EncoderOptions,
    Photo,
    embed,
    embed_corpus,
    embed_photos,
    embed_texts,
    photos_of_folder,
    photos_of_sources,
)
from curation.signals.similarity.embeddings import open_embeddings
from curation.signals.similarity.encoder import Encoder
from curation.signals.similarity.near_duplicates import duplicates
from curation.sources.opening import open_path
from curation.sources.photos import PhotoFolder
from curation.sources.source import Source
from tests.real_files import real_files
from tests.signals.similarity.clip_world import MeanEncoder, picture, write_photos

image_module = pytest.importorskip("PIL.Image")
COLOUR = EncoderOptions(encoder="colour")


@dataclass(frozen=True, eq=False)
class Made:
    """The recipe of an encoder that exists."""

    encoder: Encoder

    def open(self) -> Encoder:
        return self.encoder


def photos_of(folder: Path) -> list[Photo]:
    return photos_of_folder(PhotoFolder(folder), "toy")


def embedded(photos: Path | list[Photo], out: Path, encoder: Encoder | None = None, **options: Any) -> Embedded:
    listed = photos_of(photos) if isinstance(photos, Path) else photos
    return embed_photos(listed, Made(encoder or MeanEncoder()), out, **options)


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "BLOCK", 8)


@pytest.mark.parametrize("threads", [1, 5])
def test_every_picture_has_its_own_vector_in_order(
    tmp_path: Path, threads: int, small_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "cores", lambda: threads)
    write_photos(tmp_path / "p", 23)
    encoder = MeanEncoder()
    result = embedded(tmp_path / "p", tmp_path / "s", encoder, batch=3)
    store = open_embeddings(tmp_path / "s")
    means = np.stack([picture(number).reshape(-1, 3).mean(axis=0) for number in range(23)])
    np.testing.assert_array_equal(store.vectors, means.astype(np.float32))
    assert store.ids == tuple(f"toy:{number:03d}" for number in range(23))
    assert (result.embedded, result.computed, result.reused) == (23, 23, 0)
    assert encoder.batches == [3, 3, 2, 3, 3, 2, 3, 3, 1]


def broken_photos(folder: Path) -> list[Photo]:
    paths = write_photos(folder, 7)
    paths[0].write_bytes(b"")
    paths[1].write_bytes(b"no picture at all")
    paths[2].write_bytes(paths[2].read_bytes()[:200])
    image_module.new("I;16", (4, 4)).save(paths[3])
    image_module.new("1", (14_000, 13_000)).save(paths[6])
    photos = photos_of(folder)
    paths[4].unlink()
    return [*photos, Photo("toy:nowhere", None)]


def test_broken_photos_are_counted_and_listed_or_refused(tmp_path: Path) -> None:
    photos = broken_photos(tmp_path / "p")
    result = embedded(photos, tmp_path / "s", batch=2)
    assert open_embeddings(tmp_path / "s").ids == ("toy:005",)
    report = json.loads((tmp_path / "s" / "report.json").read_text())
    assert report["embedded"] == 1
    reasons = {one["id"]: one["reason"] for one in report["skipped"]}
    assert "identify" in reasons["toy:001"]
    assert "0x" not in reasons["toy:001"]
    assert "truncated" in reasons["toy:002"]
    assert "more than 8 bits" in reasons["toy:003"]
    assert reasons["toy:004"] == "it does not exist"
    assert "million pixels" in reasons["toy:006"]
    assert reasons["toy:nowhere"] == "no photo of it was found (.jpg, .jpeg, .png, .webp)"
    assert sum(result.left_out.values()) == len(reasons) == 7
    with pytest.raises(EngineError, match="cannot be embedded") as raised:
        embedded(photos[1:-1], tmp_path / "t", broken="refuse")
    assert "toy:001" in str(raised.value)
    with pytest.raises(EmbeddingError, match="cannot be embedded"):
        embedded(photos, tmp_path / "u", broken="refuse")
    assert not (tmp_path / "u").exists()


def test_nothing_to_embed_and_vectors_that_are_not_finite_are_errors(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="None of the images"):
        embedded([Photo("toy:a", None)], tmp_path / "s")
    write_photos(tmp_path / "p", 20)
    for encoder in (MeanEncoder(float("nan")), SideBySide(1, float("nan"))):
        with pytest.raises(EngineError, match="not finite"):
            embedded(tmp_path / "p", tmp_path / "t", encoder, batch=2)
    (tmp_path / "u").mkdir()
    (tmp_path / "u/thesis.tex").write_text("all of it")
    with pytest.raises(EngineError, match="not created by curation"):
        embedded(tmp_path / "p", tmp_path / "u")
    assert content(tmp_path / "u") == {"thesis.tex": b"all of it"}


def test_blocks_with_changed_photos_are_computed_again_and_no_others(tmp_path: Path, small_blocks: None) -> None:
    paths = write_photos(tmp_path / "p", 22)
    out = tmp_path / "s"
    embedded(tmp_path / "p", out)
    before = content(out)
    encoder = MeanEncoder()
    again = embedded(tmp_path / "p", out, encoder)
    assert (again.computed, again.reused, encoder.batches, content(out)) == (0, 22, [], before)
    image_module.fromarray(picture(99, (50, 60))).save(paths[3])
    paths[21].unlink()
    third = embedded(tmp_path / "p", out, encoder)
    assert (third.embedded, third.computed, encoder.batches) == (21, 13, [8, 5])
    embedded(tmp_path / "p", tmp_path / "fresh")
    assert content(out) == content(tmp_path / "fresh")
    with pytest.raises(EngineError, match="another step"):
        embedded(tmp_path / "p", out, batch=2)


class SideBySide(MeanEncoder):
    """Batches are encoded only if so many of them meet."""

    def __init__(self, parties: int, scale: float = 1.0) -> None:
        super().__init__(scale)
        self.barrier = threading.Barrier(parties)

    @contextmanager
    def one_core_each(self) -> Iterator[bool]:
        yield True

    def encode_prepared(self, batch: Any) -> Any:
        if len(batch) == 4:
            self.barrier.wait(timeout=60)
        return super().encode_prepared(batch)


def test_batches_are_encoded_side_by_side_and_kept_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "cores", lambda: 4)
    write_photos(tmp_path / "p", 35)
    encoder = SideBySide(2)
    embedded(tmp_path / "p", tmp_path / "s", encoder, batch=4)
    assert sorted(encoder.batches) == [3, *[4] * 8]
    embedded(tmp_path / "p", tmp_path / "plain", batch=4)
    assert content(tmp_path / "s") == content(tmp_path / "plain")


class Slow(MeanEncoder):
    """Notes the first component of each picture before it encodes a batch."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self.log = log

    def encode_prepared(self, batch: Any) -> Any:
        time.sleep(0.02)
        with self.log.open("a") as log:
            log.write("".join(f"{one[0]:.6f}\n" for one in batch))
        return super().encode_prepared(batch)


def embed_slowly(photos: Path, out: Path, log: Path) -> None:
    from tqdm import tqdm

    # The semaphore of tqdm's own lock would outlive a killed process.
    tqdm.set_lock(threading.RLock())
    embedding.BLOCK = 4
    embedded(photos, out, Slow(log), batch=2)


@pytest.mark.slow
def test_kills_lose_nothing_that_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "BLOCK", 4)
    write_photos(tmp_path / "p", 40)
    reference, out, log = tmp_path / "reference", tmp_path / "s", tmp_path / "log"
    embedded(tmp_path / "p", reference, batch=2)
    kills = computed = 0
    # Every process that is killed is forked from one that has imported what it needs.
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    for attempt in range(60):
        blocks = len(list(out.glob("shards/[!.]*.parquet")))
        log.write_text("")
        process = processes.Process(target=embed_slowly, args=(tmp_path / "p", out, log))
        process.start()
        wait_for_lines(log, 1 + attempt % 9, process)
        process.kill()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        computed = log.read_text().count("\n")
        assert computed <= 40 - 4 * blocks
        if process.exitcode == 0:
            break
        kills += 1
    assert kills >= 5
    assert process.exitcode == 0
    assert content(out) == content(reference)


def wait_for_lines(log: Path, lines: int, process: BaseProcess) -> None:
    ends = time.monotonic() + 60
    while log.read_text().count("\n") < lines and process.is_alive() and time.monotonic() < ends:
        time.sleep(0.005)


def test_texts_are_rows_under_their_own_words(tmp_path: Path) -> None:
    recipe = Made(MeanEncoder())
    result = embed_texts(["cat", "zebra"], recipe, tmp_path / "s", template="a {}!")
    store = open_embeddings(tmp_path / "s")
    assert store.ids == ("cat", "zebra")
    np.testing.assert_array_equal(store.vectors[:, 0], [len("a cat!"), len("a zebra!")])
    assert (result.embedded, result.computed) == (2, 2)
    assert embed_texts(["cat", "zebra"], recipe, tmp_path / "s", template="a {}!").reused == 2
    with pytest.raises(EngineError, match="another step"):
        embed_texts(["cat"], recipe, tmp_path / "s", template="the {}")


@pytest.mark.parametrize("texts", [[], ["cat", " "], ["x" * 1001], ["a\x1b[31m"]])
def test_texts_that_cannot_be_prompts_are_refused(tmp_path: Path, texts: list[str]) -> None:
    with pytest.raises(EmbeddingError):
        embed_texts(texts, Made(MeanEncoder()), tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_repeated_texts_templates_and_textless_encoders_are_refused(tmp_path: Path) -> None:
    recipe = Made(MeanEncoder())
    with pytest.raises(DuplicateIdError):
        embed_texts(["cat", "cat"], recipe, tmp_path / "s")
    for template in ("a photo", "{} {}"):
        with pytest.raises(EmbeddingError, match="template"):
            embed_texts(["cat"], recipe, tmp_path / "s", template=template)
    with pytest.raises(EncoderError, match="no text tower"):
        embed_texts(["cat"], COLOUR, tmp_path / "s")
    assert not (tmp_path / "s").exists()


def coco_source(folder: Path) -> Source:
    path = folder / "instances_val2017.json"
    images = [{"id": n, "file_name": f"{n:012d}.jpg", "width": 40, "height": 30} for n in (7, 3, 5)]
    content = {"images": images, "annotations": [], "categories": [{"id": 1, "name": "cat"}]}
    path.write_text(json.dumps(content))
    return open_path(path, dataset="coco", part="val2017")


def folder_with(folder: Path, *names: str) -> PhotoFolder:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return PhotoFolder(folder)


def test_photos_come_in_file_order_and_missing_ones_have_no_path(tmp_path: Path) -> None:
    photos = photos_of_sources(
        {"coco": coco_source(tmp_path)}, {"": folder_with(tmp_path / "p", "000000000003.jpg", "v/000000000005.PNG")}
    )  # fmt: skip
    assert [photo.id for photo in photos] == ["coco:000000000007", "coco:000000000003", "coco:000000000005"]
    assert [photo.path and photo.path.name for photo in photos] == [None, "000000000003.jpg", "000000000005.PNG"]


def test_a_source_given_twice_or_without_photos_is_refused(tmp_path: Path) -> None:
    one, folder = coco_source(tmp_path), folder_with(tmp_path / "p")
    with pytest.raises(DuplicateIdError, match="same id"):
        photos_of_sources({"a": one, "b": one}, {"": folder})
    with pytest.raises(EmbeddingError, match="no folder of photos"):
        photos_of_sources({"a": one}, {"b": folder})


def test_ids_of_a_folder_are_paths_without_suffix(tmp_path: Path) -> None:
    photos = photos_of_folder(folder_with(tmp_path, "b/1.JPG", "a.v2.png", "139.webp", "notes.txt"), "coco")
    assert [photo.id for photo in photos] == ["coco:000000000139", "coco:a.v2", "coco:b/1"]


def test_photos_that_differ_in_suffix_only_and_empty_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="no photos"):
        photos_of_folder(folder_with(tmp_path), "x")
    with pytest.raises(DuplicateIdError):
        photos_of_folder(folder_with(tmp_path, "1.jpg", "1.png"), "x")


def test_a_corpus_and_its_photos_have_the_same_vectors(tmp_path: Path) -> None:
    paths = write_photos(tmp_path / "p", 9)
    paths[4].write_bytes(b"no photo")
    with tarfile.open(tmp_path / "0.tar", "w") as archive:
        for path in paths:
            member = tarfile.TarInfo(path.name)
            member.size = path.stat().st_size
            archive.addfile(member, io.BytesIO(path.read_bytes()))
    with pytest.warns(CurationWarning, match="cannot be decoded"):
        embed(photos=tmp_path / "p", out=tmp_path / "store")
    runs = []
    for _ in range(2):
        with pytest.warns(CurationWarning, match="cannot be decoded"):
            runs.append(embed(corpus=tmp_path / "0.tar", out=tmp_path / "corpus"))
    assert [(run.embedded, run.computed, run.reused) for run in runs] == [(8, 8, 0), (8, 0, 8)]
    assert runs[0].data()["skipped"] == {"it cannot be decoded: cannot identify image file": 1}
    store, corpus = open_embeddings(tmp_path / "store"), open_embeddings(tmp_path / "corpus")
    assert corpus.ids == tuple(f"0.tar/{path.name}" for path in paths if path != paths[4])
    np.testing.assert_array_equal(corpus.vectors, store.vectors)
    with pytest.raises(UsageError, match="engine and shard apply only to corpus"):
        embed(photos=tmp_path / "p", out=tmp_path / "ray", engine="ray")


def on_both(tmp_path: Path, photos: Path) -> None:
    """Embed the same corpus on both engines and by an array of tasks, and compare the digests."""
    engines: tuple[EngineName, ...] = ("local", "ray")
    for engine in engines:
        embed_corpus(photos, COLOUR, tmp_path / f"e-{engine}", engine=engine)
    for task in ("2/2", "1/2", None):
        embed_corpus(photos, COLOUR, tmp_path / "tasks", shard=task, workers=2)
    assert len({open_shards(tmp_path / name).digest for name in ("e-local", "e-ray", "tasks")}) == 1


@pytest.mark.ray
def test_vectors_of_a_corpus_are_the_same_on_ray_and_by_tasks(
    tmp_path: Path, ray_session: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("curation.sources.corpus.PHOTOS", 8)
    write_photos(tmp_path / "p", 30)[7].write_bytes(b"no photo")
    on_both(tmp_path, tmp_path / "p")
    with pytest.warns(CurationWarning, match="cannot be decoded"):
        made = embed(corpus=tmp_path / "p", out=tmp_path / "e-task", shard="1/4")
    assert (made.kind, made.embedded, sum(made.left_out.values())) == ("shard 1/4", 7, 1)


def test_hashes_of_a_corpus_are_kept(tmp_path: Path) -> None:
    write_photos(tmp_path / "p", 30)[7].write_bytes(b"no photo")
    made = []
    for workers in (2, 1):
        with pytest.warns(CurationWarning, match="cannot be read"):
            made.append(duplicates(images=tmp_path / "p", workers=workers, hashes=tmp_path / "kept").data())
    assert made[0] == made[1]


@real_files("coco_table")
def check_vectors_of_real_photos_are_the_same_on_ray_and_by_tasks(
    shared: Path, tmp_path: Path, ray_session: None
) -> None:
    on_both(tmp_path, shared / "data" / "coco" / "mini")
