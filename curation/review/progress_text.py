"""Progress as text: Markdown for the App's panel."""

from __future__ import annotations

import re
from collections.abc import Sequence

from curation.decisions.agreement import Kappa
from curation.review.progress import Progress

_MOST_BATCHES = 12


def progress_markdown(progress: Progress) -> str:
    """Return the progress as Markdown: a sentence, then tables of reviewers, agreement and open batches."""
    return "\n\n".join(
        part
        for part in (_sentence(progress), _reviewers(progress), _agreement(progress), _batches(progress))
        if part
    )


def _sentence(progress: Progress) -> str:
    share = 100 * progress.decided // progress.images if progress.images else 0
    conflicts = f", **{progress.conflicts}** in conflict" if progress.conflicts else ""
    return f"**{progress.decided}** of {progress.images} images decided ({share} %){conflicts}"


def _reviewers(progress: Progress) -> str:
    rows = [
        (
            one.reviewer or "unnamed",
            str(one.images),
            ", ".join(f"{word} {n}" for word, n in one.verdicts.items()),
        )
        for one in progress.reviewers
    ]
    return _table(("Reviewer", "Images", "Verdicts"), rows)


def _agreement(progress: Progress) -> str:
    rows = [
        (f"{one.first}, {one.second}", str(one.images), str(one.same), kappa_text(one.kappa))
        for one in progress.agreement
    ]
    table = _table(("Reviewers", "Both", "Same", "Cohen's kappa"), rows)
    return f"{table}\n\nFleiss' kappa of all: {kappa_text(progress.fleiss)}" if progress.fleiss else table


def kappa_text(kappa: Kappa) -> str:
    """Return a kappa with two decimals, or why there is none."""
    return f"undefined: {kappa.reason}" if kappa.value is None else f"{kappa.value:.2f}"


def _batches(progress: Progress) -> str:
    waiting = [one for one in progress.batches if one.decided < one.images]
    rows = [
        (one.batch, f"{one.decided} of {one.images}", str(one.conflicts)) for one in waiting[:_MOST_BATCHES]
    ]
    more = len(waiting) - len(rows)
    table = _table(("Open batch", "Decided", "Conflicts"), rows)
    return f"{table}\n\nand {more} more" if more else table


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(_cell(cell) if row is not lines[1] else cell for cell in row) + " |"
        for row in lines
    )


def _cell(text: str) -> str:
    """Return a text as Markdown shows it literally: reviewers' names and reasons are not ours."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~-])", r"\\\1", text)
