"""The rule ``tasks``: classes become known one task after another; later classes are unknown.

After Revisiting Open World Object Detection (2022). The parts of a task are ``tN-train``, images of the classes that it
introduces; ``tN-finetune``, exemplars of every class known by it; ``tN-val``; and ``tN-test``, the same images for all.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from curation.benchmarks.benchmark import fact
from curation.benchmarks.parts import images_with, manifest_of_file
from curation.benchmarks.rules.benchmark_file import BenchmarkFile, stated_in
from curation.benchmarks.rules.starting import (
    NAMES_ARE,
    StartOptions,
    alias_lines,
    beginning,
    by_class,
    is_usable,
    listed,
    object_counts,
    other_names,
    quoted,
    require_usable,
    source_tables,
)
from curation.benchmarks.rules.task_lists import (
    PUBLISHED_SIZES,
    VIEWS,
    TaskParameters,
    fitting_validation,
    note_on_presence,
    note_on_unannotated,
    split_of_file,
    task_parts,
)
from curation.core.errors import CurationError, CurationWarning, ProtocolError, UsageError
from curation.core.tables import printable
from curation.manifest.header import NAME, PART_NAME, Header, Paper
from curation.manifest.manifest import Manifest
from curation.sources.datasets import namespace_of
from curation.sources.source import Source

PARAMETERS = TaskParameters
USUAL_SOURCES = ("train", "test")
_ROLES = {*USUAL_SOURCES, "first-train", "first-test", "val-list"}
PARTS = fact("curation.benchmarks.owod", "benchmark", dict[str, Any])["parts"]
PAPER = fact("curation.benchmarks.owod", "papers", dict[str, Paper])["reowod"]


def build(sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a benchmark file of this rule.

    Parameters
    ----------
    sources : mapping of str to Source
        One in the role ``test``, with boxes, and one in the role ``train`` for all lists but the test's. Roles of
        further ones, as in M-OWODB: ``first-train`` (all training images of task 1), ``first-test`` (whole, before the
        test images of the later tasks), ``val-list`` (ids of validation images, equally many a task).
    parameters : mapping
        ``file``: the benchmark file as `read_benchmark_file` returns it.

    Raises
    ------
    ProtocolError
        The file does not hold together, or the sources do not fit it (see `task_parts`).
    """
    file = stated_in(parameters["file"])
    check_tasks(file, "the benchmark file")
    split = split_of_file(file, sources)
    if split.test not in sources:
        raise UsageError("The test source is not given", expected=f"--source {split.test}=PATH")
    parts, _, evidence = task_parts(split)
    return manifest_of_file(
        file,
        parts,
        {slot: sources[slot] for slot in (*split.slots, split.val_list) if slot in sources},
        split.classes,
        {**parameters, "exemplars": split.settings.exemplars, "train_evidence": evidence},
        taxonomy="OWOD",
        notes=(*note_on_presence(split), *note_on_unannotated(split)),
        tasks=split.tasks,
    )


def score_words(header: Header) -> tuple[str, ...]:
    """Return the options by which `evaluate` scores a manifest of this rule: at its first task."""
    return "--task", header.tasks[0].name, "--detections", "FILE"


def check_tasks(file: BenchmarkFile, where: str) -> None:
    """Raise `ProtocolError` for the first inconsistency in a file of tasks."""
    for field, expected, value in _problems(file):
        raise ProtocolError(
            "The file of tasks is inconsistent", where=f"{where}: {field}", expected=expected, found=value
        )


def _problems(file: BenchmarkFile) -> Iterator[tuple[str, str, str]]:
    """Yield field, expected value and actual value of each inconsistency."""
    split, classes = split_of_file(file), file.classes
    if not re.fullmatch(NAME, file.name):
        yield "name", "lower-case words joined by -, at most one /", repr(file.name[:80])
    for role in ("known", "negative"):
        if getattr(classes, role):
            yield f"[classes] {role}", "known classes in [[classes.tasks]], others in unknown or ignored", role
    if other_views := sorted({*file.views} - {*VIEWS}):
        yield "[views]", f"{', '.join(VIEWS)}: the labels of training, finetuning and test", ", ".join(other_views)[:80]
    roles = Counter(map(file.role, file.sources))
    several = [role for role, count in roles.items() if count > 1 and role != "first-train"]
    has_training = "train" in roles or not {"first-train", "val-list"} & {*roles}
    if {*roles} - _ROLES or several or not split.test or not has_training:
        sources = ", ".join(f"{name} as {file.role(name)}" for name in file.sources)
        expected = 'test, and train or none; or others with as = "test" and as = "train"'
        yield "[sources]", f"{expected} (beside train: first-train, first-test, val-list)", sources[:200]
    if not split.tasks:
        yield "tasks", "at least one task", "none"
    if len(split.tasks) == 1 and {"first-train", "first-test"} & {*roles}:
        yield "[sources]", "a second task, beside first-train and first-test", "one task"
    for task in split.tasks:
        if not re.fullmatch(PART_NAME, f"{task.name}-finetune") or not re.fullmatch(PART_NAME, task.name):
            yield "tasks: name", "up to 55 lower-case letters and digits, such as t1", repr(task.name[:80])
        if not task.introduced:
            yield f"task {task.name}", "at least one class", "none"
    names = [entry.name for entry in split.classes]
    for field, others in (("aliases", [*classes.aliases]), ("absent", classes.absent)):
        for name in sorted(set(others) - set(names)):
            yield field, "names of classes of the file", repr(name[:80])
    for name in [*names, *(alias for aliases in classes.aliases.values() for alias in aliases)]:
        if not is_usable(name):
            yield "classes", NAMES_ARE, repr(name[:80])
    # Folded, so that BipolarForcepsDown and BipolarForcepsDOwn are one class (a slip of a published benchmark).
    folded = Counter(name for each in split.classes for name in {*map(str.casefold, (each.name, *each.aliases))})
    for field, counts in (
        ("tasks: name", Counter(task.name for task in split.tasks)),
        ("classes, unknown, ignored and aliases", folded),
    ):
        if repeated := [name for name, count in counts.items() if count > 1]:
            yield field, "each once, whatever its case", f"{repeated[0]:.80} twice"
    for source in file.sources:
        try:
            namespace_of(file.dataset(source))
        except CurationError as error:
            yield f"dataset of {source}", error.expected or "a lower-case word", repr(file.dataset(source)[:80])


