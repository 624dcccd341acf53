"""The published lists of the room: digests and counts, no list."""

from __future__ import annotations

from curation.benchmarks.published import draft
from curation.ilsvrc2012 import ilsvrc2012_classes
from curation.manifest.header import ClassEntry, Header


def published() -> Header:
    """Return the draft of the lists as they are published."""
    known = (ClassEntry(name=name, role="known", index=index) for index, name in enumerate(ilsvrc2012_classes()))
    return draft(__package__, "imagenetood", classes=tuple(known))


RECIPES = {"imagenetood/published": published}
