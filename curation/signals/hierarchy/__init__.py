"""Class hierarchies: how near classes are in a taxonomy. `open_wordnet` gives WordNet 3.0."""

from curation.signals.hierarchy.wordnet import Wordnet, open_wordnet

__all__ = ["Wordnet", "open_wordnet"]
