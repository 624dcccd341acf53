"""The categories of an OOD source: how they relate to ID classes, and what annotations of them say of an image."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from curation.errors import ProposalError
from curation.hierarchy import Wordnet, open_wordnet
from curation.hierarchy.hierarchy import ancestors, descendants
from curation.hierarchy.related_classes import kinship, nearest, wu_palmer
from curation.proposals.id_classes import IdClass, name_key, owners
from curation.proposals.proposal import OVERLAPS, CategoryJudgement, Evidence, Kind, decimal_text

if TYPE_CHECKING:
    import numpy.typing as npt

    from curation.hierarchy.hierarchy import Graph
    from curation.sources.source import Source

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
    """A data set's own class tree twice; nodes bear names as ``lemmas`` (see `read_open_images`).

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
    lemmas = {name: {name_key(lemma) for lemma in chosen.words_of(synset)} for name, synset in id_synsets.items()}
    in_tree = _tree_relations(classes, tree) if tree is not None else {}
    found: dict[str, Relation] = {}
    for category in categories:
        owner = by_name.get(name_key(category))
        if owner is not None:
            kind: Kind = "label_name" if owner[1] else "label_alias"
            found[category] = Relation(kind, owner[0], f"{'is' if owner[1] else 'is another name of'} {owner[0]}")
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


Judgement = Literal["overlap", "part", "broader", "near", "far", "unjudged"]


@dataclass(frozen=True, slots=True)
class Lists:
    """Categories that the user calls near or far himself, whatever their kinship."""

    near: tuple[str, ...] = ()
    far: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """A category with what an annotation of it says of an image.

    Attributes
    ----------
    category : str
    judgement : str
    kind : str
        Of the evidence that an annotation of it is.
    phrase : str
        For a reader, to follow the category's name.
    id_class : str
        The ID class concerned or nearest.
    nearest : Nearest or None
    listed : {"", "near", "far"}
    """

    category: str
    judgement: Judgement
    kind: Kind
    phrase: str
    id_class: str
    nearest: Nearest | None
    listed: Literal["", "near", "far"] = ""


def judge_categories(
    categories: Sequence[str],
    relations: Mapping[str, Relation],
    nearest: Mapping[str, Nearest],
    *,
    near_wup: Decimal,
    lists: Lists | None = None,
) -> tuple[Judged, ...]:
    """Return what is thought of each category, in the order given (spec 3.3, step 2).

    An overlap goes before the user's lists, these before kinship. A listed category that is an ID class says so in its
    phrase: FindMeIfYouCan's own near list holds "Dog".

    Raises
    ------
    ProposalError
        A list names what is no category, or a category is on both lists.
    """
    chosen = lists or Lists()
    listed = _listed(categories, chosen)
    return tuple(
        _judged(one, relations.get(one), nearest.get(one), near_wup, listed.get(name_key(one), ""))
        for one in categories
    )


def _judged(
    category: str,
    relation: Relation | None,
    nearest: Nearest | None,
    near_wup: Decimal,
    listed: Literal["", "near", "far"],
) -> Judged:
    if relation is not None and (relation.kind in OVERLAPS or not listed):
        judgement: Judgement = (
            "overlap" if relation.kind in OVERLAPS else "part" if relation.kind == "label_part" else "broader"
        )
        warning = f", though listed as {listed}" if listed else ""
        return Judged(category, judgement, relation.kind, relation.phrase + warning, relation.id_class, nearest, listed)
    owner = nearest.id_class if nearest else ""
    if listed:
        kind: Kind = "near_listed" if listed == "near" else "far_listed"
        return Judged(category, listed, kind, f"is listed as {listed}", owner, nearest, listed)
    if nearest is None:
        return Judged(category, "unjudged", "unjudged", "has no synset and stands on no list", "", None)
    if is_near(nearest.score, near_wup):
        return Judged(category, "near", "near_kinship", f"is near {owner}", owner, nearest)
    return Judged(category, "far", "far_kinship", f"is far: nearest is {owner}", owner, nearest)


def is_near(score: float, near_wup: Decimal) -> bool:
    """Return whether a similarity reaches the threshold, both as they are printed: 0.82 reaches 0.8200."""
    return Decimal(decimal_text(score)) >= near_wup


def category_counts(source: Source) -> tuple[list[int], list[int]]:
    """Return for each category how many images and how many objects have it (0 objects: presence only)."""
    image, category = source.class_pairs()
    n = len(source.categories)
    pairs = np.unique(image.astype(np.int64) * max(n, 1) + category)
    images = np.bincount(pairs % max(n, 1), minlength=n) if n else np.empty(0, np.int64)
    objects = np.bincount(category, minlength=n) if source.objects is not None else np.zeros(n, np.int64)
    return images.tolist(), objects.tolist()


