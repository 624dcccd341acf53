"""Ground truth and predictions of one part, as columns over one list of images and one list of classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """The annotated objects of one part.

    Attributes
    ----------
    image_numbers : ndarray of int64, shape (n,)
        The ids that predictions refer to, ascending: the order in which wilderness levels take images.
    classes : tuple of str, length K
        The known classes.
    class_numbers : tuple of int, length K
        Category ids that predictions use for them.
    image : ndarray of int32, shape (m,)
        Position in `image_numbers`; objects are grouped by it, in file order within an image.
    label : ndarray of int32, shape (m,)
        Position in `classes`, or -1 for an unknown object.
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` in pixels, origin top left.
    crowd, difficult : ndarray of bool, shape (m,)
    original : tuple of str, length m, or None
        The dataset's own class of each object (``elephant`` of an unknown one).
    areas : ndarray of float64, shape (m,)
    image_names : tuple of str, length n, or None
        Where the annotation file names images by texts: these, in ascending order; `image_numbers` are then 0 to n-1.
    """

    image_numbers: Int64s
    classes: tuple[str, ...]
    class_numbers: tuple[int, ...]
    image: Int32s
    label: Int32s
    boxes: Floats
    crowd: Bools
    difficult: Bools
    areas: Floats
    original: tuple[str, ...] | None = None
    image_names: tuple[str, ...] | None = None

    @property
    def n_images(self) -> int:
        """Number of images, annotated or not."""
        return len(self.image_numbers)


@dataclass(frozen=True, slots=True)
class Detections:
    """Predicted boxes of one part, in input order; input order decides ties.

    Attributes
    ----------
    image : ndarray of int32, shape (d,)
        Position in the ground truth's `image_numbers`.
    label : ndarray of int32, shape (d,)
        Position in the ground truth's `classes`.
    boxes : ndarray of float64, shape (d, 4)
        ``x, y, w, h`` in pixels.
    scores : ndarray of float64, shape (d,)
    background_scores : ndarray of float64, shape (d,), or None
        Softmax score of the background class, for the background gap (Fig. 8 of the Elephant paper).
    """

    image: Int32s
    label: Int32s
    boxes: Floats
    scores: Floats
    background_scores: Floats | None = None

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, rows: Int64s | Bools) -> Detections:
        """Return some detections, without their background scores."""
        return Detections(self.image[rows], self.label[rows], self.boxes[rows], self.scores[rows])
