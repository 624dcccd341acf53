"""docs/conformance.md is what declarations and comparisons say, and the comparisons see what differs."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from curation.benchmarks.registry import measures_of, protocols
from tests.docs.conformance import PAGE, Column, columns_of, page
from tests.worlds.runs import voc_run


def test_the_page_says_what_the_comparisons_say() -> None:
    pytest.importorskip("hotcoco", reason="hotcoco is not installed")
    now = page()
    assert now == PAGE.read_text(encoding="utf-8"), "python -m tests.docs.conformance --write"
    for protocol in protocols():
        table = now.partition(f"\n## {protocol}\n")[2].partition("\n## ")[0]
        assert all(f"`{one.key}`" in table for one in measures_of(protocol)), protocol
    cells = [cell.strip() for line in now.splitlines() if line.startswith("| `") for cell in line.split("|")[2:-1]]
    assert len(cells) > 70
    assert [cell for cell in cells if " of " in cell] == []


def test_a_number_that_differs_or_has_no_reference_is_told(tmp_path: Path) -> None:
    run = voc_run(tmp_path, "json")
    expected = deepcopy(run.expected)
    expected["mAP11"] += 1e-9
    expected["AP11"]["dog"] = 0.5
    del expected["mAP_area"], expected["AP_area"]["cow"]
    expected["npos"]["owl"] = 3
    columns: dict[str, Column] = {}
    others = columns_of([replace(run, expected=expected)], columns)
    (column,) = columns.values()
    keys = ("mAP11", "AP11", "mAP_area", "AP_area", "mAP11_ties_in_input_order", "AP75")
    assert [column.cell(key) for key in keys] == [
        "0 of 1",
        "3 of 4",
        "no independent reference",
        "3; 1 more: no independent reference",
        "1",
        "-",
    ]
    assert [one.told() for one in others if not one.same] == ["/npos/owl: missing"]
