"""`audit`, the public function: what it takes, and what its report offers in a notebook."""

import json
from pathlib import Path

import pytest

from curation.audit.rules import RULES
from curation.audit.run import audit
from curation.errors import CurationError, UsageError
from tests.audit.benchmark_world import LISTS, TASKS, TEST, World, labels_for_testing, list_set


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The lists of the small benchmark beside the file of its tasks."""
    list_set(tmp_path / "lists", {name.replace("-", "_"): ids for name, ids in LISTS.items()})
    tasks = {"tasks": [{"name": name, "introduced": names} for name, names in TASKS.items()]}
    (tmp_path / "tasks.json").write_text(json.dumps(tasks), encoding="utf-8")
    return tmp_path / "lists"


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


def test_a_folder_with_what_the_user_says_of_it(folder: Path) -> None:
    world = World()
    report = audit(
        folder,
        {f"mine-{name}": source for name, source in world.sources().items()},
        exhaustive=["mine-train", "mine-test"],
        tasks=str(folder.parent / "tasks.json"),
        views={role: role for role in ("train", "finetune", "val", "test")},
        labels={"t1_test": labels_for_testing(TEST, TASKS["t1"])},
        exemplars=1,
    )
    assert not report.failed
    assert {one.rule.name for one in report.results if one.outcome.verdict == "undecidable"} == {"DS3", "PL7"}


def test_a_report_is_tables_and_shows_itself_shortly(folder: Path) -> None:
    (folder / "t1_train.txt").write_text("a1\na2\na3\nv3\n", encoding="utf-8")
    report = audit(folder, rules="DS")
    assert repr(report) == "Report('lists': 1 fail, 2 undecidable, 2 pass)"
    assert [one.rule.name for one in report.results] == [rule.name for rule in RULES if rule.name[:2] == "DS"]
    broken = report.findings[report.findings["verdict"] == "fail"]
    assert list(broken["about"]) == ["t3_val in t1_train"]
    assert list(broken["count"]) == [1]
    shown = report._repr_html_()
    assert shown.startswith("<table")
    assert "DS2" in shown


def test_a_report_is_saved_whole_and_never_over_another(folder: Path, tmp_path: Path) -> None:
    report = audit(folder)
    report.save(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8")) == json.loads(
        json.dumps(report.data())
    )
    assert (tmp_path / "out" / "report.html").read_text(encoding="utf-8") == report.html()
    with pytest.raises(CurationError, match="exists already"):
        report.save(tmp_path / "out")


@pytest.mark.parametrize(
    "wrong",
    [
        {"exemplars": 0},
        {"rules": "XY"},
        {"exhaustive": ["nobody"]},
        {"views": {"tests": "test"}},
        {"roles": {"nothing": "train:1"}},
        {"photos": {"mine": "/no/such/folder"}},
    ],
)
def test_wrong_use_is_told(folder: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        audit(folder, **wrong)  # type: ignore[arg-type]


def test_a_manifest_says_itself_what_its_tasks_are() -> None:
    with pytest.raises(UsageError, match="a manifest states this itself"):
        audit(World().manifest, tasks="ore")
