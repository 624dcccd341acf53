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
        ("imagenet", "ILSVRC validation images, 45 a class"),
        ("val_imagenet", "the other 5 a class, for the choice of hyper-parameters"),
        ("ssb_hard", "near OOD: hard classes of the Semantic Shift Benchmark"),
        ("ninco", "near OOD: NINCO"),
        ("inaturalist", "far OOD: plants"),
        ("textures", "far OOD: DTD"),
        ("openimage_o", "far OOD: Open Images"),
        ("val_openimage_o", "OOD images for the choice of hyper-parameters"),
        ("imagenet-and-val", "where val_imagenet is not given: both together; openimage_o-and-val likewise"),
    ),
    page="docs/openood.md",
    build="curation.benchmarks.openood.lists:build",
    recipes="curation.benchmarks.openood.lists:RECIPES",
    formats="curation.benchmarks.openood.layout:FORMATS",
)
