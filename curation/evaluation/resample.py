"""Bootstrap confidence intervals, over images or classes, of every measure that has them.

Draws come from a counter: replicate i of a seed is the same on every machine, for every number of replicates or threads
and every NumPy version. Each measure is derived again from weights, how often each image or class was drawn. Wilderness
levels are the exception: level k is the first n_k images drawn, so that they need the slots of the draw themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.core.errors import EvaluationError, UsageError
from curation.evaluation.class_scores import GROUPS, ClassScores
from curation.evaluation.curves import weighted_auroc
from curation.evaluation.matching import Matches, positives, tenth_names
from curation.evaluation.measures import percent
from curation.evaluation.open_set import READINGS, readings
from curation.evaluation.oscr import QUERIES, read_query
from curation.evaluation.problem import Bools, Detections, Floats, GroundTruth, Int64s
from curation.evaluation.variants import Difficult, Rules

UInt64s = npt.NDArray[np.uint64]
Statistics = Mapping[str, Any]
GENERATOR = "Philox4x64-10, key (seed, replicate), high 32 bits of each word scaled to the {}"
WILDERNESS_DEFINITION = (
    "Percentile bootstrap over images. Each replicate draws as many closed images as there are, and as many "
    "wilderness images as there are, with replacement, the two sets apart. A detection keeps its outcome (matching "
    "is per image); an image drawn twice counts twice. The threshold of each class and recall is read again from the "
    "replicate's closed ranking (first score with 10*TP >= k*n). Wilderness draws keep their slots: level k is the "
    "first n_k images drawn, ratio 1.0 the first n_closed. A list of wilderness images, such as WR1, is drawn apart: "
    "as many images as it has, from these. A replicate in which a number is undefined is counted, and left out of its "
    "interval."
)
CLASS_DEFINITION = (
    "Percentile bootstrap over classes. Each replicate draws as many known, negative and unknown classes as have "
    "samples, with replacement, the three apart; a class drawn twice counts twice, with all its samples. Where the "
    "original classes of negative or unknown samples are not told, samples are drawn in their place. The threshold of "
    "each false positive rate is found again in every replicate (exact grid). All classifiers see the same draws, so "
    "that the interval of a difference is that of paired values. A replicate in which a number is undefined is "
    "counted, and left out"
)


@dataclass(frozen=True, slots=True)
class Resampled:
    """Statistics of the data as they are, and of every replicate: floats, or arrays of one shape.

    Attributes
    ----------
    estimate : mapping of str to float or ndarray
    samples : mapping of str to ndarray
        Replicates along the first axis.
    """

    estimate: Statistics
    samples: Mapping[str, Floats]

    def minus(self, other: Resampled) -> Resampled:
        """Return the differences to other statistics of the same draws."""
        return Resampled(
            {name: value - other.estimate[name] for name, value in self.estimate.items()},
            {name: values - other.samples[name] for name, values in self.samples.items()},
        )

    def intervals(self, name: str, tail: float) -> Any:
        """Return the interval of a statistic: a dict, or an array of them of the shape of the statistic."""
        estimate, samples = np.asarray(self.estimate[name], np.float64), self.samples[name]
        cells = np.empty(estimate.shape, object)
        for index in np.ndindex(estimate.shape):
            cells[index] = interval(float(estimate[index]), samples[(slice(None), *index)], tail)
        return cells[()]


def resample(
    statistics: Callable[[Sequence[Int64s]], Statistics],
    sizes: Sequence[int],
    *,
    replicates: int,
    seed: int,
    label: str = "bootstrap",
) -> Resampled:
    """Return the statistics of the data and of replicates that draw as many units of each set as there are.

    Parameters
    ----------
    statistics : callable
        From the positions drawn of each set.
    sizes : sequence of int
        Units of each set; sets are drawn apart.
    replicates : int
        At least 1.
    seed : int
        0 to 2**64 - 1.
    """
    from tqdm import tqdm

    estimate = statistics([np.arange(size) for size in sizes])
    shown = tqdm(
        draws(sizes, replicates, seed), total=replicates, desc=label, unit="replicate", disable=None, leave=False
    )
    found = [statistics(drawn) for drawn in shown]
    return Resampled(estimate, {name: np.stack([replicate[name] for replicate in found]) for name in estimate})


def draws(sizes: Sequence[int], replicates: int, seed: int) -> Iterator[list[Int64s]]:
    """Yield the positions drawn of each set, with replacement, for each replicate."""
    for replicate in range(replicates):
        bits = np.random.Philox(key=np.array([seed, replicate], np.uint64))
        yield [draw_units(size, size, np.atleast_1d(bits.random_raw(size))) for size in sizes]


def draw_units(n: int, count: int, words: UInt64s) -> Int64s:
    """Return `count` positions below `n` from the first `count` random 64-bit words."""
    # Not Generator.integers: NumPy promises the words of a bit generator for ever, but not what is made of them.
    scaled = (words[:count] >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)
    return scaled.astype(np.int64)


def weights_of(drawn: Int64s, n: int) -> Int64s:
    """Return how often each of `n` units was drawn."""
    return np.bincount(drawn, minlength=n)


def interval(estimate: float, values: Floats, tail: float) -> dict[str, Any]:
    """Return ``{"estimate", "low", "high", "undefined"}``: percentiles of the values that are defined."""
    defined = values[np.isfinite(values)]
    low, high = np.quantile(defined, [tail, 1 - tail]).tolist() if len(defined) else (None, None)
    return {
        "estimate": estimate if np.isfinite(estimate) else None,
        "low": low,
        "high": high,
        "undefined": len(values) - len(defined),
    }


def tail_of(confidence: str) -> float:
    """Return the share of replicates beyond each end of an interval; a confidence out of range is a `UsageError`."""
    try:
        value = Fraction(confidence) if len(confidence) <= 12 and "e" not in confidence.lower() else Fraction(0)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not 0 < value < 1:
        raise UsageError("Invalid confidence", expected="a decimal number between 0 and 1", found=repr(confidence)[:80])
    return float((1 - value) / 2)


def settings_of(definition: str, scaled_to: str, replicates: int, seed: int, confidence: str) -> dict[str, Any]:
    """Return what a result says of a bootstrap."""
    return {
        "definition": definition,
        "generator": GENERATOR.format(scaled_to),
        "replicates": replicates,
        "seed": seed,
        "confidence": confidence,
    }


def wilderness_intervals(
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
    listed: tuple[str, Bools] | None = None,
) -> dict[str, Any]:
    """Return confidence intervals of WI, AWI and mAP over levels; `WILDERNESS_DEFINITION` says what is drawn.

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
    listed : (str, ndarray of bool), optional
        The name of a list of wilderness images, and which they are. By default as many as the closed set has, the
        first by id (``ratio 1.0``).

    Returns
    -------
    dict
        ``intervals``: a row each of WI (by recall, reading and level), AWI (by recall and reading, ``ratio`` being
        ``excl_level0`` or ``incl_level0``), ``mAP11`` and ``mAP_area`` in % (``ratio`` being ``closed``, or the name of
        the list that is added).
        ``estimate`` is from the images as they are, ``undefined`` the number of replicates left out; None where
        undefined, with a ``reason``. Also ``definition``, ``generator``, ``replicates``, ``seed`` and ``confidence``.

    Raises
    ------
    UsageError
        Parameters out of range.
    EvaluationError
        A level needs more wilderness images than there are, or `matches` was made with another `difficult`.
    """
    _check_levels(levels, wilderness.n_images)
    tail = tail_of(confidence)
    first = np.arange(closed.n_images)
    name, members = ("ratio 1.0", first) if listed is None else (listed[0], np.flatnonzero(listed[1]))
    is_drawn_apart = not np.array_equal(members, first)
    sampler = _Wilderness(
        positives=_positives(closed, matches, difficult),
        rankings=[
            _Cuts.of_class(number, closed_detections, matches, wilderness_detections)
            for number in range(len(closed.classes))
        ],
        n_wilderness=wilderness.n_images,
        sizes=np.array(list(levels.values()), np.int64),
        above=np.array([float(name) > 0 for name in levels], np.bool_),
        recalls=tuple(recalls_tenths),
        listed=members if is_drawn_apart else None,
    )
    sizes = (closed.n_images, wilderness.n_images, *([len(members)] if is_drawn_apart else []))
    found = resample(sampler.statistics, sizes, replicates=replicates, seed=seed)
    cells = {name: found.intervals(name, tail) for name in found.estimate}
    settings = settings_of(WILDERNESS_DEFINITION, "image count", replicates, seed, confidence)
    return settings | {"intervals": list(_interval_rows(cells, list(levels), tenth_names(recalls_tenths), name))}


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
class _Wilderness:
    """What the statistics of a replicate need: detections sorted once, positives by class and image, levels by size."""

    positives: Int64s
    rankings: Sequence[_Cuts]
    n_wilderness: int
    sizes: Int64s
    above: Bools
    recalls: Sequence[int]
    listed: Int64s | None

    def statistics(self, drawn: Sequence[Int64s]) -> dict[str, Floats]:
        """Return WI (recall, reading, level), AWI (recall, reading, with level 0) and mAP (flavour, place)."""
        weights, slots = weights_of(drawn[0], self.positives.shape[1]), drawn[1]
        positives = self.positives @ weights
        chosen = slots[: len(weights)] if self.listed is None else self.listed[drawn[2]]
        added = weights_of(chosen, self.n_wilderness)
        recalls, levels = len(self.recalls), len(self.sizes)
        # Per recall and class with a threshold: TP, TP + FP, then FP_o of each level.
        points: list[list[Int64s]] = [[] for _ in range(recalls)]
        precisions = []
        for ranking, n in zip(self.rankings, positives.tolist(), strict=True):
            if n == 0:
                continue
            tp, kept = ranking.closed_counts(weights)
            wild = ranking.wilderness_counts(added)
            precisions.append([_average_precisions(tp, kept, n), _average_precisions(tp, kept + wild, n)])
            for row, tenths in enumerate(self.recalls):
                reached = np.flatnonzero(tp * 10 >= tenths * n)
                if len(reached):
                    point = reached[0]
                    opened = ranking.false_positives(point, slots, self.sizes, self.n_wilderness)
                    points[row].append(np.concatenate([[tp[point], kept[point]], opened]))
        impact = np.stack([_impacts(np.array(rows, np.int64).reshape(-1, levels + 2)) for rows in points])
        mean = np.array(precisions).mean(axis=0).T if precisions else np.full((2, 2), np.nan)
        if self.listed is None and self.n_wilderness < len(weights):
            mean[:, 1] = np.nan
        return {"WI": impact, "AWI": _averages(impact, self.above), "mAP": mean}


@dataclass(frozen=True, slots=True)
class _Cuts:
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
    def of_class(cls, number: int, closed: Detections, matches: Matches, wilderness: Detections) -> _Cuts:
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
    # What `eleven_point` and `area` of curves give at one level, by one search: a replicate is a third faster so.
    envelope = np.maximum.accumulate((tp / np.maximum(kept, 1))[::-1])[::-1]
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


def _check_levels(levels: Mapping[str, int], n_wilderness: int) -> None:
    for level, size in levels.items():
        if not 0 <= size <= n_wilderness:
            raise EvaluationError(
                "A wilderness level needs more images than there are",
                where=f"level {level}",
                expected=f"at most {n_wilderness} wilderness images",
                found=str(size),
            )


@dataclass(frozen=True, slots=True)
class _Group:
    """Samples of one group by ascending highest score."""

    rows: Int64s
    highest: Floats
    ends: Int64s
    correct_above: Int64s
    lower: Int64s
    not_higher: Int64s


def class_bootstrap(
    classifiers: Mapping[str, ClassScores],
    *,
    replicates: int,
    seed: int = 0,
    confidence: str = "0.95",
    queries: Sequence[str] = QUERIES,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return intervals of each classifier, and of each one's difference to the first; see `CLASS_DEFINITION`.

    The same seed gives the same intervals on every machine, for every NumPy version; replicate i is the same whatever
    the number of replicates.

    Parameters
    ----------
    classifiers : mapping of name to ClassScores
        Differences need the same samples in the same order.
    replicates : int
        At least 1.
    seed : int
        0 to 2**64 - 1.
    confidence : str
        Decimal text between 0 and 1.
    queries : sequence of str
        False positive rates.

    Returns
    -------
    settings : dict
        ``units``: what was drawn of each group of a classifier, and how many; ``differences_to``: the first classifier;
        ``not_compared``: why another one cannot be compared with it.
    rows : list of dict
        ``method``; ``compared_with``, the first classifier where the row is of a difference, else ``""``; ``measure``:
        ``accuracy``, ``gamma_plus``, and per group, as in ``unknown.auroc``: ``ccr_at_fpr.0.01``, ``auroc``,
        ``gamma_minus``, ``gamma``; ``estimate``, ``low``, ``high``, None with a ``reason`` where undefined; and
        ``undefined``, the replicates left out.

    Raises
    ------
    UsageError
        Parameters out of range.
    """
    tail = tail_of(confidence)
    found: dict[str, Resampled] = {}
    units, apart = {}, {}
    for name, data in classifiers.items():
        measured = _Measured(data, queries)
        found[name] = resample(
            measured.statistics, measured.sizes, replicates=replicates, seed=seed, label=f"bootstrap {name[:20]}"
        )
        units[name] = measured.units
    first, *others = classifiers
    rows = [row for name, resampled in found.items() for row in _class_intervals(name, "", resampled, tail)]
    for name in others:
        if _same_samples(classifiers[name], classifiers[first]):
            rows += _class_intervals(name, first, found[name].minus(found[first]), tail)
        else:
            apart[name] = f"other samples, or another order, than {first}"
    settings = settings_of(CLASS_DEFINITION, "number of classes", replicates, seed, confidence)
    return settings | {"units": units, "differences_to": first, "not_compared": apart}, rows


