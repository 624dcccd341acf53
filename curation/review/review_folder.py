"""The folder of a review: what is under review, the decisions log, and what was exported."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from curation.decisions.decision import Stage
from curation.decisions.files import read_decisions, write_decisions
from curation.errors import MissingFileError, ReviewError
from curation.ledger import REVIEW, is_review
from curation.review.verdicts import standing_rows
from curation.storage import read_bytes, write_text

LOG_FILE = "decisions.jsonl"
DATABASE = "database"
VERSION = 2
"""Of the record: 2 names bad photos; 1 is read still."""
_LARGEST = 64 << 20


class ReviewRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a review is of; kept beside its log, so that status and export need no database.

    Attributes
    ----------
    dataset : str
        Name of the FiftyOne dataset.
    stage : {"manual", "candidate", "auto_override"}
    manifest : str
        Digest of the manifest under review, ``""`` for none.
    inputs : str
        Digest of all that the dataset is made of: another one is another review.
    batches : dict of str to int
        Images of each batch.
    left_out : dict of str to int
        Images that are not shown, by reason.
    bad_photos : dict of str to list of str
        Ids of the images whose photo cannot be looked at, by what is wrong with it; a card is shown for each.
    """

    version: int = VERSION
    dataset: str
    stage: Stage
    manifest: str
    inputs: str
    batches: dict[str, int]
    left_out: dict[str, int] = {}
    bad_photos: dict[str, list[str]] = {}

    @property
    def images(self) -> int:
        """Number of images under review."""
        return sum(self.batches.values())


def write_record(folder: Path, record: ReviewRecord) -> None:
    """Write ``review.json`` atomically.

    Raises
    ------
    ReviewError
        A file of that name stands there which is no record of a review.
    """
    path = folder / REVIEW
    if path.exists() and not is_review(path):
        raise ReviewError(
            "A file of somebody else stands where the record of the review goes",
            where=str(path),
            hint="choose another --folder",
        )
    # The folder is the review's own: what it holds is recognised by its content.
    text = json.dumps(msgspec.to_builtins(record), indent=1, ensure_ascii=False) + "\n"
    write_text(path, text, guarded=False)


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
            hint="another --folder; or make one: curation review start --folder DIR --source NAME=PATH --photos DIR",
        )
    if path.stat().st_size > _LARGEST:
        raise ReviewError("The record of the review is too large", where=str(path))
    try:
        record = msgspec.json.decode(read_bytes(path, kind="record of the review"), type=ReviewRecord)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReviewError(
            "The record of the review is damaged",
            where=str(path),
            found=str(error)[:200],
            hint="curation review start … --rebuild: the decisions in the log are kept",
        ) from None
    if not 1 <= record.version <= VERSION:
        raise ReviewError(
            "The review is of another version", where=str(path), expected=f"1 to {VERSION}", found=str(record.version)
        )
    return record


def database_folder(folder: Path, *, rebuild: bool = False) -> Path | None:
    """Return where the database of a review lies; None is FiftyOne's, where reviews were kept before each had its own.

    Parameters
    ----------
    rebuild : bool
        The dataset is built anew: then its database is the review's own.
    """
    own = folder / DATABASE
    return None if (folder / REVIEW).exists() and not own.exists() and not rebuild else own


def require_log(text: Any, dataset: str) -> Path:
    """Return the path of the log that a dataset names, once it is one that may be written.

    Others may write to a database too: only an absolute path to ``decisions.jsonl`` beside a ``review.json`` that names
    this very dataset is accepted.

    Raises
    ------
    ReviewError
        The path is anything else.
    """
    path = Path(text) if isinstance(text, str) and "\0" not in text and len(text) < 4096 else None
    if path is None or not path.is_absolute() or path.name != LOG_FILE or path.is_symlink():
        raise _refused(text)
    try:
        record = read_record(path.parent)
    except (ReviewError, MissingFileError, OSError):
        raise _refused(text) from None
    if record.dataset != dataset:
        raise _refused(text)
    if path.exists() and not (path.is_file() and os.access(path, os.W_OK)):
        raise ReviewError("The decisions log may not be written", where=str(path))
    return path


def _refused(text: Any) -> ReviewError:
    return ReviewError(
        "The dataset names no decisions log of its own",
        found=ascii(text)[:200],
        expected=f"an absolute path to {LOG_FILE}, beside the {REVIEW} that `curation review start` writes",
        hint="curation review start … --rebuild",
    )


SUFFIXES = (".jsonl", ".csv")


@dataclass(frozen=True, slots=True)
class Export:
    """What was written: the path, its rows, their number by action, and the digest of the log they come from."""

    path: Path
    rows: int
    actions: dict[str, int]
    log: str


def export_decisions(log: Path, path: Path) -> Export:
    """Write the standing decisions of a log, sorted by pool, image, stage and reviewer; history and undos stay behind.

    Parameters
    ----------
    path : Path
        Ends in ``.jsonl`` or ``.csv``; a file that is there is replaced whole.

    Raises
    ------
    ReviewError
        The suffix is another.
    OverwriteError
        The path is a file of the review's own.
    MissingFileError
        Nothing was decided yet.
    """
    if path.suffix not in SUFFIXES:
        raise ReviewError(
            "Decisions are exported as JSON Lines or CSV", found=path.name[:80], expected=", ".join(SUFFIXES)
        )
    if not log.exists():
        raise MissingFileError(
            "Nothing was decided yet", where=str(log), hint="give a verdict first: it is in the log at once"
        )
    found = read_decisions(log)
    rows = standing_rows(found.decisions)
    write_decisions(path, rows)
    actions = Counter(row.action for row in rows)
    return Export(path, len(rows), {action: actions[action] for action in sorted(actions)}, found.sha256)
