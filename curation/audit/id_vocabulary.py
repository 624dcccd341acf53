"""Images of many lists as integers: ids of COCO and VOC by their number, all others by their text, each once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from curation.ids import NATIVE_FORMS
from curation.sources.source import Bools, Int32s, Int64s, Texts
from curation.sources.stems import firsts

if TYPE_CHECKING:
    import pyarrow as pa

NAMESPACES = tuple(NATIVE_FORMS)
"""Datasets whose ids are told by their form: position in this tuple is the form (`Vocabulary.forms`)."""
COCO, VOC2007, VOC2012, TEXT = range(4)
"""`TEXT` is the form of every other text; its number is a position among the texts."""
BLOCK = 10**13
"""Keys of one form of ids lie in one block: ``form * BLOCK + number``."""
VOC2007_LAST = 9_963
"""Largest image number of VOC2007: a longer list of six-digit numbers is of another dataset."""

_TEMPLATES = ("d" * 12, "d" * 6, "dddd_dddddd")
_BARE = (range(1, 13), range(1, 7), (10,))
"""Digits of the numbers that stand for an id of each dataset, where somebody says that they are of it."""
_SHORTER = re.compile(rb"^[0-9]{1,5}$", re.MULTILINE)
_PREFIX = re.compile("[a-z][a-z0-9_]{0,31}:")
_LINE_FEED, _ZERO = 10, 48


@dataclass(frozen=True)
class Named:
    """The images of one list, in its order.

    Attributes
    ----------
    keys : ndarray of int64, shape (n,)
        ``form * BLOCK + number``; those of form `TEXT` count through `texts`.
    texts : pyarrow.LargeStringArray
        Images of no known form, each once; bare, or with a namespace that is not the list's own.
    """

    keys: Int64s
    texts: pa.LargeStringArray


def keys_by_form(stems: bytes, *, by_form: bool = True, namespace: str = "", as_written: bool = False) -> Int64s:
    """Return the key of each line of a text, -1 where its form tells no dataset.

    Parameters
    ----------
    by_form : bool
        Whether 12 digits mean COCO, 6 digits VOC2007, and ``2008_000008`` VOC2012; else only ids with a written
        namespace are of these.
    namespace : str
        Of bare ids: numbers of any width are COCO's or VOC's where it names them.
    as_written : bool
        Whether ids keep their digits behind a written namespace, as in a manifest: then there are no zeros to add.
    """
    buffer = np.frombuffer(stems, np.uint8)
    ends = np.flatnonzero(buffer == _LINE_FEED)
    starts = firsts(ends) if len(ends) else ends
    widths = ends - starts
    present = set(np.flatnonzero(np.bincount(widths)).tolist()) if len(ends) else set()
    keys = np.full(len(ends), -1, np.int64)
    for template, form, is_bare in _templates(stems, by_form, namespace, as_written):
        if len(template) not in present:
            continue
        rows = np.flatnonzero((widths == len(template)) & (keys < 0))
        keys[rows] = _read(buffer, starts[rows], template, form)
        six = rows[keys[rows] >= 0] if template == _TEMPLATES[VOC2007] and not is_bare else rows[:0]
        # Six digits are VOC2007's unless some are too large for it, or other numbers have fewer digits.
        if len(six) and ((keys[six] % BLOCK).max() > VOC2007_LAST or _SHORTER.search(stems)):
            keys[six] = -1
    return keys


def _templates(stems: bytes, by_form: bool, namespace: str, as_written: bool) -> Iterator[tuple[str, int, bool]]:
    """Yield how an id may be written, its form, and whether that is a number of any width."""
    for form, space in enumerate(NAMESPACES):
        if by_form:
            yield _TEMPLATES[form], form, False
        if f"{space}:".encode() in stems:
            yield f"{space}:{_TEMPLATES[form]}", form, False
            yield from ((f"{space}:{'d' * width}", form, True) for width in _BARE[form] if not as_written)
    if namespace in NAMESPACES:
        form = NAMESPACES.index(namespace)
        yield from (("d" * width, form, True) for width in _BARE[form])


def _read(buffer: Texts, starts: Int64s, template: str, form: int) -> Int64s:
    """Return the keys of lines as long as a template, -1 for those that do not fit it."""
    keys, fits = np.zeros(len(starts), np.int64), np.ones(len(starts), np.bool_)
    for place, character in enumerate(template):
        if character == "d":
            # Bytes below "0" wrap round to large ones, so that one comparison tells digits.
            digit = buffer[starts + place] - np.uint8(_ZERO)
            fits &= digit < 10
            keys = keys * 10 + digit
        else:
            fits &= buffer[starts + place] == ord(character)
        if not place and not fits.any():
            break
    return np.where(fits, keys + form * BLOCK, -1)


def named(keys: Int64s, texts: bytes, namespace: str = "") -> Named:
    """Return the images of a list: those with a key, and the text of each other line, a line feed after each.

    Parameters
    ----------
    namespace : str
        Of bare ids: it is taken off where it is written.
    """
    from pyarrow import compute

    rows = np.flatnonzero(keys < 0)
    column = column_of(texts)
    encoded = (column if len(rows) == len(keys) else column.take(rows)).dictionary_encode()
    places, words = encoded.indices.to_numpy(), encoded.dictionary
    if namespace and f"{namespace}:".encode() in texts:
        again = compute.replace_substring_regex(words, f"^{namespace}:", "").dictionary_encode()
        places, words = again.indices.to_numpy()[places], again.dictionary
    keys = keys.copy()
    keys[rows] = places.astype(np.int64) + TEXT * BLOCK
    return Named(keys, words)


def column_of(texts: bytes) -> pa.LargeStringArray:
    """Return the lines of a text, a line feed after each, as a column."""
    import pyarrow as pa

    buffer = np.frombuffer(texts, np.uint8)
    breaks = np.flatnonzero(buffer == _LINE_FEED)
    # A line less its line feed begins as many bytes earlier as there are lines before it.
    places = np.concatenate([[0], breaks - np.arange(len(breaks))]).astype(np.int64)
    data = buffer[buffer != _LINE_FEED]
    return pa.LargeStringArray.from_buffers(len(breaks), pa.py_buffer(places), pa.py_buffer(data))


@dataclass(frozen=True)
class Vocabulary:
    """Every image of some lists once: COCO, VOC2007 and VOC2012 by number, other texts by code point.

    Attributes
    ----------
    keys : ndarray of int64, shape (u,)
        Ascending.
    texts : pyarrow.LargeStringArray
        Those of form `TEXT`, by code point; their keys count through it.
    namespace : str
        Of images without a known form or a written namespace, ``""`` where nobody said.
    """

    keys: Int64s
    texts: pa.LargeStringArray
    namespace: str = ""

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def forms(self) -> Int64s:
        """The form of each image, shape (u,)."""
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
        """The namespace of each image as a position in `namespace_names`, shape (u,)."""
        import pyarrow as pa
        from pyarrow import compute

        codes = self.forms.astype(np.int32)
        own = self.namespace_names.index(self.namespace)
        names = pa.array(self.namespace_names, pa.large_string())
        of_text = compute.index_in(self._spaces, names).fill_null(own).to_numpy()
        is_text = self.forms == TEXT
        codes[is_text] = of_text[self.numbers[is_text]]
        return codes

    @cached_property
    def _spaces(self) -> pa.LargeStringArray:
        """The namespace that is written before each of the texts."""
        from pyarrow import compute

        return compute.replace_substring_regex(self.texts, f"(?s)^(?:({_PREFIX.pattern[:-1]}):)?.*$", r"\1")

    def may_be_of(self, namespace: str) -> Bools:
        """Return which images a source of some namespace may hold, shape (u,): its own, and those of no namespace.

        Digits in COCO's or VOC's form may be another dataset's too, where the source is of neither.
        """
        spaces = {"", namespace} | (set() if namespace in NAMESPACES else set(NAMESPACES))
        fits = np.array([name in spaces for name in self.namespace_names], np.bool_)
        allowed: Bools = fits[self.namespace_codes]
        return allowed

    @cached_property
    def natives(self) -> Texts:
        """The images without namespace, shape (u,): a path, or what a source calls its images."""
        return self._written(np.arange(len(self)), with_namespace=False)

    def ids(self, rows: Int32s | Int64s | Sequence[int] | None = None) -> list[str]:
        """Return images ``namespace:native`` at some positions, or all; bare where the namespace is not known."""
        chosen = np.arange(len(self)) if rows is None else np.asarray(rows, np.int64)
        written: list[str] = self._written(chosen, with_namespace=True).tolist()
        return written

    def _written(self, rows: Int64s, *, with_namespace: bool) -> Texts:
        written = np.empty(len(rows), object)
        for form in range(TEXT + 1):
            own = np.flatnonzero(self.forms[rows] == form)
            numbers = self.numbers[rows[own]]
            space = NAMESPACES[form] if form < TEXT else self.namespace
            prefix = f"{space}:" if space and with_namespace else ""
            if form == VOC2012:
                written[own] = [f"{prefix}{n // 10**6:04}_{n % 10**6:06}" for n in numbers.tolist()]
            elif form < TEXT:
                width = len(_TEMPLATES[form])
                written[own] = [f"{prefix}{n:0{width}}" for n in numbers.tolist()]
            else:
                texts = self.texts.take(numbers).to_pylist()
                found = [_PREFIX.match(text) for text in texts]
                written[own] = [
                    prefix + text if match is None else text if with_namespace else text[match.end() :]
                    for text, match in zip(texts, found, strict=True)
                ]
        return written


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

    none = pa.array([], pa.large_string())
    encoded = pa.concat_arrays([none, *(one.texts for one in lists)]).dictionary_encode()
    by_text = compute.sort_indices(encoded.dictionary).to_numpy()
    place = np.empty(len(by_text), np.int64)
    place[by_text] = np.arange(len(by_text)) + TEXT * BLOCK
    codes = place[encoded.indices.to_numpy()]
    joined, first = [np.empty(0, np.int64)], 0
    for one in lists:
        own = codes[first : first + len(one.texts)]
        first += len(own)
        is_text = one.keys >= TEXT * BLOCK
        keys = one.keys.copy()
        keys[is_text] = own[keys[is_text] - TEXT * BLOCK]
        joined.append(keys)
    factors, distinct = pd.factorize(np.concatenate(joined))
    order = np.argsort(distinct, kind="stable")
    rank = np.empty(len(distinct), np.int32)
    rank[order] = np.arange(len(distinct), dtype=np.int32)
    ends = np.cumsum([len(one.keys) for one in lists], dtype=np.int64)
    members = np.split(rank[factors], ends)[:-1] if lists else []
    return Vocabulary(np.asarray(distinct, np.int64)[order], encoded.dictionary.take(by_text), namespace), members