class _Measured:
    """The measures of a replicate, from scores sorted once.

    Units are classes, known ones first, then negative and unknown ones: samples, where these have no classes.
    """

    def __init__(self, data: ClassScores, queries: Sequence[str]) -> None:
        self.data = data
        known = np.flatnonzero(data.known)
        keys = [(known, data.labels[known])]
        for group in GROUPS:
            rows = np.flatnonzero(data.group(group))
            keys.append((rows, rows if data.origin is None else data.origin[rows]))
        self.unit, self.sizes = np.zeros(len(data), np.int64), list[int]()
        for rows, own in keys:
            units, number = np.unique(own, return_inverse=True)
            self.unit[rows] = sum(self.sizes) + number
            self.sizes.append(len(units))
        self.queries = {query: read_query(query) for query in queries}
        self.known = known
        correct = np.flatnonzero(data.known & data.right)
        self.correct = correct[np.argsort(data.target[correct], kind="stable")]
        self.groups = {name: self._group(data.group(name)) for name in GROUPS}

    def _group(self, members: Bools) -> _Group:
        data = self.data
        rows = np.flatnonzero(members)
        rows = rows[np.argsort(data.highest[rows], kind="stable")]
        highest = data.highest[rows]
        distinct = np.unique(highest)
        known = data.highest[self.known]
        return _Group(
            rows=rows,
            highest=highest,
            ends=np.searchsorted(highest, distinct, side="right"),
            correct_above=np.searchsorted(data.target[self.correct], distinct, side="right"),
            lower=np.searchsorted(highest, known, side="left"),
            not_higher=np.searchsorted(highest, known, side="right"),
        )

    @property
    def units(self) -> dict[str, dict[str, Any]]:
        """What is drawn of each group, and how many there are."""
        other = "samples" if self.data.origin is None else "classes"
        return {
            name: {"drawn": "classes" if name == "known" else other, "of": size}
            for name, size in zip(("known", *GROUPS), self.sizes, strict=True)
        }

    def weights(self, drawn: Sequence[Int64s]) -> Floats:
        """Return how often each sample counts, shape (N,)."""
        counts = [weights_of(positions, size) for positions, size in zip(drawn, self.sizes, strict=True)]
        return np.concatenate(counts)[self.unit].astype(np.float64)

    def statistics(self, drawn: Sequence[Int64s]) -> dict[str, float]:
        """Return every measure of a replicate."""
        return self.measures(self.weights(drawn))

    def measures(self, weights: Floats) -> dict[str, float]:
        """Return every measure, NaN where undefined; `weights` are whole numbers, shape (N,)."""
        known = weights[self.known]
        n_known = known.sum()
        above = _from_each(weights[self.correct])
        plus = _ratio(known @ self.data.target[self.known], n_known)
        found = {"accuracy": _ratio(above[0], n_known), "gamma_plus": self._probability(plus)}
        for name, group in self.groups.items():
            other = weights[group.rows]
            for query, rate in self._rates(group, _from_each(other), above, n_known).items():
                found[f"{name}.ccr_at_fpr.{query}"] = rate
            found[f"{name}.auroc"] = weighted_auroc(known, other, group.lower, group.not_higher)
            minus = 1 - _ratio(other @ group.highest, other.sum())
            minus += 1 / len(self.data.classes) if self.data.sums_to_one else 0
            found[f"{name}.gamma_minus"] = self._probability(minus)
            found[f"{name}.gamma"] = self._probability((plus + minus) / 2)
        return found

    def _rates(self, group: _Group, passed: Floats, above: Floats, n_known: float) -> dict[str, float]:
        """Return CCR by query: at the lowest threshold that lets no more of the group pass than allowed."""
        total = int(passed[0])
        if not total or not n_known:
            return dict.fromkeys(self.queries, float("nan"))
        rates = {}
        for query, asked in self.queries.items():
            allowed = int(asked * total)
            position = int(np.argmax(passed[group.ends] <= allowed))
            start = 0 if total <= allowed else group.correct_above[position]
            rates[query] = float(above[start] / n_known)
        return rates

    def _probability(self, value: float) -> float:
        return float("nan") if self.data.kind == "real" else value


def _from_each(weights: Floats) -> Floats:
    """Return the sum of weights from each place on; the last is 0. Shape (n + 1,)."""
    return np.concatenate([np.cumsum(weights[::-1])[::-1], [0.0]])


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else float("nan")


def _same_samples(data: ClassScores, other: ClassScores) -> bool:
    if data.classes != other.classes or not np.array_equal(data.labels, other.labels):
        return False
    if data.origin is None or other.origin is None:
        return data.origin is other.origin
    return np.array_equal(data.origin, other.origin)


def _class_intervals(name: str, compared_with: str, found: Resampled, tail: float) -> Iterator[dict[str, Any]]:
    for measure in found.estimate:
        cell = found.intervals(measure, tail)
        reason = ""
        if cell["estimate"] is None or cell["low"] is None:
            reason = "undefined on the samples as they are"
            cell = dict.fromkeys(cell) | {"undefined": len(found.samples[measure])}
        yield {"method": name, "compared_with": compared_with, "measure": measure, "reason": reason, **cell}
