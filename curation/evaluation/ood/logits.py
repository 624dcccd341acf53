"""What logits say of a detection: its confidence, whether the official code takes it for background, and scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from curation.errors import PredictionError, UsageError
from curation.evaluation.columns import Bools, Floats, Int64s
from curation.evaluation.ood.records import LARGEST_SCORE, RecordFile
from curation.evaluation.post_hoc.scores import energy, generalized_entropy, max_softmax, softmax

LONGEST = 100_000
"""Logits of one detection; no detector has as many classes."""

_EVERY_COLUMN = (
    "{}: the logits have {} columns and nothing says how many ID classes there are: every column is taken for a class; "
    "--id-classes {} if the last one is the background"
)


@dataclass(frozen=True, slots=True)
class ClassReading:
    """How the logits of a file are read.

    Attributes
    ----------
    n_classes : int or None
        ID classes K. Logits of length K + 1 end with a background column, which is never the class of a detection;
        None: every column is a class.
    official_compat : bool
        As the official code: class and confidence from all columns, and index K, the background, is ``unknown``.
    """

    n_classes: int | None = None
    official_compat: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be read: the quirk is one of index K.

        Raises
        ------
        UsageError
            ``official_compat`` without the number of classes.
        """
        if self.official_compat and self.n_classes is None:
            raise UsageError(
                "--official-compat needs the number of ID classes",
                expected="--id-classes K, or --classes FILE: the code's unknown is index K of the logits",
                found="neither",
                hint="K is 20 for VOC and 10 for BDD100k; logits with a background column have length K + 1",
            )


@dataclass(frozen=True, slots=True)
class ReadClasses:
    """Confidence and background verdict of every record.

    Attributes
    ----------
    confidence : ndarray of float64, shape (n,)
    background : ndarray of bool, shape (n,)
    length : int or None
        Length of the logits.
    notes : tuple of str
    """

    confidence: Floats
    background: Bools
    length: int | None
    notes: tuple[str, ...] = ()


def read_classes(file: RecordFile, reading: ClassReading) -> ReadClasses:
    """Return the confidence of every record: its ``score``, or the softmax of its class, from logits.

    With ``official_compat`` confidence always comes from logits, where the file has them.

    Raises
    ------
    PredictionError
        A record has neither score nor logits, or the logits are of unequal length, not finite, or of a length that
        does not go with the number of classes.
    UsageError
        ``official_compat`` without logits.
    """
    logits = logits_of(file)
    n = len(file.records)
    if logits is None:
        if reading.official_compat and n:
            raise UsageError(
                "--official-compat needs the logits of every detection",
                where=file.where,
                hint="without logits no background column can be seen: leave the option out",
            )
        return ReadClasses(_stated(file), np.zeros(n, bool), None)
    length, k = logits.shape[1], reading.n_classes
    if k is not None and length not in (k, k + 1):
        raise PredictionError(
            "The logits do not go with the number of ID classes",
            where=file.where,
            expected=f"length {k}, or {k + 1} with a background column at the end",
            found=str(length),
        )
    if reading.official_compat:
        highest: Int64s = logits.argmax(axis=1)
        return ReadClasses(softmax(logits).max(axis=1), highest == k, length)
    notes = () if k is not None else (_EVERY_COLUMN.format(file.name, length, length - 1),)
    of_classes = softmax(logits)[:, :k].max(axis=1)
    stated = [record.score for record in file.records]
    confidence = np.where([one is None for one in stated], of_classes, np.array(stated, np.float64))
    return ReadClasses(confidence, np.zeros(n, bool), length, notes)


def logits_of(file: RecordFile) -> Floats | None:
    """Return the logits of all records, shape (n, K), None where no record has any (see `read_classes`)."""
    lengths = [-1 if record.logits is None else len(record.logits) for record in file.records]
    if not lengths or max(lengths) < 0:
        return None
    wanted = next(length for length in lengths if length >= 0)
    for row, length in enumerate(lengths):
        if length != wanted or not 0 < length <= LONGEST:
            raise PredictionError(
                "The logits of the detections are of unequal length"
                if length != wanted
                else "The logits are empty",
                where=file.place(row),
                expected=f"{max(wanted, 1)} numbers, as in the first record that has any",
                found="none" if length < 0 else str(length),
            )
    logits = np.array([record.logits for record in file.records], np.float64)
    usable = (np.abs(logits) <= LARGEST_SCORE).all(axis=1)
    if not usable.all():
        raise PredictionError(
            "A logit is not finite, or beyond any scale",
            where=file.place(int(np.argmin(usable))),
            expected=f"finite numbers of at most {LARGEST_SCORE:g}",
        )
    return logits


def logit_scores(file: RecordFile) -> dict[str, Floats]:
    """Return the scores that need nothing but logits (``msp``, ``energy``, ``gen``); none where there are no logits."""
    logits = logits_of(file)
    if logits is None:
        return {}
    return {"msp": max_softmax(logits), "energy": energy(logits), "gen": generalized_entropy(logits)}


def _stated(file: RecordFile) -> Floats:
    for row, record in enumerate(file.records):
        if record.score is None:
            raise PredictionError(
                "A detection has no confidence",
                where=file.place(row),
                expected='"score", or "logits" whose highest softmax it is then',
            )
    return np.array([record.score for record in file.records], np.float64)
