"""Reader of the authors' class lists ``category_t1.txt``, ``category_t2.txt``, …."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from curation.core.canonical import canonical_json, sha256_of_bytes
from curation.core.errors import MissingFileError, ProtocolError
from curation.core.files import inside, read_bytes
from curation.core.json_text import decode_json
from curation.core.reading import utf8_text
from curation.manifest.header import ParameterValue

_FILE = re.compile(r"category_t([1-9])\.txt")
Text = Annotated[str, Meta(min_length=1)]
_Labels = Annotated[tuple[Text, ...], Meta(min_length=1)]


class PublishedParts(msgspec.Struct, frozen=True):
    """Class names of each list in the order t1, t2, …, with the digest of its file."""

    parts: Annotated[tuple[_Labels, ...], Meta(min_length=3, max_length=4)]
    sha256: tuple[Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")], ...]

    def __post_init__(self) -> None:
        """Raise `ValueError` for lists without digests."""
        if len(self.sha256) != len(self.parts):
            raise ValueError


def read_class_lists(text: str) -> str:
    """Return the authors' lists in the form that a manifest stores, a JSON text of names and digests; "" for none.

    Parameters
    ----------
    text : str
        A folder with ``category_t1.txt`` to ``category_t4.txt`` (MTSD: to ``category_t3.txt``), one class per line; or
        a text in the stored form.

    Raises
    ------
    ProtocolError
        A file is not text, or is empty.
    MissingFileError
        The folder does not exist, or the files are not numbered from 1 without a gap.
    """
    if not text:
        return ""
    published = published_parts(text) if text.startswith("{") else _read_folder(Path(text))
    return canonical_json(msgspec.json.decode(msgspec.json.encode(published))).decode("utf-8")


def published_parts(text: str) -> PublishedParts:
    """Return the lists of a text in the form of `read_class_lists`."""
    data, message = text.encode("utf-8", "surrogatepass"), "The authors' class lists cannot be read"
    expected = "a folder with category_t1.txt, category_t2.txt, …"
    return decode_json(data, PublishedParts, ProtocolError, message, where="--set published", expected=expected)


def authors_parts(
    keys: Mapping[str, Sequence[str]], number: int, text: str, *, equal: bool = False
) -> tuple[tuple[tuple[str, ...], ...], dict[str, ParameterValue]]:
    """Return the authors' lists by key, each sorted, and their digests for the manifest's rule.

    Parameters
    ----------
    keys : mapping of str to sequence of str
        The classes of the problem, with other names that the lists may use.
    number : int
        Number of lists.
    text : str
        The lists as `read_class_lists` returns them.
    equal : bool
        Whether the lists must have the same size: others exchange known and unknown classes, or belong to another
        problem.

    Raises
    ------
    ProtocolError
        The lists do not belong to the problem.
    """
    published = published_parts(text)
    by_name = {name: key for key, names in keys.items() for name in (key, *names)}
    listed = [name for part in published.parts for name in part]
    strange = [name for name in listed if name not in by_name]
    counts = Counter(by_name.get(name, name) for name in listed)
    missing, twice = [key for key in keys if key not in counts], [key for key, count in counts.items() if count > 1]
    sizes = [len(part) for part in published.parts]
    if strange or missing or twice or len(sizes) != number or (equal and max(sizes) - min(sizes) > 0):
        groups = {"other classes": strange, "classes not listed": missing, "classes listed twice": twice}
        wrong = [f"{len(names)} {words}: {', '.join(names[:2])}"[:80] for words, names in groups.items() if names]
        raise ProtocolError(
            "The authors' lists do not belong to this problem",
            where="--set published",
            expected=f"{number} lists{' of equal size' * equal} that hold each of its {len(keys)} classes once",
            found="; ".join([f"lists of {', '.join(map(str, sizes))}", *wrong]),
            hint="choose --set problem and --set superclass that fit the lists",
        )
    parts = tuple(tuple(sorted(by_name[name] for name in part)) for part in published.parts)
    return parts, {"published_digests": published.sha256}


def _read_folder(folder: Path) -> PublishedParts:
    if not folder.is_dir():
        raise MissingFileError("No such folder", where=f"--set published={folder}")
    names = {int(match[1]): path.name for path in folder.iterdir() if (match := _FILE.fullmatch(path.name))}
    if sorted(names) not in ([1, 2, 3, 4], [1, 2, 3]):
        raise MissingFileError(
            "Some of the authors' class lists are missing",
            where=str(folder),
            expected="category_t1.txt to category_t4.txt (MTSD: to category_t3.txt)",
            found=", ".join(names[number] for number in sorted(names)) or "none of them",
        )
    lists, digests = [], []
    for _, name in sorted(names.items()):
        content = read_bytes(inside(folder, name), kind="list of classes")
        lines = utf8_text(content, f"{folder}/{name}", ProtocolError, "A list of classes is not UTF-8").splitlines()
        listed = tuple(filter(None, map(str.strip, lines)))
        if not listed or not all(map(str.isprintable, listed)):
            raise ProtocolError(
                "A list of classes is empty or not text", where=f"{folder}/{name}", expected="one class per line"
            )
        lists.append(listed)
        digests.append(sha256_of_bytes(content))
    return PublishedParts(tuple(lists), tuple(digests))
