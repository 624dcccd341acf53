"""Background gap: how far correct detections stand above the background score (Elephant paper, Fig. 8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from curation.evaluation.columns import Detections, Floats, GroundTruth, Int32s
from curation.evaluation.matching import Matches

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
    by_order = np.bincount(
        truth.label[_claimed_equally(gaps, detections, matches)], minlength=len(truth.classes)
    )
    return {
        name: _spread(gaps[correct & (detections.label == number)])
        | {"decided_by_input_order": int(by_order[number])}
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
