"""The rule that matches references (ids, paths, file names, stems) with the images of a source.

A reference has up to two columns: a name (``file_name``, the path of a photo or label file) and an id
(``image_id``). It is matched with one image, is a stray (no image), or is ambiguous (several images):

1. References are looked up in the whole annotation file, also where a part of its images is scored.
2. Ids are compared as the file writes them, by their type: 12, ``"12"`` and ``"0012"`` are three ids.
3. Paths have single forward slashes, and neither ``./`` nor ``/`` at their start. A reference and an image agree if the
   shorter path is the end of the longer one by whole components. Where none agrees, they are compared without image
   suffix if one of the two has none: ``1.jpg`` is not ``1.png``.
4. An agreement on the file name alone holds only if no other image of the file has that file name.
5. A column has one root: where it states folders, every reference has as many folders more, or fewer, than its image.
6. A column of names holds only names. A column of texts as ids may also hold paths; a text that is the id of an image
   and the path of another image is ambiguous.
7. With two columns, the name decides. The id decides between two images with the same name if the ids agree with all
   other names.
8. Numbers alone are not proof: ids, positions and numbers in file names look alike. `ImageIndex.other_readings` returns
   the alternatives; boxes decide (`curation.evaluation.truth.diagnosed`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.core.ids import native_number
from curation.sources.stems import IMAGE_SUFFIXES

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

STRAY, AMBIGUOUS = -1, -2
"""Position of a stray reference (no image), and of an ambiguous one (several images)."""
NUMBERINGS = ("stem_number", "listed")
"""Numberings other than ids and positions: the numbers of file names, and those of a manifest's image ids."""
_LONGEST_NUMBER = 18
_MOST_SHOWN = 3


class _Candidates(NamedTuple):
    """The first and a second image that each reference may mean; -1 for none, each of shape (n,)."""

    first: Int32s
    second: Int32s

    @classmethod
    def none(cls, n: int) -> _Candidates:
        return cls(np.full(n, -1, np.int32), np.full(n, -1, np.int32))

    def __or__(self, other: _Candidates) -> _Candidates:
        first = np.where(self.first >= 0, self.first, other.first)
        second = np.full(len(first), -1, np.int32)
        for more in (self.second, other.first, other.second):
            second = np.where((second < 0) & (more >= 0) & (more != first), more, second)
        return _Candidates(first, second)

    def take(self, rows: Any) -> _Candidates:
        return _Candidates(self.first[rows], self.second[rows])

    def where(self, mask: Bools) -> _Candidates:
        return _Candidates(np.where(mask, self.first, -1), np.where(mask, self.second, -1))

    @property
    def exist(self) -> Bools:
        return self.first >= 0

    @property
    def clear(self) -> Bools:
        return (self.first >= 0) & (self.second < 0)


class _Table:
    """Images by key: the first image of each key, and the second image of a key that several images share."""

    def __init__(self, keys: Iterable[Any], images: Iterable[int]) -> None:
        self.first: dict[Any, int] = {}
        self.second: dict[Any, int] = {}
        for key, image in zip(keys, images, strict=False):
            if self.first.setdefault(key, image) != image:
                self.second.setdefault(key, image)
        self.first.pop("", None)

    def find(self, keys: Sequence[Any]) -> _Candidates:
        candidates = _Candidates.none(len(keys))
        for table, column in zip((self.first, self.second), candidates, strict=True):
            if table:
                column[:] = np.fromiter((table.get(key, -1) for key in keys), np.int32, len(keys))
        return candidates


