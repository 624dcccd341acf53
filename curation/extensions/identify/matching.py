"""Compare a list with those of an index: the best level of equality, or the number of shared images.

Images are counted if a known list is available (`References`: bit sets, manifests, folders).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.core.errors import CurationError
from curation.extensions.identify.index import (
    DECLARATION,
    Fingerprint,
    Hashes,
    KnownList,
    ListIndex,
    hashes_in_order,
    keys_of_bits,
    make_index,
    of_ids,
)
from curation.sources.entries import PublishedList
from curation.sources.published_list import read_published
from curation.sources.stems import DistinctLines, blocks_of

_Key = tuple[str, str]


class _ListImages(NamedTuple):
    """The images of a known list: distinct stems (with folder if stems repeat) and their hashes."""

    keys: DistinctLines
    hashes: Hashes


class References:
    """Known lists whose images can be read, by the digests of the images.

    Parameters
    ----------
    index : ListIndex
        Its bit sets and the parts of this package's manifests are available.
    folders : tuple of Path
        Folders of further known lists.

    Attributes
    ----------
    index : ListIndex
        With the lists of the folders.
    passed_over : dict of str to str
        Files of the folders that are not known lists, with the reason.
    """

    def __init__(self, index: ListIndex, folders: tuple[Path, ...] = ()) -> None:
        self._bits = {_key(known): known for known in index.lists if known.bits}
        self._manifests = {_key(known): known for known in index.lists if known.manifest}
        self._files: dict[_Key, tuple[Path, KnownList]] = {}
        self._images: dict[_Key, _ListImages | None] = {}
        self.passed_over: dict[str, str] = {}
        for folder in folders:
            made = make_index(folder)
            reasons = {**dict.fromkeys(made.undeclared, f"{DECLARATION} does not declare it"), **made.passed_over}
            self.passed_over |= {f"{folder}/{name}": why for name, why in reasons.items()}
            for known in made.index.lists:
                if known.manifest:
                    self._manifests.setdefault(_key(known), known)
                else:
                    self._files.setdefault(_key(known), (folder / known.file, known))
            index = index.joined(made.index)
        self.index = index

    def has(self, known: KnownList) -> bool:
        """Return whether the images of a known list can be read."""
        return any(_key(known) in table for table in (self._bits, self._files, self._manifests))

    def images(self, known: KnownList) -> _ListImages | None:
        """Return the images of a known list, which is read once; None if it is not available."""
        key = _key(known)
        if key not in self._images:
            read = self._read(known)
            folded = known.folded
            images = None if read is None else _ListImages(read.keys(folded=folded), read.hashes(folded=folded))
            self._images[key] = images
        return self._images[key]

    def _read(self, known: KnownList) -> Fingerprint | None:
        key = _key(known)
        if key in self._bits:
            keys = keys_of_bits(self._bits[key], self.index.bits[known.sha256_stems])
            return Fingerprint(PublishedList("", keys, np.arange(1, keys.count(b"\n") + 1, dtype=np.int32)))
        try:
            if key in self._files:
                path, listed = self._files[key]
                published = next(part for part in read_published(path).lists if part.name == listed.key)
                return Fingerprint(published)
            if key in self._manifests:
                return _of_manifest(self._manifests[key].manifest, known)
        except (CurationError, StopIteration):
            # Only the sketch is available of a list that has changed since or is not installed.
            pass
        return None


def _of_manifest(name: str, known: KnownList) -> Fingerprint | None:
    from curation.manifest.manifest import packaged_manifests, read_manifest

    target, _, part = name.partition("#")
    fingerprint = of_ids(list(read_manifest(packaged_manifests() / target.replace("@", "/")).lists[part]))
    return fingerprint if fingerprint.sha256_stems == known.sha256_stems else None


def _key(known: KnownList) -> _Key:
    return known.sha256_stems, known.sha256_parent_stems if known.folded else ""


LEVELS: Mapping[int, str] = {
    1: "the same bytes",
    2: "the same images in the same order",
    3: "the same images and repeats in another order",
    4: "the same set of images",
    5: "the same set of folder and image",
    6: "equal only without the zeros before numbers",
    7: "the same file names in other folders",
}
"""Levels of equality, best first. The last two are hints: numbers of two datasets may be equal, and derived images keep
their names."""
HINT = 6
LEAST_SHARE, LEAST_IMAGES = 0.01, 50
"""A list that shares less than both is not reported as related: short numbers coincide by chance."""

_NEAR = 0.5
_MOST = 0.9
_LIFT, _DEVIATIONS, _DENSE = 1.5, 4, 2 / 3
_FEW_HITS = 8
_COUNTED = 16
_EXAMPLES = 3
_EXAMPLE_BLOCK = 1 << 14

Kind = Literal["part of", "holds", "near", "mostly in", "holds most of", "shares", "named like"]
Labels = Literal["same", "differ", "only here", "only there", ""]


@dataclass(frozen=True)
class Match:
    """A known list that is equal to the queried list.

    Attributes
    ----------
    level : int
        See `LEVELS`.
    known : KnownList
    labels : {"same", "differ", "only here", "only there", ""}
        Empty if neither has labels.
    note : str
        A limitation of the answer.
    """

    level: int
    known: KnownList
    labels: Labels = ""
    note: str = ""


@dataclass(frozen=True)
class ListRelation:
    """A known list that shares images with the queried list.

    Attributes
    ----------
    kind : {"part of", "holds", "near", "mostly in", "holds most of", "shares", "named like"}
        ``part of`` and ``holds``: all images of either list are in the other, counted. ``near``: at least half of all
        images are in both. ``mostly in`` and ``holds most of``: more than half of the list, or nine tenths of the known
        list, by count or sketch. ``shares``: fewer. ``named like``: only the file names are shared, in
        folders of other images.
    known : KnownList
    shared, missing, extra : int
        Images in both lists, in the known list only, and in the queried list only.
    exact : bool
        Counted; else estimated from a sketch.
    hits : int
        For an estimate, images of the sketch that are in the queried list.
    most_wrong : float
        If only a sketch indicates that a list is contained in the other: maximum share of its other images (95 %).
    missing_examples, extra_examples : tuple of str
    by_chance : float
        Images that two lists of bare numbers would share if both were drawn at random from their range.
    as_numbers : bool
        Whether the list was compared as numbers without leading zeros.
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
    by_chance: float = 0.0
    as_numbers: bool = False

    @property
    def rank(self) -> tuple[float, float, bool, str]:
        """Sort key of related lists: larger shares of the queried list come first."""
        return -self.shared / max(self.shared + self.extra, 1), -self.likeness, not self.known.bits, self.known.name

    @property
    def likeness(self) -> float:
        """Shared images as a share of all images in both lists."""
        return self.shared / max(self.shared + self.missing + self.extra, 1)

    @property
    def may_be_chance(self) -> bool:
        """Whether random bare numbers would share as many images: 00000000 to 00009999 contain any shorter range."""
        seen = self.shared if self.exact else self.hits
        chance = self.by_chance * seen / max(self.shared, 1)
        return chance > 0 and (seen < _LIFT * chance or seen - chance < _DEVIATIONS * chance**0.5)

    @property
    def is_named(self) -> bool:
        """Whether enough images are known to be shared to report the known list."""
        if self.may_be_chance or (not self.exact and self.hits < _FEW_HITS):
            return False
        return self.shared >= LEAST_IMAGES or self.shared >= LEAST_SHARE * (self.shared + self.extra)


