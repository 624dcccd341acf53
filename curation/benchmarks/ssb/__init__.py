"""The Semantic Shift Benchmark (Vaze et al., ICLR 2022): ImageNet and CUB from raw files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curation.benchmarks.benchmark import Benchmark, SourceSlot
from curation.benchmarks.parameters import choice
from curation.benchmarks.ssb.lists import PAPER, SLOTS, build

_SLOTS = (
    SourceSlot("cub-train", "cub200", "train", False, "CUB-200-2011, official training images"),
    SourceSlot("cub-test", "cub200", "test", False, "CUB-200-2011, official test images"),
    SourceSlot("imagenet-val", "imagenet", "val", False, "ILSVRC-2012 validation images: the known ones"),
    SourceSlot(
        "imagenet-21k",
        "imagenet",
        "train",
        False,
        "unknown classes: folders of them, or imagenet_21k_val_files.json",
    ),
)


def _slots_of(parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
    wanted = SLOTS[parameters["problem"]]
    return tuple(SourceSlot(one.name, one.dataset, one.part, True, one.meaning) for one in _SLOTS if one.name in wanted)


BENCHMARK = Benchmark(
    name="ssb",
    paper=PAPER,
    summary="Semantic shift: unknown classes easy and hard to tell from known ones, of CUB and of ImageNet",
    slots=_SLOTS,
    parameters=(choice("problem", tuple(SLOTS), "data set"),),
    parts=(
        ("train", "cub: training images of known classes"),
        ("known", "test images of known classes"),
        ("easy, medium, hard", "test images of unknown classes; medium: cub alone"),
        ("test-easy, test-hard", "known images joined with unknown ones; test-hard holds medium ones too"),
    ),
    page="docs/ssb.md",
    build=build,
    choose_slots=_slots_of,
)
