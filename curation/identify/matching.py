"""How a list is held against those of an index: the best level of equality, else how much they share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from curation.identify.fingerprint import Fingerprint, Hashes, hashes_in_order, sum_of
from curation.identify.index import KnownList, ListIndex
from curation.identify.references import Images, References
from curation.sources.stems import blocks_of

LEVELS: Mapping[int, str] = {
    1: "the same bytes",
    2: "the same images in the same order",
    3: "the same images and repeats in another order",
    4: "the same set of images",
    5: "the same set of folder and image",
    6: "equal only without the zeros before numbers",
}
"""What equality means, best first. The last one is a hint: numbers of two data sets may be equal by chance."""
HINT = 6
LEAST_SHARE, LEAST_IMAGES = 0.01, 50
"""A list that shares less than both is not named as a relative: short numbers meet by chance."""

_NEAR = 0.5
_FEW_HITS = 8
_COUNTED = 16
_MOST_IN_UNION = 4
_UNION_CANDIDATES = 40
_EXAMPLES = 3
_EXAMPLE_BLOCK = 1 << 14

Kind = Literal["part of", "holds", "near", "shares"]
Labels = Literal["same", "differ", "only here", "only there", ""]


@dataclass(frozen=True)
class Match:
    """A known list that is equal to the one asked about.

    Attributes
    ----------
    level : int
        See `LEVELS`.
    known : KnownList
    labels : {"same", "differ", "only here", "only there", ""}
        Empty where neither has labels.
    labels_differ : int, optional
        Images with another label, where the known list itself is available.
    note : str
        What limits the answer.
    """

    level: int
    known: KnownList
    labels: Labels = ""
    labels_differ: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Relation:
    """A known list that shares images with the one asked about.

    Attributes
    ----------
    kind : {"part of", "holds", "near", "shares"}
        All images of the list are in the known one, or the other way round; or at least half of all images of the two
        are in both; or fewer.
    known : KnownList
    shared, missing, extra : int
        Images in both, in the known list alone, and in the list asked about alone.
    exact : bool
        Counted; else estimated from a sketch.
    hits : int
        Of an estimate, images of the sketch that are in the list asked about.
    most_wrong : float
        Where a sketch alone says that one list lies in the other: share of its images, at most, that do not (95 %).
    missing_examples, extra_examples : tuple of str
    """

    kind: Kind
    known: KnownList
    shared: int
    missing: int
    extra: int
    exact: bool
    hits: int
    most_wrong: float = 0.0
    missing_examples: tuple[str, ...] = ()
    extra_examples: tuple[str, ...] = ()

    @property
    def likeness(self) -> float:
        """Shared images as a share of all images of the two."""
        return self.shared / max(self.shared + self.missing + self.extra, 1)

    @property
    def is_named(self) -> bool:
        """Whether enough is shared, and known of it, to name the known list."""
        if not self.exact and self.hits < _FEW_HITS:
            return False
        return self.shared >= LEAST_IMAGES or self.shared >= LEAST_SHARE * (self.shared + self.extra)


@dataclass(frozen=True)
class Union:
    """Known lists that the one asked about holds together.

    Attributes
    ----------
    parts : tuple of KnownList
    others : int
        Images that are in none of them.
    exact : bool
    """

    parts: tuple[KnownList, ...]
    others: int
    exact: bool


def matches(asked: Fingerprint, index: ListIndex, references: References) -> tuple[Match, ...]:
    """Return the known lists that are equal to one, best level first."""
    found = []
    for row, known in enumerate(index.lists):
        level = _level(asked, known)
        if level is not None:
            labels = _labels(asked, known)
            count = references.labels_that_differ(index, row, asked) if labels == "differ" else None
            found.append(Match(level, known, labels, count, _note(asked, known, level)))
    return tuple(sorted(found, key=lambda one: (one.level, one.known.name)))


def _level(asked: Fingerprint, known: KnownList) -> int | None:
    if known.sha256 and (asked.sha256, asked.key) == (known.sha256, known.key):
        return 1
    if asked.lines == known.lines and asked.sequence == known.sequence:
        return 2
    if asked.lines == known.lines and asked.repeats == known.repeats:
        return 3
    folded = asked.folded or known.folded
    if not folded and asked.stems == known.stems and asked.sha256_stems == known.sha256_stems:
        return 4
    if folded and asked.parent_stems == known.parent_stems and asked.sha256_parent_stems == known.sha256_parent_stems:
        return 5
    if known.sha256_numbers and asked.numbers == known.numbers and asked.sha256_numbers == known.sha256_numbers:
        return HINT
    return None


def _note(asked: Fingerprint, known: KnownList, level: int) -> str:
    if level == HINT:
        collapsed = max(known.stems, asked.stems) - known.numbers
        if asked.mixes_lengths or collapsed:
            words = "numbers of several lengths stand in it, perhaps of several data sets"
            return f"{words}; {collapsed:,} of them become equal without zeros" if collapsed else words
        return "numbers are no ids across data sets: 000005 is VOC's, 000000000005 is COCO's"
    if level == 4 and asked.lines != known.lines:
        return f"{asked.lines:,} lines here, {known.lines:,} there: repeats differ"
    if level == 4:
        return "as many lines, other images repeat"
    if level in (2, 3) and known.folded and asked.sha256_parent_stems != known.sha256_parent_stems:
        return f"by {known.stems:,} stems of {known.parent_stems:,} images: without its folders a stem names no image"
    return ""


def _labels(asked: Fingerprint, known: KnownList) -> Labels:
    if not asked.sha256_labels and not known.sha256_labels:
        return ""
    if not asked.sha256_labels:
        return "only there"
    if not known.sha256_labels:
        return "only here"
    return "same" if asked.sha256_labels == known.sha256_labels else "differ"


def relations(asked: Fingerprint, index: ListIndex, references: References) -> tuple[Relation, ...]:
    """Return the known lists that share images with one, the most alike first.

    Counts are exact where the known list is available or not longer than a sketch, else estimated.
    """
    found = list[Relation]()
    for row, hits, below in _hits(asked, index):
        known, sketch = index.lists[row], index.sketches[row]
        size = len(asked.hashes(folded=known.folded))
        # A list much longer than this one has too few hashes in the sketch: only the list itself can tell.
        expected = size * len(sketch) / max(known.images, 1)
        if hits or (expected < _FEW_HITS and references.has(known)):
            found.append(_estimated(known, size, len(sketch), hits, below))
    found.sort(key=lambda one: (-one.likeness, one.known.name))
    counted, alike = list[Relation](), dict[str, Relation]()
    for place, relation in enumerate(found):
        known = relation.known
        if not relation.exact and (place < _COUNTED or relation.hits < _FEW_HITS):
            same = f"{known.sha256_stems} {known.folded and known.sha256_parent_stems}"
            if same not in alike and (images := references.images(known)) is not None:
                alike[same] = _counted(asked, known, images)
            relation = replace(alike[same], known=known) if same in alike else relation
        if relation.shared:
            counted.append(relation)
    return tuple(sorted(counted, key=lambda one: (-one.likeness, one.known.name)))


def _hits(asked: Fingerprint, index: ListIndex) -> Iterator[tuple[int, int, int]]:
    """Yield row of each known list, how much of its sketch is in the list asked about, and how much could be."""
    for row, known in enumerate(index.lists):
        # A list with more stems than a known one of which several images share a stem can hold it, or most of it, only
        # where its own images share stems too.
        if known.folded and not asked.folded and asked.stems > known.stems:
            continue
        sketch = index.sketches[row]
        hashes = asked.hashes(folded=known.folded)
        hits = int(_places(sketch, hashes)[1].sum())
        below = len(hashes) if len(sketch) == known.images else int(np.searchsorted(hashes, sketch[-1], side="right"))
        yield row, hits, below


def _estimated(known: KnownList, size: int, sketched: int, hits: int, below: int) -> Relation:
    complete = sketched == known.images
    is_inside, holds = hits == below and (complete or below >= _FEW_HITS), hits == sketched
    shared = hits if complete else round(hits * known.images / sketched)
    if is_inside and not complete:
        shared = size
    if holds:
        shared = known.images
    shared = min(shared, size, known.images)
    missing, extra = known.images - shared, size - shared
    kind = _kind(shared, missing, extra) if complete else None
    if kind is None:
        kind = "near" if is_inside and holds else "part of" if is_inside else "holds" if holds else None
    if kind is None:
        kind = "near" if shared >= _NEAR * (shared + missing + extra) else "shares"
    wrong = 3 / max(below, 1) if is_inside else 3 / sketched if holds else 0.0
    return Relation(kind, known, shared, missing, extra, complete, hits, 0.0 if complete else wrong)


def _kind(shared: int, missing: int, extra: int) -> Kind:
    if not extra:
        return "part of"
    if not missing:
        return "holds"
    return "near" if shared >= _NEAR * (shared + missing + extra) else "shares"


def _counted(asked: Fingerprint, known: KnownList, images: Images) -> Relation:
    own, theirs = asked.hashes(folded=known.folded), images.hashes
    few, many = sorted((own, theirs), key=len)
    shared = int(_places(few, many)[1].sum())
    missing, extra = len(theirs) - shared, len(own) - shared
    counted = Relation(_kind(shared, missing, extra), known, shared, missing, extra, exact=True, hits=shared)
    if not counted.is_named:
        return counted
    keys = asked.keys(folded=known.folded)
    return replace(
        counted,
        missing_examples=_examples(images.keys, own) if missing else (),
        extra_examples=_examples(keys, theirs) if extra else (),
    )


def _places(hashes: Hashes, own: Hashes) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return where hashes stand in an ascending column, and which of them do."""
    places = np.minimum(np.searchsorted(own, hashes), max(len(own) - 1, 0))
    return places, own[places] == hashes


