"""Embedding: the right vector for each picture, whatever is broken, killed, changed or threaded."""

import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation.core.engines.running import EngineName
from curation.core.engines.shards import open_shards
from curation.core.errors import CurationWarning, DuplicateIdError, EmbeddingError, EncoderError, UsageError
from curation.signals.similarity.embed import (
    Photo,
    embed_corpus,
    embed_photos,
    embed_texts,
    photos_of_folder,
    photos_of_sources,
)
from curation.signals.similarity.embeddings import open_embeddings
from curation.signals.similarity.encoder import ColourEncoder
from curation.signals.similarity.from_files import EncoderOptions, duplicates, embed
from curation.sources.opening import open_path
from curation.sources.photos import PhotoFolder
from curation.sources.source import Source
from tests.real_files import real_files
from tests.signals.similarity.clip_world import MeanEncoder, picture, write_photos

image_module = pytest.importorskip("PIL.Image")


def photos_of(folder: Path) -> list[Photo]:
    return photos_of_folder(PhotoFolder(folder), "toy")


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("threads", [1, 5])
def test_every_picture_has_its_own_vector_in_order(tmp_path: Path, threads: int) -> None:
    write_photos(tmp_path / "p", 23)
    encoder = MeanEncoder()
    result = embed_photos(photos_of(tmp_path / "p"), encoder, tmp_path / "s", batch=4, shard=8, threads=threads)
    found = open_embeddings(tmp_path / "s")
    means = np.stack([picture(number).reshape(-1, 3).mean(axis=0) for number in range(23)])
    np.testing.assert_array_equal(found.vectors, means.astype(np.float32))
    assert found.ids == tuple(f"toy:{number:03d}" for number in range(23))
    assert (result.embedded, result.computed, result.reused, result.dropped) == (23, 23, 0, 0)
    assert encoder.batches == [4, 4, 4, 4, 4, 3]


def broken_photos(folder: Path) -> list[Photo]:
    paths = write_photos(folder, 6)
    paths[0].write_bytes(b"")
    paths[1].write_bytes(b"no picture at all")
    paths[2].write_bytes(paths[2].read_bytes()[:200])
    image_module.new("I;16", (4, 4)).save(paths[3])
    photos = photos_of(folder)
    paths[4].unlink()
    return [*photos, Photo("toy:nowhere", None)]


def test_broken_photos_are_counted_and_listed(tmp_path: Path) -> None:
    result = embed_photos(broken_photos(tmp_path / "p"), MeanEncoder(), tmp_path / "s", batch=2)
    assert open_embeddings(tmp_path / "s").ids == ("toy:005",)
    report = json.loads((tmp_path / "s" / "report.json").read_text())
    assert report["embedded"] == 1
    reasons = {one["id"]: one["reason"] for one in report["skipped"]}
    assert list(reasons) == [f"toy:00{n}" for n in range(5)] + ["toy:nowhere"]
    assert "identify" in reasons["toy:001"]
    assert "0x" not in reasons["toy:001"]
    assert "truncated" in reasons["toy:002"]
    assert "more than 8 bits" in reasons["toy:003"]
    assert reasons["toy:004"] == "it does not exist"
    assert reasons["toy:nowhere"] == "no photo of it was found (.jpg, .jpeg, .png, .webp)"
    assert len(result.skipped) == 6


def test_refusing_stops_at_the_first_broken_photo_and_leaves_nothing(tmp_path: Path) -> None:
    paths = write_photos(tmp_path / "p", 9)
    whole = paths[7].read_bytes()
    paths[7].write_bytes(whole[:99])
    photos, out = photos_of(tmp_path / "p"), tmp_path / "s"
    with pytest.raises(EmbeddingError, match="cannot be embedded") as raised:
        embed_photos(photos, MeanEncoder(), out, batch=2, shard=4, broken="refuse")
    assert "toy:007" in str(raised.value)
    assert not out.exists()


def test_refusing_leaves_a_store_that_was_there_as_it_was(tmp_path: Path) -> None:
    paths = write_photos(tmp_path / "p", 9)
    photos, out = photos_of(tmp_path / "p"), tmp_path / "s"
    embed_photos(photos[:6], MeanEncoder(), out, batch=2)
    before = content(out)
    paths[7].write_bytes(b"")
    with pytest.raises(EmbeddingError, match="cannot be embedded"):
        embed_photos(photos, MeanEncoder(), out, broken="refuse")
    assert content(out) == before


