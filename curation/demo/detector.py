"""A small detector that really looks at pixels: contrast regions, softmax regression, non-maximum suppression.

Regions that differ from the scene behind them are proposed, and described by what they look like. Two detectors of
different caution come from one training. `bold` trusts the softmax, as most detectors do: whatever differs from
background has to be one of the known classes. `cautious` also asks how much of a region the examples of a class
explain (the residual of the class's principal subspace, as in SIMCA and ViM) and moves the score of what it cannot
explain to the background.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.errors import UsageError

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


_DIRECTIONS = 8
_STEPS = 200
_LEARNING_RATE = 0.6
_WEIGHT_DECAY = 1e-3
_LOWEST_SCORE = 0.05
_NMS_IOU = 0.5


@dataclass(frozen=True, slots=True)
class Example:
    """One training photo with its objects: boxes ``x, y, w, h``, shape (n, 4), and class positions, shape (n,)."""

    photo: npt.NDArray[np.uint8]
    boxes: Floats
    labels: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Regions:
    """Candidates of one photo: boxes ``x, y, w, h``, shape (n, 4), and standardised features, shape (n, f)."""

    boxes: npt.NDArray[np.int64]
    features: Floats


@dataclass(frozen=True, slots=True)
class Detector:
    """A trained model: K classes and, last, background.

    Attributes
    ----------
    mean, scale : ndarray, shape (f,)
        Standardise the features.
    weights : ndarray, shape (f + 1, K + 1)
        Softmax regression; the last row is the bias.
    centres : ndarray, shape (K, f)
        Mean of the standardised features of each class.
    directions : ndarray, shape (K, f, q)
        Its principal directions, orthonormal.
    reach : ndarray, shape (K,)
        Median length of what they leave unexplained of its own examples.
    """

    mean: Floats
    scale: Floats
    weights: Floats
    centres: Floats
    directions: Floats
    reach: Floats

    def look(self, photo: npt.NDArray[np.uint8]) -> Regions:
        """Return the regions of a photo that may hold something, described as in training."""
        boxes = propose(photo)
        return Regions(boxes, (describe(photo, boxes) - self.mean) / self.scale)

    def detect(self, regions: Regions, *, cautious: bool) -> list[dict[str, Any]]:
        """Return detections of one photo: ``label`` (class position), ``bbox``, ``score``, ``background_score``."""
        scores = softmax(_with_bias(regions.features) @ self.weights)
        if cautious:
            scores = self._doubted(regions.features, scores)
        found: list[dict[str, Any]] = []
        for label in range(len(self.reach)):
            kept = np.flatnonzero(scores[:, label] >= _LOWEST_SCORE)
            kept = kept[suppress(regions.boxes[kept].astype(np.float64), scores[kept, label], _NMS_IOU)]
            found += [_detection(label, regions.boxes[row], scores[row]) for row in kept.tolist()]
        return found

    def _doubted(self, features: Floats, scores: Floats) -> Floats:
        """Return the scores after what is unlike every class gave theirs to the background."""
        left_over = unexplained(features, self.centres, self.directions)
        known = scores[:, :-1] * np.exp(-np.maximum(left_over / self.reach - 1, 0))
        return np.column_stack([known, 1 - known.sum(axis=1)])


def train(examples: Sequence[Example], n_classes: int) -> Detector:
    """Return the detector fitted to these photos; the same photos give the same weights.

    Raises
    ------
    UsageError
        A class has fewer than two examples.
    """
    parts = [_labelled_regions(example, n_classes) for example in examples]
    features = np.concatenate([part[0] for part in parts])
    labels = np.concatenate([part[1] for part in parts])
    if min(np.bincount(labels, minlength=n_classes)[:n_classes]) < 2:
        raise UsageError(
            "The training photos show a class less than twice",
            expected="two examples of each",
            hint="draw more training images: --images 40 30 80",
        )
    mean, scale = features.mean(axis=0), features.std(axis=0) + 1e-3
    standard = (features - mean) / scale
    weights = fit_softmax(_with_bias(standard), labels, n_classes + 1)
    own = [standard[labels == label] for label in range(n_classes)]
    centres = np.array([rows.mean(axis=0) for rows in own])
    directions = np.array([_principal_directions(rows - centre) for rows, centre in zip(own, centres, strict=True)])
    reach = [np.median(unexplained(own[k], centres[[k]], directions[[k]])) for k in range(n_classes)]
    return Detector(mean, scale, weights, centres, directions, np.maximum(reach, 1e-9))


def unexplained(features: Floats, centres: Floats, directions: Floats) -> Floats:
    """Return the distance of each of n feature rows from the principal subspace of each of K classes, shape (n, K)."""
    columns = []
    for centre, axes in zip(centres, directions, strict=True):
        difference = features - centre
        columns.append(np.linalg.norm(difference - difference @ axes @ axes.T, axis=1))
    return np.column_stack(columns)


def fit_softmax(inputs: Floats, labels: npt.NDArray[np.int64], n_outputs: int) -> Floats:
    """Return weights of multinomial logistic regression by gradient descent with momentum, shape (f, n_outputs)."""
    targets = np.eye(n_outputs)[labels]
    weights = np.zeros((inputs.shape[1], n_outputs))
    velocity = np.zeros_like(weights)
    for _ in range(_STEPS):
        gradient = loss_gradient(weights, inputs, targets)
        velocity = 0.9 * velocity - _LEARNING_RATE * 0.1 * gradient
        weights = weights + velocity
    return weights


def loss_gradient(weights: Floats, inputs: Floats, targets: Floats) -> Floats:
    """Return the gradient of the mean cross-entropy with L2 weight decay."""
    errors = softmax(inputs @ weights) - targets
    gradient: Floats = inputs.T @ errors / len(inputs) + _WEIGHT_DECAY * weights
    return gradient


def softmax(logits: Floats) -> Floats:
    """Return rows that sum to 1."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def suppress(boxes: Floats, scores: Floats, iou_threshold: float) -> npt.NDArray[np.int64]:
    """Return the positions that greedy non-maximum suppression keeps, best first; ties in input order."""
    order = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while len(order):
        best, order = int(order[0]), order[1:]
        kept.append(best)
        order = order[overlaps(boxes[[best]], boxes[order])[0] <= iou_threshold]
    return np.array(kept, np.int64)


