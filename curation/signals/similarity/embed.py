"""Embedding: photos and texts as vectors of an encoder, in a store that resumes."""

from __future__ import annotations

import json
import warnings
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np

from curation.core.arguments import Workers, checked
from curation.core.canonical import sha256_of_bytes, sha256_of_lines
from curation.core.engines.running import EngineName, cores, run_step
from curation.core.engines.shards import Block, Shards, Step
from curation.core.errors import CurationWarning, DuplicateIdError, EmbeddingError, UsageError
from curation.core.ids import ImageId, native_of
from curation.core.reading import filled_lines, read_plain
from curation.core.wording import counted
from curation.core.writing import write_text
from curation.signals.similarity.embeddings import EncoderIdentity, StoreHeader, Vectors
from curation.signals.similarity.encoder import ColourEncoder, Encoder, Prepared, one_core_each, require_finite
from curation.sources.corpus import corpus_blocks, listed_blocks, photo_data
from curation.sources.photos import NO_PHOTO, BrokenPhotoError, PhotoFolder, decode_photo
from curation.sources.source import Source
from curation.sources.source_specs import Reading, Sources, named_slots

if TYPE_CHECKING:
    import pyarrow

BATCH = 32
BLOCK = 256
"""Photos in a shard: the most work that a kill can lose."""
REPORT = "report.json"
"""In the store: its number of rows, and each photo that was left out, with the reason."""
_LONGEST_TEXT = 1000
_SHOWN = 5
NOTHING: Mapping[str, Any] = {}

Broken = Literal["skip", "refuse"]


@dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """Options of the encoder.

    Attributes
    ----------
    encoder
        histograms of colours and edges: no weights, no torch, no texts (the default without --model)
    model
        of open_clip: a name such as ViT-B-32, local-dir:DIR, hf-hub:ORG/NAME
    pretrained
        weights: a tag of open_clip, or a file
    random_weights
        no weights: for tests and for measuring speed
    embedding
        projected: the space of images and texts; pooled: the class token before projection, as in
        FindMeIfYouCan
    device
        where to compute (auto: on a GPU where there is one)
    precision
        auto: float32 on a CPU, float16 on a GPU; images and texts to be compared need the same
    """

    encoder: Literal["colour"] | None = None
    model: Annotated[str | None, "NAME"] = None
    pretrained: Annotated[str, "TAG|FILE"] = ""
    random_weights: Annotated[int | None, "SEED"] = None
    embedding: Literal["projected", "pooled"] = "projected"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "float32", "float16", "bfloat16"] = "auto"

    def check(self) -> None:
        """Refuse two encoders, and options of a model without --model."""
        if self.encoder and self.model:
            raise UsageError(
                "Two encoders given", expected="--model NAME --pretrained TAG_OR_FILE, or --encoder colour"
            )
        for name in ("pretrained", "random_weights", "embedding", "precision"):
            if not self.model and getattr(self, name) not in ("", None, "projected", "auto"):
                raise UsageError(
                    f"{'--' if name == 'pretrained' else '--set '}{name} requires --model", where="--encoder colour"
                )

    def open(self) -> Encoder:
        """Return the encoder; without a model, the encoder that needs no weights."""
        if not self.model:
            return ColourEncoder()
        from curation.signals.similarity.open_clip import open_clip_encoder

        return open_clip_encoder(
            self.model,
            self.pretrained,
            random_weights=self.random_weights,
            embedding=self.embedding,
            device=self.device,
            precision=self.precision,
        )


class Photo(NamedTuple):
    """A photo: its image id ``namespace:native``, and its path, None if no photo of the image is available."""

    id: str
    path: Path | None


@lru_cache(maxsize=1)
def _opened(recipe: EncoderOptions) -> Encoder:
    return recipe.open()


class _Picture(NamedTuple):
    id: str
    image: str | None = None
    prepared: Prepared | None = None
    error: str | None = None


