"""Embedding: photos and texts into a store, by all cores and nothing twice; a corpus of any size into shards."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from curation.core.canonical import sha256_of_bytes
from curation.core.engines.running import EngineName, run_step
from curation.core.engines.shards import Shards, Step
from curation.core.errors import CurationError, DuplicateIdError, EmbeddingError, UsageError, WriteError
from curation.core.ids import ImageId, native_of
from curation.core.writing import write_text
from curation.signals.similarity.embeddings import (
    HEADER,
    EmbeddingStore,
    Row,
    StoreHeader,
    Vectors,
    alone,
    batch_of,
    remove_store,
)
from curation.signals.similarity.encoder import ColourEncoder, Encoder, Prepared, one_core_each, require_finite
from curation.sources.corpus import corpus_blocks, photo_data
from curation.sources.photos import NO_PHOTO, BrokenPhotoError, PhotoFolder, decode_photo, read_photo
from curation.sources.source import Source

if TYPE_CHECKING:
    import pyarrow

BATCH = 32
SHARD = 256
"""Photos in a shard, about: no batch reaches beyond one, and those of two are in memory."""
SECONDS = 5.0
"""After so long, encoded batches are written even before the end of the shard: what a kill costs at most."""
REPORT = "report.json"
"""Beside the store: how many rows it has, and every photo that was left out, with the reason."""
_MOST_THREADS = 16
_LONGEST_TEXT = 1000

Broken = Literal["skip", "refuse"]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A photo that could not be embedded, and why."""

    id: str
    file: str
    reason: str


@dataclass(frozen=True)
class EmbedResult:
    """How many photos or texts one call embedded.

    Attributes
    ----------
    embedded : int
        Rows of the finished store.
    computed, reused : int
        Of these, encoded now and found in the store.
    dropped : int
        Rows dropped from the store: of photos no longer in the list, or of bytes that have changed.
    skipped : tuple of Skipped
        In the order of the list.
    """

    embedded: int
    computed: int
    reused: int
    dropped: int
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Photo:
    """A photo: its image id ``namespace:native``, and its path, None where no photo of the image is available."""

    id: str
    path: Path | None


@dataclass(frozen=True, slots=True)
class Picture:
    """A photo that is embedded: what it is of, and where that is new, the picture as its encoder wants it."""

    row: Row
    prepared: Prepared | None = None


@dataclass(slots=True)
class _Progress:
    """The rows so far."""

    rows: list[Row] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    computed: int = 0

    def skip(self, skipped: Skipped, broken: Broken) -> None:
        """Leave out a photo, or refuse it."""
        if broken == "refuse":
            raise EmbeddingError(
                "A photo cannot be embedded",
                where=f"{skipped.id}: {skipped.file}" if skipped.file else skipped.id,
                found=skipped.reason,
                hint="mend or remove it, or --on-error photos=skip",
            )
        self.skipped.append(skipped)


def embed_photos(
    photos: Sequence[Photo],
    encoder: Encoder,
    folder: Path,
    *,
    batch: int | None = None,
    threads: int | None = None,
    broken: Broken = "skip",
    shard: int = SHARD,
    seconds: float = SECONDS,
) -> EmbedResult:
    """Embed photos into a store, going on where an earlier call was interrupted.

    Every file is read and its digest taken, every time: that shows whether it has changed. Only what the store
    does not hold is decoded and encoded. Batches never reach beyond a shard, skip what the store holds, and only whole
    batches are written before a shard's end, so an interrupted store that is resumed has the bytes of one made in one
    go, with any number of threads. Another batch size may change the last bits of a vector; a store keeps to one.

    A store that this call began and cannot finish because of an error in the input is removed; one that was there
    before stays as it was, and so does what a kill or Ctrl-C interrupted.

    Raises
    ------
    EmbeddingError
        The store is of something else; a photo is broken and `broken` is ``refuse``; or nothing could be embedded.
    EncoderError
        A vector is not finite.
    """
    from tqdm import tqdm

    batch = batch or batch_of(folder) or BATCH
    header = StoreHeader(kind="images", encoder=encoder.identity, dimension=encoder.dimension, batch=batch)
    pool = ThreadPoolExecutor(threads or usual_threads())
    with (
        _begun(folder, header) as store,
        quiet(),
        tqdm(total=len(photos), desc="images", unit=" images", disable=None) as bar,
        one_core_each(encoder) as side_by_side,
        ExitStack() as ended,
    ):
        # Threads stop as soon as the work ends, however it ends.
        ended.callback(pool.shutdown, wait=True, cancel_futures=True)
        before, progress = len(store), _Progress()
        # A whole number of batches in each.
        length = batch * max(1, round(shard / batch))
        shards = (photos[start : start + length] for start in range(0, len(photos), length))

        def prepared() -> Iterator[Picture | Skipped] | None:
            some = next(shards, None)
            return None if some is None else pool.map(lambda photo: _picture(photo, encoder, store), some)

        pictures = prepared()
        while pictures is not None:
            waiting: list[Picture] = []
            for done in pictures:
                if isinstance(done, Skipped):
                    progress.skip(done, broken)
                else:
                    progress.rows.append(done.row)
                    waiting += [] if done.prepared is None else [done]
                bar.update()
            batches = [waiting[start : start + batch] for start in range(0, len(waiting), batch)]
            inputs = ([picture.prepared for picture in some if picture.prepared is not None] for some in batches)
            vectors = (pool.map if side_by_side else map)(encoder.encode_prepared, inputs)
            # Threads decode the photos of the next shard while this one is encoded.
            pictures = prepared()
            _add(store, batches, vectors, seconds)
            progress.computed += len(waiting)
        return _finished(store, progress, before, "images")


