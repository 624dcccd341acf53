"""What is one image: its whole path as written, or an id whose form tells its dataset; which lists seem to share some.

Paths are compared as they are normalised by the reader (`PublishedList.images`), never by file name or last folder
alone: the frame ``0000000105`` of two drives are two images. Only equal images (`Images.overlaps`) may carry an error;
where there are none, what is `Images.alike` carries a warning if *likely*, a note if a *hint*.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from os.path import commonprefix
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from curation.audit.id_vocabulary import (
    BLOCK,
    NAMESPACES,
    TEXT,
    VOC2007,
    Named,
    Vocabulary,
    column_of,
    keys_by_form,
    named,
    numbered_together,
)
from curation.sources.entries import PublishedList
from curation.sources.source import Int32s, Int64s

if TYPE_CHECKING:
    import pyarrow as pa

Strength = Literal["likely", "hint"]

SHARE = 0.95
"""Of the lines of a list: fewer with the form of an id, and none is one."""
_SUFFIXES = (
    "jpe?g|png|bmp|tiff?|gif|webp|ppm|pgm|nii(?:\\.gz)?|dcm|npy|npz|h5|mat|avi|mp4|webm|wav|flac|ply|bin|obj|off"
)
IMAGE_SUFFIX = rf"(?i:\.(?:{_SUFFIXES}))$"
"""A regular expression of the suffixes that are part of an image's name."""
MOST_HINTED = 500_000
"""Images of a folder in which hints are looked for: they are notes at most, and cost a look at every path."""
_VOC_FOLDER = re.compile(rb"(?i)voc|jpegimages")
_CLIMBS = re.compile(rb"(?m)(?:^|/)\.\.(?:/|$)")


class Alike(NamedTuple):
    """That two lists which share no path, and no id, may share images.

    Attributes
    ----------
    strength : {"likely", "hint"}
    why : str
        How names agree: ``with the last folder``, ``apart from leading zeros``.
    images : int
        Distinct images of the second list that may be in the first.
    examples : tuple of (int, int)
        The first few, in the order of the second list: an image of the first list, and of the second.
    """

    strength: Strength
    why: str
    images: int
    examples: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Sign:
    """A sign that lists without a common path share images.

    What `pattern` finds in a path is replaced by `kept` before paths are compared; `share` of the smaller list must be
    found, and with `once` no two images of a list may become equal.
    """

    strength: Strength
    why: str
    pattern: str
    kept: str = ""
    share: float = 0
    once: bool = False


_LIKELY = _Sign("likely", "by file name alone", rf"^.*/|{IMAGE_SUFFIX}", share=0.9, once=True)
_TAILS = tuple(
    _Sign("hint", why, rf"^(?:.*/)?((?:[^/]+/){{{folders}}}[^/]+)$", r"\1", share=0.5, once=True)
    for folders, why in ((3, "with the last 3 folders"), (1, "with the last folder"))
)
_OTHER_HINTS = (
    _Sign("hint", "apart from leading zeros", r"(^|[^0-9])0+([0-9])", r"\1\2"),
    _Sign("hint", "apart from the suffix", IMAGE_SUFFIX),
)


