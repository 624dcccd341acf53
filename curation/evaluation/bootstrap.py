"""Bootstrap confidence intervals over images for wilderness impact, its average, and mean average precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import EvaluationError, UsageError
from curation.evaluation.columns import Bools, Detections, Floats, GroundTruth, Int64s
from curation.evaluation.matching import Matches, positives
from curation.evaluation.variants import Difficult, Rules

UInt64s = npt.NDArray[np.uint64]
READINGS = ("macro", "pooled", "ratio_of_mean_precision")
DEFINITION = (
    "Percentile bootstrap over images. Each replicate draws as many closed images as there are, and as many "
    "wilderness images as there are, with replacement, the two sets apart. A detection keeps its outcome (matching "
    "is per image); an image drawn twice counts twice. The threshold of each class and recall is read again from the "
    "replicate's closed ranking (first score with 10*TP >= k*n). Wilderness draws keep their slots: level k is the "
    "first n_k images drawn, WR1 the first n_closed. A replicate in which a number is undefined is counted, and left "
    "out of its interval."
)
GENERATOR = "Philox4x64-10, key (seed, replicate), high 32 bits of each word scaled to the image count"


@dataclass(frozen=True, slots=True)
class _Drawn:
    """One replicate: how often each closed image was drawn, and the wilderness image in each slot."""

    weights: Int64s
    slots: Int64s


def bootstrap_intervals(
    closed: GroundTruth,
    closed_detections: Detections,
    matches: Matches,
    wilderness: GroundTruth,
    wilderness_detections: Detections,
    *,
    levels: Mapping[str, int],
    recalls_tenths: Sequence[int] = (1, 3, 5),
    replicates: int = 200,
    seed: int = 0,
    confidence: str = "0.95",
    difficult: Difficult = "ignore",
) -> dict[str, Any]:
    """Return confidence intervals of the ``paper`` profile's WI, AWI and mAP; `DEFINITION` says what is drawn.

    The same seed gives the same intervals on every machine, for every number of threads and every NumPy version;
    replicate i is the same whatever the number of replicates.

    Parameters
    ----------
    matches : Matches
        Of the closed detections; never recomputed.
    levels : mapping of str to int
        Wilderness images n_k of each level, by its name (``"0.1": 495``).
    recalls_tenths : sequence of int
        1, 3, 5 for recall 0.1, 0.3, 0.5.
    replicates : int
        At least 1.
    seed : int
        0 to 2**64 - 1.
    confidence : str
        Decimal text between 0 and 1.
    difficult : {"ignore", "count"}
        As `matches` was made.

    Returns
    -------
    dict
        ``WI[recall][reading]``: a list over the levels; ``AWI[recall][reading]["excl_level0" | "incl_level0"]``;
        ``mAP11`` and ``mAP_area``, each with ``closed`` and ``wr1``. Every entry is ``{"estimate", "low", "high",
        "undefined"}`` (and ``level``): `estimate` from the images as they are, `undefined` the number of replicates
        left out; None where undefined, with a ``reason``. Also ``definition``, ``generator``, ``replicates``, ``seed``
        and ``confidence``.

    Raises
    ------
    UsageError
        Parameters out of range.
    EvaluationError
        A level needs more wilderness images than there are, or `matches` was made with another `difficult`.
    """
    _check(replicates, seed, levels, wilderness.n_images)
    tail = tail_of(confidence)
    sampler = _Sampler(
        closed, closed_detections, matches, wilderness, wilderness_detections,
        levels=levels, recalls_tenths=recalls_tenths, difficult=difficult,
    )  # fmt: skip
    estimate = sampler.statistics(_identity(closed.n_images, wilderness.n_images))
    samples = [
        sampler.statistics(drawn) for drawn in _draws(closed.n_images, wilderness.n_images, replicates, seed)
    ]
    cells = {
        name: _intervals(value, np.stack([s[name] for s in samples]), tail)
        for name, value in estimate.items()
    }
    return {
        "definition": DEFINITION,
        "generator": GENERATOR,
        "replicates": replicates,
        "seed": seed,
        "confidence": confidence,
        **_named(cells, list(levels), [f"{tenths // 10}.{tenths % 10}" for tenths in recalls_tenths]),
    }


def draw_images(n: int, count: int, words: UInt64s) -> Int64s:
    """Return `count` image positions below `n` from the first `count` random 64-bit words."""
    # Not Generator.integers: NumPy promises the words of a bit generator for ever, but not what is made of them.
    scaled = (words[:count] >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)
    return scaled.astype(np.int64)


def _draws(n_closed: int, n_wilderness: int, replicates: int, seed: int) -> Any:
    from tqdm import tqdm

    for replicate in tqdm(range(replicates), desc="bootstrap", unit="replicate", disable=None, leave=False):
        bits = np.random.Philox(key=np.array([seed, replicate], np.uint64))
        closed = draw_images(n_closed, n_closed, bits.random_raw(n_closed))
        slots = draw_images(n_wilderness, n_wilderness, bits.random_raw(n_wilderness))
        yield _Drawn(np.bincount(closed, minlength=n_closed), slots)


def _identity(n_closed: int, n_wilderness: int) -> _Drawn:
    return _Drawn(np.ones(n_closed, np.int64), np.arange(n_wilderness))


class _Sampler:
    """The statistics of a replicate, from detections sorted once."""

    def __init__(
        self,
        closed: GroundTruth,
        closed_detections: Detections,
        matches: Matches,
        wilderness: GroundTruth,
        wilderness_detections: Detections,
        *,
        levels: Mapping[str, int],
        recalls_tenths: Sequence[int],
        difficult: Difficult,
    ) -> None:
        self.sizes = np.array(list(levels.values()), np.int64)
        self.above = np.array([float(name) > 0 for name in levels], np.bool_)
        self.recalls = tuple(recalls_tenths)
        self.n_wilderness = wilderness.n_images
        self.has_wr1 = wilderness.n_images >= closed.n_images
        self.positives = _positives(closed, matches, difficult)
        self.rankings = [
            _Ranking.of_class(number, closed_detections, matches, wilderness_detections)
            for number in range(len(closed.classes))
        ]

    def statistics(self, drawn: _Drawn) -> dict[str, Floats]:
        """Return WI (recall, reading, level), AWI (recall, reading, with level 0) and mAP (flavour, place)."""
        positives = self.positives @ drawn.weights
        wr1 = np.bincount(drawn.slots[: len(drawn.weights)], minlength=self.n_wilderness)
        recalls, levels = len(self.recalls), len(self.sizes)
        # Per recall and class with a threshold: TP, TP + FP, then FP_o of each level.
        points: list[list[Int64s]] = [[] for _ in range(recalls)]
        precisions = []
        for ranking, n in zip(self.rankings, positives.tolist(), strict=True):
            if n == 0:
                continue
            tp, kept = ranking.closed_counts(drawn.weights)
            wild = ranking.wilderness_counts(wr1)
            precisions.append([_average_precisions(tp, kept, n), _average_precisions(tp, kept + wild, n)])
            for row, tenths in enumerate(self.recalls):
                reached = np.flatnonzero(tp * 10 >= tenths * n)
                if len(reached):
                    point = reached[0]
                    opened = ranking.false_positives(point, drawn.slots, self.sizes, self.n_wilderness)
                    points[row].append(np.concatenate([[tp[point], kept[point]], opened]))
        impact = np.stack([_impacts(np.array(rows, np.int64).reshape(-1, levels + 2)) for rows in points])
        mean = np.array(precisions).mean(axis=0).T if precisions else np.full((2, 2), np.nan)
        if not self.has_wr1:
            mean[:, 1] = np.nan
        return {"WI": impact, "AWI": _averages(impact, self.above), "mAP": mean}


@dataclass(frozen=True, slots=True)
class _Ranking:
    """One class by falling score, cut where a distinct score holds a true positive.

    Only there can a threshold lie or the precision envelope have a corner, so counts are needed nowhere else.
    """

    image: Int64s
    starts: Int64s
    tp_image: Int64s
    tp_starts: Int64s
    wild_image: Int64s
    wild_ends: Int64s

    @classmethod
    def of_class(cls, number: int, closed: Detections, matches: Matches, wilderness: Detections) -> _Ranking:
        rows = np.flatnonzero((closed.label == number) & (matches.outcome >= 0))
        rows = rows[np.argsort(-closed.scores[rows], kind="stable")]
        scores, correct = closed.scores[rows], matches.outcome[rows] == 1
        ends, tp_ends, cuts = _cuts(scores, correct)
        wild = np.flatnonzero(wilderness.label == number)
        wild = wild[np.argsort(-wilderness.scores[wild], kind="stable")]
        image = closed.image[rows].astype(np.int64)
        return cls(
            image=image[: ends[-1] if len(ends) else 0],
            starts=_starts(ends),
            tp_image=image[correct],
            tp_starts=_starts(tp_ends),
            wild_image=wilderness.image[wild].astype(np.int64),
            wild_ends=np.searchsorted(-wilderness.scores[wild], -cuts, side="right").astype(np.int64),
        )

    def closed_counts(self, weights: Int64s) -> tuple[Int64s, Int64s]:
        """Return TP and TP + FP at each cut."""
        if not len(self.starts):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        tp = np.add.reduceat(weights[self.tp_image], self.tp_starts)
        kept = np.add.reduceat(weights[self.image], self.starts)
        return np.cumsum(tp), np.cumsum(kept)

    def wilderness_counts(self, weights: Int64s) -> Int64s:
        """Return FP_o at each cut, each wilderness image counting `weights` times."""
        cumulated = np.concatenate([[0], np.cumsum(weights[self.wild_image])])
        counts: Int64s = cumulated[self.wild_ends]
        return counts

    def false_positives(self, point: int, slots: Int64s, sizes: Int64s, n_images: int) -> Int64s:
        """Return FP_o at one cut for the first n_k slots of each level."""
        by_image = np.bincount(self.wild_image[: self.wild_ends[point]], minlength=n_images)
        cumulated = np.concatenate([[0], np.cumsum(by_image[slots[: sizes.max(initial=0)]])])
        counts: Int64s = cumulated[sizes]
        return counts


def _cuts(scores: Floats, correct: Bools) -> tuple[Int64s, Int64s, Floats]:
    """Return where each distinct score with a true positive ends among all and among the true positives, and it."""
    cuts = np.unique(scores[correct])[::-1]
    ends = np.searchsorted(-scores, -cuts, side="right")
    tp_ends = np.searchsorted(-scores[correct], -cuts, side="right")
    return ends, tp_ends, cuts


def _starts(ends: Int64s) -> Int64s:
    return np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else np.zeros(0, np.int64)


def _positives(truth: GroundTruth, matches: Matches, difficult: Difficult) -> Int64s:
    """Return the positives of each class in each image, shape (K, n_images)."""
    counted = positives(truth, Rules(name="", difficult=difficult))
    cell = truth.label[counted].astype(np.int64) * truth.n_images + truth.image[counted]
    by_image = np.bincount(cell, minlength=len(truth.classes) * truth.n_images).reshape(-1, truth.n_images)
    if not np.array_equal(by_image.sum(axis=1), matches.n_positive):
        raise EvaluationError(
            "The matches were not made with this treatment of difficult objects",
            expected=f"difficult={difficult!r} in match() and here",
            found=f"{int(matches.n_positive.sum())} positives against {int(by_image.sum())}",
        )
    return by_image


def _average_precisions(tp: Int64s, kept: Int64s, n: int) -> tuple[float, float]:
    """Return 11-point and area AP from the counts at each cut."""
    if not len(tp):
        return 0.0, 0.0
    envelope = np.maximum.accumulate((tp / np.maximum(kept, 1))[::-1])[::-1]
    first = np.searchsorted(tp * 10, np.arange(11) * n)
    eleven = np.append(envelope, 0.0)[first].mean()
    area = (np.diff(tp, prepend=0) * envelope).sum() / n
    return float(eleven), float(area)


def _impacts(points: Int64s) -> Floats:
    """Return the three readings of WI, shape (3, levels), from rows of TP, TP + FP, FP_o per level."""
    if not len(points):
        return np.full((len(READINGS), points.shape[1] - 2), np.nan)
    tp, kept, opened = points[:, :1], points[:, 1:2], points[:, 2:]
    ratio = (tp / kept).mean() / (tp / (kept + opened)).mean(axis=0) - 1
    return np.stack([(opened / kept).mean(axis=0), opened.sum(axis=0) / kept.sum(), ratio])


def _averages(impact: Floats, above: Bools) -> Floats:
    """Return AWI without and with level 0, shape (recalls, readings, 2); undefined without a level above 0."""
    nothing = np.full(impact.shape[:2], np.nan)
    without = impact[:, :, above].mean(axis=2) if above.any() else nothing
    return np.stack([without, impact.mean(axis=2) if len(above) else nothing], axis=2)


def _intervals(estimate: Floats, samples: Floats, tail: float) -> Any:
    """Return an array of interval dicts, of the shape of `estimate`."""
    cells = np.empty(estimate.shape, object)
    for place in np.ndindex(estimate.shape):
        values = samples[(slice(None), *place)]
        cells[place] = _interval(float(estimate[place]), values[np.isfinite(values)], len(values), tail)
    return cells


def _interval(estimate: float, values: Floats, n: int, tail: float) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "estimate": estimate if np.isfinite(estimate) else None,
        "low": None,
        "high": None,
    }
    cell["undefined"] = n - len(values)
    if len(values):
        low, high = np.quantile(values, [tail, 1 - tail])
        cell |= {"low": float(low), "high": float(high)}
    if cell["estimate"] is None or cell["low"] is None:
        cell["reason"] = "no class reaches the recall, or there are fewer wilderness images than needed"
    return cell


def _named(cells: Mapping[str, Any], levels: Sequence[str], recalls: Sequence[str]) -> dict[str, Any]:
    named: dict[str, Any] = {"WI": {}, "AWI": {}}
    for row, recall in enumerate(recalls):
        named["WI"][recall] = {
            reading: [{"level": level, **cells["WI"][row, column, k]} for k, level in enumerate(levels)]
            for column, reading in enumerate(READINGS)
        }
        named["AWI"][recall] = {
            reading: dict(zip(("excl_level0", "incl_level0"), cells["AWI"][row, column], strict=True))
            for column, reading in enumerate(READINGS)
        }
    for row, flavour in enumerate(("mAP11", "mAP_area")):
        named[flavour] = dict(zip(("closed", "wr1"), cells["mAP"][row], strict=True))
    return named


def _check(replicates: int, seed: int, levels: Mapping[str, int], n_wilderness: int) -> None:
    if replicates < 1:
        raise UsageError("The bootstrap needs replicates", expected="1 or more", found=str(replicates))
    if not 0 <= seed < 2**64:
        raise UsageError(
            "The seed is out of range", expected="0 to 18446744073709551615", found=str(seed)[:40]
        )
    for level, size in levels.items():
        if not 0 <= size <= n_wilderness:
            raise EvaluationError(
                "A wilderness level needs more images than there are",
                where=f"level {level}",
                expected=f"at most {n_wilderness} wilderness images",
                found=str(size),
            )


def tail_of(confidence: str) -> float:
    """Return the share of replicates beyond each end of an interval; a confidence out of range is a `UsageError`."""
    try:
        value = (
            Fraction(confidence) if len(confidence) <= 12 and "e" not in confidence.lower() else Fraction(0)
        )
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not 0 < value < 1:
        raise UsageError(
            "The confidence is not usable",
            expected="a decimal number between 0 and 1",
            found=repr(confidence)[:80],
        )
    return float((1 - value) / 2)