def test_work_that_is_broken_off_is_kept_within_a_shard(tmp_path: Path) -> None:
    write_photos(tmp_path / "p", 23)
    photos = photos_of(tmp_path / "p")
    embed_photos(photos, MeanEncoder(), tmp_path / "whole", batch=4)

    class BrokenOff(MeanEncoder):
        def encode_prepared(self, batch: Any) -> Any:
            if len(self.batches) == 3:
                raise KeyboardInterrupt
            return super().encode_prepared(batch)

    # A shard holds 1,024 pictures: nothing of it was kept before it was full.
    computed = 0
    for _ in range(3):
        encoder = BrokenOff()
        with pytest.raises(KeyboardInterrupt):
            embed_photos(photos, encoder, tmp_path / "s", batch=4, seconds=0)
        computed += sum(encoder.batches)
        if computed + 12 >= 23:
            break
    last = embed_photos(photos, MeanEncoder(), tmp_path / "s", batch=4, threads=3)
    assert (last.reused, last.computed) == (computed, last.embedded - computed)
    assert computed >= 12
    assert content(tmp_path / "s") == content(tmp_path / "whole")


def test_a_bomb_is_not_decoded(tmp_path: Path) -> None:
    write_photos(tmp_path / "p", 1)
    image_module.new("1", (14_000, 13_000)).save(tmp_path / "p" / "bomb.png")
    result = embed_photos(photos_of(tmp_path / "p"), MeanEncoder(), tmp_path / "s")
    assert "million pixels" in result.skipped[0].reason


def test_nothing_to_embed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="None of the images"):
        embed_photos([Photo("toy:a", None)], MeanEncoder(), tmp_path / "s")
    with pytest.raises(EmbeddingError, match="None of the images"):
        embed_photos([], MeanEncoder(), tmp_path / "t")
    assert not (tmp_path / "s").exists()
    assert not (tmp_path / "t").exists()


def test_vectors_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    write_photos(tmp_path / "p", 3)
    with np.errstate(over="ignore"), pytest.raises(EncoderError, match="not finite"):
        embed_photos(photos_of(tmp_path / "p"), MeanEncoder(scale=1e300), tmp_path / "s")


def test_changed_bytes_are_computed_again_and_nothing_else(tmp_path: Path) -> None:
    paths = write_photos(tmp_path / "p", 10)
    out = tmp_path / "s"
    embed_photos(photos_of(tmp_path / "p"), MeanEncoder(), out, batch=2, shard=4)
    before, times = content(out), paths[3].stat()
    encoder = MeanEncoder()
    again = embed_photos(photos_of(tmp_path / "p"), encoder, out, shard=4)
    assert (again.computed, encoder.batches, content(out)) == (0, [], before)
    # Same size and times as before: only the bytes tell.
    data = bytearray(paths[3].read_bytes())
    image_module.fromarray(picture(99)).save(paths[3])
    changed = paths[3].read_bytes()
    assert changed != bytes(data)
    os.utime(paths[3], ns=(times.st_atime_ns, times.st_mtime_ns))
    paths[8].unlink()
    third = embed_photos(photos_of(tmp_path / "p"), encoder, out, shard=4)
    assert (third.embedded, third.computed, third.reused, third.dropped) == (9, 1, 8, 2)
    fresh = embed_photos(photos_of(tmp_path / "p"), MeanEncoder(), tmp_path / "fresh", batch=2, shard=4)
    assert fresh.embedded == 9
    assert content(out) == content(tmp_path / "fresh")


def test_threads_and_shards_do_not_change_a_byte(tmp_path: Path) -> None:
    write_photos(tmp_path / "p", 11)
    results = []
    for number, (threads, shard) in enumerate([(1, 1024), (7, 1024), (3, 4)]):
        out = tmp_path / str(number)
        embed_photos(photos_of(tmp_path / "p"), ColourEncoder(), out, threads=threads, shard=shard, batch=4)
        results.append(content(out))
    assert results[0] == results[1] == results[2]


class SideBySide(MeanEncoder):
    """Two batches meet in it, or none goes on."""

    def __init__(self, parties: int) -> None:
        super().__init__()
        self.barrier = threading.Barrier(parties)

    @contextmanager
    def one_core_each(self) -> Iterator[bool]:
        yield True

    def encode_prepared(self, batch: Any) -> Any:
        self.barrier.wait(timeout=60)
        return super().encode_prepared(batch)


