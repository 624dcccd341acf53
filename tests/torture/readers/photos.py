"""Photos, corpora of them, and their embeddings."""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.torture.readers.target import Files, Target, call, parquet, picture, reader


def _store() -> Files:
    from curation.signals.similarity.embeddings import EmbeddingStore, EncoderIdentity, Row, StoreHeader

    identity = EncoderIdentity("colour", "none", "8x8", "float32")
    with tempfile.TemporaryDirectory() as folder:
        store = EmbeddingStore(Path(folder, "s"), StoreHeader(kind="images", encoder=identity, dimension=3, batch=2))
        rows = [Row(f"coco:00000000000{n}", "sha256:" + str(n) * 64) for n in (1, 2)]
        store.add(rows, np.arange(6, dtype=np.float32).reshape(2, 3))
        store.finish(rows)
        return {path.name: path.read_bytes() for path in sorted(Path(folder, "s").iterdir()) if path.is_file()}


def _seal_store(files: Files) -> Files:
    """Name the array by the rows, and state its digest."""
    import hashlib

    from curation.signals.similarity import embeddings

    listing = json.loads(files["rows.json"])
    name = next(one for one in files if one.endswith(".npy"))
    listing["sha256"] = "sha256:" + hashlib.sha256(files[name]).hexdigest()
    rows = [embeddings.Row(*row) for row in zip(listing["ids"], listing["images"], strict=True)]
    others = {one: data for one, data in files.items() if one != name}
    return {**others, f"vectors-{embeddings._name(rows)}.npy": files[name], "rows.json": json.dumps(listing).encode()}


def _photo(folder: Path) -> Any:
    """Decode a photo; what cannot be is told by an error that its callers count."""
    from curation.sources import photos

    (path,) = folder.iterdir()
    try:
        return photos.decode_photo(photos.read_photo(path))
    except photos.BrokenPhotoError:
        return None


def _corpus(folder: Path) -> Any:
    (path,) = folder.iterdir()
    return [list(block.tables()) for block in call("sources.corpus:corpus_blocks")(path)]


def _tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in (("a.png", picture("PNG")), ("a.json", b"{}"), ("b.jpg", picture("JPEG"))):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def targets() -> list[Target]:
    """Return the targets of this module."""
    corpora = ("tar", _tar(), 3), ("parquet", parquet(id=["a", "b"], path=["x/a.jpg", "b.jpg"]), 2)
    pictures = ("png", picture("PNG"), 3), ("png of 16 bits", picture("PNG", "I;16"), 1), ("jpeg", picture("JPEG"), 2)
    return [
        reader("embeddings", _store(), "signals.similarity.embeddings:open_embeddings", seal=_seal_store, weight=3),
        reader("texts", {"t.txt": b"a dog\na cat\n"}, "signals.similarity.from_files:_texts"),
        *(Target(f"corpus, {form}", {f"c.{form}": data}, _corpus, weight=n) for form, data, n in corpora),
        *(Target(f"photo, {form}", {f"p.{form.split()[0]}": data}, _photo, weight=n) for form, data, n in pictures),
    ]
