"""Embedding of photos and texts into a store: all cores decode and encode, and nothing is computed twice."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
import warnings
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np

from curation.canonical import sha256_of_bytes
from curation.errors import CurationError, DuplicateIdError, EmbeddingError, EngineError
from curation.ids import ImageId, native_of
from curation.similarity.embeddings import (
    HEADER,
    EmbeddingStore,
    Row,
    StoreHeader,
    Vectors,
    alone,
    batch_of,
    header_of,
)
from curation.similarity.encoder import Encoder, Prepared, one_core_each, require_finite
from curation.sources.photos import BrokenPhotoError, PhotoFolder, decode_photo, read_photo
from curation.sources.source import Source
from curation.storage import write_text

BATCH = 32
SHARD = 1024
"""Pictures of a shard, about: no batch reaches beyond one."""
SECONDS = 5.0
"""After so long what is encoded is written: what a kill costs at most, beside the batch at work."""
REPORT = "report.json"
"""Beside the store: how many rows it has, and every picture that was left out, with the reason."""
_MOST_THREADS, _HANDFUL = 16, 8
_LONGEST_TEXT = 1000

Broken = Literal["skip", "refuse"]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A picture that could not be embedded, and why."""

    id: str
    file: str
    reason: str


@dataclass(frozen=True)
class EmbedResult:
    """What became of the pictures or texts of one call.

    Attributes
    ----------
    embedded : int
        Rows of the finished store.
    computed, reused : int
        Of these, encoded now and found in the store.
    let_go : int
        Rows of the store before that are of nothing in the list any more, or of bytes that have changed.
    skipped : tuple of Skipped
        In the order of the list.
    """

    embedded: int
    computed: int
    reused: int
    let_go: int
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that is embedded: what it is of, and where that is new, the picture as its encoder wants it."""

    row: Row
    prepared: Prepared | None = None


@dataclass(slots=True)
class Progress:
    """What has become of the pictures so far."""

    rows: list[Row] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    computed: int = 0


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
    """Embed photos or boxes into a store, going on where an earlier call was interrupted.

    Every file is read and its digest taken, every time: that is what tells whether it has changed. Only what the store
    does not hold is decoded and encoded. Batches never reach beyond a shard, what is found in the store takes no place
    in them, and within a shard only whole batches are written, so an interrupted store that is resumed has the bytes of
    one made in one go, with any number of threads and whenever it was written. Another batch size may change the last
    bits of a vector; a store keeps to one.

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

    kind = "boxes" if any(photo.boxes is not None for photo in photos) else "images"
    batch = batch or batch_of(folder) or BATCH
    header = header_of(encoder.identity, encoder.dimension, kind=kind, batch=batch)
    threads = threads or usual_threads()
    with begun(folder, header) as store:
        total = sum(len(photo.pictures) for photo in photos)
        before, progress = len(store), Progress()
        with (
            quiet(),
            tqdm(total=total, desc=kind, unit=f" {kind}", disable=None) as bar,
            one_core_each(encoder) as side_by_side,
            _pool(threads) as pool,
        ):
            work = _Work(encoder, store, seconds, pool, threads if side_by_side else 0)
            pictures = _ahead(photos, encoder, store, pool, threads, 2 * batch)
            for size in shard_sizes(photos, batch, shard):
                waiting: list[Picture] = []
                for _ in range(size):
                    done = next(pictures)
                    sort_out(done, waiting, progress, broken)
                    bar.update(len(done))
                    while len(waiting) >= batch:
                        work.encode(waiting[:batch])
                        del waiting[:batch]
                work.end_shard(waiting)
            work.finish()
            progress.computed = work.computed
        return finished(store, progress, before, kind)


