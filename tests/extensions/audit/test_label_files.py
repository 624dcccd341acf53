"""Label files held against their list and the raw boxes: what they lack proves nothing, what they change is told."""

from dataclasses import replace

import pytest

from curation.extensions.audit.judgement import label_warnings
from curation.extensions.audit.report import Report
from curation.extensions.audit.run import run_audit
from curation.sources.source import Source
from tests.extensions.audit.benchmark_world import (
    LISTS,
    TASKS,
    TEST,
    TRAIN,
    World,
    findings,
    labels_for_testing,
    make_source,
)

T1 = {"a1": ["person"], "a2": ["dog"], "a3": ["person", "dog"]}
"""What task 1 may label on its training images."""


def written(part: str, images: dict[str, list[str]], *without: str) -> Report:
    world = World()
    world.labels[part] = make_source(images, dataset="labels")
    return run_audit(world.target(*without))


def sound_labels(part: str) -> dict[str, list[str]]:
    """What the principle lets a train, finetune or val list label, in the order of the raw boxes."""
    task, role = part.split("-")
    known = [name for one in TASKS if one <= task for name in TASKS[one]]
    names = TASKS[task] if role == "train" else known
    return {native: [text for text in TRAIN[native] if text in names] for native in LISTS[part]}


def placed(part: str, images: dict[str, list[str]]) -> Source:
    """A label file whose boxes lie where those of the raw file do."""
    boxes = {}
    for native, texts in images.items():
        taken = [place for place, text in enumerate(TRAIN[native]) if text in texts]
        for row, place in enumerate(taken):
            boxes[native, row] = [10.25 + 40 * place, 7.5 + len(native), 30.0, 20.5]
    return make_source(images, dataset="labels", boxes=boxes)


@pytest.mark.parametrize("part", [name for name in LISTS if not name.endswith("test")])
def test_files_as_the_principle_asks_pass_every_rule(part: str) -> None:
    world = World()
    world.labels[part] = placed(part, sound_labels(part))
    audit = run_audit(world.target())
    assert {one.rule.name for one in audit.results if one.outcome.verdict in ("fail", "warn")} == set()
    assert audit.verdict("AS1") == audit.verdict("CO2") == "pass"
    assert label_warnings(world.target()) == []


@pytest.mark.parametrize("images", [{}, {"z1": ["person"], "z2": ["dog"]}], ids=["empty", "of-another-list"])
@pytest.mark.parametrize(("part", "rule"), [("t1-train", "CO2"), ("t1-train", "AS1"), ("t1-val", "AS2")])
def test_a_file_that_covers_no_image_of_its_list_decides_nothing(
    images: dict[str, list[str]], part: str, rule: str
) -> None:
    audit = written(part, images)
    assert audit.verdict(rule) == "undecidable"
    [finding] = [one for one in findings(audit, rule, part) if one.verdict == "undecidable"]
    every = "its only image" if len(LISTS[part]) == 1 else f"all of its {len(LISTS[part])} images"
    assert f"labels.json lacks {every}; it may belong to another list" in finding.text
    [warning] = label_warnings(audit.target)
    assert warning.startswith(f"{part}: label file labels.json lacks")


@pytest.mark.parametrize("images", [{}, {"z1": ["person", "unknown"]}], ids=["empty", "of-another-list"])
def test_a_file_that_covers_no_test_image_decides_nothing(images: dict[str, list[str]]) -> None:
    audit = written("t1-test", images)
    for rule in ("CO3", "AS1", "AS3"):
        assert audit.verdict(rule) == "undecidable", rule
    # Without the file the other tasks' views count, and no rule fails for want of this one.
    assert not audit.failed


def test_images_that_a_file_lacks_are_told_and_the_rest_is_judged() -> None:
    world = World()
    world.lists["t1-train"] += ["v1", "v2", "v3"]
    world.labels["t1-train"] = make_source(T1, dataset="labels")
    target = world.target()
    audit = run_audit(target)
    judged, rest = findings(audit, "CO2", "t1-train")
    assert (judged.verdict, rest.verdict) == ("pass", "undecidable")
    assert "4 boxes of label file labels.json on 3 images" in judged.text
    assert "label file labels.json lacks 3 of its 6 images" in rest.text
    assert [text.split()[0] for text in rest.examples] == ["toy:v1", "toy:v2", "toy:v3"]
    [warning] = label_warnings(target)
    assert "toy:v1 (t1-train line 4)" in warning
    # A violation on the covered images is a violation.
    world.labels["t1-train"] = make_source(T1 | {"a1": ["unknown"]}, dataset="labels")
    [broken, _] = findings(run_audit(world.target()), "CO2", "t1-train")
    assert (broken.verdict, broken.count) == ("fail", 1)
    assert broken.text.startswith("at least 1 box")


