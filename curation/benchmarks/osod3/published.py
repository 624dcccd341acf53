"""The authors' own class lists of the OSOD-III problems: ``category_t1.txt``, ``category_t2.txt``, …."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from curation.canonical import canonical_json, sha256_of_bytes
from curation.errors import MissingFileError, ProtocolError
from curation.storage import inside, read_bytes

_FILE = re.compile(r"category_t([1-9])\.txt")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class PublishedParts:
    """Class names of each list in the order t1, t2, …, with the digest of its file."""

    parts: tuple[tuple[str, ...], ...]
    digests: tuple[str, ...]


def read_published(text: str) -> str:
    """Return the authors' lists as a manifest holds them: the JSON of names and digests; "" for none.

    Parameters
    ----------
    text : str
        A folder that holds ``category_t1.txt`` to ``category_t4.txt`` (MTSD: to ``category_t3.txt``), one class a line;
        or that JSON itself.

    Raises
    ------
    ProtocolError
        The files are not numbered from 1 without a gap, are not text, are empty, or name a class twice.
    MissingFileError
        The folder is not there, or holds none of the files.
    """
    if not text:
        return ""
    if text.startswith("{"):
        return _as_text(published_parts(text))
    folder = Path(text)
    numbers = sorted(int(found[1]) for path in _entries(folder) if (found := _FILE.fullmatch(path.name)) is not None)
    if numbers not in ([1, 2, 3, 4], [1, 2, 3]):
        raise MissingFileError(
            "The authors' class lists are not all there",
            where=str(folder),
            expected=", ".join(f"category_t{number}.txt" for number in (1, 2, 3, 4)) + " (MTSD: without the last)",
            found=", ".join(f"category_t{number}.txt" for number in numbers) or "none of them",
        )
    contents = [read_bytes(inside(folder, f"category_t{number}.txt"), kind="list of classes") for number in numbers]
    lists = [
        _names(content, f"{folder}/category_t{number}.txt") for number, content in zip(numbers, contents, strict=True)
    ]
    published = PublishedParts(tuple(lists), tuple(sha256_of_bytes(content) for content in contents))
    _check_apart(published.parts)
    return _as_text(published)


def published_parts(text: str) -> PublishedParts:
    """Return the lists of a text in the form of `read_published`."""
    try:
        data = json.loads(text)
        parts = tuple(tuple(map(_text, one)) for one in data["parts"])
        digests = tuple(map(_text, data["sha256"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        parts, digests = (), ()
    usable = len(parts) in (3, 4) and len(digests) == len(parts) and all(parts)
    if not usable or not all(map(_DIGEST.fullmatch, digests)):
        raise ProtocolError(
            "The authors' class lists cannot be read",
            where="--set published",
            expected="a folder with category_t1.txt, category_t2.txt, …",
            found=repr(text[:60]),
        )
    _check_apart(parts)
    return PublishedParts(parts, digests)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value


def _entries(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise MissingFileError("There is no such folder", where=f"--set published={folder}")
    return list(folder.iterdir())


def _names(content: bytes, where: str) -> tuple[str, ...]:
    try:
        text = content.decode("utf-8-sig") if len(content) <= _LARGEST else ""
    except UnicodeDecodeError:
        text = ""
    names = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not names or not all(name.isprintable() for name in names):
        raise ProtocolError("A list of classes is empty or no text", where=where, expected="one class a line, UTF-8")
    return names


def _check_apart(parts: Sequence[Sequence[str]]) -> None:
    seen: dict[str, int] = {}
    for number, part in enumerate(parts, 1):
        for name in part:
            if name in seen:
                raise ProtocolError(
                    "A class stands in the authors' lists twice",
                    where=f"category_t{seen[name]}.txt and category_t{number}.txt",
                    found=name[:80],
                    hint="each list holds one part alone, not the union of the others",
                )
            seen[name] = number


def _as_text(published: PublishedParts) -> str:
    return canonical_json(
        {"parts": [list(part) for part in published.parts], "sha256": list(published.digests)}
    ).decode("utf-8")
