"""ImageNet-OOD (Yang et al., ICLR 2024)."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.facts import fact
from curation.manifest.header import Paper

BENCHMARK = Benchmark(
    name="imagenetood",
    paper=fact(__package__, "paper", Paper),
    summary="Out-of-distribution images of 637 classes of ImageNet-21K for ImageNet-1K",
    parts=(("imagenetood", "OOD images"),),
    page="docs/imagenetood.md",
    recipes="curation.benchmarks.imagenetood.lists:RECIPES",
)
