"""The in-distribution classes of a detector: names and aliases, from a file or a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from curation.core.errors import ProposalError
from curation.core.reading import filled_lines, read_declaration, read_plain
from curation.signals.hierarchy.class_lists import DATASETS, synset_map

if TYPE_CHECKING:
    from curation.manifest.header import Header

_LONGEST_NAME = 255
_MOST_CLASSES = 100_000
_HINT = 'a text file with one class a line, or {"known": ["dog", …]}, or {"id_classes": […], "aliases": {…}}'


class IdClass(NamedTuple):
    """One class that a detector knows.

    Attributes
    ----------
    name : str
    aliases : tuple of str
        Other names in annotation files (``airplane`` for ``aeroplane``).
    """

    name: str
    aliases: tuple[str, ...] = ()


class _File(msgspec.Struct):
    known: tuple[str, ...] = ()
    id_classes: tuple[str, ...] = ()
    aliases: dict[str, tuple[str, ...]] = {}
    classes: _File | None = None


def name_key(name: str) -> str:
    """Return the letters and digits of a name, case folded: the key of all its spellings.

    >>> name_key("Potted plant") == name_key("pottedplant"), name_key("cell-phone")
    (True, 'cellphone')
    """
    return "".join(character for character in name.casefold() if character.isalnum())


def read_id_classes(path: Path) -> tuple[IdClass, ...]:
    """Return the ID classes of a file.

    Parameters
    ----------
    path : Path
        ``.json`` or ``.toml`` with ``known`` or ``id_classes`` (names) and optional ``aliases`` (name to names), or
        with these in a table ``classes``; any other suffix: one name a line, ``name = alias = alias`` for aliases.

    Raises
    ------
    MissingFileError
        No such file.
    ProposalError
        The file names no class, repeats one, or gives two classes one name.
    """
    if path.suffix.lower() in (".json", ".toml"):
        read = read_declaration(path, _File, ProposalError)
        read = read.classes or read
        names = (*read.known, *read.id_classes)
        if unknown := read.aliases.keys() - set(names):
            raise ProposalError("Aliases of an unknown class", where=str(path), found=min(unknown)[:80])
        return checked_classes((IdClass(name, read.aliases.get(name, ())) for name in names), str(path))
    data = read_plain(path, kind="file of ID classes")
    lines = filled_lines(data, str(path), ProposalError, "The file of ID classes is not UTF-8")
    rows = [[name.strip() for name in line.split("=")] for _, line in lines if not line.startswith("#")]
    return checked_classes((IdClass(row[0], tuple(row[1:])) for row in rows), str(path))


def classes_of(header: Header) -> tuple[IdClass, ...]:
    """Return the known classes of a manifest with their aliases, in the order of their index."""
    known = sorted((cls for cls in header.classes if cls.role == "known"), key=lambda cls: cls.index)
    return checked_classes((IdClass(cls.name, cls.aliases) for cls in known), f"{header.name}@{header.version}")


def checked_classes(classes: Iterable[IdClass], where: str) -> tuple[IdClass, ...]:
    """Return the classes; raise `ProposalError` if a name is malformed or means two classes."""
    checked = tuple(classes)
    if not 0 < len(checked) <= _MOST_CLASSES:
        expected = f"1 to {_MOST_CLASSES} ID classes"
        raise ProposalError(
            "Wrong number of ID classes", where=where, expected=expected, found=str(len(checked)), hint=_HINT
        )
    owner: dict[str, str] = {}
    for entry in checked:
        for position, name in enumerate((entry.name, *entry.aliases)):
            key = name_key(name)
            if not key or len(name) > _LONGEST_NAME or not name.isprintable():
                raise ProposalError(
                    "The name of an ID class is malformed",
                    where=where,
                    expected=f"1 to {_LONGEST_NAME} printable characters, with a letter or digit",
                    found=ascii(name[:60]),
                    hint=_HINT,
                )
            # An alias may repeat its own class (Bird of bird); a class may not be listed twice.
            if key in owner and (owner[key] != entry.name or position == 0):
                found_names = f"{name!r}: {owner[key]!r} and {entry.name!r}"
                raise ProposalError("Two ID classes share a name", where=where, found=found_names)
            owner[key] = entry.name
    return checked


def owners(classes: Sequence[IdClass]) -> dict[str, tuple[str, bool]]:
    """Return the class of each name key, and whether the name is the class's own, not an alias."""
    names = {name_key(alias): (entry.name, False) for entry in classes for alias in entry.aliases}
    return names | {name_key(entry.name): (entry.name, True) for entry in classes}


def synsets_of(names: Iterable[str], *, dataset: str = "") -> dict[str, str]:
    """Return the synset of each name in the maps made by hand; the first sense of a word is never used.

    Parameters
    ----------
    names : iterable of str
    dataset : str
        ``coco``, ``voc`` or ``openimages``: its map comes before the others, which apply to names that differ only in
        case and blanks.
    """
    order = sorted(DATASETS, key=lambda name: name != dataset)
    synsets: dict[str, str] = {}
    for name in names:
        if synset := next((synset for other in order if (synset := _by_key(other).get(name_key(name)))), ""):
            synsets[name] = synset
    return synsets


@cache
def _by_key(dataset: str) -> dict[str, str]:
    return {name_key(name): synset for name, synset in synset_map(dataset).items()}
