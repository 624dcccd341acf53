"""Class lists of OSOD-III: the labels below a super-class, and the lists of the authors' category files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from curation.benchmarks.benchmark import benchmark_facts
from curation.core.canonical import canonical_json, sha256_of_bytes
from curation.core.errors import MissingFileError, ProtocolError
from curation.core.files import inside, read_bytes
from curation.core.json_text import decode_json
from curation.signals.hierarchy.hierarchy import superclass

FACTS = benchmark_facts(__package__)


def _labels(table: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(f"/m/{word}" for word in words) for name, words in FACTS[table].items()}


SUPERCLASSES, INNER_NODES = _labels("superclasses"), _labels("inner_nodes")
"""Label names of the leaves of animal and vehicle in Open Images; the nodes between them and their leaves."""
NAMES = {f"/m/{key}": name for key, name in FACTS["names"].items()}
"""Key (MID) to name, of the leaves and inner nodes of both super-classes."""


_FILE = re.compile(r"category_t([1-9])\.txt")
_LARGEST = 1 << 20
Text = Annotated[str, Meta(min_length=1)]
_Labels = Annotated[tuple[Text, ...], Meta(min_length=1)]


def read_superclass(text: str) -> str:
    """Return a super-class as a manifest holds it: a word, or the JSON list of its label names.

    ``animal`` or ``vehicle``; ``FILE#/m/02xwb`` for the node of an Open Images tree; or the list itself.
    """
    if text in SUPERCLASSES:
        return text
    if text.startswith("["):
        return canonical_json(list(superclass_labels(text))).decode("utf-8")
    path, _, root = text.partition("#")
    if not root:
        raise ProtocolError(
            "Unknown super-class",
            where=f"--set superclass={text[:80]}",
            expected=f"{', '.join(SUPERCLASSES)}, or FILE#LABEL with the label name of a node",
            hint="bbox_labels_600_hierarchy.json#/m/02xwb is fruit",
        )
    return canonical_json(list(superclass(Path(path), root))).decode("utf-8")


def superclass_labels(text: str) -> tuple[str, ...]:
    """Return the label names of a super-class in the form of `read_superclass`."""
    if text in SUPERCLASSES:
        return SUPERCLASSES[text]
    data, message = text.encode("utf-8", "surrogatepass"), "The super-class cannot be read"
    labels = decode_json(
        data, _Labels, ProtocolError, message, where="--set superclass", expected="a list of label names"
    )
    return tuple(sorted(set(labels)))


class PublishedParts(msgspec.Struct, frozen=True):
    """Class names of each list in the order t1, t2, …, with the digest of its file.

    Raises
    ------
    ProtocolError
        A class is listed twice.
    """

    parts: Annotated[tuple[_Labels, ...], Meta(min_length=3, max_length=4)]
    sha256: tuple[Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")], ...]

    def __post_init__(self) -> None:
        """Refuse a class in two lists, and lists without digests."""
        if len(self.sha256) != len(self.parts):
            raise ValueError
        seen: dict[str, int] = {}
        for number, part in enumerate(self.parts, 1):
            for name in part:
                if seen.setdefault(name, number) != number or part.count(name) > 1:
                    raise ProtocolError(
                        "A class is listed twice in the authors' lists",
                        where=f"category_t{seen[name]}.txt and category_t{number}.txt",
                        found=name[:80],
                        hint="each list holds one part alone, not the union of the others",
                    )


def read_class_lists(text: str) -> str:
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
    published = published_parts(text) if text.startswith("{") else _read_folder(Path(text))
    return canonical_json(msgspec.json.decode(msgspec.json.encode(published))).decode("utf-8")


def published_parts(text: str) -> PublishedParts:
    """Return the lists of a text in the form of `read_class_lists`."""
    data, message = text.encode("utf-8", "surrogatepass"), "The authors' class lists cannot be read"
    expected = "a folder with category_t1.txt, category_t2.txt, …"
    return decode_json(data, PublishedParts, ProtocolError, message, where="--set published", expected=expected)


def _read_folder(folder: Path) -> PublishedParts:
    if not folder.is_dir():
        raise MissingFileError("No such folder", where=f"--set published={folder}")
    names = {int(match[1]): path.name for path in folder.iterdir() if (match := _FILE.fullmatch(path.name))}
    if sorted(names) not in ([1, 2, 3, 4], [1, 2, 3]):
        raise MissingFileError(
            "The authors' class lists are not all there",
            where=str(folder),
            expected="category_t1.txt to category_t4.txt (MTSD: to category_t3.txt)",
            found=", ".join(names[number] for number in sorted(names)) or "none of them",
        )
    lists, digests = [], []
    for _, name in sorted(names.items()):
        content = read_bytes(inside(folder, name), kind="list of classes")
        try:
            text = content.decode("utf-8-sig") if len(content) <= _LARGEST else ""
        except UnicodeDecodeError:
            text = ""
        listed = tuple(line.strip() for line in text.splitlines() if line.strip())
        if not listed or not all(map(str.isprintable, listed)):
            raise ProtocolError(
                "A list of classes is empty or not text", where=f"{folder}/{name}", expected="one class a line, UTF-8"
            )
        lists.append(listed)
        digests.append(sha256_of_bytes(content))
    return PublishedParts(tuple(lists), tuple(digests))
