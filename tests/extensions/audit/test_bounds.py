"""What is seen is a lower bound: it proves that there is enough, never that there is too little."""

import pytest

from curation.extensions.audit.classes import classes_of, read_tasks, tasks_of
from curation.extensions.audit.report import Report
from curation.extensions.audit.run import run_audit
from curation.extensions.audit.target import FolderOptions, folder_target
from curation.manifest.header import LabelView, TaskEntry
from tests.extensions.audit.benchmark_world import LISTS, TASKS, VIEWS, World, findings, list_set


def partly_unlocated(tmp_path_factory: pytest.TempPathFactory, ids: list[str], exemplars: int) -> Report:
    """The benchmark as a folder, with further exemplars of task 2 that are in no source."""
    lists = {name.replace("-", "_"): list(one) for name, one in LISTS.items()}
    lists["t2_finetune"] += ids
    lists["t1_train"] += ids
    target = folder_target(
        list_set(tmp_path_factory.mktemp("lists"), lists),
        tasks=tasks_of(tuple(TaskEntry(name=name, introduced=tuple(names)) for name, names in TASKS.items())),
        sources=World().sources(),
        options=FolderOptions(exemplars=exemplars, complete=("train", "test"), views=VIEWS),
    )
    return run_audit(target)


def test_images_in_no_source_may_be_the_exemplars_that_seem_to_lack(tmp_path_factory: pytest.TempPathFactory) -> None:
    # t2_finetune = a1, a2, b1: one image of truck, person, dog and bench each; a1 shows truck too.
    all_known = partly_unlocated(tmp_path_factory, [], 2)
    [exemplars] = findings(all_known, "TI5", "t2_finetune: exemplars")
    assert (exemplars.verdict, exemplars.count) == ("warn", 3)
    assert exemplars.examples == ("person 1", "dog 1", "bench 1")
    [exemplars] = findings(partly_unlocated(tmp_path_factory, ["unseen-1"], 2), "TI5", "t2_finetune: exemplars")
    assert exemplars.verdict == "undecidable"
    assert exemplars.examples == ("person at least 1", "dog at least 1", "bench at least 1")
    assert "1 of its 4 images" in exemplars.text
    # One unseen image cannot make up for two that lack.
    found = findings(partly_unlocated(tmp_path_factory, ["unseen-1"], 3), "TI5", "t2_finetune: exemplars")
    assert [(one.verdict, one.count) for one in found] == [("undecidable", 0)]
    assert findings(all_known, "TI5", "t3")[1].verdict == "warn"


def test_at_least_enough_is_enough(tmp_path_factory: pytest.TempPathFactory) -> None:
    found = findings(partly_unlocated(tmp_path_factory, ["unseen-1"], 1), "TI5", "t2_finetune: exemplars")
    assert [one.verdict for one in found] == ["pass"]


def test_train_lists_that_are_not_seen_may_offer_more() -> None:
    world = World()
    target = world.target(exemplars=3)
    assert run_audit(target).verdict("TI5") == "warn"
    # t1-finetune would hold all there are, as far as is seen; t1-train is partly in no source.
    world.lists["t2-finetune"] = ["a1", "a2", "a3", "b1", "b2", "b3"]
    world.lists["t1-train"] += ["gone-1"]
    [exemplars] = findings(run_audit(world.target(exemplars=4)), "TI5", "t2-finetune: exemplars")
    assert exemplars.verdict == "undecidable"


def test_a_view_that_lets_later_classes_through_is_not_sound_by_the_silence_of_a_table() -> None:
    world = World()
    world.views["t2-finetune"] = LabelView(known="keep", previous="keep", unknown="keep")
    assert run_audit(world.target()).verdict("CO2") == "pass"
    assert run_audit(world.with_tables()).verdict("CO2") == "undecidable"


def test_a_table_without_a_class_for_an_image_does_not_say_that_it_has_no_annotation() -> None:
    world = World()
    world.test["e5"] = []
    world.lists["t1-test"].append("e5")
    assert run_audit(world.target()).verdict("LI2") == "fail"
    assert run_audit(world.with_tables()).verdict("LI2") == "undecidable"


def test_a_test_list_of_which_a_table_shows_nothing_is_not_called_empty() -> None:
    world = World()
    world.test["e5"] = []
    world.lists["t1-test"] = ["e5"]
    assert run_audit(world.target()).verdict("CO3") == "fail"
    assert run_audit(world.with_tables()).verdict("CO3") == "undecidable"


def test_what_a_table_shows_is_told_as_a_bound() -> None:
    audit = run_audit(World().with_tables())
    first, *_, last = findings(audit, "CO5")
    assert first.text.startswith("at least 2 image-class pairs of classes still unknown, on at least 2 of 3 images")
    # Nothing is left for later: none can be hidden, whatever the table misses.
    assert last.text.startswith("0 image-class pairs of classes still unknown, on 0 of 5")
    first, *_, last = findings(audit, "LI4")
    assert "no unknown box on at most 0 of 4 images (0.0%)" in first.text
    assert "alone" not in first.text
    assert last.text.startswith("no unknown box on 4 of 4 images (100.0%)")


def test_images_of_a_dataset_that_lacks_later_classes_may_hide_more_than_its_boxes_show() -> None:
    # As VOC's images in an 80-class benchmark: no box of a truck says nothing of trucks.
    world = World()
    world.exhaustive["train"] = ["person", "dog"]
    audit = run_audit(world.target())
    first, *_ = findings(audit, "CO5")
    assert first.text.startswith("at least 2 boxes of classes still unknown, on at least 2 of 3 images")
    world.exhaustive["train"] = list(world.order)
    exact, *_ = findings(run_audit(world.target()), "CO5")
    assert exact.text.startswith("2 boxes of classes still unknown, on 2 of 3 images")


def never_introduced(world: World) -> None:
    """``lamp`` is annotated and no task introduces it: unknown for ever."""
    world.test["e1"].append("lamp")
    world.train["a1"].append("lamp")


def test_classes_that_stay_unknown_for_ever_are_sound(tmp_path_factory: pytest.TempPathFactory) -> None:
    world = World()
    never_introduced(world)
    folder = tmp_path_factory.mktemp("never")
    file = folder / "tasks.json"
    file.write_text(
        '{"unknown": ["lamp"], "tasks": ['
        + ", ".join(f'{{"name": "{name}", "introduced": {names}}}' for name, names in TASKS.items()).replace("'", '"')
        + "]}"
    )
    tasks = read_tasks(str(file))
    assert [(one.name, one.role, one.index) for one in classes_of(tasks)][-1] == ("lamp", "unknown", -1)
    lists = {name.replace("-", "_"): one for name, one in LISTS.items()}
    options = FolderOptions(exemplars=1, complete=("train", "test"), views=VIEWS)
    sources = world.sources()
    audit = run_audit(folder_target(list_set(folder, lists), tasks=tasks, sources=sources, options=options))
    assert {one.rule.name for one in audit.results if one.outcome.verdict not in ("pass", "info")} == {"DS3", "PL7"}
    [_, _, last] = findings(audit, "CO3")
    assert "10 known and 1 unknown boxes" in last.text
    # After the last task it is still unknown: a test list that shows it nowhere cannot tell an open-set detector.
    world.test["e1"].remove("lamp")
    silent = run_audit(
        folder_target(list_set(folder / "again", lists), tasks=tasks, sources=world.sources(), options=options)
    )
    assert silent.verdict("CO3") == "fail"
