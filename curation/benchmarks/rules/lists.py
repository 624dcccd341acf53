"""The rule ``lists``: image lists in files, each with role and digest; sources state the classes of the images."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from curation.benchmarks.parts import Part, Selection, figure_of, make_part, rule_note, source_entry
from curation.benchmarks.published import ClassTable, ListsOrigin, PublishedLists, draft, draft_with_tasks
from curation.benchmarks.rules.benchmark_file import (
    ROLES,
    BenchmarkFile,
    Expected,
    SourceTable,
    class_entries,
    entries_by_role,
    file_and_case,
    read_benchmark_file,
    read_toml,
    stated_in,
)
from curation.benchmarks.rules.starting import beginning, namespace_word, quoted, quoted_key
from curation.core.errors import CurationError, ProtocolError, UsageError
from curation.core.reading import read_declaration
from curation.core.wording import counted, slug
from curation.manifest.header import ClassEntry, Header, LabelView, Paper, PartEntry
from curation.manifest.importing import LISTS, AuthorsList, pin_lists
from curation.manifest.manifest import Manifest
from curation.manifest.views import positions_of
from curation.sources.list_roles import read_role
from curation.sources.published_list import list_files, only_list, read_published
from curation.sources.source import Source


class ListsParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[parameters]`` of the rule, which are empty."""


PARAMETERS = ListsParameters
USUAL_SOURCES = (LISTS, "images")
PARTS = (("PART", "the images of a list, or of some lines of it, in its order"),)
PAPER = None
_NAMESPACE = re.compile(r"([a-z][a-z0-9_]{0,31}):")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")


class _Published(msgspec.Struct, frozen=True, kw_only=True):
    """The tables ``[published.KEY]`` of a benchmark file, and the tables to which they refer."""

    published: dict[str, PublishedLists]
    paper: Paper | None = None
    views: dict[str, LabelView] = {}
    tasks: dict[str, dict[str, tuple[str, ...]]] = {}
    aliases: dict[str, str] = {}


class _PublishedAlone(_Published, frozen=True, kw_only=True):
    """A file with only such tables, such as a copy of a packaged file; each table of classes has a key."""

    classes: dict[str, ClassTable] = {}


def published_key(text: str) -> str:
    """Return KEY of the table ``[published.KEY]`` in ``FILE.toml/KEY``, or in a file with only this table.

    Raises
    ------
    ProtocolError
        The file has only several such tables, or is not TOML.
    """
    path, case = file_and_case(text)
    tables = read_toml(path)
    published = tables.get("published", {})
    keys = list(published) if isinstance(published, dict) else []
    if case:
        return case if case in keys and case not in tables.get("cases", {}) else ""
    if not keys or "parts" in tables or tables.get("rule", "lists") != "lists":
        return ""
    if len(keys) > 1:
        expected = ", ".join(f"{path}/{key}" for key in keys)[:300]
        raise ProtocolError("The file declares several lists", where=str(path), expected=expected)
    return str(keys[0])


def read_lists(text: str, key: str = "") -> tuple[Header, Mapping[str, Expected]]:
    """Return the draft of the lists that a user's file declares, and the figures that it expects.

    Parameters
    ----------
    text : str
        The file, or ``FILE/CASE`` for a case.
    key : str
        Key of a table ``[published.KEY]``; by default the lists are the tables ``[[parts]]``.

    Raises
    ------
    MissingFileError, ProtocolError
        The file, a part, a view, a class list, a task or a source does not exist.
    """
    if not key:
        benchmark = stated_in(read_benchmark_file(text))
        return _draft(benchmark, text), benchmark.expect
    path, _ = file_and_case(text)
    is_alone = "name" not in read_toml(path)
    declared = read_declaration(path, _PublishedAlone if is_alone else _Published, ProtocolError)
    lists = declared.published[key]
    tables = {"classes": getattr(declared, "classes", {}), "tasks": declared.tasks}
    for table, name in (("classes", lists.classes), ("tasks", lists.tasks)):
        if name and name not in tables[table]:
            expected = ", ".join(tables[table])[:300] or f"a table [{table}.{name}]"
            where = f"{path}: published.{key}"[:200]
            raise ProtocolError(f"Unknown {table}", where=where, expected=expected, found=repr(name[:80]))
    if is_alone:
        return draft_with_tasks(msgspec.to_builtins(declared), key, declared.aliases), {}
    # In a file of another rule, its sources and classes apply to the lists.
    benchmark = stated_in(read_benchmark_file(str(path)))
    lists = msgspec.structs.replace(lists, datasets=_datasets(benchmark) | lists.datasets)
    facts = {"published": {key: lists}, "paper": declared.paper, "views": declared.views}
    return draft(facts, key, classes=_classes(benchmark)), {}


