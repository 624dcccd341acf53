"""nu-OWODB: open-world detection on nuImages."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.facts import fact
from curation.manifest.header import Paper

BENCHMARK = Benchmark(
    name="nuowodb",
    paper=fact(__package__, "paper", Paper),
    summary="Open-world detection on nuImages: 10, 7 and 6 classes (nu-OWODB)",
    parts=(
        ("tN-train", "images with a class that task N introduces, as published"),
        ("tN-test", "the same images for every task"),
    ),
    page="docs/nuowodb.md",
    recipes="curation.benchmarks.nuowodb.lists:RECIPES",
)
