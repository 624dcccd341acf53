"""A user's own open-world benchmark, declared in one TOML or JSON file: classes by task, and which data they lie in."""

from __future__ import annotations

import json
import re
import tomllib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from curation.arguments import checked
from curation.benchmarks.parameters import MOST_IMAGES
from curation.errors import CurationError, CurationWarning, ProtocolError, UsageError
from curation.json_keys import refuse_repeated_keys
from curation.manifest.header import NAME, PART_NAME, ClassEntry, TaskEntry
from curation.sources.coerce import as_source
from curation.sources.datasets import namespace_of
from curation.sources.source import Source
from curation.sources.source_specs import BadBoxes
from curation.storage import read_bytes
from curation.text_table import printable

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
_MAX_BYTES = 4 << 20
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
    validation: int | None = None
    exemplars: int | None = None
    exhaustive: bool = False

    def entries(self) -> tuple[TaskEntry, ...]:
        """Return the tasks as a manifest holds them."""
        return tuple(TaskEntry(name=task.name, introduced=task.classes) for task in self.tasks)

    def classes(self) -> tuple[ClassEntry, ...]:
        """Return every class: those of the tasks are known and indexed from 0 in their order."""
        known = [name for task in self.tasks for name in task.classes]
        return (
            *(
                ClassEntry(name=name, role="known", index=index, aliases=self.aliases.get(name, ()))
                for index, name in enumerate(known)
            ),
            *(
                ClassEntry(name=name, role="unknown", index=-1, aliases=self.aliases.get(name, ()))
                for name in self.unknown
            ),
            *(
                ClassEntry(name=name, role="ignored", index=-1, aliases=self.aliases.get(name, ()))
                for name in self.ignored
            ),
        )

    def dataset_of(self, source: str) -> str:
        """Return the dataset of ``train`` or ``test``."""
        return self.datasets.get(source, self.dataset)


def read_task_file(path: Path) -> str:
    """Return the declaration of a TOML or JSON file as one JSON text for any spelling of it, checked.

    Raises
    ------
    MissingFileError
        There is no such file.
    ProtocolError
        It is no TOML or JSON, has other fields or types, or does not hold together (see `parse_tasks`).
    """
    data = read_bytes(path, kind="task file")
    if len(data) > _MAX_BYTES:
        raise ProtocolError("The task file is too large to be one", where=str(path), found=f"{len(data)} bytes")
    if path.suffix.lower() == ".json":
        refuse_repeated_keys(data, str(path), ProtocolError)
    try:
        text = data.decode("utf-8-sig")
        content = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(
            f"The task file is not readable {'JSON' if path.suffix.lower() == '.json' else 'TOML'}",
            where=str(path),
            expected=f"for example\n{EXAMPLE}",
            found=str(error)[:200],
        ) from None
    declared = _checked(content, str(path))
    # Class names are keys here, in any script: canonical JSON admits ASCII keys alone.
    stated = {name: value for name, value in msgspec.to_builtins(declared).items() if value is not None}
    return json.dumps(stated, sort_keys=True, separators=(",", ":"))


def starter_task_file(
    sources: Mapping[str, Source], *, name: str, n_tasks: int = USUAL_TASKS, exhaustive: bool = False
) -> str:
    """Return a task file to begin with: every class of some sources, grouped into tasks, with comments.

    The classes stand in the order of the files, cut into groups of equal size, earlier ones larger by one where that
    does not come out even. Classes without any object are listed as unknown: no task can train on them.

    Parameters
    ----------
    sources : mapping of str to Source
        ``train``, ``test`` or both.
    name : str
        Of the manifest; its last word becomes the namespace of the image ids. Where both sources number their images
        alike, each gets one of its own.
    n_tasks : int
        Fewer where there are not as many classes.

    Raises
    ------
    ProtocolError
        No class has an object; or names cannot stand in a task file, such as two that differ in case alone.
    """
    files = ", ".join(_file_of(source) for source in sources.values())
    objects, images = _counts(sources)
    shown = [one for one in objects if objects[one]]
    if not shown:
        raise ProtocolError(
            "No class has an object here", where=files, expected="an annotation file", found=f"{len(objects)} classes"
        )
    _require_names(objects, files)
    n_tasks = min(n_tasks, len(shown))
    size, larger = divmod(len(shown), n_tasks)
    word = re.sub(r"[^a-z0-9]+", "_", name.rpartition("/")[2]).strip("_")[:24]
    word = word if word[:1].isalpha() else "custom"
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
        *_listed("unknown", [one for one in objects if not objects[one]], "no object in the files"),
        "# Classes that are neither right nor wrong.",
        "ignored = []",
        "",
        "# Tasks in their order, each with the classes that become known in it. Here the classes stand in the order",
        f"# of the files, cut into {n_tasks} groups: move them to where you want them.",
    ]
    start = 0
    for number in range(n_tasks):
        stop = start + size + (number < larger)
        remarks = [f"{objects[one]:,} objects on {images[one]:,} images" for one in shown[start:stop]]
        lines += ["[[tasks]]", f'name = "t{number + 1}"', *_listed("classes", shown[start:stop], remarks), ""]
        start = stop
    lines += _datasets(sources, word)
    text = "\n".join(lines).rstrip("\n") + "\n"
    _checked(tomllib.loads(text), files)
    return text


