"""Embedding of photos and texts into a store: decoding in threads ahead of the model, nothing computed twice."""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from curation.canonical import sha256_of_bytes
from curation.errors import DuplicateIdError, EmbeddingError
from curation.similarity.embeddings import Vectors
from curation.similarity.encoder import Encoder, Prepared, require_finite
from curation.similarity.items import Photo, box_text, crop_of
from curation.similarity.store import EmbeddingStore, Row, batch_of, header_of
from curation.sources.photos import BrokenPhotoError, decode_photo, read_photo
from curation.storage import write_text

BATCH = 32
SHARD = 1024
"""Pictures of a shard, about: what a kill costs at most."""
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
class _Picture:
    row: Row
    prepared: Prepared | None = None


@dataclass(slots=True)
class _Progress:
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
) -> EmbedResult:
    """Embed photos or boxes into a store, going on where an earlier call was interrupted.

    Every file is read and its digest taken, every time: that is what tells whether it has changed. Only what the store
    does not hold is decoded and encoded. Batches never reach beyond a shard, and what is found in the store takes no
    place in them, so an interrupted store that is resumed has the bytes of one made in one go, with any number of
    threads. Another batch size may change the last bits of a vector; a store keeps to one.

    Parameters
    ----------
    folder : Path
        The store; created if need be.
    batch : int, optional
        Pictures encoded at a time; those of the store where there is one, else 32.
    threads : int, optional
        That read and decode; as many as there are processors by default, at most 16.
    broken : {"skip", "refuse"}
        Whether photos that are missing or broken are left out and counted, or the first one ends the work.
    shard : int
        Pictures after which the work so far is written, about.

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
    store = EmbeddingStore(folder, header_of(encoder.identity, encoder.dimension, kind=kind, batch=batch))
    total = sum(len(photo.pictures) for photo in photos)
    before, progress = len(store), _Progress()
    with _quiet(), tqdm(total=total, desc=kind, unit=f" {kind}", disable=None) as bar:
        pictures = _ahead(photos, encoder, store, threads or _usual_threads(), 2 * batch)
        for size in _shard_sizes(photos, batch, shard):
            new: list[_Picture] = []
            vectors: list[Vectors] = []
            for _ in range(size):
                done = next(pictures)
                _sort(done, new, progress, broken)
                bar.update(len(done))
                while len(new) - batch * len(vectors) >= batch:
                    vectors.append(_encode(encoder, new, batch * len(vectors), batch))
            if len(new) > batch * len(vectors):
                vectors.append(_encode(encoder, new, batch * len(vectors), batch))
            store.add(
                [one.row for one in new], np.concatenate(vectors) if vectors else np.empty(0, np.float32)
            )
            progress.computed += len(new)
    return _finished(store, progress, before, kind)


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
    store = EmbeddingStore(folder, header)
    before = len(store)
    new = [place for place, row in enumerate(rows) if row not in store]
    for start in tqdm(range(0, len(new), batch), desc="texts", unit=" batches", disable=None):
        places = new[start : start + batch]
        vectors = encoder.encode_texts([prompts[place] for place in places])
        require_finite(vectors, [texts[place] for place in places])
        store.add([rows[place] for place in places], vectors)
    return _finished(store, _Progress(rows, computed=len(new)), before, "texts")


def _finished(store: EmbeddingStore, progress: _Progress, before: int, kind: str) -> EmbedResult:
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


def _sort(
    done: Sequence[_Picture | Skipped], new: list[_Picture], progress: _Progress, broken: Broken
) -> None:
    """Put the pictures of one photo where they belong: to be encoded, known, or left out."""
    for one in done:
        if isinstance(one, _Picture):
            progress.rows.append(one.row)
            if one.prepared is not None:
                new.append(one)
        elif broken == "refuse":
            raise EmbeddingError(
                "A photo cannot be embedded",
                where=f"{one.id}: {one.file}" if one.file else one.id,
                found=one.reason,
                hint="mend or remove it, or --broken skip",
            )
        else:
            progress.skipped.append(one)


def _encode(encoder: Encoder, new: list[_Picture], start: int, batch: int) -> Vectors:
    chosen = new[start : start + batch]
    vectors = encoder.encode_prepared([one.prepared for one in chosen if one.prepared is not None])
    require_finite(vectors, [one.row.id for one in chosen])
    # Prepared pictures are large; only the row is needed from here on.
    new[start : start + batch] = [_Picture(one.row) for one in chosen]
    return vectors


def _shard_sizes(photos: Sequence[Photo], batch: int, shard: int) -> Iterator[int]:
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
    photos: Sequence[Photo], encoder: Encoder, store: EmbeddingStore, threads: int, pictures: int
) -> Iterator[list[_Picture | Skipped]]:
    """Yield the pictures of each photo in order, while threads make those of the next ones."""
    # Bounded by pictures, not photos: a photo with a hundred boxes is a hundred pictures in memory.
    waiting: deque[tuple[Future[list[_Picture | Skipped]], int]] = deque()
    held = 0
    with ThreadPoolExecutor(threads) as pool:
        try:
            for photo in photos:
                while waiting and (held >= pictures and len(waiting) >= threads):
                    future, size = waiting.popleft()
                    held -= size
                    yield future.result()
                size = len(photo.pictures)
                waiting.append((pool.submit(_pictures, photo, encoder, store), size))
                held += size
            while waiting:
                yield waiting.popleft()[0].result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _pictures(photo: Photo, encoder: Encoder, store: EmbeddingStore) -> list[_Picture | Skipped]:
    """Return the pictures of a photo: known rows as they are, new ones prepared, others with the reason."""
    if photo.path is None:
        return [Skipped(name, "", "no photo of it is at hand") for name, _ in photo.pictures]
    try:
        data = read_photo(photo.path)
        digest = sha256_of_bytes(data)
        rows = [(Row(name, digest, box_text(box)), box) for name, box in photo.pictures]
        if all(row in store for row, _ in rows):
            return [_Picture(row) for row, _ in rows]
        image = decode_photo(data)
    except BrokenPhotoError as error:
        return [Skipped(name, str(photo.path), str(error)) for name, _ in photo.pictures]
    if photo.boxes is not None and 0 not in photo.size and photo.size != image.size:
        reason = (
            f"it is {image.size[0]} x {image.size[1]}, and its boxes are of {photo.size[0]} x {photo.size[1]}"
        )
        return [Skipped(name, str(photo.path), reason) for name, _ in photo.pictures]
    found: list[_Picture | Skipped] = []
    for row, box in rows:
        crop = None if box is None else crop_of(box, image.size)
        if row in store:
            found.append(_Picture(row))
        elif box is not None and crop is None:
            found.append(Skipped(row.id, str(photo.path), "the box lies outside the photo"))
        else:
            found.append(_Picture(row, encoder.prepare(image if crop is None else image.crop(crop))))
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


def _usual_threads() -> int:
    return min(_MOST_THREADS, os.cpu_count() or 1)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Pillow's warnings of large or odd pictures, for all threads: what matters is refused or counted."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\b")
        yield
