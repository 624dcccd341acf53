"""Reader of published image lists in any form, normalised to the stems of their files.

One list may be written as ``imagenet_1k/val/ILSVRC2012_val_00024235.JPEG 0``, as ``ILSVRC2012_val_00024235`` or as an
entry of a JSON array. All forms share the *stem*: the name of the file without folder and suffix. Lists are
compared by stems, and the digest of the stems identifies a list in any form.

As a source, a list states which images exist. For a dataset that is read from lists (DTD, NINCO, …), the id is the stem
of a file with as many folders as its images need to be distinct: ``dtd:banded/banded_0002``.

A list may have millions of lines. Its entries stay in columns: the bytes of a text with one entry a line.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import numpy as np

from curation.core.columns import arrow_of
from curation.core.errors import AnnotationFormatError, CurationError, DamagedFileError, UsageError
from curation.core.files import files_below
from curation.core.ids import MAX_NATIVE_LENGTH, ImageId, check_native, ilsvrc2012_classes, native_number, native_of
from curation.core.reading import InputFile, beginning
from curation.sources.datasets import ILSVRC_LABELS, family, folders_in_ids, is_known, is_listed, namespace_of
from curation.sources.entries import (
    LONGEST_LINE,
    MOST_CLASS_NAMES,
    NO_LABEL,
    SHARE,
    SHOWN,
    EmptyListError,
    Form,
    OddLine,
    PublishedFile,
    PublishedList,
    TextColumn,
    name_classes,
    text_column,
)
from curation.sources.foreign_forms import refuse_foreign_text
from curation.sources.integrity import check_unique
from curation.sources.list_roles import are_parts
from curation.sources.records import read_json, read_list_table, read_parquet
from curation.sources.source import Bools, FileRecord, Images, Source, texts
from curation.sources.stems import ANY_FILE, FILE_NAME, cells_of, label_of, stems, suffix_widths, text_of
from curation.sources.text_lines import (
    SAMPLED_LINES,
    VALUES,
    Lines,
    are_frames,
    are_numbers,
    are_values,
    box_line,
    read_entries,
    read_file_lines,
    read_names,
    require_utf8,
)

PHOTO_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")
_LENGTHS = frozenset(range(1, MAX_NATIVE_LENGTH + 1))
_CLIMBS = re.compile(r"\A(?:\.\./)+")
PHOTO_SUFFIX = r"\.(?:jpe?g|png)"
_SUFFIX = re.compile(rf"{PHOTO_SUFFIX}\Z", re.IGNORECASE)
_ROOTED = re.compile(rb"(/[^\s.]+?)/?[ \t\r]*\n(?=[^\n]+\.[A-Za-z0-9]{2,5}\t\d+\r?\n)")
_FILLED = re.compile(rb"(?m)^(?=.)")
_CLIMBING = re.compile(rb"^(?:/|.*(?:^|/)\.\.(?:/|$))", re.MULTILINE)
MAX_BYTES = 1 << 30
LIST_SUFFIXES = (".txt", ".list", ".lst", ".csv", ".tsv", ".json", ".jsonl", ".odgt", "")
"""Suffixes of files that may be lists, in addition to `YAML_NAMES`."""
YAML_NAMES = ("data.yaml", "dataset.yaml", "data.yml", "dataset.yml")
_TABLES = (".arrow", ".feather", ".xlsx")
"""Suffixes of files that may be lists but are not supported."""
_NO_LISTS = ("readme", "license", "licence", "makefile", "dockerfile", "notice", "authors", "requirements")
_NEVER_EMPTY = (".json", ".csv", ".tsv")
"""Suffixes of files that cannot be empty: their form needs a bracket or a header."""
_FEWEST = 3
_YAML_PARTS = ("train", "val", "test")
_DEEPEST_YAML = 100
_LARGEST_YAML = 1 << 20


def list_files(folder: Path) -> list[Path]:
    """Return the files below a folder that may be lists by their suffix, without hidden files, sorted by path."""
    return files_below_folder(folder)[0]


def files_below_folder(folder: Path) -> tuple[list[Path], Counter[str]]:
    """Return the files of `list_files`, and the number of other files below the folder by suffix.

    Hidden files, and files such as README that accompany lists, are not counted.
    """
    lists, others = list[Path](), Counter[str]()
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(parent, name)
            if name.startswith(".") or accompanies_lists(name):
                continue
            if not _may_be_list(name):
                others[path.suffix.lower()] += 1
            elif path.is_file():
                lists.append(path)
    return sorted(lists, key=lambda path: path.relative_to(folder).as_posix()), others


def first_line(path: Path) -> str:
    """Return the beginning of the first non-blank line of a file, to show in an error."""
    text = beginning(path, LONGEST_LINE, kind="list").decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "\ufffd" for char in text.strip().partition("\n")[0].strip()[:80])


def _may_be_list(name: str) -> bool:
    path = Path(name.lower().removesuffix(".gz"))
    return path.name in YAML_NAMES or path.suffix in (*LIST_SUFFIXES, ".parquet", *_TABLES)


def accompanies_lists(name: str) -> bool:
    """Return whether a file accompanies lists by its name, such as a README or a licence."""
    return name.lower().partition(".")[0] in _NO_LISTS and not name.lower().endswith((".jpg", ".jpeg", ".png"))


def read_published(path: Path, root: Path | None = None) -> PublishedFile:
    """Return the lists of a published file of any form, recognised by its content (class names also by its name).

    Parameters
    ----------
    path : Path
    root : Path, optional
        Folder that must contain the files named by a ``data.yaml``; by default the folder of the YAML.

    Raises
    ------
    MissingFileError
        The file does not exist or cannot be read.
    UsageError
        The file is larger than a list can be.
    EmptyListError
        The file has no entry.
    AnnotationFormatError
        The file is not text, or is JSON of an unknown form.
    """
    try:
        size = path.stat().st_size
    except OSError:
        size = 0
    if size > MAX_BYTES:
        raise UsageError(
            "The file is too large to be a list", where=str(path), expected=f"at most {MAX_BYTES:,} bytes",
            found=f"{size:,}",
        )  # fmt: skip
    file = InputFile(path, kind="list")
    read = contents_of(file.data, path, root)
    return PublishedFile(path, size=file.size, sha256=file.sha256.removeprefix("sha256:"), **read)


def contents_of(data: bytes, path: Path, root: Path | None = None) -> dict[str, Any]:
    """Return the form and the lists of a file in memory, as fields of a `PublishedFile`."""
    where, suffix = str(path), Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix in _TABLES:
        raise AnnotationFormatError(
            "Tables of this kind are not read", where=where, expected="text, CSV or JSON", hint="export it as CSV"
        )
    if not data or data.isspace():
        if suffix in _NEVER_EMPTY:
            raise DamagedFileError("The file is empty", where=where, expected=f"a {suffix[1:]} file")
        raise EmptyListError("The list is empty", where=where, expected="at least one entry")
    refuse_foreign_text(data, path)
    if suffix == ".parquet":
        return read_parquet(path)
    if suffix in (".yaml", ".yml"):
        return _from_yaml(data, path, root or path.parent)
    if data[:LONGEST_LINE].lstrip()[:1] in (b"{", b"["):
        return read_json(data, where, suffix)
    if b"\0" in data:
        raise DamagedFileError("The file is not text", where=where, found=f"a zero byte at {data.index(0):,}")
    return read_list_table(data, where, suffix) or _from_text(data, path)


def _from_text(data: bytes, path: Path) -> dict[str, Any]:
    from pyarrow import compute

    require_utf8(data, str(path))
    if (boxes := box_line(data)) is not None:
        raise AnnotationFormatError(
            "The lines are numbers, such as boxes of an image, without names of images", where=f"{path}, line 1",
            expected="one image a line", found=f"{boxes} numbers in a line",
            hint="give the lists that name the images, or the annotations themselves: --source NAME=PATH",
        )  # fmt: skip
    if rooted := _ROOTED.match(data):
        # Manifests of audio: line 1 is the folder of all files.
        below = _from_text(b"\n" + data[rooted.end() :], path)
        inside = tuple(replace(part, paths=_FILLED.sub(rooted[1] + b"/", part.paths)) for part in below["lists"])
        return below | {"lists": inside, "notes": (f"line 1 is the folder of all files: {rooted[1].decode()!a}",)}
    ended = data.endswith(b"\n")
    if not ended:
        data += b"\n"
    cells = cells_of(data)
    if are_values(cells.slice(0, SAMPLED_LINES).to_pylist()):
        raise AnnotationFormatError(VALUES, where=f"{path}, line 1", expected="one image a line")
    if are_numbers(cells):
        return {"form": "id list", "lists": (_of_numbers(data, len(cells), ended=ended),)}
    lines, refused, odd = read_entries(data)
    known: dict[Form, Any] = {"imglist": lines.is_imglist, "voc list": lines.is_voc}
    forms: list[Form] = [form for form, hits in known.items() if hits.sum() >= SHARE * max(len(lines), 1)]
    form = forms[0] if forms else "id list"
    if len(lines) and (read := _of_columns(lines, form, path.name)) is not None:
        if read.get("lists"):
            [listed] = read["lists"]
            listed = replace(listed, odd=listed.odd + refused, odd_lines=_first([*odd, *listed.odd_lines]))
            read |= {"lists": tuple(_by_part(listed)) if are_parts(listed.groups) else (listed,)}
        return read
    if form == "id list" and lines.is_sentence.any():
        odd += lines.odd(lines.is_sentence, "it holds several words")
        refused += int(lines.is_sentence.sum())
        lines = lines.at(~lines.is_sentence)
    if refused > len(lines):
        [first] = _first(odd)[:1]
        raise AnnotationFormatError(
            "The file is not a list of images", where=f"{path}, line {first.line}", expected="one entry a line",
            found=f"{first.reason}; {refused:,} such lines of {len(lines) + refused:,}",
        )  # fmt: skip
    if form == "id list":
        entries, labels = lines.cells, None
        short, reason = _is_cut_path(lines), "its path is cut"
        without = short
    else:
        # An entry whose form differs from the others has no label and is reported.
        fits, reason = known[form], "it has no label"
        entries = compute.if_else(arrow_of(fits), lines.before, lines.cells)
        labels, without = np.where(fits, lines.labels, NO_LABEL).astype(np.int32), ~fits
        short = ~fits & ~lines.is_spaced & (lines.labels == NO_LABEL)
    listed = PublishedList(
        "", text_of(entries), lines.numbers, labels, odd=refused + int(without.sum()),
        odd_lines=_first([*odd, *lines.odd(without, reason)]), short=int(short.sum()),
        short_lines=tuple(lines.odd(short, reason)),
    )  # fmt: skip
    if form == "imglist" and not FILE_NAME.search(entries[0].as_py()):
        folders = text_column(entries)
        if are_frames(folders, lines.cells):
            form, paths = "frames", text_of(lines.cells)
            listed = replace(listed, paths=paths, labels=None, by_columns=True, columns={"sequence": folders})
    return {"form": form, "lists": (listed,)}


def _by_part(listed: PublishedList) -> Iterator[PublishedList]:
    """Yield the lists of the parts that are the labels of a list; the first reports lines that are not entries."""
    cells = cells_of(listed.paths)
    others: dict[str, Any] = {"odd": 0, "odd_lines": (), "short": 0, "short_lines": ()}
    for number, part in enumerate(listed.groups):
        rows = listed.group_of == number
        parted = replace(listed, name=part, paths=text_of(cells.filter(arrow_of(rows))), lines=listed.lines[rows])
        columns = {name: TextColumn(column.values, column.of[rows]) for name, column in listed.columns.items()}
        yield replace(parted, groups=(), group_of=None, columns=columns, **(others if number else {}))


def _of_numbers(data: bytes, count: int, *, ended: bool) -> PublishedList:
    width, last = data.index(b"\n"), data[:-1].rpartition(b"\n")[2]
    is_cut = not ended and len(last) < width and (width + 1) * (count - 1) + len(last) + 1 == len(data)
    cut = (OddLine(count, "its number is cut", last.decode()),) if is_cut and count > _FEWEST else ()
    return PublishedList(
        "", data, np.arange(1, count + 1, dtype=np.int32), are_stems=True, odd=len(cut), odd_lines=cut,
        short=len(cut), short_lines=cut,
    )  # fmt: skip


def _first(odd: Sequence[OddLine]) -> tuple[OddLine, ...]:
    return tuple(sorted(odd, key=lambda entry: entry.line)[:SHOWN])


def _of_columns(lines: Lines, form: Form, name: str) -> dict[str, Any] | None:
    """Return the lists of lines with several words, or class names; None if each line is one entry."""
    split = lines.is_spaced if form != "id list" else lines.is_spaced | (lines.labels != NO_LABEL)
    several = split.sum() >= SHARE * (len(lines) - 1)
    if several and (read := read_file_lines(lines)) is not None:
        return read
    if form == "id list" and len(lines) <= MOST_CLASS_NAMES:
        names = lines.cells.to_pylist()
        if name_classes(names, hinted=name):
            return {"form": "class names", "classes": {"": tuple(names)}}
    return read_names(lines) if several and form == "id list" else None


def _is_cut_path(lines: Lines) -> Bools:
    """Return a mask of lines that are cut paths: the last line, if all others are files."""
    cut = np.zeros(len(lines), np.bool_)
    if len(cut) >= _FEWEST and [bool(FILE_NAME.search(lines.cells[row].as_py())) for row in (0, -1)] == [True, False]:
        cut[-1] = suffix_widths(lines.cells, ANY_FILE)[:-1].all()
    return cut


def _from_yaml(data: bytes, path: Path, root: Path) -> dict[str, Any]:
    """Return the lists that a ``data.yaml`` names below its folder, and the photos of the folders that it names."""
    content = safe_yaml(data, str(path))
    lists, files, notes = list[PublishedList](), list[Path](), list[str]()
    base = path.parent / str(content.get("path") or "")

    def is_below(path: Path) -> bool:
        return path.resolve().is_relative_to(root.resolve())

    for key in _YAML_PARTS:
        value = content.get(key)
        for name in value if isinstance(value, list) else [value] if value else []:
            # Tools write ../train/images for a folder below that of the YAML.
            tried = (base / str(name), path.parent / str(name), path.parent / _CLIMBS.sub("", str(name)))
            target = next((candidate for candidate in tried if candidate.exists() and is_below(candidate)), tried[0])
            entry = f"{key}: {ascii(str(name))[:200]}"
            if not is_below(target):
                notes.append(f"{entry} leads out of the folder and was not read")
            elif target.is_dir():
                in_folder = [photo for _, photo, _ in files_below(str(target), PHOTO_SUFFIXES)]
                below = [Path(os.path.relpath(target / photo, path.parent)).as_posix() for photo in in_folder]
                files += [path.parent / label_of(photo) for photo in below]
                lists += _photo_lists(key, below)
                notes += [f"{entry} holds no photo"] * (not below)
            elif not target.is_file():
                notes.append(f"{entry} is missing")
            elif target.name.lower() in YAML_NAMES:
                notes.append(f"{entry} is not a list")
            else:
                read = read_published(target)
                photos = [path for listed in read.lists for path in listed.paths.decode().split("\n")[:-1]]
                files += [target, *(base / label_of(photo) for photo in photos)]
                lists += [replace(listed, name="/".join(filter(None, (key, listed.name)))) for listed in read.lists]
    names = content.get("names")
    names = list(names.values()) if isinstance(names, dict) else names if isinstance(names, list) else []
    if not (lists or names or notes):
        raise AnnotationFormatError("The YAML names no lists", where=str(path), expected=", ".join(_YAML_PARTS))
    return {
        "form": "data yaml", "lists": tuple(lists), "classes": {"": tuple(map(str, names))} if names else {},
        "notes": tuple(notes), "named_files": tuple(files),
    }  # fmt: skip


def _photo_lists(key: str, names: Sequence[str]) -> list[PublishedList]:
    """Return photos as a list, or no list if there are none or a name is not printable."""
    if not names or not all(map(str.isprintable, names)):
        return []
    paths = "".join(f"{name}\n" for name in names).encode()
    return [PublishedList(key, paths, np.arange(1, len(names) + 1, dtype=np.int32))]


def safe_yaml(data: bytes, where: str, error: type[CurationError] = AnnotationFormatError) -> dict[str, Any]:
    """Return the object of a YAML text without tags and aliases; raise `error` for another text."""
    import yaml

    try:
        if len(data) > _LARGEST_YAML:
            raise ValueError("it is too large")
        depth = 0
        for event in yaml.parse(data, yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None):
                raise ValueError("a tag or an alias")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            # The time grows with the square of the depth.
            if depth > _DEEPEST_YAML:
                raise ValueError(f"it nests deeper than {_DEEPEST_YAML} levels")
        content = yaml.safe_load(data)
        if not isinstance(content, dict):
            raise ValueError(type(content).__name__)
        return content
    except (yaml.YAMLError, ValueError, RecursionError) as reason:
        raise error(
            "The YAML cannot be read", where=where, expected="an object with train, val, test and names, without tags",
            found=str(reason)[:200],
        ) from None  # fmt: skip


def read_listed(path: Path, *, dataset: str, part: str) -> Source:
    """Return the images of a list as a source without boxes; classes are those of the list, else the folders of ids.

    For a dataset with other annotations than lists, a line contains only an id, with or without namespace, folder and
    photo suffix. COCO's numbers are padded with zeros.

    Raises
    ------
    MissingFileError, UsageError, AnnotationFormatError
        See `read_published` and `only_list`; or a line is not an id of the dataset.
    DuplicateIdError
        An image is listed twice.
    """
    file = read_published(path)
    listed, namespace = only_list(file), namespace_of(dataset)
    natives = natives_of(listed, namespace, str(path))
    record = FileRecord(path.name, f"sha256:{file.sha256}", file.size, len(natives))
    if not is_listed(dataset):
        natives = _bare_ids(listed, natives, namespace, str(path))
    check_unique(natives, "image", lambda row: f"{path}, line {listed.lines[row]}")
    if not is_listed(dataset):
        return Source.of_labels(dataset, part, Images.of(natives), [], record)
    paths = listed.paths.decode().split("\n")[:-1]
    classes = list[str]()
    if listed.group_of is not None:
        classes = [listed.groups[number] for number in listed.group_of.tolist()]
    elif dataset in ILSVRC_LABELS and listed.labels is not None and {*listed.labels.tolist()} <= {*range(1000)}:
        classes = [ilsvrc2012_classes()[label] for label in listed.labels.tolist()]
    elif folders_in_ids(dataset):
        classes = [text.replace("\\", "/").rpartition("/")[0].rpartition("/")[2] for text in paths]
    images = Images.of(natives, text_ids=texts(natives), file_names=paths)
    return Source.of_labels(dataset, part, images, classes if all(classes) else [], record)


def _bare_ids(listed: PublishedList, natives: Sequence[str], namespace: str, where: str) -> list[str]:
    """Return ids in the form of their dataset, from lines that contain only an id."""
    is_numbered = family(namespace) in ("coco", "voc")
    if not (is_numbered or listed.labels is not None or b" " in listed.paths or ":" in "\n".join(natives)):
        return list(natives)
    texts = listed.paths.decode().split("\n")
    for row, native in enumerate(natives):
        is_id = native_number(native) is not None if is_numbered else ":" not in native and " " not in texts[row]
        if not is_id or listed.labels is not None:
            raise AnnotationFormatError(
                "A line of the list is not an image id", where=f"{where}, line {listed.lines[row]}",
                expected=f"one id of {namespace} a line", found=ascii(texts[row][:80]),
            )  # fmt: skip
    return [native_of(native, namespace) for native in natives]


def only_list(file: PublishedFile) -> PublishedList:
    """Return the only list of a file, in which every line is an entry.

    Raises
    ------
    AnnotationFormatError
        The file does not have exactly one list, or the form of a line differs from the others.
    """
    if len(file.lists) == 1 and not file.lists[0].odd:
        return file.lists[0]
    odd = file.lists[0].odd_lines[0] if len(file.lists) == 1 else None
    raise AnnotationFormatError(
        "The file is not a single list of images",
        where=str(file.path) if odd is None else f"{file.path}, line {odd.line}",
        expected="one image per line, all lines in the same form",
        found=f"{len(file.lists)} lists ({file.form})" if odd is None else f"{odd.reason}: {odd.text!r}",
    )


def natives_of(listed: PublishedList, namespace: str, where: str) -> Sequence[str]:
    """Return the id of each entry within a namespace, in the order of the list.

    Raises
    ------
    AnnotationFormatError
        A path is absolute, contains ``..``, lacks a folder of its id, or is not a path.
    """
    paths = _paths_below_root(listed, where)
    folders = folders_in_ids(namespace)
    if folders <= 0:
        natives = (stems(paths, parents=-1) if folders else listed.stems).decode().split("\n")[:-1]
    else:
        natives = listed.parent_stems.decode().split("\n")[:-1]
        outer = paths
        for _ in range(folders - 1):
            outer = re.sub(rb"/[^/\n]*$", b"", outer, flags=re.MULTILINE)
            above = stems(outer, parents=1).decode().split("\n")[:-1]
            natives = [f"{folder.rpartition('/')[0]}/{native}" for folder, native in zip(above, natives, strict=True)]
    natives = [native.removeprefix(f"{namespace}:") for native in natives]
    # Most lists hold plain names: one check of all is faster than a million checks.
    joined = "\n".join(natives)
    is_plain = joined.replace("\n", "").isprintable() and " " not in joined and (folders < 0 or "/" not in joined)
    if is_plain and folders <= 0 and "\n/" not in f"\n{joined}" and {*map(len, natives)} <= _LENGTHS:
        return natives
    for row, native in enumerate(natives):
        check_native(native)
        if native.count("/") != folders >= 0 or native.startswith("/"):
            raise AnnotationFormatError(
                "A path of the list lacks the folder that belongs to its id",
                where=f"{where}, line {listed.lines[row]}",
                expected=f"at least {folders} folders before the name of an image of {namespace}",
                found=repr(native[:80]),
            )
    return natives


def listed_image_ids(listed: PublishedList, namespace: str, where: str) -> list[str]:
    """Return the id of each entry, ``dtd:banded/banded_0002``, in the order of the list.

    For an unknown dataset, an id keeps the last folder if there is one, since stems may repeat.

    Raises
    ------
    AnnotationFormatError
        See `natives_of`.
    """
    if is_known(namespace):
        natives = [native_of(native, namespace) for native in natives_of(listed, namespace, where)]
    else:
        _paths_below_root(listed, where)
        natives = listed.parent_stems.decode().split("\n")[:-1]
    return [str(ImageId(namespace, native.removeprefix(f"{namespace}:"))) for native in natives]


def _paths_below_root(listed: PublishedList, where: str) -> bytes:
    paths = listed.paths.replace(b"\\", b"/")
    if match := _CLIMBING.search(paths):
        row = paths.count(b"\n", 0, match.start())
        raise AnnotationFormatError(
            "A path of the list leaves its root",
            where=f"{where}, line {listed.lines[row]}",
            expected="a path below the root of the dataset",
            found=ascii(paths[match.start() :].split(b"\n", 1)[0].decode("utf-8", "replace"))[:80],
        )
    return paths


class ListedImage(msgspec.Struct, frozen=True):
    """One entry of ``images`` in a COCO file that is read as a list."""

    id: int | str
    file_name: str = ""


class ListedImages(msgspec.Struct, frozen=True):
    """The fields of a COCO file that is read as a list."""

    images: list[ListedImage]


def bare_id(text: str) -> str:
    """Return an id without leading folders and without photo suffix.

    >>> bare_id("JPEGImages/2008_000008.jpg")
    '2008_000008'
    """
    return _SUFFIX.sub("", PurePosixPath(text).name)
