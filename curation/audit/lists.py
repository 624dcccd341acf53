"""Somebody's id lists, read from a folder or some files: text with one id a line, arrays of ids, COCO JSON.

Whatever blanks, folders, suffixes and labels stand around an id in a text is understood and counted; a line that is no
id is left out, counted and shown.
"""

from __future__ import annotations

import codecs
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from curation.audit.id_vocabulary import (
    BARE,
    BLOCK,
    NAMESPACES,
    TEXT,
    VOC2007,
    VOC2007_LAST,
    Vocabulary,
    key_of,
    matched,
    numbered_together,
)
from curation.errors import MissingFileError, UsageError
from curation.ids import ImageId
from curation.input_files import InputFile
from curation.json_keys import repeated_key
from curation.sources.id_list import ListedImages
from curation.sources.source import Bools, Int32s, Int64s
from curation.storage import inside

LONGEST_ID = 255
_LONGEST_LINE = 4096
_SHOWN = 5
_LINE_FEED, _RETURN, _SPACE, _TAB = 10, 13, 32, 9
_BLANK = np.zeros(256, np.bool_)
_BLANK[[_SPACE, _TAB, _RETURN, 11, 12]] = True
_PHOTO_SUFFIXES = (b".jpg", b".jpeg", b".png")

BYTE_ORDER_MARK = "byte order mark"
RETURNS = "lines ended by CR LF"
OUTER_BLANKS = "ids with blanks around them"
FOLDERS = "ids with a folder before them"
SUFFIXES = "ids with the suffix of a photo"
LABELS = "ids with a label {} beside them"


class NoListError(ValueError):
    """Why a file is no list of ids; told of in the list of files that were passed over."""


@dataclass(frozen=True, slots=True)
class OddLine:
    """A line that is no id.

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
class ParsedLines:
    """The ids of one file.

    Attributes
    ----------
    keys : ndarray of int64, shape (n,)
        As `curation.audit.id_vocabulary` packs them; those of form `TEXT` count through `texts`.
    texts : tuple of str
    lines : ndarray of int32, shape (n,)
        Line of each id, from 1.
    blank : int
        Empty lines.
    odd : int
        Lines that are no id; left out.
    odd_lines : tuple of OddLine
        The first few of them.
    traits : mapping of str to int
        What had to be understood, with the number of lines: byte order mark, blanks, folders, suffixes, labels.
    """

    keys: Int64s
    texts: tuple[str, ...]
    lines: Int32s
    blank: int = 0
    odd: int = 0
    odd_lines: tuple[OddLine, ...] = ()
    traits: Mapping[str, int] = field(default_factory=dict)


def parse_lines(data: bytes, *, by_form: bool = True, namespace: str = "") -> ParsedLines:
    """Return the ids of a text, one a line.

    Understood and counted: a byte order mark, CR LF, blanks around an id, a folder before it, the suffix of a photo
    behind it, and the label -1, 0 or 1 that VOC's lists of one class have beside it.

    Parameters
    ----------
    by_form : bool
        Whether digits of a known form name their dataset (see `curation.audit.id_vocabulary.matched`).
    namespace : str
        Of bare ids; taken off where it is written.

    Raises
    ------
    NoListError
        The file is not UTF-8, or more than half of its lines are no ids.
    """
    traits: Counter[str] = Counter()
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
        traits[BYTE_ORDER_MARK] = 1
    if (same := _of_one_form(data, by_form=by_form)) is not None:
        return ParsedLines(same, (), _counting(len(same)), traits=dict(traits))
    _require_utf8(data)
    return _Parse(data, traits, by_form=by_form, namespace=namespace).result()


def _of_one_form(data: bytes, *, by_form: bool) -> Int64s | None:
    """Return the keys where every line is an id of one form and nothing else; else None."""
    width = data.find(b"\n")
    whole, rest = divmod(len(data), width + 1) if width > 0 else (0, 1)
    if rest or not whole or width > 40:
        return None
    rows = np.frombuffer(data, np.uint8).reshape(whole, width + 1)
    # The first line tells in no time that the others need another look.
    for part in (rows[:1], rows):
        keys, known = matched(lambda place, part=part: part[:, place], width, by_form=by_form)  # type: ignore[misc]
        if not known.all() or not (part[:, width] == _LINE_FEED).all():
            return None
    return None if _is_other_number(keys) else keys


def _is_other_number(keys: Int64s) -> bool:
    """Return whether six digits cannot be VOC2007's: some numbers are too large, or others have fewer digits."""
    forms = keys // BLOCK
    voc = keys[forms == VOC2007] % BLOCK
    shorter = ((forms > BARE) & (forms < BARE + 6)).any()
    return bool(len(voc) and (shorter or voc.max() > VOC2007_LAST))


