"""What kept detections are and lie on (Elephant paper, section 4.1, Fig. 3, 4, 8-11; precedence after Hoiem et al.)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from curation.errors import EvaluationError, UsageError
from curation.evaluation.matching import Matches, OperatingPoints, best_overlap, recall_names
from curation.evaluation.problem import Bools, Detections, Floats, GroundTruth, Int32s, Int64s
from curation.input_files import read_plain

KINDS: dict[str, str] = {
    "correct": "true positive",
    "localization": "closed image, IoU at or above the limit with an object of the same class (duplicates included)",
    "similar": "closed image, … with an object of a similar class",
    "other": "closed image, … with an object of any other known class",
    "unknown_unknown": "wilderness image, … with any labelled object",
    "mixed_unknown": "anywhere, no object at that IoU: background, labelled or not",
    "ignored": "matched to a difficult or crowd object; outside the total",
}
"""What each kind of detection is; on a closed image the first that applies, in this order."""

HOIEM_SIMILAR: tuple[tuple[str, ...], ...] = (
    ("bird", "cat", "cow", "dog", "horse", "person", "sheep"),
    ("aeroplane", "bicycle", "boat", "bus", "car", "motorbike", "train"),
    ("chair", "diningtable", "sofa"),
    ("aeroplane", "bird"),
)
"""Similar VOC classes of Hoiem, Chodpathumwan and Dai, "Diagnosing Error in Object Detectors" (ECCV 2012)."""

SimilarSets = Sequence[Sequence[str]]
_CODES = {kind: code for code, kind in enumerate(KINDS)}


def diagnose(
    closed: GroundTruth,
    closed_detections: Detections,
    matches: Matches,
    wilderness: GroundTruth,
    wilderness_detections: Detections,
    points: OperatingPoints,
    *,
    similar: SimilarSets | None = None,
    minimum_iou: float = 0.1,
) -> dict[str, Any]:
    """Return how many kept detections are of each kind, per recall, on the closed set and on closed set + WR1.

    Parameters
    ----------
    matches : Matches
        Outcome of each closed detection.
    points : OperatingPoints
        Thresholds of the closed set. A detection is kept when its score is at or above that of its class.
    similar : sequence of sequences of str, optional
        Sets of similar classes; `HOIEM_SIMILAR` reduced to the known classes by default.
    minimum_iou : float
        Overlap that makes an error one about an object; at or above.

    Returns
    -------
    dict
        ``result[recall][section]`` for the sections ``closed`` and ``wr1`` (with the first n_closed wilderness images
        in ascending id order): ``per_class[class]`` and ``total``, counts by the keys of `KINDS`, None for a class
        without threshold; ``shares`` with the same two keys, shares of all but the ignored, None where nothing is
        kept; ``left_out``: the reason for each None. ``wr1`` is None when the wilderness is smaller than that.

    Raises
    ------
    UsageError
        A similar set names an unknown class or a class twice, or `minimum_iou` is outside (0, 1].
    """
    if not 0 < minimum_iou <= 1:
        raise UsageError("The IoU limit is out of range", expected="above 0, at most 1", found=repr(minimum_iou))
    table = _similarity(closed.classes, similar)
    # No threshold keeps what lies below the lowest: its kind need not be known.
    lowest = np.fmin.reduce(points.threshold, axis=0, initial=np.inf)
    closed_kinds = _closed_kinds(closed, closed_detections, matches, table, lowest, minimum_iou)
    wild_kinds = _wilderness_kinds(wilderness, wilderness_detections, lowest, closed.n_images, minimum_iou)
    result: dict[str, Any] = {}
    for recall, limits in zip(recall_names(points), points.threshold, strict=True):
        kept = closed_detections.scores >= limits[closed_detections.label]
        counts = _count(closed_kinds[kept], closed_detections.label[kept], len(closed.classes))
        kept = kept_in_wr1(wilderness_detections, limits, closed.n_images)
        opened = counts + _count(wild_kinds[kept], wilderness_detections.label[kept], len(closed.classes))
        has_wr1 = wilderness.n_images >= closed.n_images
        result[recall] = {
            "closed": _section(closed.classes, counts, limits),
            "wr1": _section(closed.classes, opened, limits) if has_wr1 else None,
        }
    return result


def kept_in_wr1(detections: Detections, limits: Floats, n_closed: int) -> Bools:
    """Return which wilderness detections reach the threshold of their class on the first `n_closed` images."""
    kept: Bools = (detections.scores >= limits[detections.label]) & (detections.image < n_closed)
    return kept


def read_similar_sets(path: Path, classes: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the similar sets of a JSON file: a list of lists of class names.

    Raises
    ------
    MissingFileError
        The file does not exist.
    EvaluationError
        It is not a list of lists of names, or names a class that is not known, or one twice in a set.
    """
    try:
        sets = msgspec.json.decode(read_plain(path, kind="file of similar sets"), type=tuple[tuple[str, ...], ...])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EvaluationError(
            "The similar sets cannot be read",
            where=str(path),
            expected='a list of lists of class names: [["cat", "dog"], ["bus", "car"]]',
            found=str(error)[:200],
        ) from None
    for number, members in enumerate(sets):
        _check_set(members, classes, f"{path}: set {number}")
    return sets


