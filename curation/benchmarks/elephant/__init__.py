"""The Overlooked Elephant of Object Detection: Open Set (Dhamija et al., WACV 2020)."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark, SourceSlot
from curation.benchmarks.elephant.facts import CLOSED, COCO, PAPER, RECIPES
from curation.benchmarks.elephant.lists import build, declare
from curation.benchmarks.elephant.parameters import PARAMETERS

_VOC = "VOC root, or COCO JSON with difficult flags"
BENCHMARK = Benchmark(
    name="elephant",
    paper=PAPER,
    summary="VOC2007 test, and COCO images that show none of its 20 classes (the wilderness)",
    slots=(
        SourceSlot(CLOSED, "voc2007", "test", True, f"closed test set: {_VOC}"),
        SourceSlot(
            COCO,
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
    parameters=PARAMETERS,
    parts=(
        ("closed", "VOC2007 test"),
        ("wilderness", "all COCO images without a known class"),
        ("wrRATIO", "the first RATIO * 4,952 of them in the order of CPython's set"),
        ("wrRATIO-ORDER", "the same in another order"),
        ("voc2007-PART", "training part, where it is given"),
        ("voc2012-PART", "training part, where it is given"),
    ),
    page="docs/elephant.md",
    build=build,
    declare=declare,
    recipes=RECIPES,
    formats="curation.benchmarks.elephant.layout:FORMATS",
)
