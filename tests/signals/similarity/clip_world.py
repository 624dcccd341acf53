"""A tiny open_clip model and drawn photos, for tests."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from curation.signals.similarity.embeddings import EncoderIdentity, Vectors
from curation.signals.similarity.encoder import Prepared

TINY = {
    "embed_dim": 24,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 16},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}


def write_config(folder: Path, **changes: Any) -> str:
    """Write the configuration of the tiny model into a folder, and return its name for ``--model``."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"model_cfg": TINY | changes, "preprocess_cfg": {}})
    (folder / "open_clip_config.json").write_text(text)
    return f"local-dir:{folder}"


def picture(number: int, size: tuple[int, int] = (40, 30)) -> np.ndarray:
    """Smooth random pixels, uint8, shape (height, width, 3), unlike those of every other number."""
    from PIL import Image

    coarse = np.random.default_rng(number).integers(0, 256, (5, 5, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC))


def write_photos(folder: Path, count: int, *, size: tuple[int, int] = (40, 30)) -> list[Path]:
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{number:03d}.png" for number in range(count)]
    for number, path in enumerate(paths):
        Image.fromarray(picture(number, size)).save(path)
    return paths


class MeanEncoder:
    """Mean colour of a picture; it remembers how many pictures each batch had."""

    identity = EncoderIdentity("mean", "none", "RGB", "float32")
    dimension = 3

    def __init__(self, scale: float = 1.0) -> None:
        self.batches: list[int] = []
        self.scale = scale

    def prepare(self, image: Any) -> Prepared:
        mean: Prepared = np.asarray(image, np.float64).reshape(-1, 3).mean(axis=0)
        return mean

    def encode_prepared(self, batch: Sequence[Prepared]) -> Vectors:
        self.batches.append(len(batch))
        return (np.stack(batch) * self.scale).astype(np.float32)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(len(texts))
        return np.array([[len(text), 1, ord(text[0])] for text in texts], np.float32)
