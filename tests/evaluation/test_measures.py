"""What the declaration of a measure says, and what is made of it."""

import re
from pathlib import Path

import numpy as np
import pytest

import curation
from curation.benchmarks.registry import measures_of, report_of
from curation.evaluation.measures import UNITS, Measure, ranked

PROTOCOLS = ("elephant", "voc", "coco", "owod", "osod3", "findmeifyoucan", "imagenet")
EVERY = (*PROTOCOLS, "ssb", "rwd", "nuowodb", "ovcoco", "openood", "ninco", "imagenetood", "imagenetx", "v3det")
# Which way is better, by the papers' own tables: false detections, impacts and false positive rates are errors.
ERRORS = {
    "elephant": {"AWI@{recall}"},
    "owod": {"AOSE_objects", "AOSE", "WI"},
    "osod3": {"AOSE", "WI"},
    "findmeifyoucan": {"FPR95", "nOSE", "AOSE"},
}
IMPACT = Measure("AWI@{recall}", "average wilderness impact", "mean | over levels", "ratio", "lower", ranked=True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_errors_are_better_low_and_all_else_is_better_high(protocol: str) -> None:
    lower = {one.key for one in measures_of(protocol) if one.better == "lower"}
    assert lower == ERRORS.get(protocol, set())
    assert {one.unit for one in measures_of(protocol)} <= {"share", "%", "ratio", "count"}
    assert report_of(protocol).algorithm >= 1


@pytest.mark.parametrize("protocol", EVERY)
def test_average_precision_is_in_percent_and_areas_are_shares(protocol: str) -> None:
    report = report_of(protocol)
    units = {(one.base, one.unit) for one in report.measures}
    units |= {(column.name, column.unit) for table in report.tidy for column in table.columns if column.unit}
    for name, unit in units:
        if re.match(r"m?AP(11|\d\d|_|$)|AR\d", name):
            assert unit == "%", name
        if re.match(r"AUROC|AUPR|FPR|CCR", name):
            assert unit == "share", name


@pytest.mark.parametrize("protocol", EVERY)
def test_whatever_may_be_undefined_says_why(protocol: str) -> None:
    """A count is always there; every other number needs something to divide by."""
    measures = report_of(protocol).measures
    assert [one.key for one in measures if not one.undefined and one.unit != "count"] == []


def test_scores_that_are_all_equal_are_scored_and_saved_with_a_reason_for_what_is_undefined(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", scores=np.full((4, 3), 0.5), gt=[0, 1, -1, -2])
    given = {"kind": ("real",), "background": ("last",), "variant": "all"}
    result = curation.evaluate.imagenet(scores=tmp_path / "s.npz", **given)
    written = result.save(tmp_path / "out")
    assert {one.name for one in written} >= {"results.json", "oscr_exact.csv", "oscr_comparison.csv"}
    assert not {"oscr_paper.csv", "oscr_table2.csv"} & {one.name for one in written}
    table = result.measures
    missing = table[table["value"].isna()]
    assert len(missing)
    assert (missing["undefined"] != "").all()
    assert table[table["measure"] == "AUROC"]["value"].tolist() == [0.5] * 4


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_measure_of_a_protocol_is_told_once_and_in_full(protocol: str) -> None:
    report = report_of(protocol)
    keys = [one.key for one in report.measures]
    assert len(set(keys)) == len(keys)
    assert ranked(report.measures)
    for one in report.measures:
        assert one.name
        assert one.formula
        assert one.unit in UNITS
        assert one.better is not None or not one.ranked
