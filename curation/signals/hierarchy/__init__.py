"""Class hierarchies: how near classes are in a taxonomy. `open_wordnet` gives WordNet, built in or one of NLTK's."""

from curation.signals.hierarchy.wordnet import Wordnet, named_wordnet, open_wordnet

__all__ = ["Wordnet", "named_wordnet", "open_wordnet"]
