"""Speed of OSCR at full size, against one pass of NumPy over the same scores and against a loop over thresholds.

100,000 samples of 1,000 classes in float32: the floor is one ``argmax`` over the table and one sort of the highest
scores, the least that any evaluator has to do. The loop is written as the official code is: for every threshold it
counts, over all samples, which pass. It is compared from the columns on (answer, own score, highest score of each
sample), and as a whole: in the whole, most of our time is the argmax that both need.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from curation.evaluation.class_scores import Kind, class_scores
from curation.evaluation.oscr import margins_of, oscr, oscr_curve
from tests.benchmarks.measured import measured

SAMPLES, CLASSES, LOOP_SAMPLES, REPEATS = 100_000, 1_000, 20_000, 5


def run(out: Path) -> list[dict[str, Any]]:
    """Return one row a measurement; `out` is not used, the scores are drawn in memory."""
    labels, scores = _drawn(SAMPLES, CLASSES)
    floor, ours = _best_of_pairs(lambda: _one_pass(scores), lambda: _curve(labels, scores, "real"))
    softmax = _timed(lambda: _curve(labels, scores, "logits"))[0]
    few_labels, few = labels[:LOOP_SAMPLES], scores[:LOOP_SAMPLES]
    data = class_scores(few_labels, few)
    columns = _columns(few_labels, few)
    loop, points = _timed(lambda: _loop(*columns))
    _check(few_labels, few, points)
    whole, _ = _timed(lambda: _loop(*_columns(few_labels, few)))
    fast = _best(lambda: oscr_curve(margins_of(data, "unknown")))
    ours_whole = _best(lambda: _curve(few_labels, few, "real"))
    grids = _best(lambda: [oscr(data, "unknown", variant=grid) for grid in ("exact", "paper", "comparison")])
    note = f"{SAMPLES:,} samples, {CLASSES:,} classes, float32, from arrays, checks included"
    small = f"{LOOP_SAMPLES:,} samples, {len(points):,} thresholds"
    with_table = f"{small}, from {CLASSES:,} columns of float32"
    return [
        measured("argmax of every row, sort of the highest scores", floor, note=note),
        measured("checked scores and exact curve", ours, note=note),
        measured("the same from logits, softmax included", softmax, note=note),
        measured("checked scores and curve / argmax and sort", ours / floor, note=note, most=2.0),
        measured("loop over thresholds", loop, note=small),
        measured("exact curve", fast, note=small),
        measured("loop / exact curve", loop / fast, note=small, least=100.0),
        measured("argmax and loop / checked scores and curve", whole / ours_whole, note=with_table),
        measured("three grids with rates by class", grids, note=small),
    ]


def _curve(labels: Any, scores: Any, kind: Kind) -> Any:
    return oscr_curve(margins_of(class_scores(labels, scores, kind=kind), "unknown"))


def _one_pass(scores: Any) -> Any:
    best = scores.argmax(axis=1)
    return best, np.sort(scores[np.arange(len(scores)), best])


def _columns(labels: Any, scores: Any) -> tuple[Any, Any, Any]:
    """Return whether each known sample is right, its own class's score, and the highest score of each unknown one."""
    known = labels >= 0
    right = scores[known].argmax(axis=1) == labels[known]
    return right, scores[known, labels[known]], scores[labels == -2].max(axis=1)


def _loop(right: Any, target: Any, highest: Any) -> list[tuple[float, float]]:
    """Return (CCR, FPR) at every distinct score of a known sample's own class, counted anew at each."""
    points = []
    for threshold in np.unique(target)[:-1]:
        correct = np.sum(right & (target > threshold))
        points.append((float(correct / len(target)), float(np.sum(highest > threshold) / len(highest))))
    return points


def _check(labels: Any, scores: Any, points: list[tuple[float, float]]) -> None:
    """Raise unless the loop and our curve on its thresholds are the same: else the ratio would mean nothing."""
    curve = oscr_curve(margins_of(class_scores(labels, scores), "unknown"), "paper")
    if curve is None or points != list(zip(curve.ccr.tolist(), curve.fpr.tolist(), strict=True)):
        raise AssertionError("the loop over thresholds and the curve disagree")


def _drawn(n: int, classes: int) -> tuple[Any, Any]:
    """Return labels (half known, a quarter negative and unknown each) and scores whose true class stands out."""
    rng = np.random.default_rng(11)
    labels = np.where(rng.random(n) < 0.5, rng.integers(0, classes, n), rng.choice([-1, -2], n))
    scores = rng.standard_normal((n, classes), np.float32)
    known = np.flatnonzero(labels >= 0)
    scores[known, labels[known]] += np.float32(3)
    return labels, scores


def _best_of_pairs(one: Callable[[], Any], other: Callable[[], Any]) -> tuple[float, float]:
    """Return the least seconds of each, taken in turns so that a busy machine hits both."""
    times = [(_timed(one)[0], _timed(other)[0]) for _ in range(REPEATS)]
    return min(first for first, _ in times), min(second for _, second in times)


def _best(work: Callable[[], Any]) -> float:
    return min(_timed(work)[0] for _ in range(REPEATS))


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result
