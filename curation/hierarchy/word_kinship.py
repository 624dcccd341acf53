"""FindMeIfYouCan's WordNet bars: how near the words of two lists of categories are, by first synsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from curation.errors import HierarchyError, UsageError
from curation.hierarchy.nltk_wordnet import nltk_reader

Measure = Literal["wup", "path"]
MEASURES = ("wup", "path")
TOP = 20


@dataclass(frozen=True, slots=True)
class WordBar:
    """One bar of the figure.

    Attributes
    ----------
    mean, std : float
        Of the largest similarity of each ID word to any OOD word; population standard deviation.
    id_words, ood_words : tuple of str
        In order; a word that stands in several names stands as often.
    missing : tuple of str
        Words without a synset: left out, where the authors' code stops.
    """

    mean: float
    std: float
    id_words: tuple[str, ...]
    ood_words: tuple[str, ...]
    missing: tuple[str, ...]


def word_bar(
    wordnet: Path,
    id_categories: Sequence[str],
    ood_counts: Mapping[str, int],
    measure: Measure = "wup",
    *,
    top: int = TOP,
) -> WordBar:
    """Return the bar of one OOD split (section 3.2 of FindMeIfYouCan and its code).

    Names are split at blanks ("dining table" gives dining and table); each word stands for its first synset of any part
    of speech. Of the OOD split the `top` most frequent categories count, before splitting.

    Parameters
    ----------
    wordnet : Path
        A WordNet 3.0 folder: verbs and adjectives too, which the table that is built in lacks.
    ood_counts : mapping of str to int
        Annotations by category, in the order of the annotation file; equal counts keep it.

    Raises
    ------
    UsageError
        The measure has another name.
    HierarchyError
        No word of one of the lists has a synset.
    MissingExtraError, MissingFileError
        NLTK or WordNet is not there.
    """
    if measure not in MEASURES:
        raise UsageError("Unknown measure", expected=", ".join(MEASURES), found=repr(measure)[:80])
    counted = [(name, count) for name, count in ood_counts.items() if count > 0]
    frequent = [name for name, _ in sorted(counted, key=lambda pair: -pair[1])[:top]]
    id_words, ood_words = _words(id_categories), _words(frequent)
    with nltk_reader(wordnet) as reader:
        first = {word: (reader.synsets(word) or [None])[0] for word in dict.fromkeys((*id_words, *ood_words))}
        missing = tuple(word for word, synset in first.items() if synset is None)
        rows = [
            [_alike(first[a], first[b], measure) for b in ood_words if first[b]] for a in id_words if first[a]
        ]
    if not rows or not rows[0]:
        raise HierarchyError("No word has a synset", found=", ".join(missing)[:200])
    # A pair without a common ancestor has no similarity, and is never the largest.
    highest = np.nanmax(np.array(rows, np.float64), axis=1)
    return WordBar(float(highest.mean()), float(highest.std()), tuple(id_words), tuple(ood_words), missing)


def _words(names: Iterable[str]) -> list[str]:
    return [word for name in names for word in name.split(" ") if word]


def _alike(one: Any, two: Any, measure: Measure) -> float:
    found = one.wup_similarity(two) if measure == "wup" else one.path_similarity(two)
    return float("nan") if found is None else float(found)
