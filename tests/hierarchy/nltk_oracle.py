"""WordNet's nouns through NLTK's own reader, as an independent reference of `curation.hierarchy.wordnet`.

NLTK keeps the pointers of a synset in a set, so the order of the parents is lost: here they stand sorted.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.hierarchy.wordnet import wnid

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph

_LEXNAMES = """
adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition
noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person
noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state
noun.substance noun.time verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption
verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative
verb.weather adj.ppl
"""
"""Names of the lexicographer files (lexnames(5WN)): Debian's package and others lack the file that lists them."""

_FILES = [f"{kind}.{part}" for kind in ("data", "index") for part in ("noun", "verb", "adj", "adv")]


@contextmanager
def nltk_reader(root: Path) -> Iterator[Any]:
    """Yield NLTK's reader of a WordNet folder.

    The files are copied to a private folder first: NLTK refuses those outside its data path, group-writable ones and
    those of another owner, and wants a file of lexicographer names that many packages lack.
    """
    import nltk
    from nltk.corpus.reader import WordNetCorpusReader

    class Reader(WordNetCorpusReader):
        def map_wn(self, version: str = "wordnet") -> None:
            """Do without the map between WordNet versions, which needs NLTK's own corpora."""

    with tempfile.TemporaryDirectory(prefix="curation-wordnet-") as name:
        folder = _copied(root, Path(name))
        nltk.data.path.insert(0, str(folder))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reader = Reader(str(folder), omw_reader=None)
            yield reader
            _close(reader)
        finally:
            nltk.data.path.remove(str(folder))


def nltk_graph(root: Path, *, instances: bool = False) -> Graph:
    """Return the nouns of a WordNet folder as NLTK reads them, the parents of each sorted.

    Parameters
    ----------
    instances : bool
        Whether ``@i`` pointers count as kinship.
    """
    import networkx as nx

    with nltk_reader(root) as reader:
        graph: Graph = nx.DiGraph(origin="WordNet nouns, read by NLTK")
        for synset in reader.all_synsets("n"):
            node = wnid(synset.offset())
            keys = [lemma.key() for lemma in synset.lemmas()]
            graph.add_node(node, lemmas=" ".join(synset.lemma_names()), name=synset.name(), keys=keys)
            over = synset.hypernyms() + (synset.instance_hypernyms() if instances else [])
            graph.add_edges_from((node, parent) for parent in sorted(wnid(one.offset()) for one in over))
    return graph


def _copied(source: Path, target: Path) -> Path:
    for name in _FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    for part in ("noun", "verb", "adj", "adv"):
        exceptions = source / f"{part}.exc"
        (target / f"{part}.exc").write_bytes(exceptions.read_bytes() if exceptions.is_file() else b"")
    names = "".join(f"{number:02d}\t{name}\t1\n" for number, name in enumerate(_LEXNAMES.split()))
    (target / "lexnames").write_text(names, encoding="ascii")
    return target


def _close(reader: Any) -> None:
    for stream in getattr(reader, "_data_file_map", {}).values():
        stream.close()