def _add(store: EmbeddingStore, batches: Sequence[list[Picture]], encoded: Iterable[Vectors], seconds: float) -> None:
    """Write the batches of a shard: all at its end, and whole ones before if encoding takes long.

    Only the last batch of a shard may be short, so a resumed run forms the same batches of the rest.
    """
    rows: list[Row] = []
    vectors: list[Vectors] = []
    written = time.monotonic()
    for number, (pictures, found) in enumerate(zip(batches, encoded, strict=True), start=1):
        require_finite(found, [picture.row.id for picture in pictures])
        rows += [picture.row for picture in pictures]
        vectors.append(found)
        if number == len(batches) or time.monotonic() - written >= seconds:
            store.add(rows, np.concatenate(vectors))
            rows, vectors, written = [], [], time.monotonic()


@contextmanager
def _begun(folder: Path, header: StoreHeader) -> Iterator[EmbeddingStore]:
    """Yield the store in a folder; one that is begun here is removed if an error in the input ends the work.

    If the disk is full, finished shards stay, and the same command goes on with them. Another program that embeds into
    the same folder waits until this one is done, and resumes what it left.
    """
    with alone(folder):
        is_new = not (folder / HEADER).is_file()
        store = EmbeddingStore(folder, header)
        try:
            yield store
        except CurationError as error:
            if is_new and not (isinstance(error, WriteError) and store.is_begun):
                remove_store(folder)
            raise


def embed_texts(
    texts: Sequence[str], encoder: Encoder, folder: Path, *, template: str = "{}", batch: int | None = None
) -> EmbedResult:
    """Embed texts as prompts into a store; the ids of its rows are the texts as given.

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
    from tqdm import tqdm

    _check_texts(texts, template)
    prompts = [template.replace("{}", text) for text in texts]
    rows = [Row(text, sha256_of_bytes(prompt.encode())) for text, prompt in zip(texts, prompts, strict=True)]
    # Asked before a folder is made: an encoder may have no text tower.
    encoder.encode_texts(prompts[:1])
    batch = batch or batch_of(folder) or BATCH
    header = StoreHeader(
        kind="texts", encoder=encoder.identity, dimension=encoder.dimension, batch=batch, template=template
    )
    with _begun(folder, header) as store:
        before = len(store)
        new = [index for index, row in enumerate(rows) if row not in store]
        for start in tqdm(range(0, len(new), batch), desc="texts", unit=" batches", disable=None):
            chosen = new[start : start + batch]
            vectors = encoder.encode_texts([prompts[index] for index in chosen])
            require_finite(vectors, [texts[index] for index in chosen])
            store.add([rows[index] for index in chosen], vectors)
        return _finished(store, _Progress(rows, computed=len(new)), before, "texts")


def _finished(store: EmbeddingStore, progress: _Progress, before: int, kind: str) -> EmbedResult:
    """Join a store of what was embedded, write its report, and return what became of them."""
    rows, computed = progress.rows, progress.computed
    if not rows:
        reasons = Counter(skipped.reason for skipped in progress.skipped).most_common(1)
        raise EmbeddingError(
            f"None of the {kind} could be embedded",
            where=progress.skipped[0].file if progress.skipped else None,
            found=f"{reasons[0][1]} times: {reasons[0][0]}" if reasons else f"no {kind}",
        )
    store.finish(rows)
    reused = len(rows) - computed
    report = {"embedded": len(rows), "skipped": [asdict(skipped) for skipped in progress.skipped]}
    write_text(store.folder / REPORT, json.dumps(report, indent=1) + "\n", guarded=False)
    return EmbedResult(len(rows), computed, reused, before - reused, tuple(progress.skipped))


def _picture(photo: Photo, encoder: Encoder, known: Container[Row]) -> Picture | Skipped:
    if photo.path is None:
        return Skipped(photo.id, "", NO_PHOTO)
    try:
        return picture_of(photo.id, read_photo(photo.path), encoder, known)
    except BrokenPhotoError as error:
        return Skipped(photo.id, str(photo.path), str(error))


def picture_of(name: str, data: bytes, encoder: Encoder, known: Container[Row] = ()) -> Picture:
    """Return the picture of a photo: a known row as it is, a new one prepared; a broken one is a `BrokenPhotoError`."""
    row = Row(name, sha256_of_bytes(data))
    return Picture(row, None if row in known else encoder.prepare(decode_photo(data)))


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


def usual_threads() -> int:
    """Return how many threads read, decode and encode: one a core that this process may use, at most 16."""
    own = getattr(os, "sched_getaffinity", None)
    return min(_MOST_THREADS, len(own(0)) if own else os.cpu_count() or 1)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence Pillow's warnings of large or odd pictures, for all threads: what matters is refused or counted."""
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
    _require_unique(photo.id for photo in photos)
    return photos


