"""Rectifying Open-Set Object Detection (2023): super-class splits and unknowns that are defined."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.osod3.declared import declare
from curation.benchmarks.osod3.facts import PAPER
from curation.benchmarks.osod3.lists import SLOTS, build, choose_slots
from curation.benchmarks.osod3.parameters import PARAMETERS

BENCHMARK = Benchmark(
    name="osod3",
    paper=PAPER,
    summary="known and unknown sub-classes of one super-class: Open Images animals and vehicles, CUB, MTSD",
    slots=SLOTS,
    parameters=PARAMETERS,
    parts=(
        ("train", "images of known classes"),
        ("val", "for tuning"),
        ("test", "known and unknown classes"),
    ),
    page="docs/osod3.md",
    build=build,
    declare=declare,
    choose_slots=choose_slots,
)
