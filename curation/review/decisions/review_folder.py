"""The folder of a review: its record, decisions log, progress and exports."""

from __future__ import annotations

import json
import math
import os
import shlex
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from curation.core.errors import CurationWarning, MissingFileError, ReviewError, UsageError
from curation.core.files import read_bytes
from curation.core.json_text import decode_json
from curation.core.tables import grouped
from curation.core.writing import write_text
from curation.review.decisions.decision import Decision, Stage
from curation.review.decisions.files import DecisionFile, read_decisions, write_decisions
from curation.review.decisions.guide import Guide
from curation.review.decisions.pairs import PAIRS, PhotoPair, drop_lists, pairs_csv, read_pairs, reviewed_pairs
from curation.review.decisions.resolution import settled
from curation.review.decisions.sampling import Stratum
from curation.review.decisions.verdicts import CONFLICT, VERDICTS, Key, Standing, VerdictBook, standing_rows, word_of

REVIEW = "review.json"
"""Record of a review, in its folder."""
LOG_FILE = "decisions.jsonl"
DATABASE = "database"
GOLD_FILE = "gold.jsonl"
VERSION = 3
"""Version of the record. 2 added bad photos, 3 the options of the review; 1 and 2 are still read."""
_LARGEST = 64 << 20


class ReviewRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The subject of a review, stored beside its log, so that status and export need no database.

    Attributes
    ----------
    dataset : str
        Name of the FiftyOne dataset.
    stage : {"manual", "candidate", "auto_override", "pair"}
    manifest : str
        Digest of the manifest under review, ``""`` for none.
    inputs : str
        Digest of all inputs of the dataset; it identifies the review.
    batches : dict of str to int
        Images of each batch.
    left_out : dict of str to int
        Images that are not shown, by reason.
    bad_photos : dict of str to list of str
        Ids of the images without a usable photo, by the problem.
    guide : Guide or None
        The question and the reasons.
    blind : bool
        Whether a server hides the decisions of other reviewers.
    adjudicators : tuple of str
        Reviewers whose decisions settle conflicts.
    sample : tuple of Stratum
        Images drawn by hash rank, which bound the remaining errors; empty without a sample.
    classes : dict of str to tuple of str
        Images that evidence suspects of showing each ID class.
    """

    version: Annotated[int, msgspec.Meta(ge=1, le=VERSION)] = VERSION
    dataset: str
    stage: Stage
    manifest: str
    inputs: str
    batches: dict[str, int]
    left_out: dict[str, int] = {}
    bad_photos: dict[str, list[str]] = {}
    guide: Guide | None = None
    blind: bool = False
    adjudicators: tuple[str, ...] = ()
    sample: tuple[Stratum, ...] = ()
    classes: dict[str, tuple[str, ...]] = {}

    @property
    def images(self) -> int:
        """Number of images under review."""
        return sum(self.batches.values())

    @property
    def hides_verdicts(self) -> bool:
        """Whether reviewers do not see the decisions of others, until an adjudicator begins."""
        return self.blind and not self.adjudicators


def write_record(folder: Path, record: ReviewRecord) -> None:
    """Write ``review.json`` atomically.

    Raises
    ------
    ReviewError
        A file of that name was not created by curation.
    """
    path = folder / REVIEW
    if path.exists() and not _is_record(path):
        raise ReviewError("File not created by curation", where=str(path), hint="choose another --folder")
    # The folder belongs to the review, and the file is recognised by its content.
    text = json.dumps(msgspec.to_builtins(record), indent=1, ensure_ascii=False) + "\n"
    write_text(path, text, guarded=False)


def _is_record(path: Path) -> bool:
    """Return whether a file is the record of a review, also of another version."""
    try:
        content = json.loads(path.read_bytes()) if path.stat().st_size <= _LARGEST else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and {"dataset", "stage", "inputs"} <= content.keys()


def read_record(folder: Path) -> ReviewRecord:
    """Return the record of a review's folder.

    Raises
    ------
    MissingFileError
        The folder holds no review.
    ReviewError
        The file is not one that `write_record` writes.
    """
    path = folder / REVIEW
    if not path.is_file():
        raise MissingFileError(
            "The folder holds no review",
            where=str(folder),
            expected=REVIEW,
            hint="another --folder; or create one: "
            "curation review start --folder FOLDER --source NAME=PATH --photos DIR --reviewer NAME",
        )
    data = read_bytes(path, kind="record of the review", most=_LARGEST, error=ReviewError)
    hint = "curation review start … --rebuild: the decisions in the log are kept"
    return decode_json(
        data, ReviewRecord, ReviewError, "The record of the review is damaged", where=str(path), hint=hint
    )


def require_log(text: Any, dataset: str) -> tuple[Path, ReviewRecord]:
    """Return the writable log that a dataset names, and the record beside it.

    Other programs may write to a database too. So the log must be an absolute path to ``decisions.jsonl`` beside a
    ``review.json`` that names this dataset.

    Raises
    ------
    ReviewError
        The path is anything else.
    """
    path = Path(text) if isinstance(text, str) and "\0" not in text and len(text) < 4096 else Path()
    reviewed = None
    if path.is_absolute() and path.name == LOG_FILE and not path.is_symlink():
        with suppress(ReviewError, MissingFileError, OSError):
            reviewed = read_record(path.parent)
    if reviewed is None or reviewed.dataset != dataset:
        raise ReviewError(
            "The dataset names no decisions log of this review",
            found=ascii(text)[:200],
            expected=f"an absolute path to {LOG_FILE}, beside the {REVIEW} that `curation review start` writes",
            hint="curation review start … --rebuild",
        )
    if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
        raise ReviewError("The decisions log is not writable", where=str(path))
    return path, reviewed


@dataclass(frozen=True, slots=True)
class ReviewerProgress:
    """One reviewer.

    Attributes
    ----------
    images : int
        Number of images with a current decision.
    verdicts : dict of str to int
        Their number by decision.
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
        Numbers of images: under review, decided by any reviewer, with a conflict.
    verdicts : dict of str to int
        Decided images by decision, including ``conflict``.
    reviewers : tuple
    strangers : int
        Decided images that are not under review.
    """

    images: int
    decided: int
    conflicts: int
    verdicts: dict[str, int]
    reviewers: tuple[ReviewerProgress, ...]
    strangers: int = 0


def folder_progress(folder: Path) -> tuple[ReviewRecord, Progress]:
    """Return the record and the progress of a review's folder.

    Decided images outside the batches of this review count as ``strangers``.

    Raises
    ------
    MissingFileError, ReviewError
        The folder holds no review; see also `read_decisions` for the errors of logs.
    """
    record = read_record(folder)
    decided = [standing for standing in _standing(folder, record).values() if standing.verdicts]
    known = [standing for standing in decided if any(row.batch in record.batches for row in standing.verdicts)]
    verdicts = Counter(standing.verdict for standing in known)
    by_reviewer = grouped((row for standing in known for row in standing.verdicts), lambda row: row.reviewer)
    words = {name: Counter(map(word_of, rows)) for name, rows in by_reviewer.items()}
    return record, Progress(
        images=record.images,
        decided=len(known),
        conflicts=verdicts[CONFLICT],
        verdicts={word: verdicts[word] for word in (*VERDICTS, CONFLICT) if verdicts[word]},
        reviewers=tuple(
            ReviewerProgress(name, n.total(), {word: n[word] for word in VERDICTS if n[word]})
            for name, n in sorted(words.items())
        ),
        strangers=len(decided) - len(known),
    )


@dataclass(frozen=True, slots=True)
class FolderDecisions:
    """The content of a review's folder: its record, the current decisions, and the gold decisions."""

    record: ReviewRecord
    file: DecisionFile
    gold: tuple[Decision, ...]


