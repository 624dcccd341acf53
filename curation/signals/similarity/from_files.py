"""Similarity from files: embed photos or texts; search and compare stores; find duplicate photos."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from curation.core.arguments import Workers, checked
from curation.core.engines.running import MERGE, EngineName
from curation.core.engines.shards import SUMMARY, Shards, open_shards
from curation.core.errors import CurationWarning, UsageError
from curation.core.reading import read_plain
from curation.core.tables import as_csv
from curation.core.wording import counted
from curation.core.writing import publishing_files, write_text
from curation.signals.similarity.embed import (
    Broken,
    EmbedResult,
    EncoderOptions,
    Photo,
    embed_corpus,
    embed_photos,
    embed_texts,
    photos_of_folder,
    photos_of_sources,
)
from curation.signals.similarity.embeddings import Embeddings, EncoderIdentity, open_embeddings
from curation.signals.similarity.encoder import Encoder
from curation.signals.similarity.near_duplicates import PhotoHashes, alike_photos, hash_photos, look_duplicates
from curation.signals.similarity.neighbors import (
    SAMPLE_RULES,
    SampleRule,
    SetSimilarity,
    nearest_in_corpus,
    reference_statistics,
    sample_rows,
    set_similarity,
)
from curation.sources.photos import PhotoFolder
from curation.sources.source_specs import Reading, Sources, named_slots

_SHOWN = 5
NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Embedded:
    """What was embedded (images, texts, shards), by which encoder, into which store."""

    store: Path
    kind: str
    encoder: EncoderIdentity
    dimension: int
    result: EmbedResult
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Photos of a corpus by the reason why they are not among its vectors."""

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        reasons = self.left_out or Counter(skipped.reason for skipped in self.result.skipped)
        return {
            "store": str(self.store),
            "kind": self.kind,
            "encoder": asdict(self.encoder) | {"digest": self.encoder.digest},
            "dimension": self.dimension,
            "embedded": self.result.embedded,
            "computed": self.result.computed,
            "reused": self.result.reused,
            "dropped": self.result.dropped,
            "skipped": dict(sorted(reasons.items())),
        }


@checked
def embed(
    *,
    out: Annotated[Path, "DIR"],
    sources: Sources = NOTHING,
    photos: Annotated[Mapping[str, Path] | Path, "[NAME=]DIR"] = NOTHING,
    corpus: Annotated[str | Path | None, "CORPUS"] = None,
    namespace: Annotated[str, "NAME"] = "photos",
    texts: Path | None = None,
    template: Annotated[str, "TEXT"] = "a photo of a {}",
    encoder: EncoderOptions | None = None,
    broken: Broken = "skip",
    batch: Workers | None = None,
    threads: Workers | None = None,
    reading: Reading | None = None,
    engine: EngineName = "local",
    workers: Workers | None = None,
    shard: Annotated[str | None, "I/N|merge"] = None,
) -> Embedded:
    """Embed photos or texts as vectors of an encoder, kept in a store that resumes.

    Parameters
    ----------
    sources
        NAME begins with its data set: coco, coco-val2017
    photos
        the photos of a source, or of all (default: the source's own root; repeatable); without a source every photo
        below a folder, without annotations
    corpus
        photos of any number, into shards of Parquet instead of a store: a folder or tar shards; a path or an address
    namespace
        of the ids of --photos without a source: NAME:PATH-BELOW-DIR
    texts
        texts, one a line; ids are the texts
    template
        prompt that each text is put into
    out
        the store; an interrupted one is continued
    broken
        photos that are missing or broken: left out, counted and listed in DIR/report.json; or the first ends the
        work, and no new store is left
    batch
        images encoded at a time (32)
    threads
        that read, decode and, on a CPU, encode (one per core)
    encoder, reading
        See `EncoderOptions` and `curation.sources.source_specs.Reading`.
    engine
        of --corpus: processes of this machine, or Ray (RAY_ADDRESS names a cluster); the same vectors
    workers
        of --corpus: processes with an encoder each (one per core)
    shard
        of --corpus, for a task of an array: every N-th block from the I-th on; after all tasks, merge makes the shards
        of them one result

    Raises
    ------
    UsageError
        Nothing or several things are given to embed, or options that do not apply.
    """
    encoder = encoder or EncoderOptions()
    if photos and not sources and not isinstance(photos, Path):
        raise UsageError("--photos NAME=DIR requires --source NAME; for a folder alone: --photos DIR")
    inputs = {"source": sources, "photos": not sources and photos, "corpus": corpus, "texts": texts}
    chosen = [name for name, value in inputs.items() if value]
    if len(chosen) != 1:
        raise UsageError(
            "Give exactly one thing to embed",
            expected="--source NAME=PATH …, --photos DIR, --corpus CORPUS or --texts FILE",
            found=", ".join(f"--{name}" for name in chosen) or "none",
        )
    encoder.check()
    if corpus is not None:
        made = encoder.open()
        shards = embed_corpus(
            corpus, encoder, out, encoder=made, batch=batch, engine=engine, workers=workers, shard=shard
        )
        return _embedded_corpus(shards, made, "shards" if shard in (None, MERGE) else f"shard {shard}")
    if workers or shard or engine != "local":
        hint = "--corpus in place of --photos" if shard or engine != "local" else "--set threads=N"
        raise UsageError("--engine, --workers and --shard apply to --corpus", hint=hint)
    if texts:
        kind, lines = "texts", _texts(texts)
        made = encoder.open()
        result = embed_texts(lines, made, out, template=template, batch=batch)
    else:
        # Photos come first: what is missing shows before a model is loaded.
        if isinstance(photos, Path) and not sources:
            listed = photos_of_folder(PhotoFolder(photos), namespace)
        else:
            listed = _photos(sources, photos, reading or Reading())
        kind, made = "images", encoder.open()
        result = embed_photos(listed, made, out, batch=batch, threads=threads, broken=broken)
    for reason, count in Counter(skipped.reason for skipped in result.skipped).most_common(_SHOWN):
        warnings.warn(f"{count:,} left out: {reason}", CurationWarning, stacklevel=3)
    return Embedded(out, kind, made.identity, made.dimension, result)