def _require_utf8(data: bytes) -> None:
    if data.isascii():
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoListError(f"it is not UTF-8 text (byte {error.start:,})") from None


def _counting(n: int) -> Int32s:
    return np.arange(1, n + 1, dtype=np.int32)


class _Parse:
    """One pass over the lines of a text; each step narrows the spans that hold the ids."""

    def __init__(self, data: bytes, traits: Counter[str], *, by_form: bool, namespace: str) -> None:
        self.data, self.traits, self.by_form, self.namespace = data, traits, by_form, namespace
        self.buffer = np.frombuffer(data, np.uint8)
        breaks = np.flatnonzero(self.buffer == _LINE_FEED)
        if len(data) and (not len(breaks) or breaks[-1] != len(data) - 1):
            breaks = np.append(breaks, len(data))
        self.ends: Int64s = breaks.astype(np.int64)
        self.starts: Int64s = np.concatenate([[0], self.ends[:-1] + 1]) if len(breaks) else self.ends.copy()
        self.first, self.last = self.starts.copy(), self.ends.copy()
        self.reasons: dict[int, str] = {}
        self.live: Bools = np.ones(len(self.ends), np.bool_)

    def result(self) -> ParsedLines:
        """Return what the text holds."""
        self._refuse(np.flatnonzero(self.ends - self.starts > _LONGEST_LINE), "the line is too long")
        self._trim()
        blank = self.live & (self.starts >= self.ends)
        self.live &= ~blank
        self._take_labels()
        self._take_folders()
        self._take_suffixes()
        keys, texts = self._keys()
        self._check_share(int(blank.sum()))
        rows = np.flatnonzero(self.live)
        return ParsedLines(
            keys=keys[rows],
            texts=texts,
            lines=(rows + 1).astype(np.int32),
            blank=int(blank.sum()),
            odd=len(self.reasons),
            odd_lines=tuple(self._odd_line(row) for row in sorted(self.reasons)[:_SHOWN]),
            traits={name: count for name, count in self.traits.items() if count},
        )

    def _refuse(self, rows: Int64s, reason: str) -> None:
        self.live[rows] = False
        self.reasons.update(dict.fromkeys(rows.tolist(), reason))

    def _trim(self) -> None:
        ended_by_return = self.live & (self.ends > self.starts)
        ended_by_return[ended_by_return] = self.buffer[self.ends[ended_by_return] - 1] == _RETURN
        for step, bound in ((-1, self.ends), (1, self.starts)):
            rows = np.flatnonzero(self.live)
            while len(rows):
                rows = rows[self.ends[rows] > self.starts[rows]]
                rows = rows[_BLANK[self.buffer[bound[rows] - (step < 0)]]]
                bound[rows] += step
        removed = (self.last - self.first) - (self.ends - self.starts) - ended_by_return
        self.traits[RETURNS] = int(ended_by_return.sum())
        self.traits[OUTER_BLANKS] = int((self.live & (removed > 0) & (self.ends > self.starts)).sum())

    def _take_labels(self) -> None:
        blanks = np.flatnonzero((self.buffer == _SPACE) | (self.buffer == _TAB))
        if not len(blanks):
            return
        low, high = np.searchsorted(blanks, self.starts), np.searchsorted(blanks, self.ends)
        rows = np.flatnonzero(self.live & (high > low))
        before, behind = blanks[low[rows]], blanks[high[rows] - 1]
        one_gap = behind - before == high[rows] - low[rows] - 1
        last = self.buffer[self.ends[rows] - 1]
        width = self.ends[rows] - behind - 1
        zero_or_one = (width == 1) & ((last == ord("0")) | (last == ord("1")))
        minus_one = (width == 2) & (last == ord("1")) & (self.buffer[behind + 1] == ord("-"))
        is_label = one_gap & (zero_or_one | minus_one)
        for name, chosen in (("-1", minus_one), ("0", last == ord("0")), ("1", zero_or_one & (last == 49))):
            self.traits[LABELS.format(name)] = int((is_label & chosen).sum())
        self.ends[rows[is_label]] = before[is_label]
        self._refuse(rows[~is_label], "it holds several words")

    def _take_folders(self) -> None:
        slashes = np.flatnonzero((self.buffer == ord("/")) | (self.buffer == ord("\\")))
        if not len(slashes):
            return
        last = slashes[np.maximum(np.searchsorted(slashes, self.ends) - 1, 0)]
        rows = np.flatnonzero(self.live & (last >= self.starts) & (last < self.ends))
        self.starts[rows] = last[rows] + 1
        self.traits[FOLDERS] = len(rows)
        self._refuse(rows[self.starts[rows] >= self.ends[rows]], "it names a folder")

    def _take_suffixes(self) -> None:
        for suffix in _PHOTO_SUFFIXES:
            rows = np.flatnonzero(self.live & (self.ends - self.starts > len(suffix)))
            for back, byte in enumerate(reversed(suffix), start=1):
                rows = rows[(self.buffer[self.ends[rows] - back] | (0x20 if byte != 46 else 0)) == byte]
            self.ends[rows] -= len(suffix)
            self.traits[SUFFIXES] += len(rows)

    def _keys(self) -> tuple[Int64s, tuple[str, ...]]:
        keys = np.full(len(self.ends), -1, np.int64)
        widths = np.where(self.live, self.ends - self.starts, 0)
        for width in np.flatnonzero(np.bincount(widths)).tolist() if len(widths) else []:
            if not 0 < width <= 40:
                continue
            rows = np.flatnonzero(widths == width)
            starts = self.starts[rows]
            found, known = matched(
                lambda place, starts=starts: self.buffer[starts + place],  # type: ignore[misc]
                width,
                by_form=self.by_form,
            )
            keys[rows[known]] = found[known]
        if self.by_form and _is_other_number(keys[keys >= 0]):
            self._unprefix(keys, widths)
        return keys, self._texts(keys)

    def _unprefix(self, keys: Int64s, widths: Int64s) -> None:
        """Turn six digits that are not VOC2007's into bare numbers; a written namespace stays."""
        rows = (keys // BLOCK == VOC2007) & (widths == 6)
        keys[rows] += (BARE + 6 - VOC2007) * BLOCK

    def _texts(self, keys: Int64s) -> tuple[str, ...]:
        """Give keys to the lines that are of no known form, and return their texts, each once."""
        rows = np.flatnonzero(self.live & (keys < 0))
        words = [
            self.data[start:end]
            for start, end in zip(self.starts[rows].tolist(), self.ends[rows].tolist(), strict=True)
        ]
        if not _all_sound(words):
            sound = np.array([_all_sound([word]) for word in words], np.bool_)
            self._refuse(rows[~sound], f"it is longer than {LONGEST_ID} characters or not printable")
            rows, words = (
                rows[sound],
                [word for word, good in zip(words, sound.tolist(), strict=True) if good],
            )
        places: dict[str, int] = {}
        given = []
        for word in words:
            key = word.decode()
            if ":" in key or (self.by_form and key.startswith("COCO_")):
                found = key_of(key, self.namespace)
                if isinstance(found, int):
                    given.append(found)
                    continue
                key = found
            given.append(TEXT * BLOCK + places.setdefault(key, len(places)))
        keys[rows] = given
        return tuple(places)

    def _check_share(self, blank: int) -> None:
        lines = len(self.ends) - blank
        if 2 * len(self.reasons) > lines:
            first = self._odd_line(min(self.reasons))
            share = f"{len(self.reasons):,} of {lines:,} lines are no ids"
            raise NoListError(f"{share}; line {first.line}: {first.reason}: {first.text!r}")

    def _odd_line(self, row: int) -> OddLine:
        start, end = int(self.first[row]), min(int(self.last[row]), int(self.first[row]) + 240)
        text = self.data[start:end].decode("utf-8", "ignore").strip()[:60]
        return OddLine(row + 1, self.reasons[row], text)


def _all_sound(words: list[bytes]) -> bool:
    if max(map(len, words), default=0) > LONGEST_ID and any(len(one.decode()) > LONGEST_ID for one in words):
        return False
    return b"".join(words).decode().isprintable()


MAX_FILE_BYTES = 512 << 20
MAX_BYTES = 2 << 30
"""Of all lists together."""
MAX_LISTS = 4096

_SUFFIXES = (".txt", ".json")
_LINE_BREAK = re.compile(r"[\r\n]")


@dataclass(frozen=True)
class IdList:
    """One list of image ids, in the order of its file, repeats kept.

    Attributes
    ----------
    name : str
        Path below the folder without suffix, ``ore/t2_ft``; of a JSON object of lists, ``splits/train``.
    file : str
        Path of the file below the folder, ``ore/t2_ft.txt``.
    members : ndarray of int32, shape (n,)
        Position of each entry's id in `ListSet.vocabulary`.
    lines : ndarray of int32, shape (n,)
        Line of each entry in the file, or its place in the JSON array, from 1.
    sha256 : str
        ``sha256:<hex>`` of the bytes of the file.
    size : int
        Bytes of the file.
    blank, odd : int
        Empty lines, and lines that are no id; neither is among the members.
    odd_lines : tuple of OddLine
        The first few of those.
    traits : mapping of str to int
        What had to be understood to read the ids, with the number of lines (see `curation.audit.lists`).
    """

    name: str
    file: str
    members: Int32s
    lines: Int32s
    sha256: str
    size: int
    blank: int = 0
    odd: int = 0
    odd_lines: tuple[OddLine, ...] = ()
    traits: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def unique(self) -> Int32s:
        """Positions of its ids, each once, ascending."""
        return np.flatnonzero(np.bincount(self.members)).astype(np.int32)


@dataclass(frozen=True)
class ListSet:
    """Lists that are looked at together.

    Attributes
    ----------
    name : str
        Of the folder.
    lists : tuple of IdList
        By name.
    vocabulary : Vocabulary
        Every id once.
    labels : mapping of str to Path
        COCO JSON files with annotations, by the name of their list.
    skipped : mapping of str to str
        Files that are no lists of ids, and why.
    """

    name: str
    lists: tuple[IdList, ...]
    vocabulary: Vocabulary
    labels: Mapping[str, Path] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lists)

    @property
    def digests(self) -> dict[str, str]:
        """The sha256 of each list's file by name."""
        return {one.name: one.sha256 for one in self.lists}


