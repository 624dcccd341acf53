"""Lists that others publish, in every form they come in: read, told apart, and normalised to the stems of their files.

One list may be written as ``imagenet_1k/val/ILSVRC2012_val_00024235.JPEG 0``, as ``ILSVRC2012_val_00024235`` or as an
entry of a JSON array. What all of them share is the *stem*: the name of the file without folder and suffix. Stems of
two files are compared, and digests of stems name a list whatever its form.

A list may have millions of lines. Its entries stay in columns: the bytes of a text with one entry a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.errors import AnnotationFormatError, DamagedFileError, UsageError
from curation.input_files import InputFile, beginning
from curation.sources.annotation_facts import read_coco_facts
from curation.sources.entries import (
    BYTE_ORDER_MARK,
    CLASS_FILE,
    LONGEST_LINE,
    MOST_CLASS_NAMES,
    NO_LABEL,
    SHARE,
    SHOWN,
    Column,
    EmptyListError,
    Form,
    ListDigests,
    OddLine,
    PublishedFile,
    PublishedList,
    encoded,
    name_classes,
)  # fmt: skip
from curation.sources.nested_json import read_json
from curation.sources.records import read_table
from curation.sources.stems import FILE_NAME, FILE_SUFFIXES, with_suffix
from curation.sources.text_lines import Lines, lines_of, numbers_alone
from curation.sources.word_columns import are_frames, read_files, read_names

if TYPE_CHECKING:
    from curation.sources.source import Bools

__all__ = [
    "CLASS_FILE", "LIST_SUFFIXES", "LONGEST_LINE", "MOST_CLASS_NAMES", "NO_LABEL", "YAML_NAMES", "Column",
    "EmptyListError", "Form", "ListDigests", "OddLine", "PublishedFile", "PublishedList", "first_line", "list_files",
    "read_coco_facts", "read_published",
]  # fmt: skip

MAX_BYTES = 1 << 30
LIST_SUFFIXES = (".txt", ".list", ".lst", ".csv", ".tsv", ".json", ".jsonl", ".odgt", "")
"""Suffixes of files that may hold a list, beside `YAML_NAMES`."""
YAML_NAMES = ("data.yaml", "data.yml")
_NO_LISTS = ("readme", "license", "licence", "makefile", "dockerfile", "notice", "authors", "requirements")
_FEWEST = 3
_YAML_PARTS = ("train", "val", "test")
_LARGEST_YAML = 1 << 20


def list_files(folder: Path) -> list[Path]:
    """Return the files below a folder that may hold lists by their suffix, hidden ones left out, sorted by path."""
    found = {path.relative_to(folder): path for path in folder.rglob("*") if _may_be_list(path.name)}
    seen = [one for one in found if not any(part.startswith(".") for part in one.parts) and found[one].is_file()]
    return [found[one] for one in sorted(seen, key=Path.as_posix)]


def first_line(path: Path) -> str:
    """Return the beginning of the first filled line of a file, to show what could not be read."""
    text = beginning(path, LONGEST_LINE, kind="list").decode("utf-8", "replace")
    return "".join(one if one.isprintable() else "\ufffd" for one in text.strip().partition("\n")[0].strip()[:80])


def _may_be_list(name: str) -> bool:
    named = Path(name.lower())
    return named.name in YAML_NAMES or (
        named.suffix in LIST_SUFFIXES and name.lower().partition(".")[0] not in _NO_LISTS
    )


def read_published(path: Path, root: Path | None = None) -> PublishedFile:
    """Read a published file of any form, by what it holds; its name only helps to tell class names.

    Parameters
    ----------
    path : Path
    root : Path, optional
        Folder that what a ``data.yaml`` names must not leave; by default its own.

    Raises
    ------
    MissingFileError
        The file does not exist or cannot be read.
    UsageError
        It is larger than a list can be.
    EmptyListError
        It has no entry.
    AnnotationFormatError
        It is no text, or JSON of no known form.
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
    given = InputFile(path, kind="list")
    data, where = given.data, str(path)
    if not data or data.isspace():
        raise EmptyListError("The list is empty", where=where, expected="at least one entry")
    if path.name.lower() in YAML_NAMES:
        read = _from_yaml(data, path, root or path.parent)
    elif data[:LONGEST_LINE].lstrip()[:1] in (b"{", b"["):
        read = read_json(data, where, path.suffix.lower())
    elif b"\0" in data:
        raise DamagedFileError("The file is not text", where=where, found=f"a zero byte at {data.index(0):,}")
    else:
        read = read_table(data, where, path.suffix.lower()) or _from_text(data, path)
        if given.has_byte_order_mark and read.get("lists"):
            read["lists"] = tuple(replace(one, traits={BYTE_ORDER_MARK: 1, **one.traits}) for one in read["lists"])
    return PublishedFile(path, size=given.size, sha256=given.sha256.removeprefix("sha256:"), **read)