def category_table(
    pool: str, judged: Sequence[Judged], source: Source, synsets: Mapping[str, str]
) -> tuple[CategoryJudgement, ...]:
    """Return the judgements as records, the categories with the most images first."""
    images, objects = category_counts(source)
    rows = [
        CategoryJudgement(
            pool=pool,
            category=one.category,
            images=images[place],
            objects=objects[place],
            judgement=one.judgement,
            reason=one.phrase,
            id_class=one.id_class,
            synset=synsets.get(one.category, ""),
            kinship=_kinship_text(one),
        )
        for place, one in enumerate(judged)
    ]
    return tuple(sorted(rows, key=lambda row: (-row.images, row.category)))


def evidence_of(one: Judged, objects: int, near_wup: Decimal) -> Evidence:
    """Return what annotations of a category in an image are evidence of.

    Parameters
    ----------
    objects : int
        How many the image has; 0 where only presence is known.
    """
    counted = f" ({objects} object{'s' if objects > 1 else ''})" if objects else ""
    by_kinship = one.kind in ("near_kinship", "far_kinship")
    return Evidence(
        kind=one.kind,
        detail=f"{one.category}{counted} {one.phrase}",
        score=_kinship_text(one),
        threshold=str(near_wup) if by_kinship else "",
        id_class=one.id_class if one.judgement != "unjudged" else "",
    )


def _kinship_text(one: Judged) -> str:
    # By Wu-Palmer as NLTK has it a person is 0.86 similar to a person (two ways lead up to the root).
    if one.kind in ("label_name", "label_alias", "label_synonym"):
        return decimal_text(1.0)
    return decimal_text(one.nearest.score) if one.nearest else ""


def _listed(categories: Collection[str], lists: Lists) -> dict[str, Literal["near", "far"]]:
    known = {name_key(one) for one in categories}
    near = {name_key(one): one for one in lists.near}
    far = {name_key(one): one for one in lists.far}
    missing = [one for key, one in (near | far).items() if key not in known]
    both = [one for key, one in near.items() if key in far]
    if missing or both:
        raise ProposalError(
            "A list names what is no category of the source" if missing else "A category is listed as near and as far",
            where="near and far classes",
            expected=None if both and not missing else "names as the annotation file writes them",
            found=", ".join((missing or both)[:5])[:200],
        )
    listed: dict[str, Literal["near", "far"]] = dict.fromkeys(near, "near")
    return listed | dict.fromkeys(far, "far")


NO_ANNOTATION = "no annotation"
_NOTHING = Evidence(kind="unjudged", detail=NO_ANNOTATION)


def label_evidence(source: Source, judged: Sequence[Judged], *, near_wup: Decimal) -> list[tuple[Evidence, ...]]:
    """Return what the annotations of each image are evidence of, in the order of the source's images.

    Every category of an image that overlaps an ID class or is near one is a piece of evidence. Of the rest only what
    decides is told: the unjudged categories, or else the one nearest to an ID class. An image without an annotation
    gets one piece, of kind ``unjudged``.

    Parameters
    ----------
    source : Source
    judged : sequence of Judged
        One for each category of the source, in its order.
    """
    images, categories, objects = _counted(source)
    starts = np.searchsorted(images, np.arange(len(source.images) + 1)).tolist()
    # A large source repeats few pairs of category and number of objects: each is put into words once.
    worded = cache(lambda category, n: evidence_of(judged[category], n, near_wup))
    pairs = list(zip(categories.tolist(), objects.tolist(), strict=True))
    return [
        tuple(worded(*pair) for pair in _telling(pairs[start:end], judged)) or (_NOTHING,)
        for start, end in pairwise(starts)
    ]


def _telling(pairs: list[tuple[int, int]], judged: Sequence[Judged]) -> list[tuple[int, int]]:
    """Return the categories, with their numbers of objects, that decide about an image."""
    telling = [pair for pair in pairs if judged[pair[0]].judgement in ("overlap", "part", "broader", "near")]
    if telling or not pairs:
        return telling
    unjudged = [pair for pair in pairs if judged[pair[0]].judgement == "unjudged"]
    return unjudged or [max(pairs, key=lambda pair: _closeness(judged[pair[0]]))]


def _closeness(one: Judged) -> tuple[float, str]:
    return (one.nearest.score if one.nearest else 0.0, one.category)


def _counted(source: Source) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the pairs of image and category, sorted, and how many objects each has; 0 where only presence is known."""
    image, category = source.class_pairs()
    width = max(len(source.categories), 1)
    pairs, counts = np.unique(image.astype(np.int64) * width + category, return_counts=True)
    if source.objects is None:
        counts = np.zeros_like(counts)
    return pairs // width, pairs % width, counts.astype(np.int64)
