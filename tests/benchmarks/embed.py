"""The embedding pipeline against what the cores can do, and against the bare model, on the same photos in the same run.

Whatever the threads do, reading, decoding and the model take so many core-seconds: the least time is their sum over
the number of cores. That is the limit; the bare model alone, which encodes batches that are decoded and prepared
beforehand, is out of reach where decoding costs more than the model. Photos: those below CURATION_SHARED where it is
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

from curation.canonical import sha256_of_bytes
from curation.similarity.embed import Photo, embed_photos, usual_threads
from curation.similarity.encoder import Encoder, Prepared, one_core_each
from curation.similarity.open_clip import open_clip_encoder
from curation.sources.photos import PhotoFolder, decode_photo
from tests.benchmarks.measured import measured

BATCH, PHOTOS = 32, 960
"""One core may encode the last batch while the others have nothing to do: of thirty batches that counts little."""
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
    for name, model in (("tiny", str(config)), ("ViT-S-32-alt", "ViT-S-32-alt")):
        photos = [Photo(f"bench:{n}", paths[n % len(paths)]) for n in range(PHOTOS)]
        rows += _measured(name, open_clip_encoder(model, random_weights=0), photos, folder / "store")
    return rows


def _measured(name: str, encoder: Encoder, photos: list[Photo], store: Path) -> list[dict[str, Any]]:
    prepared = [encoder.prepare(decode_photo(photo.path.read_bytes())) for photo in photos if photo.path]
    encoder.encode_prepared(prepared[:BATCH])
    bare, whole, again, limits = [], [], [], []
    # In turn, so that a change of the machine's pace meets both.
    for _ in range(REPEATS):
        began = time.perf_counter()
        for start in range(0, len(prepared), BATCH):
            encoder.encode_prepared(prepared[start : start + BATCH])
        bare.append(len(photos) / (time.perf_counter() - began))
        limits.append(len(photos) / _least_seconds(encoder, photos, prepared))
        shutil.rmtree(store, ignore_errors=True)
        for rates in (whole, again):
            began = time.perf_counter()
            embed_photos(photos, encoder, store, batch=BATCH)
            rates.append(len(photos) / (time.perf_counter() - began))
    decoding = _decoding(encoder, photos)
    # Each round by itself, so that a change of the machine's pace meets both sides.
    of_limit = statistics.median(one / limit for one, limit in zip(whole, limits, strict=True))
    share = statistics.median(whole) / statistics.median(bare)
    note = f"{usual_threads()} cores"
    return [
        measured(f"{name}: bare model, batches prepared before", statistics.median(bare), "img/s", note=note),
        measured(f"{name}: reading and decoding, one core", len(photos) / decoding, "img/s", note=note),
        measured(f"{name}: limit, all cores", statistics.median(limits), "img/s", note=note),
        measured(f"{name}: pipeline", statistics.median(whole), "img/s", note=note),
        measured(f"{name}: pipeline / limit", of_limit, "ratio", least=0.9, note=note),
        measured(f"{name}: pipeline / bare model", share, "ratio", note=note),
        measured(f"{name}: nothing changed, digests alone", statistics.median(again), "img/s", note=note),
    ]


def _least_seconds(encoder: Encoder, photos: list[Photo], prepared: list[Prepared]) -> float:
    """Return the core-seconds of reading, decoding and encoding the photos, over the number of cores."""
    with one_core_each(encoder):
        began = time.process_time()
        for start in range(0, len(prepared), BATCH):
            encoder.encode_prepared(prepared[start : start + BATCH])
        model = time.process_time() - began
    return (_decoding(encoder, photos) + model) / usual_threads()


def _decoding(encoder: Encoder, photos: list[Photo]) -> float:
    """Return the core-seconds of what every photo needs: its bytes, their digest, decoding and resizing."""
    began = time.process_time()
    for photo in photos:
        if photo.path:
            data = photo.path.read_bytes()
            sha256_of_bytes(data)
            encoder.prepare(decode_photo(data))
    return time.process_time() - began


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
