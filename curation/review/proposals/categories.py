"""The categories of an OOD source: their relation to ID classes, and the evidence of their annotations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from curation.core.errors import ProposalError
from curation.review.proposals.id_classes import IdClass, name_key, owners
from curation.review.proposals.proposal import OVERLAPS, CategoryJudgement, Evidence, Judgement, Kind, decimal_text
from curation.signals.hierarchy import open_wordnet
from curation.signals.hierarchy.hierarchy import ancestors
from curation.signals.hierarchy.related_classes import kinship, nearest_known, wu_palmer

if TYPE_CHECKING:
    import pandas as pd

    from curation.signals.hierarchy.hierarchy import Graph
    from curation.sources.source import Source

PERSON = "n00007846"
BODY = ("n05220461", "n05217168", "n05254795")
"""Body part, human body, hair: these synsets and those below them are parts of a person. The built-in table has no
part-of pointers."""


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
        Text after the name of the category: ``"is a kind of dog"``.
    """

    kind: Kind
    id_class: str
    phrase: str


@dataclass(frozen=True, slots=True)
class Nearest:
    """The ID class nearest to a category by Wu-Palmer similarity, and that similarity, in (0, 1]."""

    id_class: str
    score: float


def category_relations(
    categories: Sequence[str], classes: Sequence[IdClass], *, synsets: Mapping[str, str], id_synsets: Mapping[str, str]
) -> dict[str, Relation]:
    """Return the strongest relation of each category that has one to an ID class.

    Parameters
    ----------
    categories : sequence of str
    classes : sequence of IdClass
    synsets, id_synsets : mapping of str to str
        Synsets of categories and of ID classes that have one.
    """
    by_name = owners(classes)
    below, above = _kinship_relations(categories, synsets, id_synsets)
    by_lemma: dict[str, str] = {}
    for name, synset in id_synsets.items():
        for lemma in open_wordnet().words_of(synset):
            by_lemma.setdefault(name_key(lemma), name)
    relations: dict[str, Relation] = {}
    for category in categories:
        key = name_key(category)
        if key in by_name:
            owner, is_own = by_name[key]
            kind: Kind = "label_name" if is_own else "label_alias"
            relations[category] = Relation(kind, owner, f"{'is' if is_own else 'is another name of'} {owner}")
        elif category in below:
            relations[category] = below[category]
        elif category not in synsets and key in by_lemma:
            relations[category] = Relation("label_synonym", by_lemma[key], f"is a word for {by_lemma[key]} in WordNet")
        elif category in above:
            relations[category] = above[category]
    return relations


def nearest_classes(synsets: Mapping[str, str], id_synsets: Mapping[str, str]) -> dict[str, Nearest]:
    """Return the nearest ID class of each category that has a synset; ties go to the first class (spec 3.3).

    Instance pointers count as kinship, as in NLTK.
    """
    if not synsets or not id_synsets:
        return {}
    all_synsets = list(dict.fromkeys([*synsets.values(), *id_synsets.values()]))
    kin = kinship(open_wordnet().nouns(all_synsets, instances=True), all_synsets)
    first_owner = {synset: name for name, synset in list(id_synsets.items())[::-1]}
    category_synsets = list(dict.fromkeys(synsets.values()))
    scored = dict(zip(category_synsets, nearest_known(kin, category_synsets, list(first_owner)[::-1]), strict=True))
    return {
        name: Nearest(first_owner[known], score)
        for name, synset in synsets.items()
        for known, score in (scored[synset],)
    }


