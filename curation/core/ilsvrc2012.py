"""The 1,000 classes of ILSVRC-2012."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def ilsvrc2012_classes() -> tuple[str, ...]:
    """Return the 1,000 wnids, sorted: a class's index is its place."""
    return tuple(
        resources.files("curation.core").joinpath("ilsvrc2012_classes.txt").read_text(encoding="ascii").split()
    )
