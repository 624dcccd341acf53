"""Lists that others publish, in every form they come in: read, told apart, and normalised to the stems of their files.

One list may be written as ``imagenet_1k/val/ILSVRC2012_val_00024235.JPEG 0``, as ``ILSVRC2012_val_00024235`` or as an
entry of a JSON array. What all of them share is the *stem*: the name of the file without folder and suffix. Stems of
two files are compared, and digests of stems name a list whatever its form.

A list may have millions of lines. Its entries stay in columns: the bytes of a text with one entry a line.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from curation.errors import AnnotationFormatError, DamagedFileError, UsageError
from curation.input_files import InputFile
from curation.json_keys import refuse_repeated_keys
from curation.sources.stems import (
    IMAGE_SUFFIXES,
    before_suffix,
    blocks_of,
    distinct,
    firsts,
    gathered,
    normalised,
    stems,
    with_folder,
    with_suffix,
)

if TYPE_CHECKING:
    from curation.sources.source import Bools, Int32s, Int64s

Form = Literal[
    "imglist", "voc list", "id list", "class names", "csv", "json array", "json groups", "json lists", "class roles",
    "coco json", "map",
]  # fmt: skip

MAX_BYTES = 1 << 30
LONGEST_LINE = 4096
NO_LABEL = -(1 << 31)
"""Label of an entry beside which none stands, in a list whose other entries have one."""
MOST_CLASS_NAMES = 30_000
"""ImageNet-21K has 21,843 names; a text without digits and with more lines is not taken for names of classes."""

LIST_SUFFIXES = (".txt", ".list", ".lst", ".csv", ".tsv", ".json", ".jsonl", ".odgt", "")
"""Suffixes of files that may hold a list, beside `YAML_NAMES`."""
YAML_NAMES = ("data.yaml", "data.yml")
_NO_LISTS = ("readme", "license", "licence", "makefile", "dockerfile", "notice", "authors", "requirements")

BYTE_ORDER_MARK = "byte order mark"
RETURNS = "lines ended by CR LF"
OUTER_BLANKS = "ids with blanks around them"
LABELS = "ids with a label {} beside them"
FOLDERS = "ids with a folder before them"
SUFFIXES = "ids with the suffix of a photo"

_FEW_LABELS = 3
_LONGEST_NAME = 255
_SHARE = 0.95
_GROUPS = 50
_SHOWN = 5
_LABEL_DIGITS = 9
_LINE_FEED, _SLASH, _MINUS, _ZERO = 10, 47, 45, 48
_BLANK = np.zeros(256, np.bool_)
_BLANK[[32, 9, 13]] = True
_CONTROL = np.zeros(256, np.bool_)
_CONTROL[[*range(9), 11, 12, *range(14, 32), 127]] = True
_AFTER_FOLDERS = re.compile(rb"[/\\]")
_REASONS = (
    "", "it names a folder", "it holds a control character", "it is not printable", "the line is too long",
    f"its name is longer than {_LONGEST_NAME} characters",
)  # fmt: skip
_PATH_COLUMNS = ("image_location", "file_name", "path", "image_id")
_CLASS_COLUMNS = ("class", "label", "decision")
_OTHER_CELLS = "it has another number of cells than the header"
_WNID = re.compile(r"n\d{8}")
CLASS_FILE = re.compile(r"class|known|names|categor", re.IGNORECASE)
_IMAGE_NAME = re.compile(r"\.(?:" + "|".join(re.escape(one) for one in IMAGE_SUFFIXES) + r")\Z", re.IGNORECASE)
_PART_NAME = re.compile(r"(?:.*[._/-])?(?:train|val|valid|validation|test)(?:[._/-].*|ing|[0-9]*)", re.IGNORECASE)
_SPLIT_NAME = re.compile(r"train|val|test|split|known|\bi?ood\b|\bid\b|all", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OddLine:
    """A line that is no entry, or an entry that is not written as the others are.

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
class Column:
    """A text column of a list beside its images: a patient, a source.

    Attributes
    ----------
    values : tuple of str
        Each once, in the order of the file.
    of : ndarray of int32, shape (n,)
        Position of each entry's value in `values`; -1 where it has none.
    """

    values: tuple[str, ...]
    of: Int32s


