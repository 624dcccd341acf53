"""``curation init``: a file to begin with, from the user's own data."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

from curation.benchmarks.owod.tasks import Given, start_tasks
from curation.cli.output import Answer, next_command
from curation.cli.outputs import OUTPUT_FILE
from curation.core.errors import UsageError
from curation.core.writing import write_text
from curation.sources.source_specs import BadBoxes


def run(
    what: Literal["tasks"] = "tasks",
    /,
    *,
    source: Given,
    bad_boxes: BadBoxes = "error",
    out: Annotated[Path, OUTPUT_FILE] = Path("tasks.toml"),
    text: Annotated[str, start_tasks],
) -> Answer:
    """Write a first task file from your own annotations.

    Parameters
    ----------
    what
        a task file for `curation build owod`
    source
        your annotations, such as a COCO JSON; begin with train= or test= to say what they are for, and @PART which part
        of a folder (default: train; repeatable)
    bad_boxes
        boxes that are not finite, negative or outside any image: refuse, or drop and count
    out
        the new file
    """
    if out.suffix.lower() != ".toml":
        raise UsageError("A task file is TOML", where=f"--out {out}", expected="a name that ends in .toml")
    write_text(out, text)
    written = tomllib.loads(text)
    sources = {"train": "train=PATH", "test": "test=PATH"}
    paths = {"train": source} if isinstance(source, Path) else {use or "train": path for use, path in source.items()}
    sources |= {use.partition("@")[0]: f"{use}={path}" for use, path in paths.items()}
    words = [word for text in sources.values() for word in ("--source", text)]
    words += ["--on-error", "boxes=drop"] if bad_boxes == "drop" else []
    folder = written["name"].rpartition("/")[2]
    lines = [f"{task['name']}: {', '.join(task['classes'])}" for task in written["tasks"]]
    if written["unknown"]:
        lines.append(f"unknown: {', '.join(written['unknown'])}")
    lines += [
        f"written to {out}: move each class to the task in which it becomes known",
        next_command("build", "owod", "--tasks", out, *words, "--out", folder),
    ]
    return Answer({"file": str(out), **written}, lines)
