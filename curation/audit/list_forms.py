"""The forms in which files hold lists of image ids: text with one id a line, arrays of ids, COCO JSON.

Whatever blanks, folders, suffixes and labels stand around an id in a text is understood and counted; a line that is no
id is left out, counted and shown. A further form of text is a step of `STEPS`, one of JSON a function of `JSON_FORMS`.
"""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from curation.audit.id_vocabulary import NAMESPACES, matches, named, replaced
from curation.ids import MAX_NATIVE_LENGTH as LONGEST_ID
from curation.json_keys import repeated_key
from curation.sources.id_list import PHOTO_SUFFIX, ListedImages
from curation.sources.source import Bools, Int32s

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST_LINE = 4096
_SHOWN = 5

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
    """The ids of one list.

    Attributes
    ----------
    ids : pyarrow.LargeStringArray
        As `curation.audit.id_vocabulary.named` names them.
    lines : ndarray of int32, shape (n,)
        Line of each id, or its place in a JSON array, from 1.
    blank : int
        Empty lines.
    odd : int
        Lines that are no id; left out.
    odd_lines : tuple of OddLine
        The first few of them.
    traits : mapping of str to int
        What had to be understood, with the number of lines: byte order mark, blanks, folders, suffixes, labels.
    """

    ids: pa.LargeStringArray
    lines: Int32s
    blank: int = 0
    odd: int = 0
    odd_lines: tuple[OddLine, ...] = ()
    traits: Mapping[str, int] = field(default_factory=dict)


def lists_in(data: bytes, *, is_json: bool, namespace: str = "") -> Iterator[tuple[str, ParsedLines, bool]]:
    """Yield the lists of a file: its name within the file, its ids, and whether the file holds their labels too.

    Parameters
    ----------
    namespace : str
        Of bare ids; where it is neither COCO's nor VOC's, the form of an id tells nothing.

    Raises
    ------
    NoListError
        The file is of none of the forms.
    """
    by_form = namespace in ("", *NAMESPACES)
    if not is_json:
        yield "", parse_lines(data, by_form=by_form, namespace=namespace), False
        return
    found, has_labels = _from_json(data)
    for key, ids in found.items():
        # Integers are written without leading zeros: six of their digits are not VOC's.
        form = by_form and not any(isinstance(one, int) for one in ids)
        yield key, _parsed(_entries(ids), Counter(), by_form=form, namespace=namespace), has_labels


def parse_lines(data: bytes, *, by_form: bool = True, namespace: str = "") -> ParsedLines:
    """Return the ids of a text, one a line.

    Understood and counted: a byte order mark, CR LF, blanks around an id, a folder before it, the suffix of a photo
    behind it, and the label -1, 0 or 1 that VOC's lists of one class have beside it.

    Parameters
    ----------
    by_form, namespace
        See `curation.audit.id_vocabulary.named`.

    Raises
    ------
    NoListError
        The file is not UTF-8, or more than half of its lines are no ids.
    """
    traits: Counter[str] = Counter()
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
        traits[BYTE_ORDER_MARK] = 1
    return _parsed(_lines(data), traits, by_form=by_form, namespace=namespace)


def _lines(data: bytes) -> pa.LargeStringArray:
    """Return the lines of a text, each with its line feed: places in the bytes, which are not copied."""
    import pyarrow as pa

    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise NoListError(f"it is not UTF-8 text (byte {error.start:,})") from None
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
    if data and not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    places = np.concatenate([[0], ends]).astype(np.int64)
    return pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(places), pa.py_buffer(data))


class _Words:
    """The words of some lines, and what had to be understood to find them; each step narrows them."""

    def __init__(self, lines: pa.LargeStringArray, traits: Counter[str]) -> None:
        self.lines = self.words = lines
        self.traits = traits
        self.reasons: dict[int, str] = {}
        self.live: Bools = np.ones(len(lines), np.bool_)

    def fits(self, pattern: str) -> Bools:
        """Return in which words a pattern is found."""
        return self.live & matches(self.words, pattern)

    def refuse(self, rows: Bools, reason: str) -> None:
        """Take lines out that are no ids."""
        self.reasons.update(dict.fromkeys(np.flatnonzero(rows & self.live).tolist(), reason))
        self.leave_out(rows)

    def leave_out(self, rows: Bools) -> None:
        """Take lines out without a word."""
        import pyarrow as pa
        from pyarrow import compute

        self.live &= ~rows
        if rows.any():
            self.words = compute.if_else(pa.array(rows), pa.scalar("", pa.large_string()), self.words)

    def take(self, trait: str, pattern: str) -> None:
        """Narrow the words in which a pattern is found to its group, and count them."""
        self.traits[trait] += int(self.fits(pattern).sum())
        self.words = replaced(self.words, pattern, r"\1")

    def odd_line(self, row: int) -> OddLine:
        """Return what is shown of a line that is no id."""
        text = self.lines[row].as_buffer().to_pybytes()[:240].decode("utf-8", "ignore")
        return OddLine(row + 1, self.reasons[row], text.strip()[:60])