@dataclass(frozen=True)
class PublishedList:
    """One list of a file, in the order of the file, repeats kept.

    Attributes
    ----------
    name : str
        Empty, or the key of a JSON object under which the list stands.
    paths : bytes
        The entries as they are written, without label and outer blanks: UTF-8, a line feed after each.
    lines : ndarray of int32, shape (n,)
        Line of each entry, or its place in a JSON array or table, from 1.
    labels : ndarray of int32, shape (n,), or None
        Numbers that stand beside the entries; `NO_LABEL` where none does. They do not tell the role of an image.
    groups : tuple of str
        Classes, or other texts of the table beside the entries, each once; empty where there is none.
    group_of : ndarray of int32, shape (n,), or None
        Position in `groups`.
    odd : int
        Lines that are left out, and entries without a label among such with one.
    odd_lines : tuple of OddLine
        The first few of them.
    blank : int
        Empty lines.
    traits : mapping of str to int
        How lines are written, with the number of them: `BYTE_ORDER_MARK`, `RETURNS`, `OUTER_BLANKS`.
    integers : bool
        Whether an entry is a number of JSON, without the zeros that its dataset may write.
    are_stems : bool
        Whether every entry is a number alone, its own stem.
    companions : bytes, optional
        Second file of each entry, normalised as `images`, a line feed after each; an empty line where none is named.
    columns : mapping of str to Column
        Other text columns by their name in the header, or by what the form calls them: ``patient``, ``source``.
    label_counts : ndarray of int32, shape (n,), or None
        Labels that an entry has, in a form where it may have any number of them, none too.
    pairs : bool
        Whether a line holds members of a pair. They are entries of one line; images repeat by design.
    by_columns : bool
        Whether blanks within an entry stand between columns that name an image together: ``FOLDER FRAME SIDE``.
    short : int
        Lines of `odd` that are cut, or have fewer columns than 95 % of the others.
    short_lines : tuple of OddLine
        The first few of them.
    """

    name: str
    paths: bytes
    lines: Int32s
    labels: Int32s | None = None
    groups: tuple[str, ...] = ()
    group_of: Int32s | None = None
    odd: int = 0
    odd_lines: tuple[OddLine, ...] = ()
    blank: int = 0
    traits: Mapping[str, int] = field(default_factory=dict)
    integers: bool = False
    are_stems: bool = False
    companions: bytes | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)
    label_counts: Int32s | None = None
    pairs: bool = False
    by_columns: bool = False
    short: int = 0
    short_lines: tuple[OddLine, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def is_multilabel(self) -> bool:
        """Whether an entry may have several labels, which are no conflict."""
        return self.label_counts is not None

    @cached_property
    def images(self) -> bytes:
        """Whole path of each entry, normalised (see `normalised`), a line feed after each."""
        if self.are_stems:
            return self.paths
        paths = re.sub(rb"[ \t]+", b"/", self.paths) if self.by_columns else self.paths
        return normalised(paths)

    @cached_property
    def stems(self) -> bytes:
        """Stem of each entry, a line feed after each."""
        return self.paths if self.are_stems else stems(self.paths)

    @cached_property
    def parent_stems(self) -> bytes:
        """Last folder and stem of each entry, ``banded/banded_0002``, a line feed after each."""
        return self.paths if self.are_stems else stems(self.paths, parents=1)

    @cached_property
    def distinct_stems(self) -> bytes:
        """The stems each once, sorted by code point, a line feed after each."""
        return distinct(self.stems)

    @cached_property
    def distinct_parent_stems(self) -> bytes:
        """The same of folder and stem."""
        if self.parent_stems == self.stems:
            return self.distinct_stems
        return distinct(self.parent_stems)

    @cached_property
    def has_folders(self) -> bool:
        """Whether a folder stands before an entry."""
        return not self.are_stems and (b"/" in self.paths or b"\\" in self.paths)

    @cached_property
    def understood(self) -> Mapping[str, int]:
        """What stands around the names of images and had to be understood, with the number of entries."""
        found = dict(self.traits) | {LABELS.format(text): count for text, count in self._labels()}
        if self.has_folders:
            found[FOLDERS] = sum(with_folder(block) for block in blocks_of(self.paths))
        if not self.are_stems and b"." in self.paths:
            found[SUFFIXES] = sum(with_suffix(block) for block in blocks_of(self.paths))
        return {trait: count for trait, count in found.items() if count}

    def _labels(self) -> Iterator[tuple[str, int]]:
        if self.labels is None:
            return
        values, counts = np.unique(self.labels[self.labels != NO_LABEL], return_counts=True)
        if len(values) <= _FEW_LABELS:
            yield from zip(map(str, values.tolist()), counts.tolist(), strict=True)
        else:
            yield self.label_range, int(counts.sum())

    @property
    def unlabelled(self) -> int:
        """Entries without a label among such with one."""
        return 0 if self.labels is None else int((self.labels == NO_LABEL).sum())

    @property
    def label_range(self) -> str:
        """Lowest and highest label, ``0..999``; empty where there is none."""
        if self.labels is None:
            return ""
        given = self.labels[self.labels != NO_LABEL]
        return f"{given.min()}..{given.max()}" if len(given) else ""


@dataclass(frozen=True)
class PublishedFile:
    """A file that somebody published, and what it was understood as.

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
        Lists of images; none where the file names classes.
    classes : mapping of str to tuple of str
        Names or numbers of classes: under the empty key, or by role, ``unknown/Hard``.
    renamed : mapping of str to str
        Of a file that maps names to names.
    notes : tuple of str
        What a reader should know of the file, such as image ids that stand twice.
    annotated : bool
        Whether COCO JSON has annotations beside its images.
    ended : bool
        Whether a text ends in a line feed; without, it has one line more than ``wc -l`` says.
    named_files : tuple of Path
        Files whose lists a ``data.yaml`` names; they stand in `lists`, and are no lists of their own beside it.
    """

    path: Path
    form: Form
    size: int
    sha256: str
    lists: tuple[PublishedList, ...] = ()
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    annotated: bool = False
    ended: bool = True
    named_files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class ListDigests:
    """What names a list: counts and SHA-256 of its bytes, of its distinct stems, and of these with their folder."""

    lines: int
    distinct_stems: int
    distinct_parent_stems: int
    labels: str
    sha256_bytes: str
    sha256_stems: str
    sha256_parent_stems: str

    @classmethod
    def of(cls, one: PublishedList, sha256: str) -> ListDigests:
        """Return those of a list that stands in a file with this digest."""
        return cls(
            lines=len(one),
            distinct_stems=one.distinct_stems.count(b"\n"),
            distinct_parent_stems=one.distinct_parent_stems.count(b"\n"),
            labels=one.label_range,
            sha256_bytes=sha256,
            sha256_stems=hashlib.sha256(one.distinct_stems).hexdigest(),
            sha256_parent_stems=hashlib.sha256(one.distinct_parent_stems).hexdigest(),
        )


class EmptyListError(AnnotationFormatError):
    """A file, or its array, has no entry."""


def list_files(folder: Path) -> list[Path]:
    """Return the files below a folder that may hold lists by their suffix, hidden ones left out, sorted by path."""
    found = [
        path
        for path in folder.rglob("*")
        if _may_be_list(path.name)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and path.is_file()
    ]
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def _may_be_list(name: str) -> bool:
    if name.lower() in YAML_NAMES:
        return True
    return Path(name).suffix.lower() in LIST_SUFFIXES and name.lower().partition(".")[0] not in _NO_LISTS


def read_published(path: Path, root: Path | None = None) -> PublishedFile:
    """Read a published file of any form, by what it holds; its name only helps to tell class names.

    Parameters
    ----------
    path : Path
    root : Path, optional
        Folder that what a ``data.yaml`` names must not leave; by default its own.

    Raises
    ------
    MissingFileError
        The file does not exist or cannot be read.
    UsageError
        It is larger than a list can be.
    EmptyListError
        It has no entry.
    AnnotationFormatError
        It is no text, or JSON of no known form.
    """
    try:
        size = path.stat().st_size
    except OSError:
        size = 0
    if size > MAX_BYTES:
        raise UsageError(
            "The file is too large to be a list", where=str(path), expected=f"at most {MAX_BYTES:,} bytes",
            found=f"{size:,}",
        )  # fmt: skip
    given = InputFile(path, kind="list")
    data, where = given.data, str(path)
    if not data or data.isspace():
        raise EmptyListError("The list is empty", where=where, expected="at least one entry")
    if data[:LONGEST_LINE].lstrip()[:1] in (b"{", b"["):
        read = _from_json(data, where)
    else:
        if b"\0" in data:
            raise DamagedFileError("The file is not text", where=where, found=f"a zero byte at {data.index(0):,}")
        header, mark = _header(data)
        is_table = _path_column(header) is not None
        if not is_table and len(header) > 1 and path.suffix.lower() == ".csv":
            raise AnnotationFormatError(
                "The table has no column of images", where=where, expected=f"one of {', '.join(_PATH_COLUMNS)}",
                found=ascii(", ".join(header))[:200],
            )  # fmt: skip
        read = _from_csv(data, header, mark, where) if is_table else _from_text(data, path)
        if given.has_byte_order_mark and read.get("lists"):
            [one] = read["lists"]
            read["lists"] = (replace(one, traits={BYTE_ORDER_MARK: 1, **one.traits}),)
    return PublishedFile(path, size=given.size, sha256=given.sha256.removeprefix("sha256:"), **read)


@dataclass(frozen=True)
class _Lines:
    """Spans of the filled lines of a block, and of what would stand before a label."""

    block: bytes
    numbers: Int32s
    starts: Int32s
    ends: Int32s
    breaks: Int32s
    before: Int32s
    labels: Int32s
    is_imglist: Bools
    is_voc: Bools
    is_sentence: Bools

    def odd_line(self, row: int, reason: str) -> OddLine:
        """Return what is shown of a line."""
        text = self.block[self.starts[row] : min(self.ends[row], self.starts[row] + 240)]
        return OddLine(int(self.numbers[row]), reason, text.decode("utf-8", "ignore")[:60])

    def without(self, rows: Int64s) -> _Lines:
        """Return the lines but for some of them."""
        columns = {name: np.delete(column, rows) for name, column in vars(self).items() if name != "block"}
        return _Lines(self.block, **columns)


def _from_text(data: bytes, path: Path) -> dict[str, Any]:
    ended = data.endswith(b"\n")
    if not ended:
        data += b"\n"
    if (count := _numbers_alone(data)) is not None:
        one = PublishedList("", data, np.arange(1, count + 1, dtype=np.int32), are_stems=True)
        return {"form": "id list", "lists": (one,), "ended": ended}
    odd: list[OddLine] = []
    refused, number, parts, traits = 0, 0, list[_Lines](), Counter[str]()
    for block in blocks_of(data):
        _require_utf8(block, str(path))
        lines, count, strange, reasons = _lines_of(block, number, traits)
        parts.append(lines)
        number += count
        refused += strange
        odd += reasons[: _SHOWN - len(odd)]
    entries = sum(len(one.numbers) for one in parts)
    form: Form = "id list"
    for known, hits in (("imglist", sum(one.is_imglist.sum() for one in parts)),
                        ("voc list", sum(one.is_voc.sum() for one in parts))):  # fmt: skip
        if entries and hits >= _SHARE * entries:
            form = known  # type: ignore[assignment]
            break
    if form == "id list" and _are_class_names(parts, path.name):
        names = [line.decode() for one in parts for line in _texts_of(one).split(b"\n")[:-1]]
        return {"form": "class names", "classes": {"": tuple(names)}}
    blank = number - refused - entries
    if form == "id list":
        parts, strange, reasons = _without_sentences(parts)
        refused += strange
        odd = sorted([*odd, *reasons], key=lambda one: one.line)[:_SHOWN]
        entries -= strange
    if refused > entries:
        raise AnnotationFormatError(
            "The file is no list of images", where=f"{path}, line {odd[0].line}", expected="one entry a line",
            found=f"{odd[0].reason}; {refused:,} such lines of {entries + refused:,}",
        )  # fmt: skip
    if form == "id list":
        paths, labels = b"".join(map(_texts_of, parts)), None
    else:
        paths, labels, without = _labelled(parts, form)
        refused += len(without)
        odd = sorted([*odd, *without], key=lambda one: one.line)[:_SHOWN]
    numbers = np.concatenate([one.numbers for one in parts])
    one = PublishedList(
        "", paths, numbers, labels, odd=refused, odd_lines=tuple(odd), blank=blank,
        traits={name: traits[name] for name in (RETURNS, OUTER_BLANKS) if traits[name]},
    )  # fmt: skip
    return {"form": form, "lists": (one,), "ended": ended}


def _numbers_alone(data: bytes) -> int | None:
    """Return the number of lines where each is a number and nothing else: most lists are, and one look tells."""
    buffer = np.frombuffer(data, np.uint8)
    if buffer[:_LONGEST_NAME].max() > _ZERO + 9 or data.startswith(b"\n") or buffer.max() > _ZERO + 9:
        return None
    lower = int(np.count_nonzero(buffer < _ZERO))
    width = data.index(b"\n") + 1
    if width * lower == len(data) and (buffer[width - 1 :: width] == _LINE_FEED).all():
        return lower if width <= _LONGEST_NAME else None
    breaks = np.flatnonzero(buffer == _LINE_FEED)
    widths = np.diff(breaks, prepend=-1)
    return lower if len(breaks) == lower and widths.min() > 1 and widths.max() <= _LONGEST_NAME else None


def _without_sentences(parts: Sequence[_Lines]) -> tuple[list[_Lines], int, list[OddLine]]:
    """Return the lines of an id list without those of several words that name no file."""
    kept, refused, odd = list[_Lines](), 0, list[OddLine]()
    for one in parts:
        rows = np.flatnonzero(one.is_sentence)
        refused += len(rows)
        odd += [one.odd_line(row, "it holds several words") for row in rows[: _SHOWN - len(odd)].tolist()]
        kept.append(one.without(rows) if len(rows) else one)
    return kept, refused, odd


def _require_utf8(block: bytes, where: str) -> None:
    if block.isascii():
        return
    try:
        block.decode()
    except UnicodeDecodeError as error:
        raise DamagedFileError("The file is not UTF-8 text", where=where, found=str(error)[:200]) from None


def _lines_of(block: bytes, before: int, traits: Counter[str]) -> tuple[_Lines, int, int, list[OddLine]]:
    """Return the filled lines of a block, the number of all its lines, and those that cannot be an entry."""
    buffer = np.frombuffer(block, np.uint8)
    breaks = np.flatnonzero(buffer == _LINE_FEED)
    first = firsts(breaks)
    starts, ends = first.copy(), breaks.copy()
    short = breaks - first <= LONGEST_LINE
    for step, bound in ((-1, ends), (1, starts)):
        rows = np.flatnonzero(short & (ends > starts))
        while len(rows):
            rows = rows[_BLANK[buffer[bound[rows] - (step < 0)]]]
            bound[rows] += step
            rows = rows[ends[rows] > starts[rows]]
    filled = ends > starts
    if b"\r" in block:
        by_return = (breaks > first) & (buffer[breaks - 1] == ord("\r"))
        traits[RETURNS] += int(by_return.sum())
        inner = np.flatnonzero(buffer == ord("\r"))
        rows = np.searchsorted(breaks, inner)
        lone = np.unique(rows[(inner >= starts[rows]) & (inner < ends[rows])])
    else:
        by_return, lone = np.zeros(len(breaks), np.bool_), np.empty(0, np.int64)
    traits[OUTER_BLANKS] += int((filled & (breaks - first - by_return > ends - starts)).sum())
    reasons = np.zeros(len(breaks), np.int8)
    reasons[filled] = (buffer[ends[filled] - 1] == _SLASH) | (buffer[ends[filled] - 1] == ord("\\"))
    reasons[lone] = 2
    if np.count_nonzero(buffer < 32) > len(breaks) + block.count(b"\t") + block.count(b"\r") or b"\x7f" in block:
        control = np.flatnonzero(_CONTROL[buffer])
        reasons[np.searchsorted(breaks, control)] = 2
    for row in () if block.isascii() else np.flatnonzero(filled).tolist():
        text = block[starts[row] : min(ends[row], starts[row] + LONGEST_LINE + 3)]
        if not text.isascii() and not text.decode("utf-8", "ignore").replace("\t", " ").isprintable():
            reasons[row] = 3
    for row in np.flatnonzero(short & (ends - starts > _LONGEST_NAME)).tolist():
        name = _AFTER_FOLDERS.split(block[starts[row] : ends[row]])[-1]
        if len(name.decode("utf-8", "ignore")) > _LONGEST_NAME:
            reasons[row] = 5
    reasons[~short] = 4
    strange = np.flatnonzero(reasons)
    odd = [
        OddLine(
            before + row + 1, _REASONS[reasons[row]],
            block[starts[row] : min(ends[row], starts[row] + 240)].decode("utf-8", "ignore")[:60],
        )
        for row in strange[:_SHOWN].tolist()
    ]  # fmt: skip
    rows = np.flatnonzero(filled & (reasons == 0))
    lines = _with_labels(block, buffer, (rows + before + 1, starts[rows], ends[rows], breaks[rows]))
    return lines, len(breaks), len(strange), odd


def _with_labels(block: bytes, buffer: Any, lines: tuple[Int64s, Int64s, Int64s, Int64s]) -> _Lines:
    numbers, starts, ends, breaks = lines
    before, labels = ends.copy(), np.full(len(ends), NO_LABEL, np.int32)
    is_label, has_path = np.zeros(len(ends), np.bool_), np.zeros(len(ends), np.bool_)
    is_bare, is_sentence = has_path.copy(), has_path.copy()
    blanks = np.flatnonzero((buffer == 32) | (buffer == 9))
    if len(blanks):
        last = np.searchsorted(blanks, ends) - 1
        place = blanks[last]
        rows = np.flatnonzero((last >= 0) & (place > starts) & (place < ends))
        values, good = _numbers_of(buffer, place[rows] + 1, ends[rows])
        rows = rows[good]
        is_label[rows], labels[rows] = True, values[good]
        before[rows] = place[rows]
        moving = rows
        while len(moving):
            moving = moving[_BLANK[buffer[before[moving] - 1]]]
            before[moving] -= 1
        has_path[rows] = before_suffix(buffer, starts[rows], before[rows]) < before[rows]
        rows = rows[~has_path[rows]]
        slashes = np.flatnonzero((buffer == _SLASH) | (buffer == ord("\\"))) if len(rows) else blanks[:0]
        has_path[rows] = np.searchsorted(slashes, before[rows]) > np.searchsorted(slashes, starts[rows])
        is_bare[rows] = np.searchsorted(blanks, before[rows]) == np.searchsorted(blanks, starts[rows])
        words = np.flatnonzero((last >= 0) & (place > starts) & (place < ends) & ~has_path)
        if len(words):
            slashes = np.flatnonzero((buffer == _SLASH) | (buffer == ord("\\")))
            inner = np.searchsorted(slashes, ends[words]) > np.searchsorted(slashes, starts[words])
            is_sentence[words] = ~inner & (before_suffix(buffer, starts[words], ends[words]) == ends[words])
    near_zero = (labels >= -1) & (labels <= 1)
    return _Lines(
        block, numbers.astype(np.int32), starts.astype(np.int32), ends.astype(np.int32), breaks.astype(np.int32),
        before.astype(np.int32), labels, is_label & has_path, is_label & ~has_path & is_bare & near_zero, is_sentence,
    )  # fmt: skip


def _numbers_of(buffer: Any, starts: Int64s, ends: Int64s) -> tuple[Int64s, Bools]:
    """Return the integers that stand in spans, and which spans hold one of at most nine digits."""
    negative = buffer[starts] == _MINUS
    starts = starts + negative
    widths = ends - starts
    good = (widths > 0) & (widths <= _LABEL_DIGITS)
    values = np.zeros(len(starts), np.int64)
    for place in range(int(widths[good].max()) if good.any() else 0):
        rows = np.flatnonzero(good & (widths > place))
        digits = buffer[starts[rows] + place].astype(np.int64) - _ZERO
        values[rows] = values[rows] * 10 + digits
        good[rows] &= (digits >= 0) & (digits <= 9)
    return np.where(negative, -values, values), good


def _texts_of(one: _Lines, ends: Int32s | None = None) -> bytes:
    if not len(one.numbers):
        return b""
    closing = one.breaks.astype(np.int64)
    return gathered(
        np.frombuffer(one.block, np.uint8), (one.starts, one.ends if ends is None else ends), (closing, closing + 1)
    )


def _labelled(parts: Sequence[_Lines], form: Form) -> tuple[bytes, Int32s, list[OddLine]]:
    """Return entries and labels; an entry that is not written as the others has none, and is told."""
    texts, labels, without = [], [], list[OddLine]()
    for one in parts:
        fits = one.is_imglist if form == "imglist" else one.is_voc
        texts.append(_texts_of(one, np.where(fits, one.before, one.ends)))
        labels.append(np.where(fits, one.labels, NO_LABEL))
        without += [one.odd_line(row, "it has no label") for row in np.flatnonzero(~fits).tolist()]
    return b"".join(texts), np.concatenate(labels).astype(np.int32), without


def _are_class_names(parts: Sequence[_Lines], file_name: str) -> bool:
    """Return whether lines name classes: words and no files, or wnids."""
    if not 0 < sum(len(one.numbers) for one in parts) <= MOST_CLASS_NAMES:
        return False
    return name_classes([line.decode() for one in parts for line in _texts_of(one).split(b"\n")[:-1]], hinted=file_name)


def name_classes(texts: Sequence[str], *, hinted: str = "") -> bool:
    """Return whether texts are names of classes, and not files or ids of images.

    Parameters
    ----------
    hinted : str
        Name of their file. One that speaks of classes lets names hold digits (*BMW M3 Coupe 2012*); it does not make
        ids into classes: ``t1_known_test.txt`` is a list of images.
    """
    if any(_IMAGE_NAME.search(text) or not text.isprintable() for text in texts):
        return False
    if all(_WNID.fullmatch(text) for text in texts):
        return True
    few = len(texts) // 20
    if sum(not any(character.isalpha() for character in text) for text in texts) > few:
        return False
    digits = sum(any(character.isdigit() for character in text) for text in texts)
    if CLASS_FILE.search(Path(hinted).stem):
        return digits <= few or sum(" " in text for text in texts) > len(texts) // 2
    return digits <= few and sum("/" in text or "\\" in text for text in texts) <= few


def _header(data: bytes) -> tuple[list[str], str]:
    """Return the columns that the first line names, if it can be a header, and what stands between them."""
    line = data[:LONGEST_LINE].split(b"\n", 1)[0].decode("utf-8", "ignore").strip()
    for mark in ";\t":
        names = _cells(line, mark)
        if len(names) > 1 and _path_column(names) is not None:
            return names, mark
    return _cells(line, ",") if "," in line or line in _PATH_COLUMNS else [], ","


def _cells(line: str, mark: str) -> list[str]:
    try:
        return [name.strip() for name in next(csv.reader([line], delimiter=mark), [])]
    except csv.Error:
        # A carriage return stands in the line: it is no header.
        return []


def _path_column(header: Sequence[str]) -> int | None:
    return next((header.index(name) for name in _PATH_COLUMNS if name in header), None)


def _from_csv(data: bytes, header: Sequence[str], mark: str, where: str) -> dict[str, Any]:
    _require_utf8(data, where)
    if len(set(header)) < len(header):
        raise AnnotationFormatError("The table names a column twice", where=where, found=ascii(",".join(header))[:200])
    place = _path_column(header) or 0
    beside = next((header.index(name) for name in _CLASS_COLUMNS if name in header), None)
    texts, classes, numbers, odd = list[str](), list[str](), list[int](), list[OddLine]()
    reader = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=mark)
    try:
        next(reader)
        for row in reader:
            if not row:
                continue
            text = row[place].strip() if len(row) == len(header) else ""
            if not text or not text.isprintable():
                reason = "it names no image" if len(row) == len(header) else _OTHER_CELLS
                odd.append(OddLine(reader.line_num, reason, mark.join(row)[:60]))
                continue
            texts.append(text)
            numbers.append(reader.line_num)
            if beside is not None:
                classes.append(row[beside])
    except csv.Error as error:
        raise AnnotationFormatError(
            "The table cannot be read", where=f"{where}, line {reader.line_num}", found=str(error)[:200]
        ) from None
    if not texts:
        raise AnnotationFormatError("The table names no image", where=where, expected=f"rows below {header[place]}")
    names, of = _grouped(classes)
    one = PublishedList(
        "", _joined(texts), np.array(numbers, np.int32), None, names, of, len(odd), tuple(odd[:_SHOWN])
    )  # fmt: skip
    return {"form": "csv", "lists": (one,)}