@pytest.mark.parametrize("seconds", [0, 60])
def test_batches_are_encoded_side_by_side_and_kept_in_order(tmp_path: Path, seconds: float) -> None:
    write_photos(tmp_path / "p", 31)
    photos = photos_of(tmp_path / "p")
    # Shards of eight, whose last batch is short: 4, 4, 4, 4, 4, 4, 4, 3.
    given: dict[str, Any] = {"batch": 4, "shard": 8, "seconds": seconds}
    encoder = SideBySide(2)
    found = embed_photos(photos, encoder, tmp_path / "s", threads=2, **given)
    assert (found.computed, sorted(encoder.batches)) == (31, [3, *[4] * 7])
    embed_photos(photos, MeanEncoder(), tmp_path / "one", threads=1, **given)
    assert content(tmp_path / "s") == content(tmp_path / "one")


def test_an_error_in_a_thread_ends_the_work(tmp_path: Path) -> None:
    write_photos(tmp_path / "p", 20)
    encoder = SideBySide(1)
    encoder.scale = float("nan")
    with pytest.raises(EncoderError, match="not finite"):
        embed_photos(photos_of(tmp_path / "p"), encoder, tmp_path / "s", batch=2, threads=3)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("kib", [8, 100, 260, 400])
def test_a_full_disk_is_an_error_and_the_same_command_goes_on(tmp_path: Path, kib: int) -> None:
    """Writing a mapped file on a full disk would end the program by SIGBUS: a shard, and the joined array."""
    write_photos(tmp_path / "p", 150)
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here (it takes the rights of the administrator)")
    command = [sys.executable, "-m", "curation", "similarity", "embed", "--photos", str(tmp_path / "p")]
    command += ["--encoder", "colour", "--out"]
    try:
        done = subprocess.run([*command, str(disk / "s")], capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 2
        assert "No space left on device" in done.stderr
        assert "make room on the disk" in done.stderr
        # 150 vectors of 352 numbers are 211,328 bytes: on the larger disks the shard stays, and is not computed again.
        assert (disk / "s/shards").exists() == (kib > 211)
        assert (disk / "s").exists() == (kib > 211)
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        done = subprocess.run([*command, str(disk / "s")], capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0
        assert f"computed  {0 if kib > 211 else 150};" in done.stdout
        subprocess.run([*command, str(tmp_path / "s")], capture_output=True, check=True, timeout=300)
        assert content(disk / "s") == content(tmp_path / "s")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_store_begun_in_vain_leaves_other_files(tmp_path: Path) -> None:
    write_photos(tmp_path / "p", 3)
    (tmp_path / "s/.git").mkdir(parents=True)
    (tmp_path / "s/.git/config").write_text("the user's")
    encoder = MeanEncoder()
    encoder.scale = float("nan")
    with pytest.raises(EncoderError, match="not finite"):
        embed_photos(photos_of(tmp_path / "p"), encoder, tmp_path / "s", batch=2)
    assert content(tmp_path / "s") == {".git/config": b"the user's"}


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


def embed_slowly(photos: Path, out: Path, log: Path, given: dict[str, Any]) -> None:
    from tqdm import tqdm

    # The semaphore of tqdm's own lock would outlive a killed process.
    tqdm.set_lock(threading.RLock())
    embed_photos(photos_of(photos), Slow(log), out, **given)


@pytest.mark.slow
@pytest.mark.parametrize(("shard", "seconds"), [(4, 5), (1024, 0.05)])
def test_kills_lose_nothing_that_was_written(tmp_path: Path, shard: int, seconds: float) -> None:
    write_photos(tmp_path / "p", 40)
    reference, out, log = tmp_path / "reference", tmp_path / "s", tmp_path / "log"
    embed_photos(photos_of(tmp_path / "p"), MeanEncoder(), reference, batch=2, shard=shard)
    means = open_embeddings(reference).vectors
    kills = 0
    # Every process that is killed is forked from one that has imported what it needs.
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    given = {"batch": 2, "shard": shard, "seconds": seconds}
    for attempt in range(60):
        # What is on disk before an attempt must not be computed in it.
        kept = {row for path in out.glob("shards/[!.]*.json") for row in json.loads(path.read_text())["ids"]}
        log.write_text("")
        process = processes.Process(target=embed_slowly, args=(tmp_path / "p", out, log, given))
        process.start()
        wait_for_lines(log, 1 + attempt % 9, process)
        process.kill()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        computed = {float(line) for line in log.read_text().splitlines() if line}
        first = [float(np.float64(mean)) for mean in means[:, 0]]
        ids = {f"toy:{n:03d}" for n in range(40) if any(abs(first[n] - one) < 1e-3 for one in computed)}
        assert not ids & kept
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
    encoder = MeanEncoder()
    result = embed_texts(["cat", "zebra"], encoder, tmp_path / "s", template="a {}!")
    found = open_embeddings(tmp_path / "s", kind="texts")
    assert found.ids == ("cat", "zebra")
    np.testing.assert_array_equal(found.vectors[:, 0], [len("a cat!"), len("a zebra!")])
    assert (result.embedded, result.computed) == (2, 2)
    more = embed_texts(["zebra", "ox", "cat"], encoder, tmp_path / "s", template="a {}!")
    assert (more.computed, more.reused) == (1, 2)
    assert open_embeddings(tmp_path / "s").ids == ("zebra", "ox", "cat")
    with pytest.raises(EmbeddingError, match="another template"):
        embed_texts(["cat"], encoder, tmp_path / "s", template="the {}")


@pytest.mark.parametrize("texts", [[], ["cat", " "], ["x" * 1001], ["a\x1b[31m"]])
def test_texts_that_cannot_be_prompts_are_refused(tmp_path: Path, texts: list[str]) -> None:
    with pytest.raises(EmbeddingError):
        embed_texts(texts, MeanEncoder(), tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_repeated_texts_templates_and_textless_encoders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DuplicateIdError):
        embed_texts(["cat", "cat"], MeanEncoder(), tmp_path / "s")
    for template in ("a photo", "{} {}"):
        with pytest.raises(EmbeddingError, match="template"):
            embed_texts(["cat"], MeanEncoder(), tmp_path / "s", template=template)
    with pytest.raises(EncoderError, match="no text tower"):
        embed_texts(["cat"], ColourEncoder(), tmp_path / "s")
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


def test_a_list_of_ids_has_photos(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("3\n")
    one = open_path(tmp_path / "ids.txt", dataset="coco", part="")
    folder = folder_with(tmp_path / "p", "000000000003.jpg")
    assert photos_of_sources({"coco": one}, {"": folder})[0].path is not None


def test_ids_of_a_folder_are_paths_without_suffix(tmp_path: Path) -> None:
    photos = photos_of_folder(folder_with(tmp_path, "b/1.JPG", "a.v2.png", "139.webp", "notes.txt"), "coco")
    assert [photo.id for photo in photos] == ["coco:000000000139", "coco:a.v2", "coco:b/1"]


def test_photos_that_differ_in_suffix_only_and_empty_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="no photos"):
        photos_of_folder(folder_with(tmp_path), "x")
    with pytest.raises(DuplicateIdError):
        photos_of_folder(folder_with(tmp_path, "1.jpg", "1.png"), "x")


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
    again = embed(corpus=tmp_path / "0.tar", out=tmp_path / "shards")
    assert [(run.result.computed, run.result.reused) for run in (made, again)] == [(8, 0), (0, 8)]
    assert made.data()["skipped"] == {"it cannot be decoded: cannot identify image file": 1}
    (table,) = open_shards(tmp_path / "shards").tables(["id", "vector"])
    assert table.column("id").to_pylist() == [f"0.tar/{path.name}" for path in paths]
    vectors = np.array(table.column("vector").drop_null().to_pylist(), np.float32)
    np.testing.assert_array_equal(vectors, open_embeddings(tmp_path / "store").vectors)
    with pytest.raises(UsageError, match="engine, workers and shard apply to corpus"):
        embed(photos=tmp_path / "p", out=tmp_path / "ray", engine="ray")


def on_both(tmp_path: Path, photos: Path) -> None:
    """Embed the same corpus on both engines and by an array of tasks, and hold the digests against each other."""
    engines: tuple[EngineName, ...] = ("local", "ray")
    made = [embed_corpus(photos, COLOUR, tmp_path / f"e-{one}", encoder=ColourEncoder(), engine=one) for one in engines]
    assert made[0].digest == made[1].digest
    for task in ("2/2", "1/2", "merge"):
        merged = embed_corpus(photos, COLOUR, tmp_path / "tasks", encoder=ColourEncoder(), shard=task)
    assert merged.digest == made[0].digest


@pytest.mark.ray
def test_vectors_of_a_corpus_are_the_same_on_ray_and_by_tasks(
    tmp_path: Path, ray_session: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("curation.sources.corpus.PHOTOS", 8)
    write_photos(tmp_path / "p", 30)[7].write_bytes(b"no photo")
    on_both(tmp_path, tmp_path / "p")
    made = embed(corpus=tmp_path / "p", out=tmp_path / "e-ray", shard="1/4")
    assert (made.kind, made.result.embedded, made.left_out.total()) == ("shard 1/4", 7, 1)


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
