import json
from typing import Any

import pytest
from hypothesis import given, settings

from curation.benchmarks.elephant.evaluation import ElephantOptions, evaluate_elephant
from curation.core.errors import UsageError
from tests.evaluation.elephant_rows import of_evaluated
from tests.evaluation.reference import World
from tests.evaluation.worlds import columns_of, worlds


@settings(max_examples=30)
@given(world=worlds())
def test_a_result_is_plain_json_without_nan(world: World) -> None:
    found = evaluate_elephant(columns_of(world), ElephantOptions(variant="all", betas=("1.0",), bootstrap=2))
    assert json.loads(json.dumps(found.shared, allow_nan=False)) == found.shared
    for one in found.variants.values():
        assert json.loads(json.dumps(one.tables, allow_nan=False)) == one.tables


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["paper"]),
        ({"difficult": "count"}, ["paper_difficult_counted"]),
        ({"level_counts": "float32"}, ["paper_float32_counts"]),
        ({"variant": "official"}, ["official"]),
        ({"variant": "official", "level_counts": "float32"}, ["official_float32_counts"]),
        ({"variant": "all"}, ["paper", "paper_difficult_counted", "official", "official_float32_counts"]),
    ],
)
def test_each_reading_has_its_own_name(options: dict[str, Any], names: list[str]) -> None:
    world = World(1, 1, 1, (), (), (), ())
    found = evaluate_elephant(columns_of(world), ElephantOptions(**options))
    assert list(found.variants) == names


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(UsageError, match="paper, official, all"):
        evaluate_elephant(columns_of(World(1, 1, 1, (), (), (), ())), ElephantOptions(variant="mine"))  # type: ignore[arg-type]


@settings(max_examples=25)
@given(world=worlds())
def test_the_bootstrap_estimates_what_the_paper_section_states(world: World) -> None:
    found = of_evaluated(evaluate_elephant(columns_of(world), ElephantOptions(betas=("1.0",), bootstrap=1)))
    section, bootstrap = found["paper"], found["bootstrap"]
    for recall, by_reading in bootstrap["WI"].items():
        for reading, entries in by_reading.items():
            estimates = [entry["estimate"] for entry in entries]
            assert estimates == pytest.approx(section["WI"][recall][reading], abs=1e-12)
            for which, value in section["AWI"][recall][reading].items():
                assert bootstrap["AWI"][recall][reading][which]["estimate"] == pytest.approx(value, abs=1e-12)
    assert bootstrap["mAP11"]["closed"]["estimate"] == pytest.approx(section["mAP11"][0], abs=1e-12)
