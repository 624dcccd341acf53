"""Any WordNet among NLTK's data: 3.1, the Open English WordNet, and the lemmas of the Open Multilingual WordNet.

NLTK finds and opens the corpus, zipped or not. Its files are read as our own are (`curation.hierarchy.noun_table`),
since NLTK's reader keeps the parents of a synset in a set, which loses their order, and takes half a minute for all
nouns. A synset is held against WordNet 3.0 by its sense keys, as NLTK's `map_to_one` does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from curation.errors import HierarchyError, MissingExtraError, MissingFileError
from curation.hierarchy.noun_table import (
    SYNSETS,
    NounLine,
    embedded_sense_keys,
    noun_lines,
    senses_in,
    table_from,
    wordnet_version,
)
from curation.hierarchy.wordnet import OWN, Wordnet, open_wordnet

_USUAL = "wordnet"
_LANGUAGES = r".*/wn-[a-z\-]*\.tab"
"""Files of the Open Multilingual WordNet as NLTK looks for them: ``fra/wn-data-fra.tab``."""


@cache
def nltk_wordnet(which: str) -> Wordnet:
    """Return the WordNet of ``nltk``, ``nltk:CORPUS`` or ``nltk:CORPUS:LANGUAGE``.

    Raises
    ------
    MissingExtraError
        NLTK is not installed.
    MissingFileError
        NLTK's data hold no such corpus, or it has no such language; the message names the command that installs it.
    HierarchyError
        The corpus is no WordNet.
    """
    corpus, _, language = which.partition(":")[2].partition(":")
    corpus = corpus or _USUAL
    root = _root(corpus, which)
    try:
        return _multilingual(root, corpus, language) if "omw" in corpus else _english(root, corpus, language)
    except (LookupError, ValueError, OSError) as error:
        raise HierarchyError(
            "NLTK cannot read this WordNet", where=which, found=f"{type(error).__name__}: {error}"[:300]
        ) from None


def _root(corpus: str, which: str) -> Any:
    try:
        import nltk
    except ImportError:
        raise MissingExtraError("NLTK is not installed", where=which, hint="pip install 'curation[lenses]'") from None
    for place in (f"corpora/{corpus}", f"corpora/{corpus}.zip/{corpus}/"):
        try:
            return nltk.data.find(place)
        except (LookupError, ValueError, OSError):
            continue
    raise MissingFileError(
        "NLTK's data hold no such corpus",
        where=which,
        expected="nltk:wordnet, nltk:wordnet31, nltk:english_wordnet, nltk:omw-1.4:fra, …",
        found=f"no corpora/{corpus} in {', '.join(map(str, nltk.data.path))}"[:300],
        hint=f"python -m nltk.downloader {corpus}",
    )


def _english(root: Any, corpus: str, language: str) -> Wordnet:
    if language:
        raise MissingFileError(
            "A language is one of the Open Multilingual WordNet",
            where=f"nltk:{corpus}:{language}",
            expected=f"nltk:omw-1.4:{language}",
        )
    data, index = _read(root, "data.noun"), _read(root, "index.noun")
    lines = list(noun_lines(data, f"{corpus}/data.noun"))
    if not lines:
        raise ValueError("data.noun holds no synset")
    numbers = _numbers(lines)
    table, lemmas = table_from(lines, numbers, senses_in(index, f"{corpus}/index.noun"), corpus)
    own = sum(number >= OWN for number in numbers)
    return Wordnet(
        name=f"{wordnet_version(data) or 'WordNet'} (NLTK's {corpus})",
        table=table,
        lemmas=lemmas,
        difference=f"{len(lines)} nouns: it lacks {SYNSETS - len(lines) + own} of the {SYNSETS} of WordNet 3.0, and "
        f"{own} are its own",
    )


def _numbers(lines: Sequence[NounLine]) -> list[int]:
    """Return of each synset the offset of the one of WordNet 3.0 that it stands for, or `OWN` and its own offset.

    A synset of 3.0 stands where most of its sense keys went, at the first of several; where two have gone to one, that
    of the most keys gives the id, and the other is lacking.
    """
    keys = embedded_sense_keys()
    shared = Counter((keys[key], place) for place, line in enumerate(lines) for key in line.sense_keys() if key in keys)
    place_of: dict[int, int] = {}
    for offset, place in sorted(shared, key=lambda pair: (-shared[pair], pair[1])):
        place_of.setdefault(offset, place)
    numbers: dict[int, int] = {}
    for offset, place in sorted(shared, key=lambda pair: (-shared[pair], pair[0])):
        if place_of[offset] == place:
            numbers.setdefault(place, offset)
    return [numbers.get(place, OWN + line.offset) for place, line in enumerate(lines)]


def _multilingual(root: Any, corpus: str, language: str) -> Wordnet:
    """Return WordNet 3.0, whose synsets the files name, with the lemmas of a language."""
    from nltk.corpus.reader import CorpusReader

    reader = CorpusReader(root, _LANGUAGES)
    files = {re.split(r"[-.]", name)[-2]: name for name in sorted(reader.fileids(), reverse=True)}
    if language not in files:
        raise MissingFileError(
            f"{corpus} has no such language",
            where=f"nltk:{corpus}{':' if language else ''}{language}",
            expected=", ".join(sorted(files))[:600],
            found=language or "no language",
            hint=f"--wordnet nltk:{corpus}:fra" if "fra" in files else None,
        )
    english = open_wordnet()
    words: dict[int, list[str]] = {}
    for line in _read(root, files[language]).decode("utf-8").splitlines():
        fields = line.strip().split("\t")
        if len(fields) >= 3 and not line.startswith("#") and fields[0].endswith("-n"):
            owner, _, kind = f":{fields[1]}".rpartition(":")
            if kind == "lemma" and owner in ("", f":{language}"):
                words.setdefault(int(fields[0][:8]), []).append(fields[-1].strip().replace(" ", "_"))
    offsets = english.table.offsets.tolist()
    return Wordnet(
        name=f"WordNet 3.0 with the lemmas {language} of NLTK's {corpus}",
        table=english.table,
        lemmas=english.lemmas,
        words=[" ".join(words.get(offset, ())) for offset in offsets],
        difference=f"the nouns of WordNet 3.0, {sum(offset in words for offset in offsets)} of {SYNSETS} with a lemma "
        f"in {language}",
    )


def _read(root: Any, name: str) -> bytes:
    with root.join(name).open() as stream:
        data: bytes = stream.read()
    return data
