"""Embeddings: vectors of images or texts with the identity of their encoder, and the folder that keeps them.

A store is one memory-mapped array when finished, and shards that survive a kill while it is made: ``shards/HEX.npy``
and ``shards/HEX.json`` hold what is computed so far, some thousand rows each, named by them. When all are there, they
are joined: ``vectors-HEX.npy`` holds the array, ``rows.json`` lists its rows and states its digest, and the shards go.
A row is kept under its id and the digest of the image's bytes: what has changed is computed again, and nothing else.
One process at a time writes a store (`alone`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from curation.core.canonical import canonical_json, sha256_of_file, sha256_of_lines, sha256_of_value
from curation.core.errors import EmbeddingError, MissingFileError, SimilarityError
from curation.core.files import read_bytes
from curation.core.writing import locked, remove_abandoned, replacing, write_bytes

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """What makes two vectors comparable: all of it equal, or their similarity means nothing.

    Attributes
    ----------
    model : str
        Name of the architecture; of a configuration file, its stem and the digest of its content.
    weights : str
        ``sha256:<hex>`` of the weights file; ``random:SEED:sha256:<hex>`` of random weights; ``none`` for a formula.
    preprocessing : str
        What is done to an image before it is encoded.
    dtype : str
        Of the computation: ``float32``, ``float16 autocast``, ``bfloat16 autocast``.
    embedding : str
        ``projected``: the space that images and texts share. ``pooled``: the class token after the last normalisation,
        before projection (FindMeIfYouCan's reading, its code's ``pooler_output``).
    """

    model: str
    weights: str
    preprocessing: str
    dtype: str
    embedding: str = "projected"

    @property
    def digest(self) -> str:
        """``sha256:<hex>`` of the record."""
        return sha256_of_value(asdict(self))


@dataclass(frozen=True)
class Embeddings:
    """Vectors of images or texts, as their encoder gave them.

    Attributes
    ----------
    ids : tuple of str, length n
        Unique: image ids ``namespace:native``, or texts as they were given.
    vectors : ndarray of float32, shape (n, d)
        Not normalised; of a store, memory-mapped and read-only.
    encoder : EncoderIdentity
    images : tuple of str, length n
        ``sha256:<hex>`` of the image file; of a text, of the prompt's UTF-8 bytes.
    """

    ids: tuple[str, ...]
    vectors: Vectors
    encoder: EncoderIdentity
    images: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def normalised(self) -> Vectors:
        """Return the vectors divided by their Euclidean length, shape (n, d); a zero vector stays zero."""
        return rows_of_unit_length(self.vectors)

    def take(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> Embeddings:
        """Return the embeddings at some positions, in that order."""
        positions = [int(row) for row in rows]
        return Embeddings(
            tuple(self.ids[position] for position in positions),
            np.asarray(self.vectors[np.array(positions, np.int64)], np.float32),
            self.encoder,
            tuple(self.images[position] for position in positions),
        )


def rows_of_unit_length(vectors: Vectors) -> Vectors:
    """Return the rows of a matrix divided by their Euclidean length, shape (n, d); a zero row stays zero."""
    rows = np.asarray(vectors, np.float32)
    # In float64: the squares of large float32 features overflow.
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    lengths[lengths == 0] = 1
    unit: Vectors = (rows / lengths[:, None]).astype(np.float32)
    return unit


def require_same_encoder(first: Embeddings, second: Embeddings) -> None:
    """Raise `SimilarityError` unless two sets were made by one encoder."""
    expected, other = first.encoder, second.encoder
    if expected != other:
        raise SimilarityError(
            "The embeddings were made by different encoders",
            expected=f"{expected.model}, {expected.embedding}, weights {expected.weights[:19]}, {expected.dtype}",
            found=f"{other.model}, {other.embedding}, weights {other.weights[:19]}, {other.dtype}",
            hint="embed both sets with the same --model, --pretrained and --set embedding=…",
        )


HEADER, ROWS, SHARDS = "store.json", "rows.json", "shards"
_LOCK = ".lock"
_HEX = 16
_DAMAGE = (
    OSError, ValueError, EOFError, SyntaxError, TypeError, OverflowError, RecursionError, MemoryError, TokenError,
)  # fmt: skip
"""What reading the header of a damaged array raises."""
_JOINED = 8192
"""Rows copied at a time when shards are joined."""


class Row(NamedTuple):
    """What a vector is of: id, and ``sha256:<hex>`` of the image's bytes."""

    id: str
    image: str


