"""A user's own open-world benchmark, declared in one TOML or JSON file: classes by task, and which data they lie in."""

from __future__ import annotations

import json
import re
import tomllib
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from curation.benchmarks.benchmark import MOST_IMAGES
from curation.benchmarks.roles import require_disjoint_sources
from curation.core.arguments import checked
from curation.core.errors import CurationError, CurationWarning, ProtocolError, UsageError
from curation.core.json_text import decode_json
from curation.core.reading import read_declaration
from curation.core.tables import printable
from curation.core.wording import slug
from curation.manifest.header import NAME, PART_NAME, ClassEntry, ClassRole, TaskEntry
from curation.sources.datasets import namespace_of, users_name
from curation.sources.opening import open_slots
from curation.sources.source import Source
from curation.sources.source_specs import BadBoxes, Reading, SourceSlot

SOURCES = ("train", "test")
EXAMPLE = """name = "mylab/shapes"
dataset = "shapes"
[[tasks]]
name = "t1"
classes = ["circle", "square"]
[[tasks]]
name = "t2"
classes = ["star"]"""
USUAL_TASKS = 4
"""Tasks of all published open-world benchmarks."""
Given = Annotated[Mapping[str, Path] | Path, "[train|test[@PART]=]PATH"]
_PUBLISHED_SIZES = 1000, 50
"""Validation images a task, and exemplars a class, of the published benchmarks."""
_LONGEST_NAME = 200
_NAMES_ARE = f"printable names of 1 to {_LONGEST_NAME} characters without outer blanks, none of them 'unknown'"


class _Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    classes: tuple[str, ...]


class TaskFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a task file declares.

    Attributes
    ----------
    name, title : str
        Of the manifest.
    dataset : str
        Namespace of the image ids. Where the files for training and test number their images alike, `datasets` gives
        each its own.
    tasks : tuple of _Task
        In order, each with the classes that it introduces, in the order of their index.
    unknown, ignored : tuple of str
        Classes of the data that no task introduces: always unknown, or neither right nor wrong.
    aliases : dict of str to tuple of str
        Other names of a class in the annotation files.
    validation, exemplars : int or None
        Images a task, and images a class, of the validation and finetuning lists; None leaves it to ``--set``.
    exhaustive : bool
        Whether every object of every class is annotated on every image: the audit cannot know (rule LI1).
    """

    name: str
    tasks: tuple[_Task, ...]
    title: str = ""
    dataset: str = "custom"
    datasets: dict[str, str] = {}
    unknown: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    aliases: dict[str, tuple[str, ...]] = {}
    validation: Annotated[int, msgspec.Meta(ge=0, le=MOST_IMAGES)] | None = None
    exemplars: Annotated[int, msgspec.Meta(ge=0, le=MOST_IMAGES)] | None = None
    exhaustive: bool = False

    def entries(self) -> tuple[TaskEntry, ...]:
        """Return the tasks as a manifest holds them."""
        return tuple(TaskEntry(name=task.name, introduced=task.classes) for task in self.tasks)

    def classes(self) -> tuple[ClassEntry, ...]:
        """Return every class: those of the tasks are known and indexed from 0 in their order."""
        introduced = [name for task in self.tasks for name in task.classes]
        listed: list[tuple[str, ClassRole, int]] = [(name, "known", index) for index, name in enumerate(introduced)]
        listed += [(name, "unknown", -1) for name in self.unknown]
        listed += [(name, "ignored", -1) for name in self.ignored]
        return tuple(
            ClassEntry(name=name, role=role, index=index, aliases=self.aliases.get(name, ()))
            for name, role, index in listed
        )

    def dataset_of(self, source: str) -> str:
        """Return the dataset of ``train`` or ``test``."""
        return self.datasets.get(source, self.dataset)


def read_task_file(path: Path) -> str:
    """Return the declaration of a TOML or JSON file as one JSON text for any spelling of it, checked.

    Raises
    ------
    MissingFileError
        No such file.
    ProtocolError
        It is no TOML or JSON, has other fields or types, or does not hold together (see `parse_tasks`).
    """
    declared = read_declaration(path, TaskFile, ProtocolError, kind="task file", example=f"for example\n{EXAMPLE}")
    _check(declared, str(path))
    # Class names are keys here, in any script: canonical JSON admits ASCII keys alone.
    fields = {name: value for name, value in msgspec.to_builtins(declared).items() if value is not None}
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def starter_task_file(
    sources: Mapping[str, Source], *, name: str, n_tasks: int = USUAL_TASKS, exhaustive: bool = False
) -> str:
    """Return a task file to begin with: every class of some sources, grouped into tasks, with comments.

    The classes keep the order of the files, cut into groups of equal size, earlier ones larger by one where that
    does not come out even. Classes without any training object are listed as unknown: no task can train on them. A
    category without a box in either file is not a class, such as the root of a Roboflow export: a comment names it.
    The sizes of the validation and finetuning lists fit the training file.

    Parameters
    ----------
    sources : mapping of str to Source
        ``train``, ``test`` or both.
    name : str
        Of the manifest; its last word becomes the namespace of the image ids, ``my_coco`` of ``lab/coco``. Where both
        sources number their images alike, each gets a different one.
    n_tasks : int
        Fewer where there are not as many classes.

    Raises
    ------
    ProtocolError
        No class has an object; or names cannot be used in a task file, such as two that differ in case alone.
    """
    files = ", ".join(printable(raw.files[0].name if raw.files else raw.dataset, "?") for raw in sources.values())
    objects, shows = _counts(sources)
    trained = _counts({"train": sources["train"]})[1] if "train" in sources else shows
    trained_classes = [label for label in objects if len(trained.get(label, ()))]
    if not trained_classes:
        raise ProtocolError(
            "No class has an object here", where=files, expected="an annotation file", found=f"{len(objects)} classes"
        )
    first: dict[str, str] = {}
    for label in objects:
        other = "" if (earlier := first.setdefault(label.casefold(), label)) == label else earlier
        if other or not _is_usable(label):
            raise ProtocolError(
                "A class of the annotation file cannot stand in a task file under its name",
                where=files,
                expected=f"{_NAMES_ARE}, each once, whatever its case",
                found=repr(label[:80]) + (f" beside {other[:80]!r}" if other else ""),
                hint="rename the category in the annotation file",
            )
    absent = [label for label in objects if not objects[label]] if {*SOURCES} <= sources.keys() else []
    trained_or_absent = {*trained_classes, *absent}
    untrained = [label for label in objects if label not in trained_or_absent]
    n_tasks = min(n_tasks, len(trained_classes))
    size, larger = divmod(len(trained_classes), n_tasks)
    cuts = [number * size + min(number, larger) for number in range(n_tasks + 1)]
    groups = [trained_classes[start:stop] for start, stop in pairwise(cuts)]
    word = slug(name.rpartition("/")[2])[:24]
    word = users_name(word) if word[:1].isalpha() else "custom"
    lines = [
        f"# A task file to begin with, from {files}. Change what you mean otherwise.",
        "",
        "# Name of the benchmark: lower-case words joined by -, at most one /.",
        f"name = {_quoted(name)}",
        "# First word of every image id.",
        f"dataset = {_quoted(word)}",
        "# true where every object of every class is annotated on every image: the audit cannot know (rule LI1).",
        f"exhaustive = {str(exhaustive).lower()}",
        "# Classes that never become known: their objects stay unknown at every task.",
        *_listed("unknown", untrained, "no training object in the files"),
        *_without_boxes(absent),
        "# Classes that are neither right nor wrong.",
        "ignored = []",
        *_sizes(groups, trained if "train" in sources else {}),
        "",
        "# Tasks in their order, each with the classes that become known in it. Here the classes stand in the order",
        f"# of the files, cut into {n_tasks} groups: move them to where you want them.",
    ]
    for number, group in enumerate(groups, start=1):
        remarks = [f"{objects[label]:,} objects on {len(shows[label]):,} images" for label in group]
        lines += ["[[tasks]]", f'name = "t{number}"', *_listed("classes", group, remarks), ""]
    lines += _datasets(sources, word)
    text = "\n".join(lines).rstrip("\n") + "\n"
    _check(msgspec.convert(tomllib.loads(text), TaskFile), files)
    return text


@checked
def start_tasks(
    source: Given,
    *,
    name: str = "my/benchmark",
    n_tasks: Annotated[int, msgspec.Meta(ge=1)] = USUAL_TASKS,
    exhaustive: bool = False,
    bad_boxes: BadBoxes = "error",
) -> str:
    """Return a task file to begin with, made from the user's annotations.

    Parameters
    ----------
    source
        your annotations, such as a COCO JSON; train= or test= before it says what it is for (train;
        repeatable), @PART which part of a folder it is
    name
        name of the benchmark
    n_tasks
        groups into which the classes are cut in the order of the file (4, as in the published
        benchmarks)
    exhaustive
        every object of every class is annotated on every image
    bad_boxes
        boxes that are not finite, negative or outside any image: refuse, or drop and count
    """
    paths = {"": source} if isinstance(source, Path) else source
    if {"", SOURCES[0]} <= paths.keys():
        raise UsageError("--source names 'train' twice", where=f"--source {paths['']!s:.200}")
    paths = {use or SOURCES[0]: path for use, path in paths.items()}
    slots = [SourceSlot(use, "custom", usual_part=use) for use in SOURCES]
    sources = open_slots(paths, slots, Reading(bad_boxes=bad_boxes))
    if "test" in sources:
        sources["test"].require_objects("A test part")
    # Before the two sides get different names, under which their ids could not be compared.
    require_disjoint_sources(sources, {use.partition("@")[0]: path for use, path in paths.items()}, warn=True)
    text = starter_task_file(sources, name=name, n_tasks=n_tasks, exhaustive=exhaustive)
    made = text.count("\n[[tasks]]\n")
    if made < n_tasks:
        warnings.warn(
            f"{made} tasks in place of {n_tasks}: no more classes have an object", CurationWarning, stacklevel=3
        )
    return text


def _counts(sources: Mapping[str, Source]) -> tuple[dict[str, int], dict[str, set[tuple[str, int]]]]:
    """Return how many objects each class has in all sources, and the images that show it, in the order of the files."""
    objects: dict[str, int] = {}
    images: dict[str, set[tuple[str, int]]] = {}
    for use, source in sources.items():
        image, category = source.class_pairs()
        object_category = category if source.objects is None else source.objects.category
        names = source.categories.names
        for label, count in zip(names, np.bincount(object_category, minlength=len(names)).tolist(), strict=True):
            objects[label] = objects.get(label, 0) + count
            images.setdefault(label, set())
        for shows, position in zip(image.tolist(), category.tolist(), strict=True):
            images[names[position]].add((use, shows))
    return objects, images


def fitting_validation(sizes: Sequence[int]) -> int:
    """Return how many validation images every task can spare, from the training images that each selects; 0: none."""
    # A tenth; and so few that the lists of all tasks, taken from the smallest, leave something to train on.
    return min(min(sizes, default=0) // max(10, len(sizes) + 1), _PUBLISHED_SIZES[0])


def _sizes(groups: Sequence[Sequence[str]], images: Mapping[str, Collection[object]]) -> list[str]:
    """Return the sizes of the validation and finetuning lists that fit the images of each class."""
    if not images:
        return ["# Sizes of the validation and finetuning lists: init tasks --source train=PATH finds what fits."]
    of_tasks = [len(set[object]().union(*(images[label] for label in group))) for group in groups]
    validation = fitting_validation(of_tasks)
    rarest = min(len(images[label]) for group in groups for label in group)
    exemplars = min(max((rarest - validation * len(groups)) // 2, 1), _PUBLISHED_SIZES[1])
    most, usual = _PUBLISHED_SIZES
    return [
        f"# Validation images a task: a tenth of the {min(of_tasks):,} of the smallest task, at most {most}; 0: none.",
        f"validation = {validation}",
        f"# Finetuning images a class: half of what validation leaves of the {rarest:,} that show the rarest class, at "
        f"most {usual}; 0: no such lists.",
        f"exemplars = {exemplars}",
    ]


def _without_boxes(labels: Sequence[str]) -> list[str]:
    """Return comments that name the categories of no box."""
    return (
        ["# Left out, since neither file has a box of them:", *(f"#   {_quoted(label)}" for label in labels)]
        if labels
        else []
    )


def _listed(field: str, names: Sequence[str], remarks: Sequence[str] | str) -> list[str]:
    if not names:
        return [f"{field} = []"]
    comments = [remarks] * len(names) if isinstance(remarks, str) else remarks
    rows = [f"  {_quoted(name)},  # {remark}" for name, remark in zip(names, comments, strict=True)]
    return [f"{field} = [", *rows, "]"]


def _datasets(sources: Mapping[str, Source], word: str) -> list[str]:
    """Return the names that keep apart the images of two sources that number theirs alike."""
    natives = [set(source.images.native.tolist()) for source in sources.values()]
    if len(natives) < len(SOURCES):
        return [
            "# Where the files for training and testing number their images alike, each needs a name of its own:",
            "# [datasets]",
            *(f"# {source} = {_quoted(f'{word}_{source}')}" for source in SOURCES),
        ]
    if not set.intersection(*natives):
        return []
    return [
        "# Both files use the same image ids: names of their own keep the images apart.",
        "[datasets]",
        *(f"{source} = {_quoted(f'{word}_{source}')}" for source in SOURCES),
    ]


def _quoted(text: str) -> str:
    """Return a TOML string: its escapes are those of JSON for every printable text."""
    return json.dumps(text, ensure_ascii=False)


def read_task_settings(path: Path) -> dict[str, str]:
    """Return the settings of the benchmark that a task file stands for (see `read_task_file` for the errors)."""
    text = read_task_file(path)
    declared = parse_tasks(text)
    settings = {"split": "custom", "tasks": text}
    if declared.validation is not None:
        settings |= {"val_size": str(declared.validation)} if declared.validation else {"val": "none"}
    return settings | ({"exemplars": str(declared.exemplars)} if declared.exemplars is not None else {})


def parse_tasks(text: str) -> TaskFile:
    """Return the declaration that `read_task_file` made a text of, checked again.

    Raises
    ------
    ProtocolError
        The text is not such a declaration.
    """
    # A text may hold half a character, which no UTF-8 does: the decoder refuses it.
    data = text.encode("utf-8", "surrogatepass")
    hint = "--tasks FILE reads a file"
    declared = decode_json(
        data, TaskFile, ProtocolError, "The task file cannot be read", where="--set tasks", hint=hint
    )
    _check(declared, "tasks")
    return declared


def _check(declared: TaskFile, where: str) -> None:
    """Raise `ProtocolError` for the first thing in a task file that does not hold together."""
    for field, expected, value in _problems(declared):
        raise ProtocolError("Inconsistent task file", where=f"{where}: {field}", expected=expected, found=value)


def _problems(declared: TaskFile) -> Iterator[tuple[str, str, str]]:
    """Yield the field of each thing that does not hold together, what was expected and what was found."""
    if not re.fullmatch(NAME, declared.name):
        yield "name", "lower-case words joined by -, at most one /", repr(declared.name[:80])
    if not declared.tasks:
        yield "tasks", "at least one task", "none"
    for task in declared.tasks:
        if not re.fullmatch(PART_NAME, f"{task.name}-finetune") or not re.fullmatch(PART_NAME, task.name):
            yield "tasks: name", "up to 55 lower-case letters and digits, such as t1", repr(task.name[:80])
        if not task.classes:
            yield f"task {task.name}", "at least one class", "none"
    names = [entry.name for entry in declared.classes()]
    for name in sorted(set(declared.aliases) - set(names)):
        yield "aliases", "names of classes of the file", repr(name[:80])
    spelled = [*names, *(alias for aliases in declared.aliases.values() for alias in aliases)]
    for name in spelled:
        if not _is_usable(name):
            yield "classes", _NAMES_ARE, repr(name[:80])
    # Folded, so that BipolarForcepsDown and BipolarForcepsDOwn are one class (a slip of a published benchmark).
    folded = Counter(name.casefold() for name in spelled)
    for field, counts in (
        ("tasks: name", Counter(task.name for task in declared.tasks)),
        ("classes, unknown, ignored and aliases", folded),
    ):
        if repeated := [name for name, count in counts.items() if count > 1]:
            yield field, "each once, whatever its case", f"{repeated[0]:.80} twice"
    for source in sorted(set(declared.datasets) - set(SOURCES)):
        yield "datasets", " and ".join(SOURCES), repr(source[:80])
    for source in SOURCES:
        try:
            namespace_of(declared.dataset_of(source))
        except CurationError as error:
            dataset = repr(declared.dataset_of(source)[:80])
            yield f"dataset of {source}", error.expected or "a lower-case word", dataset


def _is_usable(name: str) -> bool:
    as_written = name.isprintable() and name == name.strip()
    return as_written and 0 < len(name) <= _LONGEST_NAME and name.casefold() != "unknown"
