"""Makes the built-in table of nouns from WordNet's own files.

Run ``python -m tests.signals.hierarchy.generate_wordnet FOLDER``.

FOLDER holds ``data.noun`` and ``index.noun`` of WordNet 3.0. The streams are written beside
`curation.signals.hierarchy.wordnet`, or to a second folder.
"""

import hashlib
import lzma
import sys
from pathlib import Path

import numpy as np

from curation.signals.hierarchy import wordnet
from curation.signals.hierarchy.wordnet import DIGESTS, SYNSETS, NounLine, NounTable, noun_lines, senses_in, table_from

LAYOUTS = ("", "dict", "corpora/wordnet", "wordnet", "share/wordnet", "usr/share/wordnet")


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
    """Write the three streams, and print their digests."""
    table, lemmas = table_of(root)
    lines = read_noun_lines(root)
    senses = bytes([line.lexicon for line in lines]) + b"".join(bytes(line.lexicon_ids) for line in lines)
    streams = (structure_bytes(table), "\n".join(lemmas).encode("ascii"), senses)
    for name, data in zip(DIGESTS, streams, strict=True):
        (folder / name).write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
        print(f"{name}  {hashlib.sha256(data).hexdigest()}  {len(data)} bytes")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
