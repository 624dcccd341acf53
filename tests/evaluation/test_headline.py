import re
from pathlib import Path

import pytest

from curation.evaluation.headline import (
    EACH,
    EVALUATORS,
    HEADLINES,
    headline_numbers,
    headline_of,
    place_of,
)
from curation.evaluation.leaderboard.rows import Row

# Which way is better, by the papers' own tables: false detections, impacts and false positive rates are errors.
ERRORS = {
    "elephant": {"AWI@*"},
    "owod": {"A_OSE_objects", "A_OSE_detections", "WI"},
    "osod3": {"A_OSE", "WI"},
    "findmeifyoucan": {"FPR95", "nOSE", "AOSE"},
}
UNITS = {"share", "%", "ratio", "count"}


@pytest.mark.parametrize("protocol", HEADLINES)
def test_errors_are_better_low_and_all_else_is_better_high(protocol: str) -> None:
    lower = {one.name for one in HEADLINES[protocol] if one.better == "lower"}
    assert lower == ERRORS.get(protocol, set())
    assert {one.unit for one in HEADLINES[protocol]} <= UNITS
    assert EVALUATORS[protocol] >= 1


@pytest.mark.parametrize("protocol", HEADLINES)
def test_one_name_means_one_direction_and_unit(protocol: str) -> None:
    meanings = {(one.name, one.better, one.unit) for one in HEADLINES[protocol]}
    assert len(meanings) == len({one.name for one in HEADLINES[protocol]})


def test_numbers_are_found_by_path_and_what_is_not_there_is_left_out() -> None:
    paper = {
        "mAP11": [0.5, 0.4],
        "mAP_area": [],
        "AWI": {"0.1": {"macro": {"excl_level0": None}}, "0.5": {"macro": {"excl_level0": 0.25}}},
    }
    found = {name: value for name, _, value in headline_numbers("elephant", paper)}
    assert found == {"mAP11": 0.5, "AWI@0.1": None, "AWI@0.5": 0.25}
    official = {"mAP": [0.75], "AWI": {"0.3": {"excl_level0": 2.0, "incl_level0": 1.0}}}
    assert {name: value for name, _, value in headline_numbers("elephant", official)} == {
        "mAP": 0.75,
        "AWI@0.3": 2.0,
    }


@pytest.mark.parametrize("value", ["0.5", True, [0.5], {"a": 1}])
def test_what_is_no_number_is_no_headline(value: object) -> None:
    assert list(headline_numbers("voc", {"mAP11": value})) == []


def test_names_are_known_by_their_pattern() -> None:
    assert headline_of("elephant", "AWI@0.3") is not None
    for protocol, name in (("elephant", "AWI@"), ("elephant", "AWI"), ("voc", "AWI@0.3"), ("none", "AP")):
        assert headline_of(protocol, name) is None
    names = ["accuracy", "zeta", "CCR@0.1", "alpha", "CCR@0.01", "AUROC"]
    assert sorted(names, key=lambda one: place_of("imagenet", one)) == [
        "CCR@0.01", "CCR@0.1", "AUROC", "accuracy", "alpha", "zeta",
    ]  # fmt: skip


def test_the_page_names_every_number_and_every_field_of_a_row() -> None:
    page = (Path(__file__).parents[2] / "docs/leaderboard.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip(" `"): line for line in page.split("\n") if line.startswith("| `")}
    for protocol, headlines in HEADLINES.items():
        for one in headlines:
            assert re.search(rf"`{re.escape(one.name.rstrip(EACH))}[A-Z]?`", rows[protocol]), one.name
    assert all(f"`{field}`" in page for field in Row.__struct_fields__)
