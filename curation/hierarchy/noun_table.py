"""The nouns of WordNet 3.0 as a compact table: written from the database files, shipped with the package.

Two compressed streams, so that kinship can be had without words: *structure* (where each synset stands, its parents in
the file's order) and *lemmas*. WordNet 3.0 Copyright 2006 by Princeton University; its licence stands in
``WORDNET_LICENSE`` beside the table.
"""

from __future__ import annotations

import hashlib
import lzma
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt

from curation.errors import DigestMismatchError, HierarchyError
from curation.hierarchy.wordnet_files import (
    NounLine,
    find_dict,
    read_noun_lines,
    read_senses,
    wordnet_version,
)

SYNSETS = 82_115
STRUCTURE_FILE, LEMMA_FILE = "wordnet30_structure.xz", "wordnet30_lemmas.xz"
DIGESTS = {
    STRUCTURE_FILE: "73635f6ec195c88cc2b646f53690f9fda323b3f34e768d7369f9aa48d16dd442",
    LEMMA_FILE: "2138ccd8180abf1b8b76fee464fb8fe69f45922b4b2435e778b2763ed5b70aac",
}
"""SHA-256 of the decompressed streams: compressed bytes depend on the library's version, these do not."""

Int32s = npt.NDArray[np.int32]


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


def table_of(folder: Path) -> tuple[NounTable, list[str]]:
    """Return the table of a WordNet folder, and the lemmas of each synset joined by blanks.

    Raises
    ------
    MissingFileError
        There is no WordNet at the folder.
    HierarchyError
        Its files are malformed; a parent is no synset; the number of nouns is not that of WordNet 3.0.
    """
    place = find_dict(folder)
    lines = list(read_noun_lines(place))
    if len(lines) != SYNSETS:
        raise HierarchyError(
            "This is not WordNet 3.0, whose offsets are the ids of ImageNet's classes",
            where=str(place / "data.noun"),
            expected=f"{SYNSETS} noun synsets",
            found=f"{len(lines)} of {wordnet_version(place) or 'a WordNet of unknown version'}",
            hint="leave the folder out: the nouns of WordNet 3.0 are built in",
        )
    position = {line.offset: number for number, line in enumerate(lines)}
    senses = read_senses(place)
    try:
        parents = [position[offset] for line in lines for offset, _ in line.parents]
        ranks = [_sense(line, senses) for line in lines]
    except (KeyError, ValueError) as error:
        raise HierarchyError(
            "The WordNet files do not belong together", where=str(place), found=f"no synset {error}"
        ) from None
    counts = np.array([len(line.parents) for line in lines], np.int32)
    table = NounTable(
        offsets=np.array([line.offset for line in lines], np.int32),
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        parents=np.array(parents, np.int32),
        instances=np.array([instance for line in lines for _, instance in line.parents], np.bool_),
        senses=np.array(ranks, np.uint8),
    )
    return table, [" ".join(line.lemmas) for line in lines]


def _sense(line: NounLine, senses: dict[str, list[int]]) -> int:
    return senses[line.lemmas[0].lower()].index(line.offset) + 1


def structure_bytes(table: NounTable) -> bytes:
    """Return the structure as bytes: little-endian columns one after the other.

    ``int32 n, int32 p``; offsets as differences; number of parents, uint8; parents, int32, as distance from their
    child; instances, uint8; senses, uint8.
    """
    counts = np.diff(table.starts)
    child = np.repeat(np.arange(len(table.offsets), dtype=np.int32), counts)
    columns = (
        np.array([len(table.offsets), len(table.parents)], "<i4"),
        np.diff(table.offsets, prepend=0).astype("<i4"),
        counts.astype(np.uint8),
        (child - table.parents).astype("<i4"),
        table.instances.astype(np.uint8),
        table.senses,
    )
    # Byte planes compress far better than interleaved integers.
    planes = [column.view(np.uint8).reshape(len(column), -1).T.tobytes() for column in columns[1:]]
    return columns[0].tobytes() + b"".join(planes)


def structure_from(data: bytes) -> NounTable:
    """Return the table that `structure_bytes` wrote."""
    n, p = np.frombuffer(data, "<i4", 2).tolist()
    columns = []
    place = 8
    for size, width in ((n, 4), (n, 1), (p, 4), (p, 1), (n, 1)):
        plane = np.frombuffer(data, np.uint8, size * width, place).reshape(width, size)
        columns.append(np.ascontiguousarray(plane.T).view("<i4" if width == 4 else np.uint8).reshape(size))
        place += size * width
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


def _stream(name: str) -> bytes:
    data = lzma.decompress(resources.files("curation.hierarchy").joinpath(name).read_bytes())
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
