"""``curation leaderboard``: rows that ``curation evaluate --append`` wrote, ranked where they are comparable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from curation.benchmarks.leaderboard import FORMS, Leaderboard, leaderboard
from curation.cli.output import Answer, warn
from curation.cli.outputs import output_file
from curation.core.errors import UsageError
from curation.core.writing import write_text

_FORMS = {".html": "html", ".md": "markdown", ".csv": "csv", ".tex": "latex", ".txt": "text"}


def run(
    made: Annotated[Leaderboard, leaderboard],
    /,
    *,
    form: Annotated[Literal["text", "html", "markdown", "csv", "latex"] | None, "--format"] = None,
    out: Annotated[Path | None, output_file(".html", ".md", ".csv", ".tex", ".txt")] = None,
) -> Answer:
    """Results of several methods, ranked where they are comparable.

    Parameters
    ----------
    form
        tables for a terminal, a page, a text or a paper (default: by the suffix of --out, .html, .md, .csv, .tex or
        .txt, else text)
    out
        write to this file (default: print)
    """
    if made.torn:
        warn(f"{made.file}: the last line is cut off and was left out: {made.torn}")
    by_suffix = _FORMS.get(out.suffix.lower()) if out else None
    if form and by_suffix and form != by_suffix:
        raise UsageError("--format and the suffix of --out differ", found=f"--format {form} --out {out}")
    chosen: str = form or by_suffix or "text"
    text = FORMS[chosen](made)
    if out is not None:
        write_text(out, text)
        return Answer(made.as_data(), [], written=[out])
    return Answer(made.as_data(), text.splitlines())
