"""From photos to a store: read, decode ahead in threads, encode in fixed batches, finish shard by shard."""

from __future__ import annotations

import io
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from tqdm import tqdm

from curation.canonical import sha256_of_bytes
from curation.errors import MissingExtraError, SimilarityError
from curation.similarity.embeddings import Embeddings, Vectors
from curation.similarity.encoder import Encoder
from curation.similarity.store import EmbeddingStore, ShardContent, inputs_digest, open_embeddings

if TYPE_CHECKING:
    from PIL.Image import Image

Result = TypeVar("Result")
Broken = Literal["skip", "refuse"]
SHARD_SIZE, BATCH = 1024, 32
_MEGAPIXELS = 170
_LARGEST_PHOTO = 512 << 20
_MOST_THREADS = 16


@dataclass(frozen=True, slots=True)
class Photo:
    """One input: an image, or a box cut out of it.

    Attributes
    ----------
    id : str
        ``namespace:native``, or ``namespace:native#number`` of a box.
    path : Path
    box : tuple of float, or None
        ``x, y, w, h`` in pixels of the stored image.
    """

    id: str
    path: Path
    box: tuple[float, float, float, float] | None = None


def embed_photos(
    encoder: Encoder,
    photos: Sequence[Photo],
    folder: Path,
    *,
    batch: int = BATCH,
    shard_size: int = SHARD_SIZE,
    threads: int | None = None,
    broken: Broken = "skip",
) -> Embeddings:
    """Return the embeddings of photos, computed into a store where they are not there yet.

    Parameters
    ----------
    photos : sequence of Photo
        Their order is that of the store. Ids must differ.
    folder : Path
        The store; a run that was killed goes on at the first unfinished shard.
    batch, shard_size : int
        See `EmbeddingStore`. Batches never cross the end of a shard, so that resuming changes no bit.
    threads : int, optional
        That decode ahead of the encoder; as many as there are cores by default. Their number changes no bit.
    broken : {"skip", "refuse"}
        What to do with photos that cannot be read: leave them out and say so, or stop at the first.

    Raises
    ------
    SimilarityError
        Ids repeat, or a photo cannot be read under ``refuse``; the store is of something else.
    MissingExtraError
        Pillow is not installed.
    """
    _check(photos, batch, shard_size)
    kind = "boxes" if any(photo.box is not None for photo in photos) else "images"
    store = EmbeddingStore(folder, encoder.identity, kind=kind, shard_size=shard_size, batch=batch)
    runs = [photos[start : start + shard_size] for start in range(0, len(photos), shard_size)] or [[]]
    with (
        ThreadPoolExecutor(min(threads or os.cpu_count() or 1, _MOST_THREADS)) as pool,
        tqdm(total=len(photos), unit="image", desc="embed", disable=None) as progress,
    ):
        for number, run in enumerate(runs):
            digests = list(_ahead(pool, _digest, run, 4 * batch))
            inputs = inputs_digest([photo.id for photo in run], digests)
            if not store.is_finished(number, inputs):
                content = _encode(encoder, run, digests, pool, batch, broken)
                store.write(number, inputs, content)
            progress.update(len(run))
    store.trim(len(runs))
    return open_embeddings(folder)


def embed_texts(encoder: Encoder, texts: Sequence[str], folder: Path, *, template: str = "{}") -> Embeddings:
    """Return the embeddings of texts, computed into a store; ids are the texts without the template.

    Parameters
    ----------
    template : str
        What is encoded, with ``{}`` for the text: ``a photo of a {}``.

    Raises
    ------
    SimilarityError
        Texts repeat, the template has no place for them, or the encoder has no text tower.
    """
    if template.count("{}") != 1 or len(template) > 200:
        raise SimilarityError(
            "The template has no place for the text", expected="one {}", found=repr(template)[:80]
        )
    if len(set(texts)) < len(texts) or not texts:
        twice = next((text for text in texts if list(texts).count(text) > 1), None)
        raise SimilarityError(
            "A text stands twice" if twice else "There is no text to embed",
            found=repr(twice)[:80] if twice else None,
        )
    prompts = [template.replace("{}", text) for text in texts]
    store = EmbeddingStore(folder, encoder.identity, kind="texts", shard_size=SHARD_SIZE, batch=BATCH)
    digests = [sha256_of_bytes(prompt.encode()) for prompt in prompts]
    runs = range(0, len(texts), SHARD_SIZE)
    for number, start in enumerate(runs):
        chosen = slice(start, start + SHARD_SIZE)
        inputs = inputs_digest(texts[chosen], digests[chosen])
        if not store.is_finished(number, inputs):
            vectors = [
                encoder.encode_texts(prompts[first : min(first + BATCH, start + SHARD_SIZE)])
                for first in range(start, min(start + SHARD_SIZE, len(prompts)), BATCH)
            ]
            content = ShardContent(tuple(texts[chosen]), tuple(digests[chosen]), np.concatenate(vectors), {})
            store.write(number, inputs, content)
    store.trim(len(runs))
    return open_embeddings(folder)


