"""Class hierarchies, and relations of classes in them. `open_wordnet` gives WordNet 3.0."""

from curation.signals.hierarchy.wordnet import Wordnet, open_wordnet

__all__ = ["Wordnet", "open_wordnet"]