@contextmanager
def _pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Yield threads that stop as soon as the work ends, however it ends."""
    with ThreadPoolExecutor(threads) as pool:
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def begun(folder: Path, header: StoreHeader) -> Iterator[EmbeddingStore]:
    """Yield the store in a folder; one that is begun here goes again if an error in the input ends the work.

    Another program that embeds into the same folder waits until this one is done, and goes on with what it left.
    """
    with alone(folder):
        is_new = not (folder / HEADER).is_file()
        store = EmbeddingStore(folder, header)
        try:
            yield store
        except EngineError:
            # What other workers have finished is kept.
            raise
        except CurationError:
            if is_new:
                shutil.rmtree(folder, ignore_errors=True)
            raise


@dataclass(frozen=True, slots=True)
class _Batch:
    rows: list[Row]
    vectors: Future[Vectors]
    ends_shard: bool


class _Work:
    """Batches on their way into the store: those being encoded, in order, and vectors that are not written yet.

    Parameters
    ----------
    ahead : int
        How many batches the pool may encode at a time; 0: none, the caller's thread does.
    """

    def __init__(
        self, encoder: Encoder, store: EmbeddingStore, seconds: float, pool: ThreadPoolExecutor, ahead: int
    ) -> None:
        self.computed = 0
        self._encoder, self._store, self._seconds = encoder, store, seconds
        self._pool, self._ahead = pool, ahead
        self._encoding: deque[_Batch] = deque()
        self._rows: list[Row] = []
        self._vectors: list[Vectors] = []
        self._written = time.monotonic()

    def encode(self, pictures: list[Picture], *, ends_shard: bool = False) -> None:
        """Have a batch encoded; write what is encoded so far at the end of a shard, and where it is time."""
        rows = [one.row for one in pictures]
        prepared = [one.prepared for one in pictures if one.prepared is not None]
        if self._ahead:
            vectors = self._pool.submit(self._encoder.encode_prepared, prepared)
        else:
            vectors = Future()
            vectors.set_result(self._encoder.encode_prepared(prepared))
        self._encoding.append(_Batch(rows, vectors, ends_shard))
        # One more than threads, so that none of them waits for this one.
        while len(self._encoding) > (self._ahead and self._ahead + 1):
            self._take_in()

    def end_shard(self, rest: list[Picture]) -> None:
        """Have the last batch of a shard encoded, which need not be full."""
        if rest:
            self.encode(rest, ends_shard=True)
        elif self._encoding:
            self._encoding[-1] = replace(self._encoding[-1], ends_shard=True)
        else:
            self._write()

    def finish(self) -> None:
        """Wait for all batches, and write them."""
        while self._encoding:
            self._take_in()
        self._write()

    def _take_in(self) -> None:
        done = self._encoding.popleft()
        vectors = done.vectors.result()
        require_finite(vectors, [row.id for row in done.rows])
        self._rows += done.rows
        self._vectors.append(vectors)
        self.computed += len(done.rows)
        # Batches come in order, and only the last of a shard may be short: what is written are whole batches from the
        # shard's beginning, or all of it, and a resumed run forms the same batches of the rest.
        if done.ends_shard or time.monotonic() - self._written >= self._seconds:
            self._write()

    def _write(self) -> None:
        if self._rows:
            self._store.add(self._rows, np.concatenate(self._vectors))
            self._rows, self._vectors = [], []
        self._written = time.monotonic()


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
        A text or the template is malformed; a text stands twice.
    """
    from tqdm import tqdm

    _check_texts(texts, template)
    prompts = [template.replace("{}", text) for text in texts]
    rows = [Row(text, sha256_of_bytes(prompt.encode())) for text, prompt in zip(texts, prompts, strict=True)]
    # Asked before a folder is made: an encoder may have no text tower.
    encoder.encode_texts(prompts[:1])
    batch = batch or batch_of(folder) or BATCH
    header = header_of(encoder.identity, encoder.dimension, kind="texts", batch=batch, template=template)
    with begun(folder, header) as store:
        before = len(store)
        new = [place for place, row in enumerate(rows) if row not in store]
        for start in tqdm(range(0, len(new), batch), desc="texts", unit=" batches", disable=None):
            places = new[start : start + batch]
            vectors = encoder.encode_texts([prompts[place] for place in places])
            require_finite(vectors, [texts[place] for place in places])
            store.add([rows[place] for place in places], vectors)
        return finished(store, Progress(rows, computed=len(new)), before, "texts")


def finished(store: EmbeddingStore, progress: Progress, before: int, kind: str) -> EmbedResult:
    """Join a store of what was embedded, write its report, and return what became of the pictures."""
    rows, computed = progress.rows, progress.computed
    if not rows:
        reasons = Counter(one.reason for one in progress.skipped).most_common(1)
        raise EmbeddingError(
            f"None of the {kind} could be embedded",
            where=progress.skipped[0].file if progress.skipped else None,
            found=f"{reasons[0][1]} times: {reasons[0][0]}" if reasons else f"no {kind}",
        )
    store.finish(rows)
    reused = len(rows) - computed
    report = {"embedded": len(rows), "skipped": [asdict(one) for one in progress.skipped]}
    write_text(store.folder / REPORT, json.dumps(report, indent=1) + "\n", guarded=False)
    return EmbedResult(len(rows), computed, reused, before - reused, tuple(progress.skipped))