def _check(photos: Sequence[Photo], batch: int, shard_size: int) -> None:
    seen: set[str] = set()
    for photo in photos:
        if photo.id in seen:
            raise SimilarityError("An image stands twice in the list", where=photo.id[:120])
        seen.add(photo.id)
    if not 1 <= batch <= shard_size <= 1 << 20:
        raise SimilarityError(
            "The batches do not fit", expected="1 <= batch <= shard size", found=f"{batch}, {shard_size}"
        )


def _ahead(
    pool: ThreadPoolExecutor, work: Callable[[Photo], Result], photos: Iterable[Photo], window: int
) -> Iterator[Result]:
    """Yield the results of work in threads, in order; at most `window` photos are in memory at once."""
    waiting: deque[Future[Result]] = deque()
    remaining = iter(photos)
    waiting.extend(pool.submit(work, photo) for photo in islice(remaining, window))
    while waiting:
        done = waiting.popleft()
        waiting.extend(pool.submit(work, photo) for photo in islice(remaining, 1))
        yield done.result()


def _encode(
    encoder: Encoder,
    run: Sequence[Photo],
    digests: Sequence[str],
    pool: ThreadPoolExecutor,
    batch: int,
    broken: Broken,
) -> ShardContent:
    failures: dict[str, str] = {}
    kept: list[int] = []
    vectors: list[Vectors] = []
    waiting: list[Vectors] = []
    for place, prepared in enumerate(_ahead(pool, lambda photo: _prepared(encoder, photo), run, 4 * batch)):
        if isinstance(prepared, str):
            if broken == "refuse":
                raise SimilarityError(
                    "A photo cannot be read",
                    where=str(run[place].path),
                    found=prepared,
                    hint="--broken skip leaves such photos out and lists them",
                )
            failures[run[place].id] = prepared
        else:
            kept.append(place)
            waiting.append(prepared)
        if len(waiting) == batch:
            vectors.append(encoder.encode_prepared(waiting))
            waiting = []
    vectors.append(encoder.encode_prepared(waiting))
    return ShardContent(
        tuple(run[place].id for place in kept),
        tuple(digests[place] for place in kept),
        np.concatenate(vectors) if kept else np.empty((0, 0), np.float32),
        failures,
    )


def _digest(photo: Photo) -> str:
    """Return the digest of a photo's bytes, and of the box; of a photo that is not there, of its absence."""
    try:
        data = photo.path.read_bytes() if photo.path.stat().st_size <= _LARGEST_PHOTO else b"too large"
    except OSError:
        return "absent"
    digest = sha256_of_bytes(data)
    return digest if photo.box is None else sha256_of_bytes(f"{digest} {photo.box!r}".encode())


def _prepared(encoder: Encoder, photo: Photo) -> Vectors | str:
    """Return a photo as the encoder takes it, or why it cannot be read."""
    from PIL import UnidentifiedImageError

    try:
        return encoder.prepare(load_photo(photo.path, photo.box))
    except (OSError, ValueError, SyntaxError, UnidentifiedImageError, SimilarityError, EOFError) as error:
        text = error.what if isinstance(error, SimilarityError) else " ".join(str(error).split())
        return f"{type(error).__name__}: {text}"[:200].replace(str(photo.path), photo.path.name)


def load_photo(path: Path, box: tuple[float, float, float, float] | None = None) -> Image:
    """Return a photo as RGB, or a box of it, turned as its EXIF orientation says.

    Boxes are of the stored pixels, before turning, as in COCO and VOC.

    Raises
    ------
    SimilarityError
        The photo is too large, or the box holds no pixel.
    OSError
        It cannot be read or decoded.
    """
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise MissingExtraError("Photos need Pillow", hint="pip install 'curation[photos]'") from error
    if path.stat().st_size > _LARGEST_PHOTO:
        raise SimilarityError(
            "The photo is too large", where=path.name, expected=f"at most {_LARGEST_PHOTO:,} bytes"
        )
    with warnings.catch_warnings():
        # Pillow only warns below twice its own limit; ours is checked before a pixel is decoded.
        warnings.simplefilter("ignore")
        with Image.open(io.BytesIO(path.read_bytes())) as photo:
            if photo.width * photo.height > _MEGAPIXELS * 1_000_000:
                raise SimilarityError(
                    "The photo is too large",
                    where=path.name,
                    expected=f"at most {_MEGAPIXELS} megapixels",
                    found=f"{photo.width} x {photo.height}",
                )
            photo.load()
            if box is None:
                return ImageOps.exif_transpose(photo).convert("RGB")
            return photo.convert("RGB").crop(_pixels(box, photo.width, photo.height, path))


def _pixels(
    box: tuple[float, float, float, float], width: int, height: int, path: Path
) -> tuple[int, int, int, int]:
    """Return the whole pixels that a box touches, inside the photo."""
    x, y, w, h = box
    left, top = max(0, int(np.floor(x))), max(0, int(np.floor(y)))
    right, bottom = min(width, int(np.ceil(x + w))), min(height, int(np.ceil(y + h)))
    if right <= left or bottom <= top:
        raise SimilarityError("The box holds no pixel of the photo", where=path.name, found=str(box))
    return left, top, right, bottom
