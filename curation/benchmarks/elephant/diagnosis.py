"""What kept detections are and lie on (Elephant paper, section 4.1, Fig. 3, 4, 8-11; precedence after Hoiem et al.)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from curation.errors import EvaluationError, UsageError
from curation.evaluation.matching import Matches, OperatingPoints, best_overlap, recall_names
from curation.evaluation.problem import UNKNOWN, Bools, Detections, Floats, GroundTruth, Int32s, Int64s, Scene
from curation.input_files import read_plain

Record = dict[str, Any]
"""A row of a table."""
ALL_CLASSES = "all classes"
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
CORRECT, LOCALIZATION, SIMILAR, OTHER, UNKNOWN_UNKNOWN, MIXED_UNKNOWN, IGNORED = range(len(KINDS))

HOIEM_SIMILAR: tuple[tuple[str, ...], ...] = (
    ("bird", "cat", "cow", "dog", "horse", "person", "sheep"),
    ("aeroplane", "bicycle", "boat", "bus", "car", "motorbike", "train"),
    ("chair", "diningtable", "sofa"),
    ("aeroplane", "bird"),
)
"""Similar VOC classes of Hoiem, Chodpathumwan and Dai, "Diagnosing Error in Object Detectors" (ECCV 2012)."""

SimilarSets = Sequence[Sequence[str]]


def diagnose(
    scene: Scene,
    matches: Matches,
    points: OperatingPoints,
    *,
    similar: SimilarSets | None = None,
    minimum_iou: float = 0.1,
) -> list[Record]:
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
    list of dict
        Rows of ``diagnosis``: of each recall, the parts ``closed`` and ``wr1`` (with the first n_closed wilderness
        images in ascending id order; no rows where there are fewer), each class and `ALL_CLASSES`: counts by the keys
        of `KINDS`, None for a class without threshold, which ``left_out`` says.

    Raises
    ------
    UsageError
        A similar set names an unknown class or a class twice, or `minimum_iou` is outside (0, 1].
    """
    _check_overlap(minimum_iou)
    table = _similarity(scene.closed.classes, similar)
    scene, kept = _kept_at_any(scene, points)
    kinds = (
        _closed_kinds(scene.closed, scene.inside, matches.outcome[kept], table, minimum_iou),
        np.where(_objects_under(scene.wilderness, scene.outside, minimum_iou) >= 0, UNKNOWN_UNKNOWN, MIXED_UNKNOWN),
    )
    rows = []
    for recall, part, counts, limits in _by_part(scene, points, kinds, len(KINDS)):
        at = {"recall": recall, "part": part}
        for name, line, limit in zip(scene.closed.classes, counts.tolist(), limits, strict=True):
            kept_none = bool(np.isnan(limit))
            cells = dict.fromkeys(KINDS) if kept_none else dict(zip(KINDS, line, strict=True))
            rows.append(at | {"class": name, **cells, "left_out": "the recall is never reached" if kept_none else ""})
        total = dict(zip(KINDS, counts.sum(axis=0).tolist(), strict=True))
        rows.append(at | {"class": ALL_CLASSES, **total, "left_out": ""})
    return rows


def overlaps(scene: Scene, points: OperatingPoints, *, minimum_iou: float = 0.1) -> list[Record]:
    """Return what the kept detections of each class lie on, per recall, on the closed set and on closed set + WR1.

    Each kept detection goes to the object of highest IoU of any class, crowd and difficult ones included, when that
    IoU is at or above `minimum_iou`; else to the background.

    Parameters
    ----------
    points : OperatingPoints
        A detection is kept when its score is at or above the threshold of its class; without one, nothing is.

    Returns
    -------
    list of dict
        Rows of ``overlaps``, with the counts above zero: of each recall and the parts ``closed`` and ``wr1`` (none
        where there are fewer wilderness than closed images), the class detected and the true one, a known one or the
        original class of an unknown object; ``""`` for the background.
    """
    _check_overlap(minimum_iou)
    scene, _ = _kept_at_any(scene, points)
    columns = column_names(scene)
    number = {name: position for position, name in enumerate(columns)}

    def true_classes(truth: GroundTruth, detections: Detections) -> Int64s:
        # The last column is the background, which position -1 leads to.
        names = np.array([*(number[name] for name in _object_names(truth)), len(columns)], np.int64)
        return names[_objects_under(truth, detections, minimum_iou)]

    cells = [true_classes(*part) for part in scene.parts]
    return [
        {
            "recall": recall,
            "part": part,
            "detected": scene.closed.classes[row],
            "true": (*columns, "")[column],
            "detections": int(counts[row, column]),
        }
        for recall, part, counts, _ in _by_part(scene, points, cells, len(columns) + 1)
        for row, column in np.argwhere(counts).tolist()
    ]