class _Paths:
    """Paths of images, indexed to find a path that ends with another path, or that another path ends with."""

    def __init__(self, paths: Sequence[str], images: Sequence[int]) -> None:
        self._paths, self._images = paths, images
        self._depths = np.fromiter((path.count("/") for path in paths), np.int32, len(paths))
        self._levels: list[int] = np.unique(self._depths).tolist()
        self._tables: dict[tuple[int, bool], _Table] = {}

    def find(self, references: Sequence[str]) -> _Candidates:
        """Return the images whose paths end with the reference, or that the reference ends with."""
        candidates = _Candidates.none(len(references))
        depths = np.fromiter((path.count("/") for path in references), np.int32, len(references))
        for depth in np.unique(depths).tolist():
            rows = np.flatnonzero(depths == depth)
            some = [references[row] for row in rows.tolist()]
            matches = self._table(depth, at_least=True).find(some)
            for level in (level for level in self._levels if level < depth):
                ends = [end_of(path, level) for path in some]
                exact = self._table(level, at_least=False).find(ends)
                if level == 0:
                    # An agreement on the file name alone: no other image may have that name.
                    exact = (exact | self._table(0, at_least=True).find(ends)).where(exact.exist)
                matches |= exact
            candidates.first[rows], candidates.second[rows] = matches
        return candidates

    def _table(self, level: int, *, at_least: bool) -> _Table:
        """Return the images by the last ``level + 1`` components of paths with exactly, or at least, that many."""
        if (level, at_least) not in self._tables:
            rows = np.flatnonzero(self._depths >= level if at_least else self._depths == level).tolist()
            depths = self._depths.tolist()
            ends = (self._paths[row] if depths[row] == level else end_of(self._paths[row], level) for row in rows)
            self._tables[level, at_least] = _Table(ends, (self._images[row] for row in rows))
        return self._tables[level, at_least]


def end_of(path: str, level: int) -> str:
    """Return the last ``level + 1`` components of a path."""
    return path.rpartition("/")[2] if level == 0 else "/".join(path.rsplit("/", level + 1)[-level - 1 :])


@dataclass(frozen=True)
class Resolved:
    """The image that each reference resolves to.

    Attributes
    ----------
    position : ndarray of int32, shape (n,)
        Position of the image in the source; `STRAY` or `AMBIGUOUS`.
    candidates : dict of int to (int, int)
        For the first ambiguous references, two images that each may refer to.
    disagreeing : int
        Number of references whose id and name belong to different images.
    """

    position: Int32s
    candidates: dict[int, tuple[int, int]] = field(default_factory=dict)
    disagreeing: int = 0


