"""Embedding of photos and texts into a store: all cores decode and encode, and nothing is computed twice."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

import numpy as np

from curation.canonical import sha256_of_bytes
from curation.errors import CurationError, DuplicateIdError, EmbeddingError
from curation.ids import ImageId, native_of
from curation.similarity.embeddings import HEADER, EmbeddingStore, Row, StoreHeader, Vectors, alone, batch_of, header_of
from curation.similarity.encoder import Encoder, Prepared, one_core_each, require_finite
from curation.sources.photos import BrokenPhotoError, PhotoFolder, decode_photo, read_photo
from curation.sources.source import Source
from curation.storage import write_text

BATCH = 32
SHARD = 256
"""Pictures in a shard, about: no batch reaches beyond one, and those of two are in memory."""
SECONDS = 5.0
"""After so long, encoded batches are written even before the end of the shard: what a kill costs at most."""
REPORT = "report.json"
"""Beside the store: how many rows it has, and every picture that was left out, with the reason."""
_MOST_THREADS = 16
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
    """How many pictures or texts one call embedded.

    Attributes
    ----------
    embedded : int
        Rows of the finished store.
    computed, reused : int
        Of these, encoded now and found in the store.
    dropped : int
        Rows dropped from the store: of pictures no longer in the list, or of bytes that have changed.
    skipped : tuple of Skipped
        In the order of the list.
    """

    embedded: int
    computed: int
    reused: int
    dropped: int
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that is embedded: what it is of, and where that is new, the picture as its encoder wants it."""

    row: Row
    prepared: Prepared | None = None


@dataclass(slots=True)
class _Progress:
    """The pictures so far."""

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

    kind = "boxes" if any(photo.boxes is not None for photo in photos) else "images"
    batch = batch or batch_of(folder) or BATCH
    header = header_of(encoder.identity, encoder.dimension, kind=kind, batch=batch)
    threads = threads or usual_threads()
    pool = ThreadPoolExecutor(threads)
    total = sum(len(photo.pictures) for photo in photos)
    with (
        _begun(folder, header) as store,
        quiet(),
        tqdm(total=total, desc=kind, unit=f" {kind}", disable=None) as bar,
        one_core_each(encoder) as side_by_side,
        closing_now(pool),
    ):
        before, progress = len(store), _Progress()
        shards = _shards(photos, batch, shard)

        def prepared() -> Iterator[list[Picture | Skipped]] | None:
            some = next(shards, None)
            return None if some is None else pool.map(lambda photo: _pictures(photo, encoder, store), some)

        pictures = prepared()
        while pictures is not None:
            waiting: list[Picture] = []
            for done in pictures:
                _sort_out(done, waiting, progress, broken)
                bar.update(len(done))
            batches = [waiting[start : start + batch] for start in range(0, len(waiting), batch)]
            inputs = ([one.prepared for one in some if one.prepared is not None] for some in batches)
            vectors = (pool.map if side_by_side else map)(encoder.encode_prepared, inputs)
            # Threads decode the photos of the next shard while this one is encoded.
            pictures = prepared()
            _add(store, batches, vectors, seconds)
            progress.computed += len(waiting)
        return _finished(store, progress, before, kind)


@contextmanager
def closing_now(pool: ThreadPoolExecutor) -> Iterator[None]:
    """Stop threads as soon as the work ends, however it ends."""
    try:
        yield
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _add(store: EmbeddingStore, batches: Sequence[list[Picture]], encoded: Iterable[Vectors], seconds: float) -> None:
    """Write the batches of a shard: all at its end, and whole ones before if encoding takes long.

    Only the last batch of a shard may be short, so a resumed run forms the same batches of the rest.
    """
    rows: list[Row] = []
    vectors: list[Vectors] = []
    written = time.monotonic()
    for number, (pictures, found) in enumerate(zip(batches, encoded, strict=True), start=1):
        own = [picture.row for picture in pictures]
        require_finite(found, [row.id for row in own])
        rows += own
        vectors.append(found)
        if number == len(batches) or time.monotonic() - written >= seconds:
            store.add(rows, np.concatenate(vectors))
            rows, vectors, written = [], [], time.monotonic()


@contextmanager
def _begun(folder: Path, header: StoreHeader) -> Iterator[EmbeddingStore]:
    """Yield the store in a folder; one that is begun here is removed if an error in the input ends the work.

    Another program that embeds into the same folder waits until this one is done, and resumes what it left.
    """
    with alone(folder):
        is_new = not (folder / HEADER).is_file()
        store = EmbeddingStore(folder, header)
        try:
            yield store
        except CurationError:
            if is_new:
                shutil.rmtree(folder, ignore_errors=True)
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
    header = header_of(encoder.identity, encoder.dimension, kind="texts", batch=batch, template=template)
    with _begun(folder, header) as store:
        before = len(store)
        new = [place for place, row in enumerate(rows) if row not in store]
        for start in tqdm(range(0, len(new), batch), desc="texts", unit=" batches", disable=None):
            places = new[start : start + batch]
            vectors = encoder.encode_texts([prompts[place] for place in places])
            require_finite(vectors, [texts[place] for place in places])
            store.add([rows[place] for place in places], vectors)
        return _finished(store, _Progress(rows, computed=len(new)), before, "texts")


def _finished(store: EmbeddingStore, progress: _Progress, before: int, kind: str) -> EmbedResult:
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


def _sort_out(done: Sequence[Picture | Skipped], new: list[Picture], progress: _Progress, broken: Broken) -> None:
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


def _shards(photos: Sequence[Photo], batch: int, shard: int) -> Iterator[list[Photo]]:
    """Yield the photos of each shard: a whole number of batches of pictures, or up to the end of the next photo."""
    enough = batch * max(1, round(shard / batch))
    some: list[Photo] = []
    pictures = 0
    for photo in photos:
        some.append(photo)
        pictures += len(photo.pictures)
        if pictures >= enough:
            yield some
            some, pictures = [], 0
    if some:
        yield some


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
                "There is no folder of photos for a source", where=f"source {name}", hint=f"--photos {name}=DIR"
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
