"""Time and memory of the steps against the size of what they read: peak memory must not grow with it."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from curation.engines.running import EngineName, run_step
from curation.engines.step import Step
from curation.errors import EncoderError
from curation.figure_style import MARKERS, SERIES, add_key, save_figure, small_multiples
from curation.leaks.run import leaks
from curation.similarity.embed import EmbedPhotos, embed_corpus
from curation.similarity.embeddings import EncoderIdentity, Vectors
from curation.similarity.encoder import ColourEncoder, Prepared
from curation.similarity.near_duplicates import HashPhotos
from curation.sources.corpus import corpus_blocks
from curation.sources.presence import presence
from curation.storage import make_folder, replacing
from tests.benchmarks.measured import measured
from tests.benchmarks.own_process import Spent, spent_by
from tests.leaks.leak_world import copies_of, write_benchmark, write_tar

GROWTH = 1.2
"""Peak memory at a size, over that at a tenth of it."""
DIMENSION = 32
PHOTOS = 300
SAME = 200_000
_BOXES, _CHUNK = 9, 1_000_000
_SHARD = 8192
_GROUP = 100_000
"""Rows of a row group of Parquet: a worker holds one of them."""
SIZES = {
    "image table": (10_000, 100_000, 1_000_000),
    "box CSV": (10_000, 100_000, 1_000_000, 10_000_000),
    "detections": (10_000, 100_000, 1_000_000, 10_000_000),
    "embeddings": (10_000, 100_000, 1_000_000),
}
COLUMNS = ("input", "rows", "seconds", "core_seconds", "peak_gib")

_TIMED = """
from curation.engines.running import run_step
from tempfile import mkdtemp
out = Path(mkdtemp(dir=folder.parent)) / "out"
began = clocks()
{work}
spent = clocks() - began
"""
_WORK = {
    "image table": """
from tests.benchmarks.scale import CountPaths
from curation.sources.corpus import corpus_blocks
count = run_step(CountPaths(), corpus_blocks(folder / "t.parquet"), out=out, workers=1).rows
""",
    "box CSV": """
from curation.sources.presence import presence
count = sum(presence(folder / "t.csv", out=out, workers=1).boxes.values())
""",
    "detections": """
from curation.sources.presence import presence
count = sum(presence(folder / "t.parquet", out=out, workers=1).boxes.values())
""",
    "embeddings": """
from curation.similarity.neighbors import nearest_in_corpus
from tests.benchmarks.scale import queries
near, _ = nearest_in_corpus(queries(), folder / "shards", 10, workers=1)
from curation.engines.shards import open_shards
count = open_shards(folder / "shards").rows
""",
    "hash": """
from curation.similarity.near_duplicates import hash_photos
count = len(hash_photos(folder / "photos", workers=1, out=out).names)
""",
    "embed": """
from curation.similarity.from_files import embed
count = embed(corpus=folder / "photos", out=out, workers=1).result.embedded
""",
}


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement, and write ``scale.csv`` and a figure.

    Each run is a process of its own with one worker, which is the process itself: its peak memory is the worker's and
    the driver's together, and its seconds are those of one core.
    """
    rows: list[dict[str, Any]] = []
    table: list[tuple[str, int, float, float, float]] = []
    for name, sizes in SIZES.items():
        spent = {size: _spent(name, size, out / "scale" / f"{name} {size}".replace(" ", "-")) for size in sizes}
        table += [(name, size, one.seconds, one.cores, one.gib) for size, one in spent.items()]
        largest, tenth = spent[sizes[-1]], spent[sizes[-2]]
        rows += [
            measured(f"{name}: peak memory at {sizes[-1]:,} / at {sizes[-2]:,}", largest.gib / tenth.gib, most=GROWTH),
            measured(f"{name}: peak memory at {sizes[-1]:,}", largest.gib, "GiB"),
            measured(f"{name}: rows of a core-second", (sizes[-1] - sizes[-2]) / (largest.cores - tenth.cores), "1/s"),
        ]
    folder = out / "scale" / "rates"
    _photos(folder / "photos")
    for name in ("hash", "embed"):
        spent_on = spent_by(_TIMED.format(work=_WORK[name]), folder)
        assert spent_on.count == PHOTOS
        rows.append(measured(f"{name}: photos of 640 x 480 of a core-second", PHOTOS / spent_on.cores, "1/s"))
    rows += same_digests(out / "scale")
    save_figure(lambda: _figure(table), out / "scale", COLUMNS, table)
    return rows


