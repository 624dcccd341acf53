"""What may be wrong with detections, where an extension can tell: an entry point of the group ``curation.doubts``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from curation.core.entry_points import entry_points, loaded
from curation.core.errors import CurationWarning, UsageError
from curation.evaluation.problem import GroundTruth, Int32s

if TYPE_CHECKING:
    from curation.evaluation.result_records import Records

GROUP = "curation.doubts"
"""``detections = "MODULE"``: a module with functions as those below."""


@cache
def _told() -> Any:
    points = [point for point in entry_points(GROUP) if point.name == "detections"]
    try:
        return loaded(points[0], "The check of detections for mistakes") if points else None
    except UsageError as error:
        warnings.warn(f"{error.what}: {error.found}; the scores are not affected", CurationWarning, stacklevel=2)
        return None


def doubt(records: Records, position: Int32s, label: Int32s, truth: GroundTruth) -> str:
    """Return why a file of detections may be mistaken; else ``""``."""
    told = _told()
    return "" if told is None else str(told.doubt(records, position, label, truth))


def stray_hint(ids: Sequence[int | str], truth: GroundTruth) -> str:
    """Return what image ids may be that a truth lacks; else ``""``."""
    told = _told()
    return "" if told is None else str(told.stray_hint(ids, truth))
