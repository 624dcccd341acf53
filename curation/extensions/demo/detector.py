"""A small detector that looks at pixels: regions unlike the scene behind them, named by the class they look most like.

Two variants of it differ in caution. `bold` assigns every region to a known class, as most detectors do; `cautious`
lowers the score of regions that are less like the class than its training examples.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Photo = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Box = tuple[int, int, int, int]

_CONTRAST, _SMALLEST, _GRID, _SHARPNESS = 40, 6, 2, 6


class Detector(NamedTuple):
    """A trained model of K classes.

    Attributes
    ----------
    centres : ndarray, shape (K, f)
        Mean features of each class.
    reach : ndarray, shape (K,)
        Median distance between the centre of a class and its examples.
    """

    centres: Floats
    reach: Floats

    def detect(self, photo: Photo, *, cautious: bool) -> list[dict[str, Any]]:
        """Return detections of a photo: ``label`` (class position), ``bbox``, ``score``, ``background_score``."""
        detections = []
        for box in regions(photo):
            distance = np.linalg.norm(look(photo, box) - self.centres, axis=1)
            likeness = np.exp(-_SHARPNESS * distance / self.reach)
            scores = likeness / likeness.sum()
            if cautious:
                scores = scores * np.exp(-np.maximum(distance / self.reach - 1, 0))
            for label in np.flatnonzero(scores >= 0.05).tolist():
                score, rest = round(float(scores[label]), 6), round(max(0.0, 1 - float(scores.sum())), 6)
                detections.append({"label": label, "bbox": list(box), "score": score, "background_score": rest})
        return detections


def train(examples: Iterable[tuple[Photo, Box, int]], n_classes: int) -> Detector:
    """Return the detector fitted to boxes ``x, y, w, h`` of photos and the positions of their classes."""
    looks: list[list[Floats]] = [[] for _ in range(n_classes)]
    for photo, box, label in examples:
        looks[label].append(look(photo, box))
    centres = np.array([np.mean(rows, axis=0) for rows in looks])
    distances = [np.linalg.norm(np.array(rows) - centre, axis=1) for rows, centre in zip(looks, centres, strict=True)]
    return Detector(centres, np.array([max(float(np.median(distance)), 1e-9) for distance in distances]))


def regions(photo: Photo) -> list[Box]:
    """Return boxes ``x, y, w, h`` of regions that differ from the median colour of their rows, from left to right.

    Scenes are horizontal bands (sky, ground), so the median of a row is its background.
    """
    colours = photo.astype(np.float64)
    differs = np.abs(colours - np.median(colours, axis=1, keepdims=True)).max(axis=2) > _CONTRAST
    columns = np.concatenate([[False], differs.sum(axis=0) > 1, [False]])
    starts, ends = np.flatnonzero(np.diff(columns.astype(int)) == 1), np.flatnonzero(np.diff(columns.astype(int)) == -1)
    boxes = []
    for left, right in zip(starts.tolist(), ends.tolist(), strict=True):
        rows = np.flatnonzero(differs[:, left:right].any(axis=1))
        top, bottom = int(rows[0]), int(rows[-1]) + 1
        if min(right - left, bottom - top) >= _SMALLEST:
            boxes.append((left, top, right - left, bottom - top))
    return boxes


def look(photo: Photo, box: Box) -> Floats:
    """Return features of a box: colours from 0 to 1 on a 2 x 2 grid, minus their mean, and its shape."""
    from PIL import Image

    x, y, width, height = box
    part = Image.fromarray(photo).crop((x, y, x + width, y + height)).resize((_GRID, _GRID), Image.Resampling.BOX)
    colours = np.asarray(part, np.float64) / 255
    return np.append((colours - colours.mean()).ravel(), 3 * np.log(width / height))
