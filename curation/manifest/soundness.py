"""What makes a manifest sound: its header's names, digests, references and counts, and its lists beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, get_args

import msgspec

from curation.canonical import sha256_of_lines
from curation.errors import CurationError, DigestMismatchError, ManifestError, VersionChainError
from curation.ids import parse_image_id
from curation.manifest.header import SCHEMA_VERSION, ClassRole, Header, LabelView, PartEntry, SourceEntry

Lists = Mapping[str, Sequence[str]]
"""Ids of each available part."""


def header_as_data(header: Header) -> dict[str, Any]:
    """Return the header as plain dicts, lists, strings and integers.

    Every field is present but those that the schema gained later: they are left out where they hold their default, so
    that a manifest made before keeps its digest.
    """
    data: dict[str, Any] = msgspec.to_builtins(header)
    _omit_default(data, "tasks", Header)
    _omit_default(data, "overlay", Header)
    for source in data["sources"]:
        _omit_default(source, "exhaustive", SourceEntry)
    for part in data["parts"]:
        _omit_default(part, "task", PartEntry)
        _omit_default(part, "repeats", PartEntry)
        _omit_default(part["view"], "previous", LabelView)
        _omit_default(part["view"], "depiction", LabelView)
    return data


def _omit_default(data: dict[str, Any], field: str, record: type[msgspec.Struct]) -> None:
    defaults = dict(zip(reversed(record.__struct_fields__), reversed(record.__struct_defaults__), strict=False))
    if data[field] in (defaults[field], []):
        del data[field]


NAME = r"[a-z0-9][a-z0-9_.]*(?:-[a-z0-9_.]+)*(?:/[a-z0-9][a-z0-9_.]*(?:-[a-z0-9_.]+)*)?"
"""A manifest's name: lower-case words joined by ``-``, at most one ``/``."""
VERSION = r"(?:0|[1-9][0-9]{0,5})\.(?:0|[1-9][0-9]{0,5})\.(?:0|[1-9][0-9]{0,5})"
"""A semantic version without pre-release marks."""
PART_NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
"""A part's name, which is also the stem of its id file: no separator, no leading dot."""
SLOT_NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
"""A source's name as in ``--source NAME=PATH``."""
DIGEST = r"sha256:[0-9a-f]{64}"
MAX_NAME_LENGTH = 120
LARGEST_INDEX = 2**31 - 2
"""Category ids fit 32 bits, and the one after the last too."""
TAXONOMIES = ("closed-set", "OSOD-I", "OSOD-II", "OSOD-III", "OWOD", "OVD", "OSC")
BOX_COUNTS = (*get_args(ClassRole), "difficult", "crowd")
"""Keys of `PartEntry.boxes`: objects by role, and the subsets ``difficult`` and ``crowd``."""

# The common case in one match; ids beyond ASCII take the slow path through `parse_image_id`.
_PLAIN_ID = re.compile(r"[a-z][a-z0-9_]{0,31}:[!-~](?:[ -~]{0,253}[!-~])?")
_PLAIN_LINES = re.compile(rf"(?:{_PLAIN_ID.pattern}\n)*+")


def check_header(header: Header, *, where: str) -> None:
    """Raise `ManifestError` unless the names, digests, references and counts of a header hold together.

    Parameters
    ----------
    where : str
        The file the header came from, for the message.
    """
    if header.schema_version != SCHEMA_VERSION:
        _refuse(where, "schema_version", str(SCHEMA_VERSION), str(header.schema_version))
    _match(NAME, header.name, where, "name", longest=MAX_NAME_LENGTH)
    _match(VERSION, header.version, where, "version")
    if header.taxonomy not in TAXONOMIES:
        _refuse(where, "taxonomy", ", ".join(TAXONOMIES), header.taxonomy)
    _check_digests(header, where)
    _check_classes(header, where)
    _check_sources(header, where)
    _check_parts(header, where)
    _check_tasks(header, where)
    _check_superclass(header, where)
    if header.origin != "declared" and any(part.sha256 is None for part in header.parts):
        _refuse(where, "origin", "declared where a part has no digest", header.origin)


def check_lists(header: Header, lists: Lists, *, where: str) -> None:
    """Raise `ManifestError` unless every part has its list, and each list is well formed and as its entry says.

    Raises
    ------
    DigestMismatchError
        A list is not the one whose digest the header states.
    """
    pinned = {part.name: part for part in header.parts if part.sha256 is not None}
    if not needs_every_list(header, lists) <= set(lists) <= set(pinned):
        _refuse(
            where,
            "lists",
            ", ".join(sorted(pinned)) or "none",
            ", ".join(sorted(lists)) or "none",
        )
    for name, ids in lists.items():
        part = pinned[name]
        check_ids(ids, part, where=f"{where}: ids/{name}.txt")
        digest = sha256_of_lines(ids)
        if digest != part.sha256:
            raise DigestMismatchError(
                "A list is not the one whose digest its manifest states",
                where=f"{where}: ids/{name}.txt",
                expected=part.sha256,
                found=digest,
            )
    _check_subsets(header, lists, where)


