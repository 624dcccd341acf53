"""How far a review is: by batch, by reviewer, how far reviewers agree; from a dataset or from its folder alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from curation.core.grouping import grouped
from curation.core.text_table import Table
from curation.review.app.review_folder import LOG_FILE, ReviewRecord, read_record
from curation.review.app.verdicts import CONFLICT, VERDICTS, Key, Standing, VerdictBook, word_of
from curation.review.decisions.agreement import Kappa, Pair, agreement


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """One batch: its images, how many have a verdict, and on how many reviewers differ."""

    batch: str
    images: int
    decided: int
    conflicts: int


@dataclass(frozen=True, slots=True)
class ReviewerProgress:
    """One reviewer.

    Attributes
    ----------
    images : int
        With a standing verdict.
    verdicts : dict of str to int
        Their number by verdict.
    """

    reviewer: str
    images: int
    verdicts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Progress:
    """The whole review.

    Attributes
    ----------
    images, decided, conflicts : int
        Under review; with a verdict of anybody; on which reviewers differ.
    verdicts : dict of str to int
        Decided images by verdict, ``conflict`` among them.
    batches, reviewers : tuple
    agreement : tuple of Pair
        Each pair of reviewers with Cohen's kappa; None as its value comes with the reason.
    fleiss : Kappa or None
        Fleiss' kappa of all reviewers; None for fewer than three.
    strangers : int
        Decided images that are not under review.
    """

    images: int
    decided: int
    conflicts: int
    verdicts: dict[str, int]
    batches: tuple[BatchProgress, ...]
    reviewers: tuple[ReviewerProgress, ...]
    agreement: tuple[Pair, ...]
    fleiss: Kappa | None = None
    strangers: int = 0

    def as_data(self) -> dict[str, Any]:
        """Return the progress as plain data for ``--json``."""
        return asdict(self)


def measure_progress(batch_of: Mapping[Key, str], standing: Mapping[Key, Standing]) -> Progress:
    """Return the progress of a review.

    Parameters
    ----------
    batch_of : mapping
        Batch of every image under review.
    standing : mapping
        Current verdicts on images; those that are not under review are counted as `strangers`.
    """
    known = {key: judged for key, judged in standing.items() if key in batch_of and judged.verdicts}
    verdict_of = {key: judged.verdict for key, judged in known.items()}
    sizes = Counter(batch_of.values())
    decided = Counter(batch_of[key] for key in known)
    conflicts = Counter(batch_of[key] for key, verdict in verdict_of.items() if verdict == CONFLICT)
    stages = agreement(decision for judged in known.values() for decision in judged.verdicts)
    verdicts = Counter(str(verdict) for verdict in verdict_of.values())
    by_reviewer = grouped((row for judged in known.values() for row in judged.verdicts), lambda row: row.reviewer)
    words = {name: Counter(map(word_of, rows)) for name, rows in by_reviewer.items()}
    return Progress(
        images=len(batch_of),
        decided=len(known),
        conflicts=sum(conflicts.values()),
        verdicts={word: verdicts[word] for word in (*VERDICTS, CONFLICT) if verdicts[word]},
        batches=tuple(BatchProgress(batch, sizes[batch], decided[batch], conflicts[batch]) for batch in sorted(sizes)),
        reviewers=tuple(
            ReviewerProgress(name, n.total(), {word: n[word] for word in VERDICTS if n[word]})
            for name, n in sorted(words.items())
        ),
        agreement=stages[0].pairs if stages else (),
        fleiss=stages[0].fleiss if stages else None,
        strangers=sum(bool(judged.verdicts) for key, judged in standing.items() if key not in batch_of),
    )


def next_batch(
    batch_of: Mapping[Key, str], standing: Mapping[Key, Standing], *, reviewer: str = "", after: str = ""
) -> str | None:
    """Return the first batch, behind `after` and then from the start, with an image that still waits; None for none.

    Parameters
    ----------
    reviewer : str
        Whose verdict an image waits for; ``""`` for anybody's.
    """
    waiting = {
        batch
        for key, batch in batch_of.items()
        if not any(not reviewer or verdict.reviewer == reviewer for verdict in standing.get(key, Standing(())).verdicts)
    }
    return min(waiting, key=lambda batch: (batch <= after, batch), default=None)


def progress_text(decided: int, images: int) -> str:
    """Return a count as a sentence without its full stop.

    Examples
    --------
    >>> progress_text(412, 2000)
    '412 of 2,000'
    >>> progress_text(2000, 2000)
    '2,000 of 2,000, all decided'
    """
    return f"{decided:,} of {images:,}" + (", all decided" if decided >= images else "")


def share_text(part: int, total: int) -> str:
    """Return a share in whole percent, rounded down; a little is ``under 1 %``, never ``0 %``."""
    percent = 100 * part // total if total else 0
    return "under 1 %" if part and not percent else f"{percent} %"


def folder_progress(folder: Path) -> tuple[ReviewRecord, Progress]:
    """Return the record and the progress of a review's folder.

    Batches are those that the verdicts were given in. A decided image of no batch of this review counts as a stranger.

    Raises
    ------
    MissingFileError, ReviewError
        The folder holds no review; see also `read_decisions` for the errors of logs.
    """
    record = read_record(folder)
    book = VerdictBook(folder / LOG_FILE, stage=record.stage)
    book.refresh()
    standing = book.all_standing()
    all_batches = {
        key: next((row.batch for row in judged.verdicts if row.batch), "") for key, judged in standing.items()
    }
    batch_of = {key: batch for key, batch in all_batches.items() if batch in record.batches}
    measured = measure_progress(batch_of, standing)
    by_name = {batch.batch: batch for batch in measured.batches}
    batches = tuple(
        replace(by_name.get(batch, BatchProgress(batch, 0, 0, 0)), images=size)
        for batch, size in record.batches.items()
    )
    return record, replace(measured, images=record.images, batches=batches)


_MOST_BATCHES = 12


def progress_tables(progress: Progress) -> list[Table]:
    """Return tables of reviewers, of their agreement, and of the batches with work left; none without rows."""
    reviewers = [
        (row.reviewer or "unnamed", f"{row.images:,}", ", ".join(f"{word} {n}" for word, n in row.verdicts.items()))
        for row in progress.reviewers
    ]
    pairs = [
        (f"{pair.first}, {pair.second}", f"{pair.images:,}", f"{pair.same:,}", kappa_text(pair.kappa))
        for pair in progress.agreement
    ]
    waiting = [
        (batch.batch, f"{batch.decided:,} of {batch.images:,}", f"{batch.conflicts:,}")
        for batch in progress.batches
        if batch.decided < batch.images or batch.conflicts
    ]
    tables = [
        Table("Reviewers", ("reviewer", "images", "verdicts"), tuple(reviewers)),
        Table("Agreement", ("reviewers", "both", "same", "Cohen's kappa"), tuple(pairs)),
        Table("Batches with work left", ("batch", "decided", "conflicts"), tuple(waiting)),
    ]
    return [table for table in tables if table.rows]


def progress_markdown(progress: Progress) -> str:
    """Return the progress as Markdown: a sentence, then tables of reviewers, agreement and open batches."""
    conflicts = f", **{progress.conflicts:,}** in conflict" if progress.conflicts else ""
    share = share_text(progress.decided, progress.images)
    parts = [f"**{progress.decided:,}** of {progress.images:,} images decided ({share}){conflicts}"]
    for table in progress_tables(progress):
        rows = [[as_text(cell) for cell in row] for row in (table.columns, *table.rows[:_MOST_BATCHES])]
        rows.insert(1, ["---"] * len(table.columns))
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
        if (more := len(table.rows) - _MOST_BATCHES) > 0:
            parts.append(f"and {more} more")
    if progress.fleiss:
        parts.append(f"Fleiss' kappa of all: {kappa_text(progress.fleiss)}")
    return "\n\n".join(parts)


def kappa_text(kappa: Kappa) -> str:
    """Return a kappa with two decimals, or why there is none."""
    return f"undefined: {kappa.reason}" if kappa.value is None else f"{kappa.value:.2f}"


def as_text(text: str) -> str:
    """Return a text as Markdown shows it literally: reviewers' names and reasons are not ours."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~-])", r"\\\1", text)
