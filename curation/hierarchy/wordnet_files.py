"""WordNet's own database files: ``data.noun`` and ``index.noun`` of a dict folder, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from curation.errors import HierarchyError, MissingFileError
from curation.storage import open_binary, read_bytes

_VERSION = re.compile(rb"WordNet (?:Release )?([0-9]\.[0-9])")
_HEAD = 4096
_LAYOUTS = ("", "dict", "corpora/wordnet", "wordnet", "share/wordnet", "usr/share/wordnet")


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


def find_dict(root: Path) -> Path:
    """Return the folder with ``data.noun`` at or below a root: a dict folder, nltk_data, or Debian's wordnet-base.

    Raises
    ------
    MissingFileError
        There is none; the message lists where it was looked for.
    """
    for layout in _LAYOUTS:
        if (root / layout / "data.noun").is_file():
            return root / layout
    raise MissingFileError(
        "There is no WordNet here",
        where=str(root),
        expected=", ".join(f"{layout or '.'}/data.noun" for layout in _LAYOUTS),
        hint="leave it out: WordNet 3.0 nouns are built in",
    )


def read_noun_lines(folder: Path) -> Iterator[NounLine]:
    """Yield the synsets of ``data.noun`` in file order (wndb(5WN) format).

    Raises
    ------
    HierarchyError
        A line is malformed, or does not stand at the byte offset that it states (then the file was changed).
    """
    path = folder / "data.noun"
    start = 0
    for number, line in enumerate(read_bytes(path, kind="WordNet file").split(b"\n"), start=1):
        if line and not line.startswith(b"  "):
            try:
                synset = _parse(line)
            except (ValueError, IndexError):
                raise _malformed(path, number, line) from None
            if synset.offset != start:
                raise HierarchyError(
                    "A synset does not stand where its offset says: the file was changed",
                    where=f"{path}, line {number}",
                    expected=str(synset.offset),
                    found=f"byte {start}",
                    hint="take the files of WordNet 3.0 as they are, or leave them out: its nouns are built in",
                )
            yield synset
        start += len(line) + 1


def wordnet_version(folder: Path) -> str:
    """Return ``WordNet 3.1`` where the licence at the head of ``data.noun`` says so, ``""`` where it says nothing."""
    with open_binary(folder / "data.noun", kind="WordNet file") as stream:
        found = _VERSION.search(stream.read(_HEAD))
    return f"WordNet {found[1].decode('ascii')}" if found else ""


def read_senses(folder: Path) -> dict[str, list[int]]:
    """Return the offsets of each noun lemma, most frequent sense first, from ``index.noun``."""
    path = folder / "index.noun"
    senses: dict[str, list[int]] = {}
    for number, line in enumerate(read_bytes(path, kind="WordNet file").split(b"\n"), start=1):
        if line and not line.startswith(b"  "):
            fields = line.decode("latin-1").split()
            try:
                count = int(fields[2])
                senses[fields[0]] = [int(one) for one in fields[len(fields) - count :]]
            except (ValueError, IndexError):
                raise _malformed(path, number, line) from None
    return senses


def _parse(line: bytes) -> NounLine:
    """Read ``offset lex_filenum ss_type w_cnt (word lex_id)* p_cnt (symbol offset pos source/target)* | gloss``."""
    fields = line.decode("latin-1").split(" | ", 1)[0].split()
    words = int(fields[3], 16)
    pointers = 4 + 2 * words
    count = int(fields[pointers])
    quads = [fields[place : place + 4] for place in range(pointers + 1, pointers + 1 + 4 * count, 4)]
    return NounLine(
        offset=int(fields[0]),
        lemmas=tuple(fields[4:pointers:2]),
        parents=tuple(
            (int(offset), symbol == "@i")
            for symbol, offset, part, _ in quads
            if symbol in ("@", "@i") and part == "n"
        ),
    )


def _malformed(path: Path, number: int, line: bytes) -> HierarchyError:
    return HierarchyError(
        "A line of a WordNet file cannot be read",
        where=f"{path}, line {number}",
        expected="the format of wndb(5WN), WordNet 3.0",
        found=repr(line[:80]),
    )