def _from_text(data: bytes, path: Path) -> dict[str, Any]:
    ended = data.endswith(b"\n")
    if not ended:
        data += b"\n"
    if (count := numbers_alone(data)) is not None:
        width, last = data.index(b"\n"), data[:-1].rpartition(b"\n")[2]
        is_cut = not ended and len(last) < width and (width + 1) * (count - 1) + len(last) + 1 == len(data)
        cut = (OddLine(count, "its number is cut", last.decode()),) if is_cut and count > _FEWEST else ()
        one = PublishedList(
            "", data, np.arange(1, count + 1, dtype=np.int32), are_stems=True, odd=len(cut), odd_lines=cut,
            short=len(cut), short_lines=cut,
        )  # fmt: skip
        return {"form": "id list", "lists": (one,), "ended": ended}
    lines, number, refused, odd, traits = lines_of(data, str(path))
    entries = len(lines.numbers)
    known: dict[Form, Any] = {"imglist": lines.is_imglist, "voc list": lines.is_voc}
    found: list[Form] = [form for form, hits in known.items() if hits.sum() >= SHARE * max(entries, 1)]
    form = found[0] if found else "id list"
    told: dict[str, Any] = {"blank": number - refused - entries, "traits": traits}
    if entries and (read := _of_columns(lines, form, path.name)) is not None:
        if read.get("lists"):
            [one] = read["lists"]
            one = replace(one, odd=one.odd + refused, odd_lines=_first([*odd, *one.odd_lines]), **told)
            read |= {"lists": (one,), "ended": ended}
        return read
    if form == "id list" and lines.is_sentence.any():
        odd += lines.odd(lines.is_sentence, "it holds several words")
        lines = lines.at(~lines.is_sentence)
    refused, entries = refused + entries - len(lines.numbers), len(lines.numbers)
    if refused > entries:
        [first] = _first(odd)[:1]
        raise AnnotationFormatError(
            "The file is no list of images", where=f"{path}, line {first.line}", expected="one entry a line",
            found=f"{first.reason}; {refused:,} such lines of {entries + refused:,}",
        )  # fmt: skip
    if form == "id list":
        paths, labels = lines.texts(), None
        short, reason = _is_cut_path(lines, paths), "its path is cut"
        without = short
    else:
        # An entry that is not written as the others has no label, and is told.
        fits, reason = known[form], "it has no label"
        paths = lines.texts(np.where(fits, lines.before, lines.ends))
        labels, without = np.where(fits, lines.labels, NO_LABEL).astype(np.int32), ~fits
        short = ~fits & ~lines.is_spaced & (lines.before == lines.ends)
    one = PublishedList(
        "", paths, lines.numbers, labels, odd=refused + int(without.sum()),
        odd_lines=_first([*odd, *lines.odd(without, reason)]), short=int(short.sum()),
        short_lines=tuple(lines.odd(short, reason)), **told,
    )  # fmt: skip
    if form == "imglist" and not FILE_NAME.search(paths[:LONGEST_LINE].split(b"\n")[0].decode("utf-8", "ignore")):
        whole, folders = lines.texts(), encoded(paths)
        if are_frames(folders, whole):
            form = "frames"
            one = replace(one, paths=whole, labels=None, by_columns=True, columns={"sequence": folders})
    return {"form": form, "lists": (one,), "ended": ended}


