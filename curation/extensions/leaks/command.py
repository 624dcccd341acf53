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
    result: Annotated[Leaks, find_leaks], /, *, out: Annotated[Path | None, output_folder(JSON), "DIR"] = None
) -> Answer:
    """Search a corpus for the images of a benchmark: same pixels, nearly the same, mirrored, cropped.

    Return 1 if an image is found, else 0; always 0 for a task of an array, which reads only a part of the corpus.

    Parameters
    ----------
    out
        write leaks.csv, leaks.json, leaked.txt, unreadable.csv, pairs.csv for a person to judge, and leaks.html, a page
        that shows the pairs; of an array of tasks, the last command, without --shard, writes them
    """
    written = []
    if out and result.shard is None:
        with stage("writing"):
            written = result.save(out)
    lines = [*result.lines(), *summary_lines(result.data)]
    if out and result.shard is not None:
        lines.append(f"nothing is written to {out}: the same command without --shard reports on the whole corpus")
    return Answer(result.json_data, lines, int(bool(result.leaked) and result.shard is None), written)
