"""Commands that extensions and other packages offer, by the entry points of the group ``curation.commands``.

``VERB = "MODULE"`` names a module like those of `curation.cli.verbs`, which also states its line of help as ``SUMMARY``
and its heading as ``GROUP``. ``VERB.ACTION = "MODULE:FUNCTION"`` adds an action to a verb that has several.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from curation.core.entry_points import constants_of, entry_points, loaded, package_name
from curation.core.errors import UsageError

ENTRY_POINTS = "curation.commands"
OTHERS = "Other packages"
"""The heading of commands whose module names none."""


@cache
def offered() -> dict[str, EntryPoint]:
    """Return the entry points of the verbs that are offered, by name."""
    return {point.name: point for point in entry_points(ENTRY_POINTS) if not point.attr}


def verb_module(verb: str) -> Any:
    """Return the module of an offered verb.

    Raises
    ------
    UsageError
        The module cannot be imported.
    """
    return loaded(offered()[verb], f"The command `curation {verb}`")


def actions(verb: str) -> dict[str, Callable[..., Any] | UsageError]:
    """Return the functions that are offered as further actions of a verb: an error for one that cannot be loaded."""
    functions: dict[str, Callable[..., Any] | UsageError] = {}
    for point in entry_points(ENTRY_POINTS):
        name, _, action = point.name.partition(".")
        if name == verb and action and point.attr:
            try:
                functions[action] = loaded(point, f"The command `curation {verb} {action}`")
            except UsageError as error:
                functions[action] = error
    return functions


def help_lines() -> dict[str, tuple[str, str]]:
    """Return heading and line of help of every offered verb, read from its module's source without running it."""
    return {verb: _help_line(point) for verb, point in offered().items()}


def _help_line(point: EntryPoint) -> tuple[str, str]:
    try:
        constants = constants_of(point)
    # The package of the module may raise anything while it is imported.
    except Exception as error:
        return OTHERS, f"cannot be loaded: {type(error).__name__}"
    summary = constants.get("SUMMARY", f"offered by the package {package_name(point)}")
    return str(constants.get("GROUP", OTHERS)), str(summary)
