"""A folder of lists: roles by name or as said, label views, ids found in sources."""

from dataclasses import replace
from pathlib import Path

import pytest

from curation.extensions.audit.classes import tasks_of
from curation.extensions.audit.run import run_audit
from curation.extensions.audit.target import PRINCIPLE, AuditTarget, FolderOptions, folder_target
from curation.manifest.header import TaskEntry
from curation.sources.source import Source
from tests.extensions.audit.benchmark_world import LISTS, TASKS, World, list_set, make_source

ENTRIES = tuple(TaskEntry(name=name, introduced=tuple(names)) for name, names in TASKS.items())


def folder(place: Path, lists: dict[str, list[str]] | None = None, **said: object) -> AuditTarget:
    chosen = lists or {name.replace("-", "_"): ids for name, ids in LISTS.items()}
    return folder_target(
        list_set(place, chosen),
        tasks=tasks_of(ENTRIES),
        sources=World().sources(),
        options=FolderOptions(exemplars=1, complete=("train", "test"), **said),  # type: ignore[arg-type]
    )


def test_the_sound_benchmark_as_a_folder_passes_what_lists_and_sources_decide(tmp_path: Path) -> None:
    audit = run_audit(folder(tmp_path))
    undecidable = {one.rule.name for one in audit.results if one.outcome.verdict == "undecidable"}
    assert undecidable == {"CO2", "AS1", "AS2", "AS3", "DS3", "PL7"}
    assert not replace(audit, fail_on="warning").failed


def test_declared_views_decide_the_labels(tmp_path: Path) -> None:
    declared = folder(tmp_path, views=PRINCIPLE)
    audit = run_audit(declared)
    assert {name: audit.verdict(name) for name in ("CO2", "AS1", "AS2", "AS3")} == dict.fromkeys(
        ("CO2", "AS1", "AS2", "AS3"), "pass"
    )
    as_the_code_does = folder(tmp_path, views={"val": PRINCIPLE["test"]})
    assert run_audit(as_the_code_does).verdict("AS2") == "fail"


def test_roles_said_by_the_user_replace_guesses(tmp_path: Path) -> None:
    lists = {"mine": ["a1"], "t1_train": ["a2"], "first": ["v1"], "second": ["v2"]}
    said = {"mine.txt": "train:t1", "t1_train": "none", "first": "val:1", "second": "val:2"}
    target = folder(tmp_path, lists, roles=said)
    assert [(one.name, one.role, one.tasks) for one in target.lists] == [
        ("first", "val", (0,)),
        ("mine", "train", (0,)),
        ("second", "val", (1,)),
    ]
    assert [(one.played, one.why) for one in target.used if one.name == "t1_train"] == [("", "said with --role")]


def found(place: Path, texts: list[str], **sources: Source) -> list[list[int]]:
    target = folder_target(list_set(place, {"t1_train": texts}), tasks=tasks_of(ENTRIES), sources=sources)
    order = [target.ids.tolist().index(text) for text in texts]
    return target.positions[:, order].tolist()


@pytest.mark.parametrize("texts", [["7", "12"], ["1", "2"]])
def test_images_are_found_by_native_id_by_file_name_or_by_number(texts: list[str], tmp_path: Path) -> None:
    source = make_source({"7": ["person"], "12": ["dog"]}, part="train")
    assert found(tmp_path, texts, mine=source) == [[0, 1]]


def test_voc_ids_are_not_taken_for_numbers_of_coco(tmp_path: Path) -> None:
    coco = make_source({f"{n:012d}": ["person"] for n in (1, 2, 3)}, dataset="coco", namespace="coco")
    assert found(tmp_path, ["000001", "000002"], coco=coco) == [[-1, -1]]


def test_an_id_that_two_datasets_hold_is_a_collision(tmp_path: Path) -> None:
    sources = {
        "one": make_source({"000005": ["person"]}, dataset="one", namespace="one"),
        "two": make_source({"000005": ["dog"]}, dataset="two", namespace="two"),
    }
    lists = list_set(tmp_path, {"t1_train": ["000005"]})
    target = folder_target(lists, tasks=tasks_of(ENTRIES), sources=sources)
    assert run_audit(target).verdict("DS5") == "fail"