def matches(query: Fingerprint, index: ListIndex) -> tuple[Match, ...]:
    """Return the known lists that are equal to a list, best level first."""
    equal = []
    for known in index.lists:
        level = _level(query, known)
        if level is not None:
            labels = _labels(query, known)
            if level > 1 and query.foreign_folder and query.sha256_parent_stems != known.sha256_parent_stems:
                level = max(LEVELS)
            equal.append(Match(level, known, labels, _note(query, known, level)))
    return tuple(sorted(equal, key=lambda match: (match.level, match.known.name)))


def _level(query: Fingerprint, known: KnownList) -> int | None:
    if known.sha256 and (query.sha256, query.key) == (known.sha256, known.key):
        return 1
    if query.lines == known.lines and query.sequence == known.sequence:
        return 2
    if query.lines == known.lines and query.repeats == known.repeats:
        return 3
    folded = query.folded or known.folded
    if not folded and query.stems == known.stems and query.sha256_stems == known.sha256_stems:
        return 4
    if folded and query.parent_stems == known.parent_stems and query.sha256_parent_stems == known.sha256_parent_stems:
        return 5
    if known.sha256_numbers and query.numbers == known.numbers and query.sha256_numbers == known.sha256_numbers:
        return HINT
    return None


def _note(query: Fingerprint, known: KnownList, level: int) -> str:
    if level > HINT:
        return f"its folders, such as {query.foreign_folder}, are of other images, perhaps made from these"
    if level == HINT:
        collapsed = max(known.stems, query.stems) - known.numbers
        if query.mixes_lengths or collapsed:
            words = "numbers of several lengths, perhaps of several data sets"
            return f"{words}; {collapsed:,} of them become equal without zeros" if collapsed else words
        return "numbers do not identify images across data sets: 000005 is VOC's, 000000000005 is COCO's"
    if level == 4 and query.lines != known.lines:
        return f"{query.lines:,} lines here, {known.lines:,} there: repeats differ"
    if level == 4:
        return "as many lines, other images repeat"
    if level in (2, 3) and known.folded and query.sha256_parent_stems != known.sha256_parent_stems:
        return f"by {known.stems:,} stems of {known.parent_stems:,} images: without its folders a stem names no image"
    return ""


