"""Commands that extensions and other packages offer, by the entry points of the group ``curation.commands``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points
from typing import Any

GROUP = "curation.commands"
"""``VERB = "MODULE"``, a module as those of `curation.cli.verbs`; or ``VERB.ACTION = "MODULE:FUNCTION"``."""


@cache
def offered() -> dict[str, str]:
    """Return the modules of verbs that are offered, by name."""
    return {one.name: one.value for one in entry_points(group=GROUP) if not one.attr}


def actions(verb: str) -> dict[str, Callable[..., Any]]:
    """Return the functions that are offered as further actions of a verb, by name."""
    begin, found = f"{verb}.", {}
    for one in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        if one.attr and one.name.startswith(begin):
            # Whatever another package raises while it is imported must not take the other actions away.
            with suppress(Exception):
                found[one.name.removeprefix(begin)] = one.load()
    return found