def folder_decisions(folder: Path) -> FolderDecisions:
    """Return the current decisions of a review after all undos, with those on its gold images.

    Raises
    ------
    MissingFileError
        The folder holds no review, or nothing is decided yet.
    """
    record, log = read_record(folder), folder / LOG_FILE
    if not log.exists():
        hint = f"decide on an image first: curation review start --folder {shlex.quote(str(folder))} --reviewer NAME"
        raise MissingFileError("No decisions yet", where=str(log), hint=hint)
    logged = read_decisions(log)
    rows = tuple(standing_rows(logged.decisions))
    gold = folder / GOLD_FILE
    return FolderDecisions(
        record, replace(logged, decisions=rows, rows=len(rows)), read_decisions(gold).decisions if gold.exists() else ()
    )


def progress_text(decided: int, images: int, seconds_each: float | None = None) -> str:
    """Return the progress as a phrase, with the time for the rest if the seconds per image are known.

    Examples
    --------
    >>> progress_text(412, 2000)
    '412 of 2,000'
    >>> progress_text(2000, 2000)
    '2,000 of 2,000, all decided'
    >>> progress_text(412, 2000, 4.2)
    '412 of 2,000, about 1 h 52 min left'
    """
    if decided >= images:
        return f"{decided:,} of {images:,}, all decided"
    if seconds_each is None:
        return f"{decided:,} of {images:,}"
    hours, minutes = divmod(math.ceil((images - decided) * seconds_each / 60), 60)
    return f"{decided:,} of {images:,}, about {f'{hours} h ' if hours else ''}{minutes} min left"