def photos_of_folder(folder: PhotoFolder, namespace: str) -> list[Photo]:
    """Return the photos below a folder by path; the native id is the path below it without its suffix.

    Raises
    ------
    DuplicateIdError
        Two photos differ in their suffix only.
    EmbeddingError
        There is no photo.
    """
    root = folder.folder.absolute()
    photos = []
    for path in folder.paths:
        inside = PurePosixPath(path.relative_to(root).as_posix())
        photos.append(Photo(str(ImageId(namespace, native_of(str(inside.with_suffix("")), namespace))), path))
    if not photos:
        raise EmbeddingError("The folder holds no photos", where=str(folder.folder))
    _require_unique(photo.id for photo in photos)
    return photos


def _require_unique(ids: Iterable[str]) -> None:
    counts = Counter(ids)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise DuplicateIdError(
            "Two photos have the same id",
            where=repeated[0],
            found=f"{len(repeated)} ids more than once",
            hint="give each dataset once, under a name of its own",
        )


@dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """What makes the vectors.

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
        """Return the encoder; without a model the one that needs no weights."""
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


@lru_cache(maxsize=1)
def _encoder(recipe: EncoderOptions) -> Encoder:
    return recipe.open()


@dataclass(frozen=True)
class EmbedPhotos(Step):
    """Vectors of the photos of a table.

    Attributes
    ----------
    recipe : EncoderOptions
    encoder : str
        Digest of the encoder's identity: what the output is known by.
    dimension : int
    batch : int
        Photos encoded at a time.
    """

    name = "embed"
    version = 2
    recipe: EncoderOptions = field(repr=False)
    encoder: str
    dimension: int
    batch: int = BATCH

    @property
    def parameters(self) -> dict[str, Any]:
        """What the vectors depend on: paths of weights, say, are not among it."""
        return {"encoder": self.encoder, "batch": self.batch}

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return a row for each photo: id, image (digest of the file), vector, error."""
        import pyarrow

        encoder = _encoder(self.recipe)
        rows: list[tuple[str, str | None, str | None]] = []
        waiting: list[Picture] = []
        vectors = [np.empty((0, self.dimension), np.float32)]
        with quiet(), one_core_each(encoder):
            for name, data in photo_data(table):
                try:
                    if isinstance(data, BrokenPhotoError):
                        raise data
                    waiting.append(picture_of(name, data, encoder))
                except BrokenPhotoError as error:
                    rows.append((name, None, str(error)))
                    continue
                rows.append((name, waiting[-1].row.image, None))
                if len(waiting) == self.batch:
                    vectors.append(_encoded(encoder, waiting))
                    waiting.clear()
            if waiting:
                vectors.append(_encoded(encoder, waiting))
        columns = zip(*rows, strict=True) if rows else [()] * 3
        ids, images, errors = (pyarrow.array(column, pyarrow.string()) for column in columns)
        found = np.array([why is None for _, _, why in rows], bool)
        offsets = np.concatenate([[0], np.cumsum(found * self.dimension)]).astype(np.int64)
        values = pyarrow.array(np.concatenate(vectors).ravel())
        lists = pyarrow.LargeListArray.from_arrays(offsets, values, mask=pyarrow.array(~found))
        return pyarrow.table({"id": ids, "image": images, "vector": lists, "error": errors})


def _encoded(encoder: Encoder, pictures: Sequence[Picture]) -> Vectors:
    vectors = encoder.encode_prepared([picture.prepared for picture in pictures if picture.prepared is not None])
    require_finite(vectors, [picture.row.id for picture in pictures])
    return vectors


def embed_corpus(
    corpus: str | Path,
    recipe: EncoderOptions,
    out: Path,
    *,
    encoder: Encoder,
    batch: int | None = None,
    engine: EngineName = "local",
    workers: int | None = None,
    shard: str | None = None,
) -> Shards:
    """Embed the photos of a corpus of any size into shards with the columns that `EmbedPhotos` returns.

    Parameters
    ----------
    corpus : str or Path
        See `curation.sources.corpus.corpus_blocks`.
    out, engine, workers, shard
        See `curation.core.engines.running.run_step`.
    """
    step = EmbedPhotos(recipe, encoder.identity.digest, encoder.dimension, batch or BATCH)
    return run_step(step, corpus_blocks(corpus), out=out, engine=engine, workers=workers, shard=shard)
