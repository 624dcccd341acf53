"""Parameters by name, rebuilding to the same digest, and completing what was declared."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.benchmarks.building import complete, read_parameters
from curation.benchmarks.registry import find_benchmark
from curation.manifest.header import Figure
from curation.manifest.manifest import Manifest, read_manifest, write_manifest
from curation.sources.source import Source

BENCHMARK = find_benchmark("elephant")

Draw = Callable[..., Source]
CLOSED = {1: ["cat"], 2: ["dog", "person"]}
COCO = {9: ["elephant"], 30: ["airplane"], 12: [], 500: ["zebra", "pizza"], 77: ["bear"]}


@pytest.fixture
def sources(draw: Draw) -> dict[str, Source]:
    return {"voc2007-test": draw("voc2007", "test", CLOSED), "coco": draw("coco", "train2017", COCO)}


def declared_for(sources: dict[str, Source], **fields: Any) -> Manifest:
    assert BENCHMARK.declare is not None
    declared = BENCHMARK.declare(sources, read_parameters(BENCHMARK, {}))
    return Manifest(header=msgspec.structs.replace(declared.header, **fields), lists=declared.lists)


def test_what_is_declared_pins_the_paper_and_the_closed_list(sources: dict[str, Source], tmp_path: Path) -> None:
    declared = declared_for(sources)
    write_manifest(declared, tmp_path / "m")
    assert read_manifest(tmp_path / "m") == declared
    assert declared.header.name == "elephant/train2017"
    assert set(declared.lists) == {"closed"}
    assert [part.name for part in declared.header.parts] == ["closed", "wilderness", "wr1", "wr1-hash"]
    papers = {figure.name: figure.paper for figure in declared.header.figures}
    assert (papers["wilderness.images"], papers["wr1.images"], papers["wr1.non_crowd_boxes"]) == (23008, 4952, 15235)


def test_completion_meets_every_figure_or_says_which_it_misses(sources: dict[str, Source]) -> None:
    assert {figure.name for figure in complete(declared_for(sources), sources)[1]} >= {
        "closed.images",
        "wilderness.images",
        "wr1.non_crowd_boxes",
    }
    met = (
        Figure(name="wilderness.images", paper=4, obtained=None, place="by hand"),
        Figure(name="wr1.images", paper=2, obtained=None, place="by hand"),
    )
    declared = declared_for(sources, figures=met)
    completed, missed = complete(declared, sources)
    assert missed == ()
    assert completed.header.completes == declared.digest
    assert (completed.header.name, completed.header.origin) == ("elephant/train2017", "regenerated")
    assert [part.name for part in completed.header.parts] == [part.name for part in declared.header.parts]
    assert completed.header.classes == declared.header.classes


def test_an_unmet_figure_names_the_source_that_it_waits_for_or_came_from(sources: dict[str, Source]) -> None:
    told = {one.name: one.explanation for one in complete(declared_for(sources), sources)[1]}
    assert "(from voc2007-test: " in told["closed.images"]
    for name in ("coco.images", "wilderness.images", "wr1.non_crowd_boxes"):
        assert "(from coco: " in told[name], name


def test_completion_from_another_closed_set_is_refused(sources: dict[str, Source], draw: Draw) -> None:
    declared = declared_for(sources, figures=())
    other = {**sources, "voc2007-test": draw("voc2007", "test", {1: ["cat"], 3: ["dog"]})}
    assert [figure.name for figure in complete(declared, other)[1]] == ["closed.list"]
