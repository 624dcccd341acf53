"""Bootstrap confidence intervals over classes for the measures of an open-set classifier, paired over classifiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curation.errors import UsageError
from curation.evaluation.bootstrap import draw_images, tail_of
from curation.evaluation.class_scores import GROUPS, Bools, ClassScores, Floats, Int64s
from curation.evaluation.oscr import QUERIES, read_query

DEFINITION = (
    "Percentile bootstrap over classes. Each replicate draws as many known, negative and unknown classes as "
    "have "
    "samples, with replacement, the three apart; a class drawn twice counts twice, with all its samples. "
    "Where the "
    "original classes of negative or unknown samples are not told, samples are drawn in their place. The "
    "threshold of each "
    "false positive rate is found again in every replicate (exact grid). All classifiers see the same "
    "draws, so that the "
    "interval of a difference is that of paired values. A replicate in which a number is undefined is "
    "counted, and left out"
)
GENERATOR = "Philox4x64-10, key (seed, replicate), high 32 bits of each word scaled to the number of classes"


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
) -> dict[str, Any]:
    """Return confidence intervals of each classifier, and of each one's difference to the first; `DEFINITION` says how.

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
    dict
        ``intervals[name][measure]`` and ``differences[name][measure]``: ``{"estimate", "low", "high", "undefined"}``,
        with None and a ``reason`` where undefined. Measures: ``accuracy``, ``gamma_plus``, and per group, as in
        ``unknown.auroc``: ``ccr_at_fpr.0.01``, ``auroc``, ``gamma_minus``, ``gamma``. Also ``units``: what was drawn of
        each group, and how many.

    Raises
    ------
    UsageError
        Parameters out of range.
    """
    if replicates < 1 or not 0 <= seed < 2**64:
        raise UsageError(
            "The bootstrap's parameters are not usable",
            expected="1 or more replicates, a seed from 0 to 18446744073709551615",
            found=f"{replicates} replicates, seed {seed}"[:80],
        )
    tail = tail_of(confidence)
    estimates, samples, units = {}, {}, {}
    for name, data in classifiers.items():
        resampled = _Resampled(data, queries)
        estimates[name] = resampled.measures(np.ones(len(data)))
        samples[name] = _replicates(resampled, data, replicates, seed, name)
        units[name] = _units_of(data)[1]
    first = next(iter(classifiers))
    return {
        "definition": DEFINITION,
        "generator": GENERATOR,
        "replicates": replicates,
        "seed": seed,
        "confidence": confidence,
        "units": units,
        "intervals": {name: _intervals(estimates[name], samples[name], tail) for name in classifiers},
        "differences_to": first,
        "differences": {
            name: _differences(name, first, classifiers, estimates, samples, tail)
            for name in list(classifiers)[1:]
        },
    }


def _replicates(
    resampled: _Resampled, data: ClassScores, replicates: int, seed: int, name: str
) -> dict[str, Floats]:
    from tqdm import tqdm

    draws = tqdm(
        _draws(data, replicates, seed), total=replicates, desc=f"bootstrap {name[:20]}", unit="replicate",
        disable=None, leave=False,
    )  # fmt: skip
    found = [resampled.measures(weights) for weights in draws]
    return {measure: np.array([one[measure] for one in found]) for measure in found[0]}


def _draws(data: ClassScores, replicates: int, seed: int) -> Iterator[Floats]:
    """Yield how often each sample counts, shape (N,)."""
    unit, sizes = _unit_numbers(data), _units_of(data)[0]
    for replicate in range(replicates):
        bits = np.random.Philox(key=np.array([seed, replicate], np.uint64))
        counts = [
            np.bincount(draw_images(size, size, bits.random_raw(size)), minlength=size) for size in sizes
        ]
        yield np.concatenate(counts)[unit].astype(np.float64)


def _unit_numbers(data: ClassScores) -> Int64s:
    """Return the number of the unit that each sample is drawn with: known units first, then negative, unknown."""
    unit = np.zeros(len(data), np.int64)
    begin = 0
    for rows, keys in _keys(data):
        unit[rows] = begin + np.unique(keys, return_inverse=True)[1]
        begin += len(np.unique(keys))
    return unit


def _units_of(data: ClassScores) -> tuple[list[int], dict[str, Any]]:
    sizes = [len(np.unique(keys)) for _, keys in _keys(data)]
    kinds = ["classes", *(["samples" if data.origin is None else "classes"] * len(GROUPS))]
    names = ["known", *GROUPS]
    return sizes, {
        name: {"drawn": kind, "of": size} for name, kind, size in zip(names, kinds, sizes, strict=True)
    }


def _keys(data: ClassScores) -> Iterator[tuple[Int64s, Int64s]]:
    yield (known := np.flatnonzero(data.known)), data.labels[known]
    for group in GROUPS:
        rows = np.flatnonzero(data.group(group))
        yield rows, rows if data.origin is None else data.origin[rows]


class _Resampled:
    """The measures of a replicate, from scores sorted once."""

    def __init__(self, data: ClassScores, queries: Sequence[str]) -> None:
        self.data = data
        self.queries = {query: read_query(query) for query in queries}
        self.known = np.flatnonzero(data.known)
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
            below = np.concatenate([[0.0], np.cumsum(other)])
            pairs = known @ (below[group.lower] + below[group.not_higher])
            found[f"{name}.auroc"] = _ratio(pairs, 2 * n_known * other.sum())
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
            place = int(np.argmax(passed[group.ends] <= allowed))
            start = 0 if total <= allowed else group.correct_above[place]
            rates[query] = float(above[start] / n_known)
        return rates

    def _probability(self, value: float) -> float:
        return float("nan") if self.data.kind == "real" else value


def _from_each(weights: Floats) -> Floats:
    """Return the sum of weights from each place on; the last is 0. Shape (n + 1,)."""
    return np.concatenate([np.cumsum(weights[::-1])[::-1], [0.0]])


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else float("nan")


def _differences(
    name: str,
    first: str,
    classifiers: Mapping[str, ClassScores],
    estimates: Mapping[str, Mapping[str, float]],
    samples: Mapping[str, Mapping[str, Floats]],
    tail: float,
) -> dict[str, Any]:
    one, other = classifiers[name], classifiers[first]
    if not _same_samples(one, other):
        return {"reason": f"other samples, or another order, than {first}"}
    gaps = {measure: samples[name][measure] - samples[first][measure] for measure in samples[name]}
    return _intervals(
        {measure: estimates[name][measure] - estimates[first][measure] for measure in gaps}, gaps, tail
    )


def _same_samples(one: ClassScores, other: ClassScores) -> bool:
    if one.classes != other.classes or not np.array_equal(one.labels, other.labels):
        return False
    if one.origin is None or other.origin is None:
        return one.origin is other.origin
    return np.array_equal(one.origin, other.origin)


def _intervals(estimates: Mapping[str, float], samples: Mapping[str, Floats], tail: float) -> dict[str, Any]:
    return {measure: _interval(estimates[measure], samples[measure], tail) for measure in samples}


def _interval(estimate: float, values: Floats, tail: float) -> dict[str, Any]:
    defined = values[np.isfinite(values)]
    if not np.isfinite(estimate) or not len(defined):
        reason = "undefined on the samples as they are"
        return {"estimate": None, "low": None, "high": None, "undefined": len(values), "reason": reason}
    low, high = np.quantile(defined, [tail, 1 - tail])
    return {
        "estimate": estimate,
        "low": float(low),
        "high": float(high),
        "undefined": len(values) - len(defined),
    }
