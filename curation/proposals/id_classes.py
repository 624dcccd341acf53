"""The in-distribution classes of a detector: names, aliases and synsets, from a file or a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from curation.csv_table import csv_rows
from curation.errors import HierarchyError, ProposalError
from curation.hierarchy import Wordnet, open_wordnet
from curation.hierarchy.synset_maps import DATASETS, synset_map
from curation.input_files import read_declaration, read_plain, utf8_text
from curation.storage import read_bytes

if TYPE_CHECKING:
    from curation.manifest.header import Header

_LONGEST_NAME = 255
_MOST_CLASSES = 100_000
_HINT = 'a text file with one class a line, or {"known": ["dog", …]}, or {"id_classes": […], "aliases": {…}}'


class IdClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One class that a detector knows.

    Attributes
    ----------
    name : str
    aliases : tuple of str
        Other names of it in annotation files (``airplane`` for ``aeroplane``).
    synset : str
        WordNet 3.0 noun synset such as ``n02084071``; ``""`` to take it from the synset maps by name.
    """

    name: str
    aliases: tuple[str, ...] = ()
    synset: str = ""


class _File(msgspec.Struct):
    known: tuple[str, ...] = ()
    id_classes: tuple[str, ...] = ()
    classes: tuple[IdClass, ...] = ()
    aliases: dict[str, tuple[str, ...]] = {}


def name_key(name: str) -> str:
    """Return what two spellings of one name share: letters and digits, case folded.

    >>> name_key("Potted plant") == name_key("pottedplant"), name_key("cell-phone")
    (True, 'cellphone')
    """
    return "".join(character for character in name.casefold() if character.isalnum())


def read_id_classes(path: Path) -> tuple[IdClass, ...]:
    """Return the ID classes of a file.

    Parameters
    ----------
    path : Path
        ``.json`` or ``.toml`` with ``known`` or ``id_classes`` (names), optional ``aliases`` (name to names), or with
        ``classes`` (records of `IdClass`); any other suffix: one name a line, ``name = alias = alias`` for aliases.

    Raises
    ------
    MissingFileError
        There is no such file.
    ProposalError
        The file names no class, one twice, or one name for two classes.
    """
    if path.suffix.lower() in (".json", ".toml"):
        read = read_declaration(path, _File, ProposalError)
        unknown = sorted(set(read.aliases) - {*read.known, *read.id_classes})
        if unknown:
            raise ProposalError("Aliases are given for what is no class", where=str(path), found=unknown[0][:80])
        named = [IdClass(name, read.aliases.get(name, ())) for name in (*read.known, *read.id_classes)]
        return checked_classes([*named, *read.classes], str(path))
    data = read_plain(path, kind="file of ID classes")
    text = utf8_text(data, str(path), ProposalError, "The file of ID classes is not UTF-8")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    rows = [[name.strip() for name in line.split("=")] for line in lines]
    return checked_classes((IdClass(row[0], tuple(row[1:])) for row in rows), str(path))


def classes_of(header: Header) -> tuple[IdClass, ...]:
    """Return the known classes of a manifest with their aliases, in the order of their index."""
    known = sorted((one for one in header.classes if one.role == "known"), key=lambda one: one.index)
    return checked_classes((IdClass(one.name, one.aliases) for one in known), f"{header.name}@{header.version}")


def checked_classes(classes: Iterable[IdClass], where: str) -> tuple[IdClass, ...]:
    """Return the classes, each of whose names means one class only; otherwise raise `ProposalError`."""
    found = tuple(classes)
    if not 0 < len(found) <= _MOST_CLASSES:
        raise ProposalError(
            f"There are {len(found)} ID classes", where=where, expected=f"1 to {_MOST_CLASSES}", hint=_HINT
        )
    owner: dict[str, str] = {}
    for one in found:
        for place, name in enumerate((one.name, *one.aliases)):
            key = _checked_key(name, where)
            # An alias may repeat its own class (Bird of bird); a class may not stand twice.
            if key in owner and (owner[key] != one.name or place == 0):
                raise ProposalError(
                    "One name stands for two ID classes",
                    where=where,
                    found=f"{name!r}: {owner[key]!r} and {one.name!r}",
                )
            owner[key] = one.name
        _check_synset(one, where)
    return found


