"""Open-world object detection: the tasks of ORE, OW-DETR and Revisiting Open World Object Detection."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.facts import fact
from curation.manifest.header import Paper

BENCHMARK = Benchmark(
    name="owod",
    paper=fact(__package__, "papers", dict[str, Paper])["reowod"],
    summary="Open-world detection: RE-OWOD, M-OWODB (ORE), S-OWODB (OW-DETR), or tasks of one's own",
    slots="curation.benchmarks.owod.splits:SLOTS",
    parameters="curation.benchmarks.owod.splits:PARAMETERS",
    parts=(
        ("tN-train", "images with a class that task N introduces"),
        ("tN-finetune", "exemplars of every class known by task N, from task 2 on"),
        ("tN-val", "apart from training, where the split has it"),
        ("tN-test", "the same images for every task; classes not known yet are unknown"),
    ),
    page="docs/owod.md",
    build="curation.benchmarks.owod.lists:build",
    declare="curation.benchmarks.owod.lists:declare",
    choose_slots="curation.benchmarks.owod.splits:slots_of",
    task_settings="curation.benchmarks.owod.tasks:read_task_settings",
    recipes="curation.benchmarks.owod.splits:RECIPES",
    formats="curation.benchmarks.owod.layout:FORMATS",
)