def _kept_at_any(scene: Scene, points: OperatingPoints) -> tuple[Scene, Bools]:
    """Return the scene with those detections alone that some threshold keeps, and which of the closed ones these are.

    What the others are need not be known.
    """
    lowest = np.fmin.reduce(points.threshold, axis=0, initial=np.inf)
    inside, outside = (kept_in_wr1(detections, lowest, scene.closed.n_images) for _, detections in scene.parts)
    return scene._replace(inside=scene.inside.take(inside), outside=scene.outside.take(outside)), inside


def _by_part(
    scene: Scene, points: OperatingPoints, cells: Sequence[Int64s], width: int
) -> Iterator[tuple[str, str, Int64s, Floats]]:
    """Yield recall, ``closed`` or ``wr1``, the counts of kept detections, shape (K, width), and the thresholds."""
    n_classes, n_closed = len(scene.closed.classes), scene.closed.n_images
    for recall, limits in zip(recall_names(points), points.threshold, strict=True):
        counts = []
        for (_, detections), column in zip(scene.parts, cells, strict=True):
            kept = kept_in_wr1(detections, limits, n_closed)
            cell = detections.label[kept].astype(np.int64) * width + column[kept]
            counts.append(np.bincount(cell, minlength=n_classes * width).reshape(-1, width))
        yield recall, "closed", counts[0], limits
        if scene.wilderness.n_images >= n_closed:
            yield recall, "wr1", counts[0] + counts[1], limits


def kept_in_wr1(detections: Detections, limits: Floats, n_closed: int) -> Bools:
    """Return which detections reach the threshold of their class on the first `n_closed` images of their part."""
    return np.asarray((detections.scores >= limits[detections.label]) & (detections.image < n_closed))