def overlaps(first: Floats, second: Floats) -> Floats:
    """Return the IoU of every box of `first`, shape (n, 4), with every box of `second`, shape (m, 4)."""
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, :2] + first[:, None, 2:], second[None, :, :2] + second[None, :, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=2)
    total = np.prod(first[:, 2:], axis=1)[:, None] + np.prod(second[:, 2:], axis=1)[None, :]
    iou: Floats = common / np.maximum(total - common, 1e-12)
    return iou


def _detection(label: int, box: npt.NDArray[np.int64], scores: Floats) -> dict[str, Any]:
    return {
        "label": label,
        "bbox": [int(value) for value in box],
        "score": round(float(scores[label]), 6),
        "background_score": round(float(scores[-1]), 6),
    }


def _labelled_regions(example: Example, n_classes: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return features and labels: true boxes and good proposals by class, poor proposals as background."""
    proposed = propose(example.photo)
    boxes = np.concatenate([example.boxes.astype(np.int64), proposed])
    labels = np.full(len(proposed), n_classes, np.int64)
    keep = np.ones(len(proposed), np.bool_)
    if len(example.boxes) and len(proposed):
        iou = overlaps(proposed.astype(np.float64), example.boxes)
        best = iou.argmax(axis=1)
        highest = iou.max(axis=1)
        labels[highest >= 0.6] = example.labels[best[highest >= 0.6]]
        keep = (highest >= 0.6) | (highest < 0.35)
    kept = np.concatenate([np.ones(len(example.boxes), np.bool_), keep])
    return describe(example.photo, boxes[kept]), np.concatenate([example.labels, labels])[kept]


def _principal_directions(centred: Floats) -> Floats:
    """Return orthonormal directions of largest variance, shape (f, q); zero columns where there are fewer."""
    rows = np.linalg.svd(centred, full_matrices=False)[2][:_DIRECTIONS]
    padded = np.zeros((centred.shape[1], _DIRECTIONS))
    padded[:, : len(rows)] = rows.T
    return padded


def _with_bias(features: Floats) -> Floats:
    return np.column_stack([features, np.ones(len(features))])
