"""Ids of many lists as integers: parsed a column at a time, equal where the images are, written out again on demand."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from curation.canonical import sha256_of_bytes, sha256_of_lines
from curation.ids import NATIVE_FORMS, native_of
from curation.sources.source import Bools, Int32s, Int64s, Texts

if TYPE_CHECKING:
    import pyarrow as pa

NAMESPACES = tuple(NATIVE_FORMS)
"""Datasets whose ids are told by their form: position in this tuple is the form (`Vocabulary.forms`)."""
COCO, VOC2007, VOC2012 = range(3)
BARE = VOC2012
"""``BARE + n`` is the form of bare numbers of n digits, as written, leading zeros included."""
MAX_DIGITS = 13
TEXT = BARE + MAX_DIGITS + 1
"""The form of every other text; its number is a position among the texts."""
BLOCK = 10**MAX_DIGITS
"""Keys of one form of ids lie in one block: ``form * BLOCK + number``."""
VOC2007_LAST = 9_963
"""Largest image number of VOC2007: a longer list of six-digit numbers is of another dataset."""

_TEMPLATES = ("d" * 12, "d" * 6, "dddd_dddddd")
_PREFIX = re.compile(r"[a-z][a-z0-9_]{0,31}:")
_TRIPLES = np.array([f"{number:03}".encode() for number in range(1000)]).view(np.uint8).reshape(1000, 3)
_LINE_FEED = 10
_WIDEST = 40

Column = Callable[[int], npt.NDArray[np.uint8]]


@dataclass(frozen=True)
class Named:
    """The ids of one list, in its order.

    Attributes
    ----------
    keys : ndarray of int64, shape (n,)
        ``form * BLOCK + number``; those of form `TEXT` count through `texts`.
    texts : pyarrow.LargeStringArray
        Ids of no known form, each once; bare, or with a namespace that is not the list's own.
    """

    keys: Int64s
    texts: pa.LargeStringArray

    def __len__(self) -> int:
        return len(self.keys)


def named(stems: bytes, *, by_form: bool = True, namespace: str = "", as_written: bool = False) -> Named:
    """Return the ids that stand in the lines of a text, a line feed after each.

    Parameters
    ----------
    by_form : bool
        Whether 12 digits mean COCO, 6 digits VOC2007, and ``2008_000008`` VOC2012; else only ids with a written
        namespace are of these.
    namespace : str
        Of bare ids. With and without it, and without the zeros of COCO and VOC, an id is the same.
    as_written : bool
        Whether ids keep their digits behind a written namespace, as in a manifest: then there are no zeros to add.
    """
    buffer = np.frombuffer(stems, np.uint8)
    width = stems.find(b"\n")
    whole, rest = divmod(len(stems), width + 1) if 0 < width <= _WIDEST else (0, 1)
    if whole and not rest:
        table = buffer.reshape(whole, width + 1)
        # The first line tells in no time that the others need another look.
        for part in (table[:1], table):
            keys, known = _matched(lambda place, part=part: part[:, place], width, by_form=by_form)  # type: ignore[misc]
            if not known.all() or not (part[:, width] == _LINE_FEED).all():
                break
        else:
            return Named(_six_digits(keys) if by_form and width == len(_TEMPLATES[VOC2007]) else keys, _no_texts())
    keys, words, rows = _of_several_forms(stems, buffer, by_form=by_form)
    if not len(rows):
        return Named(keys, _no_texts())
    encoded = words.dictionary_encode()
    places, texts = _known_texts(
        encoded.dictionary, "" if as_written else "|".join([*NAMESPACES, namespace]), namespace
    )
    keys[rows] = places[encoded.indices.to_numpy()]
    return Named(keys, texts)


def _no_texts() -> pa.LargeStringArray:
    import pyarrow as pa

    return pa.array([], pa.large_string())


def _of_several_forms(
    stems: bytes, buffer: npt.NDArray[np.uint8], *, by_form: bool
) -> tuple[Int64s, pa.LargeStringArray, Int64s]:
    """Return the keys of all lines, -1 where they are of no known form; these lines; and where they stand."""
    ends = np.flatnonzero(buffer == _LINE_FEED)
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
    widths = ends - starts
    keys = np.full(len(ends), -1, np.int64)
    for width in np.flatnonzero(np.bincount(widths[widths <= _WIDEST])).tolist() if len(widths) else []:
        rows = np.flatnonzero(widths == width)
        first = starts[rows]
        found, known = _matched(lambda place, first=first: buffer[first + place], width, by_form=by_form)  # type: ignore[misc]
        keys[rows[known]] = found[known]
    if by_form:
        known = (keys >= 0) & ((widths == len(_TEMPLATES[VOC2007])) | (keys >= (BARE + 1) * BLOCK))
        keys[known] = _six_digits(keys[known])
    rows = np.flatnonzero(keys < 0)
    return keys, _column(stems, starts[rows], widths[rows]), rows


def _six_digits(keys: Int64s) -> Int64s:
    """Return keys, those of bare six digits as mere numbers where they cannot be VOC2007's.

    That is so where some of them are too large, or other numbers have fewer digits.
    """
    forms = keys // BLOCK
    six = forms == VOC2007
    shorter = (forms > BARE) & (forms < BARE + 6)
    if six.any() and (shorter.any() or (keys[six] % BLOCK).max() > VOC2007_LAST):
        return np.where(six, keys + (BARE + 6 - VOC2007) * BLOCK, keys)
    return keys


def _column(stems: bytes, starts: Int64s, widths: Int64s) -> pa.LargeStringArray:
    """Return some lines of a text as a column."""
    import pyarrow as pa

    buffer = np.frombuffer(stems, np.uint8)
    kept = np.zeros(len(buffer) + 1, np.int8)
    kept[starts] += 1
    kept[starts + widths] -= 1
    data = buffer[np.cumsum(kept[:-1], dtype=np.int8).view(np.bool_)]
    places = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    return pa.LargeStringArray.from_buffers(len(starts), pa.py_buffer(places), pa.py_buffer(data))


def _known_texts(words: pa.LargeStringArray, spaces: str, namespace: str) -> tuple[Int64s, pa.LargeStringArray]:
    """Return the key of each word, and the words that are texts; some namespaces that are written before them count."""
    import pyarrow as pa
    from pyarrow import compute

    keys = np.arange(len(words), dtype=np.int64) + TEXT * BLOCK
    pattern = f"^(?:{spaces.strip('|')}):"
    if not spaces or not compute.any(compute.match_substring_regex(words, pattern)).as_py():
        return keys, words
    places = dict[str, int]()
    for row, text in enumerate(words.to_pylist()):
        found = _key_of(text, namespace)
        keys[row] = found if isinstance(found, int) else TEXT * BLOCK + places.setdefault(found, len(places))
    return keys, pa.array(list(places), pa.large_string())


def _matched(column: Column, width: int, *, by_form: bool) -> tuple[Int64s, Bools]:
    """Return the keys of equally long ids, and which of them are of a known form.

    Parameters
    ----------
    column : callable
        ``column(j)``: the j-th byte of every id, shape (n,).
    width : int
        Bytes of every id, 1 or more.
    by_form : bool
        Whether 12 digits mean COCO, 6 digits VOC2007, and ``2008_000008`` VOC2012; else only ids with a written
        namespace do, and digits are bare numbers.
    """
    templates = [(f"{NAMESPACES[form]}:{_TEMPLATES[form]}", form) for form in (COCO, VOC2007, VOC2012)]
    if by_form:
        templates += [(_TEMPLATES[form], form) for form in (COCO, VOC2007, VOC2012)]
    if width <= MAX_DIGITS and not (by_form and width in (6, 12)):
        templates.append(("d" * width, BARE + width))
    size = len(column(0))
    keys, known = np.zeros(size, np.int64), np.zeros(size, np.bool_)
    for template, form in templates:
        if len(template) == width:
            numbers, fits = _read(column, template, size)
            keys[fits] = numbers[fits] + form * BLOCK
            known |= fits
    return keys, known


def _read(column: Column, template: str, size: int) -> tuple[Int64s, Bools]:
    numbers, fits = np.zeros(size, np.int64), np.ones(size, np.bool_)
    for place, character in enumerate(template):
        if character == "d":
            # Bytes below "0" wrap round to large ones, so that one comparison tells digits.
            digit = column(place) - np.uint8(48)
            fits &= digit < 10
            numbers *= 10
            numbers += digit
        else:
            fits &= column(place) == ord(character)
    return numbers, fits


def _key_of(text: str, namespace: str = "") -> int | str:
    """Return the key of an id with a written namespace, or the text itself where it is of no known form.

    The list's own namespace, when written, is taken off: with and without it the id is the same.
    """
    space, colon, native = text.partition(":")
    if not colon or not _PREFIX.match(text):
        return text
    if space in NAMESPACES:
        native = str(native_of(native, space))
        form = NAMESPACES.index(space)
        if len(native) == len(_TEMPLATES[form]) and native.isascii():
            data = np.frombuffer(native.encode(), np.uint8)
            numbers, fits = _read(lambda place: data[place : place + 1], _TEMPLATES[form], 1)
            if fits[0]:
                return int(form * BLOCK + int(numbers[0]))
    if space == namespace:
        bare = native.isascii() and native.isdigit() and len(native) <= MAX_DIGITS
        return int((BARE + len(native)) * BLOCK + int(native)) if bare else native
    return f"{space}:{native}"


def _in_namespace(keys: Int64s, namespace: str) -> Int64s:
    """Return keys with bare numbers turned into ids of COCO or VOC, where that is the namespace of bare ids."""
    if namespace not in NAMESPACES:
        return keys
    form = keys // BLOCK
    digits, numbers = form - BARE, keys % BLOCK
    bare = (form > BARE) & (form < TEXT)
    fits = {
        "coco": (digits <= 12),
        "voc2007": (digits <= 6),
        "voc2012": (digits == 10),
    }[namespace]
    return np.where(bare & fits, NAMESPACES.index(namespace) * BLOCK + numbers, keys)


@dataclass(frozen=True)
class Vocabulary:
    """Every id of some lists once: COCO, VOC2007 and VOC2012 by number, bare numbers, other texts by code point.

    Attributes
    ----------
    keys : ndarray of int64, shape (u,)
        Ascending.
    texts : pyarrow.LargeStringArray
        The ids of form `TEXT`, by code point; their keys count through it.
    namespace : str
        Of ids without a known form or a written namespace, ``""`` where nobody said.
    """

    keys: Int64s
    texts: pa.LargeStringArray
    namespace: str = ""
    _rendered: dict[int, npt.NDArray[np.uint8]] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def forms(self) -> Int64s:
        """The form of each id, shape (u,)."""
        forms: Int64s = self.keys // BLOCK
        return forms

    @cached_property
    def numbers(self) -> Int64s:
        """The number that each id holds, shape (u,); for texts, their position among them."""
        numbers: Int64s = self.keys % BLOCK
        return numbers

    @cached_property
    def namespace_names(self) -> tuple[str, ...]:
        """The namespaces, ``""`` for none; `namespace_codes` are positions here."""
        written = sorted(set(self._spaces.unique().to_pylist()) - {""})
        return tuple(dict.fromkeys([*NAMESPACES, self.namespace, *written]))

    @cached_property
    def namespace_codes(self) -> Int32s:
        """The namespace of each id as a position in `namespace_names`, shape (u,)."""
        import pyarrow as pa
        from pyarrow import compute

        own = self.namespace_names.index(self.namespace)
        codes = np.where(self.forms <= VOC2012, self.forms, own).astype(np.int32)
        if len(self.texts):
            of_text = (
                compute.index_in(self._spaces, pa.array(self.namespace_names, pa.large_string()))
                .fill_null(own)
                .to_numpy()
            )
            written = compute.binary_length(self._spaces).to_numpy() > 0
            codes[self.forms == TEXT] = np.where(written, of_text, own)
        return codes

    @cached_property
    def _spaces(self) -> pa.LargeStringArray:
        """The namespace that is written before each of the texts."""
        from pyarrow import compute

        return compute.replace_substring_regex(self.texts, f"(?s)^(?:({_PREFIX.pattern[:-1]}):)?.*$", r"\1")

    def may_be_of(self, namespace: str) -> Bools:
        """Return which ids a source of some namespace may hold, shape (u,): its own, and those of no namespace.

        Digits in COCO's or VOC's form may be another dataset's too, where the source is of neither.
        """
        spaces = {"", namespace} | (set() if namespace in NAMESPACES else set(NAMESPACES))
        fits = np.array([name in spaces for name in self.namespace_names], np.bool_)
        allowed: Bools = fits[self.namespace_codes]
        return allowed

    @cached_property
    def natives(self) -> Texts:
        """The ids without namespace, shape (u,): what a source calls its images."""
        return self._written(np.arange(len(self), dtype=np.int32), with_namespace=False)

    def ids(self, rows: Int32s | Int64s | Sequence[int] | None = None) -> list[str]:
        """Return ids ``namespace:native`` at some positions, or all; bare where the namespace is not known."""
        chosen = np.arange(len(self)) if rows is None else np.asarray(rows, np.int64)
        written: list[str] = self._written(chosen, with_namespace=True).tolist()
        return written

    def digest(self, rows: Int32s | Int64s) -> str:
        r"""Return the sha256 of some ids as the id file of a manifest holds them: sorted, each ended by ``\n``.

        Parameters
        ----------
        rows : ndarray of int, shape (n,)
            Positions, ascending, each once.
        """
        if len(rows) and self.forms[rows[-1]] > VOC2012:
            return sha256_of_lines(sorted(self.ids(rows)))
        # Numbers of one width under sorted namespaces: the order of keys is that of code points.
        return sha256_of_bytes(b"".join(data for _, data in self._lines(rows, with_namespace=True)))

    def _written(self, rows: Any, *, with_namespace: bool) -> Texts:
        written = np.empty(len(rows), object)
        order = np.argsort(rows, kind="stable") if len(rows) > 1 and (np.diff(rows) < 0).any() else None
        ascending = rows if order is None else rows[order]
        done = 0
        for count, data in self._lines(ascending, with_namespace=with_namespace):
            written[done : done + count] = data.decode("ascii").split("\n")[:-1]
            done += count
        written[done:] = self._other(ascending[done:], with_namespace=with_namespace)
        if order is None:
            return written
        back = np.empty(len(rows), object)
        back[order] = written
        return back

    def _other(self, rows: Any, *, with_namespace: bool) -> list[str]:
        prefix = f"{self.namespace}:" if with_namespace and self.namespace else ""
        if with_namespace and not prefix:
            return list(self.texts.take(self.numbers[rows]).to_pylist())
        found = []
        for text in self.texts.take(self.numbers[rows]).to_pylist():
            if _PREFIX.match(text):
                found.append(text if with_namespace else text.partition(":")[2])
            else:
                found.append(prefix + text)
        return found

    def _lines(self, rows: Any, *, with_namespace: bool) -> list[tuple[int, bytes]]:
        """Return the lines of ascending positions that hold numbers, one piece a form."""
        pieces = []
        forms = self.forms[rows]
        for form in range(TEXT):
            low, high = np.searchsorted(forms, [form, form + 1]).tolist()
            if low == high:
                continue
            lines = self._block(form)[rows[low:high] - int(np.searchsorted(self.forms, form))]
            space = NAMESPACES[form] if form <= VOC2012 else self.namespace
            if with_namespace and space:
                prefix = np.frombuffer(f"{space}:".encode(), np.uint8)
                lines = np.hstack([np.broadcast_to(prefix, (len(lines), len(prefix))), lines])
            pieces.append((high - low, lines.tobytes()))
        return pieces

    def _block(self, form: int) -> npt.NDArray[np.uint8]:
        """Return the digits of all ids of one form, each with a line feed, shape (n, width + 1)."""
        if form not in self._rendered:
            numbers = self.numbers[self.forms == form]
            triples = [_TRIPLES[numbers // 1000**place % 1000] for place in reversed(range(5))]
            digits = np.hstack(triples)
            end = np.full((len(numbers), 1), 10, np.uint8)
            if form == VOC2012:
                line = np.full((len(numbers), 1), ord("_"), np.uint8)
                parts = [digits[:, -10:-6], line, digits[:, -6:], end]
            else:
                width = len(_TEMPLATES[form]) if form <= VOC2012 else form - BARE
                parts = [digits[:, -width:], end]
            self._rendered[form] = np.hstack(parts)
        return self._rendered[form]


def numbered_together(lists: Sequence[Named], namespace: str = "") -> tuple[Vocabulary, list[Int32s]]:
    """Return the vocabulary of several lists, and each list as positions in it.

    Parameters
    ----------
    namespace : str
        Of bare ids.
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow import compute

    encoded = pa.concat_arrays([_no_texts(), *(one.texts for one in lists)]).dictionary_encode()
    by_text = compute.sort_indices(encoded.dictionary).to_numpy()
    place = np.empty(len(by_text), np.int64)
    place[by_text] = np.arange(len(by_text)) + TEXT * BLOCK
    places = np.split(place[encoded.indices.to_numpy()], np.cumsum([len(one.texts) for one in lists]))
    resolved = [
        _resolved(_in_namespace(one.keys, namespace), own) for one, own in zip(lists, places[: len(lists)], strict=True)
    ]
    joined = np.concatenate([*resolved, np.empty(0, np.int64)])
    codes, distinct = pd.factorize(joined)
    order = np.argsort(distinct, kind="stable")
    rank = np.empty(len(distinct), np.int32)
    rank[order] = np.arange(len(distinct), dtype=np.int32)
    ends = np.cumsum([len(one) for one in resolved], dtype=np.int64)
    members = np.split(rank[codes], ends)[:-1] if len(resolved) else []
    keys = np.asarray(distinct, np.int64)[order]
    return Vocabulary(keys, encoded.dictionary.take(by_text), namespace), members


def _resolved(keys: Int64s, places: Int64s) -> Int64s:
    if not len(places):
        return keys
    is_text = keys >= TEXT * BLOCK
    keys = keys.copy()
    keys[is_text] = places[keys[is_text] - TEXT * BLOCK]
    return keys
