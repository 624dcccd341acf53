"""Images that parts of different roles share, by graded evidence: one function for files, manifests and audits.

Two images are proven to be the same by the same file and id, the same file of a VOC or YOLO folder, the same photo
bytes, the same id in a manifest, or the same file name with the same record (size and boxes). An equal file name alone
is a sign: many datasets number different photos ``0001.jpg`` in both ``train/`` and ``test/``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from curation.core.columns import distinct, text_array, values_of
from curation.core.patterns import match_mask
from curation.core.tables import grouped
from curation.core.wording import counted, examples, short_repr
from curation.manifest.header import LabelView, PartEntry
from curation.manifest.manifest import Manifest
from curation.manifest.views import positions_of
from curation.sources.photos import equal_photos, file_names, folder_of, photos_beside
from curation.sources.source import Bools, Int32s, Int64s, Source, texts
from curation.sources.stems import IMAGE_SUFFIXES

if TYPE_CHECKING:
    import pyarrow as pa

Evidence = Literal["file", "id", "photo", "record", "name", "boxes"]
Hashes = npt.NDArray[np.uint64]

REASONS: Mapping[Evidence, str] = {
    "file": "the same id in the same file or folder",
    "id": "the same id",
    "photo": "the same photo, byte for byte",
    "record": "the same file name and the same boxes",
    "name": "the same file name",
    "boxes": "the same size and boxes under other names",
}
"""Evidence that two images are the same, in words, the strongest first."""

DISJOINT: tuple[tuple[str, str], ...] = (
    ("train+finetune", "val"),
    ("train+finetune+val", "test"),
    ("train+finetune+val+test", "wilderness"),
)
"""Roles, joined by ``+``, that must share no image with other roles: the default for a user's data.

