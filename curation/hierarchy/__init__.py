"""Class hierarchies: how near classes are in a taxonomy. `open_wordnet` gives WordNet, built in or one of NLTK's."""

from curation.hierarchy.wordnet import Wordnet, open_told, open_wordnet

__all__ = ["Wordnet", "open_told", "open_wordnet"]
