"""The Semantic Shift Benchmark (Vaze et al., ICLR 2022): ImageNet and CUB from raw files."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.facts import fact
from curation.manifest.header import Paper

BENCHMARK = Benchmark(
    name="ssb",
    paper=fact(__package__, "paper", Paper),
    summary="Semantic shift: unknown classes easy and hard to tell from known ones, of CUB and of ImageNet",
    slots="curation.benchmarks.ssb.lists:SLOTS",
    parameters="curation.benchmarks.ssb.lists:PARAMETERS",
    parts=(
        ("train", "cub: training images of known classes"),
        ("known", "test images of known classes"),
        ("easy", "test images of easy unknown classes"),
        ("medium", "not imagenet: test images of medium unknown classes"),
        ("hard", "test images of hard unknown classes"),
        ("test-easy", "known images joined with easy unknown ones"),
        ("test-hard", "known images joined with medium and hard unknown ones"),
    ),
    page="docs/ssb.md",
    build="curation.benchmarks.ssb.lists:build",
    declare="curation.benchmarks.ssb.lists:declare",
    choose_slots="curation.benchmarks.ssb.lists:choose_slots",
)
