"""Makes the built-in table of nouns from WordNet's own files.

Run ``python -m tests.signals.hierarchy.generate_wordnet FOLDER``.

FOLDER holds ``data.noun`` and ``index.noun`` of WordNet 3.0. The streams are written beside
`curation.signals.hierarchy.wordnet`, or to a second folder.
"""

import hashlib
import lzma
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from curation.signals.hierarchy import wordnet
from curation.signals.hierarchy.wordnet import DIGESTS, NounTable

LAYOUTS = ("", "dict", "corpora/wordnet", "wordnet", "share/wordnet", "usr/share/wordnet")


@dataclass(frozen=True, slots=True)
class NounLine:
    """A synset of ``data.noun``: offset, lemmas, and each hypernym with a flag for instance pointers (``@i``)."""

    offset: int
    lemmas: tuple[str, ...]
    parents: tuple[tuple[int, bool], ...]


def read_noun_lines(folder: Path) -> list[NounLine]:
    """Return the synsets of ``data.noun``.

    A line is ``offset lex_filenum ss_type w_cnt (word lex_id)* p_cnt (symbol offset pos source/target)* | gloss``.
    """
    synsets = []
    for line in (folder / "data.noun").read_text(encoding="latin-1").split("\n"):
        if line and not line.startswith("  "):
            fields = line.split(" | ", 1)[0].split()
            pointers = 4 + 2 * int(fields[3], 16)
            starts = range(pointers + 1, pointers + 1 + 4 * int(fields[pointers]), 4)
            quads = [fields[start : start + 4] for start in starts]
            parents = tuple(
                (int(at), sign == "@i") for sign, at, part, _ in quads if sign in ("@", "@i") and part == "n"
            )
            synsets.append(NounLine(int(fields[0]), tuple(fields[4:pointers:2]), parents))
    return synsets


def senses_of(folder: Path) -> dict[str, list[int]]:
    """Return the offsets of each noun lemma of ``index.noun``, most frequent sense first."""
    lines = (folder / "index.noun").read_text(encoding="latin-1").split("\n")
    rows = [line.split() for line in lines if line and not line.startswith("  ")]
    return {fields[0]: [int(field) for field in fields[len(fields) - int(fields[2]) :]] for fields in rows}


def table_of(folder: Path) -> tuple[NounTable, list[str]]:
    """Return the table of a WordNet folder, and the lemmas of each synset joined by blanks."""
    lines, senses = sorted(read_noun_lines(folder), key=lambda line: line.offset), senses_of(folder)
    assert len(lines) == 82_115
    position = {line.offset: number for number, line in enumerate(lines)}
    counts = np.array([len(line.parents) for line in lines], np.int32)
    table = NounTable(
        offsets=np.array([line.offset for line in lines], np.int32),
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        parents=np.array([position[offset] for line in lines for offset, _ in line.parents], np.int32),
        instances=np.array([instance for line in lines for _, instance in line.parents], np.bool_),
        senses=np.array([senses[line.lemmas[0].lower()].index(line.offset) + 1 for line in lines], np.uint8),
    )
    return table, [" ".join(line.lemmas) for line in lines]


def find_dict(root: Path) -> Path | None:
    """Return the folder with ``data.noun`` at or below a root, if there is one."""
    return next((root / layout for layout in LAYOUTS if (root / layout / "data.noun").is_file()), None)


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
