"""Somebody's lists, read from a folder or some files by `curation.sources.published_list`, and their images named."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from curation.audit.id_vocabulary import Vocabulary
from curation.audit.identity import Images, images_of
from curation.errors import AnnotationFormatError, DamagedFileError, MissingFileError, UsageError
from curation.ids import ImageId
from curation.input_files import InputFile
from curation.sources.entries import CLASS_FILE, EmptyListError, PublishedFile, PublishedList
from curation.sources.published_list import first_line, list_files, read_published
from curation.sources.source import Int32s
from curation.storage import inside
from curation.wording import counted

MAX_FILE_BYTES = 512 << 20
MAX_BYTES = 2 << 30
"""Of all lists together."""
MAX_LISTS = 4096

EXPECTED = "one file a line, alone or with labels; a table with a column of files; COCO JSON; more in docs/id_lists.md"
_LONGEST_KEY = 200


@dataclass(frozen=True)
class IdList:
    """One list of images, in the order of its file, repeats kept.

    Attributes
    ----------
    name : str
        Path below the folder without suffix, ``ore/t2_ft``; of a JSON object of lists, ``splits/train``.
    file : str
        Path of the file below the folder, ``ore/t2_ft.txt``.
    members : ndarray of int32, shape (n,)
        Position of each entry's image in `ListSet.images`.
    unique : ndarray of int32
        Positions of its images, each once, ascending.
    read : PublishedList
        Line of each entry in the file, or its place in the JSON array; labels, groups, what is no entry.
    sha256 : str
        ``sha256:<hex>`` of the bytes of the file.
    size : int
        Bytes of the file.
    """

    name: str
    file: str
    members: Int32s
    unique: Int32s
    read: PublishedList
    sha256: str
    size: int

    def __len__(self) -> int:
        return len(self.members)


@dataclass(frozen=True)
class ListSet:
    """Lists that are looked at together.

    Attributes
    ----------
    name : str
        Of the folder.
    lists : tuple of IdList
        By name.
    images : Images
        Every image once, and what two lists share.
    labels : mapping of str to Path
        COCO JSON files with annotations, by the name of their list.
    skipped : mapping of str to str
        Files that are no lists of images, and why.
    first_lines : mapping of str to str
        Their first lines.
    files : mapping of str to PublishedFile
        Every file that was understood, by its path below the folder; those that name classes hold no list.
    root : Path
        The folder.
    whole : bool
        Whether the whole folder was asked for, and not some of its files.
    damaged : tuple of str
        Those of `skipped` that may be lists, and cannot be read.
    """

    name: str
    lists: tuple[IdList, ...]
    images: Images
    labels: Mapping[str, Path] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    first_lines: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, PublishedFile] = field(default_factory=dict)
    root: Path = Path()
    whole: bool = False
    damaged: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lists)

    @property
    def vocabulary(self) -> Vocabulary:
        """Every image once."""
        return self.images.vocabulary

    @cached_property
    def place(self) -> dict[str, int]:
        """The position of each list by its name."""
        return {one.name: place for place, one in enumerate(self.lists)}

    def shared(self, one: IdList, two: IdList) -> int:
        """Return how many images two lists share."""
        return int(self.images.overlaps[self.place[one.name], self.place[two.name]])

    @property
    def digests(self) -> dict[str, str]:
        """The sha256 of each list's file by name."""
        return {one.name: one.sha256 for one in self.lists}