def build_lists(draft: Header, folder: Path, opened: Mapping[str, Source], expect: Mapping[str, Expected]) -> Manifest:
    """Return the manifest of lists that a user's file declares.

    Parameters
    ----------
    draft, expect
        As `read_lists` returns them.
    folder : Path
        Folder in which the lists are searched by name, including subfolders.
    opened : mapping of str to Source
        Sources of the images. The images of a part are looked up if all of its sources are given.

    Raises
    ------
    DigestMismatchError, MissingFileError
        A list does not exist, or its digest differs from that in the file.
    ProtocolError
        A list names an image twice, or names an image that its sources lack.
    """
    pinned = pin_lists(draft, folder, opened)
    header, lists = pinned.header, pinned.lists
    if header.paper is None and (repeated := next((part for part in header.parts if part.repeats), None)):
        ids = lists[repeated.name]
        twice = Counter(ids).most_common(1)[0][0]
        raise ProtocolError(
            "A list names an image twice",
            where=f"{repeated.name}: {header.rule.parameters[repeated.name]}",
            expected="each image once",
            found=f"{twice} on lines {ids.index(twice) + 1} and {ids.index(twice, ids.index(twice) + 1) + 1}",
            hint="an id is the stem of a file name: if folders distinguish images, give --source "
            f"{repeated.sources[0]}=PATH, class folders or a table of the columns image (the path) and class",
        )
    # If the file does not name classes, those of the sources are known.
    names = dict.fromkeys(name for source in opened.values() for name in source.categories.names)
    classes = header.classes or entries_by_role({"known": names}, first=1)
    made = {part.name: Part(_counted(part, lists[part.name], classes, opened), lists[part.name])
            for part in header.parts}  # fmt: skip
    facts: dict[str, Any] = {
        "parts": tuple(part.entry for part in made.values()),
        "classes": classes,
        "sources": tuple(
            source_entry(entry.name, opened[entry.name]) if entry.name in opened else entry for entry in header.sources
        ),
        "figures": (*header.figures, *(figure_of(name, expected, made) for name, expected in expect.items())),
    }
    if header.paper is None:
        # The lists of a user are not published by authors.
        facts |= {"origin": "regenerated", "notes": (rule_note("lists", None), *header.notes)}
        facts["rule"] = msgspec.structs.replace(header.rule, protocol="lists")
    return Manifest(msgspec.structs.replace(header, **facts), lists)


def _draft(benchmark: BenchmarkFile, path: str) -> Header:
    names = [name for name in benchmark.sources if name != LISTS]
    if not benchmark.parts:
        message, expected = "The file names no list", '[[parts]] with name = "test", file = "test.txt", role = "test"'
        raise ProtocolError(message, where=path, expected=expected)
    for part in benchmark.parts:
        where = f"{path}: part {part.name}"
        unknown = [name for name in part.sources if name not in names]
        if unknown or not (part.sources or len(names) == 1):
            expected = f"sources = some of {', '.join(names) or 'the tables of [sources]'}"
            message = "Unknown source of a part" if unknown else "A part does not state the source of its images"
            raise ProtocolError(message, where=where, expected=expected[:300], found=", ".join(unknown)[:80] or None)
        if part.of:
            raise ProtocolError("The rule lists has no tasks", where=f"{where}: of", hint="one [[parts]] for each list")
    name, times = Counter(part.name for part in benchmark.parts).most_common(1)[0]
    if times > 1:
        raise ProtocolError("Two parts have the same name", where=path, found=name)
    origin = benchmark.sources.get(LISTS, SourceTable())
    lists = PublishedLists(
        name=benchmark.name,
        title=benchmark.title or benchmark.name,
        taxonomy=benchmark.taxonomy or "closed-set",
        lists=ListsOrigin(dataset=origin.dataset or "lists", part=origin.part, note=origin.meaning),
        parts=tuple(msgspec.structs.replace(part, sources=part.sources or tuple(names)) for part in benchmark.parts),
        notes=benchmark.notes,
        datasets=_datasets(benchmark),
    )
    facts = {"published": {"lists": lists}, "paper": benchmark.paper, "views": benchmark.views}
    return draft(facts, "lists", classes=_classes(benchmark))