def _examples(keys: bytes, hashes: Hashes) -> tuple[str, ...]:
    """Return the first lines of a text whose hash is not among some."""
    found: list[str] = []
    for block in blocks_of(keys, _EXAMPLE_BLOCK):
        _, is_there = _places(hashes_in_order(block), hashes)
        lines = block.split(b"\n")
        found += [lines[row].decode() for row in np.flatnonzero(~is_there)[: _EXAMPLES - len(found)].tolist()]
        if len(found) == _EXAMPLES:
            break
    return tuple(found)


def union(asked: Fingerprint, found: Sequence[Relation], references: References) -> Union | None:
    """Return the known lists that one holds together; None where it holds fewer than two.

    Lists that share nothing are told by the sum of their hashes. Else the largest is taken that adds something, again
    and again; that is a union only where nothing is left over.
    """
    inside = _one_of_equals(
        [one for one in found if one.is_named and not one.known.folded and (one.kind == "holds" or _may_hold(one))]
    )[:_UNION_CANDIDATES]
    if len(inside) < 2:
        return None
    own = asked.hashes(folded=False)
    if (parts := _summing(inside, len(own), sum_of(own))) is not None:
        return Union(parts, 0, exact=True)
    is_left, taken, exact = np.ones(len(own), np.bool_), list[KnownList](), True
    for one in inside:
        images = references.images(one.known)
        if images is None:
            exact = False
            continue
        places, is_own = _places(images.hashes, own)
        if is_own.all() and is_left[places].any():
            is_left[places] = False
            taken.append(one.known)
    left = int(is_left.sum())
    return Union(tuple(taken), left, exact=exact or not left) if len(taken) > 1 else None