class StoreHeader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all rows of a store have in common.

    Attributes
    ----------
    kind : str
        ``images`` or ``texts``.
    encoder : EncoderIdentity
    dimension : int
        Length of a vector.
    batch : int
        Images encoded at a time: it may change the last bits of a vector, so a store keeps to one.
    template : str
        Of texts: the prompt, with ``{}`` for the text.
    """

    kind: Literal["images", "texts"]
    encoder: EncoderIdentity
    dimension: Annotated[int, msgspec.Meta(gt=0, lt=1 << 20)]
    batch: int
    template: str = ""
    format: Literal[1] = 1


class _Listing(msgspec.Struct, forbid_unknown_fields=True):
    sha256: str
    ids: list[str]
    images: list[str]
    boxes: list[str]
    """Empty texts: the format had boxes once."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder for one writer at a time; it is made if need be, and others wait."""
    # Without locks (some network disks) one of two writers fails with an error, and its next run succeeds.
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with locked(folder / _LOCK):
            yield
    finally:
        if [entry.name for entry in folder.glob("*")] == [_LOCK]:
            remove_store(folder)


class EmbeddingStore:
    """A store that is being written.

    Parameters
    ----------
    folder : Path
        Created if need be.
    header : StoreHeader

    Raises
    ------
    EmbeddingError
        The folder holds something else, or embeddings of another kind, encoder, batch size or template.
    """

    def __init__(self, folder: Path, header: StoreHeader) -> None:
        self.folder = folder
        self.header = header
        self._known: dict[Row, tuple[Vectors, int]] = {}
        self._joined: list[Row] | None = None
        if (folder / HEADER).is_file():
            _require_same(read_header(folder), header, folder)
        # Hidden names are what a kill may have left of writing the header.
        elif any(entry.name[0] != "." for entry in folder.iterdir()) if folder.is_dir() else folder.exists():
            raise EmbeddingError(
                "The folder exists and is not an embedding store", where=str(folder), hint="choose another --out"
            )
        else:
            write_bytes(folder / HEADER, canonical_json(msgspec.to_builtins(header)) + b"\n", guarded=False)
        remove_abandoned(folder)
        remove_abandoned(folder / SHARDS)
        self._load()

    @property
    def is_begun(self) -> bool:
        """Whether vectors are on the disk, with which a further run goes on."""
        return (self.folder / ROWS).is_file() or any((self.folder / SHARDS).glob("[!.]*.json"))

    def __contains__(self, row: object) -> bool:
        return row in self._known

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._known)

    def add(self, rows: Sequence[Row], vectors: Vectors) -> None:
        """Keep some rows as a shard: when this returns, a kill or a power cut loses none of them."""
        if rows:
            path = self.folder / SHARDS / f"{_name(rows)}.npy"
            self._write(path, path.with_suffix(".json"), rows, [vectors])
            self._take_in(np.load(path, mmap_mode="r", allow_pickle=False), rows)

    def finish(self, rows: Sequence[Row]) -> None:
        """Join the shards to one array of these rows in this order; other rows are let go.

        A kill on the way leaves the former array or the new one, and every shard until the new one is in place.
        """
        current = self.folder / f"vectors-{_name(rows)}.npy"
        if self._joined != list(rows):
            blocks = (self._gather(rows[start : start + _JOINED]) for start in range(0, len(rows), _JOINED))
            self._write(current, self.folder / ROWS, rows, blocks)
        self._known.clear()
        for path in sorted(self.folder.glob("vectors-*.npy")):
            if path != current:
                path.unlink()
        shutil.rmtree(self.folder / SHARDS, ignore_errors=True)

    def _gather(self, rows: Sequence[Row]) -> Vectors:
        block = np.empty((len(rows), self.header.dimension), np.float32)
        for number, row in enumerate(rows):
            array, index = self._known[row]
            block[number] = array[index]
        return block

    def _write(self, path: Path, listing: Path, rows: Sequence[Row], blocks: Iterable[Vectors]) -> None:
        with replacing(path, guarded=False) as partial:
            shape = (len(rows), self.header.dimension)
            # Not through a memory map: on a full disk, writing to a mapped hole ends the program by a bus error.
            with partial.open("wb") as stream:
                descr = np.lib.format.dtype_to_descr(np.dtype(np.float32))
                np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
                for block in blocks:
                    stream.write(np.ascontiguousarray(block, np.float32).data)
            digest = sha256_of_file(partial)
        ids, images = (list(column) for column in zip(*rows, strict=True))
        # The listing comes last: without it the array counts for nothing.
        content = _Listing(digest, ids, images, boxes=[""] * len(rows))
        write_bytes(listing, msgspec.json.encode(content) + b"\n", guarded=False)

    def _load(self) -> None:
        """Take in what is there already; a file that is torn or damaged counts for nothing."""
        for listing in [self.folder / ROWS, *sorted((self.folder / SHARDS).glob("[!.]*.json"))]:
            joined = listing.name == ROWS
            try:
                rows, sha256 = _read_rows(listing)
                path = self.folder / f"vectors-{_name(rows)}.npy" if joined else listing.with_suffix(".npy")
                array = _read_vectors(path, sha256, (len(rows), self.header.dimension))
            except (EmbeddingError, MissingFileError):
                continue
            self._take_in(array, rows)
            if joined:
                self._joined = rows

    def _take_in(self, array: Vectors, rows: Sequence[Row]) -> None:
        self._known.update((row, (array, index)) for index, row in enumerate(rows))


