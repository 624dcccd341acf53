"""What the Elephant protocol states before any file is read, from ``facts.toml``: paper, classes, rules in words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from curation.benchmarks.facts import fact, facts_of
from curation.benchmarks.parts import voc_classes
from curation.benchmarks.published import draft
from curation.manifest.header import Header, LabelView, Paper, Supersedes

_ROOM = __package__
_FACTS = facts_of(_ROOM)
PAPER = fact(_ROOM, "paper", Paper)
CLOSED, COCO = "voc2007-test", "coco"
TRAINING = ("voc2007-train", "voc2007-val", "voc2012-train", "voc2012-val")

TEST_VIEW = LabelView()
# The notebook deletes the difficult flag, so the paper's detectors were trained on difficult objects too.
TRAINING_VIEW = LabelView(difficult="keep")
CLOSED_RULE, WILDERNESS_RULE, TRAINING_RULE, LEVELS = (
    _FACTS[key] for key in ("closed_rule", "wilderness_rule", "training_rule", "levels")
)
WR1: dict[str, Any] = _FACTS["wr1"]
"""Part wr1 as a record: the size, the annotated images and the digest of its list."""

HEADER_ONLY_VERSION: str = _FACTS["header_only"]["version"]
HEADER_ONLY_NOTES = tuple(_FACTS["header_only"]["notes"])
HEADER_ONLY_BEFORE = Supersedes(**_FACTS["header_only"]["before"])
ORDER_RULES = fact(_ROOM, "orders", dict[str, str])
ORDER_SUFFIX = fact(_ROOM, "order_suffixes", dict[str, str])

FIGURES = fact(_ROOM, "figures", dict[str, dict[str, tuple[int, str]]])
"""Figures of the paper and of the authors' files, by group: value and place."""
OFFICIAL_FIGURES = fact(_ROOM, "official", dict[str, tuple[str, ...]])
"""Figures by which a file is known to be an official part of COCO."""
TRAINING_FIGURES = fact(_ROOM, "training", dict[str, tuple[int, int, int]])
"""Images, objects and persons of the authors' four training files."""

RECIPES: dict[str, Callable[[], Header]] = {
    stated["name"]: partial(draft, _ROOM, key, classes=voc_classes()) for key, stated in _FACTS["published"].items()
}
"""Drafts of lists that others published, by the name of the manifest that they make."""
