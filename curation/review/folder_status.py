"""How far a review is, from its folder alone: no database, no FiftyOne."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from curation.decisions.resolution import standing_verdicts
from curation.review.progress import BatchProgress, Progress, measure_progress
from curation.review.review_folder import LOG_FILE, ReviewRecord, read_record
from curation.review.verdicts import Key, Standing, VerdictBook


def folder_progress(folder: Path, *, also: Sequence[Path] = ()) -> tuple[ReviewRecord, Progress]:
    """Return the record and the progress of a review's folder.

    Of one reviewer's verdicts on an image in several logs the last one stands. Batches are those that the verdicts were
    given in. A decided image of no batch of this review counts as a stranger.

    Parameters
    ----------
    also : sequence of Path
        Decisions of other reviewers on the same images.

    Raises
    ------
    MissingFileError, ReviewError
        The folder holds no review; see also `read_decisions` for the errors of logs.
    """
    record = read_record(folder)
    standing: dict[Key, Standing] = {}
    for path in (folder / LOG_FILE, *also):
        book = VerdictBook(path, stage=record.stage)
        book.refresh(required=path in also)
        for key, one in book.all_standing().items():
            standing[key] = Standing(
                standing_verdicts((*standing.get(key, Standing(())).verdicts, *one.verdicts))
            )
    batch_of = {key: batch for key, one in standing.items() if (batch := _batch_of(one)) in record.batches}
    measured = measure_progress(batch_of, standing)
    found = {one.batch: one for one in measured.batches}
    batches = tuple(
        BatchProgress(batch, size, found[batch].decided, found[batch].conflicts)
        if batch in found
        else BatchProgress(batch, size, 0, 0)
        for batch, size in record.batches.items()
    )
    return record, replace(measured, images=record.images, batches=batches)


def _batch_of(standing: Standing) -> str:
    return next((one.batch for one in standing.verdicts if one.batch), "")