def open_embeddings(folder: Path, *, kind: str = "") -> Embeddings:
    """Return the embeddings of a finished store; the vectors are memory-mapped and read-only.

    Parameters
    ----------
    kind : str, optional
        ``images`` or ``texts``, where only that will do.

    Raises
    ------
    MissingFileError
        The store does not exist.
    EmbeddingError
        The store is unfinished, of another kind, or damaged: its digest and its values are checked.
    """
    header = read_header(folder)
    if kind and header.kind != kind:
        raise EmbeddingError(
            "The store holds embeddings of another kind", where=str(folder), expected=kind, found=header.kind
        )
    if not (folder / ROWS).is_file():
        raise EmbeddingError(
            "The store is not finished",
            where=str(folder),
            hint="the curation similarity embed … that began it; it goes on where it stopped",
        )
    rows, sha256 = _read_rows(folder / ROWS)
    # The name comes from the rows, never from a file: a listing opens nothing outside its folder.
    vectors = _read_vectors(folder / f"vectors-{_name(rows)}.npy", sha256, (len(rows), header.dimension))
    ids = tuple(row.id for row in rows)
    if len(set(ids)) != len(ids):
        raise EmbeddingError("Duplicate id in the store", where=str(folder / ROWS))
    for start in range(0, len(vectors), _JOINED):
        if not np.isfinite(vectors[start : start + _JOINED]).all():
            raise EmbeddingError("The store holds vectors that are not finite", where=str(folder))
    return Embeddings(ids, vectors, header.encoder, tuple(row.image for row in rows))


def remove_store(folder: Path) -> None:
    """Remove the files of a store, and the folder if nothing else lies in it."""
    for path in [folder / HEADER, folder / ROWS, folder / _LOCK, *folder.glob("vectors-*.npy")]:
        path.unlink(missing_ok=True)
    shutil.rmtree(folder / SHARDS, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()


def batch_of(folder: Path) -> int | None:
    """Return the batch size of a store, or None if it does not exist yet."""
    return read_header(folder).batch if (folder / HEADER).is_file() else None


def _require_same(there: StoreHeader, requested: StoreHeader, folder: Path) -> None:
    before, now = (asdict(header.encoder) | msgspec.structs.asdict(header) for header in (there, requested))
    for name in sorted(now.keys() - {"encoder"}):
        if before[name] != now[name]:
            raise EmbeddingError(
                f"The store was made with another {name}",
                where=str(folder),
                expected=str(before[name])[:300],
                found=str(now[name])[:300],
                hint="choose another --out, or the options that the store was made with",
            )


def read_header(folder: Path) -> StoreHeader:
    """Return the header of a store."""
    if not (folder / HEADER).is_file():
        raise MissingFileError(
            "No embedding store found", where=str(folder), hint="curation similarity embed … --out DIR"
        )
    with _well_formed(folder / HEADER):
        return msgspec.json.decode(read_bytes(folder / HEADER), type=StoreHeader)


def _read_rows(path: Path) -> tuple[list[Row], str]:
    """Return the rows of a listing and the digest of its array."""
    with _well_formed(path):
        listing = msgspec.json.decode(read_bytes(path), type=_Listing)
    if not 0 < len(listing.ids) == len(listing.images) == len(listing.boxes):
        raise EmbeddingError("The columns of a store are empty or differ in length", where=str(path))
    return list(map(Row, listing.ids, listing.images)), listing.sha256


@contextmanager
def _well_formed(path: Path) -> Iterator[None]:
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EmbeddingError("A file of the store is damaged", where=str(path), found=str(error)[:200]) from None


def _read_vectors(path: Path, sha256: str, shape: tuple[int, int]) -> Vectors:
    """Return the array of a listing, memory-mapped, after its digest is checked."""
    try:
        if sha256_of_file(path) != sha256:
            raise EmbeddingError("The vectors do not match the listing of the store", where=str(path))
        vectors: Vectors = np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError:
        raise MissingFileError("The vectors of the store are missing", where=str(path)) from None
    except _DAMAGE as error:
        raise EmbeddingError(
            "The vectors of the store cannot be read", where=str(path), found=str(error)[:200]
        ) from None
    if vectors.shape != shape or vectors.dtype != np.float32:
        raise EmbeddingError(
            "The vectors of the store do not have the listed shape",
            where=str(path),
            expected=f"float32 {shape}",
            found=f"{vectors.dtype} {vectors.shape}"[:200],
        )
    return vectors


def _name(rows: Sequence[Row]) -> str:
    return sha256_of_lines(f"{row.id}\t{row.image}\t" for row in rows).removeprefix("sha256:")[:_HEX]
