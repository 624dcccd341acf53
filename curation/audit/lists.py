"""Somebody's id lists, read from a folder or some files (see `curation.audit.list_forms` for what these may hold)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from curation.audit.id_vocabulary import Vocabulary, numbered_together
from curation.audit.list_forms import NoListError, ParsedLines, lists_in
from curation.errors import MissingFileError, UsageError
from curation.ids import ImageId
from curation.input_files import InputFile
from curation.sources.source import Int32s
from curation.storage import inside

MAX_FILE_BYTES = 512 << 20
MAX_BYTES = 2 << 30
"""Of all lists together."""
MAX_LISTS = 4096

_SUFFIXES = (".txt", ".json")


@dataclass(frozen=True)
class IdList:
    """One list of image ids, in the order of its file, repeats kept.

    Attributes
    ----------
    name : str
        Path below the folder without suffix, ``ore/t2_ft``; of a JSON object of lists, ``splits/train``.
    file : str
        Path of the file below the folder, ``ore/t2_ft.txt``.
    members : ndarray of int32, shape (n,)
        Position of each entry's id in `ListSet.vocabulary`.
    read : ParsedLines
        Line of each entry in the file, or its place in the JSON array; what is no id, and what had to be understood.
    sha256 : str
        ``sha256:<hex>`` of the bytes of the file.
    size : int
        Bytes of the file.
    """

    name: str
    file: str
    members: Int32s
    read: ParsedLines
    sha256: str
    size: int

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def unique(self) -> Int32s:
        """Positions of its ids, each once, ascending."""
        return np.flatnonzero(np.bincount(self.members)).astype(np.int32)


@dataclass(frozen=True)
class ListSet:
    """Lists that are looked at together.

    Attributes
    ----------
    name : str
        Of the folder.
    lists : tuple of IdList
        By name.
    vocabulary : Vocabulary
        Every id once.
    labels : mapping of str to Path
        COCO JSON files with annotations, by the name of their list.
    skipped : mapping of str to str
        Files that are no lists of ids, and why.
    """

    name: str
    lists: tuple[IdList, ...]
    vocabulary: Vocabulary
    labels: Mapping[str, Path] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lists)

    @property
    def digests(self) -> dict[str, str]:
        """The sha256 of each list's file by name."""
        return {one.name: one.sha256 for one in self.lists}


def read_lists(place: Path | Sequence[Path], *, namespace: str = "") -> ListSet:
    """Return every list of a folder and its subfolders, or of some files.

    A text file has one id a line. A JSON file is an array of ids, an object of such arrays, or COCO JSON, whose images
    count. A file that is none of these is passed over and named. Where COCO JSON with annotations lies beside a text
    file of its name, the text is the list and the JSON its labels.

    Ids without a namespace get one by their form: 12 digits are COCO's, 6 digits up to 009963 are VOC2007's, and
    ``2008_000008`` is VOC2012's. Integers in JSON, numbers of other lengths and other texts get `namespace`.

    Parameters
    ----------
    place : Path or sequence of Path
        A folder, or files.
    namespace : str
        Of ids whose form tells none. A namespace other than COCO's and VOC's holds for all ids that have none written.

    Raises
    ------
    MissingFileError
        The folder or a file does not exist or cannot be read.
    UsageError
        There is no list, a file is too large to be one, or there are too many.
    PathEscapeError
        A file is a link that leads outside the folder.
    ImageIdError
        The namespace is malformed.
    """
    if namespace:
        ImageId(namespace, "0")
    root, paths = _files(place)
    read = _read_all(root, paths, namespace)
    if not read.found:
        reasons = "; ".join(f"{name}: {why}" for name, why in list(read.skipped.items())[:3])
        raise UsageError(
            "There is no list of image ids",
            where=str(root),
            expected=".txt files with one id a line, or .json files",
            found=reasons or "no such file",
        )
    entries = sorted(read.found.items())
    vocabulary, members = numbered_together([parsed.ids for _, (_, parsed, *_) in entries], namespace)
    lists = tuple(
        IdList(name, file, own, parsed, sha256, size)
        for (name, (file, parsed, sha256, size)), own in zip(entries, members, strict=True)
    )
    return ListSet(root.resolve().name, lists, vocabulary, read.labels, read.skipped)


@dataclass(frozen=True)
class _Found:
    found: dict[str, tuple[str, ParsedLines, str, int]] = field(default_factory=dict)
    labels: dict[str, Path] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def _read_all(root: Path, paths: Sequence[Path], namespace: str) -> _Found:
    from tqdm import tqdm

    read = _Found()
    room = MAX_BYTES
    for path in tqdm(paths, desc="reading lists", unit=" files", disable=None, leave=False):
        relative = path.relative_to(root)
        given = _given(inside(root, relative.as_posix()), room)
        room -= given.size
        try:
            is_json = path.suffix.lower() == ".json"
            parsed = list(lists_in(given.data, is_json=is_json, namespace=namespace))
        except NoListError as reason:
            read.skipped[relative.as_posix()] = str(reason)
            continue
        for key, lines, has_labels in parsed:
            key = f"/{key}" if key else ""
            name = relative.with_suffix("").as_posix() + key
            if has_labels:
                read.labels[name] = path
                if name in read.found:
                    continue
            # An array of ids beside a text file of its name is a list of its own.
            name = relative.as_posix() + key if name in read.found else name
            read.found[name] = relative.as_posix(), lines, given.sha256, given.size
        if len(read.found) > MAX_LISTS:
            raise UsageError("There are too many lists to compare", where=str(root), expected=f"at most {MAX_LISTS:,}")
    return read


def _files(place: Path | Sequence[Path]) -> tuple[Path, list[Path]]:
    """Return the folder below which names are told, and the files; text before JSON of the same name."""
    if not isinstance(place, Path):
        given = [Path(os.path.abspath(one)) for one in place]  # noqa: PTH100 - links stay as they are named
        if not given:
            raise UsageError("No list is given")
        if missing := [one for one in given if not one.is_file()]:
            raise MissingFileError("The list does not exist", where=str(missing[0]))
        root = Path(os.path.commonpath([one.parent for one in given]))
        return root, _in_order(dict.fromkeys(given))
    if not place.is_dir():
        raise MissingFileError("The folder of lists does not exist", where=str(place))
    return place, _in_order(
        path
        for path in place.rglob("*")
        if path.suffix.lower() in _SUFFIXES and path.is_file() and not _is_hidden(path.relative_to(place))
    )


def _in_order(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: (path.suffix.lower() == ".json", path.as_posix()))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _given(path: Path, room: int) -> InputFile:
    limit = min(MAX_FILE_BYTES, room)
    if (size := path.stat().st_size) > limit:
        raise UsageError(
            "A file is too large to be a list" if size > MAX_FILE_BYTES else "The lists are too large together",
            where=str(path),
            expected=f"at most {MAX_FILE_BYTES if size > MAX_FILE_BYTES else MAX_BYTES:,} bytes",
            found=f"{size:,}",
            hint="name the lists themselves, or move other files out of the folder",
        )
    return InputFile(path, kind="list")
