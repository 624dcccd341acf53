"""docs/conformance.md is what declarations and comparisons say, and the comparisons see what differs."""

import pytest

from curation.benchmarks.registry import measures_of, protocols
from tests.docs.conformance import PAGE, page


def test_the_page_says_what_the_comparisons_say() -> None:
    pytest.importorskip("hotcoco", reason="hotcoco is not installed")
    now = page()
    assert now == PAGE.read_text(encoding="utf-8"), "python -m tests.docs.conformance --write"
    alone = now.partition("have no independent reference: ")[2].partition("\n")[0]
    for protocol in protocols():
        table = now.partition(f"\n## {protocol}\n")[2].partition("\n## ")[0]
        assert bool(table) != (f"`{protocol}`" in alone), protocol
        if not table:
            continue
        assert all(f"`{one.key}`" in table for one in measures_of(protocol)), protocol
    cells = [cell.strip() for line in now.splitlines() if line.startswith("| `") for cell in line.split("|")[2:-1]]
    assert len(cells) > 70
    assert [cell for cell in cells if " of " in cell] == []
