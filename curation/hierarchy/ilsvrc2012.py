"""The hierarchy above the 1,000 classes of ILSVRC-2012, and the one-parent tree of the ImageNet protocols.

The protocols' code took from a file of edges the *last* parent written for a synset. The file is gone; the order of its
lines cannot be had from WordNet. What it chose for the 75 synsets above the classes that have several parents is data.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from curation.hierarchy.hierarchy import as_tree
from curation.hierarchy.wordnet import wordnet
from curation.ilsvrc2012 import ilsvrc2012_classes

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph


@cache
def published_parents() -> dict[str, str]:
    """Return the parent that the published protocols' code kept, of each synset with several."""
    text = resources.files("curation.hierarchy").joinpath("imagenet_parents.txt").read_text(encoding="ascii")
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


@cache
def imagenet_dag() -> Graph:
    """Return WordNet 3.0 above the 1,000 classes with all parents: 1,860 synsets."""
    return wordnet(above=ilsvrc2012_classes())


@cache
def imagenet_tree() -> Graph:
    """Return the same with one parent a synset, as the published protocols have it."""
    return as_tree(imagenet_dag(), choices=published_parents())
