"""A folder of embeddings in shards: memory-mapped, checked by digests, finished shard by shard."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from curation.canonical import sha256_of_bytes, sha256_of_file, sha256_of_lines
from curation.errors import MissingFileError, SimilarityError
from curation.similarity.embeddings import Embeddings, EncoderIdentity, Vectors
from curation.storage import make_folder, read_bytes, remove_abandoned, write_bytes, write_text

STORE_FILE = "store.json"
SCHEMA = 1
LARGEST_INDEX = 64 << 20


class _Encoder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: str
    weights: str
    preprocessing: str
    dtype: str
    output: str
    digest: str


class _Store(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: int
    encoder: _Encoder
    kind: str
    shard_size: int
    batch: int


class _Shard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    inputs: str
    sha256: str
    ids: list[str]
    images: list[str]
    failures: dict[str, str]


@dataclass(frozen=True, slots=True)
class ShardContent:
    """What one shard holds: embeddings of some inputs, and the inputs that could not be read."""

    ids: tuple[str, ...]
    images: tuple[str, ...]
    vectors: Vectors
    failures: dict[str, str]


class EmbeddingStore:
    """Embeddings of one list of inputs by one encoder, shard after shard.

    A shard is the vectors of a fixed run of the list. It is finished when its index is written, last; killed at any
    moment, a store holds whole shards, and the next run computes the others. A shard whose inputs have other bytes is
    computed again.

    Parameters
    ----------
    folder : Path
    identity : EncoderIdentity
    kind : {"images", "boxes", "texts"}
    shard_size, batch : int
        Inputs in a shard and in a batch. Both are part of the store: a network's last bits depend on the batch.

    Raises
    ------
    SimilarityError
        The folder holds the embeddings of another encoder, or of other batches.
    """

    def __init__(
        self, folder: Path, identity: EncoderIdentity, *, kind: str, shard_size: int, batch: int
    ) -> None:
        self.folder = folder
        record = {
            "schema": SCHEMA,
            "encoder": identity.as_data(),
            "kind": kind,
            "shard_size": shard_size,
            "batch": batch,
        }
        text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        if (folder / STORE_FILE).exists():
            present = _read_store(folder)
            if msgspec.to_builtins(present) != record:
                raise SimilarityError(
                    "The folder holds other embeddings",
                    where=str(folder),
                    expected=f"{identity.model}, {identity.output}, {kind}, batches of {batch}, shards of {shard_size}",
                    found=f"{present.encoder.model}, {present.encoder.output}, {present.kind}, batches of "
                    f"{present.batch}, shards of {present.shard_size}; encoder {present.encoder.digest[:19]}",
                    hint="choose another --out",
                )
        else:
            make_folder(folder)
            write_text(folder / STORE_FILE, text)
        remove_abandoned(folder)

    def is_finished(self, number: int, inputs: str) -> bool:
        """Return whether a shard is there, whole, and of these inputs (their digest, see `inputs_digest`)."""
        try:
            shard = _read_shard(self.folder, number)
        except (MissingFileError, SimilarityError):
            return False
        path = _vectors_path(self.folder, number)
        return shard.inputs == inputs and path.is_file() and sha256_of_file(path) == shard.sha256

    def write(self, number: int, inputs: str, content: ShardContent) -> None:
        """Write a shard: vectors, and then the index that makes it count."""
        stream = io.BytesIO()
        np.save(stream, np.ascontiguousarray(content.vectors, np.float32), allow_pickle=False)
        data = stream.getvalue()
        _index_path(self.folder, number).unlink(missing_ok=True)
        write_bytes(_vectors_path(self.folder, number), data)
        index = {
            "inputs": inputs,
            "sha256": sha256_of_bytes(data),
            "ids": list(content.ids),
            "images": list(content.images),
            "failures": content.failures,
        }
        write_text(_index_path(self.folder, number), json.dumps(index, ensure_ascii=False) + "\n")

    def trim(self, shards: int) -> None:
        """Remove shards of an earlier, longer list."""
        for path in self.folder.glob("shard-*.json"):
            number = int(path.stem.partition("-")[2]) if path.stem.partition("-")[2].isdigit() else -1
            if number >= shards:
                path.unlink()
                _vectors_path(self.folder, number).unlink(missing_ok=True)


def inputs_digest(ids: Sequence[str], images: Sequence[str]) -> str:
    """Return the digest of what a shard is computed from: ids with the digests of their bytes, in order."""
    return sha256_of_lines([f"{image} {one}" for one, image in zip(ids, images, strict=True)])


def open_embeddings(folder: Path) -> Embeddings:
    """Return the embeddings of a store, every shard checked; a single shard stays memory-mapped.

    Raises
    ------
    MissingFileError
        There is no store at this place.
    SimilarityError
        It is damaged, unfinished, or its shards do not fit together.
    """
    store = _read_store(folder)
    numbers = sorted(int(path.stem[6:]) for path in folder.glob("shard-*.json") if path.stem[6:].isdigit())
    if numbers != list(range(len(numbers))) or not numbers:
        raise SimilarityError(
            "The store is not finished",
            where=str(folder),
            expected="shards 0, 1, 2, …",
            found=", ".join(map(str, numbers[:5])) or "none",
            hint="run the same curation embed again: it goes on where it stopped",
        )
    shards = [_read_shard(folder, number) for number in numbers]
    vectors = [_vectors(folder, number, shard) for number, shard in zip(numbers, shards, strict=True)]
    if len({array.shape[1] for array in vectors if len(array)}) > 1:
        raise SimilarityError("The shards hold vectors of different lengths", where=str(folder))
    filled = [array for array in vectors if len(array)] or vectors[:1]
    fields = {
        name: getattr(store.encoder, name) for name in store.encoder.__struct_fields__ if name != "digest"
    }
    return Embeddings(
        tuple(one for shard in shards for one in shard.ids),
        filled[0] if len(filled) == 1 else np.concatenate(filled),
        EncoderIdentity(**fields),
        tuple(image for shard in shards for image in shard.images),
        {one: why for shard in shards for one, why in shard.failures.items()},
    )


def _vectors(folder: Path, number: int, shard: _Shard) -> Vectors:
    path = _vectors_path(folder, number)
    if not path.is_file() or sha256_of_file(path) != shard.sha256:
        raise SimilarityError(
            "A shard is not what its index says",
            where=str(path),
            expected=shard.sha256,
            found=sha256_of_file(path) if path.is_file() else "no file",
            hint="run the same curation embed again: it computes the shard anew",
        )
    try:
        array: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise SimilarityError("A shard is no array", where=str(path), found=str(error)[:120]) from None
    if array.ndim != 2 or array.dtype != np.float32 or len(array) != len(shard.ids):
        raise SimilarityError(
            "A shard does not hold its vectors",
            where=str(path),
            expected=f"float32, {len(shard.ids)} rows",
            found=f"{array.dtype}, shape {array.shape}",
        )
    vectors: Vectors = array
    return vectors


def _read_store(folder: Path) -> _Store:
    path = folder / STORE_FILE
    try:
        store = msgspec.json.decode(_limited(path), type=_Store)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SimilarityError(
            "This is no store of embeddings",
            where=str(path),
            expected="what curation embed wrote",
            found=str(error)[:160],
        ) from None
    if store.schema != SCHEMA:
        raise SimilarityError("The store is of another version", where=str(path), expected=str(SCHEMA),
                              found=str(store.schema))  # fmt: skip
    return store


def _read_shard(folder: Path, number: int) -> _Shard:
    path = _index_path(folder, number)
    try:
        shard = msgspec.json.decode(_limited(path), type=_Shard)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SimilarityError(
            "The index of a shard is damaged", where=str(path), found=str(error)[:160]
        ) from None
    if len(shard.ids) != len(shard.images):
        raise SimilarityError("The index of a shard is damaged", where=str(path), found="a digest is missing")
    return shard


def _limited(path: Path) -> bytes:
    data = read_bytes(path, kind="store of embeddings")
    if len(data) > LARGEST_INDEX:
        raise SimilarityError(
            "The index is too large to be one", where=str(path), found=f"{len(data):,} bytes"
        )
    return data


def _vectors_path(folder: Path, number: int) -> Path:
    return folder / f"shard-{number:05}.npy"


def _index_path(folder: Path, number: int) -> Path:
    return folder / f"shard-{number:05}.json"
