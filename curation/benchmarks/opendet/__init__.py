"""VOC-COCO of OpenDet (CVPR 2022)."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark, SourceSlot
from curation.benchmarks.facts import fact
from curation.benchmarks.parameters import salt
from curation.manifest.header import Paper

BENCHMARK = Benchmark(
    name="voc-coco",
    paper=fact(__package__, "paper", Paper),
    summary="Open-set detection: VOC2007 test with COCO images of further classes, or of none of VOC's (OpenDet)",
    slots=(
        SourceSlot(
            "voc2007-test", "voc2007", "test", True, "closed test set: VOC root, or COCO JSON with difficult flags"
        ),
        SourceSlot("coco", "coco", "", True, "COCO instances JSON, or a root", usual_part="train2017"),
    ),
    parameters=(salt("voc-coco", "salt of the hash rank"),),
    parts=(
        ("closed", "VOC2007 test"),
        ("range-COUNT", "all images with one of the first COUNT other classes and none of the later"),
        ("range-COUNT-SIZE", "as many of them as the list of the paper has"),
        ("wilderness", "all annotated images without a known class"),
        ("wilderness-SIZE", "as many of them as the list of the paper has"),
    ),
    page="docs/opendet.md",
    build="curation.benchmarks.opendet.lists:build",
    recipes="curation.benchmarks.opendet.lists:RECIPES",
)
