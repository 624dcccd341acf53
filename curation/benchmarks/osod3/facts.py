"""What *Rectifying Open-Set Object Detection* fixes, from ``facts.toml``: paper, super-classes, sizes, views, names."""

from __future__ import annotations

from typing import NamedTuple

from curation.benchmarks.facts import fact, facts_of
from curation.manifest.header import LabelView, Paper

_ROOM = __package__
_FACTS = facts_of(_ROOM)
PAPER = fact(_ROOM, "paper", Paper)
TRAIN_VIEW, TEST_VIEW = fact(_ROOM, "views", dict[str, LabelView]).values()
CASES = tuple(_FACTS["cases"])
CUB_IMAGES = fact(_ROOM, "cub_images", dict[str, int])
CUB_CLASSES, CUB_PARTS, OPEN_IMAGES_PARTS = 200, 4, 4
MTSD_CLUSTERS = tuple(_FACTS["mtsd_clusters"])
OURS, AUTHORS = (_FACTS["notes"][key] for key in ("ours", "authors"))


def _labels(table: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(f"/m/{word}" for word in words) for name, words in _FACTS[table].items()}


SUPERCLASSES, INNER_NODES = _labels("superclasses"), _labels("inner_nodes")
"""Label names of the leaves of animal and vehicle in Open Images; the nodes between them and their leaves."""
NAMES = {f"/m/{key}": name for key, name in _FACTS["names"].items()}
"""Key (MID) to name, of the leaves and inner nodes of both super-classes."""


class Selected(NamedTuple):
    """A part of the Open Images problems: source, roles of which an image shows a class, and the rule in words."""

    source: str
    shows: tuple[str, ...]
    rule: str


SELECTED = {name: Selected(**one) for name, one in _FACTS["open_images"].items()}
