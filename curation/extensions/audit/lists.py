"""The lists of a folder, read by `curation.sources.published_list`, with their images."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, get_args

import numpy as np

from curation.core.columns import distinct
from curation.core.errors import AnnotationFormatError, CurationError, DamagedFileError, UsageError
from curation.core.files import inside, missing_path
from curation.core.ids import ImageId
from curation.core.reading import InputFile
from curation.core.tables import grouped
from curation.core.wording import counted, short_repr
from curation.extensions.audit.identity import Images, first_row_of_each, images_of
from curation.manifest.header import LabelView
from curation.sources.class_folders import class_folders, part_of_folder
from curation.sources.entries import CLASS_FILE, EmptyListError, PublishedFile, PublishedList
from curation.sources.published_list import PHOTO_SUFFIXES, YAML_NAMES, files_below_folder, first_line, read_published
from curation.sources.source import Int32s
from curation.sources.text_lines import box_line
from curation.sources.yolo import CLASS_NAMES, yolo_file

MAX_FILE_BYTES = 512 << 20
MAX_BYTES = 2 << 30
"""Largest size of all lists together."""
MAX_LISTS = 4096
LONGEST_LABELS = 1 << 20
"""Largest size in bytes of the label file of a photo."""
_FEWEST_LABELS = 3

EXPECTED = "one file a line, alone or with labels; a table with a column of files; COCO JSON; more in docs/id_lists.md"
_LONGEST_KEY = 200


ListRole = Literal["train", "finetune", "val", "test", "wilderness", "id", "ood", ""]
LIST_ROLES: tuple[ListRole, ...] = get_args(ListRole)[:-1]


@dataclass(frozen=True)
class AuditedList:
    """A list of images, in the order of its file and with repeats, and its role.

    Attributes
    ----------
    name : str
        Path below the folder without suffix, ``ore/t2_ft``; of a JSON object of lists, ``splits/train``; part of a
        manifest; ``all_task_val[1-1000]`` for some lines of a file.
    whole : str
        Name of the list that contains the lines; equal to `name` unless these are some lines of a file.
    members : ndarray of int32, shape (n,)
        Position of each line's image among all images.
    lines : ndarray of int32, shape (n,)
        Line of each member in its file, from 1.
    read : PublishedList
        The list as read, with labels, groups and odd lines; for a part of a manifest, its ids.
    file : str
        Path of the file below the folder, ``ore/t2_ft.txt``; empty for a part of a manifest.
    sha256 : str
        ``sha256:<hex>`` of the bytes of the file or, in a manifest, of its lines; empty if unknown.
    role : str
        ``""`` for none.
    played : str
        Its role and task in words.
    family : str
        Words of its name other than the role: lists are compared within a family.
    why : str
        The words of the name that led to its role, or the source of the role.
    tasks : tuple of int
        Positions of the tasks in which it is used.
    view : LabelView or None
        None without a role.
    view_declared : bool
        Whether the view is declared; else it is the view of the principle.
    sources : tuple of str
        Sources of its images; empty if not stated.
    available : bool
        False for a part of a manifest whose list is not next to its header.
    stated_repeats : int
        Number of repeated lines that the manifest states.
    """

    __repr__ = short_repr

    name: str
    whole: str
    members: Int32s
    lines: Int32s
    read: PublishedList
    file: str = ""
    sha256: str = ""
    role: ListRole = ""
    played: str = ""
    family: str = ""
    why: str = ""
    tasks: tuple[int, ...] = ()
    view: LabelView | None = None
    view_declared: bool = False
    sources: tuple[str, ...] = ()
    available: bool = True
    stated_repeats: int = 0

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def unique(self) -> Int32s:
        """Positions of its images, each once, ascending."""
        return distinct(self.members)

    @cached_property
    def first_rows(self) -> Int32s:
        """First row of each of its images, in the order of `unique`."""
        return first_row_of_each(self.members, self.unique)

    def lines_of(self, images: Sequence[int]) -> list[str]:
        """Return its first line that names each image, such as ``t1_train line 12``; ``""`` if no line does."""
        if not len(self.unique):
            return [""] * len(images)
        at = np.minimum(np.searchsorted(self.unique, images), len(self.unique) - 1)
        lines, names = self.lines[self.first_rows[at]].tolist(), (self.unique[at] == images).tolist()
        return [f"{self.whole} line {line}" if is_named else "" for line, is_named in zip(lines, names, strict=True)]


class Unread(NamedTuple):
    """The reason why a file is not a list of images, its first line, and whether it may be a damaged list."""

    why: str
    first_line: str
    is_damaged: bool = False


@dataclass(frozen=True)
class ListSet:
    """Lists of a folder.

    Attributes
    ----------
    name : str
        Of the folder.
    lists : tuple of AuditedList
        By name, without roles.
    images : Images
        The distinct images, and the overlaps of lists.
    labels : mapping of str to Path
        COCO JSON files with annotations, by the name of their list.
    unread : mapping of str to Unread
        Files that are not lists of images.
    files : mapping of str to PublishedFile
        Files of a known form, by their path below the folder, including files that name classes.
    others : mapping of str to int
        Number of files with each other suffix, except photos that a ``data.yaml`` lists.
    """

    name: str
    lists: tuple[AuditedList, ...]
    images: Images
    labels: Mapping[str, Path] = field(default_factory=dict)
    unread: Mapping[str, Unread] = field(default_factory=dict)
    files: Mapping[str, PublishedFile] = field(default_factory=dict)
    others: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lists)

    @cached_property
    def folder(self) -> str:
        """The common folder of all lists, with its slash; reports print names below it."""
        folders = [listed.name.rpartition("/")[0] for listed in self.lists]
        common = os.path.commonpath(folders) if folders and all(folders) else ""
        return f"{common}/" if common else ""

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each list by its name."""
        return {listed.name: index for index, listed in enumerate(self.lists)}

    @property
    def photo_folder(self) -> str:
        """The folder of a ``data.yaml`` that lists photos; empty without such a file."""
        files = (file for file in self.files.values() if file.form == "data yaml" and file.lists)
        return next((str(file.path.parent) for file in files), "")

    def shared(self, first: AuditedList, second: AuditedList) -> int:
        """Return the number of images that two lists share."""
        return int(self.images.overlaps[self.index[first.name], self.index[second.name]])