@dataclass(frozen=True, slots=True)
class Export:
    """A written file: its path, number of rows, rows by action, and the digest of the log."""

    path: Path
    rows: int
    actions: dict[str, int]
    log: str


def folder_pairs(folder: Path) -> list[PhotoPair]:
    """Return the pairs of a review with its decisions; empty for a review of images."""
    record = read_record(folder)
    return [] if record.stage != "pair" else reviewed_pairs(read_pairs(folder / PAIRS), _standing(folder, record))


def _standing(folder: Path, record: ReviewRecord) -> dict[Key, Standing]:
    """Return the current decisions on each image of a review."""
    book = VerdictBook(folder / LOG_FILE, stage=record.stage, adjudicators=record.adjudicators)
    book.refresh()
    return book.all_standing()


DROPS = ("drop-left.txt", "drop-right.txt")
"""Files of the images that each side drops from pairs of the same photo."""


def export_decisions(folder: Path, path: Path, drops: Path | None = None) -> Export:
    """Write the current decisions of a review, sorted by pool, image, stage and reviewer; of pairs, their file.

    History, undos and overruled decisions remain in the log only.

    Parameters
    ----------
    path : Path
        Ends in ``.jsonl`` or ``.csv``; for pairs in ``.csv``.
    drops : Path, optional
        Folder for the lists of images that each side of the pairs drops.

    Raises
    ------
    DecisionError
        The suffix is another one.
    UsageError
        The file for pairs is not CSV, or `drops` is given for a review without pairs.
    OverwriteError
        The file exists.
    MissingFileError
        The log is empty or missing.
    """
    held = folder_decisions(folder)
    for note in held.file.notes():
        warnings.warn(note, CurationWarning, stacklevel=2)
    rows = settled(held.file.decisions, held.record.adjudicators)
    pairs = folder_pairs(folder)
    if drops and not pairs:
        raise UsageError("Only a review of pairs has drop lists", where=f"--drops {drops}", hint="leave out --drops")
    if pairs and path.suffix.lower() != ".csv":
        raise UsageError(
            "Pairs are written as CSV",
            where=f"--out {path}",
            hint=f"--out {shlex.quote(str(path.with_suffix('.csv')))}",
        )
    if pairs:
        write_text(path, pairs_csv(pairs))
    else:
        write_decisions(path, rows)
    if drops:
        for name, images in zip(DROPS, drop_lists(pairs), strict=True):
            write_text(drops / name, "".join(f"{image}\n" for image in images))
    return Export(path, len(rows), dict(sorted(Counter(row.action for row in rows).items())), held.file.sha256)
