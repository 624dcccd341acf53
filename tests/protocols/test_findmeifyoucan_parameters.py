"""Parameters: defaults that are read, and values that are refused."""

import pytest

from curation.benchmarks.building import read_parameters
from curation.benchmarks.registry import find_benchmark
from curation.errors import CurationError

BENCHMARK = find_benchmark("findmeifyoucan")


def test_the_defaults_are_the_published_pair_without_decisions() -> None:
    assert read_parameters(BENCHMARK, {}) == {
        "pair": "voc",
        "decisions": "",
        "pools": "",
        "start": "published",
        "shared": "report",
        "id_objects": "unknown",
        "candidates": 0,
        "scan": "whole_image",
        "salt": "findmeifyoucan",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pair", "imagenet"),
        ("start", "list"),
        ("shared", "yes"),
        ("id_objects", "drop"),
        ("candidates", "-1"),
        ("candidates", "1e3"),
        ("scan", "all"),
        ("decisions", "nowhere.jsonl"),
    ],
)
def test_other_values_are_refused(name: str, value: str) -> None:
    with pytest.raises(CurationError):
        read_parameters(BENCHMARK, {name: value})
