"""Checks of the fields of a header against each other, and of its lists against it.

The valid values of a single field are declared on the field (`curation.manifest.header`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from curation.core.canonical import sha256_of_lines
from curation.core.errors import CurationError, DigestMismatchError, ManifestError, VersionChainError
from curation.core.ids import parse_image_id
from curation.manifest.header import (
    BOX_COUNTS,
    LARGEST_INDEX,
    NAME,
    UNKNOWN_ID,
    VERSION,
    Header,
    Lists,
    PartEntry,
    version_numbers,
)  # fmt: skip

_LONGEST_NAME = 120


def check_manifest_name(header: Header) -> None:
    """Raise `ManifestError` if the name or version of a manifest cannot be the name of a folder.

    A name with ``..`` would lead out of the folder in which the manifest is written.
    """
    valid = isinstance(header.name, str) and len(header.name) <= _LONGEST_NAME and re.fullmatch(NAME, header.name)
    if not valid:
        expected = "lower-case words joined by -, at most one /, such as mylab/parts"
        raise _inconsistent("name", expected, ascii(header.name)[:80])
    if not (isinstance(header.version, str) and re.fullmatch(VERSION, header.version)):
        raise _inconsistent("version", "MAJOR.MINOR.PATCH, such as 1.0.0", ascii(header.version)[:80])


def check_header(header: Header, *, where: str) -> None:
    """Raise `ManifestError` if the names, digests, references and counts of a header are inconsistent.

    Parameters
    ----------
    where : str
        The file of the header, for the message.
    """
    try:
        msgspec.convert(msgspec.to_builtins(header), Header)
    except msgspec.ValidationError as error:
        expected, _, field = str(error).rpartition(" - at ")
        raise _inconsistent(f"{where}: {field}", expected) from None
    _require_earlier(header, where)
    for field, expected, value in _contradictions(header):
        raise _inconsistent(f"{where}: {field}", expected, value)


def _inconsistent(where: str, expected: str, value: object = None) -> ManifestError:
    value = None if value is None else str(value)[:300]
    return ManifestError("A manifest is inconsistent", where=where, expected=expected, found=value)


def _contradictions(header: Header) -> Iterator[tuple[str, str, object]]:
    """Yield field, expected value and actual value of each contradiction between fields."""
    names = [name for entry in header.classes for name in {entry.name, *entry.aliases}]
    parts, sources, tasks = ([entry.name for entry in some] for some in (header.parts, header.sources, header.tasks))
    indices = [entry.index for entry in header.classes if entry.index != UNKNOWN_ID]
    unique: dict[str, Sequence[object]] = {"classes: name or alias": names, "classes: index": indices}
    unique |= {"parts: name": parts, "sources: name": sources, "tasks: name": tasks}
    for field, values in unique.items():
        yield from ((field, "each once", f"{text!s:.80} twice") for text, times in Counter(values).items() if times > 1)
    for entry in header.classes:
        field = f"classes[{entry.name}]"
        if not -1 <= entry.index <= LARGEST_INDEX:
            yield f"{field}.index", f"-1 to {LARGEST_INDEX}", entry.index
        if entry.role == "previous":
            yield f"{field}.role", "another role: previous follows from tasks", "previous"
        if entry.role == "known" and entry.index == -1:
            yield f"{field}.index", "0 or more for a known class", "-1"
    for part in header.parts:
        field = f"parts[{part.name}]"
        pinned, listed = part.sha256 is not None, header.origin != "declared"
        if (part.images is not None) != pinned:
            yield field, "images and sha256 both stated or both null", "one of the two"
        if not pinned and listed:
            yield "origin", "declared where a part has no digest", header.origin
        if part.subset_of and (part.subset_of not in parts or part.subset_of == part.name):
            yield f"{field}.subset_of", "another part or an empty text", part.subset_of
        if not part.sources or (pinned and not set(part.sources) <= set(sources)):
            yield f"{field}.sources", ", ".join(sources), ", ".join(part.sources)
        if not set(part.boxes) <= set(BOX_COUNTS) or min(part.boxes.values(), default=0) < 0:
            yield f"{field}.boxes", f"counts of 0 or more of {', '.join(BOX_COUNTS)}", part.boxes
        if (part.annotated_images or 0) > (part.images or 0):
            yield f"{field}.annotated_images", f"0 to {part.images}", part.annotated_images
        if part.task and part.task not in tasks:
            yield f"{field}.task", "a task or an empty text", part.task
    # Only names and references: the audit judges whether the tasks are a sound benchmark.
    known = {entry.name for entry in header.classes if entry.role == "known"}
    for task in header.tasks:
        if strange := set(task.introduced) - known:
            yield f"tasks[{task.name}].introduced", "classes with the role known", sorted(strange)


def check_lists(header: Header, lists: Lists, *, where: str) -> None:
    """Raise `ManifestError` if a required list is missing, or a list is malformed or differs from its entry.

    Raises
    ------
    DigestMismatchError
        A list does not agree with its digest in the header.
    """
    pinned = {part.name: part for part in header.parts if part.sha256 is not None}
    if missing := sorted(needs_every_list(header, lists) - set(lists)):
        message, file = "An id list of the manifest is missing", f"{where}: ids/{missing[0]}.txt"
        raise ManifestError(message, where=file, hint="fetch the folder again")
    if not set(lists) <= set(pinned):
        raise _inconsistent(f"{where}: lists", ", ".join(sorted(pinned)) or "none", sorted(lists))
    for name, ids in lists.items():
        part, file = pinned[name], f"{where}: ids/{name}.txt"
        check_list_ids(ids, part, where=file)
        if (digest := sha256_of_lines(ids)) != part.sha256:
            message = "A list does not agree with its digest in the manifest"
            raise DigestMismatchError(message, where=file, expected=part.sha256, found=digest)
        if part.subset_of in lists and (outside := set(ids) - set(lists[part.subset_of])):
            message = f"Part {name!r} is not a subset of part {part.subset_of!r}, as the header states"
            raise ManifestError(message, where=where, found=f"{len(outside)} ids outside, first {min(outside)}")


def needs_every_list(header: Header, present: Iterable[str]) -> set[str]:
    """Return the parts whose lists are required, given the lists that are present.

    A declared manifest may lack any list; a manifest of authors' lists has all of them or none.
    """
    may_lack_them = header.origin == "declared" or (header.origin == "as_published" and not list(present))
    return set() if may_lack_them else {part.name for part in header.parts if part.sha256 is not None}


# Lists have up to a million lines: all are matched at once, and one by one only if that fails or ids are not ASCII.
_PLAIN_LINES = re.compile(r"(?:[a-z][a-z0-9_]{0,31}:[!-~](?:[ -~]{0,253}[!-~])?\n)*+")


def check_list_ids(ids: Sequence[str], part: PartEntry, *, where: str) -> None:
    """Raise `ManifestError` if the length or order of a list is not that of its entry, or its ids are invalid."""
    if not _PLAIN_LINES.fullmatch("".join(f"{text}\n" for text in ids)) or any("\n" in text for text in ids):
        for line, text in enumerate(ids, start=1):
            try:
                parse_image_id(text)
            except CurationError as error:
                text_found = error.found or repr(text[:80])
                raise ManifestError(
                    error.what, where=f"{where}, line {line}", expected=error.expected, found=text_found
                ) from None
    n_repeats = len(ids) - len(set(ids))
    if n_repeats and not part.repeats:
        repeated = next(image for image, times in Counter(ids).items() if times > 1)
        raise ManifestError("A list names an image twice", where=where, found=repeated)
    counts = {"images": (part.images, len(ids)), "repeats": (part.repeats, n_repeats)}
    for field, (stated_count, count) in counts.items():
        if stated_count != count:
            raise _inconsistent(f"{where}: {field}", str(stated_count), count)
    if part.order == "code_point" and list(ids) != sorted(ids):
        line = next(line for line in range(1, len(ids)) if ids[line] < ids[line - 1])
        text_found = f"{ids[line]} on line {line + 1} after {ids[line - 1]}"
        raise ManifestError("A list is not sorted by code point", where=where, found=text_found)


def _require_earlier(header: Header, where: str) -> None:
    """Raise `VersionChainError` if the version that a header supersedes is not earlier than its own."""
    link = header.supersedes
    if link is not None and version_numbers(link.version) >= version_numbers(header.version):
        raise VersionChainError(
            "A manifest supersedes itself, or a version that is not earlier",
            where=where,
            expected=f"{header.name} {header.version} to supersede a version before {header.version}",
            found=link.version,
            hint="remove the folder that is wrong, or fetch it again",
        )
