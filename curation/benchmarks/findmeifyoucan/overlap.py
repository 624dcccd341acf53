"""The overlap linter: ID classes that are called near, or are annotated in an OOD split, by name, alias or kinship."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from curation.benchmarks.findmeifyoucan.pairs import Pair, Pool
from curation.hierarchy import Wordnet, open_wordnet
from curation.hierarchy.hierarchy import descendants
from curation.hierarchy.synset_maps import DATASETS, synset_map
from curation.sources.datasets import family

How = Literal["name", "alias", "kind"]
NEAR_LIST = "near list"


@dataclass(frozen=True, slots=True, order=True)
class Overlap:
    """One category of an OOD source that is an ID class.

    Attributes
    ----------
    pool : str
    place : str
        `NEAR_LIST`, or the part whose images are annotated with it.
    category, id_class : str
    how : {"name", "alias", "kind"}
        Letter by letter but for case; by an alias; or because WordNet has its synset below that of the ID class.
    objects : int
        Annotations of the category in the part; 0 for the near list.
    """

    pool: str
    place: str
    category: str
    id_class: str
    how: How
    objects: int = 0

    def __str__(self) -> str:
        """Return the finding as a sentence."""
        how = {"name": "is", "alias": "is another name of", "kind": "is a kind of"}[self.how]
        seen = f" ({self.objects} objects)" if self.place != NEAR_LIST else ""
        return f"{self.pool}, {self.place}: {self.category!r}{seen} {how} the ID class {self.id_class!r}."


def id_class_of(
    pair: Pair, pool: Pool, categories: Iterable[str], wordnet: Wordnet | None = None
) -> dict[str, tuple[str, How]]:
    """Return for each category that is an ID class which one, and how it is known; others are left out.

    Parameters
    ----------
    categories : iterable of str
        Names in the pool's source. Kinship is looked up only where the pair names the synset map of its ID classes and
        there is one of the pool's data set.
    wordnet : Wordnet, optional
        Says what is a kind of what; the built-in one by default.
    """
    by_name = {name.casefold(): name for name in pair.id_classes}
    by_alias = {alias.casefold(): owner for alias, owner in pair.names().items()}
    kinds = _kinds(pair, pool, wordnet or open_wordnet())
    found: dict[str, tuple[str, How]] = {}
    for category in categories:
        folded = category.casefold()
        if folded in by_name:
            found[category] = (by_name[folded], "name")
        elif folded in by_alias:
            found[category] = (by_alias[folded], "alias")
        elif category in kinds:
            found[category] = (kinds[category], "kind")
    return found


def near_list_overlaps(pair: Pair, wordnet: Wordnet | None = None) -> tuple[Overlap, ...]:
    """Return every ID class that stands in a near list: FindMeIfYouCan's code calls "Dog" near a VOC class."""
    return tuple(
        Overlap(pool.name, NEAR_LIST, category, owner, how)
        for pool in pair.pools
        for category, (owner, how) in id_class_of(pair, pool, pool.near, wordnet).items()
    )


def annotated_overlaps(
    pair: Pair, pool: Pool, part: str, counts: Mapping[str, int], wordnet: Wordnet | None = None
) -> tuple[Overlap, ...]:
    """Return every category with objects in a part that is an ID class, most objects first.

    Parameters
    ----------
    counts : mapping of str to int
        Objects of the part by category.
    """
    present = [name for name, n in counts.items() if n]
    found = [
        Overlap(pool.name, part, category, owner, how, counts[category])
        for category, (owner, how) in id_class_of(pair, pool, present, wordnet).items()
    ]
    return tuple(sorted(found, key=lambda one: (-one.objects, one.category)))


def _kinds(pair: Pair, pool: Pool, wordnet: Wordnet) -> dict[str, str]:
    """Return the categories of the pool's data set whose synset lies at or below that of an ID class."""
    dataset = next((name for name in DATASETS if name == family(pool.dataset)), None)
    if not pair.synsets or dataset is None:
        return {}
    of_id, of_ood = (
        {name: synset for name, synset in synset_map(one).items() if synset in wordnet}
        for one in (pair.synsets, dataset)
    )
    # Only what lies above the two maps' synsets: the whole of WordNet takes seconds.
    graph = wordnet.nouns({*of_id.values(), *of_ood.values()})
    kinds: dict[str, str] = {}
    for name in _known(pair.id_classes, of_id):
        below = descendants(graph, [of_id[name]]) | {of_id[name]}
        for category, synset in of_ood.items():
            if synset in below:
                kinds.setdefault(category, name)
    return kinds


def _known(names: Sequence[str], mapped: Mapping[str, str]) -> list[str]:
    return [name for name in names if name in mapped]