def read_similar_sets(path: Path, classes: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the similar sets of a JSON file: a list of lists of class names.

    Raises
    ------
    MissingFileError
        The file does not exist.
    EvaluationError
        It is not a list of lists of names, or names a class that is not known, or one twice in a set.
    """
    data = read_plain(path, kind="file of similar sets")
    try:
        sets = msgspec.json.decode(data, type=tuple[tuple[str, ...], ...])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        example = 'a list of lists of class names: [["cat", "dog"], ["bus", "car"]]'
        raise EvaluationError(
            "The similar sets cannot be read", where=str(path), expected=example, found=str(error)[:200]
        ) from None
    _check_sets(sets, classes, f"{path}: set")
    return sets


def _check_sets(sets: SimilarSets, classes: Sequence[str], where: str) -> None:
    for number, members in enumerate(sets):
        for name in members:
            told = {"where": f"{where} {number}", "found": repr(name)[:80]}
            if name not in classes:
                known = "one of " + ", ".join(classes)[:400]
                raise EvaluationError("A similar set names a class that is not known", expected=known, **told)
            if list(members).count(name) > 1:
                raise EvaluationError("A similar set names a class twice", **told)


def _check_overlap(minimum_iou: float) -> None:
    if not 0 < minimum_iou <= 1:
        raise UsageError("The IoU limit is out of range", expected="above 0, at most 1", found=repr(minimum_iou))


def _similarity(classes: Sequence[str], similar: SimilarSets | None) -> Bools:
    """Return which classes are similar, shape (K, K); a class is not similar to itself."""
    if similar is None:
        similar = [[name for name in members if name in classes] for members in HOIEM_SIMILAR]
    _check_sets(similar, classes, "similar set")
    table = np.zeros((len(classes), len(classes)), bool)
    for members in similar:
        rows = [classes.index(name) for name in members]
        table[np.ix_(rows, rows)] = True
    np.fill_diagonal(table, val=False)
    return table


def _closed_kinds(
    truth: GroundTruth, detections: Detections, outcome: Any, similar: Bools, minimum_iou: float
) -> Int64s:
    """Return the kind of each closed detection."""
    kinds = np.choose(outcome + 1, (IGNORED, MIXED_UNKNOWN, CORRECT))
    rows = np.flatnonzero(outcome == 0)
    wrong = detections.take(rows)
    known = truth.label >= 0
    found = kinds[rows]
    # The weakest claim first: each stronger one overwrites it.
    found[best_overlap(truth, wrong, same_class=False, mask=known)[1] >= minimum_iou] = OTHER
    for number in np.unique(wrong.label):
        members = np.flatnonzero(wrong.label == number)
        alike = known & similar[number][truth.label]
        overlap = best_overlap(truth, wrong.take(members), same_class=False, mask=alike)[1]
        found[members[overlap >= minimum_iou]] = SIMILAR
    found[best_overlap(truth, wrong, same_class=True)[1] >= minimum_iou] = LOCALIZATION
    kinds[rows] = found
    return np.asarray(kinds)


def _objects_under(truth: GroundTruth, detections: Detections, minimum_iou: float) -> Int64s:
    """Return the object of highest IoU that each detection lies on, -1 for none."""
    position, overlap = best_overlap(truth, detections, same_class=False)
    return np.where(overlap >= minimum_iou, position.astype(np.int64), -1)


def column_names(scene: Scene) -> tuple[str, ...]:
    """Return the true classes: the known ones in their order, then all others by code point."""
    others = {name for truth, _ in scene.parts for name in _object_names(truth)}
    return scene.closed.classes + tuple(sorted(others.difference(scene.closed.classes)))


def _object_names(truth: GroundTruth) -> Iterator[str]:
    """Yield the class of each object; `UNKNOWN` for an unknown one whose own class the file does not say."""
    original = truth.original or ("",) * len(truth.label)
    for label, name in zip(truth.label.tolist(), original, strict=True):
        yield truth.classes[label] if label >= 0 else name or UNKNOWN


BINS = 20
EDGES: Floats = (np.arange(BINS + 1) - BINS // 2) / (BINS // 2)
"""Bin edges -1.0, -0.9, …, 1.0, each the float nearest to its decimal (``-1 + k * 0.1`` is not); last bin closed."""

NO_BACKGROUND_SCORES = "the detections carry no background_score (only softmax detectors have one)"


def background_gap(truth: GroundTruth, detections: Detections, matches: Matches) -> dict[str, list[Record]] | None:
    """Return, per class, how the gap ``g = p_i - p_b`` spreads over all true positives of the closed set.

    ``p_i`` is the softmax score of the detected class, ``p_b`` that of the background. The supplement's table does not
    say whether its standard deviation is of the population or of a sample, so both are given; it names no threshold,
    so every true positive counts.

    Returns
    -------
    dict or None
        Rows of ``background_gaps``: ``negative`` counts gaps below 0, ``missing`` the true positives without a finite
        background score, ``decided_by_order`` the objects that two detections of equal score and different background
        score claim; ``std_sample`` is None for n < 2, mean and deviations for n = 0, and ``undefined`` says why. Rows
        of ``background_histogram``: the counts in 20 bins on [-1, 1], for classes whose gaps all lie there. None when
        the detections carry no background scores at all; `NO_BACKGROUND_SCORES` is the reason.
    """
    if detections.background_scores is None:
        return None
    gaps = detections.scores - detections.background_scores
    correct = matches.outcome == 1
    by_order = np.bincount(truth.label[_claimed_equally(gaps, detections, matches)], minlength=len(truth.classes))
    rows, bins = [], []
    for number, (name, decided) in enumerate(zip(truth.classes, by_order.tolist(), strict=True)):
        all_gaps = gaps[correct & (detections.label == number)]
        known = all_gaps[np.isfinite(all_gaps)]
        n = len(known)
        softmax = not n or np.abs(known).max() <= 1
        defined = n > 0 and softmax
        nothing, outside = "no true positive has a background score", "a gap lies outside [-1, 1]"
        reason = nothing if softmax else f"{outside}: the scores are not softmax probabilities"
        rows.append(
            {
                "class": name,
                "n": n,
                "mean": float(known.mean()) if defined else None,
                "std_population": float(known.std()) if defined else None,
                "std_sample": float(known.std(ddof=1)) if defined and n > 1 else None,
                "negative": int((known < 0).sum()),
                "missing": len(all_gaps) - n,
                "decided_by_order": decided,
                "undefined": "" if defined else reason,
            }
        )
        if softmax:
            cells = zip(EDGES[:-1].tolist(), EDGES[1:].tolist(), histogram(known), strict=True)
            bins += [{"class": name, "from": low, "to": high, "true_positives": count} for low, high, count in cells]
    return {"background_gaps": rows, "background_histogram": bins}


def _claimed_equally(gaps: Floats, detections: Detections, matches: Matches) -> Int32s:
    """Return the objects whose true positive has a rival of equal score and another gap."""
    found = np.flatnonzero(matches.outcome == 1)
    holder = np.full(int(matches.claim.max(initial=-1)) + 1, -1)
    holder[matches.claim[found]] = found
    rivals = np.flatnonzero((matches.claim >= 0) & (matches.outcome == 0))
    held = holder[matches.claim[rivals]]
    same_gap = np.isclose(gaps[rivals], gaps[held], rtol=0, atol=0, equal_nan=True)
    return np.unique(matches.claim[rivals[(detections.scores[rivals] == detections.scores[held]) & ~same_gap]])


def histogram(gaps: Floats) -> list[int]:
    """Return the counts of gaps in the 20 bins between `EDGES`: lower edge included, 1.0 in the last bin."""
    counts: list[int] = np.histogram(gaps, EDGES)[0].tolist()
    return counts