def _similarity(classes: Sequence[str], similar: SimilarSets | None) -> Bools:
    """Return which classes are similar, shape (K, K); a class is not similar to itself."""
    if similar is None:
        similar = [[name for name in members if name in classes] for members in HOIEM_SIMILAR]
    else:
        for number, members in enumerate(similar):
            _check_set(members, classes, f"similar set {number}")
    table = np.zeros((len(classes), len(classes)), bool)
    for members in similar:
        rows = [classes.index(name) for name in members]
        table[np.ix_(rows, rows)] = True
    np.fill_diagonal(table, val=False)
    return table


def _check_set(members: Sequence[str], classes: Sequence[str], where: str) -> None:
    for position, name in enumerate(members):
        if name not in classes:
            raise EvaluationError(
                "A similar set names a class that is not known",
                where=where,
                expected="one of " + ", ".join(classes)[:400],
                found=repr(name)[:80],
            )
        if name in members[:position]:
            raise EvaluationError("A similar set names a class twice", where=where, found=repr(name)[:80])


def _closed_kinds(
    truth: GroundTruth,
    detections: Detections,
    matches: Matches,
    table: Bools,
    lowest: Floats,
    minimum_iou: float,
) -> Int64s:
    """Return the code of each closed detection; below its `lowest` threshold it means nothing."""
    kinds = np.full(len(detections), _CODES["mixed_unknown"])
    kinds[matches.outcome == 1] = _CODES["correct"]
    kinds[matches.outcome == -1] = _CODES["ignored"]
    kept = detections.scores >= lowest[detections.label]
    rows = np.flatnonzero(kept & (matches.outcome == 0))
    wrong = detections.take(rows)
    known = truth.label >= 0
    found = kinds[rows]
    # The weakest claim first: each stronger one overwrites it.
    found[best_overlap(truth, wrong, same_class=False, mask=known)[1] >= minimum_iou] = _CODES["other"]
    for number in range(len(truth.classes)):
        members = np.flatnonzero(wrong.label == number)
        alike = known & table[number][truth.label]
        if len(members) and alike.any():
            overlap = best_overlap(truth, wrong.take(members), same_class=False, mask=alike)[1]
            found[members[overlap >= minimum_iou]] = _CODES["similar"]
    found[best_overlap(truth, wrong, same_class=True)[1] >= minimum_iou] = _CODES["localization"]
    kinds[rows] = found
    return kinds


def _wilderness_kinds(
    truth: GroundTruth,
    detections: Detections,
    lowest: Floats,
    n_closed: int,
    minimum_iou: float,
) -> Int64s:
    kinds = np.full(len(detections), _CODES["mixed_unknown"])
    rows = np.flatnonzero(kept_in_wr1(detections, lowest, n_closed))
    overlap = best_overlap(truth, detections.take(rows), same_class=False)[1]
    kinds[rows[overlap >= minimum_iou]] = _CODES["unknown_unknown"]
    return kinds


def _count(kinds: Int64s, labels: Any, n_classes: int) -> Int64s:
    """Return counts, shape (K, kinds)."""
    cells = labels.astype(np.int64) * len(KINDS) + kinds
    return np.bincount(cells, minlength=n_classes * len(KINDS)).reshape(n_classes, len(KINDS))