def needs_every_list(header: Header, present: Iterable[str]) -> set[str]:
    """Return the parts whose lists must lie beside a header, given the lists that do.

    A declared manifest may lack any list; an authors' one, whose lists are not passed on, has all of them or none.
    """
    may_lack_them = header.origin == "declared" or (header.origin == "as_published" and not list(present))
    return set() if may_lack_them else {part.name for part in header.parts if part.sha256 is not None}


def check_ids(ids: Sequence[str], part: PartEntry, *, where: str) -> None:
    """Raise `ManifestError` unless a list has the stated length, well-formed unique ids, and the stated order."""
    # One match for all, unless an id could hide a line end.
    if not _PLAIN_LINES.fullmatch("".join(f"{text}\n" for text in ids)) or any("\n" in text for text in ids):
        for line, text in enumerate(ids, start=1):
            if not _PLAIN_ID.fullmatch(text):
                _check_id(text, f"{where}, line {line}")
    if len(ids) != part.images:
        _refuse(where, "images", str(part.images), str(len(ids)))
    repeats = len(ids) - len(set(ids))
    if repeats and not part.repeats:
        raise ManifestError("A list names an image twice", where=where, found=_first_repeated(ids))
    if repeats != part.repeats:
        _refuse(where, "repeats", str(part.repeats), str(repeats))
    if part.order == "code_point" and list(ids) != sorted(ids):
        raise ManifestError("A list is not sorted by code point", where=where, found=_first_unsorted(ids))


def _check_id(text: str, where: str) -> None:
    try:
        parse_image_id(text)
    except CurationError as error:
        raise ManifestError(
            error.what, where=where, expected=error.expected, found=error.found or repr(text[:80])
        ) from None


def _first_repeated(ids: Sequence[str]) -> str:
    seen: set[str] = set()
    for line, text in enumerate(ids, start=1):
        if text in seen:
            return f"{text} again on line {line}"
        seen.add(text)
    return ""


def _first_unsorted(ids: Sequence[str]) -> str:
    for line in range(1, len(ids)):
        if ids[line] < ids[line - 1]:
            return f"{ids[line]} on line {line + 1} after {ids[line - 1]}"
    return ""


def _check_subsets(header: Header, lists: Lists, where: str) -> None:
    for part in header.parts:
        if part.subset_of in lists and part.name in lists:
            outside = set(lists[part.name]) - set(lists[part.subset_of])
            if outside:
                raise ManifestError(
                    f"Part {part.name!r} is not inside part {part.subset_of!r} as its entry says",
                    where=where,
                    found=f"{len(outside)} ids outside, first {min(outside)}",
                )


def require_earlier(header: Header, chain: Sequence[str]) -> None:
    """Raise `VersionChainError` unless the version that a header supersedes is an earlier one.

    A chain of versions that only falls can neither end in itself nor run in a circle.

    Parameters
    ----------
    chain : sequence of str
        The folders through which the header was reached, for the message.
    """
    link = header.supersedes
    if link is not None and version_numbers(link.version) >= version_numbers(header.version):
        raise VersionChainError(
            "A manifest supersedes itself, or a version that is not earlier",
            where=" > ".join(chain),
            expected=f"{header.name} {header.version} to supersede a version before {header.version}",
            found=link.version,
            hint="remove the folder that is wrong, or fetch it again",
        )


def version_numbers(version: str) -> tuple[int, ...]:
    """Return a version such that a later one is larger."""
    return tuple(int(number) for number in version.split("."))


def _check_digests(header: Header, where: str) -> None:
    pinned = [("decisions", header.decisions), ("completes", header.completes)]
    pinned += [(f"parts[{part.name}].sha256", part.sha256) for part in header.parts]
    pinned += [
        (f"sources[{source.name}].files[{file.name}].sha256", file.sha256)
        for source in header.sources
        for file in source.files
    ]
    if header.supersedes is not None:
        _match(VERSION, header.supersedes.version, where, "supersedes.version")
        require_earlier(header, [where])
        pinned.append(("supersedes.digest", header.supersedes.digest))
    if (overlay := header.overlay) is not None:
        pinned += [("overlay.sha256", overlay.sha256), ("overlay.log", overlay.log)]
        counts = {name: getattr(overlay, name) for name in ("images", "boxes", "unnamed", "exhaustive_images")}
        _check_counts(counts, where, "overlay")
    for field, digest in pinned:
        if digest is not None:
            _match(DIGEST, digest, where, field)


