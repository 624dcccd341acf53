"""Open-set accuracy: one number at one threshold for known samples answered right and others rejected (OSA, OOSA)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from curation.evaluation.class_scores import ClassScores, Floats
from curation.evaluation.oscr import Margins, margins_of

Rule = Literal["strict", "inclusive"]
RULES: dict[str, str] = {
    "strict": "a sample passes with score > threshold; thresholds are all scores of right answers and of "
    "the other group, "
    "and minus infinity",
    "inclusive": "a sample passes with score >= threshold; thresholds are the true-class scores of all "
    "known samples and "
    "the scores of the other group (the os-ovr code's reading)",
}
DEFINITION = (
    "OSA(t) = (known samples answered right that pass + samples of the group that do not pass) / all "
    "samples of both, "
    "that is a CCR(t) + (1 - a) (1 - FPR(t)) with a = N_known / (N_known + N_group). iosa: its maximum over "
    "t on the same "
    "data. oosa: OSA at the t that maximises it on the validation set (known and negative samples). Of "
    "equal maxima the "
    "lowest t. A threshold of None lets everything pass"
)


def openset_accuracy(
    test: ClassScores, group: str, validation: ClassScores | None = None, *, rule: Rule = "strict"
) -> dict[str, Any]:
    """Return OSA of known samples and one group.

    Parameters
    ----------
    group : {"negative", "unknown"}
    validation : ClassScores, optional
        Known and negative samples on which OOSA's threshold is chosen.

    Returns
    -------
    dict
        ``iosa`` with ``iosa_threshold``; ``oosa`` with ``oosa_threshold``; undefined is None, with ``reason``.
    """
    margins = margins_of(test, group)
    chosen = None if validation is None else best_threshold(margins_of(validation, "negative"), rule)
    result: dict[str, Any] = dict.fromkeys(("iosa", "iosa_threshold", "oosa", "oosa_threshold"))
    if not margins.n_known or not len(margins.other):
        return result | {
            "reason": "no sample of a known class" if not margins.n_known else f"no {group} sample"
        }
    best = best_threshold(margins, rule)
    if best is not None:
        result |= {"iosa": accuracy_at(margins, best, rule), "iosa_threshold": _finite(best)}
    if chosen is None:
        missing = (
            "no validation scores" if validation is None else "no known or no negative sample in validation"
        )
        return result | {"reason": f"oosa: {missing}"}
    return result | {"oosa": accuracy_at(margins, chosen, rule), "oosa_threshold": _finite(chosen)}


def best_threshold(margins: Margins, rule: Rule = "strict") -> float | None:
    """Return the lowest of the thresholds with the highest OSA; None where a group is empty."""
    if not margins.n_known or not len(margins.other):
        return None
    if rule == "strict":
        thresholds = np.concatenate([[-np.inf], np.union1d(margins.correct, margins.other)])
    else:
        thresholds = np.union1d(margins.target, margins.other)
    return float(thresholds[np.argmax(_hits(margins, thresholds, rule))])


def accuracy_at(margins: Margins, threshold: float, rule: Rule = "strict") -> float:
    """Return OSA at a threshold; both groups must have samples."""
    hits = int(_hits(margins, np.array([threshold]), rule)[0])
    return hits / (margins.n_known + len(margins.other))


def _hits(margins: Margins, thresholds: Floats, rule: Rule) -> Any:
    side: Literal["left", "right"] = "right" if rule == "strict" else "left"
    passed = len(margins.correct) - np.searchsorted(margins.correct, thresholds, side=side)
    return passed + np.searchsorted(margins.other, thresholds, side=side)


def _finite(threshold: float) -> float | None:
    return threshold if np.isfinite(threshold) else None
