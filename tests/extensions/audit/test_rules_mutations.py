"""Every rule: one violation of a sound benchmark is told by that rule alone; without its data it is undecidable."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from curation.extensions.audit.report import Report
from curation.extensions.audit.rule import Rule
from curation.extensions.audit.rules import RULES
from curation.extensions.audit.run import run_audit
from curation.extensions.audit.target import AuditTarget
from curation.manifest.header import LabelView
from curation.manifest.manifest import Manifest
from tests.extensions.audit.benchmark_world import VIEWS, World, count

Change = Callable[[World], object]

INFORMING = {"CO5": "info", "LI4": "info"}
UNDECIDED_WITHOUT_PHOTOS = {"DS3": "undecidable"}
SOUND = {rule.name: "pass" for rule in RULES} | INFORMING | UNDECIDED_WITHOUT_PHOTOS


def verdicts(audit: Report) -> dict[str, str]:
    return {one.rule.name: one.outcome.verdict for one in audit.results}


def rename_class(world: World, old: str, new: str) -> None:
    world.order = [new if name == old else name for name in world.order]
    world.tasks = {task: [new if n == old else n for n in names] for task, names in world.tasks.items()}
    for images in (world.train, world.test):
        for native, texts in images.items():
            images[native] = [new + text[len(old) :] if text.startswith(old) else text for text in texts]


TESTS = ("t1-test", "t2-test", "t3-test")


def gained(world: World, native: str, *texts: str) -> None:
    """Add an image to every test list, and to the raw file with some objects."""
    for part in TESTS:
        world.lists[part].append(native)
    if texts:
        world.test[native] = [text for text in texts if text]


def first_test_list_shows_no_unknown(world: World) -> None:
    world.test["e5"] = ["person", "dog"]
    world.lists["t1-test"] = ["e5"]


def a_class_is_never_trained(world: World) -> None:
    world.tasks["t3"].append("vase")
    world.order.append("vase")
    world.test["e3"].append("vase")


def a_class_is_introduced_twice(world: World) -> None:
    world.tasks["t2"].append("dog")


def indices_are_not_in_task_order(world: World) -> None:
    first, last = world.order.index("dog"), world.order.index("truck")
    world.order[first], world.order[last] = world.order[last], world.order[first]


def validation_labels_unknown(world: World) -> None:
    world.views["t1-val"] = VIEWS["test"]


def a_validation_image_is_trained_on(world: World) -> None:
    world.lists["t1-train"].append("v3")


def two_datasets_share_ids(world: World) -> None:
    world.test_dataset = "other"
    world.test["b1"] = ["dog"]


LATER_RENAMED = LabelView(known="keep", previous="drop", unknown="rename:unknown")
CROWD_DROPPED = LabelView(known="keep", previous="keep", unknown="rename:unknown", crowd="drop")
EARLIER_KEPT = LabelView(known="keep", previous="keep", unknown="drop")
VIOLATIONS: list[tuple[str, str, int, str, Change]] = [
    ("CO1", "fail", 1, "a class is called unknown", lambda w: rename_class(w, "kite", "Unknown")),
    ("CO2", "fail", 2, "train renames later classes", lambda w: w.views.update({"t1-train": LATER_RENAMED})),
    ("CO3", "fail", 1, "the first test list shows no unknown", first_test_list_shows_no_unknown),
    ("CO4", "warn", 1, "a class is never tested", lambda w: w.test["e1"].remove("bench")),
    ("CO4", "warn", 1, "a class is never trained", a_class_is_never_trained),
    ("TI1", "fail", 1, "a class is introduced twice", a_class_is_introduced_twice),
    ("TI2", "fail", 1, "indices are not in task order", indices_are_not_in_task_order),
    ("TI3", "fail", 1, "a train image shows another task", lambda w: w.lists["t2-train"].append("c1")),
    ("TI4", "warn", 1, "an image is left out", lambda w: w.lists["t2-train"].remove("b3")),
    ("TI5", "fail", 1, "an exemplar is not trained on", lambda w: w.lists["t2-finetune"].append("c3")),
    ("TI5", "warn", 2, "a class has no exemplar", lambda w: w.lists["t3-finetune"].remove("b1")),
    ("AS1", "fail", 3, "train keeps earlier classes", lambda w: w.views.update({"t3-train": EARLIER_KEPT})),
    ("AS1", "fail", 1, "a test view drops crowd boxes", lambda w: w.views.update({"t1-test": CROWD_DROPPED})),
    ("AS2", "fail", 1, "validation labels unknown", validation_labels_unknown),
    ("LI1", "fail", 4, "a class is not annotated everywhere",
     lambda w: w.exhaustive.update(test=[name for name in w.order if name != "cup"])),
    ("LI2", "fail", 1, "a test image has no annotation", lambda w: gained(w, "e5", "")),
    ("LI3", "warn", 1, "a raw box has no width", lambda w: w.boxes.update({("e1", 1): [30.0, 20.0, 0.0, 9.0]})),
    ("LI3", "warn", 1, "a raw box sticks out", lambda w: w.boxes.update({("e1", 1): [600.0, 20.0, 42.0, 9.0]})),
    ("LI3", "warn", 1, "a test image is not in the raw file", lambda w: gained(w, "e9")),
    ("LI3", "warn", 1, "a raw class is foreign", lambda w: w.test["e4"].append("lamp")),
    ("DS1", "fail", 1, "a test image is repeated", lambda w: gained(w, "e1")),
    ("DS2", "fail", 1, "a validation image is trained on", a_validation_image_is_trained_on),
    ("DS4", "fail", 1, "validation lists overlap", lambda w: w.lists["t2-val"].append("v1")),
    ("DS5", "fail", 1, "two datasets share ids", two_datasets_share_ids),
]  # fmt: skip


def test_the_sound_benchmark_passes_every_rule() -> None:
    assert verdicts(run_audit(World().target())) == SOUND


@pytest.mark.parametrize(("name", "verdict", "violations", "what", "change"), VIOLATIONS)
def test_one_breach_is_told_by_one_rule(name: str, verdict: str, violations: int, what: str, change: Change) -> None:
    assert what
    world = World()
    change(world)
    audit = run_audit(world.target())
    assert verdicts(audit) == SOUND | {name: verdict}
    assert count(audit, name) == violations


def test_every_rule_that_judges_is_broken_by_some_breach() -> None:
    # No view of this package takes the flag of a box, which AS3 asks for.
    assert {name for name, *_ in VIOLATIONS} | {"DS3", "AS3"} == {rule.name for rule in RULES} - INFORMING.keys()


def test_a_view_that_keeps_later_classes_is_sound_where_no_image_shows_one() -> None:
    world = World()
    world.views["t2-finetune"] = LabelView(known="keep", previous="keep", unknown="keep")
    assert verdicts(run_audit(world.target())) == SOUND
    world.lists["t2-finetune"][0:1] = ["a1", "b2"]
    assert verdicts(run_audit(world.target())) == SOUND | {"CO2": "fail"}


def test_an_info_rule_reports_a_number_and_changes_no_verdict() -> None:
    world = World()
    world.train["a2"].append("cup")
    gained(world, "e6", "dog")
    world.lists["t3-train"].append("a2")
    before, after = run_audit(World().target()), run_audit(world.target())
    assert verdicts(after) == SOUND
    assert count(after, "CO5") == count(before, "CO5") + 1
    assert without_unknown(after) == [number + 1 for number in without_unknown(before)] == [1, 2, 5]


def without_unknown(audit: Report) -> list[int]:
    [shares] = [one.outcome for one in audit.results if one.rule.name == "LI4"]
    return [finding.count for finding in shares.findings]


def _without_views(world: World) -> AuditTarget:
    target = world.target()
    lists = tuple(replace(one, view_declared=False) for one in target.lists)
    return replace(target, used=lists)


def _exhaustive_unknown(world: World) -> AuditTarget:
    world.exhaustive = {"train": [], "test": []}
    return world.target()


def _ids_of_two_datasets(world: World) -> AuditTarget:
    world.test_dataset = "other"
    return world.target("test")


UNDECIDABLE: list[tuple[Callable[[World], AuditTarget], set[str]]] = [
    (
        lambda world: replace(world.target(), tasks=()),
        {"CO1", "CO2", "CO3", "CO4", "CO5", "TI1", "TI2", "TI3", "TI4", "TI5", "AS1", "AS2", "AS3", "LI1", "LI4"},
    ),
    (_without_views, {"CO2", "AS1", "AS2", "AS3"}),
    (
        lambda world: replace(world.target(), used=()),
        {"CO2", "CO3", "CO4", "CO5", "TI3", "TI4", "TI5", "AS1", "AS2", "AS3"}
        | {"LI1", "LI2", "LI3", "LI4", "DS2", "DS4"},
    ),
    (
        lambda world: world.target(lists=False),
        {"CO3", "CO4", "CO5", "TI3", "TI4", "TI5", "AS1", "AS3", "LI1", "LI2", "LI3", "LI4", "DS1", "DS2", "DS4"},
    ),
    (
        lambda world: world.target("train", "test"),
        {"CO3", "CO4", "CO5", "TI3", "TI4", "TI5", "AS1", "AS3", "LI2", "LI3", "LI4"},
    ),
    (World.with_tables, {"TI4", "AS1", "AS3", "LI3"}),
    (_exhaustive_unknown, {"LI1"}),
    (_ids_of_two_datasets, {"CO3", "CO4", "AS1", "AS3", "LI2", "LI3", "LI4", "DS5"}),
]


@pytest.mark.parametrize(("remove", "names"), UNDECIDABLE)
def test_a_rule_without_its_data_is_undecidable_and_says_what_it_needs(
    remove: Callable[[World], AuditTarget], names: set[str]
) -> None:
    audit = run_audit(remove(World()))
    undecided = {one.rule.name for one in audit.results if one.outcome.verdict == "undecidable"}
    assert undecided - {"DS3"} == names
    for one in audit.results:
        assert any(finding.need for finding in one.outcome.findings) == (one.outcome.verdict == "undecidable")


def test_every_rule_has_data_that_can_be_absent() -> None:
    covered = set.union(*(names for _, names in UNDECIDABLE)) | {"DS3"}
    assert covered == {rule.name for rule in RULES}


def test_a_table_proves_what_it_shows_and_nothing_by_its_silence() -> None:
    world = World()
    tables = world.with_tables()
    world.train["a2"] = []
    silent = world.with_tables()
    assert run_audit(tables).verdict("TI3") == "pass"
    assert run_audit(silent).verdict("TI3") == "undecidable"
    # The user knows that the table misses nothing: then its silence counts.
    told = world.with_tables(complete=("train", "test"))
    assert run_audit(told).verdict("TI3") == "fail"
    assert run_audit(told).verdict("TI4") == "pass"


def test_a_benchmark_without_tasks_is_not_asked_for_them() -> None:
    world = World()
    manifest = world.manifest
    header = msgspec.structs.replace(
        manifest.header,
        tasks=(),
        taxonomy="OSOD-I",
        parts=tuple(msgspec.structs.replace(part, task="") for part in manifest.header.parts),
    )
    from curation.extensions.audit.target import manifest_target

    audit = run_audit(manifest_target(Manifest(header, manifest.lists), world.sources()))
    assert audit.verdict("TI1") == audit.verdict("CO2") == audit.verdict("LI1") == "not applicable"
    assert audit.verdict("DS2") == audit.verdict("LI2") == "pass"


def test_an_empty_task_and_a_class_left_unknown_break_the_increment() -> None:
    target = World().target()
    first, second, third = target.tasks
    empty = replace(second, introduced=(), known=first.known, unknown=first.unknown)
    assert run_audit(replace(target, tasks=(first, empty, third))).verdict("TI1") == "fail"
    left = replace(third, introduced=("kite",), known=third.known[:-1], unknown=("cup",))
    assert run_audit(replace(target, tasks=(first, second, left))).verdict("TI1") == "fail"


def test_rules_are_named_once_and_described() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names) == 22
    for rule in RULES:
        _is_described(rule)


def _is_described(rule: Rule) -> None:
    for text in (rule.definition, rule.fix):
        assert text
        assert not text.endswith(".")