def _embedded_corpus(shards: Shards, encoder: Encoder, kind: str) -> Embedded:
    """Return how many vectors shards hold, and why others are missing."""
    reasons = Counter[str]()
    for table in shards.tables(["error"]):
        reasons.update(table.column("error").drop_null().to_pylist())
    vectors = shards.rows - reasons.total()
    computed = min(vectors, shards.computed_rows)
    result = EmbedResult(vectors, computed, vectors - computed, 0)
    return Embedded(shards.folder, kind, encoder.identity, encoder.dimension, result, reasons)


def _photos(paths: Mapping[str, Any], photos: Mapping[str, Path] | Path, reading: Reading) -> list[Photo]:
    """Return the photos of sources, from the folder given for each, or else from the root of the source."""
    # Loaded when it is used: the readers of all formats cost the help of a command 0.04 s.
    from curation.sources.opening import open_slots

    sources = open_slots(paths, named_slots(paths), reading)
    folders = {name: PhotoFolder(path) for name, path in ({"": photos} if isinstance(photos, Path) else photos).items()}
    if strange := [name for name in folders if name and name not in sources]:
        raise UsageError(
            "--photos names an unknown source", where=f"--photos {strange[0][:200]}", expected=", ".join(sources)
        )
    for key, path in paths.items():
        name = key.partition("@")[0]
        if name not in folders and "" not in folders and isinstance(path, str | Path) and Path(path).is_dir():
            folders[name] = PhotoFolder(Path(path))
    return photos_of_sources(sources, folders)


