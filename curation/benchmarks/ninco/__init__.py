"""NINCO (Bitterwolf et al., ICML 2023): images that people found to show no ImageNet class."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.facts import fact
from curation.manifest.header import Paper

BENCHMARK = Benchmark(
    name="ninco",
    paper=fact(__package__, "paper", Paper),
    summary="Out-of-distribution images of 64 classes, judged by people, for ImageNet-1K (NINCO)",
    parts=(
        ("ninco", "64 classes of OOD images"),
        ("subsamples", "images of popular OOD sets that were judged OOD"),
        ("unit_tests", "synthetic images"),
    ),
    page="docs/ninco.md",
    recipes="curation.benchmarks.ninco.lists:RECIPES",
)