def _first(odd: Sequence[OddLine]) -> tuple[OddLine, ...]:
    return tuple(sorted(odd, key=lambda one: one.line)[:SHOWN])


def _of_columns(lines: Lines, form: Form, name: str) -> dict[str, Any] | None:
    """Return what lines of several words hold, or names of classes; None where they are one entry each."""
    entries = len(lines.numbers)
    split = lines.is_spaced if form != "id list" else lines.is_spaced | (lines.before < lines.ends)
    several = split.sum() >= SHARE * (entries - 1)
    if several and (read := read_files(lines)) is not None:
        return read
    if form == "id list" and entries <= MOST_CLASS_NAMES:
        names = lines.texts().decode().split("\n")[:-1]
        if name_classes(names, hinted=name):
            return {"form": "class names", "classes": {"": tuple(names)}}
    return read_names(lines) if several and form == "id list" else None


def _is_cut_path(lines: Lines, paths: bytes) -> Bools:
    """Return which line is no file: the last, where it alone is none."""
    cut = np.zeros(len(lines.numbers), np.bool_)
    if len(cut) >= _FEWEST and not FILE_NAME.search(paths[:-1].rpartition(b"\n")[2].decode()):
        cut[-1] = with_suffix(paths, FILE_SUFFIXES) == len(cut) - 1
    return cut


def _from_yaml(data: bytes, path: Path, root: Path) -> dict[str, Any]:
    """Read the lists that a ``data.yaml`` names, below their folder; folders of images are not walked."""
    given = _yaml(data, str(path))
    lists, files, notes = list[PublishedList](), list[Path](), list[str]()
    base = path.parent / str(given.get("path") or "")
    for key in _YAML_PARTS:
        value = given.get(key)
        for name in value if isinstance(value, list) else [value] if value else []:
            place = base / str(name)
            place = place if place.exists() else path.parent / str(name)
            told = f"{key}: {ascii(str(name))[:200]}"
            if not place.resolve().is_relative_to(root.resolve()):
                notes.append(f"{told} leads out of the folder and was not read")
            elif place.is_dir():
                notes.append(f"{told} is a folder, which is not walked")
            elif not place.is_file():
                notes.append(f"{told} is missing")
            elif place.name.lower() in YAML_NAMES:
                notes.append(f"{told} is no list")
            else:
                read = read_published(place)
                files.append(place)
                lists += [replace(one, name="/".join(filter(None, (key, one.name)))) for one in read.lists]
    names = given.get("names")
    names = list(names.values()) if isinstance(names, dict) else names if isinstance(names, list) else []
    if not (lists or names or notes):
        raise AnnotationFormatError("The YAML names no lists", where=str(path), expected=", ".join(_YAML_PARTS))
    return {
        "form": "data yaml", "lists": tuple(lists), "classes": {"": tuple(map(str, names))} if names else {},
        "notes": tuple(notes), "named_files": tuple(files),
    }  # fmt: skip


def _yaml(data: bytes, where: str) -> dict[str, Any]:
    """Return the object of a YAML text without tags and aliases."""
    import yaml

    try:
        if len(data) > _LARGEST_YAML:
            raise ValueError("it is too large")
        events = list(yaml.parse(data, yaml.SafeLoader))
        if any(isinstance(one, yaml.AliasEvent) or getattr(one, "tag", None) for one in events):
            raise ValueError("a tag or an alias")
        given = yaml.safe_load(data)
        if not isinstance(given, dict):
            raise ValueError(type(given).__name__)
        return given
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise AnnotationFormatError(
            "The YAML cannot be read", where=where, expected="an object with train, val, test and names, without tags",
            found=str(error)[:200],
        ) from None  # fmt: skip
