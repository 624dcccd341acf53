"""Makes the built-in table of nouns from WordNet's own files.

Run ``python -m tests.signals.hierarchy.generate_wordnet FOLDER``.

FOLDER holds ``data.noun`` and ``index.noun`` of WordNet 3.0. The streams are written beside
`curation.signals.hierarchy.wordnet`, or to a second folder.
"""

import hashlib
import lzma
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from curation.core.errors import HierarchyError
from curation.signals.hierarchy import wordnet
from curation.signals.hierarchy.wordnet import DIGESTS, SYNSETS, NounTable

LAYOUTS = ("", "dict", "corpora/wordnet", "wordnet", "share/wordnet", "usr/share/wordnet")


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
    """

    offset: int
    lemmas: tuple[str, ...]
    parents: tuple[tuple[int, bool], ...]


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
        A parent is not a synset, or a lemma lacks such a sense.
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


def find_dict(root: Path) -> Path | None:
    """Return the folder with ``data.noun`` at or below a root, if there is one."""
    return next((root / layout for layout in LAYOUTS if (root / layout / "data.noun").is_file()), None)


def read_noun_lines(folder: Path) -> list[NounLine]:
    """Return the synsets of a folder's ``data.noun``."""
    return list(noun_lines((folder / "data.noun").read_bytes(), str(folder / "data.noun")))


def table_of(folder: Path) -> tuple[NounTable, list[str]]:
    """Return the table of a WordNet folder, and the lemmas of each synset joined by blanks."""
    lines = read_noun_lines(folder)
    assert len(lines) == SYNSETS
    senses = senses_in((folder / "index.noun").read_bytes(), str(folder))
    return table_from(lines, [line.offset for line in lines], senses, str(folder))


def structure_bytes(table: NounTable) -> bytes:
    """Return the structure as the bytes that `wordnet.structure_from` reads."""
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


def main(root: Path, folder: Path = Path(wordnet.__file__).parent) -> None:
    """Write the two streams, and print their digests."""
    table, lemmas = table_of(root)
    streams = (structure_bytes(table), "\n".join(lemmas).encode("ascii"))
    for name, data in zip(DIGESTS, streams, strict=True):
        (folder / name).write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
        print(f"{name}  {hashlib.sha256(data).hexdigest()}  {len(data)} bytes")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
