"""``curation similarity leaks``: whether images of a benchmark are in a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer
from curation.cli.outputs import output_folder
from curation.core.process import stage
from curation.extensions.leaks.run import JSON, Leaks, summary_lines
from curation.extensions.leaks.run import leaks as find_leaks


def leaks(
    found: Annotated[Leaks, find_leaks], /, *, out: Annotated[Path | None, output_folder(JSON), "DIR"] = None
) -> Answer:
    """Look for the images of a benchmark in a corpus: same pixels, nearly the same, mirrored, cropped.

    0 where none is found, else 1; 0 for a task of an array, which has not seen the whole corpus.

    Parameters
    ----------
    out
        write leaks.csv, leaks.json, leaked.txt, unreadable.csv, pairs.csv for a person to judge, and leaks.html, a page
        that shows the pairs; of an array of tasks, the last command, without --shard, writes them
    """
    written = []
    if out and found.shard is None:
        with stage("writing"):
            written = found.save(out)
    lines = [*found.lines(), *summary_lines(found.data)]
    if out and found.shard is not None:
        lines.append(
            f"nothing is written to {out}: the report of the whole corpus is that of the same command without --shard"
        )
    return Answer(found.json_data, lines, int(bool(found.leaked) and found.shard is None), written)
