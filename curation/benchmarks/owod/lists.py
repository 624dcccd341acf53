"""Revisiting Open World Object Detection (Zhao et al., arXiv 2201.00471), and the benchmarks around it.

Classes become known task by task. In task t a detector is trained on images of the classes introduced in t, labelled
with these alone; it is finetuned on exemplars of all classes known by then, validated on known labels, and tested on
images where everything is labelled: known classes by name, all others as *unknown* (section 3).

Splits: ``reowod`` (the published lists), ``table2`` (the paper's Table 2 read literally), ``m-owodb`` (ORE),
``s-owodb`` (OW-DETR), and any of one's own (``--tasks FILE``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from curation.benchmarks.owod.expected import declared_figures, figures_of, notes_of
from curation.benchmarks.owod.facts import KNOWN_VIEW, TEST_VIEW, TRAIN_VIEW
from curation.benchmarks.owod.request import Given
from curation.benchmarks.owod.rules import (
    FINETUNE_RULE,
    FIRST_TRAIN_RULE,
    MIXED_RULE,
    TEST_RULE,
    TRAIN_RULE,
    VAL_RULES,
)
from curation.benchmarks.owod.selection import (
    check_segments,
    exemplars,
    hash_ranks,
    hash_validation,
    listed_validation,
)
from curation.benchmarks.owod.setting import (
    benchmark_of,
    check_given,
    check_selected,
    check_source,
)
from curation.benchmarks.parts import Part, Selection, all_images, manifest_of, source_entry
from curation.benchmarks.shown import Shown, shown
from curation.errors import UsageError
from curation.manifest.header import PartEntry, PartRole, TaskEntry
from curation.manifest.manifest import Manifest
from curation.sources.source import Int64s, Source

ALGORITHM_VERSION = 1


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the manifest of all tasks of a benchmark.

    Parameters
    ----------
    sources : mapping of str to Source
        The test source and, for all lists but the test's, the training source; for ``m-owodb`` VOC's too.
    parameters : mapping
        See `curation.benchmarks.owod.parameters`.

    Raises
    ------
    ProtocolError
        A source shows a class that the benchmark does not name, or none that it does; two sources share ids; a
        validation list cannot be had.
    PresenceOnlyError
        The test source has no boxes.
    """
    benchmark = benchmark_of(parameters)
    given = Given(benchmark, sources, parameters)
    for slot in benchmark.slots:
        if slot in sources:
            check_source(benchmark, slot, sources)
    check_given(benchmark, sources, parameters)
    training, selected = _training(given) if benchmark.train in sources else ({}, {})
    tested = _tests(given)
    parts = [
        part
        for task in benchmark.tasks
        for part in (*(training.get(task.name, ())), *(one for one in tested if one.entry.task == task.name))
    ]
    return manifest_of(
        parts,
        name=benchmark.manifest_name(sources),
        title=benchmark.title,
        paper=benchmark.paper,
        taxonomy="OWOD",
        classes=benchmark.classes,
        sources=tuple(
            source_entry(slot, sources[slot], exhaustive=benchmark.exhaustive(slot))
            for slot in (*benchmark.slots, *benchmark.lists)
            if slot in sources
        ),
        protocol="owod",
        algorithm_version=ALGORITHM_VERSION,
        parameters={**parameters, "train_evidence": _evidence(given)},
        figures=figures_of(benchmark, parts, sources, parameters, selected),
        notes=notes_of(benchmark, parts, sources, parameters),
        tasks=benchmark.tasks,
    )


def _training(given: Given) -> tuple[dict[str, list[Part]], dict[str, int]]:
    """Return the training, finetuning and validation parts by task, and how many images each task selects."""
    benchmark = given.benchmark
    what = given.show(benchmark.train)
    # M-OWODB's first classes are learnt from VOC: exemplars of them are there, COCO's images show some by chance.
    whole = [given.show(slot) for slot in benchmark.first_train]
    ranks = hash_ranks([*whole, what], _salt(given, "finetune"))
    own = benchmark.tasks[1:] if benchmark.first_train else benchmark.tasks
    selections = [what.of(given.labels(task)) for task in own]
    check_selected(benchmark, own, selections)
    validation = _validation(given, what, selections, own)
    held_out = np.zeros(len(what.source.images), np.bool_)
    for positions in validation:
        held_out[positions] = True
    kept = [selection[~held_out[selection]] for selection in selections]
    parts: dict[str, list[Part]] = {task.name: [] for task in benchmark.tasks}
    for number, task in enumerate(benchmark.tasks, start=1):
        if benchmark.first_train and number == 1:
            parts[task.name] += _first_training(given, task)
            continue
        place = own.index(task)
        selected = [Selection(benchmark.train, what.source, kept[place])]
        parts[task.name].append(
            given.part(task, "train", selected, TRAIN_VIEW, _train_rule(given, task, number, bool(validation)))
        )
        if number > 1 and given.parameters["exemplars"]:
            parts[task.name].append(_finetuning(given, task, number, [*whole, what], kept[: place + 1], ranks))
        if validation:
            parts[task.name].append(_validation_part(given, task, place, what.source, validation[place]))
    sizes = {task.name: len(selection) for task, selection in zip(own, selections, strict=True)}
    return parts, sizes