def _check_classes(header: Header, where: str) -> None:
    _unique((entry.name for entry in header.classes), where, "classes: name")
    names = [name for entry in header.classes for name in {entry.name, *entry.aliases}]
    _unique(names, where, "classes: name or alias")
    _unique((entry.index for entry in header.classes if entry.index != -1), where, "classes: index")
    for entry in header.classes:
        if not -1 <= entry.index <= LARGEST_INDEX:
            _refuse(where, f"classes[{entry.name}].index", f"-1 to {LARGEST_INDEX}", str(entry.index))
        if entry.role == "previous":
            _refuse(
                where,
                f"classes[{entry.name}].role",
                "a role of its own: previous follows from tasks",
                "previous",
            )
        if entry.role == "known" and entry.index == -1:
            _refuse(where, f"classes[{entry.name}].index", "0 or more for a known class", "-1")


def _check_sources(header: Header, where: str) -> None:
    _unique((source.name for source in header.sources), where, "sources: name")
    for source in header.sources:
        _match(SLOT_NAME, source.name, where, "sources: name")
        for file in source.files:
            if min(file.size, file.rows, file.files) < 0:
                _refuse(where, f"sources[{source.name}].files[{file.name}]", "counts of 0 or more", "less")
        _check_counts(source.dropped, where, f"sources[{source.name}].dropped")


def _check_tasks(header: Header, where: str) -> None:
    """Check names and references alone: whether the tasks make a sound benchmark is for the audit to say."""
    _unique((task.name for task in header.tasks), where, "tasks: name")
    roles = {entry.name: entry.role for entry in header.classes}
    for task in header.tasks:
        _match(PART_NAME, task.name, where, "tasks: name")
        for name in task.introduced:
            if roles.get(name) != "known":
                _refuse(where, f"tasks[{task.name}].introduced", "classes with the role known", f"{name!s:.80}")
    for part in header.parts:
        if part.task and part.task not in (task.name for task in header.tasks):
            _refuse(where, f"parts[{part.name[:64]}].task", "a task or an empty text", part.task)


def _check_superclass(header: Header, where: str) -> None:
    """OSOD-III: known and unknown classes together are the super-class, but for those listed as left out."""
    if header.taxonomy != "OSOD-III":
        return
    listed = header.rule.parameters
    members, left_out = listed.get("superclass_members"), listed.get("superclass_left_out", ())
    if not isinstance(members, tuple) or not isinstance(left_out, tuple):
        _refuse(where, "rule.parameters.superclass_members", "the classes of the super-class", "none")
    played = {entry.name for entry in header.classes if entry.role in ("known", "unknown")}
    if outside := sorted(played - set(members)):
        _refuse(where, "classes", "known and unknown classes within the super-class", ", ".join(outside[:5]))
    if missing := sorted(set(map(str, members)) - played - set(left_out)):
        _refuse(
            where,
            "classes",
            "a role for every class of the super-class, or its name in rule.parameters.superclass_left_out",
            ", ".join(missing[:5]),
        )
    if left_out and not listed.get("superclass_left_out_because"):
        _refuse(where, "rule.parameters.superclass_left_out_because", "a reason", "none")


def _check_parts(header: Header, where: str) -> None:
    names = [part.name for part in header.parts]
    _unique(names, where, "parts: name")
    sources = {source.name for source in header.sources}
    for part in header.parts:
        field = f"parts[{part.name[:64]}]"
        _match(PART_NAME, part.name, where, "parts: name")
        if (part.images is None) != (part.sha256 is None):
            _refuse(where, field, "images and sha256 both stated or both null", "one of the two")
        if part.subset_of and (part.subset_of not in names or part.subset_of == part.name):
            _refuse(where, f"{field}.subset_of", "another part or an empty text", part.subset_of)
        if not part.sources or (part.sha256 is not None and not set(part.sources) <= sources):
            _refuse(where, f"{field}.sources", ", ".join(sorted(sources)), ", ".join(part.sources))
        if unnamed := set(part.boxes) - set(BOX_COUNTS):
            _refuse(where, f"{field}.boxes", ", ".join(BOX_COUNTS), ", ".join(sorted(unnamed)))
        _check_counts({"images": part.images or 0, "repeats": part.repeats, **part.boxes}, where, field)
        if not 0 <= (part.annotated_images or 0) <= (part.images or 0):
            _refuse(where, f"{field}.annotated_images", f"0 to {part.images}", str(part.annotated_images))


def _check_counts(counts: dict[str, int], where: str, field: str) -> None:
    for name, count in counts.items():
        if count < 0:
            _refuse(where, f"{field}.{name}", "0 or more", str(count))


def _unique(values: Iterable[object], where: str, field: str) -> None:
    seen: set[object] = set()
    for value in values:
        if value in seen:
            _refuse(where, field, "each once", f"{value!s:.80} twice")
        seen.add(value)


def _match(pattern: str, text: str, where: str, field: str, *, longest: int = 300) -> None:
    if len(text) > longest or not re.fullmatch(pattern, text):
        _refuse(where, field, f"a text of the form {pattern}", repr(text[:100]))


def _refuse(where: str, field: str, expected: str, found: str) -> NoReturn:
    raise ManifestError("A manifest is inconsistent", where=f"{where}: {field}", expected=expected, found=found[:300])