def read_lists(place: Path | Sequence[Path], *, namespace: str = "") -> ListSet:
    """Return every list of a folder and its subfolders, or of some files.

    A text file has one id a line. A JSON file is an array of ids, an object of such arrays, or COCO JSON, whose images
    count. A file that is none of these is passed over and named. Where COCO JSON with annotations lies beside a text
    file of its name, the text is the list and the JSON its labels.

    Ids without a namespace get one by their form: 12 digits are COCO's, 6 digits up to 009963 are VOC2007's, and
    ``2008_000008`` is VOC2012's. Integers in JSON, numbers of other lengths and other texts get `namespace`.

    Parameters
    ----------
    place : Path or sequence of Path
        A folder, or files.
    namespace : str
        Of ids whose form tells none. A namespace other than COCO's and VOC's holds for all ids that have none written.

    Raises
    ------
    MissingFileError
        The folder or a file does not exist or cannot be read.
    UsageError
        There is no list, a file is too large to be one, or there are too many.
    PathEscapeError
        A file is a link that leads outside the folder.
    ImageIdError
        The namespace is malformed.
    """
    if namespace:
        ImageId(namespace, "0")
    root, paths = _files(place)
    read = _read_all(root, paths, namespace)
    if not read.found:
        reasons = "; ".join(f"{name}: {why}" for name, why in list(read.skipped.items())[:3])
        raise UsageError(
            "There is no list of image ids",
            where=str(root),
            expected=".txt files with one id a line, or .json files",
            found=reasons or "no such file",
        )
    entries = [read.found[name] for name in sorted(read.found)]
    vocabulary, members = numbered_together(
        [one.parsed.keys for one in entries], [one.parsed.texts for one in entries], namespace
    )
    lists = tuple(one.as_list(own) for one, own in zip(entries, members, strict=True))
    return ListSet(root.resolve().name, lists, vocabulary, read.labels, read.skipped)