def same_digests(folder: Path) -> list[dict[str, Any]]:
    """Return whether processes and Ray give one digest: 200,000 boxes scanned, photos hashed, embedded, checked."""
    make_folder(folder / "same")
    shutil.rmtree(folder / "same" / "benchmark", ignore_errors=True)
    _box_csv(folder / "same", SAME)
    _tiny_photos(folder / "same", SAME)
    _, photos = write_benchmark(folder / "same" / "benchmark", 200)
    copies = sorted(copies_of(photos).items())
    write_tar(folder / "same" / "copies.tar", copies)
    recipe = Pixels()
    works: dict[str, Callable[[Path, EngineName], list[str]]] = {
        "presence scan of 200,000 boxes": lambda out, engine: [
            presence(folder / "same" / "t.csv", out=out, engine=engine).shards.digest
        ],
        "hashes of 200,000 photos": lambda out, engine: [
            run_step(HashPhotos(), corpus_blocks(folder / "same"), out=out, engine=engine).digest
        ],
        "vectors of 200,000 photos": lambda out, engine: [
            embed_corpus(folder / "same", recipe, out, encoder=recipe.open(), engine=engine).digest
        ],
        "leak check of 200,000 photos": lambda out, engine: [
            leaks(
                folder / "same" / "benchmark" / "manifest",
                corpus=folder / "same",
                photos=folder / "same" / "benchmark" / "photos",
                engine=engine,
                evidence=out,
            ).data["inputs"]["corpus"]["evidence"]["sha256"]
        ],
    }
    engines: tuple[EngineName, ...] = ("local", "ray")
    found = {}
    for name, work in works.items():
        digests = [work(folder / "same" / f"{name} {engine}", engine) for engine in engines]
        found[name] = digests[0] == digests[1] != []
    return [measured(f"{name}: equal digests", float(equal), "yes", least=1) for name, equal in found.items()]


@dataclass(frozen=True)
class Pixels:
    """An encoder of what a photo's pixels are, and its own recipe: it costs nothing beside decoding."""

    identity: ClassVar = EncoderIdentity("pixels-1", "none", "RGB, box 8 x 8", "float32")
    dimension: ClassVar = 192

    def open(self) -> Pixels:
        return self

    def prepare(self, image: Image.Image) -> Prepared:
        return np.asarray(image.convert("RGB").resize((8, 8)), np.float32).ravel() / np.float32(256)

    def encode_prepared(self, batch: Sequence[Prepared]) -> Vectors:
        return np.stack(batch)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        raise EncoderError("Pixels know no words", found=f"{len(texts)} texts")


def _tiny_photos(folder: Path, size: int) -> None:
    for shard, start in enumerate(range(0, size, 10_000)):
        path = folder / f"t{shard}.tar"
        if path.exists():
            continue
        pixels = np.random.default_rng(shard).integers(0, 256, (10_000, 8, 8, 3), dtype=np.uint8)
        with replacing(path) as partial, tarfile.open(partial, "w") as archive:
            for number, one in enumerate(pixels, start=start):
                stream = io.BytesIO()
                Image.fromarray(one).save(stream, "PNG")
                member = tarfile.TarInfo(f"{number:06d}.png")
                member.size = stream.tell()
                stream.seek(0)
                archive.addfile(member, stream)


def _spent(name: str, size: int, folder: Path) -> Spent:
    make_folder(folder)
    _MAKERS[name](folder, size)
    spent = spent_by(_TIMED.format(work=_WORK[name]), folder)
    assert spent.count == size, (name, spent.count, size)
    return spent


def _figure(table: list[tuple[str, int, float, float, float]]) -> Any:
    figure, axes = small_multiples(2, height=2.4)
    labels = ("core-seconds, one worker", "peak memory, GiB")
    for axis, column, label in zip(axes, (3, 4), labels, strict=True):
        for number, name in enumerate(SIZES):
            points = [(row[1], row[column]) for row in table if row[0] == name]
            axis.plot(*zip(*points, strict=True), marker=MARKERS[number], color=SERIES[number], label=name)
        axis.set(xscale="log", xlabel="rows", ylabel=label)
    axes[0].set_yscale("log")
    axes[1].set_ylim(bottom=0)
    add_key(figure, axes)
    return figure


