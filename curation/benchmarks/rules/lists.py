"""The rule ``lists``: lists of images in files, each with its role and digest; sources say what the images show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from curation.benchmarks.parts import Part, Selection, figure_of, make_part, rule_note, source_entry
from curation.benchmarks.published import ListsOrigin, PublishedLists, draft
from curation.benchmarks.rules.benchmark_file import BenchmarkFile, class_entries, read_benchmark_file, stated_in
from curation.benchmarks.rules.starting import beginning, namespace_word, quoted, quoted_key
from curation.core.errors import CurationError, ProtocolError, UsageError
from curation.core.wording import counted, slug
from curation.manifest.header import ClassEntry, Header, PartEntry
from curation.manifest.importing import LISTS, AuthorsList, pin_lists
from curation.manifest.manifest import Manifest
from curation.manifest.views import positions_of
from curation.sources.list_roles import read_role
from curation.sources.published_list import list_files, only_list, read_published
from curation.sources.source import Source
from curation.sources.source_specs import SourceSlot


class ListsParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[parameters]`` of the rule: there are none."""


PARAMETERS = ListsParameters
USUAL_SOURCES = (LISTS,)
PARTS = (("PART", "the images of a list, or of some lines of it, in its order"),)
PAPER = None
_NAMESPACE = re.compile(r"([a-z][a-z0-9_]{0,31}):")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")


def image_slots(benchmark: BenchmarkFile) -> list[SourceSlot]:
    """Return the sources of the images, all optional: the lists are read apart from them."""
    return [
        msgspec.structs.replace(slot, required=False, usual_part=slot.part)
        for slot in benchmark.slots
        if slot.name != LISTS
    ]


def build_lists(path: str, folder: Path, opened: Mapping[str, Source]) -> Manifest:
    """Return the manifest of a benchmark file of this rule.

    Parameters
    ----------
    path : str
        The benchmark file.
    folder : Path
        Searched for the lists by name, subfolders included.
    opened : mapping of str to Source
        Sources of the images. The images of a part are looked up where all of its sources are given.

    Raises
    ------
    DigestMismatchError, MissingFileError
        A list is not there, or is not the one that the file states.
    ProtocolError
        A part names no source, a list names an image twice or one that its sources lack.
    """
    benchmark = stated_in(read_benchmark_file(path))
    header = _draft(benchmark, path)
    pinned = pin_lists(header, folder, opened)
    parts, lists = pinned.header.parts, pinned.lists
    if benchmark.paper is None and (repeated := next((part for part in parts if part.repeats), None)):
        ids = lists[repeated.name]
        twice = Counter(ids).most_common(1)[0][0]
        raise ProtocolError(
            "A list names an image twice",
            where=f"{repeated.name}: {header.rule.parameters[repeated.name]}",
            expected="each image once",
            found=f"{twice} on lines {ids.index(twice) + 1} and {ids.index(twice, ids.index(twice) + 1) + 1}",
            hint="an id is the stem of a file name: where folders tell images apart, give --source "
            f"{repeated.sources[0]}=PATH, class folders or a table of the columns image (the path) and class",
        )
    classes = pinned.header.classes or _classes(benchmark, opened)
    entries = tuple(_counted(part, lists[part.name], classes, opened) for part in parts)
    sources = tuple(
        source_entry(entry.name, opened[entry.name]) if entry.name in opened else entry
        for entry in pinned.header.sources
    )
    made = {entry.name: Part(entry, lists[entry.name]) for entry in entries}
    figures = tuple(figure_of(name, expected, made) for name, expected in benchmark.expect.items())
    facts: dict[str, Any] = {"parts": entries, "classes": classes, "sources": sources, "figures": figures}
    if benchmark.paper is None:
        # Lists of the user's own: no authors published them.
        facts |= {"origin": "regenerated", "notes": (rule_note("lists", None), *benchmark.notes)}
        facts["rule"] = msgspec.structs.replace(pinned.header.rule, protocol="lists")
    return Manifest(msgspec.structs.replace(pinned.header, **facts), lists)


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
            message = "Unknown source of a part" if unknown else "A part does not say of which source its images are"
            raise ProtocolError(message, where=where, expected=expected[:300], found=", ".join(unknown)[:80] or None)
        if part.of:
            raise ProtocolError("The rule lists has no tasks", where=f"{where}: of", hint="one [[parts]] for each list")
    name, times = Counter(part.name for part in benchmark.parts).most_common(1)[0]
    if times > 1:
        raise ProtocolError("Two parts have the same name", where=path, found=name)
    origin = benchmark.sources.get(LISTS)
    lists = PublishedLists(
        name=benchmark.name,
        title=benchmark.title or benchmark.name,
        taxonomy=benchmark.taxonomy or "closed-set",
        lists=ListsOrigin(
            dataset=(origin and origin.dataset) or "lists",
            part=origin.part if origin else "",
            note=origin.meaning if origin else "",
        ),
        parts=tuple(msgspec.structs.replace(part, sources=part.sources or tuple(names)) for part in benchmark.parts),
        notes=benchmark.notes,
        datasets={name: (benchmark.dataset(name), benchmark.sources[name].part) for name in names},
    )
    facts = {"published": {"lists": lists}, "paper": benchmark.paper, "views": benchmark.views}
    has_classes = any(benchmark.classes.of(role) for role in ("known", "negative", "unknown", "ignored"))
    return draft(facts, "lists", classes=class_entries(benchmark) if has_classes else ())


def _classes(benchmark: BenchmarkFile, opened: Mapping[str, Source]) -> tuple[ClassEntry, ...]:
    """Return the classes of the sources, all known, where the file names none."""
    names = dict.fromkeys(name for source in opened.values() for name in source.categories.names)
    return tuple(ClassEntry(name=name, role="known", index=place) for place, name in enumerate(names, start=1))


def _counted(
    part: PartEntry, ids: Sequence[str], classes: Sequence[ClassEntry], opened: Mapping[str, Source]
) -> PartEntry:
    """Return the entry of a part with the objects of its images, where all of its sources are given."""
    if not all(name in opened for name in part.sources):
        return part
    number, position = positions_of(ids, [opened[name] for name in part.sources])
    chosen = [
        Selection(name, opened[name], position[number == place].astype("int64"))
        for place, name in enumerate(part.sources)
    ]
    made = make_part(part.name, part.role, chosen, classes, view=part.view, rule=part.selection, order="listed").entry
    return msgspec.structs.replace(part, annotated_images=made.annotated_images, boxes=made.boxes)


def start_of_folder(folder: Path, name: str) -> list[str]:
    """Return the lines of a file to begin with: every list below a folder, with its digest and the role of its name.

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
    # Lists that an export wrote hold the namespace of their ids.
    word = "".join(namespaces) if len(namespaces) == 1 and "" not in namespaces else namespace_word(name)
    return [
        *beginning("lists", name),
        *left_out,
        "# The data of the images; dataset is the first word of their ids. --source images=PATH counts their objects.",
        "[sources]",
        f"{quoted_key('images')} = {{ dataset = {quoted(word)}, required = false }}",
        *tables,
    ]