@checked
def start_tasks(
    source: Annotated[Mapping[str, Path] | Path, "[train|test=]PATH"],
    *,
    name: str = "my/benchmark",
    n_tasks: Annotated[int, msgspec.Meta(ge=1)] = USUAL_TASKS,
    exhaustive: bool = False,
    bad_boxes: BadBoxes = "error",
    no_cache: bool = False,
) -> str:
    """Return a task file to begin with, from annotations of one's own.

    Parameters
    ----------
    source
        your annotations, such as a COCO JSON; train= or test= before it says what it is for (train;
        repeatable)
    name
        name of the benchmark
    n_tasks
        groups into which the classes are cut in the order of the file (4, as in the published
        benchmarks)
    exhaustive
        every object of every class is annotated on every image
    bad_boxes
        boxes that are not finite, negative or outside any image: refuse, or drop and count
    no_cache
        parse annotation files again, and store nothing
    """
    paths = {"": source} if isinstance(source, Path) else source
    if {"", SOURCES[0]} <= paths.keys():
        raise UsageError("--source names 'train' twice", where=f"--source {paths['']!s:.200}")
    paths = {use or SOURCES[0]: path for use, path in paths.items()}
    if strange := [use for use in paths if use not in SOURCES]:
        raise UsageError(
            "There is no such source here",
            where=f"--source {strange[0]}={paths[strange[0]]}"[:200],
            expected="train=PATH or test=PATH",
        )
    sources = {
        use: as_source(paths[use], dataset="custom", part="", cache=not no_cache, bad_boxes=bad_boxes)
        for use in SOURCES
        if use in paths
    }
    text = starter_task_file(sources, name=name, n_tasks=n_tasks, exhaustive=exhaustive)
    made = text.count("\n[[tasks]]\n")
    if made < n_tasks:
        warnings.warn(
            f"{made} tasks in place of {n_tasks}: no more classes have an object", CurationWarning, stacklevel=3
        )
    return text


def _counts(sources: Mapping[str, Source]) -> tuple[dict[str, int], dict[str, int]]:
    """Return how many objects, and images with one, each class has in all sources, in the order of the files."""
    objects: dict[str, int] = {}
    images: dict[str, int] = {}
    for source in sources.values():
        image, category = source.class_pairs()
        pairs = np.unique(np.column_stack([image, category]), axis=0)[:, 1]
        of = category if source.objects is None else source.objects.category
        for place, one in enumerate(source.categories.names):
            objects[one] = objects.get(one, 0) + int((of == place).sum())
            images[one] = images.get(one, 0) + int((pairs == place).sum())
    return objects, images


