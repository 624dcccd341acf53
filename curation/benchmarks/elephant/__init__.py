"""The Overlooked Elephant of Object Detection: Open Set (Dhamija et al., WACV 2020)."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark, SourceSlot
from curation.benchmarks.facts import fact
from curation.manifest.header import Paper

_VOC = "VOC root, or COCO JSON with difficult flags"
BENCHMARK = Benchmark(
    name="elephant",
    paper=fact(__package__, "paper", Paper),
    summary="VOC2007 test, and COCO images that show none of its 20 classes (the wilderness)",
    slots=(
        SourceSlot("voc2007-test", "voc2007", "test", True, f"closed test set: {_VOC}"),
        SourceSlot(
            "coco",
            "coco",
            "",
            True,
            "wilderness: COCO instances JSON, or a root; train2017 as in the paper, or another part",
            usual_part="train2017",
        ),
        SourceSlot("voc2007-train", "voc2007", "train", False, f"training part: {_VOC}"),
        SourceSlot("voc2007-val", "voc2007", "val", False, f"training part: {_VOC}"),
        SourceSlot("voc2012-train", "voc2012", "train", False, f"training part: {_VOC}"),
        SourceSlot("voc2012-val", "voc2012", "val", False, f"training part: {_VOC}"),
    ),
    parameters="curation.benchmarks.elephant.lists:PARAMETERS",
    parts=(
        ("closed", "VOC2007 test"),
        ("wilderness", "all COCO images without a known class"),
        ("wrRATIO", "the first RATIO * 4,952 of them in the order of CPython's set"),
        ("wrRATIO-ORDER", "the same in another order"),
        ("voc2007-PART", "training part, where it is given"),
        ("voc2012-PART", "training part, where it is given"),
    ),
    page="docs/elephant.md",
    build="curation.benchmarks.elephant.lists:build",
    declare="curation.benchmarks.elephant.lists:declare",
    recipes="curation.benchmarks.elephant.lists:RECIPES",
    formats="curation.benchmarks.elephant.layout:FORMATS",
)
