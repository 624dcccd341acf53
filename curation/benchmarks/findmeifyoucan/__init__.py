"""FindMeIfYouCan (2025): out-of-distribution splits near, far and farther, reviewed by hand."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.findmeifyoucan import facts
from curation.benchmarks.findmeifyoucan.decisions import read_decisions_file
from curation.benchmarks.findmeifyoucan.lists import build, declare, slots_of
from curation.benchmarks.findmeifyoucan.pairs import BDD, VOC
from curation.benchmarks.findmeifyoucan.parameters import PARAMETERS

BENCHMARK = Benchmark(
    name="findmeifyoucan",
    paper=facts.PAPER,
    summary="Near, far and farther OOD splits of COCO and Open Images for detectors of VOC or BDD100k, or of one's own",
    slots=tuple({slot.name: slot for pair in (VOC, BDD) for slot in pair.slots()}.values()),
    parameters=PARAMETERS,
    parts=(
        ("DATASET-rule", "images without an ID class by their annotations"),
        ("DATASET-start", "where the review by eye began"),
        ("DATASET-LEVEL", "near, far or farther, after the decisions"),
        ("DATASET-LEVEL-candidates", "images that a review may add"),
    ),
    page="docs/findmeifyoucan.md",
    build=build,
    declare=declare,
    choose_slots=slots_of,
    recorded_decisions=read_decisions_file,
    formats="curation.benchmarks.findmeifyoucan.layout:FORMATS",
)