def owners(classes: Sequence[IdClass]) -> dict[str, tuple[str, bool]]:
    """Return for each key of a name the class it means, and whether it is the class's own name."""
    names = {name_key(alias): (one.name, False) for one in classes for alias in one.aliases}
    return names | {name_key(one.name): (one.name, True) for one in classes}


def _checked_key(name: str, where: str) -> str:
    key = name_key(name)
    if not key or len(name) > _LONGEST_NAME or not name.isprintable():
        raise ProposalError(
            "A name of an ID class is malformed",
            where=where,
            expected=f"1 to {_LONGEST_NAME} printable characters, with a letter or digit",
            found=ascii(name[:60]),
            hint=_HINT,
        )
    return key


def _check_synset(one: IdClass, where: str) -> None:
    from curation.hierarchy import open_wordnet

    if one.synset:
        try:
            open_wordnet().positions([one.synset])
        except HierarchyError as error:
            raise ProposalError(
                error.what, where=f"{where}: {one.name}", found=error.where, expected=error.expected
            ) from None


def synsets_of(
    names: Iterable[str],
    *,
    dataset: str = "",
    given: Mapping[str, str] | None = None,
    wordnet: Wordnet | None = None,
) -> dict[str, str]:
    """Return the synset of each name that has one, by the maps made by hand: never the first sense of a word.

    Parameters
    ----------
    names : iterable of str
    dataset : str
        ``coco``, ``voc`` or ``openimages``: its map goes before the others, which lend theirs where a name is the same
        but for case and blanks.
    given : mapping of str to str, optional
        Name to synset, of the user's: goes before all; ``""`` says that a name has none.
    wordnet : Wordnet, optional
        In place of the built-in one: a name whose synset it lacks has none.
    """
    mine = {name_key(name): synset for name, synset in (given or {}).items()}
    order = sorted(DATASETS, key=lambda one: one != dataset)
    found: dict[str, str] = {}
    for name in names:
        key = name_key(name)
        synset = mine[key] if key in mine else next((s for one in order if (s := _by_key(one).get(key))), "")
        if synset and (wordnet is None or synset in wordnet):
            found[name] = synset
    return found


def read_synset_map(path: Path) -> dict[str, str]:
    """Return the name-to-synset rows of a CSV or TSV file (``name,n02084071``; an empty synset says none).

    Raises
    ------
    MissingFileError
        There is no such file.
    ProposalError
        A row is no such pair, a name stands twice, or a synset is no noun of WordNet 3.0; the message names the row.
    """
    rows = _rows(path)
    mapped: dict[str, str] = {}
    keys: dict[str, int] = {}
    for number, row in rows:
        where = f"{path}: row {number}"
        if len(row) != 2 or not name_key(row[0]):
            raise ProposalError("A row of the synset map is malformed", where=where, expected="name,n02084071")
        key = name_key(row[0])
        if key in keys:
            raise ProposalError("A name stands twice in the synset map", where=where, found=row[0][:80])
        keys[key] = number
        mapped[row[0].strip()] = _checked(row[1].strip(), where)
    if not mapped:
        raise ProposalError("The synset map is empty", where=str(path), expected="rows name,n02084071")
    return mapped


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    data = read_bytes(path, kind="synset map")
    rows = csv_rows(data, ProposalError, "The synset map is no table", where=str(path), delimiter=delimiter)
    kept = [(number, row) for number, row in enumerate(rows, 1) if row and not row[0].startswith("#")]
    return kept[1:] if kept and [cell.strip().lower() for cell in kept[0][1]] == ["name", "synset"] else kept


def _checked(synset: str, where: str) -> str:
    if synset:
        try:
            open_wordnet().positions([synset])
        except HierarchyError as error:
            raise ProposalError(error.what, where=where, expected=error.expected, found=error.where) from None
    return synset


@cache
def _by_key(dataset: str) -> dict[str, str]:
    return {name_key(name): synset for name, synset in synset_map(dataset).items()}
