"""Every rule: one violation of a sound benchmark is told by that rule alone; without its data it is undecidable."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from curation.audit.report import Report
from curation.audit.rule import Rule
from curation.audit.rules import RULES
from curation.audit.run import run_audit
from curation.audit.target import AuditTarget
from curation.manifest.header import LabelView
from curation.manifest.manifest import Manifest
from tests.audit.benchmark_world import VIEWS, World, labels_for_testing, make_table

Change = Callable[[World], None]

INFORMING = {"CO5": "info", "LI4": "info"}
UNDECIDED_WITHOUT_PHOTOS = {"DS3": "undecidable"}
SOUND = {rule.name: "pass" for rule in RULES} | INFORMING | UNDECIDED_WITHOUT_PHOTOS


def verdicts(audit: Report) -> dict[str, str]:
    return {one.rule.name: one.outcome.verdict for one in audit.results}


def count(audit: Report, name: str) -> int:
    return next(one.outcome.count for one in audit.results if one.rule.name == name)


def rename_class(world: World, old: str, new: str) -> None:
    world.order = [new if name == old else name for name in world.order]
    world.tasks = {task: [new if n == old else n for n in names] for task, names in world.tasks.items()}
    for images in (world.train, world.test):
        for native, texts in images.items():
            images[native] = [new + text[len(old) :] if text.startswith(old) else text for text in texts]


def a_class_is_called_unknown(world: World) -> None:
    rename_class(world, "kite", "Unknown")


def finetune_keeps_later_classes(world: World) -> None:
    world.views["t2-finetune"] = LabelView(known="keep", previous="keep", unknown="keep")


def train_renames_later_classes(world: World) -> None:
    world.views["t1-train"] = LabelView(known="keep", previous="drop", unknown="rename:unknown")


def first_test_list_shows_no_unknown(world: World) -> None:
    world.test["e5"] = ["person", "dog"]
    world.lists["t1-test"] = ["e5"]


def a_class_is_never_tested(world: World) -> None:
    world.test = {native: [t for t in texts if t != "bench"] for native, texts in world.test.items()}


def a_class_is_never_trained(world: World) -> None:
    world.tasks["t3"].append("vase")
    world.order.append("vase")
    world.test["e3"].append("vase")


def a_class_is_introduced_twice(world: World) -> None:
    world.tasks["t2"].append("dog")


def indices_are_not_in_task_order(world: World) -> None:
    first, last = world.order.index("dog"), world.order.index("truck")
    world.order[first], world.order[last] = world.order[last], world.order[first]


def a_train_image_shows_another_task(world: World) -> None:
    world.lists["t2-train"].append("c1")


def an_image_is_left_out(world: World) -> None:
    world.lists["t2-train"].remove("b3")


def an_exemplar_is_not_trained_on(world: World) -> None:
    world.lists["t2-finetune"].append("c3")


def a_class_has_no_exemplar(world: World) -> None:
    world.lists["t3-finetune"].remove("b1")


def train_keeps_earlier_classes(world: World) -> None:
    world.views["t3-train"] = LabelView(known="keep", previous="keep", unknown="drop")


def exported_test_file_moves_a_box(world: World) -> None:
    file = labels_for_testing(world.test, ["person", "dog"])
    boxes = file.objects.boxes.copy()
    boxes[2, 0] += 0.02
    world.labels["t1-test"] = replace(file, objects=replace(file.objects, boxes=boxes))


def exported_test_file_lacks_a_box(world: World) -> None:
    world.labels["t1-test"] = labels_for_testing(world.test | {"e4": ["truck"]}, ["person", "dog"])


def exported_test_file_names_a_box_wrongly(world: World) -> None:
    swapped = world.test | {"e3": ["dog", "cup"]}
    world.labels["t1-test"] = labels_for_testing(swapped, ["person", "dog"])


def validation_labels_unknown(world: World) -> None:
    world.views["t1-val"] = VIEWS["test"]


def validation_file_labels_unknown(world: World) -> None:
    world.labels["t1-val"] = labels_for_testing({"v1": world.train["v1"]}, ["person", "dog"])


def exported_test_file_loses_the_crowd_flag(world: World) -> None:
    plain = {native: [text.rstrip("*") for text in texts] for native, texts in world.test.items()}
    world.labels["t2-test"] = labels_for_testing(plain, ["person", "dog", "truck", "bench"])


def a_class_is_not_annotated_everywhere(world: World) -> None:
    world.exhaustive["test"] = [name for name in world.order if name != "cup"]


def a_test_image_has_no_annotation(world: World) -> None:
    world.test["e5"] = []
    for part in ("t1-test", "t2-test", "t3-test"):
        world.lists[part].append("e5")


def a_raw_box_has_no_width(world: World) -> None:
    world.boxes["e1", 1] = [30.0, 20.0, 0.0, 9.0]


def a_raw_box_sticks_out(world: World) -> None:
    world.boxes["e1", 1] = [600.0, 20.0, 42.0, 9.0]


def a_test_image_is_not_in_the_raw_file(world: World) -> None:
    for part in ("t1-test", "t2-test", "t3-test"):
        world.lists[part].append("e9")


def a_raw_class_is_foreign(world: World) -> None:
    world.test["e4"].append("lamp")


def a_test_image_is_repeated(world: World) -> None:
    for part in ("t1-test", "t2-test", "t3-test"):
        world.lists[part].append("e1")


def a_validation_image_is_trained_on(world: World) -> None:
    world.lists["t1-train"].append("v3")


def validation_lists_overlap(world: World) -> None:
    world.lists["t2-val"].append("v1")


def two_datasets_share_ids(world: World) -> None:
    world.test_dataset = "other"
    world.test["b1"] = ["dog"]


VIOLATIONS: list[tuple[str, str, int, Change]] = [
    ("CO1", "fail", 1, a_class_is_called_unknown),
    ("CO2", "fail", 2, train_renames_later_classes),
    ("CO3", "fail", 1, first_test_list_shows_no_unknown),
    ("CO4", "warn", 1, a_class_is_never_tested),
    ("CO4", "warn", 1, a_class_is_never_trained),
    ("TI1", "fail", 1, a_class_is_introduced_twice),
    ("TI2", "fail", 1, indices_are_not_in_task_order),
    ("TI3", "fail", 1, a_train_image_shows_another_task),
    ("TI4", "warn", 1, an_image_is_left_out),
    ("TI5", "fail", 1, an_exemplar_is_not_trained_on),
    ("TI5", "warn", 2, a_class_has_no_exemplar),
    ("AS1", "fail", 3, train_keeps_earlier_classes),
    ("AS1", "fail", 1, exported_test_file_moves_a_box),
    ("AS1", "fail", 1, exported_test_file_lacks_a_box),
    ("AS1", "fail", 1, exported_test_file_names_a_box_wrongly),
    ("AS2", "fail", 1, validation_labels_unknown),
    ("AS2", "fail", 1, validation_file_labels_unknown),
    ("AS3", "warn", 1, exported_test_file_loses_the_crowd_flag),
    ("LI1", "fail", 4, a_class_is_not_annotated_everywhere),
    ("LI2", "fail", 1, a_test_image_has_no_annotation),
    ("LI3", "warn", 1, a_raw_box_has_no_width),
    ("LI3", "warn", 1, a_raw_box_sticks_out),
    ("LI3", "warn", 1, a_test_image_is_not_in_the_raw_file),
    ("LI3", "warn", 1, a_raw_class_is_foreign),
    ("DS1", "fail", 1, a_test_image_is_repeated),
    ("DS2", "fail", 1, a_validation_image_is_trained_on),
    ("DS4", "fail", 1, validation_lists_overlap),
    ("DS5", "fail", 1, two_datasets_share_ids),
]


def test_the_sound_benchmark_passes_every_rule() -> None:
    assert verdicts(run_audit(World().target())) == SOUND


@pytest.mark.parametrize(
    ("name", "verdict", "violations", "change"), VIOLATIONS, ids=[f"{n}-{c.__name__}" for n, _, _, c in VIOLATIONS]
)
def test_one_breach_is_told_by_one_rule(name: str, verdict: str, violations: int, change: Change) -> None:
    world = World()
    change(world)
    audit = run_audit(world.target())
    assert verdicts(audit) == SOUND | {name: verdict}
    assert count(audit, name) == violations


def test_every_rule_that_judges_is_broken_by_some_breach() -> None:
    assert {name for name, *_ in VIOLATIONS} | {"DS3"} == {r.name for r in RULES if r.severity != "info"}


def test_a_view_that_keeps_later_classes_is_sound_where_no_image_shows_one() -> None:
    world = World()
    finetune_keeps_later_classes(world)
    assert verdicts(run_audit(world.target())) == SOUND
    world.lists["t2-finetune"][0:1] = ["a1", "b2"]
    assert verdicts(run_audit(world.target())) == SOUND | {"CO2": "fail"}


def test_an_info_rule_reports_a_number_and_changes_no_verdict() -> None:
    world = World()
    world.train["a2"].append("cup")
    world.test["e6"] = ["dog"]
    for part in ("t1-test", "t2-test", "t3-test"):
        world.lists[part].append("e6")
    world.lists["t3-train"].append("a2")
    before, after = run_audit(World().target()), run_audit(world.target())
    assert verdicts(after) == SOUND
    assert count(after, "CO5") == count(before, "CO5") + 1
    assert without_unknown(after) == [number + 1 for number in without_unknown(before)] == [1, 2, 5]


def without_unknown(audit: Report) -> list[int]:
    [shares] = [one.outcome for one in audit.results if one.rule.name == "LI4"]
    return [finding.count for finding in shares.findings]


def _without_tasks(world: World) -> AuditTarget:
    target = world.target()
    return replace(target, tasks=())


def _without_views(world: World) -> AuditTarget:
    target = world.target()
    lists = tuple(replace(one, view_declared=False) for one in target.lists)
    return replace(target, lists=lists)


def _without_roles(world: World) -> AuditTarget:
    return replace(world.target(), lists=())


def _without_lists(world: World) -> AuditTarget:
    return world.target(lists=False)


def _without_sources(world: World) -> AuditTarget:
    return world.target("train", "test")


def _with_tables(world: World) -> AuditTarget:
    world.sources = lambda: {  # type: ignore[method-assign]
        "train": make_table(world.train, part="train"),
        "test": make_table(world.test, part="test"),
    }
    return world.target()


def _exhaustive_unknown(world: World) -> AuditTarget:
    world.exhaustive = {"train": [], "test": []}
    return world.target()


def _ids_of_two_datasets(world: World) -> AuditTarget:
    world.test_dataset = "other"
    return world.target("test")


UNDECIDABLE: list[tuple[Callable[[World], AuditTarget], set[str]]] = [
    (
        _without_tasks,
        {"CO1", "CO2", "CO3", "CO4", "CO5", "TI1", "TI2", "TI3", "TI4", "TI5", "AS1", "AS2", "AS3", "LI1", "LI4"},
    ),
    (_without_views, {"CO2", "AS1", "AS2", "AS3"}),
    (
        _without_roles,
        {"CO2", "CO3", "CO4", "CO5", "TI3", "TI4", "TI5", "AS1", "AS2", "AS3"}
        | {"LI1", "LI2", "LI3", "LI4", "DS2", "DS4"},
    ),
    (
        _without_lists,
        {"CO3", "CO4", "CO5", "TI3", "TI4", "TI5", "AS1", "AS3", "LI1", "LI2", "LI3", "LI4", "DS1", "DS2", "DS4"},
    ),
    (_without_sources, {"CO3", "CO4", "CO5", "TI3", "TI4", "TI5", "AS1", "AS3", "LI2", "LI3", "LI4"}),
    (_with_tables, {"TI4", "AS1", "AS3", "LI3"}),
    (_exhaustive_unknown, {"LI1"}),
    (_ids_of_two_datasets, {"CO3", "CO4", "AS1", "AS3", "LI2", "LI3", "LI4", "DS5"}),
]


@pytest.mark.parametrize(
    ("remove", "names"), UNDECIDABLE, ids=[function.__name__.strip("_") for function, _ in UNDECIDABLE]
)
def test_a_rule_without_its_data_is_undecidable_and_says_what_it_needs(
    remove: Callable[[World], AuditTarget], names: set[str]
) -> None:
    audit = run_audit(remove(World()))
    undecided = {one.rule.name for one in audit.results if one.outcome.verdict == "undecidable"}
    assert undecided - {"DS3"} == names
    for one in audit.results:
        assert bool(one.outcome.needs) == (one.outcome.verdict == "undecidable")


def test_every_rule_has_data_that_can_be_absent() -> None:
    covered = set.union(*(names for _, names in UNDECIDABLE)) | {"DS3"}
    assert covered == {rule.name for rule in RULES}


def test_a_table_proves_what_it_shows_and_nothing_by_its_silence() -> None:
    world = World()
    tables = _with_tables(world)
    world.train["a2"] = []
    silent = _with_tables(world)
    assert run_audit(tables).verdict("TI3") == "pass"
    assert run_audit(silent).verdict("TI3") == "undecidable"
    # The user knows that the table misses nothing: then its silence counts.
    told = world.target(complete=("train", "test"))
    assert run_audit(told).verdict("TI3") == "fail"
    assert run_audit(told).verdict("TI4") == "pass"


def test_a_declared_view_is_broken_even_without_a_box_at_hand() -> None:
    world = World()
    validation_labels_unknown(world)
    audit = run_audit(world.target("train", "test"))
    assert audit.verdict("AS2") == "fail"


def test_a_benchmark_without_tasks_is_not_asked_for_them() -> None:
    world = World()
    manifest = world.manifest
    header = msgspec.structs.replace(
        manifest.header,
        tasks=(),
        taxonomy="OSOD-I",
        parts=tuple(msgspec.structs.replace(part, task="") for part in manifest.header.parts),
    )
    from curation.audit.manifest_target import manifest_target

    audit = run_audit(manifest_target(Manifest(header, manifest.lists), world.sources()))
    assert audit.verdict("TI1") == audit.verdict("CO2") == audit.verdict("LI1") == "not applicable"
    assert audit.verdict("DS2") == audit.verdict("LI2") == "pass"


def test_spellings_of_one_class_are_one_class() -> None:
    world = World()
    rename_class(world, "kite", "TVmonitor")
    rename_class(world, "dog", "tv")
    audit = run_audit(world.target())
    assert audit.verdict("CO1") == "fail"
    assert audit.verdict("TI1") == "pass"


def test_an_empty_task_and_a_class_left_unknown_break_the_increment() -> None:
    target = World().target()
    first, second, third = target.tasks
    empty = replace(second, introduced=(), known=first.known, unknown=first.unknown)
    assert run_audit(replace(target, tasks=(first, empty, third))).verdict("TI1") == "fail"
    left = replace(third, introduced=("kite",), known=third.known[:-1], unknown=("cup",))
    assert run_audit(replace(target, tasks=(first, second, left))).verdict("TI1") == "fail"


def test_label_files_must_agree_on_category_ids() -> None:
    world = World()
    known = ["person", "dog", "truck", "bench", "kite", "cup"]
    world.labels["t3-test"] = labels_for_testing(world.test, known)
    world.labels["t2-test"] = labels_for_testing(dict(reversed(world.test.items())), known[:4])
    assert run_audit(world.target()).verdict("TI2") == "fail"


def test_rules_are_named_once_and_described() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names) == 22
    for rule in RULES:
        _is_described(rule)


def _is_described(rule: Rule) -> None:
    for text in (rule.definition, rule.needs, rule.fix):
        assert text
        assert not text.endswith(".")


def test_examples_say_where_an_image_stands() -> None:
    world = World()
    a_validation_image_is_trained_on(world)
    [overlap] = [
        finding
        for one in run_audit(world.target()).results
        if one.rule.name == "DS2"
        for finding in one.outcome.findings
        if finding.verdict == "fail"
    ]
    assert overlap.examples == ("toy:v3 (t1-train line 4; t3-val line 1)",)


def test_the_same_verdicts_whatever_the_order_of_lines() -> None:
    world = World()
    a_validation_image_is_trained_on(world)
    straight = run_audit(world.target())
    rng = np.random.default_rng(3)
    for ids in world.lists.values():
        rng.shuffle(ids)
    assert verdicts(run_audit(world.target())) == verdicts(straight)
    assert count(run_audit(world.target()), "DS2") == count(straight, "DS2")


def test_a_task_entry_without_lists_leaves_other_rules_decidable() -> None:
    world = World()
    for part in [name for name in world.lists if name.endswith("val")]:
        del world.lists[part]
    world.train = {native: texts for native, texts in world.train.items() if not native.startswith("v")}
    audit = run_audit(world.target())
    assert verdicts(audit) == SOUND | {"AS2": "not applicable", "DS4": "not applicable"}
