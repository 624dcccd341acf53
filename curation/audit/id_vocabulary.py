"""Ids of many lists in one column: named in full, equal where the images are, in the order of their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.canonical import sha256_of_lines
from curation.ids import NATIVE_FORMS
from curation.sources.source import Bools, Int32s, Int64s, Texts

if TYPE_CHECKING:
    import pyarrow as pa

NAMESPACES = tuple(NATIVE_FORMS)
"""Datasets whose ids are told by their form: position in this tuple is the form (`Vocabulary.forms`)."""
BARE = NAMESPACES.index("voc2012")
"""``BARE + n`` is the form of bare numbers of n digits, as written, leading zeros included."""
MAX_DIGITS = 13
TEXT = BARE + MAX_DIGITS + 1
"""The form of every other text."""
BLOCK = 10**MAX_DIGITS
"""Keys of one form of ids lie in one block: ``form * BLOCK + number``."""
VOC2007_LAST = 9_963
"""Largest image number of VOC2007: a longer list of six-digit numbers is of another dataset."""

_PREFIX = "^[a-z][a-z0-9_]{0,31}:"
_COCO_2014 = f"^COCO_[a-z]+20[0-9]{{2}}_({NATIVE_FORMS['coco']})$"
_WIDTHS = {"coco": 12, "voc2007": 6}
_YEAR_AND_NUMBER = "^([0-9]{4})([0-9]{6})$"


def named(words: pa.LargeStringArray, *, by_form: bool = True, namespace: str = "") -> pa.LargeStringArray:
    """Return the ids ``namespace:native`` of one list's words; a word stays bare where no namespace is known.

    Parameters
    ----------
    by_form : bool
        Whether 12 digits mean COCO, 6 digits VOC2007, and ``2008_000008`` VOC2012, and a file name of COCO 2014 holds
        the id behind the name of its part; else only ids with a written namespace are of these.
    namespace : str
        Of bare ids. With and without it, and without the zeros of COCO and VOC, an id is the same.
    """
    from pyarrow import compute

    written = compute.match_substring(words, ":").to_numpy(zero_copy_only=False)
    words = _chosen(written, _with_zeros, words)
    if by_form:
        words = _chosen(~written, _named_by_form, words)
    return _chosen(~matches(words, _PREFIX), lambda some: _within(namespace, some), words) if namespace else words


def _with_zeros(words: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return words with the zeros of COCO and VOC behind a written namespace."""
    for space in NAMESPACES:
        short = matches(words, f"^{space}:[0-9]+$") & ~matches(words, f"^{space}:{NATIVE_FORMS[space]}$")
        words = _chosen(short, lambda some, space=space: _within(space, replaced(some, _PREFIX, "")), words)
    return words


