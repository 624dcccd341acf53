"""Signals of nearness: cuts of co-occurrence graphs, neighbours, WordNet's similarities, embeddings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from curation.signals.similarity.encoder import EncoderOptions
from tests.benchmarks.own_process import Clock

QUERIES, REFERENCES, DIMENSION, NEAREST = 2_000, 60_000, 512, 50
BATCH, PHOTOS = 32, 320
PAIRS = 2_000


def _graph(folder: Path) -> Any:
    from curation.signals.cooccurrence.graph import ClassGraph

    weights = np.load(folder / "graph.npy")
    return ClassGraph(tuple(f"{number:04}" for number in range(len(weights))), weights)


def draw_graph(folder: Path, clock: Clock) -> None:
    """Write the weights of a graph of 2,000 classes in three groups: its largest component."""
    from tests.signals.cooccurrence.graphs import planted_graph

    if not (folder / "graph.npy").exists():
        graph, _ = planted_graph((1_150, 275, 575), 100_000, 0.1)
        np.save(folder / "graph.npy", graph.restricted(graph.components()[0]).weights)


def cut(folder: Path, clock: Clock) -> float:
    """Return the normalized cut into three that is found."""
    import sklearn.cluster  # noqa: F401 - loaded before the clock starts, as for the peer

    from curation.signals.cooccurrence.cut import normalized_cut

    graph = _graph(folder)
    with clock:
        found = normalized_cut(graph, 3)
    return float(found.value)


def cut_cluster_qr(folder: Path, clock: Clock) -> float:
    """Return the normalized cut of scikit-learn's spectral clustering."""
    from sklearn.cluster import SpectralClustering

    from curation.signals.cooccurrence.graph import normalized_cut_value

    graph = _graph(folder)
    with clock:
        model = SpectralClustering(3, affinity="precomputed", assign_labels="cluster_qr", random_state=0)
        labels = model.fit_predict(graph.weights.astype(float))
    return float(normalized_cut_value(graph, labels))


def small_cuts(folder: Path, clock: Clock, count: int) -> None:
    """Cut graphs of nine classes exactly."""
    from curation.signals.cooccurrence.cut import CutOptions, normalized_cut
    from tests.signals.cooccurrence.graphs import small_graph

    graphs = [small_graph(seed) for seed in range(count + 1)]
    normalized_cut(graphs[count], 3, CutOptions(components="giant"))
    with clock:
        for graph in graphs[:count]:
            normalized_cut(graph, 3, CutOptions(components="giant"))


def _vectors() -> list[Any]:
    rng = np.random.default_rng(0)
    drawn = [rng.standard_normal((n, DIMENSION), dtype=np.float32) for n in (QUERIES, REFERENCES)]
    return [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in drawn]


def neighbors(folder: Path, clock: Clock) -> list[list[float]]:
    """Return the fifty largest products of every twentieth query."""
    from curation.signals.similarity.neighbors import nearest

    queries, references = _vectors()
    nearest(queries[:10], references[:1000], NEAREST)
    with clock:
        _, scores = nearest(queries, references, NEAREST)
    found: list[list[float]] = scores[::20].tolist()
    return found


def neighbors_faiss(folder: Path, clock: Clock) -> list[list[float]]:
    """Return the same of faiss's exact index, filling it included; in single precision."""
    import faiss

    queries, references = _vectors()
    with clock:
        index = faiss.IndexFlatIP(DIMENSION)
        index.add(references)
        scores, _ = index.search(queries, NEAREST)
    found: list[list[float]] = scores[::20].tolist()
    return found


def wu_palmer(folder: Path, clock: Clock) -> None:
    """Wu-Palmer similarity of all pairs of ImageNet's 1,000 classes."""
    from curation.core.ids import ilsvrc2012_classes
    from curation.signals.hierarchy.related_classes import kinship
    from curation.signals.hierarchy.related_classes import wu_palmer as similarity
    from curation.signals.hierarchy.wordnet import imagenet_dag

    classes = ilsvrc2012_classes()
    graph = imagenet_dag()
    with clock:
        similarity(kinship(graph, classes), classes, classes)


def wu_palmer_nltk(folder: Path, clock: Clock) -> None:
    """2,000 pairs of the same, one by one."""
    import random

    from curation.core.ids import ilsvrc2012_classes
    from tests.signals.hierarchy.nltk_oracle import nltk_reader

    chance = random.Random(7)
    reader = nltk_reader(Path(os.environ.get("CURATION_WORDNET", "/usr/share/wordnet")))
    synsets = [reader.synset_from_pos_and_offset("n", int(wnid[1:])) for wnid in ilsvrc2012_classes()]
    pairs = [(chance.choice(synsets), chance.choice(synsets)) for _ in range(PAIRS)]
    with clock:
        for synset, other in pairs:
            synset.wup_similarity(other)


def _recipe(folder: Path) -> EncoderOptions:
    from tests.signals.similarity.clip_world import write_config

    layers = {"layers": 2, "width": 64}
    model = write_config(
        folder / "tiny", vision_cfg=layers | {"image_size": 64, "head_width": 32, "patch_size": 16}, embed_dim=64
    )
    return EncoderOptions(model=model, random_weights=0)


def _photo_paths(folder: Path) -> list[Path]:
    from curation.sources.photos import PhotoFolder

    paths = PhotoFolder(folder / "photos").paths
    return [paths[number % len(paths)] for number in range(PHOTOS)]


def embed(folder: Path, clock: Clock) -> None:
    """Embed photos into a store, on all cores."""
    from tempfile import TemporaryDirectory

    from curation.signals.similarity.embed import Photo, embed_photos

    recipe = _recipe(folder)
    photos = [Photo(f"bench:{number}", path) for number, path in enumerate(_photo_paths(folder))]
    with TemporaryDirectory() as store:
        embed_photos(photos[:BATCH], recipe, Path(store) / "warm", batch=BATCH)
        with clock:
            embed_photos(photos, recipe, Path(store) / "store", batch=BATCH)


def embed_on_one_core(folder: Path, clock: Clock) -> None:
    """What every photo needs, on one core: bytes, digest, decoding, resizing, and the model in batches."""
    from curation.core.canonical import sha256_of_bytes
    from curation.signals.similarity.encoder import one_core_each
    from curation.sources.photos import decode_photo

    encoder, paths = _recipe(folder).open(), _photo_paths(folder)
    with one_core_each(encoder):
        encoder.encode_prepared([encoder.prepare(decode_photo(paths[0].read_bytes()))] * BATCH)
        with clock:
            for start in range(0, len(paths), BATCH):
                batch = [path.read_bytes() for path in paths[start : start + BATCH]]
                for data in batch:
                    sha256_of_bytes(data)
                encoder.encode_prepared([encoder.prepare(decode_photo(data)) for data in batch])


def draw(folder: Path, clock: Clock) -> None:
    """Write photos of COCO's size."""
    from PIL import Image

    (folder / "photos").mkdir(exist_ok=True)
    for number in range(32):
        coarse = np.random.default_rng(number).integers(0, 256, (40, 60, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((640, 480)).save(folder / "photos" / f"{number}.jpg")
