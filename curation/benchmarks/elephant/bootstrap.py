"""Bootstrap confidence intervals of wilderness impact and mAP, over images.

Wilderness levels need the order of the draws: level k is the first n_k images drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.evaluation.matching import Matches, positives, tenth_names
from curation.evaluation.measures import percent
from curation.evaluation.open_set import READINGS, readings
from curation.evaluation.problem import Bools, Detections, Floats, Int64s, Scene
from curation.evaluation.resample import GENERATOR, resample, weights_of
from curation.evaluation.variants import Difficult, Rules

WILDERNESS_DEFINITION = (
    "Percentile bootstrap over images. Each replicate draws as many closed images as there are, and as many "
    "wilderness images as there are, with replacement, the two sets apart. A detection keeps its outcome (matching "
    "is per image); an image drawn twice counts twice. The threshold of each class and recall is read again from the "
    "replicate's closed ranking (first score with 10*TP >= k*n). Wilderness draws keep their slots: level k is the "
    "first n_k images drawn, ratio 1.0 the first n_closed. A list of wilderness images, such as WR1, is drawn apart: "
    "as many images as it has, from these. A replicate in which a number is undefined is counted, and left out of its "
    "interval."
)


def wilderness_intervals(
    scene: Scene,
    matches: Matches,
    *,
    levels: Mapping[str, int],
    recalls_tenths: Sequence[int] = (1, 3, 5),
    replicates: int = 200,
    seed: int = 0,
    difficult: Difficult = "ignore",
    listed: tuple[str, Bools] | None = None,
) -> dict[str, Any]:
    """Return 95 % confidence intervals of WI, AWI and mAP over levels; `WILDERNESS_DEFINITION` describes the draws.

    The same seed gives the same intervals on every machine, for every number of threads and every NumPy version;
    replicate i is the same whatever the number of replicates.

    Parameters
    ----------
    matches : Matches
        Matches of the closed detections; never recomputed.
    levels : mapping of str to int
        Wilderness images n_k of each level, by its name (``"0.1": 495``).
    recalls_tenths : sequence of int
        1, 3, 5 for recall 0.1, 0.3, 0.5.
    replicates : int
        At least 1.
    seed : int
        0 to 2**64 - 1.
    difficult : {"ignore", "count"}
        Treatment of difficult objects in `matches`.
    listed : (str, ndarray of bool), optional
        Name and mask of a list of wilderness images. By default as many images as the closed set has, the first by id
        (``ratio 1.0``).

    Returns
    -------
    dict
        ``intervals``: a row each of WI (by recall, reading and level), AWI (by recall and reading, ``ratio`` being
        ``excl_level0`` or ``incl_level0``), ``mAP11`` and ``mAP_area`` in % (``ratio`` being ``closed``, or the name of
        the list that is added).
        ``estimate`` is from the images as they are, ``undefined`` the number of replicates left out; None where
        undefined, with a ``reason``. Also ``definition``, ``generator``, ``replicates``, ``seed`` and ``confidence``.

    """
    closed, n_wilderness = scene.closed, scene.wilderness.n_images
    counted = positives(closed, Rules(name="", difficult=difficult))
    cell = closed.label[counted].astype(np.int64) * closed.n_images + closed.image[counted]
    by_image = np.bincount(cell, minlength=len(closed.classes) * closed.n_images).reshape(-1, closed.n_images)
    first = np.arange(closed.n_images)
    name, members = ("ratio 1.0", first) if listed is None else (listed[0], np.flatnonzero(listed[1]))
    is_drawn_apart = not np.array_equal(members, first)
    rankings = [_Cuts.of_class(n, scene.inside, matches, scene.outside) for n in range(len(closed.classes))]
    level_sizes = np.array(list(levels.values()), np.int64)
    above = np.array([float(name) > 0 for name in levels], np.bool_)

    def statistics(drawn: Sequence[Int64s]) -> dict[str, Floats]:
        """Return WI (recall, reading, level), AWI (recall, reading, with level 0) and mAP (flavour, place)."""
        weights, slots = weights_of(drawn[0], closed.n_images), drawn[1]
        chosen = members[drawn[2]] if is_drawn_apart else slots[: len(weights)]
        added = weights_of(chosen, n_wilderness)
        # For each recall and class with a threshold: TP, TP + FP, then FP_o of each level.
        points: list[list[Int64s]] = [[] for _ in recalls_tenths]
        precisions = []
        for ranking, n in zip(rankings, (by_image @ weights).tolist(), strict=True):
            if n == 0:
                continue
            tp, detected = ranking.closed_counts(weights)
            wild = ranking.wilderness_counts(added)
            precisions.append([_average_precisions(tp, detected, n), _average_precisions(tp, detected + wild, n)])
            for row, tenths in enumerate(recalls_tenths):
                reached = np.flatnonzero(tp * 10 >= tenths * n)
                if len(reached):
                    point = reached[0]
                    opened = ranking.false_positives(point, slots, level_sizes, n_wilderness)
                    points[row].append(np.concatenate([[tp[point], detected[point]], opened]))
        impact = np.stack([_impacts(np.array(rows, np.int64).reshape(-1, len(levels) + 2)) for rows in points])
        mean = np.array(precisions).mean(axis=0).T if precisions else np.full((2, 2), np.nan)
        if not is_drawn_apart and n_wilderness < len(weights):
            mean[:, 1] = np.nan
        return {"WI": impact, "AWI": _averages(impact, above), "mAP": mean}

    sizes = (closed.n_images, n_wilderness, *([len(members)] if is_drawn_apart else []))
    resampled = resample(statistics, sizes, replicates=replicates, seed=seed)
    cells = {name: resampled.intervals(name) for name in resampled.estimate}
    return {
        "definition": WILDERNESS_DEFINITION,
        "generator": GENERATOR.format("image count"),
        "replicates": replicates,
        "seed": seed,
        "confidence": "0.95",
        "intervals": list(_interval_rows(cells, list(levels), tenth_names(recalls_tenths), name)),
    }


def _interval_rows(
    cells: Mapping[str, Any], levels: Sequence[str], recalls: Sequence[str], added: str
) -> Iterator[dict[str, Any]]:
    ratios = {"WI": levels, "AWI": ("excl_level0", "incl_level0")}
    rows = [
        (name, recall, reading, ratio, cells[name][row, column, k])
        for name in ratios
        for row, recall in enumerate(recalls)
        for column, reading in enumerate(READINGS)
        for k, ratio in enumerate(ratios[name])
    ]
    rows += [
        (name, "", "", ratio, cells["mAP"][row, column])
        for row, name in enumerate(("mAP11", "mAP_area"))
        for column, ratio in enumerate(("closed", added))
    ]
    for name, recall, reading, ratio, cell in rows:
        missing = cell["estimate"] is None or cell["low"] is None
        scaled = {key: percent(cell[key]) if recall == "" else cell[key] for key in ("estimate", "low", "high")}
        yield {
            "measure": name,
            "recall": recall,
            "over_classes": reading,
            "ratio": ratio,
            **scaled,
            "undefined": cell["undefined"],
            "reason": "no class reaches the recall, or there are fewer wilderness images than needed"
            if missing
            else "",
        }


@dataclass(frozen=True, slots=True)
class _Cuts:
    """One class by falling score, cut behind each distinct score of the closed set."""

    image: Int64s
    correct: Bools
    ends: Int64s
    wild_image: Int64s
    wild_ends: Int64s

    @classmethod
    def of_class(cls, number: int, closed: Detections, matches: Matches, wilderness: Detections) -> _Cuts:
        rows = np.flatnonzero((closed.label == number) & (matches.outcome >= 0))
        rows = rows[np.argsort(-closed.scores[rows], kind="stable")]
        wild = np.flatnonzero(wilderness.label == number)
        wild = wild[np.argsort(-wilderness.scores[wild], kind="stable")]
        cuts = np.unique(-closed.scores[rows])
        return cls(
            image=closed.image[rows].astype(np.int64),
            correct=matches.outcome[rows] == 1,
            ends=np.searchsorted(-closed.scores[rows], cuts, side="right"),
            wild_image=wilderness.image[wild].astype(np.int64),
            wild_ends=np.searchsorted(-wilderness.scores[wild], cuts, side="right"),
        )

    def closed_counts(self, weights: Int64s) -> tuple[Int64s, Int64s]:
        """Return TP and TP + FP at each cut."""
        counts = weights[self.image]
        return np.cumsum(counts * self.correct)[self.ends - 1], np.cumsum(counts)[self.ends - 1]

    def wilderness_counts(self, weights: Int64s) -> Int64s:
        """Return FP_o at each cut, each wilderness image counting `weights` times."""
        counts: Int64s = np.append(0, np.cumsum(weights[self.wild_image]))[self.wild_ends]
        return counts

    def false_positives(self, point: int, slots: Int64s, sizes: Int64s, n_images: int) -> Int64s:
        """Return FP_o at one cut for the first n_k slots of each level."""
        by_image = np.bincount(self.wild_image[: self.wild_ends[point]], minlength=n_images)
        counts: Int64s = np.append(0, np.cumsum(by_image[slots[: sizes.max(initial=0)]]))[sizes]
        return counts


def _average_precisions(tp: Int64s, detected: Int64s, n: int) -> tuple[float, float]:
    """Return 11-point and area AP from the counts at each cut."""
    if not len(tp):
        return 0.0, 0.0
    # The same as `eleven_point` and `area` of curves at one level, by one search: a replicate takes a third less time.
    envelope = np.maximum.accumulate((tp / np.maximum(detected, 1))[::-1])[::-1]
    first = np.searchsorted(tp * 10, np.arange(11) * n)
    eleven = np.append(envelope, 0.0)[first].mean()
    area = (np.diff(tp, prepend=0) * envelope).sum() / n
    return float(eleven), float(area)


def _impacts(points: Int64s) -> Floats:
    """Return the readings of WI, shape (3, levels), from rows of TP, TP + FP, FP_o per level."""
    if not len(points):
        return np.full((len(READINGS), points.shape[1] - 2), np.nan)
    return np.stack(list(readings(points[:, 0], points[:, 1], points[:, 2:]).values()))


def _averages(impact: Floats, above: Bools) -> Floats:
    """Return AWI without and with level 0, shape (recalls, readings, 2); undefined without a level above 0."""
    nothing = np.full(impact.shape[:2], np.nan)
    without = impact[:, :, above].mean(axis=2) if above.any() else nothing
    return np.stack([without, impact.mean(axis=2) if len(above) else nothing], axis=2)
