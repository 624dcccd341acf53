"""Small sources for the OSOD-III protocol: Open Images with its classes by MID, CUB, and traffic signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from curation.benchmarks.building import read_parameters
from curation.benchmarks.registry import find_benchmark
from curation.benchmarks.rules.benchmark_file import packaged_file
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.sources.source import Source
from tests.made_source import image_rows, make_source

CLASSES = {word: packaged_file(f"osod3/openimages-{word}").classes for word in ("animal", "vehicle")}
SUPERCLASSES = {word: classes.groups[word] for word, classes in CLASSES.items()}
INNER_NODES = {word: classes.of("ignored") for word, classes in CLASSES.items()}
OUTSIDE = ("/m/0tree", "/m/0wheel")
LABELS = (*SUPERCLASSES["vehicle"], *INNER_NODES["vehicle"], *OUTSIDE)
SPECIES = sorted(entry.aliases[0] for entry in load_manifest("osod3/cub-1").header.classes)
SIGNS = tuple(f"sign--{place:02}" for place in range(24))
GROUPS = (SIGNS[:12], SIGNS[12:16], SIGNS[16:])


def source_of(
    dataset: str,
    part: str,
    shown: Mapping[str, Sequence[str]],
    names: Sequence[str],
    labels: Sequence[str] | None = None,
    crowd: Sequence[str] = (),
) -> Source:
    """Return a source of images and the classes on them; boxes of images in `crowd` are group boxes."""
    natives = list(shown)
    pairs = [(image, name) for image, native in enumerate(natives) for name in shown[native]]
    return make_source(
        dataset,
        dataset,
        image_rows(natives, size=(640, 480)),
        [
            (image, name, [10.0, 20.0, 30.0, 40.0], {"id": k, "crowd": natives[image] in crowd})
            for k, (image, name) in enumerate(pairs)
        ],
        dict(enumerate(names)),
        part=part,
        labels=labels or (),
        file=f"{dataset}_{part}.csv",
        licence="stated",
    )


def name_of(label: str) -> str:
    return f"name of {label}"


def open_images(part: str, images: int, seed: int, crowd: Sequence[str] = ()) -> Source:
    """Images with one to four of the vehicles, inner nodes and strangers."""
    rng = np.random.default_rng(seed)
    names = [name_of(one) for one in LABELS]
    shown = {
        f"{seed * 10_000 + place:016x}": [names[k] for k in rng.choice(len(LABELS), int(rng.integers(1, 5)))]
        for place in range(images)
    }
    return source_of("openimages", part, shown, names, LABELS, crowd)


def cub(part: str, per_class: int, keys: Sequence[str] = ()) -> Source:
    """Images of one bird each; species have the names of some keys, such as ``SPECIES``, or drawn ones."""
    names = [key.partition(".")[2] for key in keys] or [f"Bird_{number:03}" for number in range(1, 201)]
    shown = {f"{name}_{part}_{k}": [name] for name in names for k in range(per_class)}
    return source_of("cub200", part, shown, names, keys)


def signs(part: str, images: int, seed: int) -> Source:
    """Signs of three groups that keep to themselves, with now and then a stranger, and other-sign everywhere."""
    rng = np.random.default_rng(seed)
    shown = {}
    for place in range(images):
        group = GROUPS[int(rng.choice(3, p=[0.5, 0.2, 0.3]))]
        own = [group[k] for k in rng.choice(len(group), int(rng.integers(1, 4)))]
        if rng.random() < 0.05:
            own.append(SIGNS[int(rng.integers(24))])
        shown[f"{part}{place:04}"] = [*own, "other-sign"]
    return source_of("mtsd", part, shown, [*SIGNS, "other-sign"])


def built(sources: Mapping[str, Source], **settings: Any) -> Manifest:
    texts = {name: str(value) for name, value in settings.items()}
    return find_benchmark("osod3").build(sources, read_parameters(find_benchmark("osod3"), texts))
