"""Recipes of published lists: draft headers by the name of the manifest that they make."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from curation.benchmarks.elephant import published as elephant_published
from curation.benchmarks.owod import published as owod_published
from curation.errors import UsageError
from curation.manifest.header import Header

RECIPES: dict[str, Callable[[], Header]] = {**owod_published.RECIPES, **elephant_published.RECIPES}


def find_recipe(name: str) -> Callable[[], Header]:
    """Return the recipe of this name; an unknown one is a `UsageError` with the nearest names."""
    if name in RECIPES:
        return RECIPES[name]
    near = difflib.get_close_matches(name, RECIPES)
    raise UsageError(
        "There is no such recipe for published lists",
        where=name[:200],
        expected=", ".join(RECIPES),
        hint=f"did you mean {near[0]}?" if near else None,
    )
