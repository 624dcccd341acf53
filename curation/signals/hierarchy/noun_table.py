"""The nouns of WordNet as a compact table: read from WordNet's own database files, shipped with the package for 3.0.

Three compressed streams, so that kinship can be had without words: *structure* (a synset's position, its parents in
the file's order), *lemmas*, and *senses* (what makes their sense keys, by which one WordNet is held against another).
``python -m tests.signals.hierarchy.generate_wordnet DICT_FOLDER`` writes them beside this module from ``data.noun`` and
``index.noun`` (Princeton's WNdb-3.0, or Debian's wordnet-base, which gives the same table) and prints their digests,
listed in `DIGESTS`. WordNet 3.0 Copyright 2006 by Princeton University; its licence is in ``WORDNET_LICENSE``.
"""

from __future__ import annotations

import hashlib
import lzma
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
import numpy.typing as npt

from curation.core.errors import DigestMismatchError, HierarchyError

SYNSETS = 82_115
STRUCTURE_FILE, LEMMA_FILE, SENSE_FILE = (f"wordnet30_{name}.xz" for name in ("structure", "lemmas", "senses"))
DIGESTS = {
    STRUCTURE_FILE: "73635f6ec195c88cc2b646f53690f9fda323b3f34e768d7369f9aa48d16dd442",
    LEMMA_FILE: "2138ccd8180abf1b8b76fee464fb8fe69f45922b4b2435e778b2763ed5b70aac",
    SENSE_FILE: "d780ff1df0bf18593207d8e6a5864699f7554b3eac7c6851a0623c4d883a7915",
}
"""SHA-256 of the decompressed streams: compressed bytes depend on the library's version, these do not."""

Int32s = npt.NDArray[np.int32]
_VERSION = re.compile(rb"WordNet (?:Release )?([0-9]\.[0-9])")
_HEAD = 4096


@dataclass(frozen=True, slots=True)
class NounLine:
    """One synset of ``data.noun``.

    Attributes
    ----------
    offset : int
        Byte offset of the line: the digits of the synset's id ``n02084071``.
    lemmas : tuple of str
        As in the file, spaces as ``_``.
    parents : tuple of (int, bool)
        Offset of each hypernym in the file's order, and whether it is an instance pointer (``@i``).
    lexicon : int
        Number of the lexicographer's file: 5 is ``noun.animal``.
    lexicon_ids : tuple of int
        Of each lemma, which tells its senses within that file apart.
    """

    offset: int
    lemmas: tuple[str, ...]
    parents: tuple[tuple[int, bool], ...]
    lexicon: int
    lexicon_ids: tuple[int, ...]

    def sense_keys(self) -> Iterator[str]:
        """Yield the sense key of each lemma, such as ``dog%1:05:00::``: it stays when a new WordNet moves offsets."""
        return map(sense_key, self.lemmas, [self.lexicon] * len(self.lemmas), self.lexicon_ids)


@dataclass(frozen=True, slots=True)
class NounTable:
    """The noun synsets in the order of their offsets; n of them, with p parent pointers together.

    Attributes
    ----------
    offsets : ndarray of int32, shape (n,)
    starts : ndarray of int32, shape (n + 1,)
        The parents of synset i are ``parents[starts[i]:starts[i + 1]]``, in the order of ``data.noun``.
    parents : ndarray of int32, shape (p,)
        Positions in `offsets`.
    instances : ndarray of bool, shape (p,)
        Whether the pointer is ``@i`` (Einstein is an instance of a physicist).
    senses : ndarray of uint8, shape (n,)
        Sense number of the first lemma: 1 of ``dog.n.01``.
    """

    offsets: Int32s
    starts: Int32s
    parents: Int32s
    instances: npt.NDArray[np.bool_]
    senses: npt.NDArray[np.uint8]


def noun_lines(data: bytes, where: str) -> Iterator[NounLine]:
    """Yield the synsets in the bytes of ``data.noun``, in file order (wndb(5WN) format).

    Raises
    ------
    HierarchyError
        A line is malformed, or is not at the byte offset that it states (then the file was changed).
    """
    start = 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line and not line.startswith(b"  "):
            try:
                synset = _parse(line)
            except (ValueError, IndexError):
                raise _malformed(where, number, line) from None
            if synset.offset != start:
                raise HierarchyError(
                    "A synset is not at its offset: the file was changed",
                    where=f"{where}, line {number}",
                    expected=str(synset.offset),
                    found=f"byte {start}",
                    hint="install NLTK's corpus again: python -m nltk.downloader CORPUS",
                )
            yield synset
        start += len(line) + 1


def wordnet_version(data: bytes) -> str:
    """Return ``WordNet 3.1`` where the licence at the head of ``data.noun`` says so, ``""`` where it says nothing."""
    found = _VERSION.search(data[:_HEAD])
    return f"WordNet {found[1].decode('ascii')}" if found else ""


def senses_in(data: bytes, where: str) -> dict[str, list[int]]:
    """Return the offsets of each noun lemma in the bytes of ``index.noun``, most frequent sense first."""
    senses: dict[str, list[int]] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line and not line.startswith(b"  "):
            fields = line.split()
            try:
                count = int(fields[2])
                senses[_text(fields[0])] = [int(field) for field in fields[len(fields) - count :]]
            except (ValueError, IndexError):
                raise _malformed(where, number, line) from None
    return senses


