"""How unknown objects fare in one OWOD task: found as unknown, taken for a known class, or missed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.evaluation.columns import Bools, Floats, Int64s
from curation.evaluation.outcomes import Outcomes
from curation.evaluation.task_truth import TaskTruth


@dataclass(frozen=True, slots=True)
class Targets:
    """The N unknown objects that count, one entry each.

    Attributes
    ----------
    position : ndarray of int64, shape (N,)
        In the ground truth.
    copies : ndarray of int64, shape (N,)
        Lines of the image list that name its image.
    found_at : ndarray of float64, shape (N,)
        Score of the unknown detection that found it, -inf where none did.
    called_at, called_wrongly_at : ndarray of float64, shape (N,)
        Highest score of a detection of a known class on it, of any and of those that are no true positive; -inf where
        there is none.
    """

    position: Int64s
    copies: Int64s
    found_at: Floats
    called_at: Floats
    called_wrongly_at: Floats


def targets(truth: TaskTruth, found: Outcomes) -> Targets:
    """Return the unknown objects that count, with the scores at which each is found and called known."""
    size = len(found.target)
    found_at, called_at, wrongly_at = (np.full(size, -np.inf) for _ in range(3))
    right = np.flatnonzero((found.outcome == 1) & (found.label == truth.unknown))
    found_at[found.taken[right]] = found.scores[right]
    rows, position = found.pairs.row, found.pairs.position
    np.maximum.at(called_at, position, found.scores[rows])
    wrong = found.outcome[rows] != 1
    np.maximum.at(wrongly_at, position[wrong], found.scores[rows[wrong]])
    place = np.flatnonzero(found.target)
    copies = truth.lines[truth.truth.image[place]]
    return Targets(place, copies, found_at[place], called_at[place], wrongly_at[place])


def unknown_counts(one: Targets, rows: Bools | slice = slice(None)) -> dict[str, Any]:
    """Return how many unknown objects are found, called known and missed, and the rates that follow, in percent.

    An object counts once for each line that names its image, and is found once: its further copies are in FN_u.
    ``FN_u_star``: the copies of objects that were not found and have a detection of a known class on them; those of an
    object that was found are not among them. ``UR = UDR * UDP`` whenever all three are defined (Revisiting Open World
    Object Detection, section 5.1).
    """
    copies = one.copies[rows]
    found = np.isfinite(one.found_at[rows])
    missed = np.where(found, 0, copies)
    n, tp = int(copies.sum()), int(found.sum())
    result: dict[str, Any] = {
        "num_unknown_gt": n,
        "TP_u": tp,
        "FN_u": n - tp,
        "UR": _percent(tp, n),
        "A_OSE_objects": int(copies[np.isfinite(one.called_at[rows])].sum()),
    }
    for suffix, called in (("", one.called_at[rows]), ("_excl_known_tp", one.called_wrongly_at[rows])):
        star = int(missed[np.isfinite(called)].sum())
        result |= {
            f"FN_u_star{suffix}": star,
            f"UDR{suffix}": _percent(tp + star, n),
            f"UDP{suffix}": _percent(tp, tp + star) if n else None,
        }
    return result


def unknown_by_class(truth: TaskTruth, found: Outcomes, one: Targets) -> dict[str, dict[str, Any]] | None:
    """Return `unknown_counts` and ``A_OSE_detections`` of each original class of unknown objects, by name.

    A detection counts for the class of the first object of highest IoU that it lies on. None where the ground truth
    does not say what its unknown objects are.
    """
    originals = truth.truth.original
    if originals is None or not all(originals[place] for place in one.position.tolist()):
        return None
    names, kind = np.unique(np.array(originals, object), return_inverse=True)
    detections = _kinds_hit(found, kind, len(names))
    return {
        names[number]: {
            **unknown_counts(one, kind[one.position] == number),
            "A_OSE_detections": int(detections[number]),
        }
        for number in np.unique(kind[one.position]).tolist()
    }


def operating_curve(one: Targets, found: Outcomes, unknown: int) -> dict[str, list[Any]]:
    """Return what keeping detections of score >= s gives, for falling s.

    Scores are those at which an unknown object is found or first called known, and the lowest of all detections (the
    operating point).

    Returns
    -------
    dict
        Equally long lists ``score``, ``TP_u``, ``unknown_detections`` (true and false positives), ``UR``,
        ``P_unknown``, ``FN_u_star``, ``UDR``, ``UDP``: percent, None where undefined.
    """
    n = int(one.copies.sum())
    counted = found.scores[(found.label == unknown) & (found.outcome >= 0)]
    told = np.concatenate([one.found_at, one.called_at, found.scores.min(keepdims=True, initial=np.inf)])
    limits = np.unique(told[np.isfinite(told)])[::-1]
    called = _at_least(one.called_at, one.copies, limits)
    both = _at_least(np.minimum(one.called_at, one.found_at), one.copies, limits)
    tp = _at_least(one.found_at, np.ones_like(one.copies), limits)
    kept = _at_least(counted, np.ones(len(counted), np.int64), limits)
    star = [a - b for a, b in zip(called, both, strict=True)]
    return {
        "score": limits.tolist(),
        "TP_u": tp,
        "unknown_detections": kept,
        "UR": [_percent(a, n) for a in tp],
        "P_unknown": [_percent(a, b) for a, b in zip(tp, kept, strict=True)],
        "FN_u_star": star,
        "UDR": [_percent(a + b, n) for a, b in zip(tp, star, strict=True)],
        "UDP": [_percent(a, a + b) if n else None for a, b in zip(tp, star, strict=True)],
    }


def _at_least(scores: Floats, weights: Int64s, limits: Floats) -> list[int]:
    """Return the summed weight of the entries with score >= each limit."""
    order = np.argsort(scores, kind="stable")
    total = np.append(0, np.cumsum(weights[order]))
    counts: list[int] = (total[-1] - total[np.searchsorted(scores[order], limits)]).tolist()
    return counts


def _kinds_hit(found: Outcomes, kind: Int64s, n_kinds: int) -> Int64s:
    """Return how many detections of known classes lie on each kind of object, by the best object of each."""
    pairs = found.pairs
    best = np.lexsort((pairs.position, -pairs.iou, pairs.row))
    _, first = np.unique(pairs.row[best], return_index=True)
    return np.bincount(kind[pairs.position[best[first]]], minlength=n_kinds)


def _percent(above: int, below: int) -> float | None:
    return 100 * above / below if below else None
