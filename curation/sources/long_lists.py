"""Reader of lists with millions of lines, in blocks that are kept compressed.

Most long lists have one image per line, with or without a number after it. Every other file, also one with a single
line in another form, is read by `read_published`, so that entries, counts and messages are the same.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np

from curation.core.errors import CurationError
from curation.core.files import open_file
from curation.core.reading import BOM
from curation.sources.entries import MOST_CLASS_NAMES, NO_LABEL, Form, PackedText, PublishedFile, PublishedList
from curation.sources.published_list import MAX_BYTES, contents_of, read_published
from curation.sources.stems import FILE_NAME, cells_of, text_of
from curation.sources.text_lines import Lines, are_numbers, read_entries, require_utf8

LONG = 64 << 20
"""Size in bytes from which a file is read in blocks."""
_BLOCK = 2 << 20
_FORMS = ("id list", "imglist", "voc list")
_SUFFIXES = (".txt", ".list", ".lst", "")


def read_long(path: Path) -> PublishedFile:
    """Read a published file of any form, a long list in blocks (see `read_published` for the errors)."""
    is_long = path.suffix.lower() in _SUFFIXES and path.is_file() and LONG <= path.stat().st_size <= MAX_BYTES
    read = _read_in_blocks(path) if is_long else None
    return read or read_published(path)


def _read_in_blocks(path: Path) -> PublishedFile | None:
    """Return a list whose lines all have the form of the first ones; None for another file."""
    digest, packed = hashlib.sha256(), PackedText()
    numbers, labels = array("i"), array("i")
    form, are_stems, count, first = "", True, 0, ""
    for block in _blocks(path):
        digest.update(block)
        if not count:
            block = block.removeprefix(BOM)
            form = _form(block, path)
        text = block if block.endswith(b"\n") else block + b"\n"
        cells = cells_of(text)
        if form == "id list" and are_numbers(cells):
            rows, entries = np.arange(1, len(cells) + 1, dtype=np.int32), cells
        else:
            if not form or b"\0" in text or (lines := _alike(text, form)) is None:
                return None
            rows, entries, are_stems = lines.numbers, lines.cells if form == "id list" else lines.before, False
            text = text_of(entries)
            if form != "id list":
                labels.frombytes(lines.labels.tobytes())
        first = first or entries[0].as_py()
        packed.append(text)
        numbers.frombytes((rows + np.int32(count)).tobytes())
        count += len(cells)
    last = entries[-1].as_py()
    is_file, ends_in_file = (FILE_NAME.search(name) is not None for name in (first, last))
    is_cut = not block.endswith(b"\n") and len(last) < len(first) if are_stems else is_file != ends_in_file
    if len(numbers) <= MOST_CLASS_NAMES or is_cut or (form == "imglist" and not is_file):
        return None
    columns = (np.frombuffer(numbers, np.int32), np.frombuffer(labels, np.int32) if labels else None)
    listed = PublishedList("", b"", *columns, are_stems=are_stems, packed=packed)
    return PublishedFile(path, cast(Form, form), path.stat().st_size, digest.hexdigest(), (listed,))


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield a file in blocks of whole lines. The last line may lack its line feed; a line that fills a block is cut."""
    with open_file(path, kind="list") as stream:
        rest = b""
        while piece := stream.read(_BLOCK):
            block, feed, rest = (rest + piece).rpartition(b"\n")
            if feed:
                yield block + feed
            elif len(rest) > _BLOCK:
                yield rest
                rest = b""
        if rest:
            yield rest


def _form(block: bytes, path: Path) -> str:
    """Return the form of the first lines of a file, or an empty text if they are not a plain list."""
    try:
        read = contents_of(block, path)
    except CurationError:
        return ""
    return read["form"] if read["form"] in _FORMS and not read.get("notes") else ""


def _alike(text: bytes, form: str) -> Lines | None:
    """Return the entries of a block, or None if a line has another form."""
    try:
        require_utf8(text, "")
    except CurationError:
        return None
    lines, refused, _ = read_entries(text)
    others = {
        "id list": lines.is_spaced | lines.is_sentence | (lines.labels != NO_LABEL),
        "imglist": ~lines.is_imglist | lines.is_spaced,
        "voc list": ~lines.is_voc | lines.is_spaced,
    }
    return None if refused or not len(lines) or others[form].any() else lines
