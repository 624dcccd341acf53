"""A running review: a dataset and its decisions log. The log is written first, and replayed after a crash.

Each key, or its button, is one request to the server of the review (`curation.review.app.guard`): it writes the log,
then the database, then answers. A FiftyOne operator would load the dataset anew at each key.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from curation.core.errors import CurationError, ReviewError
from curation.core.wording import counted
from curation.review.app.dataset import CONFLICT_VIEW, OPEN_VIEW, READY, VERDICT_FIELDS, info_of
from curation.review.decisions.decision import STAGES, Stage
from curation.review.decisions.review_folder import ReviewRecord, progress_text, require_log
from curation.review.decisions.verdicts import UNDO, Key, Standing, VerdictBook, checked_reviewer, differ, word_of

_PATIENCE_S, _PATIENCE_AN_IMAGE_S = 5.0, 0.001
"""How long to wait for the database, whatever its address says. The page waits longer."""
_OPEN: dict[tuple[object, ...], LiveReview] = {}
SHOWN_LATEST = 10


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The outcome of a call.

    Attributes
    ----------
    images : int
        Number of images that got or lost a decision.
    text : str
        The same as a sentence.
    samples, waiting : tuple of str
        Samples that were judged, or whose decision was taken back; those of them that the reviewer has yet to decide.
    """

    images: int
    text: str
    samples: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


