"""Records for published lists: entries, labels and other columns of a file, and the form of its lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from curation.core.columns import values_of
from curation.core.errors import AnnotationFormatError
from curation.sources.stems import IMAGE_SUFFIXES, DistinctLines, blocks_of, normalised_lines, stems

if TYPE_CHECKING:
    from curation.sources.source import Int32s

Form = Literal[
    "imglist", "voc list", "id list", "class names", "csv", "json array", "json groups", "json lists", "class roles",
    "coco json", "map", "two files", "file and labels", "file and label vector", "frames",
    "json lines", "data yaml", "parquet",
]  # fmt: skip

LONGEST_LINE = 4096
NO_LABEL = -(1 << 31)
"""Label of an entry without a label, in a list whose other entries have one."""
MOST_CLASS_NAMES = 30_000
"""ImageNet-21K has 21,843 names; a text with more lines without digits is not a list of class names."""
SHARE = 0.95
"""Minimum share of the lines or values that have the form of a list."""
SHOWN = 5

CLASS_FILE = re.compile(r"class|known|names|categor|wnid|synset|seen|novel|(?<![a-z])base(?![a-z])", re.IGNORECASE)
WNID = re.compile(r"n\d{8}")

_BLANKS_TO_SLASHES = bytes.maketrans(b" \t", b"//")
_IMAGE_NAME = re.compile(r"\.(?:" + "|".join(re.escape(suffix) for suffix in IMAGE_SUFFIXES) + r")\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OddLine:
    """A line that is not an entry, or whose form differs from the others.

    Attributes
    ----------
    line : int
        From 1.
    reason : str
    text : str
        Its beginning.
    """

    line: int
    reason: str
    text: str


@dataclass(frozen=True)
class TextColumn:
    """A text column of a list besides its images, such as the patient or the source.

    Attributes
    ----------
    values : tuple of str
        Distinct values, in the order of the file.
    of : ndarray of int32, shape (n,)
        Position of each entry's value in `values`; -1 for an entry without a value.
    """

    values: tuple[str, ...]
    of: Int32s


class PackedText:
    """A text in compressed blocks of whole lines.

    Parameters
    ----------
    blocks : iterable of bytes
    """

    def __init__(self, blocks: Iterable[bytes] = ()) -> None:
        self._data, self._ends = bytearray(), list[tuple[int, int]]()
        for block in blocks:
            self.append(block)

    def append(self, block: bytes) -> None:
        """Append whole lines to the text."""
        from pyarrow import Codec

        self._data += Codec("zstd", compression_level=1).compress(block, asbytes=True)
        self._ends.append((len(self._data), len(block)))

    def blocks(self) -> Iterator[bytes]:
        """Yield the blocks, in the order in which they were added."""
        from pyarrow import Codec

        start = 0
        for end, size in self._ends:
            yield Codec("zstd").decompress(bytes(self._data[start:end]), size, asbytes=True)
            start = end


@dataclass(frozen=True)
class PublishedList:
    """One list of a file, in the order of the file, including repeated entries.

    Attributes
    ----------
    name : str
        Empty, or the key of the list in a JSON object.
    paths : bytes
        The entries as written, without label and outer blanks: UTF-8, a line feed after each.
    lines : ndarray of int32, shape (n,)
        Line of each entry, or its position in a JSON array or table, from 1.
    labels : ndarray of int32, shape (n,), or None
        Numbers beside the entries; `NO_LABEL` for an entry without a number. Labels are not roles of images.
    groups : tuple of str
        Distinct classes, or other texts beside the entries in the table; empty if there are none.
    group_of : ndarray of int32, shape (n,), or None
        Position in `groups`.
    odd : int
        Number of lines that are left out, and of entries without a label in a list with labels.
    odd_lines : tuple of OddLine
        The first few of them.
    integers : bool
        Whether entries are JSON numbers, which lack the leading zeros that the dataset may use.
    are_stems : bool
        Whether every entry is a bare number, which equals its stem.
    companions : bytes, optional
        Second file of each entry, normalised as `images`, a line feed after each; empty for an entry without one.
    columns : mapping of str to Column
        Other text columns by their name in the header, or by the name that the form defines: ``patient``, ``source``.
    label_counts : ndarray of int32, shape (n,), or None
        Number of labels of each entry, in a form in which an entry has any number of labels, including 0.
    rest : ndarray of int32, shape (n,), or None
        A number for the remaining cells of the entry's row, such as measures: rows with different numbers differ.
    by_columns : bool
        Whether blanks separate columns that together name an image: ``FOLDER FRAME SIDE``.
    short : int
        Number of lines in `odd` that are cut or have fewer columns than 95 % of the others.
    short_lines : tuple of OddLine
        The first few of them.
    packed : PackedText, optional
        The entries of a list of millions of lines, whose `paths` are empty (see `curation.sources.long_lists`).
    """

    name: str
    paths: bytes
    lines: Int32s
    labels: Int32s | None = None
    groups: tuple[str, ...] = ()
    group_of: Int32s | None = None
    odd: int = 0
    odd_lines: tuple[OddLine, ...] = ()
    integers: bool = False
    are_stems: bool = False
    companions: bytes | None = None
    columns: Mapping[str, TextColumn] = field(default_factory=dict)
    label_counts: Int32s | None = None
    rest: Int32s | None = None
    by_columns: bool = False
    short: int = 0
    short_lines: tuple[OddLine, ...] = ()
    packed: PackedText | None = None

    def __len__(self) -> int:
        return len(self.lines)

    def blocks(self) -> Iterator[bytes]:
        """Yield `paths` in blocks of whole lines."""
        return blocks_of(self.paths) if self.packed is None else self.packed.blocks()

    def stem_blocks(self, *, parents: int = 0) -> Iterator[bytes]:
        """Yield `stems` in blocks of whole lines, or `parent_stems` with 1 parent."""
        return self.blocks() if self.are_stems else (stems(block, parents=parents) for block in self.blocks())

    def image_blocks(self) -> Iterator[bytes]:
        """Yield `images` in blocks of whole lines."""
        return self.blocks() if self.are_stems else map(self._normalised, self.blocks())

    def _normalised(self, paths: bytes) -> bytes:
        return normalised_lines(paths.translate(_BLANKS_TO_SLASHES) if self.by_columns else paths)

    @property
    def is_multilabel(self) -> bool:
        """Whether an entry may have several labels without a conflict."""
        return self.label_counts is not None

    @cached_property
    def images(self) -> bytes:
        """Full path of each entry, normalised (see `normalised_lines`), a line feed after each."""
        return self.paths if self.are_stems else self._normalised(self.paths)

    @cached_property
    def stems(self) -> bytes:
        """Stem of each entry, a line feed after each."""
        return self.paths if self.are_stems else stems(self.paths)

    @cached_property
    def parent_stems(self) -> bytes:
        """Last folder and stem of each entry, ``banded/banded_0002``, a line feed after each."""
        return self.paths if self.are_stems else stems(self.paths, parents=1)

    @cached_property
    def distinct_stems(self) -> DistinctLines:
        """The distinct stems."""
        return DistinctLines(self.stem_blocks)

    @cached_property
    def distinct_parent_stems(self) -> DistinctLines:
        """The distinct pairs of folder and stem."""
        return DistinctLines(partial(self.stem_blocks, parents=1)) if self.has_folders else self.distinct_stems

    @cached_property
    def has_folders(self) -> bool:
        """Whether an entry has a folder."""
        return not self.are_stems and any(b"/" in block or b"\\" in block for block in self.blocks())

    @cached_property
    def _given_labels(self) -> Any:
        return np.empty(0, np.int32) if self.labels is None else self.labels[self.labels != NO_LABEL]

    @property
    def unlabelled(self) -> int:
        """Number of entries without a label in a list with labels."""
        return 0 if self.labels is None else len(self) - len(self._given_labels)

    @property
    def label_range(self) -> str:
        """Lowest and highest label, ``0..999``; empty for a list without labels."""
        labels = self._given_labels
        return f"{labels.min()}..{labels.max()}" if len(labels) else ""


@dataclass(frozen=True)
class PublishedFile:
    """A published file: its lists or class names, form and digest.

    Attributes
    ----------
    path : Path
    form : str
        See `Form`.
    size : int
        Bytes on disk.
    sha256 : str
        Hex digest of these bytes.
    lists : tuple of PublishedList
        Lists of images; empty if the file names classes.
    classes : mapping of str to tuple of str
        Names or numbers of classes: under the empty key, or by role, ``unknown/Hard``.
    notes : tuple of str
        Remarks on the file, such as repeated image ids.
    annotated : bool
        Whether COCO JSON has annotations in addition to images.
    named_files : tuple of Path
        Files whose lists a ``data.yaml`` names, and the label files of their photos; not read as separate lists.
    doubts : tuple of str
        Ambiguities that the reader had to decide, such as which of two columns holds the images.
    """

    path: Path
    form: Form
    size: int
    sha256: str
    lists: tuple[PublishedList, ...] = ()
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    annotated: bool = False
    named_files: tuple[Path, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class ListDigests:
    """Digests that identify a list: counts, and SHA-256 of its bytes, distinct stems, and stems with their folder."""

    lines: int
    distinct_stems: int
    distinct_parent_stems: int
    labels: str
    sha256_bytes: str
    sha256_stems: str
    sha256_parent_stems: str

    @classmethod
    def of(cls, listed: PublishedList, sha256: str) -> ListDigests:
        """Return the digests of a list; `sha256` is that of its file."""
        return cls(
            lines=len(listed),
            distinct_stems=len(listed.distinct_stems),
            distinct_parent_stems=len(listed.distinct_parent_stems),
            labels=listed.label_range,
            sha256_bytes=sha256,
            sha256_stems=listed.distinct_stems.sha256,
            sha256_parent_stems=listed.distinct_parent_stems.sha256,
        )


class EmptyListError(AnnotationFormatError):
    """A file or its array has no entry."""


def name_classes(texts: Sequence[str], *, hinted: str = "") -> bool:
    """Return whether texts are names of classes rather than files or ids of images.

    Parameters
    ----------
    hinted : str
        Name of their file. If it refers to classes, names may contain digits (*BMW M3 Coupe 2012*). It does not turn
        ids into classes: ``t1_known_test.txt`` is a list of images.
    """
    if any(_IMAGE_NAME.search(text) or not text.isprintable() for text in texts):
        return False
    if all(WNID.fullmatch(text) for text in texts):
        return True
    few = len(texts) // 20
    if sum(not any(character.isalpha() for character in text) for text in texts) > few:
        return False
    digits = sum(any(character.isdigit() for character in text) for text in texts)
    if CLASS_FILE.search(Path(hinted).stem):
        return digits <= few or sum(" " in text for text in texts) > len(texts) // 2
    return digits <= few and sum("/" in text or "\\" in text for text in texts) <= few


def text_column(cells: Any) -> TextColumn:
    """Return the texts of an Arrow array as a column."""
    return column_of(*texts_and_codes(cells))


def texts_and_codes(cells: Any) -> tuple[list[str], Int32s]:
    """Return the distinct texts of an Arrow array in order of appearance, and the position of each row among them."""
    cells = cells.dictionary_encode()
    return cells.dictionary.to_pylist(), values_of(cells.indices)


def column_of(values: Sequence[str], codes: Int32s) -> TextColumn:
    """Return a column in which an empty value becomes a missing value."""
    if "" in values:
        empty = values.index("")
        codes = np.where(codes == empty, -1, codes - (codes > empty)).astype(np.int32)
        values = [value for value in values if value]
    return TextColumn(tuple(values), codes)
