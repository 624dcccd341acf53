"""What the declaration of a measure says, and what is made of it."""

from typing import Any

import pytest

from curation.evaluation import coco_engine, voc
from curation.evaluation.measures import (
    UNITS,
    Measure,
    definitions,
    measure_of,
    measure_table,
    place_of,
    ranked,
)
from curation.evaluation.result import Report

REPORTS = (voc.REPORT, coco_engine.REPORT)
IMPACT = Measure(
    "AWI@{recall}",
    "average wilderness impact",
    "mean | over levels",
    "ratio",
    "lower",
    paths=(("AWI", "{recall}", "macro"), ("AWI", "{recall}", 0)),
    count=("n",),
    ranked=True,
)


def test_a_measure_finds_its_numbers_with_their_parameters() -> None:
    section: dict[str, Any] = {"AWI": {"0.1": {"macro": None}, "0.3": {"macro": 0.5}, "0.5": [2]}, "n": 7}
    found = [(IMPACT.key_of(parameters), value) for parameters, value in IMPACT.found(section)]
    assert found == [("AWI@0.1", None), ("AWI@0.3", 0.5), ("AWI@0.5", 2)]
    assert (IMPACT.base, IMPACT.parameters, IMPACT.counted(section)) == ("AWI", ("recall",), 7)


@pytest.mark.parametrize("value", ["0.5", True, [0.5], {"a": 1}])
def test_what_is_no_number_is_none_of_a_measure(value: object) -> None:
    assert list(voc.MEASURES[0].found({"mAP11": value})) == []


def test_keys_are_known_by_their_pattern_and_have_an_order() -> None:
    measures = (IMPACT, *voc.MEASURES)
    assert measure_of(measures, "AWI@0.3") is IMPACT
    assert all(measure_of(measures, key) is None for key in ("AWI@", "AWI", "xAWI@0.3", "mAP"))
    keys = ["zeta", "mAP_area", "alpha", "AWI@0.5", "mAP11", "AWI@0.1"]
    assert sorted(keys, key=lambda one: place_of(measures, one)) == [
        "AWI@0.1", "AWI@0.5", "mAP11", "mAP_area", "alpha", "zeta",
    ]  # fmt: skip


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.protocol)
def test_each_measure_of_a_protocol_is_told_once_and_in_full(report: Report) -> None:
    keys = [one.key for one in report.measures]
    assert len(set(keys)) == len(keys)
    assert ranked(report.measures)
    for one in report.measures:
        assert one.name
        assert one.formula
        assert one.unit in UNITS
        assert one.better is not None or not one.ranked


def test_definitions_and_the_page_are_made_of_the_records() -> None:
    assert definitions((IMPACT,), matching="by class") == {
        "matching": "by class",
        "AWI": "mean | over levels",
    }
    lines = measure_table((IMPACT,))
    assert lines[0].count("|") == lines[1].count("|") == lines[2].replace("\\|", "").count("|")
    assert "`AWI@{recall}`" in lines[2]
