"""Every reader of users' files, with small valid files of its format: what fuzzing starts from."""

from functools import cache

from tests.torture.readers import annotations, classes, decisions, lists, manifests, photos, predictions
from tests.torture.readers.target import Files, Target

__all__ = ["Files", "Target", "targets"]


@cache
def targets() -> dict[str, Target]:
    """Return every target by name."""
    rooms = (annotations, lists, manifests, decisions, predictions, classes, photos)
    return {one.name: one for room in rooms for one in room.targets()}