@dataclass(frozen=True)
class _Entry:
    name: str
    file: str
    parsed: ParsedLines
    sha256: str
    size: int

    def as_list(self, members: Int32s) -> IdList:
        parsed = self.parsed
        return IdList(
            self.name, self.file, members, parsed.lines, self.sha256, self.size, parsed.blank, parsed.odd,
            parsed.odd_lines, parsed.traits,
        )  # fmt: skip


@dataclass(frozen=True)
class _Found:
    found: dict[str, _Entry] = field(default_factory=dict)
    labels: dict[str, Path] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def _read_all(root: Path, paths: Sequence[Path], namespace: str) -> _Found:
    from tqdm import tqdm

    read = _Found()
    room = MAX_BYTES
    for path in tqdm(paths, desc="reading lists", unit=" files", disable=None, leave=False):
        relative = path.relative_to(root)
        given = _given(inside(root, relative.as_posix()), room)
        room -= given.size
        try:
            parsed = list(_parsed(path, given.data, namespace))
        except NoListError as reason:
            read.skipped[relative.as_posix()] = str(reason)
            continue
        for key, lines, has_labels in parsed:
            name = relative.with_suffix("").as_posix() + key
            if has_labels:
                read.labels[name] = path
                if name in read.found:
                    continue
            # An array of ids beside a text file of its name is a list of its own.
            name = relative.as_posix() + key if name in read.found else name
            read.found[name] = _Entry(name, relative.as_posix(), lines, given.sha256, given.size)
        if len(read.found) > MAX_LISTS:
            raise UsageError("There are too many lists to compare", where=str(root), expected=f"at most {MAX_LISTS:,}")
    return read