def _labels(query: Fingerprint, known: KnownList) -> Labels:
    if query.sha256_labels and known.sha256_labels:
        return "same" if query.sha256_labels == known.sha256_labels else "differ"
    return "only here" if query.sha256_labels else "only there" if known.sha256_labels else ""


def relations(
    query: Fingerprint, index: ListIndex, references: References, *, equal: Sequence[Match] = ()
) -> tuple[ListRelation, ...]:
    """Return the known lists that share images with a list; larger shares of that list come first.

    Counts are exact if the known list is available or not longer than a sketch, else estimated. For a list that is
    equal to a known list, only larger lists that contain it are returned.
    """
    is_equal = bool(equal) and equal[0].level != HINT
    related = _related(query, index, references, around=is_equal)
    if not is_equal and (filled_up := query.filled_up) is not None:
        rows = [row for row, known in enumerate(index.lists) if known.bits and not known.prefix and known.digits == 12]
        coco = ListIndex(tuple(index.lists[row] for row in rows), tuple(index.sketches[row] for row in rows))
        there = {rel.known.name for rel in related if rel.is_named}
        more = [rel for rel in _related(filled_up, coco, references) if rel.is_named and rel.known.name not in there]
        related += [replace(rel, as_numbers=True) for rel in more]
    known = {match.known for match in equal}
    return tuple(sorted((rel for rel in related if rel.known not in known), key=lambda rel: rel.rank))


def _related(
    query: Fingerprint, index: ListIndex, references: References, *, around: bool = False
) -> list[ListRelation]:
    related = list[ListRelation]()
    for known, sketch in zip(index.lists, index.sketches, strict=True):
        # A list of distinct stems cannot contain most of a shorter known list whose images share stems.
        if known.folded and not query.folded and query.stems > known.stems:
            continue
        hashes = query.hashes(folded=known.folded)
        hits = int(_positions(sketch, hashes)[1].sum())
        below = len(hashes) if len(sketch) == known.images else int(np.searchsorted(hashes, sketch[-1], side="right"))
        # The sketch of a much longer list has too few hashes of this one: only the list itself can decide.
        is_short = len(hashes) * len(sketch) < _FEW_HITS * known.images
        if (hits or (is_short and references.has(known) and _may_share(query, known))) and (
            not around or known.bits or hits == below
        ):
            related.append(_estimated(known, len(hashes), len(sketch), hits, below, _by_chance(query, known)))
    related.sort(key=lambda relation: relation.rank)
    counted, alike = list[ListRelation](), dict[str, ListRelation]()
    for row, relation in enumerate(related):
        known = relation.known
        worth = relation.hits < _FEW_HITS or (not relation.may_be_chance and (known.bits or row < _COUNTED))
        if not relation.exact and worth:
            same = f"{known.sha256_stems} {known.folded and known.sha256_parent_stems}"
            if same not in alike and (images := references.images(known)) is not None:
                alike[same] = _counted(query, known, images, relation.by_chance)
            relation = replace(alike[same], known=known) if same in alike else relation
        if relation.shared and not (around and relation.extra):
            counted.append(replace(relation, kind="named like") if query.foreign_folder else relation)
    return counted


