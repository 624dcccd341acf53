"""What may be wrong with detections, where an extension can tell: an entry point of the group ``curation.doubts``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from curation.evaluation.problem import GroundTruth, Int32s

if TYPE_CHECKING:
    from curation.evaluation.result_records import Records

GROUP = "curation.doubts"
"""``detections = "MODULE"``: a module with functions as those below."""


@cache
def _told() -> Any:
    return next((one.load() for one in entry_points(group=GROUP, name="detections")), None)


def doubt(records: Records, position: Int32s, label: Int32s, truth: GroundTruth) -> str:
    """Return why a file of detections may be mistaken; else ``""``."""
    told = _told()
    return "" if told is None else str(told.doubt(records, position, label, truth))


def stray_hint(ids: Sequence[int | str], truth: GroundTruth) -> str:
    """Return what image ids may be that a truth lacks; else ``""``."""
    told = _told()
    return "" if told is None else str(told.stray_hint(ids, truth))