def _kinship_relations(
    categories: Sequence[str], synsets: Mapping[str, str], id_synsets: Mapping[str, str]
) -> tuple[dict[str, Relation], dict[str, Relation]]:
    """Return the categories that are an ID class, a kind or a part of an ID class, and the categories above it."""
    if not synsets or not id_synsets:
        return {}, {}
    graph = open_wordnet().nouns({*synsets.values(), *id_synsets.values()}, instances=True)
    over_id = {name: ancestors(graph, [synset]) for name, synset in id_synsets.items()}
    person = next((name for name, synset in id_synsets.items() if synset == PERSON), "")
    below: dict[str, Relation] = {}
    above: dict[str, Relation] = {}
    for category in (listed for listed in categories if listed in synsets):
        synset = synsets[category]
        over = ancestors(graph, [synset])
        if same := [name for name, known in id_synsets.items() if known == synset]:
            below[category] = Relation("label_synonym", same[0], f"has the synset of {same[0]}")
        elif kinds := [name for name, known in id_synsets.items() if known in over]:
            chosen = _deepest(graph, kinds, id_synsets, synset)
            below[category] = Relation("label_kind", chosen, f"is a kind of {chosen}")
        elif person and not (over | {synset}).isdisjoint(BODY):
            below[category] = Relation("label_part", person, f"is part of {person}")
        elif kinds := [name for name, its in over_id.items() if synset in its]:
            examples = ", ".join(kinds[:3]) + (f" and {len(kinds) - 3} more" if len(kinds) > 3 else "")
            above[category] = Relation("label_broader", kinds[0] if len(kinds) == 1 else "", f"may be {examples}")
    return below, above


def _deepest(graph: Graph, names: list[str], id_synsets: Mapping[str, str], synset: str) -> str:
    kin = kinship(graph, [synset, *(id_synsets[name] for name in names)])
    scores = wu_palmer(kin, [synset], [id_synsets[name] for name in names])
    return names[int(np.argmax(scores[0]))]


