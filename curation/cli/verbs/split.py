"""``curation split``: divide one source into disjoint parts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.benchmarks.rules.split import split
from curation.cli.output import Answer, Line, next_command, score_commands
from curation.cli.outputs import NEW_MANIFEST
from curation.manifest.manifest import Manifest
from curation.manifest.tables import manifest_data, part_table


def run(made: Annotated[Manifest, split], /, *, out: Annotated[Path, NEW_MANIFEST, "DIR"]) -> Answer:
    """Divide one source into disjoint parts, as a manifest.

    Parameters
    ----------
    out
        folder of the new manifest
    """
    made.save(out)
    header = made.header
    has_boxes = any(part.boxes for part in header.parts)
    form = ["coco", "--each"] if has_boxes else ["txt"]
    commands = [next_command("verify", out, "--rebuild"), next_command("audit", out)]
    if has_boxes:
        commands.append(next_command("export", out, "--part", "all", "--format", *form, "--out", f"{out.name}-files"))
    else:
        commands += [
            next_command("export", out, "--part", part, "--format", *form, "--out", f"{out.name}-{part}.txt")
            for part in made.parts
        ]
    commands += [next_command(*command[1:]) for command in score_commands(made, out)]
    lines: list[Line] = [f"{header.name} {header.version}  {made.digest}", "", part_table(header), f"written to {out}"]
    return Answer({"folder": str(out), **manifest_data(made)}, [*lines, *commands])
