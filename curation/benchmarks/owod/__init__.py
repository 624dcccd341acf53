"""Open-world object detection: the tasks of ORE, OW-DETR and Revisiting Open World Object Detection."""

from __future__ import annotations

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.owod.facts import PAPERS
from curation.benchmarks.owod.lists import build, declare
from curation.benchmarks.owod.parameters import PARAMETERS
from curation.benchmarks.owod.published import RECIPES
from curation.benchmarks.owod.setting import slots_of
from curation.benchmarks.owod.tasks import read_task_settings

BENCHMARK = Benchmark(
    name="owod",
    paper=PAPERS["reowod"],
    summary="Open-world detection: RE-OWOD, M-OWODB (ORE), S-OWODB (OW-DETR), or tasks of one's own",
    slots=slots_of({"split": "m-owodb"}),
    parameters=PARAMETERS,
    parts=(
        ("tN-train", "images with a class that task N introduces"),
        ("tN-finetune", "exemplars of every class known by task N, from task 2 on"),
        ("tN-val", "apart from training, where the split has it"),
        ("tN-test", "the same images for every task; classes not known yet are unknown"),
    ),
    page="docs/owod.md",
    build=build,
    declare=declare,
    choose_slots=slots_of,
    task_settings=read_task_settings,
    recipes=RECIPES,
    formats="curation.benchmarks.owod.layout:FORMATS",
)
