"""A small detector that really looks at pixels: contrast regions, softmax regression, non-maximum suppression.

Two of different caution come from one training. `bold` trusts the softmax, as most detectors do: whatever differs from
background has to be one of the known classes. `cautious` also asks how much of a region the examples of a class
explain (the residual of the class's principal subspace, as in SIMCA and ViM) and moves the score of a stranger to the
background.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.demo.proposals import Floats, describe, propose
from curation.errors import UsageError

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
        """Return the scores after strangers gave theirs to the background."""
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
    directions = np.array(
        [_principal_directions(rows - centre) for rows, centre in zip(own, centres, strict=True)]
    )
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
