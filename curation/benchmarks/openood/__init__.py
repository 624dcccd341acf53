"""OpenOOD 1.5, its ImageNet-1K part (Zhang et al., arXiv 2306.09301)."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.facts import fact
from curation.manifest.header import Paper

BENCHMARK = Benchmark(
    name="openood",
    paper=fact(__package__, "paper", Paper),
    summary="Out-of-distribution detection on ImageNet-1K: near, far and covariate-shifted sets (OpenOOD 1.5)",
    slots="curation.benchmarks.openood.lists:SLOTS",
    parts=(
        ("imagenet, val_imagenet", "ILSVRC validation images: 45 and 5 a class"),
        ("ssb_hard, ninco", "near OOD"),
        ("inaturalist, textures, openimage_o", "far OOD"),
        ("val_openimage_o", "OOD images for the choice of hyper-parameters"),
        ("imagenet_v2, imagenet_c, imagenet_r", "covariate-shifted ID; published lists alone"),
    ),
    page="docs/openood.md",
    build="curation.benchmarks.openood.lists:build",
    recipes="curation.benchmarks.openood.lists:RECIPES",
    formats="curation.benchmarks.openood.layout:FORMATS",
)
