"""``curation init``: write a first benchmark file for your data."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

from curation.benchmarks.rules.benchmark_file import RuleName, rule_module
from curation.benchmarks.rules.starting import Given, start_benchmark
from curation.cli.output import Answer, next_command, source_words
from curation.cli.outputs import OUTPUT_FILE
from curation.core.errors import UsageError
from curation.core.writing import write_text
from curation.sources.source_specs import BadBoxes


def run(
    rule: RuleName,
    folder: Path | None = None,
    /,
    *,
    source: Given | None = None,
    bad_boxes: BadBoxes = "error",
    out: Annotated[Path, OUTPUT_FILE] = Path("benchmark.toml"),
    text: Annotated[str, start_benchmark],
) -> Answer:
    """Write a benchmark file to begin with, from your own data.

    Parameters
    ----------
    rule
        how the parts of the benchmark are selected
    folder
        rule lists: your lists of images
    source
        your data: COCO JSON, a VOC or YOLO folder, class folders or a table; NAME= before it names the source,
        @PART which part of a folder it is (repeatable)
    bad_boxes
        boxes that are not finite, negative or outside any image: refuse, or drop and count
    out
        the new file
    """
    if out.suffix.lower() != ".toml":
        raise UsageError("A benchmark file is TOML", where=f"--out {out}", expected="a name that ends in .toml")
    write_text(out, text)
    written = tomllib.loads(text)
    usual = rule_module(rule).USUAL_SOURCES
    named = {"": source} if isinstance(source, Path) else dict(source or {})
    # Of the rule lists the folder is the first source, and the images are the other.
    paths = ({usual[0]: folder} if folder else {}) | {use or usual[bool(folder)]: path for use, path in named.items()}
    words_of = {use.partition("@")[0]: f"{use}={path}" for use, path in paths.items()}
    # The file of the rule `lists` names the images as sources, not the lists.
    words_of = {name: text for name, text in words_of.items() if name in written["sources"] or folder}
    words = [word for text in words_of.values() for word in ("--source", text)]
    words += source_words(
        name for name, table in written["sources"].items() if name not in words_of and table.get("required", True)
    )
    words += ["--on-error", "boxes=drop"] if bad_boxes == "drop" else []
    made = written["name"].rpartition("/")[2]
    # A benchmark is often named after the folder of its photos, which the manifest cannot replace.
    if any(Path(made).resolve() in (path.resolve(), *path.resolve().parents) for path in paths.values()):
        made += "-manifest"
    lines = [f"written to {out}: read it and edit it"]
    return Answer({"file": str(out), **written}, [*lines, next_command("build", out, *words, "--out", made)])