def _datasets(benchmark: BenchmarkFile) -> dict[str, tuple[str, str]]:
    return {name: (benchmark.dataset(name), table.part) for name, table in benchmark.sources.items()}


def _classes(benchmark: BenchmarkFile) -> tuple[ClassEntry, ...]:
    return class_entries(benchmark) if any(benchmark.classes.of(role) for role in ROLES) else ()


def _counted(
    part: PartEntry, ids: Sequence[str], classes: Sequence[ClassEntry], opened: Mapping[str, Source]
) -> PartEntry:
    """Return the entry of a part with the object counts of its images, if all of its sources are given."""
    if not all(name in opened for name in part.sources):
        return part
    number, position = positions_of(ids, [opened[name] for name in part.sources])
    chosen = [
        Selection(name, opened[name], position[number == index].astype("int64"))
        for index, name in enumerate(part.sources)
    ]
    made = make_part(part.name, part.role, chosen, classes, view=part.view, rule=part.selection, order="listed").entry
    return msgspec.structs.replace(part, annotated_images=made.annotated_images, boxes=made.boxes)


def start_of_folder(folder: Path, name: str) -> list[str]:
    """Return the lines of a draft file: every list below a folder, with its digest and the role in its name.

    Raises
    ------
    UsageError
        No file below the folder is a list of images.
    """
    if not folder.is_dir():
        problem = f"The folder of lists {'is a file' if folder.is_file() else 'does not exist'}"
        raise UsageError(problem, where=str(folder), expected="curation init lists FOLDER")
    tables, left_out = list[str](), list[str]()
    names, files, namespaces = set[str](), set[str](), set[str]()
    for path in list_files(folder):
        relative = path.relative_to(folder).as_posix()
        try:
            lines = only_list(read_published(path)).paths.decode().split("\n")[:-1]
        except CurationError as error:
            left_out.append(f"# Left out: {relative}: {error.what}.")
            continue
        if path.name in files or not _FILE.match(path.name):
            reason = "another list has this name" if path.name in files else "its name has blanks or other characters"
            left_out.append(f"# Left out: {relative}: {reason}.")
            continue
        files.add(path.name)
        namespaces |= {match[1] if (match := _NAMESPACE.match(line)) else "" for line in lines}
        guess = read_role(relative)
        stem = slug(path.name.partition(".")[0], "-")[:60] or "list"
        word = next(
            text for number in range(1, len(names) + 2) if (text := stem + f"-{number}" * (number > 1)) not in names
        )
        names.add(word)
        tables += [
            "",
            "[[parts]]",
            f"name = {quoted(word)}",
            f"file = {quoted(path.name)}",
            f"sha256 = {quoted(AuthorsList.read(path).sha256)}",
            f"# {counted(len(lines), 'image')}; {guess.why}.",
            f"role = {quoted(guess.roles[0] if guess.roles else 'test')}",
        ]
    if not tables:
        expected, reasons = "files that list images, one a line", "; ".join(left_out)[:300] or "no file"
        raise UsageError("The folder holds no list of images", where=str(folder), expected=expected, found=reasons)
    # The ids in exported lists have their namespace.
    word = "".join(namespaces) if len(namespaces) == 1 and "" not in namespaces else namespace_word(name)
    return [
        *beginning("lists", name),
        *left_out,
        "# The data of the images; dataset is the first word of their ids. --source images=PATH counts their objects.",
        "[sources]",
        f"{quoted_key('images')} = {{ dataset = {quoted(word)}, required = false }}",
        *tables,
    ]
