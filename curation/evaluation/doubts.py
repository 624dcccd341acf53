"""What may be wrong with truth and detections, where an extension can tell: entry points ``curation.doubts``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from curation.core.entry_points import entry_points, loaded
from curation.core.errors import CurationWarning, UsageError
from curation.evaluation.problem import Bools, Floats, GroundTruth, Int32s

if TYPE_CHECKING:
    from curation.evaluation.detection_files import Records

GROUP = "curation.doubts"
"""``detections = "MODULE"``: a module with functions as those below."""


@cache
def _diagnosis() -> Any:
    points = [point for point in entry_points(GROUP) if point.name == "detections"]
    try:
        return loaded(points[0], "The check of detections for mistakes") if points else None
    except UsageError as error:
        warnings.warn(f"{error.what}: {error.found}; the scores are not affected", CurationWarning, stacklevel=2)
        return None


def doubt(records: Records, position: Int32s, label: Int32s, truth: GroundTruth) -> str:
    """Return why a file of detections may be mistaken; else ``""``."""
    module = _diagnosis()
    return "" if module is None else str(module.doubt(records, position, label, truth))


def truth_doubt(
    boxes: Floats,
    sizes: Floats,
    *,
    crowd: Bools,
    files: Sequence[str],
    ids: Sequence[str],
    image: Int32s,
    is_json: bool,
) -> str:
    """Return why a ground truth may be mistaken; else ``""``.

    Parameters
    ----------
    boxes : ndarray of float64, shape (m, 4)
        ``x, y, w, h`` in pixels.
    sizes : ndarray of float64, shape (n, 2)
        Width and height of each image, NaN where unstated.
    crowd : ndarray of bool, shape (m,)
    files, ids : sequence of str, length n
        File name, ``""`` where unstated, and id of each image.
    image : ndarray of int32, shape (m,)
        Position of each box's image.
    is_json : bool
        Whether the truth is one file of COCO JSON, which ``curation inspect`` mends.
    """
    extension = _diagnosis()
    if extension is None:
        return ""
    return str(extension.truth_doubt(boxes, sizes, crowd=crowd, files=files, ids=ids, image=image, is_json=is_json))


def stray_hint(ids: Sequence[int | str], truth: GroundTruth) -> str:
    """Return what image ids may be that a truth lacks; else ``""``."""
    module = _diagnosis()
    return "" if module is None else str(module.stray_hint(ids, truth))