def _section(classes: Sequence[str], counts: Int64s, limits: Floats) -> dict[str, Any]:
    undefined = np.isnan(limits)
    per_class = {name: None if undefined[number] else _by_kind(counts[number]) for number, name in enumerate(classes)}
    total = _by_kind(counts.sum(axis=0))
    return {
        "per_class": per_class,
        "total": total,
        "shares": {
            "per_class": {name: None if line is None else _shares(line) for name, line in per_class.items()},
            "total": _shares(total),
        },
        "left_out": {name: "the recall is never reached" for name, line in per_class.items() if line is None},
    }


def _by_kind(counts: Int64s) -> dict[str, int]:
    return dict(zip(KINDS, counts.tolist(), strict=True))


def _shares(counts: Mapping[str, int]) -> dict[str, float] | None:
    total = sum(counts.values()) - counts["ignored"]
    return {kind: n / total for kind, n in counts.items() if kind != "ignored"} if total else None


UNKNOWN = "unknown"
"""Name of an unknown object whose original class the annotation file does not say."""


def confusion(
    closed: GroundTruth,
    closed_detections: Detections,
    wilderness: GroundTruth,
    wilderness_detections: Detections,
    points: OperatingPoints,
    *,
    minimum_iou: float = 0.1,
) -> dict[str, Any]:
    """Return what the kept detections of each class lie on, per recall, on the closed set and on closed set + WR1.

    Each kept detection goes to the object of highest IoU of any class, crowd and difficult ones included, when that
    IoU is at or above `minimum_iou`; else to the background.

    Parameters
    ----------
    points : OperatingPoints
        A detection is kept when its score is at or above the threshold of its class; without one, nothing is.

    Returns
    -------
    dict
        ``result[recall][section]`` for ``closed`` and ``wr1``: ``confusion[detected][true]`` with the counts above
        zero, and ``background[detected]`` for every class. A true class is a known one or the original class of an
        unknown object. ``wr1`` is None when there are fewer wilderness than closed images.
    """
    if not 0 < minimum_iou <= 1:
        raise UsageError("The IoU limit is out of range", expected="above 0, at most 1", found=repr(minimum_iou))
    columns = column_names(closed, wilderness)
    result: dict[str, Any] = {}
    for recall, limits in zip(recall_names(points), points.threshold, strict=True):
        kept = closed_detections.scores >= limits[closed_detections.label]
        counts = _counts(closed, closed_detections, kept, columns, minimum_iou)
        kept = kept_in_wr1(wilderness_detections, limits, closed.n_images)
        opened = counts + _counts(wilderness, wilderness_detections, kept, columns, minimum_iou)
        has_wr1 = wilderness.n_images >= closed.n_images
        result[recall] = {
            "closed": _overlaps(closed.classes, columns, counts),
            "wr1": _overlaps(closed.classes, columns, opened) if has_wr1 else None,
        }
    return result


def column_names(closed: GroundTruth, wilderness: GroundTruth) -> tuple[str, ...]:
    """Return the true classes: the known ones in their order, then all others by code point."""
    others = {name for truth in (closed, wilderness) for name in _object_names(truth)}
    return closed.classes + tuple(sorted(others.difference(closed.classes)))


def full_matrix(section: Mapping[str, Any], rows: Sequence[str], columns: Sequence[str]) -> dict[str, Any]:
    """Return one section of `confusion` as a table: ``rows``, ``columns``, ``counts`` (R x C), ``background``."""
    entries = section["confusion"]
    return {
        "rows": list(rows),
        "columns": list(columns),
        "counts": [[entries.get(row, {}).get(column, 0) for column in columns] for row in rows],
        "background": [section["background"][row] for row in rows],
    }


def _object_names(truth: GroundTruth) -> list[str]:
    original = truth.original or ("",) * len(truth.label)
    return [
        truth.classes[label] if label >= 0 else name or UNKNOWN
        for label, name in zip(truth.label.tolist(), original, strict=True)
    ]


def _counts(truth: GroundTruth, detections: Detections, kept: Bools, columns: Sequence[str], minimum_iou: float) -> Any:
    """Return counts, shape (K, columns + 1); the last column is the background."""
    number = {name: position for position, name in enumerate(columns)}
    names = np.array([number[name] for name in _object_names(truth)], np.int64)
    some = detections.take(np.flatnonzero(kept))
    position, overlap = best_overlap(truth, some, same_class=False)
    on_object = overlap >= minimum_iou
    column = np.full(len(some), len(columns))
    column[on_object] = names[position[on_object]]
    width = len(columns) + 1
    cells = some.label.astype(np.int64) * width + column
    return np.bincount(cells, minlength=len(truth.classes) * width).reshape(-1, width)