def _grouped(classes: Sequence[str]) -> tuple[tuple[str, ...], Int32s | None]:
    if not classes:
        return (), None
    places = {name: place for place, name in enumerate(dict.fromkeys(classes))}
    return tuple(places), np.array([places[name] for name in classes], np.int32)


def _joined(texts: Iterable[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


class _Image(msgspec.Struct, frozen=True):
    id: int | str = ""
    file_name: str = ""


class _Coco(msgspec.Struct, frozen=True):
    images: list[_Image]
    annotations: msgspec.Raw = msgspec.Raw(b"[]")

    @property
    def annotated(self) -> bool:
        """Whether there is an annotation."""
        return bytes(self.annotations)[:1] == b"[" and bytes(self.annotations)[1:].strip() != b"]"


def _from_json(data: bytes, where: str) -> dict[str, Any]:
    try:
        if data[:LONGEST_LINE].lstrip()[:1] == b"[":
            return _from_array(msgspec.json.decode(data, type=list[str | int]), where)
        keys = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        refuse_repeated_keys(data, where, AnnotationFormatError)
        if "images" in keys and bytes(keys["images"])[:1] == b"[" and keys.keys() & {"annotations", "categories"}:
            coco = msgspec.json.decode(data, type=_Coco)
            return _from_coco(coco.images, where) | {"annotated": coco.annotated}
        if keys.keys() >= {"known_classes", "unknown_classes"}:
            roles = {role: msgspec.json.decode(keys[f"{role}_classes"]) for role in ("known", "unknown")}
            return {"form": "class roles", "classes": dict(_roles(roles, "", where))}
        if all(bytes(value)[:1] == b"[" for value in keys.values()) and keys:
            return _from_arrays(msgspec.json.decode(data, type=dict[str, list[str | int]]), where)
        named = msgspec.json.decode(data, type=dict[str, str | dict[str, str]])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        kind = AnnotationFormatError if isinstance(error, msgspec.ValidationError) else DamagedFileError
        raise kind(
            "The JSON is of no known form", where=where,
            expected="an array of texts, an object of such arrays, COCO JSON, known_classes and unknown_classes, or "
            "an object of texts",
            found=str(error)[:200],
        ) from None  # fmt: skip
    renamed = {
        key: value
        for outer, given in named.items()
        for key, value in ([(outer, given)] if isinstance(given, str) else [(f"{outer}/{k}", given[k]) for k in given])
    }
    return {"form": "map", "renamed": renamed}


def _from_array(given: Sequence[str | int], where: str) -> dict[str, Any]:
    if not given:
        raise EmptyListError("The list is empty", where=where, expected="at least one entry")
    texts = [one for one in given if isinstance(one, str)]
    if len(texts) == len(given) <= MOST_CLASS_NAMES and name_classes(texts):
        return {"form": "class names", "classes": {"": tuple(texts)}}
    return {"form": "json array", "lists": (_listed("", given, where),)}


def _from_coco(images: Sequence[_Image], where: str) -> dict[str, Any]:
    one = _listed("", [image.file_name or image.id for image in images], where)
    ids = len({image.id for image in images})
    notes = (f"image ids repeat: {len(images):,} images have {ids:,} ids",) if ids < len(images) else ()
    return {"form": "coco json", "lists": (one,), "notes": notes}


def _from_arrays(given: Mapping[str, Sequence[str | int]], where: str) -> dict[str, Any]:
    """Read an object of arrays: one list in classes where its keys are classes, else one list a key."""
    wnids = all(_WNID.fullmatch(key) for key in given)
    if wnids or (len(given) > _GROUPS and not all(_SPLIT_NAME.search(key) for key in given)):
        groups = np.repeat(np.arange(len(given), dtype=np.int32), [len(one) for one in given.values()])
        one = _listed("", [text for own in given.values() for text in own], where)
        return {"form": "json groups", "lists": (_with_groups(one, tuple(given), groups),)}
    lists = tuple(_listed(key, given[key], where) for key in given if given[key])
    if not lists:
        raise EmptyListError("The lists are empty", where=where, expected="at least one entry")
    parts = all(_PART_NAME.fullmatch(key) for key in given)
    if not parts and all(name_classes([str(text) for text in given[one.name]]) for one in lists):
        return {"form": "class roles", "classes": {key: tuple(map(str, given[key])) for key in given}}
    empty = ", ".join(key for key in given if not given[key])
    return {"form": "json lists", "lists": lists, "notes": (f"empty: {ascii(empty)[1:-1][:200]}",) if empty else ()}


def _with_groups(one: PublishedList, groups: tuple[str, ...], group_of: Int32s) -> PublishedList:
    return PublishedList(
        one.name, one.paths, one.lines, None, groups, group_of[one.lines - 1], one.odd, one.odd_lines
    )  # fmt: skip


def _listed(name: str, given: Sequence[str | int], where: str) -> PublishedList:
    """Return entries of JSON as a list; one that is empty or not printable is left out and told."""
    texts = [str(one).strip() for one in given]
    good = [row for row, text in enumerate(texts) if text and text.isprintable() and len(text) <= LONGEST_LINE]
    odd: list[OddLine] = []
    if len(good) < len(texts):
        kept = set(good)
        odd = [
            OddLine(row + 1, "it is empty, too long or not printable", ascii(text)[:60])
            for row, text in enumerate(texts)
            if row not in kept
        ]
    if not texts:
        raise EmptyListError("The list is empty", where=where, expected="texts that name images")
    if not good:
        raise AnnotationFormatError(
            "No text names an image", where=where, expected="printable texts", found=f"{odd[0].reason}: {odd[0].text}"
        )
    return PublishedList(
        name, _joined(texts[row] for row in good), np.array(good, np.int32) + 1, odd=len(odd),
        odd_lines=tuple(odd[:_SHOWN]), integers=any(isinstance(one, int) for one in given),
    )  # fmt: skip


def _roles(given: Any, role: str, where: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the classes of each role; unknown ones may be nested by difficulty."""
    if isinstance(given, dict):
        for key, value in given.items():
            yield from _roles(value, f"{role}/{key}" if role else key, where)
    elif isinstance(given, list) and all(isinstance(one, str | int) for one in given):
        yield role, tuple(map(str, given))
    else:
        raise AnnotationFormatError(
            "The classes of a role are no array", where=where, expected="names or numbers of classes",
            found=f"{role}: {ascii(given)[:80]}",
        )  # fmt: skip