def start(sources: Mapping[str, Source], options: StartOptions) -> list[str]:
    """Return the lines of a draft file: every class of the sources, grouped into tasks.

    The classes keep the order of the files and form groups of equal size; if that is impossible, the first groups have
    one class more. Classes without a training object are listed as unknown: no task can train on them. A category
    without a box in either file, such as the root of a Roboflow export, is not a class: a comment names it. The sizes
    of the validation and finetuning lists fit the training file.

    Raises
    ------
    ProtocolError
        No class has an object, or a file cannot hold the names, such as two that differ only in case.
    """
    if set(sources) - set(USUAL_SOURCES):
        raise UsageError(
            "The rule tasks needs a training source and a test source",
            expected="--source train=PATH --source test=PATH",
            found=", ".join(sources),
        )
    if "test" in sources:
        sources["test"].require_objects("A test part")
    files = ", ".join(printable(raw.files[0].name if raw.files else raw.dataset, "?") for raw in sources.values())
    counts = object_counts(sources)
    train = sources.get("train")
    trained = counts if train is None else object_counts({"train": train})
    names = [label for label in counts if label in trained and trained[label][0]]
    if not names:
        message, expected = "The sources have no training objects", "an annotation file"
        raise ProtocolError(message, where=files, expected=expected, found=f"{len(counts)} classes")
    require_usable(counts, files)
    absent = [label for label in counts if not counts[label][0]] if len(sources) > 1 else []
    untrained = [label for label in counts if label not in {*names, *absent}]
    tested = object_counts({"test": sources["test"]}) if "test" in sources else counts
    renamed = other_names([name for name in names if name not in tested], untrained)
    untrained = [label for label in untrained if label not in renamed]
    if (n_tasks := min(options.n_tasks, len(names))) < options.n_tasks:
        text = f"{n_tasks} tasks instead of {options.n_tasks}: no more classes have an object"
        warnings.warn(text, CurationWarning, stacklevel=4)
    groups: list[list[str]] = [group.tolist() for group in np.array_split(np.array(names, object), n_tasks)]
    lines = [
        *beginning("tasks", options.name),
        *source_tables(sources, options.name, later_sources=USUAL_SOURCES, exhaustive=options.exhaustive),
        "",
        "[parameters]",
        *_sizes(groups, train, trained),
        "",
        "[classes]",
        "# Classes that never become known: their objects stay unknown in every task.",
        *listed("unknown", untrained, "no training object in the files"),
        *(["# Left out, since neither file has a box of them:"] if absent else []),
        *(f"#   {quoted(label)}" for label in absent),
        "# Classes whose detections count as neither right nor wrong.",
        "ignored = []",
        *(alias_lines(by_class(renamed)) if renamed else []),
        "",
        "# Tasks in their order, each with the classes that become known in it. Here the classes are in the order",
        f"# of the files, in {n_tasks} groups: move them as you need.",
    ]
    for number, group in enumerate(groups, start=1):
        remarks = ["{:,} objects on {:,} images".format(*counts[label]) for label in group]
        lines += ["[[classes.tasks]]", f'name = "t{number}"', *listed("classes", group, remarks), ""]
    return lines


def _sizes(groups: Sequence[Sequence[str]], train: Source | None, counts: Mapping[str, tuple[int, int]]) -> list[str]:
    """Return the sizes of the validation and finetuning lists that fit the training images of each class."""
    if train is None:
        return [
            "# Sizes of the validation and finetuning lists; init tasks --source train=PATH finds sizes that fit.",
            "validation = 0",
            "exemplars = 0",
        ]
    of_tasks = [int(images_with(train, group).sum()) for group in groups]
    validation = fitting_validation(of_tasks)
    rarest = min(counts[label][1] for group in groups for label in group)
    exemplars = min(max((rarest - validation * len(groups)) // 2, 1), PUBLISHED_SIZES[1])
    most, usual = PUBLISHED_SIZES
    return [
        f"# Validation images of a task: a tenth of the {min(of_tasks):,} images of the smallest task, at most {most}.",
        f"validation = {validation}",
        f"# Finetuning images of a class: half of the {rarest:,} images with the rarest class, without validation, at "
        f"most {usual}.",
        f"exemplars = {exemplars}",
    ]