def _image_table(folder: Path, size: int) -> None:
    import pyarrow

    def batch(start: int, stop: int) -> Any:
        numbers = range(start, stop)
        paths = [f"part-{number // 10_000:05d}/{number:09d}.jpg" for number in numbers]
        return pyarrow.table({"id": [f"{number:09d}" for number in numbers], "path": paths})

    _parquet(folder / "t.parquet", size, batch)


def _detections(folder: Path, size: int) -> None:
    import pyarrow

    def batch(start: int, stop: int) -> Any:
        numbers = np.arange(start, stop)
        scores = (numbers % 997 / 997).astype(np.float32)
        return pyarrow.table({"image_id": numbers // 50, "category_id": numbers * 7919 % 80, "score": scores})

    _parquet(folder / "t.parquet", size, batch)


def _parquet(path: Path, size: int, batch: Callable[[int, int], Any]) -> None:
    from pyarrow import parquet

    if not path.exists():
        with replacing(path) as partial, parquet.ParquetWriter(partial, batch(0, 1).schema) as writer:
            for start in range(0, size, _CHUNK):
                writer.write_table(batch(start, min(start + _CHUNK, size)), row_group_size=_GROUP)


def _box_csv(folder: Path, size: int) -> None:
    path = folder / "t.csv"
    if not path.exists():
        with replacing(path) as partial, partial.open("w") as stream:
            stream.write("ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax\n")
            for start in range(0, size, _CHUNK):
                numbers = range(start, min(start + _CHUNK, size))
                stream.writelines(
                    f"{one // _BOXES:016x},xclick,/m/0{one * 7919 % 601:03d},1,0.1234,0.5678,0.1234,0.5678\n"
                    for one in numbers
                )


def queries() -> Any:
    """Return 100 unit vectors of the colour encoder's name, which no image of the corpus is."""
    from curation.similarity.embeddings import Embeddings

    vectors = np.random.default_rng(1).standard_normal((100, DIMENSION), np.float32)
    names = tuple(f"query:{number}" for number in range(100))
    return Embeddings(names, vectors, ColourEncoder().identity, names)


@dataclass(frozen=True)
class CountPaths(Step):
    """A step that keeps the paths of a table: what it costs to bring a corpus to the workers, and nothing else."""

    name = "count"
    version = 1

    def __call__(self, table: Any) -> Any:
        return table.select(["id"])


@dataclass(frozen=True)
class _Generated:
    start: int
    stop: int
    key = ""

    @property
    def name(self) -> str:
        return f"{self.start}"

    def tables(self) -> Iterator[Any]:
        yield np.random.default_rng(self.start).standard_normal((self.stop - self.start, DIMENSION), np.float32)


class _Vectors(EmbedPhotos):
    """Vectors that are drawn, in the form of those that are embedded."""

    def __call__(self, table: Any) -> Any:
        import pyarrow

        names = pyarrow.array([f"{number:09d}" for number in range(len(table))])
        offsets = np.arange(len(table) + 1, dtype=np.int64) * DIMENSION
        vectors = pyarrow.LargeListArray.from_arrays(offsets, pyarrow.array(table.ravel()))
        errors = pyarrow.nulls(len(table), pyarrow.string())
        return pyarrow.table({"id": names, "image": names, "error": errors, "vector": vectors})


def _embeddings(folder: Path, size: int) -> None:
    blocks = (_Generated(start, min(start + _SHARD, size)) for start in range(0, size, _SHARD))
    step = _Vectors(None, ColourEncoder().identity.digest, DIMENSION)
    run_step(step, blocks, out=folder / "shards", workers=1)


def _photos(folder: Path) -> None:
    """Photos of 640 x 480 with as much in them as an ordinary one: about 100 kB of JPEG."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(PHOTOS):
        generator = np.random.default_rng(number)
        coarse = Image.fromarray(generator.integers(0, 256, (48, 64, 3), dtype=np.uint8))
        smooth = np.asarray(coarse.resize((640, 480), Image.Resampling.BICUBIC), np.int16)
        noisy = np.clip(smooth + generator.integers(-12, 13, smooth.shape, dtype=np.int16), 0, 255)
        Image.fromarray(noisy.astype(np.uint8)).save(folder / f"{number:03d}.jpg", quality=88)


_MAKERS = {"image table": _image_table, "box CSV": _box_csv, "detections": _detections, "embeddings": _embeddings}
