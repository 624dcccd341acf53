"""Which noun synset a class name means: the maps made by hand, or a file of the user's."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from curation.errors import HierarchyError, ProposalError
from curation.hierarchy import Wordnet, open_wordnet
from curation.hierarchy.synset_maps import DATASETS, synset_map
from curation.proposals.id_classes import name_key
from curation.storage import read_bytes


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
            raise ProposalError(
                "A row of the synset map is malformed", where=where, expected="name,n02084071"
            )
        key = name_key(row[0])
        if key in keys:
            raise ProposalError("A name stands twice in the synset map", where=where, found=row[0][:80])
        keys[key] = number
        mapped[row[0].strip()] = _checked(row[1].strip(), where)
    if not mapped:
        raise ProposalError("The synset map is empty", where=str(path), expected="rows name,n02084071")
    return mapped


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    try:
        text = read_bytes(path, kind="synset map").decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text), delimiter="\t" if path.suffix.lower() == ".tsv" else ","))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ProposalError("The synset map is no table", where=str(path), found=str(error)[:120]) from None
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