@dataclass(frozen=True)
class Images:
    """Every image that the lists of a folder name, once, and each list as positions among them.

    Attributes
    ----------
    vocabulary : Vocabulary
        The images: ids of COCO and VOC by their number, all others by their path below `root`.
    members : tuple of ndarray of int32
        Of each list, the position of each entry's image.
    lists : tuple of PublishedList
        The lists, in the same order.
    root : str
        The folders that all paths of all lists begin with, without final slash; empty where there are none.
    climbing : int
        Entries with a part ``..``, which stays as it is written.
    """

    vocabulary: Vocabulary
    members: tuple[Int32s, ...]
    lists: tuple[PublishedList, ...]
    root: str = ""
    climbing: int = 0
    _codes: dict[_Sign, Int32s] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def uniques(self) -> tuple[Int32s, ...]:
        """Of each list, the positions of its images, each once, ascending."""
        return tuple(map(distinct, self.members))

    @cached_property
    def first_rows(self) -> tuple[Int32s, ...]:
        """Of each list, the first row of each of its images, in the order of `uniques`."""
        return tuple(map(first_rows, self.members, self.uniques))

    def in_both(self, a: int, b: int) -> tuple[Int32s, tuple[Int32s, Int32s]]:
        """Return the images of two lists, ascending, and the first row of each in either list."""
        hits = []
        for own, other in ((a, b), (b, a)):
            mask = np.zeros(len(self.vocabulary), np.bool_)
            mask[self.uniques[other]] = True
            hits.append(mask[self.uniques[own]])
        return self.uniques[a][hits[0]], (self.first_rows[a][hits[0]], self.first_rows[b][hits[1]])

    @cached_property
    def overlaps(self) -> Int64s:
        """Distinct images that two lists share (exact), shape (lists, lists); on the diagonal, how many each has."""
        # One bit an image: two lists of 100,000 images are compared in microseconds.
        words = -(-len(self.vocabulary) // 64)
        bits = np.zeros((len(self.uniques), words), np.uint64)
        for row, own in enumerate(self.uniques):
            mask = np.zeros(words * 64, np.bool_)
            mask[own] = True
            bits[row] = np.packbits(mask, bitorder="little").view(np.uint64)
        shared = np.diag(np.array([len(one) for one in self.uniques], np.int64))
        for row, column in combinations(range(len(bits)), 2):
            count = int(np.bitwise_count(bits[row] & bits[column]).sum(dtype=np.int64))
            shared[row, column] = shared[column, row] = count
        return shared

    def alike(self, a: int, b: int, shown: int = 3) -> Alike | None:
        """Return by what names two lists that share no image may share some, by the strongest sign that there is.

        Costs a look at every path: for pairs that are compared, not for all.
        """
        own = self.uniques[a], self.uniques[b]
        # Two lists of ids share what they share.
        if not all(map(len, own)) or all((self.vocabulary.forms[images] < TEXT).all() for images in own):
            return None
        for sign in self._signs(own):
            codes = [self._coded(sign)[images] for images in own]
            if sign.once and any(len(np.unique(one)) < len(one) for one in codes):
                continue
            hits = [np.isin(one, two) for one, two in (codes, codes[::-1])]
            if hits[0].any() and min(map(np.count_nonzero, hits)) >= sign.share * min(map(len, own)):
                order = np.argsort(codes[0], kind="stable")
                twins = own[0][order[np.searchsorted(codes[0][order], codes[1][hits[1]])]]
                found = own[1][hits[1]]
                rows = np.argsort(self.first_rows[b][hits[1]], kind="stable")[:shown]
                pairs = tuple(zip(twins[rows].tolist(), found[rows].tolist(), strict=True))
                return Alike(sign.strength, sign.why, len(found), pairs)
        return None

    def _signs(self, own: Sequence[Int32s]) -> Iterator[_Sign]:
        """Yield the signs to look for between two lists, the strongest first."""
        from pyarrow import compute

        in_folders = [compute.any(compute.match_substring(self._natives.take(one), "/")).as_py() for one in own]
        if in_folders[0] != in_folders[1]:
            yield _LIKELY
        if len(self.vocabulary) <= MOST_HINTED:
            yield from _TAILS if all(in_folders) else ()
            yield from _OTHER_HINTS

    @cached_property
    def _natives(self) -> pa.LargeStringArray:
        import pyarrow as pa

        if len(self.vocabulary.texts) == len(self.vocabulary):
            return self.vocabulary.texts
        return pa.array(self.vocabulary.natives, pa.large_string())

    def _coded(self, sign: _Sign) -> Int32s:
        """Return an integer for each image, the same where a sign holds them for one."""
        from pyarrow import compute

        if sign not in self._codes:
            texts = compute.replace_substring_regex(self._natives, sign.pattern, sign.kept)
            self._codes[sign] = texts.dictionary_encode().indices.to_numpy()
        return self._codes[sign]


def distinct(members: Int32s) -> Int32s:
    """Return the images of a list, each once, ascending."""
    shown = np.zeros(int(members.max(initial=-1)) + 1, np.bool_)
    shown[members] = True
    return np.flatnonzero(shown).astype(np.int32)


def first_rows(members: Int32s, unique: Int32s) -> Int32s:
    """Return the first row of each image of a list."""
    row = np.empty(int(members.max(initial=-1)) + 1, np.int32)
    row[members[::-1]] = np.arange(len(members), dtype=np.int32)[::-1]
    return row[unique]


def images_of(lists: Sequence[PublishedList], namespace: str = "") -> Images:
    """Return the images of the lists of one folder.

    Parameters
    ----------
    lists : sequence of PublishedList
    namespace : str
        Of ids whose form tells no dataset; ``coco`` makes bare numbers of any width COCO's. A namespace other than
        COCO's and VOC's holds for all entries that have none written.
    """
    vocabulary, members = numbered_together([_named(one, namespace) for one in lists], namespace)
    members = _across_suffixes(vocabulary, _across_forms(vocabulary, members))
    used = np.bincount(np.concatenate([np.empty(0, np.int32), *members]), minlength=len(vocabulary)) > 0
    rank = (np.cumsum(used) - 1).astype(np.int32)
    is_text = vocabulary.forms == TEXT
    root, texts = _below_root(vocabulary.texts.filter(used[is_text]))
    keys = np.concatenate([vocabulary.keys[used & ~is_text], np.arange(len(texts)) + TEXT * BLOCK])
    return Images(
        Vocabulary(keys, texts, namespace),
        tuple(rank[one] for one in members),
        tuple(lists),
        root,
        sum(len(_CLIMBS.findall(one.images)) for one in lists if b".." in one.images),
    )


def _named(one: PublishedList, namespace: str) -> Named:
    """Return the images of a list: ids where nearly all lines have the form of one, whole paths else."""
    keys = np.full(len(one), -1, np.int64)
    if not one.by_columns:
        # Integers of JSON are written without leading zeros: six of their digits are not VOC's.
        by_form = namespace in ("", *NAMESPACES) and not one.integers
        keys = keys_by_form(one.stems, by_form=by_form, namespace=namespace)
        six = keys // BLOCK == VOC2007
        if one.has_folders and six.any() and not _VOC_FOLDER.search(one.images):
            # Frames and patches are numbered with six digits too.
            keys[six] = -1
        known = keys >= 0
        if known.sum() < SHARE * len(one) or (one.has_folders and _merges(keys[known], one.images)):
            keys[:] = -1
    return named(keys, one.images, namespace)


def _merges(keys: Int64s, paths: bytes) -> bool:
    """Return whether numbers stand for so many paths each that they are counters and no ids."""
    return len(np.unique(keys)) < SHARE**2 * len(column_of(paths).unique())


def _across_forms(vocabulary: Vocabulary, members: Sequence[Int32s]) -> list[Int32s]:
    """Return lists in which the text of an id, in a list of few such, is the image that it is in other lists."""
    from pyarrow import compute

    texts = np.flatnonzero(vocabulary.forms == TEXT)
    digits = compute.match_substring_regex(vocabulary.texts, r"^(?:[a-z0-9]+:)?[0-9_]{6,12}$")
    ids = np.flatnonzero(vocabulary.forms < TEXT)
    if not len(ids) or not compute.any(digits).as_py():
        return list(members)
    image = np.arange(len(vocabulary), dtype=np.int32)
    for written in (vocabulary.natives[ids], vocabulary.ids(ids)):
        twin = compute.index_in(vocabulary.texts, column_of("".join(f"{one}\n" for one in written).encode()))
        found = twin.is_valid().to_numpy(zero_copy_only=False)
        image[texts[found]] = ids[twin.drop_null().to_numpy()]
    return [image[one] for one in members]


def _across_suffixes(vocabulary: Vocabulary, members: Sequence[Int32s]) -> list[Int32s]:
    """Return lists whose lines carry no suffix with the images of other lists that differ from theirs in it alone."""
    from pyarrow import compute

    ends = compute.match_substring_regex(vocabulary.texts, IMAGE_SUFFIX).to_numpy(zero_copy_only=False)
    suffixed = np.zeros(len(vocabulary), np.bool_)
    suffixed[vocabulary.forms == TEXT] = ends
    without = [bool(len(one)) and not suffixed[one].any() for one in members]
    if not ends.any() or not any(without):
        return list(members)
    # Of several suffixes, the first by code point stands for the image.
    kept = compute.replace_substring_regex(vocabulary.texts.filter(ends), IMAGE_SUFFIX, "")
    twin = compute.index_in(vocabulary.texts, kept).fill_null(-1).to_numpy()
    own, others = np.flatnonzero(vocabulary.forms == TEXT), np.flatnonzero(suffixed)
    image = np.arange(len(vocabulary), dtype=np.int32)
    image[own[twin >= 0]] = others[twin[twin >= 0]]
    return [image[one] if bare else one for one, bare in zip(members, without, strict=True)]


def _below_root(texts: pa.LargeStringArray) -> tuple[str, pa.LargeStringArray]:
    """Return the folders that all paths begin with, and the paths below them; texts are sorted."""
    from pyarrow import compute

    ends = [texts[place].as_py() for place in (0, -1)] if len(texts) else [""]
    # Cut at a slash, letters that folders begin with do no harm.
    root = commonprefix(ends).rpartition("/")[0]  # noqa: RUF071
    return root, compute.utf8_slice_codeunits(texts, len(root) + 1) if root else texts
