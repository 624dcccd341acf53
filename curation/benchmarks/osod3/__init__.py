"""Rectifying Open-Set Object Detection (2023): super-class splits and unknowns that are defined."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.facts import fact
from curation.manifest.header import Paper

BENCHMARK = Benchmark(
    name="osod3",
    paper=fact(__package__, "paper", Paper),
    summary="known and unknown sub-classes of one super-class: Open Images animals and vehicles, CUB, MTSD",
    slots="curation.benchmarks.osod3.lists:SLOTS",
    parameters="curation.benchmarks.osod3.problems:PARAMETERS",
    parts=(
        ("train", "images of known classes"),
        ("val", "for tuning"),
        ("test", "known and unknown classes"),
    ),
    page="docs/osod3.md",
    build="curation.benchmarks.osod3.lists:build",
    declare="curation.benchmarks.osod3.lists:declare",
    choose_slots="curation.benchmarks.osod3.lists:choose_slots",
)
