"""Identity of images in lists: by whole path, or by an id whose form implies its dataset.

Paths are compared as normalised by the reader (`PublishedList.images`), never only by file name or last folder: the
frames ``0000000105`` of two drives are two images. Equal images (`Images.overlaps`) may be errors; lists without equal
images but with equal file names (`Images.alike`) are at most a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from os.path import commonprefix
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from curation.core.columns import arrow_of, distinct, encoded, first_places, positions_of, values_of
from curation.core.ids import NATIVE_FORMS
from curation.sources.entries import PublishedList
from curation.sources.source import Bools, Int32s, Int64s
from curation.sources.stems import cells_of, match_pattern, stems, text_of

if TYPE_CHECKING:
    import pyarrow as pa

SHARE = 0.95
"""Least share of lines with the form of an id; below it, no line of the list is read as an id."""
_SUFFIXES = (
    "jpe?g|png|bmp|tiff?|gif|webp|ppm|pgm|nii(?:\\.gz)?|dcm|npy|npz|h5|mat|avi|mp4|webm|wav|flac|ply|bin|obj|off"
)
IMAGE_SUFFIX = rf"(?i:\.(?:{_SUFFIXES}))$"
"""A regular expression of the suffixes that are part of an image's name."""
ALIKE = 0.9
"""Least share of the smaller list's file names in the other list for which these may be the same images."""
_VOC_FOLDER = re.compile(rb"(?i)voc|jpegimages")
_CLIMBS = re.compile(rb"(?m)(?:^|/)\.\.(?:/|$)")
_PREFIX = "^[a-z][a-z0-9_]{0,31}:"
_WIDTH = {"coco": 12, "voc2007": 6, "voc2012": 11}
_UNWRITTEN = {
    "coco": ("^coco:", ""), "voc2007": ("^voc2007:", ""), "voc2012": ("^(?:voc2012:)?(.{4})_?(.{6})$", r"\1_\2"),
}  # fmt: skip
"""Replacements that turn a written id, before zeros are added, into its native form."""
_BARE = {"coco": "[0-9]{1,12}", "voc2007": "[0-9]{1,6}", "voc2012": "[0-9]{10}"}
"""Numbers accepted as ids of each dataset, if the user or a namespace names the dataset."""
_MOST_DIGITS, _LENGTH_BITS = 16, 5
_VOC2007_LAST = b"voc2007:009963\n"
"""Its last image: a longer list of six-digit numbers is of another dataset."""


def ids_of(stems: pa.StringArray, patterns: Iterable[tuple[str, str]]) -> pa.StringArray:
    """Return the id of each stem that matches a pattern, ``coco:000000000139``; null for other stems.

    Parameters
    ----------
    patterns : iterable of (str, str)
        Datasets, and patterns of their ids; the first match counts.
    """
    import pyarrow as pa
    from pyarrow import compute

    matched = none = pa.nulls(len(stems), pa.string())
    for space, pattern in patterns:
        fits = compute.match_substring_regex(stems, f"^(?:{pattern})$")
        digits = compute.replace_substring_regex(stems.filter(fits), *_UNWRITTEN[space])
        ids = compute.utf8_lpad(digits, _WIDTH[space], "0")
        full_ids = compute.binary_replace_slice(ids, 0, 0, f"{space}:")
        matched = compute.coalesce(matched, compute.replace_with_mask(none, fits, full_ids))
    return matched


