"""What extensions and other packages offer by entry points."""

from __future__ import annotations

from importlib import metadata
from importlib.metadata import EntryPoint
from typing import Any

from curation.core.errors import UsageError


def entry_points(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, sorted by name."""
    return sorted(metadata.entry_points(group=group), key=lambda point: (point.name, point.value))


def package_name(point: EntryPoint) -> str:
    """Return the name of the package that offers an entry point."""
    return point.dist.name if point.dist else point.value.partition(".")[0]


def loaded(point: EntryPoint, subject: str) -> Any:
    """Return what an entry point names.

    Raises
    ------
    UsageError
        It cannot be loaded: `subject` cannot be used.
    """
    try:
        return point.load()
    # Another package may raise anything while it is imported.
    except Exception as error:
        raise UsageError(
            f"{subject} cannot be loaded",
            where=f"{point.value}, of the package {package_name(point)}",
            found=f"{type(error).__name__}: {error}"[:300],
            hint=f"reinstall or uninstall the package {package_name(point)}; everything else works without it",
        ) from error
