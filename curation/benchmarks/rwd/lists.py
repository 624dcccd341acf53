"""The lists of RWD as their authors published them."""

from __future__ import annotations

from curation.benchmarks.facts import fact
from curation.benchmarks.published import drafts

RECIPES = drafts(__package__, aliases=fact(__package__, "aliases", dict[str, str]))
