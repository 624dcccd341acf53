"""Where something may be: regions that differ from the scene behind them, and what they look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CONTRASTS = (24.0, 40.0, 64.0)
_SMALLEST = 7
_GRID = 8


def contrast_of(photo: npt.NDArray[np.uint8]) -> Floats:
    """Return how far each pixel is from the median colour of its row, shape (height, width).

    Scenes are horizontal bands (sky, ground), so a row's median is the scene behind the things in it.
    """
    colours = photo.astype(np.float64)
    distance: Floats = np.abs(colours - np.median(colours, axis=1, keepdims=True)).max(axis=2)
    return distance


def propose(photo: npt.NDArray[np.uint8]) -> Ints:
    """Return boxes ``x, y, w, h`` of the connected regions above each contrast, shape (n, 4), unique, sorted."""
    contrast = _smoothed(contrast_of(photo))
    boxes = [box for level in CONTRASTS for box in connected_boxes(contrast > level)]
    large = {box for box in boxes if min(box[2], box[3]) >= _SMALLEST}
    return np.array(sorted(large), np.int64).reshape(-1, 4)


def connected_boxes(mask: npt.NDArray[np.bool_]) -> list[tuple[int, int, int, int]]:
    """Return the bounding boxes of the 4-connected regions of a mask, by union of runs."""
    padded = np.zeros((mask.shape[0], mask.shape[1] + 2), np.int8)
    padded[:, 1:-1] = mask
    edges = np.diff(padded, axis=1)
    rows, starts = np.nonzero(edges == 1)
    ends = np.nonzero(edges == -1)[1]
    runs = list(zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True))
    parent = list(range(len(runs)))

    def root(run: int) -> int:
        while parent[run] != run:
            parent[run] = parent[parent[run]]
            run = parent[run]
        return run

    above = 0
    for run, (row, start, end) in enumerate(runs):
        while runs[above][0] < row - 1 or (runs[above][0] == row - 1 and runs[above][2] <= start):
            above += 1
        other = above
        while other < run and runs[other][0] == row - 1 and runs[other][1] < end:
            parent[root(other)] = root(run)
            other += 1
    return _bounding_boxes(runs, [root(run) for run in range(len(runs))])


def describe(photo: npt.NDArray[np.uint8], boxes: npt.NDArray[Any]) -> Floats:
    """Return one row of features a box: colours and contrast on an 8 x 8 grid, gradient directions, size and shape."""
    colours = photo.astype(np.float64) / 255
    channels = np.dstack([colours, contrast_of(photo) / 255])
    grey = colours.mean(axis=2)
    vertical, horizontal = np.gradient(grey)
    strength = np.hypot(vertical, horizontal)
    direction = ((np.arctan2(vertical, horizontal) % np.pi) / np.pi * 8).astype(np.int64) % 8
    rows = []
    for x, y, width, height in np.asarray(boxes, np.int64).tolist():
        part = np.s_[y : y + height, x : x + width]
        grid = _on_grid(channels[part])
        edges = np.bincount(direction[part].ravel(), strength[part].ravel(), minlength=8)
        shape = [np.log(width / height), np.log(width * height) / 4]
        rows.append(np.concatenate([grid.ravel(), edges / (edges.sum() + 1e-9), shape]))
    return np.array(rows).reshape(len(rows), -1) if rows else np.empty((0, 4 * _GRID * _GRID + 10))


def _bounding_boxes(runs: list[tuple[int, int, int]], roots: list[int]) -> list[tuple[int, int, int, int]]:
    corners: dict[int, list[int]] = {}
    for (row, start, end), group in zip(runs, roots, strict=True):
        box = corners.setdefault(group, [start, row, end, row + 1])
        box[0], box[2], box[3] = min(box[0], start), max(box[2], end), row + 1
    return [(x1, y1, x2 - x1, y2 - y1) for x1, y1, x2, y2 in corners.values()]


def _smoothed(values: Floats) -> Floats:
    """Return the mean over 3 x 3 neighbours."""
    padded = np.pad(values, 1, mode="edge")
    height, width = values.shape
    total: Floats = np.zeros_like(values)
    for dy in range(3):
        for dx in range(3):
            total += padded[dy : dy + height, dx : dx + width]
    return total / 9


def _on_grid(part: Floats) -> Floats:
    """Return the part reduced to an 8 x 8 grid of means, whatever its size."""
    height, width, channels = part.shape
    sums = np.zeros((height + 1, width + 1, channels))
    sums[1:, 1:] = part.cumsum(axis=0).cumsum(axis=1)
    top, bottom = _cells(height)
    left, right = _cells(width)
    totals = sums[bottom][:, right] - sums[top][:, right] - sums[bottom][:, left] + sums[top][:, left]
    size: Floats = (bottom - top)[:, None] * (right - left)[None, :]
    return np.asarray(totals / size[..., None], np.float64)


def _cells(length: int) -> tuple[Ints, Ints]:
    edges = np.arange(_GRID + 1) * length // _GRID
    first = np.minimum(edges[:-1], length - 1)
    return first, np.maximum(edges[1:], first + 1)