def read_lists(folder: Path, *, namespace: str = "", but: Sequence[Path] = ()) -> ListSet:
    """Return every list of a folder and its subfolders.

    Every form that `curation.sources.published_list` recognises is read. Files of class names are not lists. Other
    files are skipped and reported. If COCO JSON with annotations and a text file have the same name, the text is the
    list and the JSON its labels. `curation.extensions.audit.identity` defines which entries are the same image.

    Parameters
    ----------
    folder : Path
    namespace : str
        Namespace of ids whose form indicates none. A namespace other than COCO's and VOC's applies to all ids without a
        written namespace.
    but : sequence of Path
        Files to skip, such as the file of the tasks.

    Raises
    ------
    MissingFileError
        The folder or a file does not exist or cannot be read.
    UsageError
        No list is found, a file is too large to be a list, or there are too many lists.
    PathEscapeError
        A file is a link that leads outside the folder.
    ImageIdError
        The namespace is malformed.
    """
    if namespace:
        ImageId(namespace, "0")
    if not folder.is_dir():
        raise missing_path("The folder of lists does not exist", folder)
    entries: dict[str, tuple[str, PublishedList]] = {}
    labels: dict[str, Path] = {}
    unread: dict[str, Unread] = {}
    files: dict[str, PublishedFile] = {}
    paths, others = files_below_folder(folder)
    paths += [yaml for yaml in [yolo_file(folder)] if yaml is not None and yaml not in paths]
    labels_of_photos = _label_files(paths)
    paths = [path for path in paths if path not in labels_of_photos]
    if labels_of_photos:
        others["label files"] = len(labels_of_photos)
    for path, file in _published(folder, paths, but):
        name = path.relative_to(folder).as_posix()
        if isinstance(file, Unread):
            unread[name] = file
            continue
        files[name] = file
        if file.form == "data yaml":
            _leave_out_photos(others, file)
        if file.form == "class names" and not CLASS_FILE.search(path.stem):
            texts = file.classes[""]
            why = f"words such as class names on its {counted(len(texts), 'line')}, not files"
            unread[name] = Unread(why, texts[0][:80])
        for key, listed in _named_lists(file):
            below = f"/{key}" if key else ""
            list_name = list_of(name) + below
            if file.annotated:
                labels[list_name] = path
            # Next to a text file of the same name, an array of ids is a separate list, and COCO JSON holds labels.
            if list_name not in entries or not file.annotated:
                entries[f"{name}{below}" if list_name in entries else list_name] = name, listed
        if len(entries) > MAX_LISTS:
            raise UsageError("Too many lists to compare", where=str(folder), expected=f"at most {MAX_LISTS:,}")
    if not entries and not any(file.form in ("class roles", "class names", "map") for file in files.values()):
        if labels_of_photos:
            _refuse_labels(folder, labels_of_photos)
        reasons = "; ".join(f"{name}: {refusal.why}" for name, refusal in list(unread.items())[:3])
        content, hint = reasons or "no such file", None
        try:
            if not reasons and class_folders(folder) is not None:
                content = "class folders"
                source = shlex.quote(str(folder))
                hint = f"curation init hierarchy --source {source}, and audit the benchmark that it makes"
        except CurationError as error:
            content, hint = error.found or content, error.hint
        raise UsageError("No list of images found", where=str(folder), expected=EXPECTED, found=content, hint=hint)
    names = sorted(entries)
    images = images_of([entries[name][1] for name in names], namespace)
    lists = tuple(
        AuditedList(name, name, rows, listed.lines, listed, file, f"sha256:{files[file].sha256}")
        for name, rows in zip(names, images.members, strict=True)
        for file, listed in [entries[name]]
    )
    return ListSet(folder.resolve().name, lists, images, labels, unread, files, others)