def _overlaps(classes: Sequence[str], columns: Sequence[str], counts: Any) -> dict[str, Any]:
    entries = {
        row: {column: n for column, n in zip(columns, line, strict=True) if n}
        for row, line in zip(classes, counts[:, :-1].tolist(), strict=True)
    }
    return {
        "confusion": {row: line for row, line in entries.items() if line},
        "background": dict(zip(classes, counts[:, -1].tolist(), strict=True)),
    }


BINS = 20
EDGES: Floats = (np.arange(BINS + 1) - BINS // 2) / (BINS // 2)
"""Bin edges -1.0, -0.9, …, 1.0, each the float nearest to its decimal (``-1 + k * 0.1`` is not); last bin closed."""

NO_BACKGROUND_SCORES = "the detections carry no background_score (only softmax detectors have one)"


def background_gap(truth: GroundTruth, detections: Detections, matches: Matches) -> dict[str, Any] | None:
    """Return, per class, how the gap ``g = p_i - p_b`` spreads over all true positives of the closed set.

    ``p_i`` is the softmax score of the detected class, ``p_b`` that of the background. The supplement's table does not
    say whether its standard deviation is of the population or of a sample, so both are given; it names no threshold,
    so every true positive counts.

    Returns
    -------
    dict or None
        ``result[class] = {"n", "mean", "std_population", "std_sample", "negative", "hist20", "missing"}``:
        ``negative`` counts g < 0, ``hist20`` holds the counts in 20 bins on [-1, 1], ``missing`` the true positives
        without a finite background score, ``decided_by_input_order`` the objects that two detections of equal score and
        different background score claim. ``std_sample`` is None for n < 2; mean and deviations are None for n = 0
        and ``reason`` says why. None when the detections carry no background scores at all;
        `NO_BACKGROUND_SCORES` is the reason.
    """
    if detections.background_scores is None:
        return None
    gaps = detections.scores - detections.background_scores
    correct = matches.outcome == 1
    by_order = np.bincount(truth.label[_claimed_equally(gaps, detections, matches)], minlength=len(truth.classes))
    return {
        name: _spread(gaps[correct & (detections.label == number)]) | {"decided_by_input_order": int(by_order[number])}
        for number, name in enumerate(truth.classes)
    }


def _claimed_equally(gaps: Floats, detections: Detections, matches: Matches) -> Int32s:
    """Return the objects whose true positive has a rival of equal score and another gap."""
    found = np.flatnonzero(matches.outcome == 1)
    holder = np.full(int(matches.claim.max(initial=-1)) + 1, -1)
    holder[matches.claim[found]] = found
    rivals = np.flatnonzero((matches.claim >= 0) & (matches.outcome == 0))
    held = holder[matches.claim[rivals]]
    same_gap = (gaps[rivals] == gaps[held]) | (np.isnan(gaps[rivals]) & np.isnan(gaps[held]))
    equal = (detections.scores[rivals] == detections.scores[held]) & ~same_gap
    return np.unique(matches.claim[rivals[equal]])


def _spread(gaps: Floats) -> dict[str, Any]:
    known = gaps[np.isfinite(gaps)]
    result: dict[str, Any] = {
        "n": len(known),
        "mean": None,
        "std_population": None,
        "std_sample": None,
        "negative": int((known < 0).sum()),
        "hist20": None,
        "missing": len(gaps) - len(known),
    }
    if len(known) and np.abs(known).max() > 1:
        return {**result, "reason": "a gap lies outside [-1, 1]: the scores are not softmax probabilities"}
    result["hist20"] = histogram(known)
    if not len(known):
        return {**result, "reason": "no true positive has a background score"}
    result["mean"] = float(known.mean())
    result["std_population"] = float(known.std())
    result["std_sample"] = float(known.std(ddof=1)) if len(known) > 1 else None
    return result


def histogram(gaps: Floats) -> list[int]:
    """Return the counts of gaps in the 20 bins between `EDGES`: lower edge included, 1.0 in the last bin."""
    bins = np.searchsorted(EDGES, gaps, side="right") - 1
    counts: list[int] = np.bincount(np.minimum(bins, BINS - 1), minlength=BINS).tolist()
    return counts
