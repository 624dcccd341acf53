"""RWD, "Real-World Detection" of FOMO: Aquatic, Aerial, Medical."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.facts import fact
from curation.manifest.header import Paper

BENCHMARK = Benchmark(
    name="rwd",
    paper=fact(__package__, "paper", Paper),
    summary="Open-world detection in small fields: Aquatic, Aerial, Medical (RWD of FOMO)",
    slots="curation.benchmarks.rwd.lists:SLOTS",
    parameters="curation.benchmarks.rwd.lists:PARAMETERS",
    parts=(
        ("tN-train", "the training images; one list for both tasks"),
        ("tN-test", "the test images; one list for both tasks"),
    ),
    page="docs/rwd.md",
    build="curation.benchmarks.rwd.lists:build",
    choose_slots="curation.benchmarks.rwd.lists:choose_slots",
    recipes="curation.benchmarks.rwd.lists:RECIPES",
)
