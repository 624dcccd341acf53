"""Bootstrap confidence intervals, over images or classes, of every measure that has them.

Draws come from a counter: replicate i of a seed is the same on every machine, for every number of replicates or threads
and every NumPy version. Each measure is derived again from weights, how often each image or class was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.core.errors import UsageError
from curation.evaluation.class_scores import GROUPS, ClassScores
from curation.evaluation.curves import weighted_auroc
from curation.evaluation.oscr import QUERIES, read_query
from curation.evaluation.problem import Bools, Floats, Int64s

UInt64s = npt.NDArray[np.uint64]
Statistics = Mapping[str, Any]
GENERATOR = "Philox4x64-10, key (seed, replicate), high 32 bits of each word scaled to the {}"
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
    """Statistics of the data and of every replicate: floats, or arrays of equal shape.

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
    progress = tqdm(
        draws(sizes, replicates, seed), total=replicates, desc=label, unit="replicate", disable=None, leave=False
    )
    values = [statistics(drawn) for drawn in progress]
    return Resampled(estimate, {name: np.stack([replicate[name] for replicate in values]) for name in estimate})


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
    """Return the record of a bootstrap in a result."""
    return {
        "definition": definition,
        "generator": GENERATOR.format(scaled_to),
        "replicates": replicates,
        "seed": seed,
        "confidence": confidence,
    }


@dataclass(frozen=True, slots=True)
class _Group:
    """Samples of a group by ascending highest score."""

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
    by_name: dict[str, Resampled] = {}
    units, apart = {}, {}
    for name, data in classifiers.items():
        measured = _Measured(data, queries)
        by_name[name] = resample(
            measured.statistics, measured.sizes, replicates=replicates, seed=seed, label=f"bootstrap {name[:20]}"
        )
        units[name] = measured.units
    first, *others = classifiers
    rows = [row for name, resampled in by_name.items() for row in _class_intervals(name, "", resampled, tail)]
    for name in others:
        if _same_samples(classifiers[name], classifiers[first]):
            rows += _class_intervals(name, first, by_name[name].minus(by_name[first]), tail)
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
        for rows, cluster_ids in keys:
            units, number = np.unique(cluster_ids, return_inverse=True)
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
        values = {"accuracy": _ratio(above[0], n_known), "gamma_plus": self._probability(plus)}
        for name, group in self.groups.items():
            other = weights[group.rows]
            for query, rate in self._rates(group, _from_each(other), above, n_known).items():
                values[f"{name}.ccr_at_fpr.{query}"] = rate
            values[f"{name}.auroc"] = weighted_auroc(known, other, group.lower, group.not_higher)
            minus = 1 - _ratio(other @ group.highest, other.sum())
            minus += 1 / len(self.data.classes) if self.data.sums_to_one else 0
            values[f"{name}.gamma_minus"] = self._probability(minus)
            values[f"{name}.gamma"] = self._probability((plus + minus) / 2)
        return values

    def _rates(self, group: _Group, passed: Floats, above: Floats, n_known: float) -> dict[str, float]:
        """Return CCR by query: at the lowest threshold that lets no more of the group pass than allowed."""
        total = int(passed[0])
        if not total or not n_known:
            return dict.fromkeys(self.queries, float("nan"))
        rates = {}
        for query, rate in self.queries.items():
            allowed = int(rate * total)
            position = int(np.argmax(passed[group.ends] <= allowed))
            start = 0 if total <= allowed else group.correct_above[position]
            rates[query] = float(above[start] / n_known)
        return rates

    def _probability(self, value: float) -> float:
        return float("nan") if self.data.kind == "real" else value


def _from_each(weights: Floats) -> Floats:
    """Return the sum of weights from each place on; the last is 0. Shape (n + 1,)."""
    return np.concatenate([np.cumsum(weights[::-1])[::-1], [0.0]])


def _ratio(part: Any, total: Any) -> float:
    return float(part / total) if total else float("nan")


def _same_samples(data: ClassScores, other: ClassScores) -> bool:
    if data.classes != other.classes or not np.array_equal(data.labels, other.labels):
        return False
    if data.origin is None or other.origin is None:
        return data.origin is other.origin
    return np.array_equal(data.origin, other.origin)


def _class_intervals(name: str, compared_with: str, resampled: Resampled, tail: float) -> Iterator[dict[str, Any]]:
    for measure in resampled.estimate:
        cell = resampled.intervals(measure, tail)
        reason = ""
        if cell["estimate"] is None or cell["low"] is None:
            reason = "undefined on the samples as they are"
            cell = dict.fromkeys(cell) | {"undefined": len(resampled.samples[measure])}
        yield {"method": name, "compared_with": compared_with, "measure": measure, "reason": reason, **cell}