def test_a_file_without_a_label_on_its_images_is_no_evidence() -> None:
    audit = written("t1-train", {native: [] for native in T1}, "train")
    assert audit.verdict("CO2") == "undecidable"
    # With the raw boxes at hand the same file is told to have lost them all.
    [dropped] = findings(written("t1-train", {native: [] for native in T1}), "AS1", "t1-train: raw boxes")
    assert (dropped.verdict, dropped.count) == ("fail", 4)


@pytest.mark.parametrize(
    ("part", "change", "count", "word"),
    [
        ("t1-train", {"a3": ["person"]}, 1, "1 raw box missing from"),
        ("t1-train", {"a2": ["dog", "dog"]}, 1, "1 box of label file labels.json without a raw box of that label"),
        ("t1-train", {"a1": ["dog"], "a2": ["person"]}, 2, "2 of them under the name of another class"),
        ("t1-val", {"v1": []}, 1, "1 raw box missing from"),
        ("t1-val", {"v1": ["dog"]}, 1, "1 of them under the name of another class"),
        ("t2-finetune", {"b1": ["bench", "truck"]}, 2, "2 of them under the name of another class"),
    ],
    ids=["train-dropped", "train-added", "train-swapped", "val-dropped", "val-swapped", "finetune-swapped"],
)
def test_boxes_dropped_added_or_renamed_in_a_file_are_told(
    part: str, change: dict[str, list[str]], count: int, word: str
) -> None:
    audit = written(part, sound_labels(part) | change)
    assert {one.rule.name for one in audit.results if one.outcome.verdict in ("fail", "warn")} == {"AS1"}
    [finding] = findings(audit, "AS1", f"{part}: raw boxes")
    assert (finding.verdict, finding.count) == ("fail", count)
    assert word in finding.text


def test_a_box_given_twice_in_a_file_is_said_to_stand_there_twice() -> None:
    world = World()
    same = {("a2", 1): [10.25, 9.5, 30.0, 20.5]}
    world.labels["t1-train"] = make_source(T1 | {"a2": ["dog", "dog"]}, dataset="labels", boxes=same)
    [finding] = findings(run_audit(world.target()), "AS1", "t1-train: raw boxes")
    assert (finding.verdict, finding.count, finding.text) == (
        "fail", 1, "1 box more in label file labels.json than among the raw boxes",
    )  # fmt: skip


def test_without_raw_boxes_a_file_is_not_called_complete() -> None:
    audit = written("t1-train", T1, "train")
    assert audit.verdict("CO2") == "pass"
    assert audit.verdict("AS1") == "undecidable"


def test_a_flagged_box_may_be_missing_from_a_file_whose_view_nobody_declared() -> None:
    world = World()
    world.train["a2"] = ["dog", "dog*"]
    world.labels["t1-train"] = make_source(T1, dataset="labels")
    declared = world.target()
    assert run_audit(declared).verdict("AS1") == "fail"
    silent = replace(declared, used=tuple(replace(one, view_declared=False) for one in declared.lists))
    [finding] = findings(run_audit(silent), "AS1", "t1-train: raw boxes")
    assert finding.verdict == "pass"


def test_a_test_file_is_compared_on_the_images_of_which_the_raw_boxes_are_known() -> None:
    world = World()
    world.labels["t1-test"] = labels_for_testing(TEST, TASKS["t1"])
    world.test = {native: texts for native, texts in TEST.items() if native != "e2"}
    world.lists["t2-test"] = world.lists["t3-test"] = ["e1", "e3", "e4"]
    [compared] = findings(run_audit(world.target()), "AS1", "t1-test")
    assert (compared.verdict, compared.text) == ("pass", "7 raw boxes, each once in label file labels.json")
