"""Ids of many lists as integers: parsed a column at a time, equal where the images are, written out again on demand."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from curation.canonical import sha256_of_bytes, sha256_of_lines
from curation.ids import native_of
from curation.sources.source import Bools, Int32s, Int64s, Texts

BLOCK = 10**13
"""Keys of one form of ids lie in one block: ``form * BLOCK + number``."""
MAX_DIGITS = 13
COCO, VOC2007, VOC2012 = 0, 1, 2
BARE = VOC2012
"""``BARE + n`` is the form of bare numbers of n digits, as written, leading zeros included."""
TEXT = BARE + MAX_DIGITS + 1
"""The form of every other text; its number is a position among the texts."""
VOC2007_LAST = 9_963
"""Largest image number of VOC2007: a longer list of six-digit numbers is of another dataset."""

NAMESPACES = ("coco", "voc2007", "voc2012")
_TEMPLATES = ("d" * 12, "d" * 6, "dddd_dddddd")
_PREFIX = re.compile(r"[a-z][a-z0-9_]{0,31}:")
_COCO_2014 = re.compile(r"COCO_[a-z]+20[0-9]{2}_([0-9]{12})")
_TRIPLES = np.array([f"{number:03}".encode() for number in range(1000)]).view(np.uint8).reshape(1000, 3)

Column = Callable[[int], npt.NDArray[np.uint8]]


def matched(column: Column, width: int, *, by_form: bool) -> tuple[Int64s, Bools]:
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


def key_of(text: str, namespace: str = "") -> int | str:
    """Return the key of an id with a written namespace, or the text itself where it is of no known form.

    The list's own namespace, when written, is taken off: with and without it the id is the same. A file name of COCO
    2014 holds the id behind the name of its part.
    """
    if name := _COCO_2014.fullmatch(text):
        return COCO * BLOCK + int(name[1])
    space, colon, native = text.partition(":")
    if not colon or not _PREFIX.match(text):
        return text
    if space in NAMESPACES:
        native = native_of(native, space)
        form = NAMESPACES.index(space)
        if len(native) == len(_TEMPLATES[form]) and native.isascii():
            data = np.frombuffer(native.encode(), np.uint8)
            numbers, fits = _read(lambda place: data[place : place + 1], _TEMPLATES[form], 1)
            if fits[0]:
                return form * BLOCK + int(numbers[0])
    if space == namespace:
        bare = native.isascii() and native.isdigit() and len(native) <= MAX_DIGITS
        return (BARE + len(native)) * BLOCK + int(native) if bare else native
    return f"{space}:{native}"


def in_namespace(keys: Int64s, namespace: str) -> Int64s:
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
    texts : tuple of str
        The ids of form `TEXT`, sorted; their keys count through it.
    namespace : str
        Of ids without a known form or a written namespace, ``""`` where nobody said.
    """

    keys: Int64s
    texts: tuple[str, ...]
    namespace: str = ""
    _rendered: dict[int, npt.NDArray[np.uint8]] = field(default_factory=dict, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def forms(self) -> Int64s:
        """The form of each id, shape (u,)."""
        return self.keys // BLOCK

    @cached_property
    def numbers(self) -> Int64s:
        """The number that each id holds, shape (u,); for texts, their position among them."""
        return self.keys % BLOCK

    @cached_property
    def namespace_names(self) -> tuple[str, ...]:
        """The namespaces, ``""`` for none; `namespace_codes` are positions here."""
        written = {_written_namespace(text) for text in self.texts}
        return tuple(dict.fromkeys([*NAMESPACES, self.namespace, *sorted(written - {""})]))

    @cached_property
    def namespace_codes(self) -> Int32s:
        """The namespace of each id as a position in `namespace_names`, shape (u,)."""
        place = {name: code for code, name in enumerate(self.namespace_names)}
        codes = np.where(self.forms <= VOC2012, self.forms, place[self.namespace]).astype(np.int32)
        of_text = [place[_written_namespace(text) or self.namespace] for text in self.texts]
        is_text = self.forms == TEXT
        codes[is_text] = np.array(of_text, np.int32)[self.numbers[is_text]]
        return codes

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
        found = []
        for text in map(self.texts.__getitem__, self.numbers[rows].tolist()):
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


def _written_namespace(text: str) -> str:
    return text.partition(":")[0] if _PREFIX.match(text) else ""


def numbered_together(
    keys: Sequence[Int64s], texts: Sequence[Sequence[str]], namespace: str = ""
) -> tuple[Vocabulary, list[Int32s]]:
    """Return the vocabulary of several lists, and each list as positions in it.

    Parameters
    ----------
    keys : sequence of ndarray of int64
        One array a list; keys of form `TEXT` count through that list's texts.
    texts : sequence of sequence of str
        The texts of each list, each once.
    namespace : str
        Of bare ids.
    """
    import pandas as pd

    sorted_texts = tuple(sorted(set().union(*texts))) if any(texts) else ()
    place = {text: number for number, text in enumerate(sorted_texts)}
    resolved = [
        _resolved(in_namespace(own, namespace), [place[text] for text in named])
        for own, named in zip(keys, texts, strict=True)
    ]
    joined = np.concatenate([*resolved, np.empty(0, np.int64)])
    codes, distinct = pd.factorize(joined)
    order = np.argsort(distinct, kind="stable")
    rank = np.empty(len(distinct), np.int32)
    rank[order] = np.arange(len(distinct), dtype=np.int32)
    ends = np.cumsum([len(one) for one in resolved], dtype=np.int64)
    members = np.split(rank[codes], ends)[:-1] if len(resolved) else []
    return Vocabulary(np.asarray(distinct, np.int64)[order], sorted_texts, namespace), members


def _resolved(keys: Int64s, places: list[int]) -> Int64s:
    if not places:
        return keys
    is_text = keys >= TEXT * BLOCK
    keys = keys.copy()
    keys[is_text] = TEXT * BLOCK + np.array(places, np.int64)[keys[is_text] - TEXT * BLOCK]
    return keys