def _parsed(lines: pa.LargeStringArray, traits: Counter[str], *, by_form: bool, namespace: str) -> ParsedLines:
    import pyarrow as pa

    found = _Words(lines, traits)
    blank = _trimmed(found)
    # Most lists hold nothing but ids, and one look tells.
    if not matches(found.words, "^[A-Za-z0-9_]{0,40}$").all():
        for step in STEPS:
            step(found)
    n_lines = len(lines) - blank
    if 2 * len(found.reasons) > n_lines:
        first = found.odd_line(min(found.reasons))
        share = f"{len(found.reasons):,} of {n_lines:,} lines are no ids"
        raise NoListError(f"{share}; line {first.line}: {first.reason}: {first.text!r}")
    return ParsedLines(
        ids=named(found.words.filter(pa.array(found.live)), by_form=by_form, namespace=namespace),
        lines=(np.flatnonzero(found.live) + 1).astype(np.int32),
        blank=blank,
        odd=len(found.reasons),
        odd_lines=tuple(found.odd_line(row) for row in sorted(found.reasons)[:_SHOWN]),
        traits={name: count for name, count in traits.items() if count},
    )


def _trimmed(found: _Words) -> int:
    """Take the blanks around words off and empty lines out; return how many these are."""
    from pyarrow import compute

    def ended(by: str) -> Bools:
        found_in: Bools = compute.ends_with(found.lines, by).to_numpy(zero_copy_only=False)
        return found_in

    lengths = compute.binary_length(found.lines).to_numpy() - ended("\n")
    found.refuse(lengths > _LONGEST_LINE, "the line is too long")
    by_return = found.live & (ended("\r\n") | ended("\r"))
    found.words = compute.ascii_trim(found.words, " \t\v\f\r\n")
    left = compute.binary_length(found.words).to_numpy()
    blank: Bools = found.live & (left == 0)
    found.traits[RETURNS] = int(by_return.sum())
    found.traits[OUTER_BLANKS] = int((found.live & ~blank & (lengths - by_return > left)).sum())
    found.leave_out(blank)
    return int(blank.sum())


def _labels(found: _Words) -> None:
    """Take off the labels of VOC's lists of one class."""
    for label in ("-1", "0", "1"):
        found.take(LABELS.format(label), f"^([^ \t]+)[ \t]+{label}$")
    found.refuse(found.fits("[ \t]"), "it holds several words")


def _folders(found: _Words) -> None:
    found.take(FOLDERS, r"(?s)^.*[/\\](.*)$")
    found.refuse(found.live & matches(found.words, "^$"), "it names a folder")


def _suffixes(found: _Words) -> None:
    found.take(SUFFIXES, f"(?is)^(.+){PHOTO_SUFFIX}$")


def _unsound(found: _Words) -> None:
    """Refuse what no id can be."""
    from pyarrow import compute

    plain = matches(found.words, "^[ -~]*$") & (compute.binary_length(found.words).to_numpy() <= LONGEST_ID)
    rows = np.flatnonzero(found.live & ~plain)
    unsound = np.zeros(len(plain), np.bool_)
    unsound[rows] = [len(one) > LONGEST_ID or not one.isprintable() for one in found.words.take(rows).to_pylist()]
    found.refuse(unsound, f"it is longer than {LONGEST_ID} characters or not printable")


STEPS: tuple[Callable[[_Words], None], ...] = (_labels, _folders, _suffixes, _unsound)
"""What is done to the words of a list, in this order."""

_Entries = Mapping[str, Sequence[str | int]]


class _Coco(ListedImages, frozen=True):
    annotations: list[msgspec.Raw] = msgspec.field(default_factory=list)


class _Keys(msgspec.Struct, frozen=True):
    images: msgspec.Raw = msgspec.Raw(b"")


def _from_json(data: bytes) -> tuple[_Entries, bool]:
    """Return the entries of each list of a file, by name, and whether it holds their labels too."""
    try:
        return next(found for form in JSON_FORMS if (found := form(data)) is not None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NoListError(
            f"it is neither an array of ids, nor an object of such arrays, nor COCO JSON: {str(error)[:80]}"
        ) from None


def _array(data: bytes) -> tuple[_Entries, bool] | None:
    if data.lstrip()[:1] == b"{":
        return None
    return {"": msgspec.json.decode(data, type=list[str | int])}, False


def _coco(data: bytes) -> tuple[_Entries, bool] | None:
    if not bytes(msgspec.json.decode(data, type=_Keys).images).startswith((b"[{", b"[ {", b"[\n", b"[]")):
        return None
    coco = msgspec.json.decode(data, type=_Coco)
    return {"": [image.file_name or image.id for image in coco.images]}, bool(coco.annotations)


def _arrays_by_name(data: bytes) -> tuple[_Entries, bool]:
    lists = msgspec.json.decode(data, type=dict[str, list[str | int]])
    if (twice := repeated_key(data)) is not None:
        raise NoListError(f"a key stands twice in it: {twice[:40]!r}")
    if bad := [key for key in lists if not key.isprintable() or not 0 < len(key) <= 200]:
        raise NoListError(f"the name of a list in it is no name: {bad[0][:40]!r}")
    bare = {key: key.removesuffix(".txt") for key in sorted(lists)}
    return {key if short in lists or not short else short: lists[key] for key, short in bare.items()}, False


JSON_FORMS: tuple[Callable[[bytes], tuple[_Entries, bool] | None], ...] = (_array, _coco, _arrays_by_name)
"""Each returns the lists of a file, or None where it is of another form; the first that answers counts."""


def _entries(ids: Sequence[str | int]) -> pa.LargeStringArray:
    import pyarrow as pa
    from pyarrow import compute

    try:
        entries = pa.array([str(one) for one in ids], pa.large_string())
    except UnicodeEncodeError:
        raise NoListError("a text in it is no Unicode") from None
    # A control character makes an entry odd, where a line break at its end would be taken off.
    return compute.replace_substring_regex(entries, "[\r\n]", "\0")
