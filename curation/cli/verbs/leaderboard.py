"""``curation leaderboard``: rank comparable rows of ``curation evaluate --append``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import yaml

from curation.benchmarks.leaderboard import FORMS, Leaderboard, hub_entries, leaderboard
from curation.cli.output import Answer, warn
from curation.cli.outputs import output_file
from curation.core.errors import UsageError
from curation.core.writing import write_text

_FORMS = {".html": "html", ".md": "markdown", ".csv": "csv", ".tex": "latex", ".txt": "text", ".yaml": "hub"}


def run(
    made: Annotated[Leaderboard, leaderboard],
    /,
    *,
    form: Annotated[Literal["text", "html", "markdown", "csv", "latex", "hub"] | None, "--format"] = None,
    dataset: Annotated[str | None, "OWNER/NAME[@COMMIT]"] = None,
    method: Annotated[str | None, "NAME"] = None,
    out: Annotated[Path | None, output_file(".html", ".md", ".csv", ".tex", ".txt", ".yaml")] = None,
) -> Answer:
    """Rank the results of several methods where they are comparable.

    Parameters
    ----------
    form
        tables for a terminal, a page, a text or a paper; hub: .eval_results of a model on the Hugging Face Hub
        (default: by the suffix of --out, .html, .md, .csv, .tex, .txt or .yaml, else text)
    dataset
        with --format hub: the published manifest, a dataset repository and its commit
    method
        with --format hub: the method whose numbers are written (default: the only one)
    out
        write to this file (default: print)
    """
    if made.torn:
        warn(f"{made.file}: the last line is cut off and was left out: {made.torn}")
    by_suffix = _FORMS.get(out.suffix.lower()) if out else None
    if form and by_suffix and form != by_suffix:
        raise UsageError("--format and the suffix of --out differ", found=f"--format {form} --out {out}")
    chosen: str = form or by_suffix or "text"
    if (chosen == "hub") != (dataset is not None) or (method is not None and chosen != "hub"):
        raise UsageError("--format hub and --dataset OWNER/NAME go together", expected="both, or neither")
    text = (
        FORMS[chosen](made) if dataset is None else yaml.safe_dump(hub_entries(made, dataset, method), sort_keys=False)
    )
    if out is not None:
        write_text(out, text)
        return Answer(made.as_data(), [], written=[out])
    return Answer(made.as_data(), text.splitlines())
