"""Lowering the normalized cut of a partition by moves: Kernighan-Lin in the form of Fiduccia and Mattheyses.

A pass moves every vertex once at most, always the move that loses least, even uphill, and keeps the best prefix. Gains
are of the true objective, not of the cut alone. All state is whole numbers, so that nothing drifts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curation.sources.source import Int64s

_LEAST_GAIN = 1e-12
_MOST_PASSES = 60


@dataclass
class _State:
    weights: Int64s
    degrees: Int64s
    labels: Int64s
    links: Int64s
    volumes: Int64s
    inside: Int64s
    sizes: Int64s

    @classmethod
    def of(cls, weights: Int64s, labels: Int64s, k: int) -> _State:
        links = np.stack([weights[:, labels == c].sum(axis=1) for c in range(k)], axis=1)
        degrees = weights.sum(axis=1)
        own = links[np.arange(len(labels)), labels]
        return cls(
            weights,
            degrees,
            labels.copy(),
            links,
            np.array([degrees[labels == c].sum() for c in range(k)], np.int64),
            np.array([own[labels == c].sum() for c in range(k)], np.int64),
            np.bincount(labels, minlength=k).astype(np.int64),
        )

    def quality(self) -> float:
        """Return the sum of inside / volume: k minus the normalized cut."""
        return float((self.inside / self.volumes).sum())

    def gains(self) -> npt.NDArray[np.float64]:
        """Return what each move of a vertex to a cluster gains, shape (n, k); -inf where there is none."""
        row = np.arange(len(self.labels))
        own = self.links[row, self.labels]
        left = self.volumes[self.labels] - self.degrees
        ratios = self.inside / self.volumes
        with np.errstate(divide="ignore", invalid="ignore"):
            leaving = (self.inside[self.labels] - 2 * own) / left - ratios[self.labels]
        arriving = (self.inside + 2 * self.links) / (self.volumes + self.degrees[:, None]) - ratios
        gains = leaving[:, None] + arriving
        gains[row, self.labels] = -np.inf
        gains[(left <= 0) | (self.sizes[self.labels] == 1)] = -np.inf
        return gains

    def move(self, vertex: int, target: int) -> None:
        source = int(self.labels[vertex])
        degree, column = self.degrees[vertex], self.weights[:, vertex]
        self.inside[source] -= 2 * self.links[vertex, source]
        self.inside[target] += 2 * self.links[vertex, target]
        self.volumes[source] -= degree
        self.volumes[target] += degree
        self.sizes[source] -= 1
        self.sizes[target] += 1
        self.links[:, source] -= column
        self.links[:, target] += column
        self.labels[vertex] = target


def refine(weights: Int64s, labels: Int64s, k: int) -> Int64s:
    """Return a labelling that no pass improves any more, shape (n,); its Ncut is at most that of `labels`.

    Parameters
    ----------
    weights : ndarray of int64, shape (n, n)
    labels : ndarray of int64, shape (n,)
        0..k-1; every cluster has a positive volume.
    """
    state = _State.of(weights, labels, k)
    if (state.volumes <= 0).any():
        return labels
    for _ in range(_MOST_PASSES):
        _climb(state)
        if not _pass(state):
            break
    return state.labels


def _climb(state: _State) -> None:
    """Make the best move as long as it gains."""
    for _ in range(8 * len(state.labels)):
        gains = state.gains()
        best = int(gains.argmax())
        if not gains.flat[best] > _LEAST_GAIN:
            return
        state.move(*divmod(best, gains.shape[1]))


def _pass(state: _State) -> bool:
    """Move vertices one by one, each once, and take back all after the best prefix; True where it gained."""
    n = len(state.labels)
    patience = max(60, n // 8)
    free = np.ones(n, bool)
    undo: list[tuple[int, int]] = []
    before = best = state.quality()
    kept = 0
    for _ in range(n):
        gains = state.gains()
        gains[~free] = -np.inf
        place = int(gains.argmax())
        if not np.isfinite(gains.flat[place]):
            break
        vertex, target = divmod(place, gains.shape[1])
        undo.append((vertex, int(state.labels[vertex])))
        state.move(vertex, target)
        free[vertex] = False
        if (quality := state.quality()) > best + _LEAST_GAIN:
            best, kept = quality, len(undo)
        elif len(undo) - kept > patience:
            break
    for vertex, origin in reversed(undo[kept:]):
        state.move(vertex, origin)
    return best > before + _LEAST_GAIN
