"""Bootstrap confidence intervals of measures over images.

Draws come from a counter-based generator: replicate i of a seed is the same on every machine, for every number of
replicates or threads and every NumPy version. Each measure is computed again from weights: how often each image was
drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.evaluation.problem import Floats, Int64s

_TAIL = 0.025
"""Share of the replicates outside each end of a 95 % interval."""
UInt64s = npt.NDArray[np.uint64]
Statistics = Mapping[str, Any]
GENERATOR = "Philox4x64-10, key (seed, replicate), high 32 bits of each word scaled to the {}"


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

    def intervals(self, name: str) -> Any:
        """Return the interval of a statistic: a dict, or an array of dicts with the shape of the statistic."""
        estimate, samples = np.asarray(self.estimate[name], np.float64), self.samples[name]
        cells = np.empty(estimate.shape, object)
        for index in np.ndindex(estimate.shape):
            cells[index] = interval(float(estimate[index]), samples[(slice(None), *index)])
        return cells[()]


def resample(
    statistics: Callable[[Sequence[Int64s]], Statistics], sizes: Sequence[int], *, replicates: int, seed: int
) -> Resampled:
    """Return the statistics of the data and of replicates, which draw as many units from each set as the set contains.

    Parameters
    ----------
    statistics : callable
        Returns statistics from the drawn positions of each set.
    sizes : sequence of int
        Number of units of each set; sets are drawn independently.
    replicates : int
        At least 1.
    seed : int
        0 to 2**64 - 1.
    """
    from tqdm import tqdm

    estimate = statistics([np.arange(size) for size in sizes])
    progress = tqdm(
        draws(sizes, replicates, seed), total=replicates, desc="bootstrap", unit="replicate", disable=None, leave=False
    )
    values = [statistics(drawn) for drawn in progress]
    return Resampled(estimate, {name: np.stack([replicate[name] for replicate in values]) for name in estimate})


def draws(sizes: Sequence[int], replicates: int, seed: int) -> Iterator[list[Int64s]]:
    """Yield for each replicate the positions drawn from each set, with replacement."""
    for replicate in range(replicates):
        bits = np.random.Philox(key=np.array([seed, replicate], np.uint64))
        yield [draw_units(size, size, np.atleast_1d(bits.random_raw(size))) for size in sizes]


def draw_units(n: int, count: int, words: UInt64s) -> Int64s:
    """Return `count` positions below `n` from the first `count` random 64-bit words."""
    # Not Generator.integers: NumPy guarantees the words of a bit generator for all versions, but not its methods.
    scaled = (words[:count] >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)
    return scaled.astype(np.int64)


def weights_of(drawn: Int64s, n: int) -> Int64s:
    """Return how often each of `n` units was drawn."""
    return np.bincount(drawn, minlength=n)


def interval(estimate: float, values: Floats) -> dict[str, Any]:
    """Return ``{"estimate", "low", "high", "undefined"}``: the 95 % interval of the values that are defined."""
    defined = values[np.isfinite(values)]
    low, high = np.quantile(defined, [_TAIL, 1 - _TAIL]).tolist() if len(defined) else (None, None)
    return {
        "estimate": estimate if np.isfinite(estimate) else None,
        "low": low,
        "high": high,
        "undefined": len(values) - len(defined),
    }