class LiveReview:
    """A review dataset with its log; made by `open_review`.

    A decision is on the disk, in the log, before the samples show it. If the program dies in between, `replay` updates
    the samples at the next start.
    """

    def __init__(self, dataset: Any, log: Path, record: ReviewRecord, *, stage: Stage, manifest: str) -> None:
        self.dataset = dataset
        self.record = record
        # The App runs operators in threads, and two pages may be open.
        self._lock = Lock()
        self._key_of: dict[str, Key] = {}
        self._samples_of: dict[Key, list[str]] = {}
        self.batch_of: dict[Key, str] = {}
        self._assigned: dict[Key, list[str]] = {}
        for stored in dataset._sample_collection.find({}, ["pool", "image_id", "batch", "assigned_to"]):
            sample, key = str(stored["_id"]), (stored.get("pool"), stored.get("image_id"))
            self._key_of[sample] = key
            self._samples_of.setdefault(key, []).append(sample)
            self.batch_of.setdefault(key, stored.get("batch"))
            if names := stored.get("assigned_to"):
                self._assigned[key] = names
        self.book = VerdictBook(log, stage=stage, manifest=manifest, adjudicators=record.adjudicators)

    def decide(self, samples: Any, verdict: str, *, reason: str | None = None, reviewer: str | None) -> _Outcome:
        """Record one decision on some samples: in the log, then in the dataset.

        Parameters
        ----------
        samples : sequence of str
            Ids of samples, as the App selects them.

        Raises
        ------
        ReviewError
            Nothing is selected, the selection holds other items than samples, the verdict, reason or reviewer
            cannot be taken, or the database does not answer.
        """
        with self._lock:
            keys = self._keys(samples)
            batches = [(key, self.batch_of[key]) for key in keys]
            rows = self.book.record(batches, verdict, reason=reason, reviewer=reviewer)
            # Also those that have this decision already: the database may have missed it.
            self._show(keys)
        done = tuple(sample for key in keys for sample in self._samples_of[key])
        if not rows:
            return _Outcome(0, f"{counted(len(keys), 'image')}: {verdict} already", done)
        suffix = f" ({rows[0].reason})" if rows[0].reason else ""
        return _Outcome(len(rows), f"{counted(len(rows), 'image')}: {verdict}{suffix}", done)

    def undo(self, reviewer: str | None) -> _Outcome:
        """Take back the reviewer's last call that is not undone yet; the log keeps the decision and the undo."""
        with self._lock:
            rows = self.book.undo(reviewer)
            keys = [(row.dataset, row.image_id) for row in rows]
            self._show(keys)
            open_now = [key for key in keys if not self.book.has_decided(key, checked_reviewer(reviewer))]
        if not rows:
            return _Outcome(0, f"{checked_reviewer(reviewer)} has no decision to undo")
        samples, waiting = (
            tuple(sample for key in some for sample in self._samples_of.get(key, ())) for some in (keys, open_now)
        )
        return _Outcome(len(rows), f"Undone: {counted(len(rows), 'image')}", samples, waiting)

    def decided_by(self, reviewer: str) -> list[str]:
        """Return the samples with a current decision of a reviewer."""
        with self._lock:
            self.book.refresh()
            return [sample for sample, key in self._key_of.items() if self.book.has_decided(key, reviewer)]

    def progress_text(self, reviewer: str) -> str:
        """Return how many of their images a reviewer has decided, and the time for the rest."""
        with self._lock:
            self.book.refresh()
            share = self._share(reviewer)
            decided = sum(self.book.has_decided(key, reviewer) for key in share)
            return progress_text(decided, len(share), self.book.seconds_each(reviewer))

    def latest(self, reviewer: str) -> list[dict[str, str]]:
        """Return a reviewer's last valid decisions, the latest first: sample, image, verdict, reason."""
        with self._lock:
            rows = self.book.latest(reviewer, SHOWN_LATEST)
        return [
            {"id": sample, "image": row.image_id, "verdict": word_of(row), "reason": row.reason}
            for row in rows
            for sample in self._samples_of.get((row.dataset, row.image_id), ())[:1]
        ]

    def _share(self, reviewer: str) -> list[Key]:
        """Return the images that a reviewer judges: the assigned ones; for an adjudicator, those with a conflict."""
        if reviewer not in self.record.adjudicators:
            return [key for key in self.batch_of if reviewer in self._assigned.get(key, (reviewer,))]
        return [key for key in self.batch_of if differ(self.book.standing(key).verdicts, self.record.adjudicators)]

    def replay(self) -> int:
        """Update the samples that differ from the log, and return their number."""
        self.book.refresh()
        standing = self.book.all_standing()
        names = [field.name for field in VERDICT_FIELDS]
        has_values: dict[str, Any] = {"$or": [{name: {"$nin": [None, []]}} for name in names]}
        stored = {str(row["_id"]): row for row in self.dataset._sample_collection.find(has_values, names)}
        stale = {}
        judged = {sample for key in standing for sample in self._samples_of.get(key, ())}
        for sample in (stored.keys() & self._key_of.keys()) | judged:
            values = self._field_values(standing.get(self._key_of[sample], Standing(())))
            if [stored.get(sample, {}).get(name) or None for name in names] != [value or None for value in values]:
                stale[sample] = values
        self._write(stale)
        return len(stale)

    def _keys(self, samples: Any) -> list[Key]:
        if not isinstance(samples, Sequence) or isinstance(samples, str) or not samples:
            hint = "tick images in the grid (the box in the corner of each), then press the key again"
            raise ReviewError("No image is selected", hint=hint)
        if unmatched := [sample for sample in samples if not isinstance(sample, str) or sample not in self._key_of]:
            message = f"{len(unmatched)} of the {len(samples)} selected items are not images of this review"
            hint = "select whole images: leave views of patches or groups, and reload the page"
            raise ReviewError(message, found=ascii(unmatched[0])[:80], hint=hint)
        return list(dict.fromkeys(self._key_of[sample] for sample in samples))

    def _show(self, keys: Iterable[Key]) -> None:
        changed = {}
        for key in keys:
            values = self._field_values(self.book.standing(key))
            changed.update(dict.fromkeys(self._samples_of.get(key, ()), values))
        self._write(changed)

    def _field_values(self, standing: Standing) -> tuple[Any, ...]:
        """Return the fields of a sample. In a blind review they contain the reviewers, not their decisions."""
        names = [verdict.reviewer for verdict in standing.verdicts] or None
        return (
            (None, None, names) if self.record.hides_verdicts else (standing.verdict, standing.texts() or None, names)
        )

    def _write(self, values: Mapping[str, tuple[Any, ...]]) -> None:
        """Write the decision fields of some samples."""
        if not values:
            return
        from bson import ObjectId
        from pymongo import UpdateOne, timeout
        from pymongo.errors import PyMongoError

        names = [field.name for field in VERDICT_FIELDS]
        changes = [
            UpdateOne({"_id": ObjectId(sample)}, {"$set": dict(zip(names, row, strict=True))})
            for sample, row in values.items()
        ]
        hint = "end this review and start it again: it brings the App up to the log"
        try:
            with timeout(_PATIENCE_S + _PATIENCE_AN_IMAGE_S * len(changes)):
                matched = self.dataset._sample_collection.bulk_write(changes, ordered=False).matched_count
        except PyMongoError as error:
            message = "The decision is in the log, but the database does not answer"
            raise ReviewError(message, found=f"{type(error).__name__}: {error}"[:200], hint=hint) from None
        if matched < len(changes):
            message = "The decision is in the log, but the dataset was built anew meanwhile"
            raise ReviewError(message, found=f"{matched} of {len(changes)} images", hint=hint)


