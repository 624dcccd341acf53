"""What is proposed of each category: overlap, near, far, or nothing, by thresholds and the user's own lists."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

import numpy as np

from curation.errors import ProposalError
from curation.proposals.category_relations import Nearest, Relation
from curation.proposals.id_classes import name_key
from curation.proposals.proposal import OVERLAPS, CategoryJudgement, Evidence, Kind
from curation.proposals.thresholds import decimal_text

if TYPE_CHECKING:
    from curation.sources.source import Source

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
        return Judged(
            category, judgement, relation.kind, relation.phrase + warning, relation.id_class, nearest, listed
        )
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
            "A list names what is no category of the source"
            if missing
            else "A category is listed as near and as far",
            where="near and far classes",
            expected=None if both and not missing else "names as the annotation file writes them",
            found=", ".join((missing or both)[:5])[:200],
        )
    listed: dict[str, Literal["near", "far"]] = dict.fromkeys(near, "near")
    return listed | dict.fromkeys(far, "far")