def _leave_out_photos(others: Counter[str], file: PublishedFile) -> None:
    """Subtract the photos that a ``data.yaml`` lists, and their label files, from the counts of unopened files."""
    photos = [Path(text) for listed in file.lists for text in listed.paths.decode().split("\n")[:-1]]
    present = Counter(photo.suffix.lower() for photo in photos if (file.path.parent / photo).is_file())
    present["label files"] = sum(path.is_file() for path in file.named_files)
    for kind, count in present.items():
        others[kind] = max(others[kind] - count, 0)


def _label_files(paths: Sequence[Path]) -> set[Path]:
    """Return the label files: texts with the boxes of a photo, or empty texts.

    They are beside the photo, in a folder ``labels``, or in a folder of which most files are label files.
    """
    labels = set[Path]()
    texts = (path for path in paths if path.suffix == ".txt" and path.name != CLASS_NAMES)
    for home, files in grouped(texts, lambda path: path.parent).items():
        small = [path for path in files if path.stat().st_size <= LONGEST_LABELS]
        data = {path: path.read_bytes() for path in small}
        boxes = [path for path in small if box_line(data[path]) is not None]
        empty = [path for path in small if not data[path] or data[path].isspace()]
        if "labels" in home.parts or (len(boxes) >= _FEWEST_LABELS and 2 * len(boxes) + len(empty) > len(files)):
            labels.update(boxes, empty)
        else:
            beside = (path for path in boxes + empty if any(path.with_suffix(end).is_file() for end in PHOTO_SUFFIXES))
            labels.update(beside)
    return labels