@dataclass(frozen=True, eq=False)
class _Embed(Step):
    name: ClassVar[str] = "embed"
    version: ClassVar[int] = 3
    recipe: EncoderOptions
    header: StoreHeader

    @property
    def parameters(self) -> dict[str, Any]:
        """The header: all parameters that determine the vectors."""
        parameters: dict[str, Any] = msgspec.to_builtins(self.header)
        return parameters


@dataclass(frozen=True, eq=False)
class EmbedPhotos(_Embed):
    """Vectors of the photos of a table.

    Attributes
    ----------
    recipe : EncoderOptions
    header : StoreHeader
    threads : int
        Threads that decode and, where the encoder allows it, encode.
    broken : {"skip", "refuse"}
    """

    threads: int = 1
    broken: Broken = "skip"

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return a row for each photo: id, image (digest of the file), vector, error."""
        encoder, batch = _opened(self.recipe), self.header.batch
        rows: list[tuple[str, str | None, str | None]] = []
        vectors: list[Vectors | Future[Vectors]] = []
        waiting: list[_Picture] = []
        with quiet(), one_core_each(encoder) as side_by_side, ThreadPoolExecutor(self.threads) as pool:
            for picture in self._pictures(pool, table, encoder):
                rows.append((picture.id, picture.image, picture.error))
                waiting += [] if picture.prepared is None else [picture]
                if len(waiting) == batch:
                    vectors.append(
                        pool.submit(_encoded, encoder, waiting) if side_by_side else _encoded(encoder, waiting)
                    )
                    waiting = []
            if waiting:
                vectors.append(_encoded(encoder, waiting))
            encoded = [part.result() if isinstance(part, Future) else part for part in vectors]
        return _table(rows, encoded, self.header.dimension)

    def _pictures(self, pool: ThreadPoolExecutor, table: pyarrow.Table, encoder: Encoder) -> Iterator[_Picture]:
        """Yield the pictures of a table in order, while threads decode the next ones."""
        running: deque[Future[_Picture]] = deque()
        for name, data in photo_data(table):
            running.append(pool.submit(self._picture, name, data, encoder))
            if len(running) > 2 * self.header.batch:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()

    def _picture(self, name: str, data: bytes | BrokenPhotoError, encoder: Encoder) -> _Picture:
        try:
            if isinstance(data, BrokenPhotoError):
                raise data
            return _Picture(name, sha256_of_bytes(data), encoder.prepare(decode_photo(data)))
        except BrokenPhotoError as error:
            if self.broken == "refuse":
                raise _refused(name, str(error)) from None
            return _Picture(name, error=str(error))


def _refused(name: str, reason: str) -> EmbeddingError:
    return EmbeddingError(
        "A photo cannot be embedded", where=name, found=reason, hint="replace or remove it, or --on-error photos=skip"
    )


def _encoded(encoder: Encoder, pictures: Sequence[_Picture]) -> Vectors:
    vectors = encoder.encode_prepared([picture.prepared for picture in pictures if picture.prepared is not None])
    require_finite(vectors, [picture.id for picture in pictures])
    return vectors


def _table(rows: Sequence[tuple[Any, Any, str | None]], vectors: Sequence[Vectors], dimension: int) -> pyarrow.Table:
    """Return rows of id, image and error with the vectors of those without an error."""
    import pyarrow

    columns = zip(*rows, strict=True) if rows else [()] * 3
    ids, images, errors = (pyarrow.array(column, pyarrow.string()) for column in columns)
    has_vector = np.array([error is None for _, _, error in rows], bool)
    offsets = np.concatenate([[0], np.cumsum(has_vector * dimension)]).astype(np.int64)
    values = pyarrow.array(np.concatenate([np.empty((0, dimension), np.float32), *vectors]).ravel())
    lists = pyarrow.LargeListArray.from_arrays(offsets, values, mask=pyarrow.array(~has_vector))
    return pyarrow.table({"id": ids, "image": images, "vector": lists, "error": errors})


@dataclass(frozen=True, eq=False)
class EmbedTexts(_Embed):
    """Vectors of the texts of a table, as prompts of the header's template."""

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return a row for each text: id (the text), image (digest of the prompt), vector, error."""
        encoder, texts = _opened(self.recipe), table.column("id").to_pylist()
        prompts = [self.header.template.replace("{}", text) for text in texts]
        vectors = [
            encoder.encode_texts(prompts[start : start + self.header.batch])
            for start in range(0, len(prompts), self.header.batch)
        ]
        require_finite(np.concatenate(vectors), texts)
        rows = [(text, sha256_of_bytes(prompt.encode()), None) for text, prompt in zip(texts, prompts, strict=True)]
        return _table(rows, vectors, self.header.dimension)


@dataclass(frozen=True)
class _Texts:
    texts: tuple[str, ...]
    name: str = "texts"

    @property
    def key(self) -> str:
        return sha256_of_lines(self.texts)

    def tables(self) -> Iterator[pyarrow.Table]:
        import pyarrow

        yield pyarrow.table({"id": pyarrow.array(self.texts, pyarrow.string())})


@dataclass(frozen=True, slots=True)
class Embedded:
    """The result of an embedding: encoder, store and counts.

    Attributes
    ----------
    store : Path
    kind : str
        ``images``, ``texts``, or ``shard I/N``.
    encoder : EncoderIdentity
    dimension : int
    embedded, computed, reused : int
        Vectors of the store; of these, encoded now and found in the store.
    left_out : mapping of str to int
        Photos without a vector, by reason.
    """

    store: Path
    kind: str
    encoder: EncoderIdentity
    dimension: int
    embedded: int
    computed: int
    reused: int
    left_out: Mapping[str, int] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "store": str(self.store),
            "kind": self.kind,
            "encoder": asdict(self.encoder) | {"digest": self.encoder.digest},
            "dimension": self.dimension,
            "embedded": self.embedded,
            "computed": self.computed,
            "reused": self.reused,
            "skipped": dict(sorted(self.left_out.items())),
        }


def embed_photos(
    photos: Sequence[Photo],
    recipe: EncoderOptions,
    folder: Path,
    *,
    batch: int = BATCH,
    workers: int | None = None,
    broken: Broken = "skip",
) -> Embedded:
    """Embed photos into a store; continue an earlier call that was interrupted.

    Blocks of 256 photos are shards: a block whose ids and files (size and time) are unchanged is not computed again.

    Raises
    ------
    EmbeddingError
        A photo is broken and `broken` is ``refuse``; or nothing could be embedded.
    EngineError
        The folder holds something else, or a block fails.
    """
    missing = [photo.id for photo in photos if photo.path is None]
    if missing and broken == "refuse":
        raise _refused(missing[0], NO_PHOTO)
    blocks = listed_blocks(((photo.id, photo.path) for photo in photos if photo.path is not None), BLOCK)
    return _embedded(blocks, recipe, folder, batch=batch, workers=workers, broken=broken, missing=missing)


def embed_corpus(
    corpus: str | Path,
    recipe: EncoderOptions,
    folder: Path,
    *,
    batch: int = BATCH,
    engine: EngineName = "local",
    workers: int | None = None,
    shard: str | None = None,
    broken: Broken = "skip",
) -> Embedded:
    """Embed the photos of a corpus of any size into a store (see `embed_photos`).

    Parameters
    ----------
    corpus : str or Path
        See `curation.sources.corpus.corpus_blocks`.
    engine, workers, shard
        See `curation.core.engines.running.run_step`.
    """
    blocks = corpus_blocks(corpus)
    return _embedded(blocks, recipe, folder, batch=batch, engine=engine, workers=workers, shard=shard, broken=broken)


def _embedded(
    blocks: Iterable[Block],
    recipe: EncoderOptions,
    folder: Path,
    *,
    batch: int,
    engine: EngineName = "local",
    workers: int | None = None,
    shard: str | None = None,
    broken: Broken = "skip",
    missing: Sequence[str] = (),
) -> Embedded:
    encoder = _opened(recipe)
    header = StoreHeader(kind="images", encoder=encoder.identity, dimension=encoder.dimension, batch=batch)
    # One process with an encoder and threads on all cores, or processes with an encoder and one core each.
    is_one_process = engine == "local" and workers in (None, 1)
    step = EmbedPhotos(recipe, header, cores() if is_one_process else 1, broken)
    shards = run_step(step, blocks, out=folder, engine=engine, workers=1 if is_one_process else workers, shard=shard)
    failed = [row for table in shards.tables(["id", "error"]) for row in table.to_pylist() if row["error"]]
    skipped = [*((name, NO_PHOTO) for name in missing), *((row["id"], row["error"]) for row in failed)]
    left_out = Counter(reason for _, reason in skipped)
    kind = f"shard {shard}" if shard else "images"
    result = _result(shards, header, kind, shards.rows - len(failed), left_out)
    if not shard:
        if not result.embedded:
            reasons = [f"{count} times: {reason}" for reason, count in left_out.most_common(1)]
            raise EmbeddingError("None of the images could be embedded", found=reasons[0] if reasons else "no images")
        report = {"embedded": result.embedded, "skipped": [{"id": name, "reason": why} for name, why in skipped]}
        write_text(folder / REPORT, json.dumps(report, indent=1) + "\n", guarded=False)
    return result


def _result(
    shards: Shards, header: StoreHeader, kind: str, vectors: int, left_out: Mapping[str, int] = NOTHING
) -> Embedded:
    computed = min(vectors, shards.computed_rows)
    return Embedded(
        shards.folder, kind, header.encoder, header.dimension, vectors, computed, vectors - computed, left_out
    )


def embed_texts(
    texts: Sequence[str], recipe: EncoderOptions, folder: Path, *, template: str = "{}", batch: int = BATCH
) -> Embedded:
    """Embed texts as prompts into a store; the ids of its rows are the texts.

    Parameters
    ----------
    texts : sequence of str
        Unique, not empty, at most 1,000 characters each; usually names of classes.
    template : str
        The prompt, with ``{}`` once for the text: ``a photo of a {}``.

    Raises
    ------
    EncoderError
        The encoder has no text tower, or a prompt is longer than it reads.
    EmbeddingError, DuplicateIdError
        A text or the template is malformed; a text is repeated.
    """
    _check_texts(texts, template)
    encoder = _opened(recipe)
    # Checked before a folder is created: an encoder may have no text tower.
    encoder.encode_texts([template.replace("{}", texts[0])])
    header = StoreHeader(
        kind="texts", encoder=encoder.identity, dimension=encoder.dimension, batch=batch, template=template
    )
    shards = run_step(EmbedTexts(recipe, header), [_Texts(tuple(texts))], out=folder)
    return _result(shards, header, "texts", len(texts))


def _check_texts(texts: Sequence[str], template: str) -> None:
    if template.count("{}") != 1:
        raise EmbeddingError("A template needs {} once, for the text", found=repr(template[:100]))
    if not texts:
        raise EmbeddingError("No text to embed")
    seen: set[str] = set()
    for number, text in enumerate(texts, start=1):
        if not text.strip() or len(text) > _LONGEST_TEXT or not text.isprintable():
            raise EmbeddingError(
                "A text cannot be a prompt",
                where=f"text {number}",
                expected=f"1 to {_LONGEST_TEXT} printable characters",
                found=f"{len(text)} characters: {text[:60]!a}",
            )
        if text in seen:
            raise DuplicateIdError("Duplicate text", where=f"text {number}: {text[:80]}")
        seen.add(text)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence Pillow's warnings about large or odd pictures in all threads; real problems are refused or counted."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\b")
        yield


def photos_of_sources(sources: Mapping[str, Source], folders: Mapping[str, PhotoFolder]) -> list[Photo]:
    """Return the photos of sources, in the order of the sources and of their files.

    Parameters
    ----------
    folders : mapping of str to PhotoFolder
        By name of source; the one named ``""`` serves every other source.

    Raises
    ------
    EmbeddingError
        No folder of photos was given for a source.
    DuplicateIdError
        Two sources hold the same image.
    """
    photos: list[Photo] = []
    for name, source in sources.items():
        folder = folders.get(name, folders.get(""))
        if folder is None:
            raise EmbeddingError(
                "A source has no folder of photos", where=f"source {name}", hint=f"--photos {name}=DIR"
            )
        names = zip(source.images.file_names.tolist(), source.images.native.tolist(), strict=True)
        photos += [
            Photo(str(image), folder.find((str(file_name), str(native))))
            for image, (file_name, native) in zip(source.image_ids.tolist(), names, strict=True)
        ]
    _require_unique((photo.id for photo in photos), "give each dataset once")
    return photos


def photos_of_folder(folder: PhotoFolder, namespace: str) -> list[Photo]:
    """Return the photos below a folder by path; the native id is the path below it without its suffix.

    Raises
    ------
    DuplicateIdError
        Two photos differ in their suffix only.
    EmbeddingError
        The folder has no photos.
    """
    root = folder.folder.absolute()
    photos = []
    for path in folder.paths:
        inside = PurePosixPath(path.relative_to(root).as_posix())
        photos.append(Photo(str(ImageId(namespace, native_of(str(inside.with_suffix("")), namespace))), path))
    if not photos:
        raise EmbeddingError("The folder holds no photos", where=str(folder.folder))
    _require_unique((photo.id for photo in photos), "rename or remove one of the files: an id has no suffix")
    return photos


def _require_unique(ids: Iterable[str], hint: str) -> None:
    counts = Counter(ids)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise DuplicateIdError(
            "Two photos have the same id", where=repeated[0], found=counted(len(repeated), "repeated id"), hint=hint
        )


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
    batch: Workers = BATCH,
    reading: Reading | None = None,
    engine: EngineName = "local",
    workers: Workers | None = None,
    shard: Annotated[str | None, "I/N"] = None,
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
        photos of any number: a folder, or tar shards
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
        work
    batch
        images encoded at a time
    encoder, reading
        See `EncoderOptions` and `curation.sources.source_specs.Reading`.
    engine
        of --corpus: processes of this machine, or Ray (RAY_ADDRESS names a cluster); the same vectors
    workers
        processes with an encoder and a core each (default: one process with an encoder, and threads on all cores)
    shard
        of --corpus, for a task of an array: every N-th block from the I-th on; after all tasks, the same
        command without --shard makes their shards one result

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
            "Give exactly one input to embed",
            expected="--source NAME=PATH …, --photos DIR, --corpus CORPUS or --texts FILE",
            found=", ".join(f"--{name}" for name in chosen) or "none",
        )
    encoder.check()
    if (shard or engine != "local") and not corpus:
        raise UsageError(
            "--engine and --shard apply only to --corpus", hint=f"--corpus CORPUS in place of --{chosen[0]}"
        )
    if texts:
        return embed_texts(_texts(texts), encoder, out, template=template, batch=batch)
    if corpus is not None:
        made = embed_corpus(
            corpus, encoder, out, batch=batch, engine=engine, workers=workers, shard=shard, broken=broken
        )
    else:
        # Photos are searched for first, so that missing ones are reported before a model is loaded.
        if isinstance(photos, Path) and not sources:
            listed = photos_of_folder(PhotoFolder(photos), namespace)
        else:
            listed = _photos(sources, photos, reading or Reading())
        made = embed_photos(listed, encoder, out, batch=batch, workers=workers, broken=broken)
    for reason, count in Counter(made.left_out).most_common(_SHOWN):
        warnings.warn(f"{count:,} left out: {reason}", CurationWarning, stacklevel=3)
    return made


def _photos(paths: Mapping[str, Any], photos: Mapping[str, Path] | Path, reading: Reading) -> list[Photo]:
    """Return the photos of sources, from the folder given for each, or else from the root of the source."""
    # A local import: loading the readers of all formats would slow the help of a command by 0.04 s.
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
    data = read_plain(path, kind="file of texts")
    lines = filled_lines(data, str(path), UsageError, "The file of texts is not UTF-8")
    return [text for _, text in lines]
