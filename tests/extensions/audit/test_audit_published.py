"""The published lists of three open-world benchmarks: what an audit finds in them."""

from functools import cache
from pathlib import Path

from curation.extensions.audit.classes import read_tasks
from curation.extensions.audit.lists import read_lists
from curation.extensions.audit.report import Report
from curation.extensions.audit.rule import Finding
from curation.extensions.audit.rules import chosen_rules
from curation.extensions.audit.run import run_audit
from curation.extensions.audit.target import PRINCIPLE, FolderOptions, folder_target
from curation.sources.opening import open_path
from curation.sources.source import Source
from tests.extensions.audit.benchmark_world import count
from tests.real_files import real_files


@cache
def _sources(data: Path) -> dict[str, Source]:
    return {
        "coco-train2017": open_path(data / "coco" / "presence_2014_2017.csv", dataset="coco", part="train2017"),
        "coco-val2017": open_path(data / "coco" / "instances_val2017_rebuilt.json", dataset="coco", part="val2017"),
        "voc2007-test": open_path(data / "voc2007" / "test_with_difficult.json", dataset="voc2007", part="test"),
    }


@cache
def _audit(data: Path, folder: str, tasks: str, *, val_as_test: bool = False) -> Report:
    return run_audit(
        folder_target(
            read_lists(data / "owod" / "published" / folder),
            tasks=read_tasks(tasks),
            sources=_sources(data),
            options=FolderOptions(views={"val": PRINCIPLE["test"]} if val_as_test else {}),
        )
    )


def findings(audit: Report, name: str) -> dict[str, Finding]:
    [outcome] = [one.outcome for one in audit.results if one.rule.name == name]
    return {finding.about: finding for finding in outcome.findings}


@real_files("owod_audits")
def check_re_owod_keeps_the_principles_that_its_lists_decide(shared: Path) -> None:
    audit = _audit(shared / "data", "reowod", "reowod")
    for name in ("CO1", "TI1", "TI2", "DS1", "DS2", "DS4", "LI1", "LI2"):
        assert audit.verdict(name) == "pass", name
    assert not audit.failed
    # The overlap that the specification states; allowed between train lists.
    assert findings(audit, "DS2")["t2_train and t1_train"].count == 32_380


@real_files("owod_audits")
def check_re_owod_s_exemplars_are_drawn_from_train_lists_and_seem_unbalanced(shared: Path) -> None:
    found = findings(_audit(shared / "data", "reowod", "reowod"), "TI5")
    for task in (2, 3, 4):
        assert found[f"t{task}_ft: subset"].verdict == "pass"
        # A table of image and class may miss any class of any image: "at least 4" is not "fewer than 50".
        assert found[f"t{task}_ft: exemplars"].verdict == "undecidable"
    # Far below 50: classes of task 2 in the lists of tasks 3 and 4.
    assert "zebra at least 4" in found["t3_ft: exemplars"].examples
    assert "zebra at least 4" in found["t4_ft: exemplars"].examples


@real_files("owod_audits")
def check_ore_s_exemplars_are_not_called_too_few_while_413_of_them_are_in_no_source(shared: Path) -> None:
    sources = {name: source for name, source in _sources(shared / "data").items() if name != "voc2007-test"}
    target = folder_target(
        read_lists(shared / "data" / "owod" / "published" / "ore"), tasks=read_tasks("ore"), sources=sources
    )
    [second] = [one for one in target.lists if one.name == "t2_ft"]
    assert len(target.unlocated(second)) == 413
    found = findings(run_audit(target, chosen_rules("TI5")), "TI5")["t2_ft: exemplars"]
    assert (found.verdict, found.count) == ("undecidable", 0)


@real_files("owod_audits")
def check_re_owod_s_selection_leaves_no_image_out_as_far_as_the_table_shows(shared: Path) -> None:
    audit = _audit(shared / "data", "reowod", "reowod")
    assert audit.verdict("TI4") == "undecidable"
    assert all("0 images" in one.text for one in findings(audit, "TI4").values())


@real_files("owod_audits")
def check_ore_breaks_the_principles_as_its_critics_say(shared: Path) -> None:
    audit = _audit(shared / "data", "ore", "ore", val_as_test=True)
    failed = {one.rule.name for one in audit.results if one.outcome.verdict == "fail"}
    assert failed == {"LI1", "DS1", "DS2", "DS4", "AS2"}
    assert count(audit, "LI1") == 4952
    assert count(audit, "DS2") == 3978
    repeated = {name: one.count for name, one in findings(audit, "DS1").items() if one.verdict == "fail"}
    assert repeated == {
        "all_task_test": 1127,
        "all_task_val": 22,
        "t1_train_with_unk": 2,
        "t2_train_with_unk": 457,
        "t3_train_with_unk": 501,
    }
    assert "1,035 of them more than once" in findings(audit, "DS1")["all_task_test"].text


@real_files("owod_audits")
def check_s_owodb_repeats_nothing_and_has_no_validation(shared: Path) -> None:
    audit = _audit(shared / "data", "owdetr", "s-owodb")
    assert audit.verdict("DS1") == audit.verdict("DS2") == "pass"
    assert audit.verdict("AS2") == audit.verdict("DS4") == "not applicable"
    assert not audit.failed


@real_files("owod_audits")
def check_without_tasks_and_sources_lists_alone_are_judged(shared: Path) -> None:
    audit = run_audit(folder_target(read_lists(shared / "data" / "owod" / "published" / "reowod")))
    decided = {one.rule.name for one in audit.results if one.outcome.verdict != "undecidable"}
    # These lists are known by their bytes (PL11).
    assert decided == {"DS1", "DS2", "DS4", "PL11", "PL14"}