Parts of the same stage share images by design: finetuning lists repeat training images, tasks share a test list,
wilderness levels are nested.
"""
COMPARED = ("ids", "names", "records", "photos")
"""Facts in which images are compared. A record is the size and the boxes of an image."""
SHOWN = 30
"""Number of shared images that a message names."""
_SUFFIX = rf"(?i)\.(?:{'|'.join(re.escape(suffix) for suffix in IMAGE_SUFFIXES)})$"
_COUNTER = r"^[A-Za-z]{0,8}[ _-]?[0-9]{1,12}$"
"""Names such as ``0007``, ``frame_12`` and ``IMG_0012``, which many folders have."""
_FOLD = re.compile(r"(?:fold|split|cv|run|seed)[_.-]?(\d+)")
_NEARLY_WHOLE = 0.95
_FEWEST_BOXES = 3
_FEWEST_RECORDS = 5
_ANY = LabelView()
_STEPS = 100.0
"""Steps per pixel to which boxes are rounded before they are compared: files round coordinates differently."""
_SHARE_STEPS = 1e6


class Shared(NamedTuple):
    """Pairs of images of two sides that are the same by some evidence, each pair once.

    Attributes
    ----------
    evidence : Evidence
    proven : bool
        Whether the evidence proves that they are the same; else it is a sign, which a person must confirm.
    left, right : ndarray of int64
        Rows of `ImageColumns`.
    """

    evidence: Evidence
    proven: bool
    left: Int64s
    right: Int64s


@dataclass(frozen=True)
class Overlap:
    """Images that parts on the left side share with parts on the right side.

    Attributes
    ----------
    left, right : tuple of str
        Names of the parts that contain them.
    images : Shared
    columns : ImageColumns
        Facts about the images.
    is_declared : bool
        Whether the header declares each part a subset of the other.
    """

    __repr__ = short_repr

    left: tuple[str, ...]
    right: tuple[str, ...]
    images: Shared
    columns: ImageColumns
    is_declared: bool = False

    def __len__(self) -> int:
        return len(distinct(self.images.right))

    @property
    def proven(self) -> bool:
        """Whether both sides hold the same images."""
        return self.images.proven

    @property
    def subject(self) -> str:
        """The parts: ``t1-train and t1-test``."""
        return f"{examples(self.left)} and {examples(self.right)}"

    @property
    def pairs(self) -> list[str]:
        """The names of the shared images; both names if they differ."""
        rows = zip(self.images.left.tolist(), self.images.right.tolist(), strict=True)
        names = ((self.columns.label(left), self.columns.label(right)) for left, right in rows)
        return [left if left == right else f"{left} = {right}" for left, right in names]

    def summary(self, limit: int = SHOWN) -> str:
        """Return the number of shared images, the evidence, and examples."""
        sides = f"in {examples(self.left)} and in {examples(self.right)}"
        verb = ("is" if len(self) == 1 else "are") if self.proven else "may be"
        names = self.pairs
        more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
        reason = REASONS[self.images.evidence]
        return f"{counted(len(self), 'image')} {verb} {sides} ({reason}): {', '.join(names[:limit])}{more}"


@dataclass(frozen=True)
class ImageColumns:
    """Facts about the compared images, a row for each image.

    Attributes
    ----------
    labels : sequence of str or pyarrow.LargeStringArray, length n
        Names in messages. Rows are different ids.
    sources : sequence of Source
    home, position : ndarray of int32, shape (n,)
        The source of each image, and its position there; -1 if no source has it.
    photos : ndarray of int64, shape (n,), or None
        An integer for the bytes of each photo, -1 if no other photo has the same bytes.
    photo_files : ndarray of int64, shape (n,), or None
        An integer for the file of each photo, -1 if it is not known.
    folders : sequence of str
        The VOC or YOLO folder of each source, ``""`` for another layout or an unknown place.
    """

    __repr__ = short_repr

    labels: Sequence[str] | pa.LargeStringArray
    sources: Sequence[Source]
    home: Int32s
    position: Int32s
    photos: Int64s | None = None
    photo_files: Int64s | None = None
    folders: Sequence[str] = ()

    @classmethod
    def of_sources(cls, sources: Sequence[Source]) -> ImageColumns:
        """Return a row for each image of each source, because equal ids in two files may be different images."""
        sizes = [len(source.images) for source in sources]
        names = [
            name or native
            for source in sources
            for name, native in zip(file_names(source), source.images.native.tolist(), strict=True)
        ]
        home = np.repeat(np.arange(len(sources), dtype=np.int32), sizes)
        position = np.concatenate([np.empty(0, np.int32), *(np.arange(size, dtype=np.int32) for size in sizes)])
        return cls(names, sources, home, position)

    def located(self, paths: Mapping[int, Path]) -> ImageColumns:
        """Return the columns with the folders of annotations, and the bytes of the photos next to them.

        Parameters
        ----------
        paths : mapping of int to Path
            The annotation file or root of some sources, by position.
        """
        column = [""] * len(self.home)
        for number, path in paths.items():
            photos = photos_beside(self.sources[number], path)
            for row in np.flatnonzero(self.home == number).tolist() if any(photos) else ():
                column[row] = photos[self.position[row]]
        folders = [folder_of(source, paths.get(number)) for number, source in enumerate(self.sources)]
        if not any(column):
            return replace(self, folders=folders)
        files = _coded(text_array(texts(column).tolist()))
        return replace(self, photos=equal_photos(column), photo_files=files, folders=folders)

    def is_one_folder(self, sources: Sequence[Source]) -> bool:
        """Return whether all of the sources are parts of the same VOC or YOLO folder."""
        folders = {
            folder
            for known, folder in zip(self.sources, self.folders, strict=False)
            if any(known is source for source in sources)
        }
        return len(folders) == 1 and "" not in folders

    def photos_differ(self, first: Int64s, second: Int64s) -> Bools:
        """Return which pairs of images are different photos: both files are known, and their bytes differ."""
        if self.photos is None or self.photo_files is None:
            return np.zeros(len(first), np.bool_)
        files, photos = ([column[rows] for rows in (first, second)] for column in (self.photo_files, self.photos))
        known = (files[0] >= 0) & (files[1] >= 0) & (files[0] != files[1])
        differ: Bools = known & ((photos[0] == -1) | (photos[0] != photos[1]))
        return differ

    def label(self, row: int) -> str:
        """Return the name of an image in messages: its id, and its file name if the id does not contain it."""
        text = str(self.labels[row])
        if self.home[row] < 0:
            return text
        name = self._file_names[self.home[row]][self.position[row]]
        native = text.partition(":")[2]
        is_in_id = name in ("", text, native) or PurePosixPath(name).stem == native
        return text if is_in_id else f"{text} ({name})"

    @property
    def known(self) -> tuple[str, ...]:
        """The facts of `COMPARED` that are known about the images."""
        located = bool((self.home >= 0).all())
        states = (
            True,
            located and bool(self.sources) and (self.stems >= 0).any(),
            located and self.records.any(),
            self.photos is not None,
        )
        return tuple(name for name, known in zip(COMPARED, states, strict=True) if known)

    @cached_property
    def _file_names(self) -> list[list[str]]:
        return [file_names(source) for source in self.sources]

    @cached_property
    def files(self) -> Int64s:
        """An integer for the file of each image in its folder, else for its annotation file and its id there."""
        column = texts([""] * len(self.home))
        for number, source in enumerate(self.sources):
            rows = self.home == number
            at = self.position[rows]
            folder = self.folders[number] if self.folders else ""
            home = folder or ",".join(sorted(file.sha256 for file in source.files))
            names = np.array(self._file_names[number], object)[at] if folder else source.images.native[at]
            column[rows] = texts([f"{home}:{name}" if home else "" for name in names.tolist()])
        return _coded(text_array(column.tolist()))

    @cached_property
    def path_texts(self) -> pa.LargeStringArray:
        """File names with forward slashes; for files without names, the ids, unless they are bare numbers."""
        from pyarrow import compute

        column = texts([""] * len(self.home))
        for number, source in enumerate(self.sources):
            rows = self.home == number
            names, positions = self._file_names[number], self.position[rows].tolist()
            natives = source.images.native[positions].tolist()
            column[rows] = texts([
                names[position] or ("" if native.isdigit() else native.replace("\\", "/"))
                for position, native in zip(positions, natives, strict=True)
            ])  # fmt: skip
        paths = compute.replace_substring_regex(text_array(column.tolist()), r"^(?:\./)+", "")
        return compute.utf8_normalize(paths, "NFC")

    @cached_property
    def paths(self) -> Int64s:
        """An integer for the path of each image, -1 without a path."""
        return _coded(self.path_texts)

    @cached_property
    def _stems(self) -> pa.LargeStringArray:
        from pyarrow import compute

        file_names = compute.replace_substring_regex(self.path_texts, r"^.*/", "")
        return compute.replace_substring_regex(file_names, _SUFFIX, "")

    @cached_property
    def stems(self) -> Int64s:
        """An integer for the file name of each image without folders and image suffix, -1 without a file name."""
        return _coded(self._stems)

    @cached_property
    def counters(self) -> Bools:
        """Which file names are a short word and a number, which many folders have."""
        return match_mask(self._stems, _COUNTER)

    @cached_property
    def sizes(self) -> Int64s:
        """Width and height of each image as one integer, 0 if a source does not state them."""
        column = np.zeros(len(self.home), np.int64)
        for number, source in enumerate(self.sources):
            rows = self.home == number
            width, height = (side[self.position[rows]].astype(np.int64) for side in _sides(source))
            column[rows] = np.where((width > 0) & (height > 0), (width << 32) + height, 0)
        return column

    @cached_property
    def _boxes(self) -> tuple[Int64s, Hashes, Bools]:
        """The row and hash of each box, and whether it covers nearly the whole image."""
        rows, hashes, covers_image = list[Int64s](), list[Hashes](), list[Bools]()
        for number, source in enumerate(self.sources):
            if source.objects is None or not len(source.objects):
                continue
            image_rows = np.flatnonzero(self.home == number)
            row_of = np.full(len(source.images), -1, np.int64)
            row_of[self.position[image_rows]] = image_rows
            image, boxes = source.objects.image, source.objects.boxes
            width, height = (side[image].astype(np.float64) for side in _sides(source))
            shares = (width == 0) if source.unit_boxes else np.zeros(len(image), np.bool_)
            steps = np.where(shares, _SHARE_STEPS, _STEPS)[:, None]
            used = row_of[image] >= 0
            rows.append(row_of[image][used])
            hashes.append(_mixed_columns(np.rint(np.nan_to_num(boxes) * steps).astype(np.int64))[used])
            area = np.where(shares, 1.0, width * height)
            covers_image.append(((boxes[:, 2] * boxes[:, 3] >= _NEARLY_WHOLE * area) & (area > 0))[used])
        none = np.empty(0, np.int64)
        return (
            np.concatenate([none, *rows]),
            np.concatenate([none.astype(np.uint64), *hashes]),
            np.concatenate([none.astype(np.bool_), *covers_image]),
        )

    @cached_property
    def boxes_of(self) -> tuple[Int64s, Hashes]:
        """The hashes of the boxes, grouped by row, and the n+1 bounds of the groups."""
        rows, hashes, _ = self._boxes
        order = np.argsort(rows, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(self.home)))])
        return bounds, hashes[order]

    @cached_property
    def records(self) -> Hashes:
        """A hash of all boxes of each image in any order, 0 for an image without boxes."""
        rows, hashes, _ = self._boxes
        sums = np.zeros(len(self.home), np.uint64)
        np.add.at(sums, rows, scatter(hashes))
        return sums

    @cached_property
    def distinctive(self) -> Bools:
        """Which images have a box smaller than the image: boxes around whole images do not distinguish images."""
        rows, _, covers_image = self._boxes
        column = np.zeros(len(self.home), np.bool_)
        column[rows[~covers_image]] = True
        return column


def shared_images(images: ImageColumns, left: Int64s, right: Int64s) -> list[Shared]:
    """Return the images that two sides share, by the strongest evidence of each pair.

    Parameters
    ----------
    left, right : ndarray of int64
        Rows of `images`, each once.
    """
    both = right[np.isin(right, left, kind="table")]
    shared = [Shared("id", True, both, both)]
    if not images.sources:
        return [entry for entry in shared if len(both)]
    left, right = _without(left, both), _without(right, both)
    for step in (_same_file, _same_photo, _same_record, _same_name, _same_boxes):
        for entry in step(images, left, right):
            left, right = _without(left, entry.left), _without(right, entry.right)
            shared.append(entry)
    kinds = grouped((entry for entry in shared if len(entry.left)), lambda entry: (entry.evidence, entry.proven))
    return [
        Shared(
            evidence, proven, *(np.concatenate(rows) for rows in zip(*(entry[2:] for entry in entries), strict=True))
        )
        for (evidence, proven), entries in kinds.items()
    ]


def _same_file(images: ImageColumns, left: Int64s, right: Int64s) -> Iterator[Shared]:
    yield Shared("file", True, *_meet(images.files, left, right))


def _same_photo(images: ImageColumns, left: Int64s, right: Int64s) -> Iterator[Shared]:
    """Yield equal photos; a sign if a side repeats the photo (a black frame, a placeholder) or the boxes differ."""
    if images.photos is None:
        return
    first, second = _meet(images.photos, left, right)
    repeated = _counts(images.photos, left, first) + _counts(images.photos, right, second) > 2
    common, smaller = _common_boxes(images, first, second)
    sign = repeated | ((smaller > 0) & (common == 0))
    yield Shared("photo", True, first[~sign], second[~sign])
    yield Shared("photo", False, first[sign], second[sign])


def _same_record(images: ImageColumns, left: Int64s, right: Int64s) -> Iterator[Shared]:
    """Yield images of equal file name and boxes, if no other image has these boxes."""
    boxed = images.records != 0
    left, right = left[boxed[left]], right[boxed[right]]
    keys = np.where(images.stems >= 0, scatter(images.stems.astype(np.uint64)) ^ images.records, 0).view(np.int64)
    keys = np.where(images.stems >= 0, keys, -1)
    first, second = _meet(keys, left, right)
    alone = (_counts(images.records, left, first) == 1) & (_counts(images.records, right, second) == 1)
    proven = alone & images.distinctive[first] & _sizes_agree(images, first, second)
    # Two views of a scene, such as with and without fog, have equal boxes.
    proven &= ~images.photos_differ(first, second)
    yield Shared("record", True, first[proven], second[proven])


def _same_name(images: ImageColumns, left: Int64s, right: Int64s) -> Iterator[Shared]:
    """Yield images of equal path, else of equal file name; names that are counters must not have different boxes."""
    for names in (images.paths, images.stems):
        first, second = _meet(names, left, right)
        common, smaller = _common_boxes(images, first, second)
        differ = (common == 0) & ((smaller > 0) | images.photos_differ(first, second))
        differ |= ~_sizes_agree(images, first, second)
        sign = ~(differ & images.counters[first])
        yield Shared("name", False, first[sign], second[sign])
        left, right = _without(left, first[sign]), _without(right, second[sign])


def _same_boxes(images: ImageColumns, left: Int64s, right: Int64s) -> Iterator[Shared]:
    """Yield images with different names and equal size and boxes, if no other image has these boxes."""
    telling = images.distinctive & (images.sizes > 0)
    left, right = left[telling[left]], right[telling[right]]
    # Boxes on a grid recur and do not distinguish images.
    for side in (left, right):
        unique = np.count_nonzero(_counts(images.records, side, side) == 1)
        if unique < _FEWEST_RECORDS or 2 * unique < len(side):
            return
    first, second = _meet(images.records.view(np.int64), left, right)
    alone = (_counts(images.records, left, first) == 1) & (_counts(images.records, right, second) == 1)
    same = alone & (images.sizes[first] == images.sizes[second])
    # One or two equal boxes may be a coincidence.
    if len(_pair_boxes(images, second[same])[0]) >= _FEWEST_BOXES:
        yield Shared("boxes", False, first[same], second[same])


def _without(side: Int64s, rows: Int64s) -> Int64s:
    """Return the rows of a side that are not in `rows`."""
    return side[~np.isin(side, rows, kind="table")] if len(rows) else side


def _meet(column: Int64s, left: Int64s, right: Int64s) -> tuple[Int64s, Int64s]:
    """Return pairs of rows with equal values: each such row of the right side, and the first of the left side."""
    left, right = left[column[left] != -1], right[column[right] != -1]
    if not len(left) or not len(right):
        return left[:0], right[:0]
    order = np.argsort(column[left], kind="stable")
    ranked = column[left][order]
    positions = np.searchsorted(ranked, column[right])
    hits = np.flatnonzero(positions < len(ranked))
    hits = hits[ranked[positions[hits]] == column[right][hits]]
    return left[order[positions[hits]]], right[hits]


def _counts(column: Int64s | Hashes, side: Int64s, rows: Int64s) -> Int64s:
    """Return how many images of a side have the value of each row."""
    ranked = np.sort(column[side])
    return np.searchsorted(ranked, column[rows], "right") - np.searchsorted(ranked, column[rows], "left")


def _sizes_agree(images: ImageColumns, first: Int64s, second: Int64s) -> Bools:
    sizes, others = images.sizes[first], images.sizes[second]
    agree: Bools = (sizes == others) | (sizes == 0) | (others == 0)
    return agree


def _pair_boxes(images: ImageColumns, rows: Int64s) -> tuple[Int64s, Hashes]:
    """Return the boxes of some rows: the position of each box's row, and its hash."""
    bounds, hashes = images.boxes_of
    sizes = bounds[rows + 1] - bounds[rows]
    pair = np.repeat(np.arange(len(rows)), sizes)
    within = np.arange(len(pair)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return pair, hashes[np.repeat(bounds[rows], sizes) + within]


def _common_boxes(images: ImageColumns, first: Int64s, second: Int64s) -> tuple[Int64s, Int64s]:
    """Return the number of common boxes of each pair of images, and the number of boxes of the image with fewer."""
    keys = []
    for rows in (first, second):
        pair, hashes = _pair_boxes(images, rows)
        keys.append(np.unique(np.stack([pair.astype(np.uint64), hashes], axis=1), axis=0) if len(pair) else None)
    sizes = [
        np.zeros(len(first), np.int64) if key is None else np.bincount(key[:, 0].astype(np.int64), minlength=len(first))
        for key in keys
    ]
    common = np.zeros(len(first), np.int64)
    if keys[0] is not None and keys[1] is not None:
        mixed = [scatter(scatter(key[:, 0]) ^ key[:, 1]) for key in keys if key is not None]
        hits = keys[0][np.isin(mixed[0], mixed[1]), 0].astype(np.int64)
        common = np.bincount(hits, minlength=len(first))
    return common, np.minimum(*sizes)


def _sides(source: Source) -> tuple[Int32s, Int32s]:
    return source.images.widths, source.images.heights


def scatter(values: Hashes) -> Hashes:
    """Return integers scattered over 64 bits (SplitMix64)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _mixed_columns(table: Int64s) -> Hashes:
    column = np.zeros(len(table), np.uint64)
    for values in table.T:
        column = scatter(column ^ values.astype(np.uint64))
    return column


def _coded(column: pa.LargeStringArray) -> Int64s:
    """Return an integer for each text, equal for equal texts; -1 for an empty one."""
    import pyarrow as pa

    encoded = column.dictionary_encode()
    codes = values_of(encoded.indices).astype(np.int64)
    blank = encoded.dictionary.index(pa.scalar("", pa.large_string())).as_py()
    return np.where(codes == blank, -1, codes) if blank >= 0 else codes


def source_overlaps(sources: Mapping[str, Source], paths: Mapping[str, Path] | None = None) -> list[Overlap]:
    """Return the images shared by each pair of sources.

    Parameters
    ----------
    paths : mapping of str to Path, optional
        Annotation files or roots; photos next to them are compared too.
    """
    images = _located(ImageColumns.of_sources(list(sources.values())), sources, paths)
    rows = {name: np.flatnonzero(images.home == number) for number, name in enumerate(sources)}
    parts = [PartEntry(name=name, role=name, sources=(name,), selection="", view=_ANY) for name in sources]  # type: ignore[arg-type]
    return part_overlaps(images, parts, rows, tuple(combinations(sources, 2)))


def manifest_overlaps(
    manifest: Manifest,
    sources: Mapping[str, Source],
    disjoint: Sequence[tuple[str, str]] = DISJOINT,
    paths: Mapping[str, Path] | None = None,
) -> tuple[list[Overlap], tuple[str, ...]]:
    """Return the images that parts of a manifest must not share but do, and the compared facts.

    Parameters
    ----------
    sources : mapping of str to Source
        By the names of the header's sources; without them only ids are compared.
    disjoint : sequence of (str, str)
        Sides that share no image, each of roles or part names joined by ``+`` (see `DISJOINT`).
    paths : mapping of str to Path, optional
        Annotation files or roots by source; photos next to them are compared too.

    Returns
    -------
    list of Overlap
    tuple of str
        Facts of `COMPARED` that are known about the images; empty if no two parts must be disjoint.
    """
    parts = [part for part in manifest.header.parts if manifest.lists.get(part.name)]
    compared = {part.name for pair in compared_pairs(parts, disjoint) for part in pair}
    parts = [part for part in parts if part.name in compared]
    if not parts:
        return [], ()
    images, rows = manifest_columns(manifest, parts, sources)
    images = _located(images, sources, paths)
    return part_overlaps(images, parts, rows, disjoint), images.known


def _located(images: ImageColumns, names: Iterable[str], paths: Mapping[str, Path] | None) -> ImageColumns:
    return images.located({number: paths[name] for number, name in enumerate(names) if name in paths} if paths else {})


def manifest_columns(
    manifest: Manifest, parts: Sequence[PartEntry], sources: Mapping[str, Source]
) -> tuple[ImageColumns, dict[str, Int64s]]:
    """Return the images of some parts, each id once, and the rows of each part."""
    import pyarrow as pa

    lists = [manifest.lists[part.name] for part in parts]
    arrays = [text_array(ids) for ids in lists]
    encoded = pa.concat_arrays(arrays).dictionary_encode()
    codes = np.split(values_of(encoded.indices).astype(np.int64), np.cumsum([len(ids) for ids in lists]))[:-1]
    labels = encoded.dictionary
    home, position = np.full((2, len(labels)), -1, np.int32)
    names = list(sources)
    for part, rows in zip(parts, codes, strict=True):
        opened = [name for name in part.sources if name in sources]
        rows = distinct(rows)
        rows = rows[home[rows] < 0]
        if opened and len(rows):
            number, row = positions_of(labels.take(rows).to_pylist(), [sources[name] for name in opened])
            slots = np.array([names.index(name) for name in opened], np.int32)
            home[rows], position[rows] = np.where(number < 0, -1, slots[number]), row
    columns = ImageColumns(labels, list(sources.values()), home, position)
    return columns, {part.name: distinct(rows) for part, rows in zip(parts, codes, strict=True)}


def compared_pairs(
    parts: Sequence[PartEntry], disjoint: Sequence[tuple[str, str]] = DISJOINT
) -> list[tuple[PartEntry, PartEntry]]:
    """Return the pairs of parts that must share no image; parts of two folds may share images."""
    return [
        (first, second)
        for left, right in disjoint
        for first in _on_side(parts, left)
        for second in _on_side(parts, right)
        if not share_by_design(first.name, second.name)
    ]


def part_overlaps(
    images: ImageColumns,
    parts: Sequence[PartEntry],
    rows: Mapping[str, Int64s],
    disjoint: Sequence[tuple[str, str]] = DISJOINT,
) -> list[Overlap]:
    """Return the images that parts must not share but do, by pair of sides and by evidence.

    Parameters
    ----------
    rows : mapping of str to ndarray of int64
        Rows of `images` by part, each once.
    """
    overlaps = list[Overlap]()
    for left, right in disjoint:
        sides = [_on_side(parts, left), _on_side(parts, right)]
        if not all(sides):
            continue
        together = [distinct(np.concatenate([rows[part.name] for part in side])) for side in sides]
        for shared in shared_images(images, *together):
            overlaps += _attributed(images, shared, sides, rows)
    return overlaps


def _attributed(
    images: ImageColumns, shared: Shared, sides: Sequence[Sequence[PartEntry]], rows: Mapping[str, Int64s]
) -> Iterator[Overlap]:
    """Yield the overlap of the parts that contain shared images, and whether one is a declared subset of the other."""
    members = [
        {part.name: np.isin(column, rows[part.name]) for part in side}
        for side, column in zip(sides, (shared.left, shared.right), strict=True)
    ]
    between = {
        (first.name, second.name): members[0][first.name] & members[1][second.name]
        for first in sides[0]
        for second in sides[1]
        if not share_by_design(first.name, second.name)
    }
    between = {pair: mask for pair, mask in between.items() if mask.any()}
    if not between:
        return
    mask = np.logical_or.reduce(list(between.values()))
    first, second = (tuple(dict.fromkeys(pair[side] for pair in between)) for side in (0, 1))
    pruned = shared._replace(left=shared.left[mask], right=shared.right[mask])
    part_of = {(part.subset_of, part.name) for side in sides for part in side if part.subset_of}
    is_subset = all(pair in part_of or pair[::-1] in part_of for pair in between)
    yield Overlap(first, second, pruned, images, is_subset)


def is_on_side(name: str, role: str, side: str) -> bool:
    """Return whether a part is one of a side such as ``train+finetune`` or ``range-*``, by its role or its name."""
    return any(role == word or fnmatchcase(name, word) for word in side.split("+"))


def _on_side(parts: Sequence[PartEntry], side: str) -> list[PartEntry]:
    return [part for part in parts if is_on_side(part.name, part.role, side)]


def share_by_design(first: str, second: str) -> bool:
    """Return whether two names belong to the same part, or to parts of two folds."""
    folds = [_FOLD.search(name) for name in (first, second)]
    return first == second or len({fold[1] for fold in folds if fold}) > 1