def _may_hold(one: Relation) -> bool:
    return one.kind == "near" and not one.exact and not one.missing


def _one_of_equals(found: Sequence[Relation]) -> list[Relation]:
    """Return relations by falling size, of lists with the same images the first."""
    first: dict[str, Relation] = {}
    for one in sorted(found, key=lambda one: (-one.known.images, one.known.name)):
        first.setdefault(one.known.sha256_stems, one)
    return list(first.values())


def _summing(inside: Sequence[Relation], size: int, total: int) -> tuple[KnownList, ...] | None:
    """Return lists whose sizes and sums of hashes add up to those wanted: a union of lists that share nothing."""

    def search(start: int, size: int, total: int, taken: tuple[KnownList, ...]) -> tuple[KnownList, ...] | None:
        if not size:
            return taken if not total and len(taken) > 1 else None
        if len(taken) == _MOST_IN_UNION:
            return None
        for place in range(start, len(inside)):
            known = inside[place].known
            # By falling size: where even this many of the largest left are too few, no later ones are enough.
            if known.images * (_MOST_IN_UNION - len(taken)) < size:
                return None
            if known.images <= size:
                found = search(place + 1, size - known.images, (total - known.hash_sum) % 2**64, (*taken, known))
                if found is not None:
                    return found
        return None

    return search(0, size, total, ())