def open_review(dataset: Any) -> LiveReview:
    """Return the live review of a dataset; every call of this process returns the same object.

    Raises
    ------
    ReviewError
        The dataset is not a finished review, or its log is not writable.
    """
    if dataset is None:
        raise ReviewError("No dataset is open", hint="choose the review's dataset in the App")
    info = info_of(dataset)
    stage = next((offered for offered in STAGES if offered == info.get("stage")), None)
    if info.get("state") != READY or stage is None:
        name, hint = str(dataset.name)[:80], "create one with `curation review start`"
        raise ReviewError("This dataset is not a review", where=name, hint=hint)
    log, record = require_log(info.get("log"), dataset.name)
    known = (str(dataset._doc.id), str(log), stage, record.hides_verdicts, record.adjudicators)
    if known not in _OPEN:
        manifest = info.get("manifest")
        known_manifest = manifest if isinstance(manifest, str) else ""
        _OPEN[known] = LiveReview(dataset, log, record, stage=stage, manifest=known_manifest)
    return _OPEN[known]


def offer_own_view(dataset: Any, reviewer: str) -> str:
    """Save the view of the images that a reviewer has yet to decide, and return its name; an adjudicator's: conflicts.

    The view *to decide* shows images without any decision, for reviewers who share the work. This view is for reviewers
    who judge the same images, or their assigned images.
    """
    if reviewer in open_review(dataset).record.adjudicators:
        return CONFLICT_VIEW
    view = dataset.match({"decided_by": {"$ne": reviewer}, "assigned_to": {"$in": [reviewer, None]}})
    base = f"{OPEN_VIEW}: {reviewer[:60]}"
    # The App identifies a view by a short form of its name, which is equal for Anna and anna.
    for name in (base, *(f"{base} ({number})" for number in range(2, 100))):
        if dataset.has_saved_view(name):
            return name
        with suppress(ValueError):
            dataset.save_view(name, view, description=f"waits for {reviewer}"[:200])
            return name
    raise ReviewError("Too many reviewers have nearly the same name", found=reviewer[:80])


REVIEWER_VARIABLE = "CURATION_REVIEWER"
"""Environment variable with the reviewer's name. A server reads it for each decision; no request changes it."""


def reviewer_here(request: Mapping[str, Any] | None = None) -> str:
    """Return the reviewer's name: that of ``curation review start --reviewer``, fixed while the server runs.

    Parameters
    ----------
    request : mapping, optional
        A request.

    Raises
    ------
    ReviewError
        The request names another reviewer.
    """
    reviewer = os.environ.get(REVIEWER_VARIABLE, "")
    claimed = request.get("reviewer") if request is not None else None
    if claimed and claimed != reviewer:
        raise ReviewError(
            "The reviewer is fixed when the server starts",
            found=ascii(claimed)[:80],
            expected=reviewer or "curation review start --reviewer NAME",
            hint="each reviewer starts a separate server on the same folder",
        )
    return reviewer


def answered(dataset: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out a key and return the answer to the page: what was recorded, or why nothing was.

    Parameters
    ----------
    request : mapping
        ``ids`` of samples, ``verdict`` (``undo`` takes the last one back), and an optional ``reason``. A ``reviewer``
        must be that of the server.

    Returns
    -------
    dict
        ``images`` and ``message``; ``ids`` of the samples concerned and ``waiting``, those that have no verdict of the
        reviewer now; ``progress``, how many of how many; ``latest``, the last decisions.
    """
    try:
        reviewer, review = reviewer_here(request), open_review(dataset)
        if request.get("verdict") == UNDO:
            done = review.undo(reviewer)
        else:
            verdict = str(request.get("verdict"))
            done = review.decide(request.get("ids"), verdict, reason=request.get("reason"), reviewer=reviewer)
    except (CurationError, OSError) as error:
        return refused(error)
    return {
        "images": done.images,
        "message": done.text,
        "ids": list(done.samples),
        "waiting": list(done.waiting),
        "progress": review.progress_text(reviewer),
        "latest": review.latest(reviewer),
    }


def refused(error: CurationError | OSError) -> dict[str, Any]:
    """Return the answer for a key that recorded nothing."""
    if isinstance(error, OSError):
        error = ReviewError(
            "Nothing was recorded: the log cannot be written",
            found=error.strerror or type(error).__name__,
            hint="free disk space, or make the log writable; then press the key again",
        )
    text = error.what + (f". {error.hint[:1].upper()}{error.hint[1:]}" if error.hint else "")
    return {"images": 0, "message": text, **error.as_dict()}
