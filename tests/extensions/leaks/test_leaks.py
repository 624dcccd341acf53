"""The leak check: every kind of copy is found, nothing else is, and what could not be judged is said."""

import base64
import csv
import io
import json
import re
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from PIL import Image

import curation
from curation.cli import main
from curation.core.errors import MissingFileError, UsageError
from curation.evaluation.result import schema_text
from curation.extensions.image_ood.images import LeftOut
from curation.extensions.leaks.run import Leaks, leaks
from curation.extensions.leaks.step import VARIANTS, code_of, fingerprints, near_codes, pictures_of
from tests.extensions.leaks.leak_world import ALTERATIONS, COPIES, copies_of, jpeg, picture, write_benchmark, write_tar
from tests.real_files import real_files

N, LEAKED, UNRELATED = 30, 20, 150


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark of 30 images, 20 of them in a corpus of 170 and some hostile files: a folder, and tar shards."""
    folder = tmp_path_factory.mktemp("leaks")
    _, photos = write_benchmark(folder, N)
    members = copies_of(dict(list(photos.items())[:LEAKED]))
    members |= {f"other-{number}.jpg": jpeg(picture(1000 + number)) for number in range(UNRELATED)}
    members |= HOSTILE
    (folder / "corpus").mkdir()
    for name, data in members.items():
        (folder / "corpus" / name).write_bytes(data)
    (folder / "shards").mkdir()
    listed = sorted(members.items())
    for number in range(4):
        write_tar(folder / "shards" / f"{number:05d}.tar", listed[number::4])
    return folder


def _png_header(width: int, height: int) -> bytes:
    """Return the beginning of a PNG file that claims a size, and hardly a pixel."""
    chunks = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0), b"IDAT" + zlib.compress(b"\0" * 99)
    made = [struct.pack(">I", len(one) - 4) + one + struct.pack(">I", zlib.crc32(one)) for one in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(made)


HOSTILE: Mapping[str, bytes] = {
    "bomb.png": _png_header(60_000, 60_000),
    "cut.jpg": jpeg(picture(7))[:900],
    "empty.jpg": b"",
    "text<b>.jpg": b"<script>alert(1)</script>",
}
BLANK = jpeg(Image.new("RGB", (64, 48), (255, 255, 255)))


def checked(world: Path, corpus: Path | None = None, **more: Any) -> Leaks:
    return leaks(world / "manifest", corpus=corpus or world / "corpus", photos=world / "photos", **more)


@pytest.fixture(scope="module")
def found(world: Path) -> Leaks:
    return checked(world)


def test_every_kind_of_copy_is_found_and_nothing_else(found: Leaks) -> None:
    pairs = {(one.benchmark[5:], one.corpus): one for one in found.evidence}
    assert {corpus for _, corpus in pairs} == _expected().keys()
    for (benchmark, corpus), one in pairs.items():
        how, _, native = corpus.removesuffix(".jpg").rpartition("-")
        assert native == benchmark
        kind = {"same": "same_pixels", "mirrored": "mirrored"}.get(how, "perceptual")
        assert (one.kind, "crop" in one.variant) == (kind, how == "cropped"), corpus
        assert one.value <= one.threshold
    assert found.leaked == tuple(f"coco:{number:012d}" for number in range(LEAKED))


def _expected() -> dict[str, bytes]:
    return {f"{COPIES[number % len(COPIES)]}-{number:012d}.jpg": b"" for number in range(LEAKED)}


def test_the_result_says_how_many_leaked_of_how_many(found: Leaks) -> None:
    assert found["benchmark/leaked"] == LEAKED
    assert found["benchmark/leaked_share"] == pytest.approx(LEAKED / N)
    assert (found["one/leaked"], found["two/leaked"]) == (15, 5)
    assert found["benchmark/leaked_by@same_pixels"] == found["benchmark/leaked_by@mirrored"] == 4
    assert found["benchmark/leaked_by@perceptual"] == 12
    table = found.measures.set_index(["split", "measure", "parameters"])
    assert table.loc[("one", "leaked", ""), "n"] == 15
    assert found.data["corpus"]["images"] == LEAKED + UNRELATED
    content = json.loads(json.dumps(found.json_data()))
    jsonschema.validate(content, json.loads(schema_text()))


def test_what_cannot_be_read_is_named_with_the_reason(found: Leaks) -> None:
    told = dict(found.unreadable)
    assert told.keys() == HOSTILE.keys()
    assert "170 million pixels" in told["bomb.png"]
    assert all("decoded" in told[name] for name in ("cut.jpg", "text<b>.jpg", "empty.jpg"))
    assert found.data["corpus"]["unreadable"] == len(HOSTILE)
    assert any("unreadable.csv" in note for note in found.notes)


@pytest.fixture(scope="module")
def alone(world: Path) -> Leaks:
    """The check of tar shards, by one process."""
    return checked(world, world / "shards", workers=1)


def test_tar_shards_and_workers_and_a_second_run_say_the_same(
    world: Path, found: Leaks, alone: Leaks, tmp_path: Path
) -> None:
    both = checked(world, world / "shards", workers=2, evidence=tmp_path / "kept")
    again = checked(world, world / "shards", workers=1, evidence=tmp_path / "kept")
    assert both.json_data() == again.json_data() == alone.json_data()
    assert both.evidence == again.evidence == alone.evidence
    as_listed = [(one.benchmark, one.corpus.partition("/")[2], one.kind, one.value) for one in both.evidence]
    assert sorted(as_listed) == [(one.benchmark, one.corpus, one.kind, one.value) for one in found.evidence]
    assert {name.partition("/")[2] for name, _ in both.unreadable} == HOSTILE.keys()


def test_tasks_of_an_array_say_the_same(world: Path, alone: Leaks, tmp_path: Path) -> None:
    """Each task reports on its own blocks, and no block is left to the last call."""
    tasks = [checked(world, world / "shards", evidence=tmp_path / "kept", shard=f"{number}/2") for number in (2, 1)]
    assert all("alone: after all tasks" in task.notes[-1] for task in tasks)
    merged = checked(world, world / "shards", evidence=tmp_path / "kept")
    assert merged.json_data() == alone.json_data()
    assert merged.evidence == alone.evidence
    both = [one for task in tasks for one in task.evidence]
    assert sorted(map(repr, both)) == sorted(map(repr, alone.evidence))
    with pytest.raises(UsageError, match="requires evidence=DIR"):
        checked(world, world / "shards", shard="1/2")


@pytest.mark.ray
def test_ray_says_the_same(world: Path, alone: Leaks, ray_session: None) -> None:
    on_ray = checked(world, world / "shards", engine="ray")
    assert on_ray.json_data() == alone.json_data()
    assert on_ray.evidence == alone.evidence


def test_blank_photos_are_compared_by_pixels_alone(tmp_path: Path) -> None:
    manifest, _ = write_benchmark(tmp_path, 4)
    (tmp_path / "photos" / f"{0:012d}.jpg").write_bytes(BLANK)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "same.jpg").write_bytes(BLANK)
    (corpus / "other.jpg").write_bytes(jpeg(Image.new("RGB", (64, 48), (0, 0, 0))))
    some = leaks(manifest, corpus=corpus, photos=tmp_path / "photos")
    assert [(one.corpus, one.kind) for one in some.evidence] == [("same.jpg", "same_pixels")]
    assert some.data["corpus"]["plain"] == 2


def test_a_photo_without_its_orientation_or_with_it_applied_is_the_same(tmp_path: Path) -> None:
    manifest, _ = write_benchmark(tmp_path, 4)
    stored = picture(99, 120, 80)
    exif = Image.Exif()
    exif[0x0112] = 6
    path = tmp_path / "photos" / f"{0:012d}.png"
    (tmp_path / "photos" / f"{0:012d}.jpg").unlink()
    stored.save(path, exif=exif)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    stored.save(corpus / "lost.png")
    stored.transpose(Image.Transpose.ROTATE_270).save(corpus / "applied.png")
    stored.save(corpus / "kept.png", exif=exif)
    some = leaks(manifest, corpus=corpus, photos=tmp_path / "photos")
    assert [(one.corpus, one.kind) for one in some.evidence] == [
        (name, "same_pixels") for name in ("applied.png", "kept.png", "lost.png")
    ]


def test_the_code_of_a_mirrored_picture_is_that_of_its_mirror_image() -> None:
    for seed in range(5):
        image = picture(seed, 101, 67)
        codes, plain = code_of(image, variants=True)
        mirrored, _ = code_of(image.transpose(Image.Transpose.FLIP_LEFT_RIGHT))
        assert codes.shape == (len(VARIANTS), 4)
        assert not plain
        # Averaging to 160 columns may round a grey level otherwise from right to left.
        assert np.bitwise_count(codes[VARIANTS.index("mirrored")] ^ mirrored[0]).sum() <= 3
        window = image.resize((160, 160), Image.Resampling.BOX).crop((8, 8, 152, 152))
        assert np.bitwise_count(codes[VARIANTS.index("crop 33")] ^ code_of(window)[0][0]).sum() <= 12


def test_no_pair_of_codes_is_missed() -> None:
    rng = np.random.default_rng(0)
    known = rng.integers(0, 1 << 63, (20_000, 4)).astype(np.uint64)
    asked = known[rng.choice(len(known), 50, replace=False)]
    for row in asked:
        for bit in rng.choice(256, rng.integers(0, 80), replace=False).tolist():
            row[bit // 64] ^= np.uint64(1 << (bit % 64))
    every = np.bitwise_count(asked[:, None] ^ known[None])
    near = (every[..., 0] <= 12) & (every.sum(axis=2) <= 64)
    found = near_codes(asked, known, 64, 12)
    assert sorted((one, two) for one, two, _ in found) == [tuple(pair) for pair in np.argwhere(near).tolist()]
    assert 10 < len(found) < 50


def test_saved_files_can_be_used_and_looked_at(found: Leaks, tmp_path: Path) -> None:
    written = found.save(tmp_path / "out")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "leaks.csv").read_text())))
    assert len(rows) == len(found.evidence)
    assert tuple((tmp_path / "out" / "leaked.txt").read_text().split()) == found.leaked
    # What `evaluate … --without NAME=leaked.txt` takes away.
    without = LeftOut.read("unleaked", tmp_path / "out" / "leaked.txt", ())
    assert set(without.removed.stems) == {one.partition(":")[2] for one in found.leaked}
    page = (tmp_path / "out" / "leaks.html").read_text()
    assert "<script" not in page
    pictures = re.findall('src="data:image/jpeg;base64,([^"]+)"', page)
    assert len(pictures) == 2 * len(found.evidence)
    for data in pictures:
        Image.open(io.BytesIO(base64.b64decode(data))).verify()
    assert [path.name for path in written][-1] == "leaks.json"
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    found.save(tmp_path / "out")
    assert before == {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}


def test_names_of_a_corpus_mean_nothing_to_a_browser_or_a_spreadsheet(tmp_path: Path) -> None:
    manifest, photos = write_benchmark(tmp_path, 4)
    data = photos[f"coco:{1:012d}"]
    names = ("<img src=x onerror=alert(1)>.jpg", "=cmd|'!A1.jpg", "\x1b[31mred.jpg")
    write_tar(tmp_path / "a.tar", [(name, data) for name in names])
    some = leaks(manifest, corpus=tmp_path / "a.tar", photos=tmp_path / "photos")
    assert {one.corpus for one in some.evidence} == {f"a.tar/{name}" for name in names}
    some.save(tmp_path / "out")
    page = (tmp_path / "out" / "leaks.html").read_text()
    assert "<img src=x" not in page
    assert "\x1b" not in page + "\n".join(some.lines())


def test_wrong_inputs_are_one_error_each(world: Path, tmp_path: Path) -> None:
    for more, text in (({"part": "three"}, "Unknown part"), ({"radius": 100}, "radius")):
        with pytest.raises(UsageError, match=text):
            checked(world, **more)
    with pytest.raises(MissingFileError):
        checked(world, tmp_path / "nowhere")


def test_nothing_compared_is_an_error(world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "000000000001.jpg").write_bytes(b"no photo")
    for photos, found in (("empty", "no photos"), ("broken", "1 photo, none readable")):
        with pytest.raises(MissingFileError, match="nothing is known about leaks") as error:
            leaks(world / "manifest", corpus=world / "corpus", photos=tmp_path / photos)
        assert found in str(error.value.found)
    with pytest.raises(MissingFileError, match="No image of the corpus could be compared"):
        leaks(world / "manifest", corpus=tmp_path / "broken", photos=world / "photos")
    words = f"similarity leaks {world}/manifest --corpus {world}/corpus --photos {tmp_path}/empty".split()
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    assert "No image of the benchmark could be compared" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_part_without_photos_is_no_pass(world: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    last = f"{N - 1:012d}.jpg"
    (tmp_path / "photos" / last).write_bytes((world / "photos" / last).read_bytes())
    some = leaks(world / "manifest", corpus=world / "corpus", photos=tmp_path / "photos")
    assert (some["one/leaked"], some["two/leaked"]) == (None, 0)


def test_the_command(world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest, out = str(world / "manifest"), tmp_path / "out"
    words = f"similarity leaks {manifest} --corpus {world}/shards --photos {world}/photos".split()
    words += ["--workers", "1"]
    assert main([*words, "--out", str(out)]) == 1
    told = capsys.readouterr()
    assert "20 of 30 benchmark images are in the corpus" in told.out
    assert "4 images of the corpus cannot be read" in told.err
    assert main([*words, "--json", "--part", "two"]) == 1
    assert json.loads(capsys.readouterr().out)["parts"]["benchmark"]["leaked"] == 5


def test_a_corpus_without_the_benchmark_passes(world: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number in range(5):
        (corpus / f"{number}.jpg").write_bytes(jpeg(picture(5000 + number)))
    found = curation.leaks(world / "manifest", corpus=corpus, photos=world / "photos")
    assert not found.leaked
    found.save(tmp_path / "out")
    assert "No pairs found" in (tmp_path / "out" / "leaks.html").read_text()


@real_files("coco_table")
def check_photos_of_coco(shared: Path) -> None:
    paths = sorted((shared / "data" / "coco" / "mini" / "val2017").rglob("*.jpg"))[:24]
    codes = [fingerprints(pictures_of(path.read_bytes()), variants=True).codes[0] for path in paths]
    known = np.concatenate(codes)
    for number, path in enumerate(paths):
        shown = pictures_of(path.read_bytes())[0]
        for alter in ALTERATIONS.values():
            asked = fingerprints(pictures_of(alter(shown, path.name))).codes[:, 0]
            assert {place // len(VARIANTS) for _, place, _ in near_codes(asked, known, 64, 12)} == {number}