def _texts(path: Path) -> list[str]:
    try:
        lines = read_plain(path, kind="file of texts").decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError("The file of texts is not UTF-8", where=str(path), found=str(error)[:200]) from None
    return [line.strip() for line in lines if line.strip()]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of images, neighbours or duplicates, as rows of a table; and facts about the search."""

    name: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    facts: Mapping[str, Any]

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**self.facts, self.name: [dict(zip(self.columns, row, strict=True)) for row in self.rows]}

    @checked
    def save(self, folder: Path | str) -> list[Path]:
        """Write the table as CSV."""
        return [_write_csv(Path(folder), self.name, self.columns, self.rows)]


@dataclass(frozen=True, slots=True)
class SetComparison:
    """How similar whole sets are to a sample of the references: the similarities of each set, and statistics."""

    sets: Mapping[str, SetSimilarity]
    facts: Mapping[str, Any] = field(repr=False)

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return dict(self.facts)

    @checked
    def save(self, folder: Path | str) -> list[Path]:
        """Write ``similarity.csv``, histograms and ``statistics.json``, together."""
        from curation.signals.similarity.neighbors import similarity_histograms

        folder = Path(folder)
        rows = [
            (name, image, other, score, margin)
            for name, compared in self.sets.items()
            for image, other, score, margin in zip(
                compared.ids, compared.nearest, compared.similarity.tolist(), compared.margin.tolist(), strict=True
            )
        ]
        panel = {"nearest ID image": {name: compared.similarity for name, compared in self.sets.items()}}
        with publishing_files(folder) as new:
            written = [_write_csv(new, "similarity", ("set", "id", "nearest", "similarity", "margin"), rows)]
            written += similarity_histograms(panel, new / "histograms")
            written.append(new / "statistics.json")
            text = json.dumps(self.data(), indent=1, ensure_ascii=False, allow_nan=False)
            write_text(written[-1], text + "\n")
        return [folder / path.name for path in written]


@checked
def neighbors(
    *,
    queries: Annotated[Mapping[str, Path] | Path, "[NAME=]STORE"],
    references: Annotated[Path, "STORE"],
    k: Annotated[int, "K"] = 10,
    workers: Workers | None = None,
    parts: Annotated[Path | None, "DIR"] = None,
    set_similarity: bool = False,
    sample: SampleRule = "hashrank",
    n_train: int | None = None,
) -> Pairs | SetComparison:
    """Return the nearest images of a reference set, or how similar whole sets are to it.

    Parameters
    ----------
    queries
        a store of curation similarity embed; several with --set-similarity
    references
        a store, or the shards that curation similarity embed --corpus wrote
    k
        neighbours per image, the image itself not among them
    workers
        processes (one per core)
    parts
        keep what is found in each part: the same command resumes after an interruption
    set_similarity
        compare whole sets: similarity of each image to its nearest in a sample of the references
    sample
        of the references
    n_train
        training images of the ID set, for --set sample=paper
    """
    paths = {queries.name: queries} if isinstance(queries, Path) else queries
    stores = {name: open_embeddings(path) for name, path in paths.items()}
    if set_similarity:
        if workers or parts:
            raise UsageError("--workers and --resume do not apply to --set-similarity")
        return _sets(stores, open_embeddings(references), sample, n_train)
    if len(stores) > 1:
        raise UsageError("Neighbours are listed for one set", expected="one --queries STORE, or --set-similarity")
    (store,) = stores.values()
    nearest, itself = nearest_in_corpus(store, references, k, workers=workers, out=parts)
    is_corpus = (references / SUMMARY).is_file()
    facts = {
        "queries": len(store),
        "references": open_shards(references).rows if is_corpus else len(open_embeddings(references)),
        "k": k,
        "queries_among_references": itself,
        "encoder": store.encoder.digest,
    }
    rows = [
        (name, rank, *row) for name, near in zip(store.ids, nearest, strict=True) for rank, row in enumerate(near, 1)
    ]
    return Pairs("neighbors", ("id", "rank", "neighbor", "similarity"), rows, facts)


def _sets(stores: Mapping[str, Embeddings], known: Embeddings, rule: SampleRule, n_train: int | None) -> SetComparison:
    sample = known.take(sample_rows(known, rule, n_train=n_train).tolist())
    compared_sets = {name: set_similarity(embeddings, sample) for name, embeddings in stores.items()}
    base = reference_statistics(sample)
    facts = {
        "encoder": known.encoder.digest,
        "sample": {"rule": rule, "meaning": SAMPLE_RULES[rule], "n": len(sample)},
        "reference": asdict(base),
        "sets": {name: compared.statistics() for name, compared in compared_sets.items()},
    }
    return SetComparison(compared_sets, facts)


@checked
def duplicates(
    *,
    images: Annotated[str | Path | None, "CORPUS"] = None,
    against: Annotated[str | Path | None, "CORPUS"] = None,
    distance: Annotated[int, "BITS"] = 4,
    embeddings: Annotated[Path | None, "STORE"] = None,
    against_embeddings: Annotated[Path | None, "STORE"] = None,
    threshold: Annotated[float, "COSINE"] = 0.95,
    hashes: Annotated[Path | None, "DIR"] = None,
    workers: Workers | None = None,
) -> Pairs:
    """Return photos that are the same, or nearly the same, under different names.

    Parameters
    ----------
    images
        photos of a folder, or in tar shards; a path or an address
    against
        only pairs of a photo of --photos and one of this corpus
    distance
        of perceptual hashes (of 64 bits)
    embeddings
        in place of --photos: compare the embeddings of this store of curation similarity embed
    against_embeddings
        the same for --against
    threshold
        of --embeddings
    hashes
        keep what is computed of each photo: the same command resumes after an interruption
    workers
        processes that compute hashes (one per core)
    """
    if (images is None) == (embeddings is None):
        raise UsageError("Nothing to compare", expected="--photos DIR, or --embeddings STORE")
    for option, value, other, needed in (
        ("--against ", against, images, "--photos"),
        ("--embeddings against=", against_embeddings, embeddings, "--embeddings"),
        ("--resume ", hashes, images, "--photos"),
    ):
        if value is not None and other is None:
            raise UsageError(f"{option.rstrip(' =')} requires {needed}", where=f"{option}{value!s:.200}")
    if images is None:
        return _by_look(embeddings or Path(), against_embeddings, threshold)
    corpora = {"images": images} | ({} if against is None else {"against": against})
    hashed = [hash_photos(corpus, workers=workers, out=hashes and hashes / name) for name, corpus in corpora.items()]
    return _by_pixels(hashed, distance)


def _by_pixels(corpora: Sequence[PhotoHashes], distance: int) -> Pairs:
    """Return pairs of equal pixels, and of perceptual hashes that differ in a few bits; of two sets, one of each."""
    first = corpora[0]
    hashes = PhotoHashes(
        tuple(name for corpus in corpora for name in corpus.names),
        tuple(digest for corpus in corpora for digest in corpus.pixels),
        np.concatenate([corpus.perceptual for corpus in corpora]),
        {name: why for corpus in corpora for name, why in corpus.failures.items()},
    )
    unreadable = sum(len(corpus.failures) for corpus in corpora)
    if unreadable:
        name, why = next(iter(hashes.failures.items()))
        warnings.warn(
            f"{counted(unreadable, 'photo')} cannot be read, such as {name}: {why}", CurationWarning, stacklevel=4
        )
    alike = alike_photos(hashes, distance)
    rows: list[tuple[str, str, str, float]] = []
    for i, j, bits, same in zip(
        alike.first.tolist(), alike.second.tolist(), alike.distance.tolist(), alike.same_pixels.tolist(), strict=True
    ):
        if len(corpora) == 1 or i < len(first) <= j:
            how = "same pixels" if same else "perceptual hash, bits"
            rows.append((hashes.names[i], hashes.names[j], how, float(bits)))
    return _duplicates(rows, {"images": len(hashes), "unreadable": unreadable})


def _by_look(store: Path, against: Path | None, threshold: float) -> Pairs:
    embeddings = open_embeddings(store)
    other: Embeddings | None = open_embeddings(against) if against else None
    pairs = look_duplicates(embeddings, other, threshold)
    count = len(embeddings) + (len(other) if other is not None else 0)
    rows = [(first, second, "embedding, cosine", score) for first, second, score in pairs]
    return _duplicates(rows, {"images": count, "encoder": embeddings.encoder.digest, "threshold": threshold})


def _duplicates(rows: Sequence[tuple[Any, ...]], facts: Mapping[str, Any]) -> Pairs:
    return Pairs("duplicates", ("first", "second", "how", "value"), rows, facts)


def _write_csv(folder: Path, stem: str, header: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> Path:
    path = folder / f"{stem}.csv"
    write_text(path, as_csv(header, rows))
    return path