def sense_key(lemma: str, lexicon: int, lexicon_id: int) -> str:
    """Return the sense key of a noun (senseidx(5WN)): ``dog%1:05:00::``."""
    return f"{lemma.lower()}%1:{lexicon:02d}:{lexicon_id:02d}::"


def _parse(line: bytes) -> NounLine:
    """Read ``offset lex_filenum ss_type w_cnt (word lex_id)* p_cnt (symbol offset pos source/target)* | gloss``."""
    fields = line.split(b" | ", 1)[0].split()
    words = int(fields[3], 16)
    pointers = 4 + 2 * words
    count = int(fields[pointers])
    quads = [fields[start : start + 4] for start in range(pointers + 1, pointers + 1 + 4 * count, 4)]
    return NounLine(
        offset=int(fields[0]),
        lemmas=tuple(_text(field) for field in fields[4:pointers:2]),
        parents=tuple(
            (int(offset), symbol == b"@i")
            for symbol, offset, part, _ in quads
            if symbol in (b"@", b"@i") and part == b"n"
        ),
        lexicon=int(fields[1]),
        lexicon_ids=tuple(int(field, 16) for field in fields[5:pointers:2]),
    )


def _text(field: bytes) -> str:
    return field.decode("utf-8", "replace")


def _malformed(where: str, number: int, line: bytes) -> HierarchyError:
    return HierarchyError(
        "A line of a WordNet file cannot be read",
        where=f"{where}, line {number}",
        expected="the format of wndb(5WN)",
        found=repr(line[:80]),
    )


def table_from(
    lines: Sequence[NounLine], numbers: Sequence[int], senses: dict[str, list[int]], where: str
) -> tuple[NounTable, list[str]]:
    """Return the table of some synsets in the order of the numbers that they are to bear as offsets, and the lemmas.

    Raises
    ------
    HierarchyError
        A parent is no synset, or a lemma has no such sense.
    """
    order = np.argsort(np.array(numbers, np.int64), kind="stable").tolist()
    lines = [lines[row] for row in order]
    position = {line.offset: number for number, line in enumerate(lines)}
    try:
        parents = [position[offset] for line in lines for offset, _ in line.parents]
        ranks = [senses[line.lemmas[0].lower()].index(line.offset) + 1 for line in lines]
    except (KeyError, ValueError, IndexError) as error:
        raise HierarchyError(
            "The WordNet files do not belong together", where=where, found=f"no synset {error}"
        ) from None
    counts = np.array([len(line.parents) for line in lines], np.int32)
    table = NounTable(
        offsets=np.array([numbers[row] for row in order], np.int32),
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        parents=np.array(parents, np.int32),
        instances=np.array([instance for line in lines for _, instance in line.parents], np.bool_),
        senses=np.array(ranks, np.uint8),
    )
    return table, [" ".join(line.lemmas) for line in lines]


def structure_from(data: bytes) -> NounTable:
    """Return the table of a structure stream: little-endian byte planes, one column after the other.

    ``int32 n, int32 p``; offsets as differences; number of parents, uint8; parents, int32, as distance from their
    child; instances, uint8; senses, uint8.
    """
    n, p = np.frombuffer(data, "<i4", 2).tolist()
    columns = []
    offset = 8
    for size, width in ((n, 4), (n, 1), (p, 4), (p, 1), (n, 1)):
        plane = np.frombuffer(data, np.uint8, size * width, offset).reshape(width, size)
        columns.append(np.ascontiguousarray(plane.T).view("<i4" if width == 4 else np.uint8).reshape(size))
        offset += size * width
    steps, counts, distances, instances, senses = columns
    starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int32)]).astype(np.int32)
    child = np.repeat(np.arange(n, dtype=np.int32), counts)
    return NounTable(
        offsets=np.cumsum(steps, dtype=np.int32),
        starts=starts,
        parents=(child - distances).astype(np.int32),
        instances=instances.astype(np.bool_),
        senses=senses,
    )


@cache
def embedded_structure() -> NounTable:
    """Return the kinship of WordNet 3.0's nouns from the package's own data."""
    return structure_from(_stream(STRUCTURE_FILE))


@cache
def embedded_lemmas() -> list[str]:
    """Return the lemmas of each noun synset, joined by blanks, in the order of `embedded_structure`."""
    return _stream(LEMMA_FILE).decode("ascii").split("\n")


@cache
def embedded_sense_keys() -> dict[str, int]:
    """Return the offset of each noun of WordNet 3.0 by its sense keys."""
    offsets, lemmas = embedded_structure().offsets.tolist(), embedded_lemmas()
    data = _stream(SENSE_FILE)
    lexicon_ids = iter(data[len(lemmas) :])
    return {
        sense_key(lemma, lexicon, next(lexicon_ids)): offset
        for offset, words, lexicon in zip(offsets, lemmas, data, strict=False)
        for lemma in words.split(" ")
    }


def _stream(name: str) -> bytes:
    data = lzma.decompress(resources.files("curation.signals.hierarchy").joinpath(name).read_bytes())
    digest = hashlib.sha256(data).hexdigest()
    if digest != DIGESTS[name]:
        raise DigestMismatchError(
            "The built-in WordNet table is damaged",
            where=name,
            expected=DIGESTS[name],
            found=digest,
            hint="install curation again",
        )
    return data
