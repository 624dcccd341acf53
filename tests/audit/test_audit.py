"""`audit`, the public function: what it takes, and what its report offers in a notebook."""

from pathlib import Path

from curation.audit.rules import RULES
from curation.audit.run import audit
from tests.audit.benchmark_world import LISTS, World, list_set


def test_a_manifest_and_its_sources_in_memory() -> None:
    world = World()
    report = audit(world.manifest, world.sources(), exemplars=1)
    assert not report.failed
    assert report.exit_status == 0
    assert report.digest == world.manifest.digest
    assert {name: report.verdict(name) for name in ("CO1", "TI3", "DS3")} == {
        "CO1": "pass",
        "TI3": "pass",
        "DS3": "undecidable",
    }


def test_a_report_is_tables_and_shows_itself_shortly(tmp_path: Path) -> None:
    lists = {name.replace("-", "_"): ids for name, ids in LISTS.items()} | {"t1_train": ["a1", "a2", "a3", "v3"]}
    list_set(tmp_path / "lists", lists)
    report = audit(tmp_path / "lists", rules="DS")
    assert repr(report) == "Report('lists': 1 fail, 2 undecidable, 2 pass)"
    assert [one.rule.name for one in report.results] == [rule.name for rule in RULES if rule.name[:2] == "DS"]
    broken = report.findings[report.findings["verdict"] == "fail"]
    assert list(broken["about"]) == ["t3_val in t1_train"]
    assert list(broken["count"]) == [1]
    shown = report._repr_html_()
    assert shown.startswith("<table")
    assert "DS2" in shown