def read_lists(place: Path | Sequence[Path], *, namespace: str = "", but: Sequence[Path] = ()) -> ListSet:
    """Return every list of a folder and its subfolders, or of some files.

    Every form that `curation.sources.published_list` tells is read. Files that name classes are no lists. A file that
    is nothing of this is passed over and named. Where COCO JSON with annotations lies beside a text file of its name,
    the text is the list and the JSON its labels. What one image is, `curation.audit.identity` says.

    Parameters
    ----------
    place : Path or sequence of Path
        A folder, or files.
    namespace : str
        Of ids whose form tells none. A namespace other than COCO's and VOC's holds for all ids that have none written.
    but : sequence of Path
        Files that are something else, such as that of the tasks.

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
    others = {path.resolve() for path in but}
    read = _read_all(root, [path for path in paths if path.resolve() not in others])
    if not read.found and not any(one.form in ("class roles", "class names", "map") for one in read.files.values()):
        reasons = "; ".join(f"{name}: {why}" for name, why in list(read.skipped.items())[:3])
        raise UsageError("No list of images found", where=str(root), expected=EXPECTED, found=reasons or "no such file")
    names = sorted(read.found)
    images = images_of([read.found[name][1] for name in names], namespace)
    lists = tuple(
        IdList(name, file, own, unique, one, f"sha256:{read.files[file].sha256}", read.files[file].size)
        for name, own, unique in zip(names, images.members, images.uniques, strict=True)
        for file, one in [read.found[name]]
    )
    return ListSet(
        root.resolve().name, lists, images, read.labels, read.skipped, read.first_lines, read.files, root,
        isinstance(place, Path), tuple(read.damaged),
    )  # fmt: skip


@dataclass(frozen=True)
class _Found:
    found: dict[str, tuple[str, PublishedList]] = field(default_factory=dict)
    labels: dict[str, Path] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    first_lines: dict[str, str] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    files: dict[str, PublishedFile] = field(default_factory=dict)


def _read_all(root: Path, paths: Sequence[Path]) -> _Found:
    from tqdm import tqdm

    read = _Found()
    room = MAX_BYTES
    for path in tqdm(paths, desc="reading lists", unit=" files", disable=None, leave=False):
        relative = path.relative_to(root)
        file = relative.as_posix()
        room -= _require_room(inside(root, file), room)
        try:
            published = _read(path)
            lists = list(_named_lists(published))
        except AnnotationFormatError as reason:
            read.skipped[file], read.first_lines[file] = _in_one_line(reason, path), first_line(path)
            if isinstance(reason, DamagedFileError):
                read.damaged.append(file)
            continue
        read.files[file] = published
        if published.form == "class names" and not CLASS_FILE.search(path.stem):
            names = published.classes[""]
            read.skipped[file] = f"words such as class names on its {counted(len(names), 'line')}, not files"
            read.first_lines[file] = names[0][:80]
        for key, one in lists:
            name = relative.with_suffix("").as_posix() + (f"/{key}" if key else "")
            if published.annotated:
                read.labels[name] = path
                if name in read.found:
                    continue
            # An array of ids beside a text file of its name is a list of its own.
            name = file + (f"/{key}" if key else "") if name in read.found else name
            read.found[name] = file, one
        if len(read.found) > MAX_LISTS:
            raise UsageError("Too many lists to compare", where=str(root), expected=f"at most {MAX_LISTS:,}")
    return read


def _read(path: Path) -> PublishedFile:
    try:
        return read_published(path)
    except EmptyListError:
        given = InputFile(path, kind="list")
        blank = 0 if path.suffix.lower() == ".json" else given.data.count(b"\n")
        one = PublishedList("", b"", np.empty(0, np.int32), blank=blank)
        return PublishedFile(path, "id list", given.size, given.sha256.removeprefix("sha256:"), (one,))


def _in_one_line(reason: AnnotationFormatError, path: Path) -> str:
    line = (reason.where or "").removeprefix(str(path)).strip(" ,:")
    told = f"{reason.what[0].lower()}{reason.what[1:]}"
    return ": ".join(text for text in (told, line, reason.found) if text)


def _named_lists(published: PublishedFile) -> Iterator[tuple[str, PublishedList]]:
    """Yield the lists of a file under the names that reports give them: ``val.txt`` in a JSON object is ``val``."""
    lists = {one.name: one for one in published.lists}
    if bad := [key for key in lists if key and (not key.isprintable() or len(key) > _LONGEST_KEY)]:
        raise AnnotationFormatError("A list in it has no valid name", found=repr(bad[0][:40]))
    for key in sorted(lists):
        short = key.removesuffix(".txt")
        yield key if short in lists or not short else short, lists[key]


def _files(place: Path | Sequence[Path]) -> tuple[Path, list[Path]]:
    """Return the folder below which names are told, and the files; text before JSON of the same name."""
    if not isinstance(place, Path):
        given = [Path(os.path.abspath(one)) for one in place]  # noqa: PTH100 - links stay as they are named
        if not given:
            raise UsageError("No list given")
        if missing := [one for one in given if not one.is_file()]:
            raise MissingFileError("The list does not exist", where=str(missing[0]))
        root = Path(os.path.commonpath([one.parent for one in given]))
        return root, _in_order(dict.fromkeys(given))
    if not place.is_dir():
        raise MissingFileError("The folder of lists does not exist", where=str(place))
    return place, _in_order(list_files(place))


def _in_order(paths: Iterable[Path]) -> list[Path]:
    """Return text before JSON of its name."""
    return sorted(paths, key=lambda path: (path.suffix.lower() == ".json", path.as_posix()))


def _require_room(path: Path, room: int) -> int:
    """Return the bytes of a file that is no larger than a list can be."""
    limit = min(MAX_FILE_BYTES, room)
    if (size := path.stat().st_size) > limit:
        raise UsageError(
            "A file is too large to be a list" if size > MAX_FILE_BYTES else "The lists are too large in total",
            where=str(path),
            expected=f"at most {MAX_FILE_BYTES if size > MAX_FILE_BYTES else MAX_BYTES:,} bytes",
            found=f"{size:,}",
            hint="name the lists themselves, or move other files out of the folder",
        )
    return size
