"""What FindMeIfYouCan states, from ``facts.toml``: paper, ID classes, category tables, sizes of lists and splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from curation.benchmarks.facts import fact, facts_of
from curation.manifest.header import Paper
from curation.sources.datasets import COCO_NAMES_OF_VOC

_ROOM = __package__
_FACTS = facts_of(_ROOM)
Sizes = dict[str, dict[str, int]]

PAPER = fact(_ROOM, "paper", Paper)
COCO_START, COCO_CANDIDATES, OPEN_IMAGES = "coco-val2017", "coco-train2017", "openimages"
KEPT, ADDED, START = (fact(_ROOM, key, Sizes) for key in ("kept", "added", "start"))
REQUIRED, EXCLUDED, SHARED = (fact(_ROOM, key, dict[str, int]) for key in ("required", "excluded", "shared"))
AUTHORS_DECISIONS: str = _FACTS["authors_decisions"]


def _aliases(pair: str) -> Mapping[str, tuple[str, ...]]:
    return {name: tuple(others) for name, others in _FACTS[pair]["aliases"].items()}


def _class_of(table: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the ID class that the images of each category may show."""
    return {category: name for name, categories in table.items() for category in categories}


VOC_ALIASES, BDD_ALIASES = _aliases("voc"), _aliases("bdd")
BDD_CLASSES = tuple(_FACTS["bdd"]["classes"])
VOC_IN_COCO = tuple(COCO_NAMES_OF_VOC.values())
"""The 20 categories of COCO that the start rule of VOC excludes."""
VOC_IN_OPEN_IMAGES = tuple(_FACTS["voc"]["excluded"]["openimages"])
BDD_IN_COCO, BDD_IN_OPEN_IMAGES = (tuple(_FACTS["bdd"]["excluded"][key]) for key in ("coco", "openimages"))
VOC_REMOVED_FROM_COCO = _class_of(_FACTS["voc"]["removed"]["coco"])
VOC_REMOVED_FROM_OPEN_IMAGES = _class_of(_FACTS["voc"]["removed"]["openimages"])
BDD_REMOVED_FROM_OPEN_IMAGES = dict.fromkeys(_FACTS["voc"]["removed"]["openimages"]["person"], "pedestrian")
VOC_NEAR_IN_COCO = _class_of(_FACTS["voc"]["near"]["coco"])
VOC_NEAR_IN_OPEN_IMAGES = _class_of(_FACTS["voc"]["near"]["openimages"])
