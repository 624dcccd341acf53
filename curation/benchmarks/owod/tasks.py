"""The earlier task file of ``curation build owod --tasks FILE``, read as a benchmark file of the rule ``tasks``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import msgspec

from curation.benchmarks.benchmark import MOST_IMAGES
from curation.benchmarks.rules.benchmark_file import BenchmarkFile, Classes, SourceTable, TaskTable
from curation.benchmarks.rules.tasks import check_tasks
from curation.core.errors import ProtocolError
from curation.core.json_text import decode_json
from curation.core.reading import read_declaration

SOURCES = ("train", "test")
EXAMPLE = """name = "mylab/shapes"
dataset = "shapes"
[[tasks]]
name = "t1"
classes = ["circle", "square"]
[[tasks]]
name = "t2"
classes = ["star"]"""


class _Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    classes: tuple[str, ...]


class TaskFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a task file declares: the keys of `BenchmarkFile` and its tables, without tables.

    Attributes
    ----------
    dataset : str
        Namespace of the image ids. Where the files for training and test number their images alike, `datasets` gives
        each its own.
    validation, exemplars : int or None
        Images a task, and images a class, of the validation and finetuning lists; None leaves it to ``--set``.
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

    def stated(self, where: str) -> BenchmarkFile:
        """Return what the file declares as a benchmark file, checked; `where` is its place for messages."""
        for source in sorted(set(self.datasets) - set(SOURCES)):
            expected, found = " and ".join(SOURCES), repr(source[:80])
            raise ProtocolError("Inconsistent task file", where=f"{where}: datasets", expected=expected, found=found)
        stated = BenchmarkFile(
            rule="tasks",
            name=self.name,
            title=self.title,
            sources={
                use: SourceTable(dataset=self.datasets.get(use, self.dataset), exhaustive=self.exhaustive)
                for use in SOURCES
            },
            classes=Classes(
                tasks=tuple(TaskTable(name=task.name, classes=task.classes) for task in self.tasks),
                unknown=self.unknown,
                ignored=self.ignored,
                aliases=self.aliases,
            ),
        )
        check_tasks(stated, where)
        return stated


def read_task_file(path: Path) -> str:
    """Return the declaration of a TOML or JSON file as one JSON text for any spelling of it, checked.

    Raises
    ------
    MissingFileError
        No such file.
    ProtocolError
        It is no TOML or JSON, has other fields or types, or does not hold together (see `parse_tasks`).
    """
    try:
        declared = read_declaration(path, TaskFile, ProtocolError, kind="task file", example=f"for example\n{EXAMPLE}")
    except ProtocolError as error:
        if "`rule`" in (error.found or ""):
            error.hint = (
                f"it is a benchmark file: curation build {path} --source train=PATH --source test=PATH --out DIR"
            )
        raise
    declared.stated(str(path))
    # Class names are keys here, in any script: canonical JSON admits ASCII keys alone.
    fields = {name: value for name, value in msgspec.to_builtins(declared).items() if value is not None}
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def read_task_settings(path: Path) -> dict[str, str]:
    """Return the settings of the benchmark that a task file stands for (see `read_task_file` for the errors)."""
    text = read_task_file(path)
    declared = msgspec.json.decode(text, type=TaskFile)
    settings = {"split": "custom", "tasks": text}
    if declared.validation is not None:
        settings |= {"val_size": str(declared.validation)} if declared.validation else {"val": "none"}
    return settings | ({"exemplars": str(declared.exemplars)} if declared.exemplars is not None else {})


def parse_tasks(text: str) -> BenchmarkFile:
    """Return the declaration that `read_task_file` made a text of as a benchmark file, checked again.

    Raises
    ------
    ProtocolError
        The text is not such a declaration.
    """
    # A text may hold half a character, which no UTF-8 does: the decoder refuses it.
    data = text.encode("utf-8", "surrogatepass")
    message, hint = "The task file cannot be read", "--tasks FILE reads a file"
    return decode_json(data, TaskFile, ProtocolError, message, where="--set tasks", hint=hint).stated("tasks")