class Alike(NamedTuple):
    """Two lists without a common path or id that may contain the same images: one has bare file names.

    Attributes
    ----------
    images : int
        Distinct images of the second list that may be in the first.
    examples : tuple of (int, int)
        The first few, in the order of the second list: an image of the first list, and of the second.
    """

    images: int
    examples: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Images:
    """Every image that the lists of a folder name, once, and each list as positions among them.

    Attributes
    ----------
    texts : pyarrow.LargeStringArray, length u
        The images by code point: first ids of COCO and VOC, ``coco:000000000139``, then paths below `root`.
    n_ids : int
        Number of such ids.
    namespace : str
        Namespace of images without a known form or a written namespace; ``""`` if unknown.
    members : tuple of ndarray of int32
        Position of each entry's image, for each list.
    lists : tuple of PublishedList
        The lists, in the same order.
    root : str
        Common folders of all paths, without final slash; empty for none.
    climbing : int
        Number of entries with a part ``..``, which is kept unchanged.
    """

    texts: pa.LargeStringArray
    n_ids: int
    namespace: str
    members: tuple[Int32s, ...]
    lists: tuple[PublishedList, ...]
    root: str = ""
    climbing: int = 0

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def natives(self) -> pa.LargeStringArray:
        """The images without namespace: paths, or ids in a source."""
        from pyarrow import compute

        return compute.replace_substring_regex(self.texts, _PREFIX, "")

    def ids(self, rows: Int32s | Int64s | Sequence[int] | None = None) -> list[str]:
        """Return the images at some positions, or all, as ``namespace:native``; bare if the namespace is unknown."""
        texts = (self.texts if rows is None else self.texts.take(arrow_of(np.asarray(rows)))).to_pylist()
        prefix = f"{self.namespace}:" if self.namespace else ""
        return [text if re.match(_PREFIX, text) else prefix + text for text in texts]

    @cached_property
    def namespaces(self) -> tuple[list[str], Int32s]:
        """The namespaces, ``""`` for none, and the position of each image's namespace among them, shape (u,)."""
        from pyarrow import compute

        parts = compute.split_pattern(self.texts, ":", max_splits=1)
        edges = values_of(parts.offsets)
        has_colon = np.diff(edges) == 2
        codes, beginnings = encoded(parts.values.take(arrow_of(edges[:-1][has_colon])))
        written = [text if re.match(_PREFIX, f"{text}:") else self.namespace for text in beginnings.to_pylist()]
        names = list(dict.fromkeys([*NATIVE_FORMS, self.namespace, *sorted(written)]))
        of_images = np.full(len(self), names.index(self.namespace), np.int32)
        of_images[has_colon] = np.array([*map(names.index, written)], np.int32)[codes]
        return names, of_images

    def datasets(self, rows: Int32s) -> dict[str, int]:
        """Return the number of some images in each namespace."""
        names, codes = self.namespaces
        counts = np.bincount(codes[rows], minlength=len(names)).tolist()
        return {name: count for name, count in zip(names, counts, strict=True) if count}

    def may_be_of(self, namespace: str) -> Bools:
        """Return which images a source of a namespace may hold, shape (u,): those of this namespace or without one.

        A source of another dataset than COCO and VOC may also hold ids in their form.
        """
        names, codes = self.namespaces
        spaces = {"", namespace} | (set() if namespace in NATIVE_FORMS else set(NATIVE_FORMS))
        fits: Bools = np.isin(codes, [code for code, name in enumerate(names) if name in spaces])
        return fits

    @cached_property
    def uniques(self) -> tuple[Int32s, ...]:
        """Positions of the distinct images of each list, ascending."""
        return tuple(map(distinct, self.members))

    @cached_property
    def first_rows(self) -> tuple[Int32s, ...]:
        """First row of each image of each list, in the order of `uniques`."""
        return tuple(map(first_row_of_each, self.members, self.uniques))

    def in_both(self, a: int, b: int) -> tuple[Int32s, tuple[Int32s, Int32s]]:
        """Return the images of two lists, ascending, and the first row of each in either list."""
        first, second = (np.isin(self.uniques[i], self.uniques[j], assume_unique=True) for i, j in ((a, b), (b, a)))
        return self.uniques[a][first], (self.first_rows[a][first], self.first_rows[b][second])

    @cached_property
    def overlaps(self) -> Int64s:
        """Number of distinct images that each two lists share, shape (lists, lists); sizes are on the diagonal."""
        # One bit an image: two lists of 100,000 images are compared in microseconds.
        words = -(-len(self) // 64)
        bits = np.zeros((len(self.uniques), words), np.uint64)
        for row, images in enumerate(self.uniques):
            mask = np.zeros(words * 64, np.bool_)
            mask[images] = True
            bits[row] = np.packbits(mask, bitorder="little").view(np.uint64)
        shared = np.diag(np.array([len(unique) for unique in self.uniques], np.int64))
        for row, column in combinations(range(len(bits)), 2):
            count = int(np.bitwise_count(bits[row] & bits[column]).sum(dtype=np.int64))
            shared[row, column] = shared[column, row] = count
        return shared

    def alike(self, a: int, b: int, shown: int = 3) -> Alike | None:
        """Return the images of two lists, one with folders and one without, that have the same file name, or None.

        Nine of ten images of the smaller list must have such a name, and none may occur twice in a list.
        """
        from pyarrow import compute

        sides = self.uniques[a], self.uniques[b]
        # Namespaces are ignored if some images are ids of COCO or VOC.
        texts = [(self.natives if self.n_ids else self.texts).take(arrow_of(images)) for images in sides]
        in_folders = [compute.any(compute.match_substring(names, "/")).as_py() for names in texts]
        if not all(map(len, sides)) or in_folders[0] == in_folders[1]:
            return None
        stems = [compute.replace_substring_regex(names, rf"^.*/|{IMAGE_SUFFIX}", "") for names in texts]
        partners = positions_of(compute.index_in(stems[1], stems[0]))
        matched = np.flatnonzero(partners >= 0)
        if any(len(names.unique()) < len(names) for names in stems) or len(matched) < ALIKE * min(map(len, sides)):
            return None
        order = matched[np.argsort(self.first_rows[b][matched], kind="stable")][:shown]
        pairs = zip(sides[0][partners[order]].tolist(), sides[1][order].tolist(), strict=True)
        return Alike(len(matched), tuple(pairs))


def first_row_of_each(members: Int32s, unique: Int32s) -> Int32s:
    """Return the first row of each image of a list."""
    row = np.empty(int(members.max(initial=-1)) + 1, np.int32)
    row[members[::-1]] = np.arange(len(members), dtype=np.int32)[::-1]
    return row[unique]


def images_of(lists: Sequence[PublishedList], namespace: str = "") -> Images:
    """Return the images of the lists of a folder.

    Parameters
    ----------
    lists : sequence of PublishedList
    namespace : str
        Namespace of ids whose form indicates no dataset; ``coco`` makes bare numbers of any width ids of COCO. A
        namespace other than COCO's and VOC's applies to all entries without a written namespace.
    """
    import pyarrow as pa
    from pyarrow import compute

    codes, paths = _distinct_paths(lists)
    rows = np.split(codes, np.cumsum([len(listed) for listed in lists], dtype=np.int64))[:-1]
    namings = _namings(paths, namespace)
    texts = namings.texts
    ids_by_list = [_ids_in(listed, codes, namings, namespace) for listed, codes in zip(lists, rows, strict=True)]
    members: Sequence[Int32s] = [
        np.where(known >= 0, known, namings.paths[codes]) for known, codes in zip(ids_by_list, rows, strict=True)
    ]
    # A text that is an id in one list is an id in every list.
    ids = _joined(ids_by_list)
    ids = distinct(ids[ids >= 0])
    others = np.setdiff1d(distinct(_joined(members)), ids, assume_unique=True)
    if len(others) and namespace in ("", *NATIVE_FORMS):
        # So is its number, unless bare numbers belong to another dataset by the user's option.
        image = _twins(texts, others, compute.replace_substring_regex(texts.take(arrow_of(ids)), _PREFIX, ""), ids)
        members = [image[codes] for codes in members]
    members = _across_suffixes(texts, others, members)
    used = np.zeros(len(texts), np.bool_)
    used[_joined(members)] = True
    ids, others = (_sorted(texts, codes[used[codes]]) for codes in (ids, others))
    rank = np.empty(len(texts), np.int32)
    rank[np.concatenate([ids, others])] = np.arange(used.sum())
    root, below = _below_root(texts.take(arrow_of(others)))
    return Images(
        pa.concat_arrays([texts.take(arrow_of(ids)), below]),
        len(ids),
        namespace,
        tuple(rank[codes] for codes in members),
        tuple(lists),
        root,
        sum(len(_CLIMBS.findall(listed.images)) for listed in lists if b".." in listed.images),
    )


def _distinct_paths(lists: Sequence[PublishedList]) -> tuple[Int32s, pa.StringArray]:
    """Return the position of the path of each line among the distinct paths, and these, in their order."""
    import pyarrow as pa
    from pyarrow import compute

    cells = pa.chunked_array([cells_of(listed.images) for listed in lists], pa.string())
    lengths = compute.binary_length(cells)
    if not all(listed.are_stems for listed in lists) or (compute.max(lengths).as_py() or 0) > _MOST_DIGITS:
        codes, paths = encoded(cells)
        return codes.astype(np.int32), paths
    # Whole numbers are hashed several times faster than texts; 07 and 7 differ in length.
    codes, numbers = encoded(arrow_of((values_of(cells.cast("int64")) << _LENGTH_BITS) + values_of(lengths)))
    first = first_places(codes, len(numbers))
    return codes.astype(np.int32), cells.take(arrow_of(first)).combine_chunks()


def _joined(rows: Sequence[Int32s]) -> Int32s:
    return np.concatenate([np.empty(0, np.int32), *rows])


class _Namings(NamedTuple):
    """Possible names of each distinct path, as positions in `texts`; -1 for none.

    `paths` is the path, `declared` an id whose dataset is written or set by the user, `formed` an id by its form. If a
    list has a path `unlike_voc`, its six digits are not VOC2007's; `is_voc` marks the texts that are such ids.
    """

    texts: pa.LargeStringArray
    paths: Int32s
    declared: Int32s
    formed: Int32s
    unlike_voc: Bools
    is_voc: Bools


def _namings(paths: pa.StringArray, namespace: str) -> _Namings:
    import pyarrow as pa
    from pyarrow import compute

    stem_text = stems(text_of(paths))
    stem = cells_of(stem_text)
    written = [(space, f"{space}:(?:{form}|{_BARE[space]})") for space, form in NATIVE_FORMS.items()]
    bare = [(space, digits) for space, digits in _BARE.items() if space == namespace]
    declared, formed = ids_of(stem, (written if b":" in stem_text else []) + bare), ids_of(stem, NATIVE_FORMS.items())
    # Six digits are VOC2007's unless some are 0 or too large for it, or other numbers have fewer digits.
    last = cells_of(_VOC2007_LAST)[0]
    too_large = compute.and_(compute.starts_with(formed, "voc2007:"), compute.greater(formed, last))
    too_large = compute.if_else(formed.is_valid(), too_large, formed.is_valid())
    unlike_voc = compute.or_(too_large, compute.match_substring_regex(stem, "^(?:[0-9]{1,5}|0{6})$"))
    natives = compute.replace_substring_regex(paths, f"^{namespace}:", "") if namespace else paths
    columns = [texts.cast(pa.large_string()) for texts in (natives, declared, formed)]
    names = pa.concat_arrays(columns).dictionary_encode()
    images = positions_of(names.indices).reshape(3, -1)
    is_voc = match_pattern(names.dictionary, f"^voc2007:{NATIVE_FORMS['voc2007']}$")
    return _Namings(names.dictionary, images[0], images[1], images[2], values_of(unlike_voc), is_voc)


def _ids_in(listed: PublishedList, rows: Int32s, namings: _Namings, namespace: str) -> Int32s:
    """Return the id of each entry, -1 for none; -1 for all entries unless nearly all have the form of an id."""
    ids, none = namings.declared[rows], np.full(len(listed), -1, np.int32)
    # Integers in JSON have no leading zeros: six digits are not an id of VOC.
    if namespace in ("", *NATIVE_FORMS) and not listed.integers:
        formed = namings.formed[rows]
        if namings.unlike_voc[rows].any():
            formed = np.where(namings.is_voc[formed], -1, formed)
        ids = np.where(formed >= 0, formed, ids)
    if listed.has_folders and namings.is_voc[ids[ids >= 0]].any() and not _VOC_FOLDER.search(listed.images):
        # Numbers of frames and patches may also have six digits.
        ids = np.where(namings.is_voc[ids], -1, ids)
    known = ids[ids >= 0]
    if listed.by_columns or len(known) < SHARE * len(listed):
        return none
    # Numbers that each occur in many paths are counters, not ids.
    paths = distinct(namings.paths[rows]) if listed.has_folders else none[:0]
    return none if len(distinct(known)) < SHARE**2 * len(paths) else ids


def _twins(texts: pa.LargeStringArray, rows: Int32s, other: pa.LargeStringArray, positions: Int32s) -> Int32s:
    """Return the position of each text; for `rows`, the position of the equal text in `other`, if any."""
    from pyarrow import compute

    image = np.arange(len(texts), dtype=np.int32)
    twin = positions_of(compute.index_in(texts.take(arrow_of(rows)), other))
    image[rows[twin >= 0]] = positions[twin[twin >= 0]]
    return image


def _across_suffixes(texts: pa.LargeStringArray, paths: Int32s, members: Sequence[Int32s]) -> Sequence[Int32s]:
    """Return lists without suffixes with the images of other lists whose paths differ only in the suffix."""
    from pyarrow import compute

    ends = np.zeros(len(texts), np.bool_)
    ends[paths] = match_pattern(texts.take(arrow_of(paths)), IMAGE_SUFFIX)
    without = [bool(len(codes)) and not ends[codes].any() for codes in members]
    if not ends.any() or not any(without):
        return members
    # Of several suffixes, the first by code point is the image.
    others = _sorted(texts, np.flatnonzero(ends))
    stems = compute.replace_substring_regex(texts.take(arrow_of(others)), IMAGE_SUFFIX, "")
    image = _twins(texts, paths, stems, others)
    return [image[codes] if bare else codes for codes, bare in zip(members, without, strict=True)]


def _sorted(texts: pa.LargeStringArray, rows: Int32s | Int64s) -> Int32s:
    """Return some positions, ordered by their texts."""
    from pyarrow import compute

    ordered: Int32s = rows[values_of(compute.sort_indices(texts.take(arrow_of(rows))))].astype(np.int32)
    return ordered


def _below_root(texts: pa.LargeStringArray) -> tuple[str, pa.LargeStringArray]:
    """Return the common folders of all paths, and the paths below them; texts are sorted."""
    from pyarrow import compute

    ends = [texts[end].as_py() for end in (0, -1)] if len(texts) else [""]
    # The common prefix is cut at a slash, as it may end within the name of a folder.
    root = commonprefix(ends).rpartition("/")[0]  # noqa: RUF071
    return root, compute.utf8_slice_codeunits(texts, len(root) + 1) if root else texts
