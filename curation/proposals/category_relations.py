"""How the categories of an OOD source relate to the ID classes: by name, alias, synset, kind, part, and by nearness."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from curation.hierarchy import Wordnet, open_wordnet
from curation.hierarchy.hierarchy import ancestors, descendants
from curation.hierarchy.kinship import kinship, nearest, wu_palmer
from curation.proposals.id_classes import IdClass, name_key, owners
from curation.proposals.proposal import Kind

if TYPE_CHECKING:
    from curation.hierarchy.hierarchy import Graph

PERSON = "n00007846"
BODY = ("n05220461", "n05217168", "n05254795")
"""Body part, human body, hair: what lies at or below one of them is a part of a person. The built-in
table has no part-of pointers; a class tree with parts may be given beside it."""


@dataclass(frozen=True, slots=True)
class Relation:
    """One way in which a category is, or may be, an ID class.

    Attributes
    ----------
    kind : str
        ``label_name``, ``label_alias``, ``label_synonym``, ``label_kind``, ``label_part`` or ``label_broader``.
    id_class : str
        ``""`` where several are meant.
    phrase : str
        For a reader, to follow the name of the category: ``"is a kind of dog"``.
    """

    kind: Kind
    id_class: str
    phrase: str


@dataclass(frozen=True, slots=True)
class ClassTree:
    """A data set's own class tree twice; nodes bear names as ``lemmas`` (`curation.hierarchy.read_open_images`).

    Attributes
    ----------
    kinds, kinds_and_parts : Graph
        Without and with parts below their wholes.
    """

    kinds: Graph
    kinds_and_parts: Graph


@dataclass(frozen=True, slots=True)
class Nearest:
    """The ID class nearest to a category by Wu-Palmer similarity, and that similarity, in (0, 1]."""

    id_class: str
    score: float


def category_relations(
    categories: Sequence[str],
    classes: Sequence[IdClass],
    *,
    synsets: Mapping[str, str],
    id_synsets: Mapping[str, str],
    tree: ClassTree | None = None,
    wordnet: Wordnet | None = None,
) -> dict[str, Relation]:
    """Return the strongest relation of each category that has one to an ID class.

    Parameters
    ----------
    categories : sequence of str
    classes : sequence of IdClass
    synsets, id_synsets : mapping of str to str
        Of categories and of ID classes, where they have one.
    tree : ClassTree, optional
        The data set's own kinds and parts, asked where WordNet says nothing.
    wordnet : Wordnet, optional
        The built-in one by default.
    """
    by_name = owners(classes)
    chosen = wordnet or open_wordnet()
    below, above = _kinship_relations(categories, synsets, id_synsets, chosen)
    lemmas = {
        name: {name_key(lemma) for lemma in chosen.words_of(synset)} for name, synset in id_synsets.items()
    }
    in_tree = _tree_relations(classes, tree) if tree is not None else {}
    found: dict[str, Relation] = {}
    for category in categories:
        owner = by_name.get(name_key(category))
        if owner is not None:
            kind: Kind = "label_name" if owner[1] else "label_alias"
            found[category] = Relation(
                kind, owner[0], f"{'is' if owner[1] else 'is another name of'} {owner[0]}"
            )
        elif category in below:
            found[category] = below[category]
        elif category not in synsets and (named := _by_lemma(category, lemmas)):
            found[category] = Relation("label_synonym", named, f"is a word for {named} in WordNet")
        elif name_key(category) in in_tree:
            found[category] = in_tree[name_key(category)]
        elif category in above:
            found[category] = above[category]
    return found


def nearest_classes(
    synsets: Mapping[str, str], id_synsets: Mapping[str, str], wordnet: Wordnet | None = None
) -> dict[str, Nearest]:
    """Return the nearest ID class of each category that has a synset; ties go to the first class (spec 3.3).

    Instance pointers count as kinship, as in NLTK.
    """
    if not synsets or not id_synsets:
        return {}
    wanted = list(dict.fromkeys([*synsets.values(), *id_synsets.values()]))
    kin = kinship((wordnet or open_wordnet()).nouns(wanted, instances=True), wanted)
    first_owner = {synset: name for name, synset in list(id_synsets.items())[::-1]}
    own = list(dict.fromkeys(synsets.values()))
    scored = dict(zip(own, nearest(kin, own, list(first_owner)[::-1]), strict=True))
    return {
        name: Nearest(first_owner[known], score)
        for name, synset in synsets.items()
        for known, score in (scored[synset],)
    }


def _kinship_relations(
    categories: Sequence[str], synsets: Mapping[str, str], id_synsets: Mapping[str, str], wordnet: Wordnet
) -> tuple[dict[str, Relation], dict[str, Relation]]:
    """Return the categories that are, or are kinds or parts of, an ID class; and those above one."""
    if not synsets or not id_synsets:
        return {}, {}
    graph = wordnet.nouns({*synsets.values(), *id_synsets.values()}, instances=True)
    over_id = {name: ancestors(graph, [synset]) for name, synset in id_synsets.items()}
    below: dict[str, Relation] = {}
    above: dict[str, Relation] = {}
    for category in (one for one in categories if one in synsets):
        synset = synsets[category]
        over = ancestors(graph, [synset])
        if same := [name for name, known in id_synsets.items() if known == synset]:
            below[category] = Relation("label_synonym", same[0], f"has the synset of {same[0]}")
        elif kinds := [name for name, known in id_synsets.items() if known in over]:
            chosen = _deepest(graph, kinds, id_synsets, synset)
            below[category] = Relation("label_kind", chosen, f"is a kind of {chosen}")
        elif person := _whole_of_body(over | {synset}, id_synsets):
            below[category] = Relation("label_part", person, f"is part of {person}")
        elif kinds := [name for name, its in over_id.items() if synset in its]:
            above[category] = _broader(kinds)
    return below, above


def _deepest(graph: Graph, names: list[str], id_synsets: Mapping[str, str], synset: str) -> str:
    if len(names) == 1:
        return names[0]
    kin = kinship(graph, [synset, *(id_synsets[name] for name in names)])
    scores = wu_palmer(kin, [synset], [id_synsets[name] for name in names])
    return names[int(np.argmax(scores[0]))]


def _whole_of_body(over: set[str], id_synsets: Mapping[str, str]) -> str:
    if over.isdisjoint(BODY):
        return ""
    return next((name for name, synset in id_synsets.items() if synset == PERSON), "")


def _broader(kinds: list[str]) -> Relation:
    shown = ", ".join(kinds[:3]) + (f" and {len(kinds) - 3} more" if len(kinds) > 3 else "")
    return Relation("label_broader", kinds[0] if len(kinds) == 1 else "", f"may be {shown}")


def _tree_relations(classes: Sequence[IdClass], tree: ClassTree) -> dict[str, Relation]:
    """Return for each name below an ID class's node its relation to that class; the first class where several are."""
    found: dict[str, Relation] = {}
    kinds: tuple[tuple[Graph, Kind, str], ...] = (
        (tree.kinds, "label_kind", "a kind"),
        (tree.kinds_and_parts, "label_part", "part"),
    )
    for graph, kind, what in kinds:
        origin = str(graph.graph.get("origin", "the class tree"))
        for owner, name in _below(classes, graph):
            found.setdefault(name, Relation(kind, owner, f"is {what} of {owner} in {origin}"))
    return found


def _below(classes: Sequence[IdClass], graph: Graph) -> Iterator[tuple[str, str]]:
    by_name = owners(classes)
    order = {one.name: place for place, one in enumerate(classes)}
    names = {node: name_key(str(data.get("lemmas") or node)) for node, data in graph.nodes(data=True)}
    wholes = sorted((order[by_name[key][0]], node) for node, key in names.items() if key in by_name)
    for place, node in wholes:
        for lower in sorted(descendants(graph, [node]) - {node}):
            yield classes[place].name, names[lower]


def _by_lemma(category: str, lemmas: Mapping[str, Collection[str]]) -> str:
    key = name_key(category)
    return next((name for name, its in lemmas.items() if key in its), "")