@dataclass(frozen=True, slots=True)
class Lists:
    """Categories that the user declares near or far, regardless of kinship."""

    near: tuple[str, ...] = ()
    far: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgement of a category: what its annotation means for an image.

    Attributes
    ----------
    category : str
    judgement : str
    kind : str
        Kind of evidence of its annotations.
    phrase : str
        Text after the name of the category.
    id_class : str
        The ID class concerned or nearest.
    nearest : Nearest or None
    """

    category: str
    judgement: Judgement
    kind: Kind
    phrase: str
    id_class: str
    nearest: Nearest | None


def judge_categories(
    categories: Sequence[str],
    relations: Mapping[str, Relation],
    nearest: Mapping[str, Nearest],
    *,
    near_wup: Decimal,
    lists: Lists | None = None,
) -> tuple[Judged, ...]:
    """Return the judgement of each category, in the order given (spec 3.3, step 2).

    An overlap goes before the user's lists, these before kinship. The phrase of a listed category
    names its ID class, if any: FindMeIfYouCan's own near list holds "Dog".

    Raises
    ------
    ProposalError
        A list names an unknown category, or a category is on both lists.
    """
    listed = _listed(categories, lists or Lists())
    judged = []
    for category in categories:
        relation, near, by_user = relations.get(category), nearest.get(category), listed.get(name_key(category), "")
        judgement: Judgement
        kind: Kind
        owner = near.id_class if near else ""
        if relation is not None and (relation.kind in OVERLAPS or not by_user):
            kind, owner = relation.kind, relation.id_class
            judgement = "overlap" if kind in OVERLAPS else "part" if kind == "label_part" else "broader"
            phrase = relation.phrase + (f", though listed as {by_user}" if by_user else "")
        elif by_user:
            judgement, kind = ("near", "near_listed") if by_user == "near" else ("far", "far_listed")
            phrase = f"is listed as {by_user}"
        elif near is None:
            judgement, kind, phrase = "unjudged", "unjudged", "has no synset and is on no list"
        elif is_near(near.score, near_wup):
            judgement, kind, phrase = "near", "near_kinship", f"is near {owner}"
        else:
            judgement, kind, phrase = "far", "far_kinship", f"is far: nearest is {owner}"
        judged.append(Judged(category, judgement, kind, phrase, owner, near))
    return tuple(judged)


def is_near(score: float, near_wup: Decimal) -> bool:
    """Return whether a similarity, rounded as printed, reaches the threshold: 0.82 reaches 0.8200."""
    return Decimal(decimal_text(score)) >= near_wup


def _counted(source: Source) -> pd.DataFrame:
    """Return the sorted pairs of image and category with their number of objects; 0 if only presence is known."""
    import pandas as pd

    image, category = source.class_pairs()
    pairs = pd.DataFrame({"image": image, "category": category}).groupby(["image", "category"]).size()
    return (pairs if source.objects is not None else 0 * pairs).reset_index(name="objects")


def category_table(
    pool: str, judged: Sequence[Judged], source: Source, synsets: Mapping[str, str]
) -> tuple[CategoryJudgement, ...]:
    """Return the judgements as records, the categories with the most images first."""
    images = np.bincount(_counted(source)["category"], minlength=len(source.categories)).tolist()
    rows = (
        CategoryJudgement(
            pool=pool,
            category=row.category,
            images=n_images,
            judgement=row.judgement,
            reason=row.phrase,
            id_class=row.id_class,
            synset=synsets.get(row.category, ""),
            kinship=_kinship_text(row),
        )
        for row, n_images in zip(judged, images, strict=True)
    )
    return tuple(sorted(rows, key=lambda row: (-row.images, row.category)))


def evidence_of(judged: Judged, objects: int, near_wup: Decimal) -> Evidence:
    """Return the evidence of the annotations of a category in an image.

    Parameters
    ----------
    objects : int
        Number in the image; 0 if only presence is known.
    """
    counted = f" ({objects} object{'s' if objects > 1 else ''})" if objects else ""
    by_kinship = judged.kind in ("near_kinship", "far_kinship")
    return Evidence(
        kind=judged.kind,
        detail=f"{judged.category}{counted} {judged.phrase}",
        score=_kinship_text(judged),
        threshold=str(near_wup) if by_kinship else "",
        id_class=judged.id_class if judged.judgement != "unjudged" else "",
    )


def _kinship_text(judged: Judged) -> str:
    # In NLTK's Wu-Palmer similarity, a person is only 0.86 similar to a person (two paths lead to the root).
    if judged.kind in ("label_name", "label_alias", "label_synonym"):
        return decimal_text(1.0)
    return decimal_text(judged.nearest.score) if judged.nearest else ""


def _listed(categories: Collection[str], lists: Lists) -> dict[str, Literal["near", "far"]]:
    near, far = ({name_key(name): name for name in listed} for listed in (lists.near, lists.far))
    both, known = [near[key] for key in near.keys() & far.keys()], set(map(name_key, categories))
    if missing := [name for key, name in (near | far).items() if key not in known]:
        message, expected = "A list names an unknown category of the source", "names as the annotation file writes them"
        raise ProposalError(
            message, where="near and far classes", expected=expected, found=", ".join(missing[:5])[:200]
        )
    if both:
        raise ProposalError("A category is listed as both near and far", found=", ".join(sorted(both)[:5])[:200])
    listed: dict[str, Literal["near", "far"]] = dict.fromkeys(near, "near")
    return listed | dict.fromkeys(far, "far")


_NOTHING = Evidence(kind="unjudged", detail="no annotation")


def label_evidence(source: Source, judged: Sequence[Judged], *, near_wup: Decimal) -> list[tuple[Evidence, ...]]:
    """Return the evidence of the annotations of each image, in the order of the source's images.

    Every category of an image that overlaps an ID class or is near one is a piece of evidence. Without such a category,
    the unjudged categories are the evidence, or else the category nearest to an ID class. An image without an
    annotation gets one piece of kind ``unjudged``.

    Parameters
    ----------
    source : Source
    judged : sequence of Judged
        One entry for each category of the source, in its order.
    """
    counts = _counted(source)
    pairs: list[list[tuple[int, int]]] = [[] for _ in range(len(source.images))]
    for image, *pair in zip(*(counts[name].tolist() for name in ("image", "category", "objects")), strict=True):
        pairs[image].append((pair[0], pair[1]))
    # A large source has few different pairs of category and number of objects.
    worded = cache(lambda category, n: evidence_of(judged[category], n, near_wup))
    return [tuple(worded(*pair) for pair in _decisive(category, judged)) or (_NOTHING,) for category in pairs]


def _decisive(pairs: list[tuple[int, int]], judged: Sequence[Judged]) -> list[tuple[int, int]]:
    """Return the categories that are the evidence on an image, with their numbers of objects."""
    if decisive := [pair for pair in pairs if judged[pair[0]].judgement in ("overlap", "part", "broader", "near")]:
        return decisive
    if unjudged := [pair for pair in pairs if judged[pair[0]].judgement == "unjudged"]:
        return unjudged

    def closeness(pair: tuple[int, int]) -> tuple[float, str]:
        judgement = judged[pair[0]]
        return (judgement.nearest.score if judgement.nearest else 0.0, judgement.category)

    return [max(pairs, key=closeness)] if pairs else []
