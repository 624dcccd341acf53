"""A benchmark of another package: half of the images with a known class train, the others test."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from curation.benchmarks.benchmark import fact
from curation.benchmarks.parts import Selection, all_images, make_part, manifest_of, source_entry
from curation.manifest.header import ClassEntry, LabelView, Paper
from curation.manifest.manifest import Manifest
from curation.sources.source import Source

PAPER = fact(__package__, "paper", Paper)
KNOWN, UNKNOWN = (fact(__package__, key, tuple[str, ...]) for key in ("known", "unknown"))
CLASSES = (
    *(ClassEntry(name=name, role="known", index=index) for index, name in enumerate(KNOWN, start=1)),
    *(ClassEntry(name=name, role="unknown", index=-1) for name in UNKNOWN),
)


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the two lists: the first half of the images with a known class trains, the others test."""
    source = sources["birds"]
    image, category = source.class_pairs()
    known = [source.categories.names[one] in KNOWN for one in category.tolist()]
    with_known = np.unique(image[known])
    train = with_known[: len(with_known) // 2 + 1]
    chosen = {"train": train, "test": np.setdiff1d(all_images(source), train)}
    views = {"train": LabelView(unknown="drop"), "test": LabelView()}
    parts = [
        make_part(role, role, Selection("birds", source, positions), CLASSES, view=views[role], rule=role)
        for role, positions in chosen.items()
    ]
    return manifest_of(
        parts,
        name="owls/first",
        title=PAPER.title,
        paper=PAPER,
        taxonomy="OSOD-II",
        classes=CLASSES,
        sources=(source_entry("birds", source),),
        protocol="owls",
        algorithm_version=1,
        parameters=parameters,
    )