def _validation(given: Given, what: Shown, selections: Sequence[Int64s], tasks: Sequence[TaskEntry]) -> list[Int64s]:
    parameters, benchmark = given.parameters, given.benchmark
    rule = benchmark.validation_rule(parameters)
    if rule == "hash":
        (rank,) = hash_ranks([what], _salt(given, "val"))
        return hash_validation(selections, rank, size=parameters["val_size"])
    if rule == "published":
        if (listed := given.sources.get(benchmark.lists[0])) is None:
            raise UsageError(
                "The published validation list is not given",
                where="--set val=published",
                expected=f"--source {benchmark.lists[0]}=all_task_val.txt",
                hint="it is the authors' own file, drawn without a stated seed: nobody can make it again",
            )
        segments = listed_validation(listed, what.source, len(selections))
        # A table of presence misses classes: of it the images cannot be asked for.
        if what.source.objects is not None:
            check_segments(listed, segments, selections, [task.name for task in tasks], what.source)
        return segments
    return []


def _validation_part(given: Given, task: TaskEntry, place: int, source: Source, positions: Int64s) -> Part:
    parameters = given.parameters
    rule = given.benchmark.validation_rule(parameters)
    size = len(positions)
    text = VAL_RULES[rule].format(
        size=size,
        task=task.name,
        salt=_salt(given, "val"),
        first=place * size + 1,
        last=(place + 1) * size,
    )
    selected = [Selection(given.benchmark.train, source, positions)]
    return given.part(task, "val", selected, KNOWN_VIEW, text, listed=given.listed() and rule == "published")


def _first_training(given: Given, task: TaskEntry) -> list[Part]:
    """Return the training part that takes some sources whole (M-OWODB: VOC2007 and VOC2012 trainval)."""
    slots = given.benchmark.first_train
    selected = [Selection(slot, given.sources[slot], all_images(given.sources[slot])) for slot in slots]
    return [given.part(task, "train", selected, TRAIN_VIEW, FIRST_TRAIN_RULE.format(sources=" and ".join(slots)))]


def _finetuning(
    given: Given,
    task: TaskEntry,
    number: int,
    whats: Sequence[Shown],
    trained_on: Sequence[Int64s],
    ranks: Sequence[Int64s],
) -> Part:
    known = [label for one in given.benchmark.tasks[:number] for label in given.labels(one)]
    *whole, what = whats
    union = np.zeros(len(what.source.images), np.bool_)
    for positions in trained_on:
        union[positions] = True
    pools = [*((one, one.order) for one in whole), (what, what.order[union[what.order]])]
    size = given.parameters["exemplars"]
    chosen, held = exemplars(pools, known, ranks, size=size)
    short = ", ".join(f"{given.benchmark.classes[label].name} {n}" for label, n in sorted(held.items()) if n < size)
    rule = FINETUNE_RULE.format(size=size, task=task.name, salt=_salt(given, "finetune")) + (
        f" Fewer: {short}." if short else ""
    )
    slots = (*given.benchmark.first_train, given.benchmark.train)
    selected = [
        Selection(slot, one.source, positions) for slot, one, positions in zip(slots, whats, chosen, strict=True)
    ]
    return given.part(task, "finetune", selected, KNOWN_VIEW, rule)


