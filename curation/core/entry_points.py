"""Objects that extensions and other packages register as entry points."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from curation.core.errors import CurationError, UsageError


def entry_points(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, sorted by name."""
    return sorted(metadata.entry_points(group=group), key=lambda point: (point.name, point.value))


def package_name(point: EntryPoint) -> str:
    """Return the name of the package that offers an entry point."""
    return point.dist.name if point.dist else point.value.partition(".")[0]


def loaded(point: EntryPoint, subject: str) -> Any:
    """Return the object that an entry point names.

    Raises
    ------
    UsageError
        It cannot be loaded: `subject` cannot be used.
    """
    with loading(point.value, subject, package_name(point)):
        return point.load()


@contextmanager
def loading(module: str, subject: str, package: str = "") -> Iterator[None]:
    """Raise `UsageError` for any error during the import of a module: `subject` cannot be used.

    Parameters
    ----------
    package : str
        The name of the package that offers it (default: the first word of the module).
    """
    package = package or module.partition(".")[0]
    try:
        yield
    except CurationError:
        raise
    # Another package may raise anything.
    except Exception as error:
        raise UsageError(
            f"{subject} cannot be loaded",
            where=f"{module}, of the package {package}",
            found=f"{type(error).__name__}: {error}"[:300],
            hint=f"reinstall or uninstall the package {package}; everything else works without it",
        ) from error


def constants_of(point: EntryPoint) -> dict[str, Any]:
    """Return the constants that the module of an entry point assigns, read from its source without running it.

    Raises
    ------
    Exception
        Whatever the package of the module raises while it is imported; `ModuleNotFoundError` without a source.
    """
    spec = find_spec(point.module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(point.module)
    return {
        node.targets[0].id: node.value.value
        for node in ast.parse(Path(spec.origin).read_bytes()).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
