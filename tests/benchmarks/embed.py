"""The embedding pipeline against the bare model, on the same photos in the same run.

The bare model encodes batches that are decoded and prepared beforehand. Photos: those below CURATION_SHARED where it is
set, each several times under different ids, else drawn ones of COCO's size.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from curation.similarity.embed import embed_photos
from curation.similarity.encoder import Encoder
from curation.similarity.items import Photo
from curation.similarity.open_clip_encoder import open_clip_encoder
from curation.sources.photos import PhotoFolder, decode_photo
from tests.benchmarks.measured import measured

BATCH = 32
REPEATS = 3
_TINY = {
    "embed_dim": 64,
    "vision_cfg": {"image_size": 64, "layers": 2, "width": 64, "head_width": 32, "patch_size": 16},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 2},
}


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement: what, value, unit, what is required, and whether it is met."""
    folder = out / "embed"
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "tiny.json"
    config.write_text(json.dumps(_TINY))
    paths = _paths(folder)
    rows = []
    for name, model, count in (("tiny", str(config), 320), ("ViT-S-32-alt", "ViT-S-32-alt", 160)):
        photos = [Photo(f"bench:{n}", paths[n % len(paths)]) for n in range(count)]
        rows += _measured(name, open_clip_encoder(model, random_weights=0), photos, folder / "store")
    return rows


def _measured(name: str, encoder: Encoder, photos: list[Photo], store: Path) -> list[dict[str, Any]]:
    prepared = [encoder.prepare(decode_photo(photo.path.read_bytes())) for photo in photos if photo.path]
    encoder.encode_prepared(prepared[:BATCH])
    bare, whole, again = [], [], []
    # In turn, so that a change of the machine's pace meets both.
    for _ in range(REPEATS):
        began = time.perf_counter()
        for start in range(0, len(prepared), BATCH):
            encoder.encode_prepared(prepared[start : start + BATCH])
        bare.append(len(photos) / (time.perf_counter() - began))
        shutil.rmtree(store, ignore_errors=True)
        for rates in (whole, again):
            began = time.perf_counter()
            embed_photos(photos, encoder, store, batch=BATCH)
            rates.append(len(photos) / (time.perf_counter() - began))
    alone = _decoding(encoder, photos)
    share = statistics.median(whole) / statistics.median(bare)
    machine = f"{os.cpu_count()} processors"
    return [
        measured(
            f"{name}: bare model, batches at hand",
            statistics.median(bare),
            "img/s",
            note=machine,
        ),
        measured(f"{name}: decoding and preparing, one thread", alone, "img/s", note=machine),
        measured(f"{name}: pipeline", statistics.median(whole), "img/s", note=machine),
        measured(f"{name}: pipeline / bare model", share, "ratio", least=0.9, note=machine),
        measured(
            f"{name}: nothing changed, digests alone",
            statistics.median(again),
            "img/s",
            note=machine,
        ),
    ]


def _decoding(encoder: Encoder, photos: list[Photo]) -> float:
    began = time.perf_counter()
    for photo in photos:
        if photo.path:
            encoder.prepare(decode_photo(photo.path.read_bytes()))
    return len(photos) / (time.perf_counter() - began)


def _paths(folder: Path) -> list[Path]:
    shared = os.environ.get("CURATION_SHARED")
    mini = Path(shared) / "data" / "coco" / "mini" if shared else None
    if mini and mini.is_dir():
        return list(PhotoFolder(mini).paths)
    from PIL import Image

    for number in range(32):
        coarse = np.random.default_rng(number).integers(0, 256, (40, 60, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((640, 480)).save(folder / f"{number}.jpg")
    return list(PhotoFolder(folder).paths)
