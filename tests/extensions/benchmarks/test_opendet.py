"""VOC-COCO: pools against a plain reading of the rule, and against the third group's published wilderness lists."""

import itertools
import json
from pathlib import Path

import pytest

from curation.benchmarks.building import read_parameters, rebuild
from curation.benchmarks.registry import find_benchmark
from curation.extensions.benchmarks.opendet import OTHERS
from curation.manifest.manifest import Manifest
from curation.manifest.validation import check_header, check_lists
from curation.sources.datasets import COCO_CATEGORIES, COCO_NAMES_OF_VOC
from curation.sources.opening import open_path
from curation.sources.source import Source
from tests.protocols.drawn_source import Draw
from tests.real_files import real_files

KNOWN = set(COCO_NAMES_OF_VOC.values())
IMAGES = {
    1: ["truck"],
    2: ["truck", "person"],
    3: ["truck", "dog"],
    4: ["truck", "frisbee"],
    5: ["frisbee"],
    6: ["bed"],
    7: ["bed", "truck"],
    8: ["cat"],
    9: ["person"],
    10: [],
}
POOLS = {"range-20": [1, 3], "range-40": [1, 3, 4, 5], "range-60": [1, 3, 4, 5, 6, 7], "wilderness": [1, 4, 5, 6, 7]}


@pytest.fixture
def sources(draw: Draw) -> dict[str, Source]:
    names = [name for _, name, _ in COCO_CATEGORIES]
    return {
        "coco": draw("coco", "train2017", IMAGES, names=names),
        "voc2007-test": draw("voc2007", "test", {1: ["dog"]}),
    }


def built(sources: dict[str, Source]) -> Manifest:
    benchmark = find_benchmark("voc-coco")
    manifest = benchmark.make(sources, read_parameters(benchmark, {}))
    check_header(manifest.header, where="here")
    check_lists(manifest.header, manifest.lists, where="here")
    return manifest


def test_pools_by_hand(sources: dict[str, Source]) -> None:
    manifest = built(sources)
    for name, images in POOLS.items():
        assert list(manifest.lists[name]) == [f"coco:{image:012d}" for image in images], name
    assert [part.name for part in manifest.header.parts] == ["closed", *POOLS]
    assert all("smaller" in figure.explanation for figure in manifest.header.figures)
    assert rebuild(manifest, sources).digest == manifest.digest


def test_the_order_of_the_others() -> None:
    assert (OTHERS[0], OTHERS[20], OTHERS[40], len(OTHERS)) == ("truck", "frisbee", "bed", 60)
    assert not KNOWN & set(OTHERS)


@real_files("owod_lists")
def check_the_published_wilderness_lies_in_the_pool(shared: Path) -> None:
    coco = open_path(shared / "data/coco/presence_2014_2017.csv", dataset="coco", part="train2017")
    voc = open_path(shared / "data/voc2007/test_with_difficult.json", dataset="voc2007", part="test")
    manifest = built({"coco": coco, "voc2007-test": voc})
    published = json.loads((shared / "data/owod/published/opendet/wilderness_ids.json").read_text())
    theirs = {f"coco:{int(one):012d}" for one in published}
    assert len(theirs) == 21_260
    assert theirs <= set(manifest.lists["wilderness"])
    drawn = [manifest.lists[f"wilderness-{size}"] for size in (2_500, 5_000, 10_000, 20_000)]
    for smaller, larger in itertools.pairwise(drawn):
        assert set(smaller) < set(larger)
    assert {figure.obtained for figure in manifest.header.figures} == {*(5_000, 9_332, 15_000, 2_500, 10_000, 20_000)}