def _tests(given: Given) -> list[Part]:
    """Return the test part of each task: one list, and each task's own view of it."""
    benchmark = given.benchmark
    source = given.sources[benchmark.test]
    source.require_objects("A test part")
    if not benchmark.first_test:
        what = shown(source, benchmark.classes)
        rule = TEST_RULE.format(order=_order(given, "test"))
        selected = [Selection(benchmark.test, source, what.order)]
        return [given.part(task, "test", selected, TEST_VIEW, rule) for task in benchmark.tasks]
    if benchmark.first_test not in given.sources:
        return []
    first = given.sources[benchmark.first_test]
    what = given.show(benchmark.test)
    keep = given.parameters["repeats"] == "keep"
    later = np.concatenate([what.of(given.labels(task)) for task in benchmark.tasks[1:]])
    if not keep:
        later = later[np.sort(np.unique(later, return_index=True)[1])]
    mixed = [
        Selection(benchmark.first_test, first, all_images(first)),
        Selection(benchmark.test, source, later),
    ]
    repeats = ": an image with classes of several tasks stands once for each" if keep else ", each image once"
    rule = MIXED_RULE.format(
        first=benchmark.first_test, second=benchmark.test, repeats=repeats, order=_order(given, "test")
    )
    return [given.part(task, "test", mixed, TEST_VIEW, rule) for task in benchmark.tasks]


def declare(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return a published split as a declared manifest: test lists exact, all others pinned by size, digest and rule.

    ``curation build`` completes it from the reader's own ``instances_train2017.json`` (and, for RE-OWOD, the published
    validation list), and refuses if a list or figure comes out otherwise.

    Parameters
    ----------
    sources : mapping of str to Source
        The test sources.
    parameters : mapping
        Their ``split`` counts; the order of the training lists is that of the published ones.
    """
    benchmark = benchmark_of(parameters)
    if not benchmark.split or not benchmark.split.sizes:
        raise UsageError(
            "Only a published split can be declared",
            where=f"--set split={parameters['split']}",
            expected="reowod, m-owodb or s-owodb",
        )
    published = {
        **parameters,
        "order": "annotation",
        "test_order": "sorted",
        "val": "published" if benchmark.split.has_validation else "none",
        "repeats": "keep",
    }
    given = Given(benchmark, sources, published)
    tested = {part.entry.task: part for part in _tests(given)}
    parts: list[Part | PartEntry] = []
    for number, task in enumerate(benchmark.tasks, start=1):
        parts += benchmark.declared_parts(task, number, published, _rules(given, task, number))
        parts.append(tested[task.name])
    return manifest_of(
        parts,
        name=f"owod/{benchmark.split.name}",
        title=benchmark.title,
        paper=benchmark.paper,
        taxonomy="OWOD",
        origin="declared",
        classes=benchmark.classes,
        sources=tuple(benchmark.declared_source(slot, sources) for slot in (*benchmark.slots, *benchmark.lists)),
        protocol="owod",
        algorithm_version=ALGORITHM_VERSION,
        parameters={**published, "train_evidence": "boxes"},
        figures=declared_figures(benchmark, list(tested.values()), sources),
        notes=(
            "Lists of images of train2017 need instances_train2017.json: `curation build` completes and checks them.",
            *notes_of(benchmark, list(tested.values()), sources, published),
        ),
        tasks=benchmark.tasks,
    )


def _rules(given: Given, task: TaskEntry, number: int) -> dict[PartRole, str]:
    """Return the rule of each training part of a task in words, before any list is available."""
    benchmark, parameters = given.benchmark, given.parameters
    if benchmark.first_train and number == 1:
        return {"train": FIRST_TRAIN_RULE.format(sources=" and ".join(benchmark.first_train))}
    rules: dict[PartRole, str] = {
        "train": _train_rule(given, task, number, benchmark.validation_rule(parameters) != "none")
    }
    if number > 1 and parameters["exemplars"]:
        rules["finetune"] = FINETUNE_RULE.format(
            size=parameters["exemplars"], task=task.name, salt=_salt(given, "finetune")
        )
    if benchmark.validation_rule(parameters) == "published":
        rules["val"] = VAL_RULES["published"].format(first=1000 * number - 999, last=1000 * number)
    return rules


def _train_rule(given: Given, task: TaskEntry, number: int, validated: bool) -> str:
    return TRAIN_RULE.format(
        task=task.name,
        number=number,
        crowd=", crowd regions included" if given.parameters["crowd"] == "select" else ", crowd regions apart",
        less=", less the validation images of all tasks" if validated else "",
        order=_order(given),
    )


def _salt(given: Given, purpose: str) -> str:
    return f"{given.parameters['salt']}/{purpose}/"


def _order(given: Given, role: PartRole = "train") -> str:
    return "in the order of their first annotation" if given.listed(role) else "sorted by id"


def _evidence(given: Given) -> str:
    train = given.sources.get(given.benchmark.train)
    return "none" if train is None else "boxes" if train.objects is not None else "presence"
