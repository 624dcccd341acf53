"""Small embeddings and stores for tests."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow
from PIL.Image import Image

from curation.core.engines.running import run_step
from curation.core.engines.shards import Step
from curation.signals.similarity.embeddings import Embeddings, EncoderIdentity, StoreHeader, Vectors
from curation.signals.similarity.encoder import Encoder

IDENTITY = EncoderIdentity("drawn", "none", "none", "float32")


def embedded(rows: Mapping[str, Sequence[float]], **identity: Any) -> Embeddings:
    encoder = EncoderIdentity(
        **{"model": "drawn", "weights": "none", "preprocessing": "none", "dtype": "float32"} | identity
    )
    vectors = np.array(list(rows.values()), np.float32).reshape(len(rows), -1)
    return Embeddings(tuple(rows), vectors, encoder, tuple(f"sha256:{one}" for one in rows))


def random_set(n: int, d: int, seed: int, prefix: str = "coco") -> Embeddings:
    rng = np.random.default_rng(seed)
    return embedded({f"{prefix}:{row:06}": rng.normal(size=d).tolist() for row in range(n)})


def encode_images(encoder: Encoder, images: Sequence[Image]) -> Vectors:
    """The vectors of RGB pictures as one batch, float32, shape (b, d)."""
    if not images:
        return np.empty((0, encoder.dimension), np.float32)
    return encoder.encode_prepared([encoder.prepare(image) for image in images])


@dataclass(frozen=True, eq=False)
class _Copy(Step):
    name = "embed"
    version = 3
    header: StoreHeader

    @property
    def parameters(self) -> dict[str, Any]:
        return msgspec.to_builtins(self.header)  # type: ignore[no-any-return]

    def __call__(self, table: pyarrow.Table) -> pyarrow.Table:
        return table


@dataclass(frozen=True, eq=False)
class _Block:
    name: str
    table: pyarrow.Table
    key: str = ""

    def tables(self) -> Iterator[pyarrow.Table]:
        yield self.table


def store(folder: Path, embeddings: Embeddings, block: int = 100, kind: Any = "images") -> Path:
    """Return the folder of a store of these embeddings, as ``curation similarity embed`` would leave it."""
    header = StoreHeader(kind=kind, encoder=embeddings.encoder, dimension=embeddings.vectors.shape[1], batch=10)
    ids, images = pyarrow.array(embeddings.ids), pyarrow.array(embeddings.images)
    vectors = pyarrow.array(list(embeddings.vectors), pyarrow.large_list(pyarrow.float32()))
    errors = pyarrow.nulls(len(ids), pyarrow.string())
    table = pyarrow.table({"id": ids, "image": images, "vector": vectors, "error": errors})
    blocks = [_Block(f"rows {start}", table.slice(start, block)) for start in range(0, len(ids), block)]
    run_step(_Copy(header), blocks, out=folder)
    return folder
