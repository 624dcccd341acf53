"""``curation leaks``: is any image of this benchmark in that corpus?"""  # noqa: D400

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, stage, warn
from curation.cli.outputs import OutputFolder
from curation.leaks.report import FILES, Leaks, summary_lines
from curation.leaks.run import leaks


def run(found: Annotated[Leaks, leaks], /, *, out: Annotated[Path | None, OutputFolder(FILES), "DIR"] = None) -> Answer:
    """Look for the images of a benchmark in a corpus: same pixels, nearly the same, mirrored, cropped, alike.

    0 where none is found, else 1.

    Parameters
    ----------
    out
        write leaks.csv, leaks.json, leaked.txt, unreadable.csv, and leaks.html, a page that shows the pairs
    """
    for note in found.notes:
        warn(note)
    written = []
    if out:
        with stage("writing"):
            written = found.save(out)
    lines = [*found.lines(), *summary_lines(found.data), *(f"wrote {path}" for path in written)]
    return Answer(found.json_data, lines, int(bool(found.leaked)))