@dataclass(frozen=True)
class ImageIndex:
    """Index of the images of an annotation file, which resolves references (see the module for the rule).

    Attributes
    ----------
    ids : ndarray of int64, or sequence of str
        Ids as the annotation file writes them.
    names : sequence of str
        File names; ``""`` for an image without one.
    listed : sequence of str
        Ids by which a manifest lists the images, ``namespace:native``; empty, or one for each image.
    namespaced : sequence of str
        ``namespace:native`` of the images themselves.
    """

    ids: Int64s | Sequence[str]
    names: Sequence[str]
    listed: Sequence[str] = ()
    namespaced: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def resolve(
        self, ids: Int64s | Sequence[int | str | None] | None = None, names: Sequence[str | None] | None = None
    ) -> Resolved:
        """Return the image of each reference.

        Parameters
        ----------
        ids : ndarray of int64, or sequence of int or str
            Column ``image_id``: ids; a text may be a path or a stem. None for a row without an id.
        names : sequence of str
            Column ``file_name``, or the names of label files: paths or stems. None for a row without a name.

        Examples
        --------
        >>> index = ImageIndex(np.array([7, 8]), ["val/0008.jpg", "val/0007.jpg"])
        >>> index.resolve([8]).position.tolist(), index.resolve([8], ["/photos/val/0008.jpg"]).position.tolist()
        ([1], [0])
        """
        if not len(self):
            return Resolved(np.full(len(ids if ids is not None else names or ()), STRAY, np.int32))
        by_id = None if ids is None else self._by_id(ids)
        if names is None:
            return _resolved(_Candidates.none(0) if by_id is None else by_id)
        cells, codes = _coded(names)
        has_name = np.array([bool(cell) for cell in cells], np.bool_)[codes]
        by_name = self._by_path(cells).take(codes).where(has_name)
        if ids is None or by_id is None:
            return _resolved(by_name)
        both = by_name.clear & by_id.clear
        disagreeing = int((both & (by_id.first != by_name.first)).sum())
        # Ids are those of the truth if they agree with every unambiguous name and are not just the names' numbers.
        trusted = not disagreeing and not _are_stem_numbers(ids, cells, codes)
        chosen = ((by_id.first == by_name.first) | (by_id.first == by_name.second)) & (by_id.second < 0)
        chosen &= (by_name.second >= 0) & trusted
        candidates = _Candidates(
            np.where(has_name & ~chosen, by_name.first, by_id.first),
            np.where(has_name, np.where(chosen, -1, by_name.second), by_id.second),
        )
        if trusted and both.any():
            # An id that the file lacks then belongs to another image with this name.
            candidates = candidates.where(~has_name | by_id.exist)
        return _resolved(candidates, disagreeing)

    def numbered(self, name: str) -> dict[int | None, int]:
        """Return the images by their unique numbers in a numbering; `name` is one of `NUMBERINGS`."""
        table = self._numberings[name]()
        return {number: row for number, row in table.first.items() if number not in table.second}

    def other_readings(self, ids: Int64s | Sequence[int | str | None]) -> Iterator[tuple[str, Int32s, Int32s]]:
        """Yield other numberings with an image for each id: name, image of each row, and a second image or -1."""
        values = ids.tolist() if isinstance(ids, np.ndarray) else ids
        distinct = {value: number_of_text(value) for value in dict.fromkeys(values)}
        if not distinct or None in distinct.values():
            return
        numbers = np.array(list(distinct.values()), np.int64)
        rows = dict(zip(distinct, count()))
        codes = np.fromiter(map(rows.__getitem__, values), np.int32, len(values))
        for name, table in self._numberings.items():
            first, second = table().find(numbers.tolist())
            if (first >= 0).all():
                yield name, first[codes], second[codes]
        for start in (0, 1):
            if numbers.min() >= start and numbers.max() < len(self) + start:
                yield f"index{start}", (numbers - start).astype(np.int32)[codes], np.full(len(codes), -1, np.int32)

    def describe(self, pair: Iterable[int]) -> str:
        """Return a text about two candidates for messages: the id and file of each."""
        return " or ".join(f"{self.ids[row]!s:.40} ({self._paths[row]:.80})" for row in pair)

    @property
    def _numberings(self) -> dict[str, Callable[[], _Table]]:
        return dict(zip(NUMBERINGS, (lambda: self._stem_numbers, lambda: self._listed_numbers), strict=True))

    def _by_id(self, ids: Int64s | Sequence[int | str | None]) -> _Candidates:
        if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
            return self._by_number(ids)
        candidates = _Candidates.none(len(ids))
        finders: tuple[tuple[type, Callable[[Any], _Candidates]], ...] = ((int, self._by_number), (str, self._by_text))
        for kind, find in finders:
            rows = np.flatnonzero(np.fromiter((isinstance(value, kind) for value in ids), np.bool_, len(ids)))
            if len(rows):
                values: Any = [ids[row] for row in rows.tolist()]
                some = find(np.array(values, np.int64) if kind is int else values)
                candidates.first[rows], candidates.second[rows] = some
        return candidates

    def _by_number(self, numbers: Int64s) -> _Candidates:
        by_id = self._by_number_alone(numbers)
        if by_id.exist.all() or not self._listed_numbers.first:
            return by_id
        # An export of several sources renumbers images: older detections have the numbers of each source.
        distinct, codes = np.unique(numbers, return_inverse=True)
        listed = self._listed_numbers.find(distinct.tolist()).take(codes)
        if listed.exist.all():
            return listed
        # Neither numbering has all numbers: a number in both is ambiguous; others use the numbering with more matches.
        usual, other = (listed, by_id) if listed.exist.sum() > by_id.exist.sum() else (by_id, listed)
        return (usual | other).where(usual.exist)

    def _by_number_alone(self, numbers: Int64s) -> _Candidates:
        if self._ascending is None:
            distinct, codes = np.unique(numbers, return_inverse=True)
            by_id = self._id_texts.find([str(number) for number in distinct.tolist()])
            by_stem = self._stem_numbers.find(distinct.tolist())
            # "12" is the id of an image, and 0012.jpg another image.
            return (by_id | by_stem.where(by_id.exist)).take(codes)
        order, known = self._ascending
        if not len(known):
            return _Candidates.none(len(numbers))
        nearest = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        first = np.where(known[nearest] == numbers, order[nearest], -1).astype(np.int32)
        return _Candidates(first, np.full(len(first), -1, np.int32))

    def _by_text(self, texts: Sequence[str]) -> _Candidates:
        cells, codes = _coded(texts)
        by_path, by_id = self._by_path(cells), self._id_texts.find(cells)
        is_path = by_path.exist & self._has_file_name[by_path.first]
        if self._ascending is not None or self._listed_numbers.first:
            # If other texts are file names, padded digits are a name too, not a number written as a text.
            numbers = [number_of_text(cell) for cell in cells]
            is_number = [
                number is not None and (str(number) == cell or not is_path.any())
                for number, cell in zip(numbers, cells, strict=True)
            ]
            rows = np.flatnonzero(is_number)
            if len(rows):
                by_number = _Candidates.none(len(cells))
                some = self._by_number(np.array([numbers[row] for row in rows.tolist()], np.int64))
                by_number.first[rows], by_number.second[rows] = some
                by_id = by_id | by_number.where(~by_id.exist) if self._ascending is None else by_id | by_number
        if (is_path & ~by_id.exist).any():
            # In a column of names, a text that is not a file name is not an id either.
            by_id = by_id.where(is_path)
        return (by_path | by_id).take(codes)

    def _by_path(self, cells: Sequence[str]) -> _Candidates:
        """Return the images that agree with references by whole path components, else without image suffix."""
        references = [normalised_path(cell) for cell in cells]
        candidates = self._files.find(references)
        rest = np.flatnonzero(~candidates.exist).tolist()
        stems = [without_suffix(references[row]) for row in rest]
        is_bare = [stem == references[row] for row, stem in zip(rest, stems, strict=True)]
        for bare in {*is_bare}:
            rows = [row for row, itself in zip(rest, is_bare, strict=True) if itself is bare]
            some = [stem for stem, itself in zip(stems, is_bare, strict=True) if itself is bare]
            images = self._stems if bare else self._bare
            candidates.first[rows], candidates.second[rows] = images.find(some)
        return self._below_one_root(references, candidates)

    def _below_one_root(self, references: Sequence[str], candidates: _Candidates) -> _Candidates:
        """Return the candidates of references that differ from their images in depth as most references do."""
        depths = np.fromiter((path.count("/") for path in references), np.int32, len(references))
        clear = candidates.clear
        if not clear.any() or not depths.max():
            return candidates
        more = depths - self._files._depths[candidates.first]
        levels, counts = np.unique(more[clear], return_counts=True)
        usual = levels[np.lexsort((np.abs(levels), -counts))[0]]
        return candidates.where(~clear | (more == usual))

    @cached_property
    def _ascending(self) -> tuple[Int64s, Int64s] | None:
        """Positions by ascending number, and the numbers; None if ids are texts."""
        if not isinstance(self.ids, np.ndarray):
            return None
        order = np.argsort(self.ids, kind="stable")
        return order, self.ids[order]

    @cached_property
    def _has_file_name(self) -> Bools:
        return np.array([bool(name) for name in self.names], np.bool_)

    @cached_property
    def _paths(self) -> list[str]:
        return [normalised_path(name or str(image_id)) for name, image_id in zip(self.names, self.ids, strict=True)]

    @cached_property
    def _files(self) -> _Paths:
        return _Paths(self._paths, range(len(self)))

    @cached_property
    def _stems(self) -> _Paths:
        return _Paths([without_suffix(path) for path in self._paths], range(len(self)))

    @cached_property
    def _bare(self) -> _Paths:
        rows = [row for row, path in enumerate(self._paths) if path == without_suffix(path)]
        return _Paths([self._paths[row] for row in rows], rows)

    @cached_property
    def _id_texts(self) -> _Table:
        """Images by the texts of their ids: those of the file, and those of manifests with and without namespace."""
        text_ids = [] if isinstance(self.ids, np.ndarray) else self.ids
        natives = [text.partition(":")[2] for text in self.listed]
        # Digits alone are another form of the number: 000000000139 is COCO's 139.
        forms = ["" if native.isdigit() else native for native in (text.partition(":")[2] for text in self.namespaced)]
        columns = (text_ids, self.namespaced, self.listed, natives, forms)
        return _Table((key for keys in columns for key in keys), (row for keys in columns for row in range(len(keys))))

    @cached_property
    def _stem_numbers(self) -> _Table:
        return _Table(*_numbered((without_suffix(end_of(path, 0)) for path in self._paths), number_of_text))

    @cached_property
    def _listed_numbers(self) -> _Table:
        return _Table(*_numbered((text.partition(":")[2] for text in self.listed), native_number))


