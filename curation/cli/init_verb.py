"""``curation init``: a file to begin with, from the user's own data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal

from curation.cli.options import BoxOptions
from curation.cli.output import Answer, printable
from curation.cli.outputs import OutputFile
from curation.cli.signature import pairs
from curation.errors import UsageError

_USES = ("train", "test")


@dataclass(frozen=True)
class Options(BoxOptions):
    """Write a task file to begin with, from annotations of one's own.

    Attributes
    ----------
    what
        a task file for `curation build owod`
    source
        your annotations, such as a COCO JSON; train= or test= before it says what it is for (train;
        repeatable)
    out
        the new file
    name
        name of the benchmark
    n_tasks
        groups into which the classes are cut in the order of the file (4, as in the published
        benchmarks)
    exhaustive
        every object of every class is annotated on every image
    """

    what: Literal["tasks"] = "tasks"
    _: KW_ONLY
    source: tuple[Annotated[str, "[train|test=]PATH"], ...]
    out: Annotated[Path, OutputFile()] = Path("tasks.toml")
    name: str = "my/benchmark"
    n_tasks: int = 4
    exhaustive: bool = False


def run(options: Options) -> Answer:
    """Write the task file; one that somebody edited is not replaced (see `curation.ledger`)."""
    import tomllib

    from curation.benchmarks.owod.tasks import starter_task_file
    from curation.sources.opening import open_source
    from curation.storage import write_text

    if options.out.suffix.lower() != ".toml":
        raise UsageError("A task file is TOML", where=f"--out {options.out}", expected="a name that ends in .toml")
    if options.n_tasks < 1:
        raise UsageError("--n-tasks needs a number of 1 or more", found=str(options.n_tasks))
    paths = _paths(options.source)
    sources = {
        name: open_source(path, dataset="custom", part="", cache=not options.no_cache, bad_boxes=options.bad_boxes)
        for name, path in paths.items()
    }
    text = starter_task_file(sources, name=options.name, n_tasks=options.n_tasks, exhaustive=options.exhaustive)
    write_text(options.out, text)
    written = tomllib.loads(text)
    given = " ".join(f"--source {name}={paths.get(name, 'PATH')}" for name in ("train", "test"))
    lines = [f"{task['name']}: {printable(', '.join(task['classes']))}" for task in written["tasks"]]
    if written["unknown"]:
        lines.append(f"unknown: {printable(', '.join(written['unknown']))}")
    lines += [
        f"written to {printable(str(options.out))}: move each class to the task in which it becomes known",
        f"next: curation build owod --tasks {options.out} {given} --out DIR",
    ]
    return Answer({"file": str(options.out), **written}, lines)


def _paths(texts: Sequence[str]) -> dict[str, Path]:
    """Return the files by what they are for."""
    for text in texts:
        named = re.match(r"([a-z0-9_-]+)=", text)
        if named and named[1] not in _USES and not Path(text).exists():
            raise UsageError(
                "There is no such source here",
                where=f"--source {text[:120]}",
                expected="train=PATH or test=PATH",
            )
    given = pairs(texts, "--source", bare="train", known=_USES)
    return {name: Path(given[name]) for name in _USES if name in given}