def _files(place: Path | Sequence[Path]) -> tuple[Path, list[Path]]:
    """Return the folder below which names are told, and the files; text before JSON of the same name."""
    if not isinstance(place, Path):
        given = [Path(os.path.abspath(one)) for one in place]  # noqa: PTH100 - links stay as they are named
        if not given:
            raise UsageError("No list is given")
        if missing := [one for one in given if not one.is_file()]:
            raise MissingFileError("The list does not exist", where=str(missing[0]))
        root = Path(os.path.commonpath([one.parent for one in given]))
        return root, _in_order(dict.fromkeys(given))
    if not place.is_dir():
        raise MissingFileError("The folder of lists does not exist", where=str(place))
    return place, _in_order(
        path
        for path in place.rglob("*")
        if path.suffix.lower() in _SUFFIXES and path.is_file() and not _is_hidden(path.relative_to(place))
    )


def _in_order(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: (path.suffix.lower() == ".json", path.as_posix()))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _given(path: Path, room: int) -> InputFile:
    limit = min(MAX_FILE_BYTES, room)
    if (size := path.stat().st_size) > limit:
        raise UsageError(
            "A file is too large to be a list" if size > MAX_FILE_BYTES else "The lists are too large together",
            where=str(path),
            expected=f"at most {MAX_FILE_BYTES if size > MAX_FILE_BYTES else MAX_BYTES:,} bytes",
            found=f"{size:,}",
            hint="name the lists themselves, or move other files out of the folder",
        )
    return InputFile(path, kind="list")


def _parsed(path: Path, data: bytes, namespace: str) -> Iterator[tuple[str, ParsedLines, bool]]:
    """Yield the lists of a file: what stands behind its name, the ids, whether it holds their labels too."""
    by_form = namespace in ("", *NAMESPACES)
    if path.suffix.lower() != ".json":
        yield "", parse_lines(data, by_form=by_form, namespace=namespace), False
        return
    found, has_labels = _from_json(data)
    for key, ids in found.items():
        # Integers are written without leading zeros: six of their digits are not VOC's.
        form = by_form and not any(isinstance(one, int) for one in ids)
        yield (f"/{key}" if key else ""), _entries(ids, by_form=form, namespace=namespace), has_labels


class _Coco(ListedImages, frozen=True):
    annotations: list[msgspec.Raw] = msgspec.field(default_factory=list)


class _Keys(msgspec.Struct, frozen=True):
    images: msgspec.Raw = msgspec.Raw(b"")


def _from_json(data: bytes) -> tuple[Mapping[str, Sequence[str | int]], bool]:
    try:
        if data.lstrip()[:1] != b"{":
            return {"": msgspec.json.decode(data, type=list[str | int])}, False
        if bytes(msgspec.json.decode(data, type=_Keys).images).startswith((b"[{", b"[ {", b"[\n", b"[]")):
            coco = msgspec.json.decode(data, type=_Coco)
            return {"": [image.file_name or image.id for image in coco.images]}, bool(coco.annotations)
        named = msgspec.json.decode(data, type=dict[str, list[str | int]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NoListError(
            f"it is neither an array of ids, nor an object of such arrays, nor COCO JSON: {str(error)[:80]}"
        ) from None
    if (twice := repeated_key(data)) is not None:
        raise NoListError(f"a key stands twice in it: {twice[:40]!r}")
    if bad := [key for key in named if not key.isprintable() or not 0 < len(key) <= 200]:
        raise NoListError(f"the name of a list in it is no name: {bad[0][:40]!r}")
    bare = {key: key.removesuffix(".txt") for key in sorted(named)}
    return {key if short in named or not short else short: named[key] for key, short in bare.items()}, False


def _entries(ids: Sequence[str | int], *, by_form: bool, namespace: str) -> ParsedLines:
    texts = [str(one) for one in ids]
    joined = "\n".join(texts)
    if joined.count("\n") != max(len(texts) - 1, 0) or "\r" in joined:
        # A control character makes an entry odd, where a line break would make it two.
        texts = [_LINE_BREAK.sub("\N{NULL}", text) for text in texts]
        joined = "\n".join(texts)
    try:
        data = joined.encode("utf-8")
    except UnicodeEncodeError:
        raise NoListError("a text in it is no Unicode") from None
    return parse_lines(data, by_form=by_form, namespace=namespace)
