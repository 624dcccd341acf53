"""WordNet's nouns through NLTK's own reader, as an independent reference of `curation.signals.hierarchy.wordnet`.

NLTK keeps the pointers of a synset in a set, so the order of the parents is lost: here they stand sorted.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    pass

_LEXNAMES = """
adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition
noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person
noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state
noun.substance noun.time verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption
verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative
verb.weather adj.ppl
"""
"""Names of the lexicographer files (lexnames(5WN)): Debian's package and others lack the file that lists them."""


def nltk_reader(root: Path) -> Any:
    """Return NLTK's reader of the nouns of a WordNet folder.

    It is given whole texts, for it reads files that are open a character at a time; and of other words none.
    """
    import nltk
    from nltk.corpus.reader import WordNetCorpusReader

    class Reader(WordNetCorpusReader):
        def open(self, name: str) -> io.StringIO:
            if name == "lexnames":
                return io.StringIO("".join(f"{n:02d}\t{one}\t1\n" for n, one in enumerate(_LEXNAMES.split())))
            path = root / name
            return io.StringIO(path.read_text("ascii") if "noun" in name and path.is_file() else "")

        def map_wn(self, version: str = "wordnet") -> None:
            """Do without the map between WordNet versions, which needs NLTK's own corpora."""

    # NLTK refuses a folder outside its data path.
    with warnings.catch_warnings(), patch.object(nltk.data, "path", [str(root)]):
        warnings.simplefilter("ignore")
        return Reader(str(root), omw_reader=None)