def _named_by_form(words: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return bare words, those of a known form with their namespace."""
    from pyarrow import compute

    if compute.any(compute.starts_with(words, "COCO_")).as_py():
        words = replaced(words, _COCO_2014, r"\1")
    named = np.zeros(len(words), np.bool_)
    for space, form in NATIVE_FORMS.items():
        # The first form is usually that of the whole list, and the others need no look.
        rows = ~named
        rows[rows] = matches(words.filter(rows), f"^{form}$")
        if space == "voc2007" and rows.any() and not _are_voc2007(words, rows):
            continue
        named |= rows
        words = _chosen(rows, lambda some, space=space: _prefixed(space, some), words)
    return words


def _are_voc2007(words: pa.LargeStringArray, six: Bools) -> bool:
    """Return whether six digits can be VOC2007's: none of the numbers is too large, and no others have fewer digits."""
    from pyarrow import compute

    largest = int(compute.max(words.filter(six)).as_py())
    return largest <= VOC2007_LAST and not matches(words, "^[0-9]{1,5}$").any()


def matches(words: pa.LargeStringArray, pattern: str) -> Bools:
    """Return in which words a pattern is found, shape (n,)."""
    from pyarrow import compute

    found: Bools = compute.match_substring_regex(words, pattern).to_numpy(zero_copy_only=False)
    return found


def replaced(words: pa.LargeStringArray, pattern: str, by: str) -> pa.LargeStringArray:
    """Return words with what a pattern finds replaced."""
    from pyarrow import compute

    # Most lists have nothing to replace, and looking takes half as long.
    return compute.replace_substring_regex(words, pattern, by) if matches(words, pattern).any() else words


def _chosen(rows: Bools, change: Any, words: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return words, some of them changed."""
    import pyarrow as pa
    from pyarrow import compute

    if not rows.any():
        return words
    mask = pa.array(rows)
    return compute.replace_with_mask(words, mask, change(words.filter(mask)))


def _within(space: str, words: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return words as ids of a namespace, numbers with the zeros that COCO and VOC write (`curation.ids.native_of`)."""
    from pyarrow import compute

    if width := _WIDTHS.get(space):
        rows = matches(words, f"^[0-9]{{1,{width}}}$")
        words = _chosen(rows, lambda some: compute.utf8_lpad(some, width, "0"), words)
    if space == "voc2012":
        words = replaced(words, _YEAR_AND_NUMBER, r"\1_\2")
    return _prefixed(space, words)


def _prefixed(space: str, words: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return words with a namespace before them."""
    import pyarrow as pa
    from pyarrow import compute

    begin, nothing = (pa.scalar(text, pa.large_string()) for text in (f"{space}:", ""))
    return compute.binary_join_element_wise(begin, words, nothing)


@dataclass(frozen=True)
class Vocabulary:
    """Every id of some lists once: COCO, VOC2007 and VOC2012 by number, bare numbers, other texts by code point.

    Attributes
    ----------
    column : pyarrow.LargeStringArray
        ``namespace:native``; bare where the namespace is not known.
    forms : ndarray of int64, shape (u,)
        Ascending: the position of a dataset in `NAMESPACES`, ``BARE + n`` for other numbers of n digits, `TEXT`.
    namespace : str
        Of ids without a known form or a written namespace, ``""`` where nobody said.
    """

    column: pa.LargeStringArray
    forms: Int64s
    namespace: str = ""

    def __len__(self) -> int:
        return len(self.column)

    @cached_property
    def numbers(self) -> Int64s:
        """The number that each id holds, shape (u,); for texts, their position among them."""
        first_text = int(np.searchsorted(self.forms, TEXT))
        digits = replaced(self.column.slice(0, first_text), f"{_PREFIX}|_", "")
        of_texts = np.arange(len(self) - first_text, dtype=np.int64)
        return np.concatenate([digits.cast("int64").to_numpy(), of_texts])

    @cached_property
    def keys(self) -> Int64s:
        """One number an id, ascending, shape (u,): that of the next image is one more."""
        keys: Int64s = self.forms * BLOCK + self.numbers
        return keys

    @cached_property
    def namespace_names(self) -> tuple[str, ...]:
        """The namespaces, ``""`` for none; `namespace_codes` are positions here."""
        return tuple(dict.fromkeys([*NAMESPACES, self.namespace, *sorted(set(self._spaces.unique().to_pylist()))]))

    @cached_property
    def namespace_codes(self) -> Int32s:
        """The namespace of each id as a position in `namespace_names`, shape (u,)."""
        import pyarrow as pa
        from pyarrow import compute

        names = pa.array(self.namespace_names, pa.large_string())
        codes: Int32s = compute.index_in(self._spaces, names).to_numpy()
        return codes

    @cached_property
    def _spaces(self) -> pa.LargeStringArray:
        from pyarrow import compute

        return compute.replace_substring_regex(self.column, f"(?s)^(?:({_PREFIX[1:-1]}):)?.*$", r"\1")

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
        return np.asarray(replaced(self.column, _PREFIX, "").to_pylist(), object)

    def ids(self, rows: Int32s | Int64s | Sequence[int] | None = None) -> list[str]:
        """Return ids ``namespace:native`` at some positions, or all; bare where the namespace is not known."""
        chosen = self.column if rows is None else self.column.take(np.asarray(rows, np.int64))
        written: list[str] = chosen.to_pylist()
        return written

    def digest(self, rows: Int32s | Int64s) -> str:
        r"""Return the sha256 of some ids as the id file of a manifest holds them: sorted, each ended by ``\n``."""
        return sha256_of_lines(sorted(self.ids(rows)))


def numbered_together(lists: Sequence[pa.LargeStringArray], namespace: str = "") -> tuple[Vocabulary, list[Int32s]]:
    """Return the vocabulary of several lists of ids (see `named`), and each list as positions in it.

    Parameters
    ----------
    namespace : str
        Of bare ids.
    """
    import pyarrow as pa
    from pyarrow import compute

    encoded = pa.concat_arrays([*lists, pa.array([], pa.large_string())]).dictionary_encode()
    distinct = encoded.dictionary
    by_text = compute.sort_indices(distinct).to_numpy()
    forms = _forms(distinct, namespace)
    order = by_text[np.argsort(forms[by_text], kind="stable")]
    rank = np.empty(len(distinct), np.int32)
    rank[order] = np.arange(len(distinct), dtype=np.int32)
    ends = np.cumsum([len(one) for one in lists], dtype=np.int64)
    members = np.split(rank[encoded.indices.to_numpy()], ends)[:-1] if len(lists) else []
    return Vocabulary(distinct.take(order), forms[order], namespace), members


def _forms(ids: pa.LargeStringArray, namespace: str) -> Int64s:
    from pyarrow import compute

    bare = replaced(ids, f"^{namespace}:", "") if namespace else ids
    widths = compute.binary_length(bare).to_numpy()
    forms = np.where(matches(bare, f"^[0-9]{{1,{MAX_DIGITS}}}$"), BARE + widths, TEXT)
    for form, (space, pattern) in enumerate(NATIVE_FORMS.items()):
        forms[matches(ids, f"^{space}:{pattern}$")] = form
    return forms