def sort_out(done: Sequence[Picture | Skipped], new: list[Picture], progress: Progress, broken: Broken) -> None:
    """Put the pictures of one photo where they belong: to be encoded, known, or left out."""
    for one in done:
        if isinstance(one, Picture):
            progress.rows.append(one.row)
            if one.prepared is not None:
                new.append(one)
        elif broken == "refuse":
            raise EmbeddingError(
                "A photo cannot be embedded",
                where=f"{one.id}: {one.file}" if one.file else one.id,
                found=one.reason,
                hint="mend or remove it, or --on-error photos=skip",
            )
        else:
            progress.skipped.append(one)


def shard_sizes(photos: Sequence[Photo], batch: int, shard: int) -> Iterator[int]:
    """Yield how many photos make each shard: a whole number of batches of pictures, or the next photo's end."""
    enough = batch * max(1, round(shard / batch))
    photos_in, pictures_in = 0, 0
    for photo in photos:
        photos_in, pictures_in = photos_in + 1, pictures_in + len(photo.pictures)
        if pictures_in >= enough:
            yield photos_in
            photos_in = pictures_in = 0
    if photos_in:
        yield photos_in


def _ahead(
    photos: Sequence[Photo],
    encoder: Encoder,
    store: EmbeddingStore,
    pool: ThreadPoolExecutor,
    threads: int,
    pictures: int,
) -> Iterator[list[Picture | Skipped]]:
    """Yield the pictures of each photo in order, while threads make those of the next ones."""
    # Bounded by pictures, not photos: a photo with a hundred boxes is a hundred pictures in memory.
    waiting: deque[tuple[Future[list[list[Picture | Skipped]]], int]] = deque()
    held = 0
    for some, size in _handfuls(photos, max(1, min(_HANDFUL, len(photos) // (4 * threads)))):
        while waiting and (held >= pictures and len(waiting) >= threads):
            future, taken = waiting.popleft()
            held -= taken
            yield from future.result()
        waiting.append((pool.submit(lambda some: [_pictures(one, encoder, store) for one in some], some), size))
        held += size
    while waiting:
        yield from waiting.popleft()[0].result()


def _handfuls(photos: Sequence[Photo], enough: int) -> Iterator[tuple[list[Photo], int]]:
    """Yield some photos at a time, and how many pictures they are: a thread's errand, which takes time to hand over."""
    some: list[Photo] = []
    size = 0
    for photo in photos:
        some.append(photo)
        size += len(photo.pictures)
        if size >= enough:
            yield some, size
            some, size = [], 0
    if some:
        yield some, size


def _pictures(photo: Photo, encoder: Encoder, store: EmbeddingStore) -> list[Picture | Skipped]:
    if photo.path is None:
        return pictures_of(photo, BrokenPhotoError("no photo of it is available"), encoder, store)
    try:
        return pictures_of(photo, read_photo(photo.path), encoder, store)
    except BrokenPhotoError as error:
        return pictures_of(photo, error, encoder, store)


def pictures_of(
    photo: Photo, data: bytes | BrokenPhotoError, encoder: Encoder, known: Container[Row]
) -> list[Picture | Skipped]:
    """Return the pictures of a photo: known rows as they are, new ones prepared, others with the reason."""
    file = str(photo.path or "")
    try:
        if isinstance(data, BrokenPhotoError):
            raise data
        digest = sha256_of_bytes(data)
        rows = [(Row(name, digest, box_text(box)), box) for name, box in photo.pictures]
        if all(row in known for row, _ in rows):
            return [Picture(row) for row, _ in rows]
        image = decode_photo(data)
    except BrokenPhotoError as error:
        return [Skipped(name, file, str(error)) for name, _ in photo.pictures]
    if photo.boxes is not None and 0 not in photo.size and photo.size != image.size:
        reason = f"it is {image.size[0]} x {image.size[1]}, and its boxes are of {photo.size[0]} x {photo.size[1]}"
        return [Skipped(name, file, reason) for name, _ in photo.pictures]
    found: list[Picture | Skipped] = []
    for row, box in rows:
        crop = None if box is None else crop_of(box, image.size)
        if row in known:
            found.append(Picture(row))
        elif box is not None and crop is None:
            found.append(Skipped(row.id, file, "the box lies outside the photo"))
        else:
            found.append(Picture(row, encoder.prepare(image if crop is None else image.crop(crop))))
    return found


def _check_texts(texts: Sequence[str], template: str) -> None:
    if template.count("{}") != 1:
        raise EmbeddingError("A template needs {} once, for the text", found=repr(template[:100]))
    if not texts:
        raise EmbeddingError("There is no text to embed")
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
            raise DuplicateIdError("A text stands twice", where=f"text {number}: {text[:80]}")
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


Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Photo:
    """A photo, and the pictures that are made of it.

    Attributes
    ----------
    id : str
        Image id ``namespace:native``.
    path : Path or None
        None where no photo of the image is available.
    boxes : tuple of (float, float, float, float), or None
        ``x, y, w, h`` in stored pixels, origin top left: a picture each, ``id#0``, ``id#1``, …; None: the whole photo.
    size : (int, int)
        Width and height that the annotations state, (0, 0) where they do not.
    """

    id: str
    path: Path | None
    boxes: tuple[Box, ...] | None = None
    size: tuple[int, int] = (0, 0)

    @property
    def pictures(self) -> tuple[tuple[str, Box | None], ...]:
        """Id and box of each picture."""
        if self.boxes is None:
            return ((self.id, None),)
        return tuple((f"{self.id}#{number}", box) for number, box in enumerate(self.boxes))


def photos_of_sources(sources: Mapping[str, Source], folders: Mapping[str, PhotoFolder], *, boxes: bool) -> list[Photo]:
    """Return the photos of sources, in the order of the sources and of their files.

    Parameters
    ----------
    folders : mapping of str to PhotoFolder
        By name of source; the one named ``""`` serves every other source.
    boxes : bool
        Whether each annotated box is a picture, crowd boxes too; images without a box have none then.

    Raises
    ------
    EmbeddingError
        No folder of photos was given for a source.
    DuplicateIdError
        Two sources hold the same image.
    PresenceOnlyError, UnitBoxesError
        Boxes are asked for and the source has none, or not in pixels.
    """
    photos: list[Photo] = []
    for name, source in sources.items():
        folder = folders.get(name, folders.get(""))
        if folder is None:
            raise EmbeddingError(
                "There is no folder of photos for a source",
                where=f"source {name}",
                hint=f"--photos {name}=DIR",
            )
        photos += _of_source(source, folder, boxes=boxes)
    _require_unique(photo.id for photo in photos)
    return photos


def _of_source(source: Source, folder: PhotoFolder, *, boxes: bool) -> Iterable[Photo]:
    of_image = _boxes(source) if boxes else None
    images = source.images
    columns = zip(
        source.image_ids.tolist(), images.native.tolist(), images.file_names.tolist(),
        images.widths.tolist(), images.heights.tolist(), strict=True,
    )  # fmt: skip
    for number, (image, native, file_name, width, height) in enumerate(columns):
        if of_image is None or of_image.get(number):
            path = folder.find((str(file_name), str(native)))
            yield Photo(str(image), path, None if of_image is None else tuple(of_image[number]), (width, height))


def _boxes(source: Source) -> dict[int, list[Box]]:
    objects = source.require_pixels("Embedding boxes")
    found: dict[int, list[Box]] = {}
    for image, (x, y, w, h) in zip(objects.image.tolist(), objects.boxes.tolist(), strict=True):
        found.setdefault(image, []).append((x, y, w, h))
    return found


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


def crop_of(box: Box, size: tuple[int, int]) -> tuple[int, int, int, int] | None:
    """Return the whole pixels that a box touches, as left, upper, right, lower; None where it misses the photo.

    >>> crop_of((1.5, 2.0, 3.0, 4.0), (100, 100))
    (1, 2, 5, 6)
    """
    x, y, width, height = box
    if not np.isfinite(box).all() or width <= 0 or height <= 0:
        return None
    left, upper = max(0, math.floor(x)), max(0, math.floor(y))
    right, lower = min(size[0], math.ceil(x + width)), min(size[1], math.ceil(y + height))
    return (left, upper, right, lower) if left < right and upper < lower else None


def box_text(box: Box | None) -> str:
    """Return the text under which a box is kept, ``""`` for a whole photo."""
    return "" if box is None else ",".join(repr(float(number)) for number in box)


def _require_unique(ids: Iterable[str]) -> None:
    counts = Counter(ids)
    repeated = [one for one, count in counts.items() if count > 1]
    if repeated:
        raise DuplicateIdError(
            "Two photos have the same id",
            where=repeated[0],
            found=f"{len(repeated)} ids more than once",
            hint="give each dataset once, under a name of its own",
        )
