"""OV-COCO: open-vocabulary detection on COCO, 48 base and 17 novel classes."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark, SourceSlot
from curation.benchmarks.facts import fact
from curation.manifest.header import Paper

BENCHMARK = Benchmark(
    name="ovcoco",
    paper=fact(__package__, "paper", Paper),
    summary="Open-vocabulary detection on COCO: 48 base classes, 17 novel ones (OV-COCO of OVR-CNN)",
    slots=(
        SourceSlot("val", "coco", "val2017", True, "COCO instances JSON, or a root", usual_part="val2017"),
        SourceSlot("train", "coco", "train2017", False, "the same of train2017: its images with a base class"),
        SourceSlot(
            "seen-file",
            "coco",
            "train2017",
            False,
            "a training file that is to hold base classes alone: refused where it has others",
        ),
    ),
    parts=(
        ("train", "images with a base class; novel objects in view, unlabelled"),
        ("seen", "images with a base class"),
        ("unseen", "images with a novel class"),
        ("all", "images with either"),
        ("seen-file", "images of the file of base classes"),
    ),
    page="docs/ovcoco.md",
    build="curation.benchmarks.ovcoco.lists:build",
)