def _may_share(query: Fingerprint, known: KnownList) -> bool:
    """Return whether a list has names in the form of a list stored as bits."""
    form = rb"^%s[0-9]{%d}$" % (re.escape(known.prefix.encode()), known.digits)
    return not known.bits or any(re.search(form, block, re.MULTILINE) for block in query.listed.stem_blocks())


def _by_chance(query: Fingerprint, known: KnownList) -> float:
    """Return the expected number of shared images if the numbers in both lists are drawn from one range.

    The range is that of the queried list. The range of the known list is not used, since its other names may belong to
    further datasets.
    """
    count, reach = query.counters
    if not count or known.prefix:
        return 0.0
    return inf if count > _DENSE * reach else count * min(1.0, known.images / query.spread)


def _estimated(known: KnownList, size: int, sketched: int, hits: int, below: int, by_chance: float) -> ListRelation:
    complete = sketched == known.images
    is_inside, holds = hits == below and (complete or below >= _FEW_HITS), hits == sketched
    # The share of the shorter list in the other one is 1 only if all examined images are in it.
    part = size * hits / max(below, 1) if size < known.images else hits * known.images / sketched
    shared = min(known.images if holds else size if is_inside else round(part), size, known.images)
    missing, extra = known.images - shared, size - shared
    kind = _kind(shared, missing, extra, exact=complete)
    if not complete and is_inside != holds:
        kind = "mostly in" if is_inside else "holds most of"
    wrong = 0.0 if complete else 3 / max(below, 1) if is_inside else 3 / sketched if holds else 0.0
    return ListRelation(kind, known, shared, missing, extra, complete, hits, wrong, by_chance=by_chance)


def _kind(shared: int, missing: int, extra: int, *, exact: bool = True) -> Kind:
    if exact and not (missing and extra):
        return "holds" if extra else "part of"
    if shared >= _NEAR * (shared + missing + extra):
        return "near"
    if shared > extra:
        return "mostly in"
    return "holds most of" if shared >= _MOST * (shared + missing) else "shares"


def _counted(query: Fingerprint, known: KnownList, images: _ListImages, by_chance: float) -> ListRelation:
    hashes, known_hashes = query.hashes(folded=known.folded), images.hashes
    few, many = sorted((hashes, known_hashes), key=len)
    shared = int(_positions(few, many)[1].sum())
    missing, extra = len(known_hashes) - shared, len(hashes) - shared
    kind = _kind(shared, missing, extra)
    counted = ListRelation(kind, known, shared, missing, extra, exact=True, hits=shared, by_chance=by_chance)
    if not counted.is_named:
        return counted
    keys = query.keys(folded=known.folded)
    return replace(
        counted,
        missing_examples=_examples(images.keys, hashes) if missing else (),
        extra_examples=_examples(keys, known_hashes) if extra else (),
    )


def _positions(hashes: Hashes, column: Hashes) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return the positions of hashes in an ascending column, and which hashes are in it."""
    positions = np.minimum(np.searchsorted(column, hashes), max(len(column) - 1, 0))
    return positions, column[positions] == hashes


def _examples(keys: DistinctLines, hashes: Hashes) -> tuple[str, ...]:
    """Return the first lines whose hash is not in `hashes`."""
    examples: list[str] = []
    for block in chain.from_iterable(blocks_of(block, _EXAMPLE_BLOCK) for block in keys.blocks()):
        _, is_there = _positions(hashes_in_order(block), hashes)
        lines = block.split(b"\n")
        examples += [lines[row].decode() for row in np.flatnonzero(~is_there)[: _EXAMPLES - len(examples)].tolist()]
        if len(examples) == _EXAMPLES:
            break
    return tuple(examples)