def _require_names(names: Iterable[str], files: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        bad = not name.isprintable() or name != name.strip() or not 0 < len(name) <= _LONGEST_NAME
        other = seen.setdefault(name.casefold(), name)
        if bad or other != name or name.casefold() == "unknown":
            raise ProtocolError(
                "A class of the annotation file cannot stand in a task file under its name",
                where=files,
                expected=f"{_NAMES_ARE}, each once, whatever its case",
                found=repr(name[:80]) + (f" beside {other[:80]!r}" if other != name else ""),
                hint="rename the category in the annotation file",
            )


def _listed(field: str, names: Sequence[str], remarks: Sequence[str] | str) -> list[str]:
    if not names:
        return [f"{field} = []"]
    told = [remarks] * len(names) if isinstance(remarks, str) else remarks
    rows = [f"  {_quoted(name)},  # {remark}" for name, remark in zip(names, told, strict=True)]
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


def _file_of(source: Source) -> str:
    name = source.files[0].name if source.files else source.dataset
    return printable(name, "?")


def read_task_settings(path: Path) -> dict[str, str]:
    """Return the settings of the protocol that a task file stands for (see `read_task_file` for the errors)."""
    return settings_of(read_task_file(path))


def settings_of(text: str) -> dict[str, str]:
    """Return the settings of the protocol that a declaration stands for (see `read_task_file`).

    >>> settings_of('{"name":"a","tasks":[{"name":"t1","classes":["b"]}],"validation":0}')
    {'split': 'custom', 'tasks': '{"name":"a","tasks":[{"name":"t1","classes":["b"]}],"validation":0}', 'val': 'none'}
    """
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
        The text is no such declaration.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(
            "The tasks are not readable", where="--set tasks", found=str(error)[:200], hint="--tasks FILE reads a file"
        ) from None
    return _checked(content, "tasks")


def _checked(content: object, where: str) -> TaskFile:
    try:
        declared = msgspec.convert(content, TaskFile)
    # A text of JSON may hold half a character ("\\ud800"), which no UTF-8 does.
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise ProtocolError(
            "Malformed task file",
            where=where,
            expected=f"the fields {', '.join(TaskFile.__struct_fields__)}; for example\n{EXAMPLE}",
            found=str(error)[:200],
        ) from None
    if not re.fullmatch(NAME, declared.name):
        _refuse(where, "name", "lower-case words joined by -, at most one /", declared.name)
    if not declared.tasks:
        _refuse(where, "tasks", "at least one task", "none", quoted=False)
    for task in declared.tasks:
        if not re.fullmatch(PART_NAME, f"{task.name}-finetune") or not re.fullmatch(PART_NAME, task.name):
            _refuse(where, "tasks: name", "up to 55 lower-case letters and digits, such as t1", task.name)
        if not task.classes:
            _refuse(where, f"task {task.name}", "at least one class", "none", quoted=False)
    _once((task.name for task in declared.tasks), where, "tasks: name")
    for name, size in (("validation", declared.validation), ("exemplars", declared.exemplars)):
        if not 0 <= (size or 0) <= MOST_IMAGES:
            _refuse(where, name, f"0 to {MOST_IMAGES}", str(size), quoted=False)
    _check_classes(declared, where)
    _check_datasets(declared, where)
    return declared


def _check_classes(declared: TaskFile, where: str) -> None:
    names = [entry.name for entry in declared.classes()]
    if stray := sorted(set(declared.aliases) - set(names)):
        _refuse(where, "aliases", "names of classes of the file", stray[0])
    # Folded, so that BipolarForcepsDown and BipolarForcepsDOwn are one class (a slip of a published benchmark).
    spelled = [*names, *(alias for aliases in declared.aliases.values() for alias in aliases)]
    _once((name.casefold() for name in spelled), where, "classes, unknown, ignored and aliases")
    for name in spelled:
        printable = name.isprintable() and name == name.strip()
        if not 0 < len(name) <= _LONGEST_NAME or not printable or name.casefold() == "unknown":
            _refuse(where, "classes", _NAMES_ARE, name)


def _check_datasets(declared: TaskFile, where: str) -> None:
    if stray := sorted(set(declared.datasets) - set(SOURCES)):
        _refuse(where, "datasets", " and ".join(SOURCES), stray[0])
    for source in SOURCES:
        try:
            namespace_of(declared.dataset_of(source))
        except CurationError as error:
            _refuse(where, f"dataset of {source}", error.expected or "a lower-case word", declared.dataset_of(source))


def _once(values: Iterable[str], where: str, field: str) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            _refuse(where, field, "each once, whatever its case", f"{value:.80} twice", quoted=False)
        seen.add(value)


def _refuse(where: str, field: str, expected: str, found: str, *, quoted: bool = True) -> None:
    raise ProtocolError(
        "Inconsistent task file",
        where=f"{where}: {field}",
        expected=expected,
        found=repr(found[:80]) if quoted else found,
    )


# The splits: classes by task, sources, parameters, and the lists that the authors published.
