"""FindMeIfYouCan (2025): out-of-distribution splits near, far and farther, reviewed by hand."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.facts import fact
from curation.manifest.header import Paper

BENCHMARK = Benchmark(
    name="findmeifyoucan",
    paper=fact(__package__, "paper", Paper),
    summary="Near, far and farther OOD splits of COCO and Open Images for detectors of VOC or BDD100k, or of your own",
    slots="curation.benchmarks.findmeifyoucan.pairs:SLOTS",
    parameters="curation.benchmarks.findmeifyoucan.lists:PARAMETERS",
    parts=(
        ("DATASET-rule", "images without an ID class by their annotations"),
        ("DATASET-start", "where the review by eye began"),
        ("DATASET-LEVEL", "near, far or farther, after the decisions"),
        ("DATASET-LEVEL-candidates", "images that a review may add"),
    ),
    page="docs/findmeifyoucan.md",
    build="curation.benchmarks.findmeifyoucan.lists:build",
    declare="curation.benchmarks.findmeifyoucan.lists:declare",
    choose_slots="curation.benchmarks.findmeifyoucan.lists:slots_of",
    recorded_decisions="curation.benchmarks.findmeifyoucan.pools:read_decisions_file",
    formats="curation.benchmarks.findmeifyoucan.layout:FORMATS",
)