def _refuse_labels(folder: Path, labels: Collection[Path]) -> None:
    """Raise `UsageError` for a folder of label files without a ``data.yaml``, with a command that writes one."""
    parts = dict[str, str]()
    for home in sorted(path for path in folder.rglob("*") if path.is_dir() and "labels" not in path.parts):
        below = home.relative_to(folder)
        part = next(filter(None, map(part_of_folder, reversed(below.parts))), "")
        if part and "images" in below.parts and part not in parts:
            parts[part] = below.as_posix()
    numbers = {
        line.split()[0] for path in labels for line in path.read_text("utf-8", "replace").splitlines() if line.strip()
    }
    names = list(map(str, range(1 + max((int(text) for text in numbers if text.isdecimal()), default=0))))
    content = " ".join(
        shlex.quote(f"{part}: {below}") for part, below in [*parts.items(), ("names", json.dumps(names))]
    )
    yaml = shlex.quote(str(folder / YAML_NAMES[0]))
    raise UsageError(
        "No list of images found",
        where=str(folder),
        expected="a data.yaml that names the folders of train, val and test",
        found=f"{counted(len(labels), 'label file')}, with numbers such as the boxes of an image",
        hint=f"printf '%s\\n' {content} > {yaml}"
        if parts
        else "audit the lists that name the images, or the annotations as a source: --source NAME=PATH",
    )


def list_of(file: str) -> str:
    """Return the name of the list in a file, by its path below the folder."""
    return PurePosixPath(file.removesuffix(".gz")).with_suffix("").as_posix()


def _published(
    folder: Path, paths: Sequence[Path], but: Sequence[Path]
) -> Iterator[tuple[Path, PublishedFile | Unread]]:
    """Yield the files that may hold lists: files that name other files first, and texts before JSON files."""
    from tqdm import tqdm

    skipped = {path.resolve() for path in but}
    order = dict.fromkeys(YAML_NAMES, -1)
    paths = sorted(
        (path for path in paths if path.resolve() not in skipped),
        key=lambda path: (order.get(path.name.lower(), path.suffix.lower() == ".json"), path.as_posix()),
    )
    room, referenced = MAX_BYTES, set[Path]()
    for path in tqdm(paths, desc="reading lists", unit=" files", disable=None, leave=False):
        if path in referenced:
            continue
        room -= _require_room(inside(folder, path.relative_to(folder).as_posix()), room)
        try:
            file = _read(path, folder)
        except AnnotationFormatError as reason:
            line = (reason.where or "").removeprefix(str(path)).strip(" ,:")
            message = f"{reason.what[0].lower()}{reason.what[1:]}"
            why = ": ".join(text for text in (message, line, reason.found) if text)
            yield path, Unread(why, first_line(path), isinstance(reason, DamagedFileError))
            continue
        referenced.update(file.named_files)
        yield path, file


def _read(path: Path, folder: Path) -> PublishedFile:
    try:
        file = read_published(path, folder)
    except EmptyListError:
        input_file = InputFile(path, kind="list")
        blank = PublishedList("", b"", np.empty(0, np.int32))
        return PublishedFile(path, "id list", input_file.size, input_file.sha256.removeprefix("sha256:"), (blank,))
    for listed in file.lists:
        if listed.name and (not listed.name.isprintable() or len(listed.name) > _LONGEST_KEY):
            raise AnnotationFormatError("A list in it has no valid name", found=repr(listed.name[:40]))
    return file


def _named_lists(file: PublishedFile) -> Iterator[tuple[str, PublishedList]]:
    """Yield the lists of a file with their names in reports: ``val.txt`` in a JSON object is ``val``."""
    lists = {listed.name: listed for listed in file.lists}
    for key in sorted(lists):
        short = key.removesuffix(".txt")
        yield key if short in lists or not short else short, lists[key]


def _require_room(path: Path, room: int) -> int:
    """Return the size of a file in bytes; raise `UsageError` if it, or all lists together, are too large."""
    if (size := path.stat().st_size) > min(MAX_FILE_BYTES, room):
        is_long = size > MAX_FILE_BYTES
        raise UsageError(
            "A file is too large to be a list" if is_long else "The lists are too large in total",
            where=str(path),
            expected=f"at most {MAX_FILE_BYTES if is_long else MAX_BYTES:,} bytes",
            found=f"{size:,}",
            hint="move the other files out of the folder",
        )
    return size


def names_of_list(key: str) -> tuple[str, ...]:
    """Return the list names that an option may mean, as users may write a suffix."""
    return key, key.removesuffix(".txt"), key.removesuffix(".json")
