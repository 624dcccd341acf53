"""Large-Scale Open-Set Classification Protocols for ImageNet (WACV 2023): P1, P2, P3."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark, SourceSlot
from curation.benchmarks.facts import fact
from curation.manifest.header import Paper

_LAYOUTS = "a folder of class folders, a list of names, or JSON of names or counts by wnid"
BENCHMARK = Benchmark(
    name="imagenet",
    paper=fact(__package__, "paper", Paper),
    summary="Open-set classification on ImageNet: P1, P2, P3, or superclasses of one's own",
    slots=(
        SourceSlot("imagenet-train", "imagenet", "train", False, f"ILSVRC-2012 train: {_LAYOUTS}"),
        SourceSlot(
            "imagenet-val",
            "imagenet",
            "val",
            False,
            "ILSVRC-2012 val: a folder (a flat one with LOC_val_solution.csv or val.txt beside it), or such a file",
        ),
    ),
    parameters="curation.benchmarks.imagenet.classes:PARAMETERS",
    parts=(
        ("train", "known and negative classes"),
        ("val", "known and negative classes, from the training images"),
        ("test", "known, negative and unknown classes"),
    ),
    page="docs/imagenet.md",
    build="curation.benchmarks.imagenet.lists:build",
    formats="curation.benchmarks.imagenet.layout:FORMATS",
)