def _resolved(candidates: _Candidates, disagreeing: int = 0) -> Resolved:
    several = candidates.second >= 0
    position = np.where(several, AMBIGUOUS, candidates.first).astype(np.int32)
    rows = np.flatnonzero(several)[:_MOST_SHOWN].tolist()
    pairs = {row: (int(candidates.first[row]), int(candidates.second[row])) for row in rows}
    return Resolved(position, pairs, disagreeing)


def _coded(texts: Sequence[str | None]) -> tuple[list[str], Int32s]:
    """Return the distinct texts, and the position of each row among them."""
    cells = dict(zip(dict.fromkeys(texts), count()))
    codes = np.fromiter(map(cells.__getitem__, texts), np.int32, len(texts))
    return [cell or "" for cell in cells], codes


def normalised_path(path: str) -> str:
    """Return a path with single forward slashes, without leading ``./`` or slash, and with accents in NFC form."""
    if "\\" in path:
        path = path.replace("\\", "/")
    if "//" in path or "./" in path or path[:1] == "/":
        path = "/".join(part for part in path.split("/") if part not in ("", "."))
    return path if path.isascii() else unicodedata.normalize("NFC", path)


def without_suffix(path: str) -> str:
    """Return a path without its image suffix; any other text after a dot belongs to the name."""
    stem, _, suffix = path.rpartition(".")
    suffix = suffix.lower()
    if suffix == "gz" and stem[-4:].lower() == ".nii":
        stem, suffix = stem[:-4], "nii.gz"
    return stem if stem and stem[-1] != "/" and suffix in IMAGE_SUFFIXES else path


def number_of_text(value: Any) -> int | None:
    """Return a number, or a text of digits as a number; None for another value."""
    if isinstance(value, int):
        return value
    is_number = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER
    return int(value) if is_number else None


def _numbered(texts: Iterable[str], number_of: Callable[[str], int | None]) -> tuple[list[int], list[int]]:
    """Return the texts that are numbers, as numbers, and the position of each."""
    pairs = [(number, row) for row, text in enumerate(texts) if (number := number_of(text)) is not None]
    return [number for number, _ in pairs], [row for _, row in pairs]


def _are_stem_numbers(ids: Any, cells: Sequence[str], codes: Int32s) -> bool:
    """Return whether every id is the number in the stem of its row's name, as Ultralytics writes it."""
    numbers = [number_of_text(without_suffix(end_of(normalised_path(cell), 0))) for cell in cells]
    values = ids.tolist() if isinstance(ids, np.ndarray) else ids
    return all(numbers[code] == number_of_text(value) for code, value in set(zip(codes.tolist(), values, strict=True)))
