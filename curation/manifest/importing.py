"""Authors' lists as a manifest: every file and every id list held against the digests that a header states.

A header of origin ``as_published`` names the authors' files in its source ``published-lists`` and says in its rule
which part is which file, or which lines of it. The lists themselves are not passed on: who has them completes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec

from curation.canonical import sha256_of_bytes, sha256_of_lines
from curation.errors import DigestMismatchError, ManifestError, MissingFileError, PathEscapeError, UsageError
from curation.ids import NATIVE_FORMS, native_of
from curation.input_files import filled_lines, read_plain
from curation.json_keys import refuse_repeated_keys
from curation.manifest.header import Figure, FileEntry, Header, PartEntry, SourceEntry
from curation.manifest.manifest import Manifest
from curation.manifest.soundness import check_header, check_ids
from curation.sources.id_list import ListedImages, bare_id
from curation.sources.listed import natives_of, only_list
from curation.sources.published_list import read_published as read_list
from curation.storage import read_bytes

LISTS = "published-lists"
"""Name of the source whose files are the authors' lists."""
PROTOCOL = "as_published"
"""Name of the rule whose parameters say which file each part is."""

_SLICE = re.compile(
    r"(?P<file>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})(?::(?P<first>[1-9][0-9]{0,8})-(?P<last>[1-9][0-9]{0,8}))?"
)
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ListSlice:
    """A file, or some of its lines: `first` to `last`, both included, counted from 1; None means to the end."""

    file: str
    first: int = 1
    last: int | None = None


def import_lists(header: Header, folder: Path, *, others: Iterable[Header] = ()) -> Manifest:
    """Return the manifest of a header with its lists, read from the authors' files below a folder.

    The digest is that of the header alone: nothing in it changes. File order and repeats are kept. A list is known by
    its digest: of several files with one name, as in a repository that holds two benchmarks, the one with the stated
    digest is read, and where none has it, a file of another name that does.

    Parameters
    ----------
    header : Header
        Of origin ``as_published``, with the digest of every file and list.
    folder : Path
        Searched by file name, then by size and digest, subfolders included.
    others : iterable of Header
        Other headers, looked at only when a file has another digest, to say which version it is.

    Raises
    ------
    MissingFileError
        A file is not there; the message lists all that are missing.
    DigestMismatchError
        A file, or the list that its lines make, has another digest.
    PathEscapeError
        A file of this name is a link that leads outside the folder.
    ManifestError
        The header does not say which file a part is, or a file is no list of ids.
    """
    slices = list_slices(header)
    pinned = {file.name: file for file in _lists_source(header).files}
    if unpinned := sorted({one.file for one in slices.values()} - pinned.keys()):
        raise ManifestError(
            "The header states no digest of a published list",
            where=f"{_title(header)}: sources[{LISTS}].files",
            expected=", ".join(unpinned),
            found=", ".join(pinned) or "none",
        )
    found = _read_all(header, folder, pinned)
    chosen = {name: _pinned_one(files, pinned[name].sha256) for name, files in found.items()}
    if any(file is None for file in chosen.values()):
        raise _mismatch(header, {name: found[name] for name in found if chosen[name] is None}, others)
    lists = _part_ids(header, slices, {name: file for name, file in chosen.items() if file is not None})
    for part in header.parts:
        _check_part(header, part, lists[part.name], slices[part.name])
    return Manifest(header=header, lists=lists)


def pin_lists(draft: Header, folder: Path) -> Manifest:
    """Return a draft with its lists, and in its header the digests and counts of all files and parts.

    Parameters
    ----------
    draft : Header
        As `import_lists` takes it, but no file, list or figure is stated yet. A figure named ``PART.images`` or
        ``PART.distinct_images`` gets what the list has; its explanation stays where that differs from the paper.

    Raises
    ------
    CurationError
        As in `import_lists`; several files of one name are an error here, as no digest tells which is meant.
    """
    slices = list_slices(draft)
    found = _read_all(draft, folder, dict.fromkeys((one.file for one in slices.values()), None))
    for name, files in found.items():
        if len(files) > 1:
            raise UsageError(
                f"Several files are named {name}, and no digest tells which is meant",
                where=str(folder),
                expected="one",
                found=", ".join(str(file.path) for file in files[:_SHOWN]),
                hint="give the folder that holds one of them as --lists",
            )
    single = {name: files[0] for name, files in found.items()}
    lists = _part_ids(draft, slices, single)
    header = msgspec.structs.replace(
        draft,
        parts=tuple(_pinned_part(part, lists[part.name]) for part in draft.parts),
        sources=tuple(_pinned_source(entry, single) for entry in draft.sources),
        figures=tuple(_obtained(figure, lists) for figure in draft.figures),
    )
    check_header(header, where=_title(header))
    return Manifest(header=header, lists=lists)


def list_slices(header: Header) -> dict[str, ListSlice]:
    """Return for each part the file, or the lines of it, that the header's rule says it is.

    Raises
    ------
    UsageError
        The header is not one of published lists.
    ManifestError
        It says of a part no file, or nothing of the form ``FILE`` or ``FILE:FIRST-LAST``.
    """
    if header.origin != "as_published" or header.rule.protocol != PROTOCOL:
        raise UsageError(
            "The manifest is not one of published lists",
            where=_title(header),
            expected=f"origin as_published, rule {PROTOCOL}",
            found=f"origin {header.origin}, rule {header.rule.protocol[:80]}",
            hint=f"curation build {_title(header).replace(' ', '@')} --source NAME=PATH --out DIR",
        )
    return {part.name: _slice_of(header, part) for part in header.parts}


def _slice_of(header: Header, part: PartEntry) -> ListSlice:
    text = header.rule.parameters.get(part.name)
    match = _SLICE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ManifestError(
            f"The header does not say which file part {part.name!r} is",
            where=f"{_title(header)}: rule.parameters.{part.name}",
            expected="a file name, or FILE:FIRST-LAST",
            found="nothing" if text is None else repr(text)[:100],
        )
    if match["first"] is None:
        return ListSlice(match["file"])
    return ListSlice(match["file"], int(match["first"]), int(match["last"]))


def _read_all(header: Header, folder: Path, pinned: Mapping[str, FileEntry | None]) -> dict[str, list[PublishedFile]]:
    """Return every file below a folder that has one of some names, or is the pinned one by its digest; none missing."""
    if not folder.is_dir():
        raise MissingFileError("The folder of the lists does not exist", where=str(folder))
    found: dict[str, list[PublishedFile]] = {name: [] for name in pinned}
    others: list[Path] = []
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            if name in found:
                found[name].append(read_published_file(_within(folder, Path(place, name))))
            else:
                others.append(Path(place, name))
    for name, entry in pinned.items():
        if entry is not None and _pinned_one(found[name], entry.sha256) is None:
            found[name] += _renamed(folder, entry, others)
    if missing := [name for name, files in found.items() if not files]:
        raise MissingFileError(
            f"{len(missing)} of the {len(found)} published lists are missing",
            where=str(folder),
            expected=", ".join(missing),
            found=", ".join(name for name in found if name not in missing) or "none of them, under any name",
            hint=_origin_of(header),
        )
    return found


def _renamed(folder: Path, entry: FileEntry, paths: Sequence[Path]) -> Iterator[PublishedFile]:
    """Yield the pinned file where another one is called otherwise: links that lead outside are not followed."""
    root = os.path.realpath(folder)
    for path in paths:
        if path.is_file() and path.stat().st_size == entry.size and Path(os.path.realpath(path)).is_relative_to(root):
            file = read_published_file(path)
            if file.sha256 == entry.sha256:
                yield file
                return


def _within(folder: Path, path: Path) -> Path:
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise PathEscapeError(
            "A published list is a link that leads outside the folder",
            where=str(path),
            expected=f"below {folder}",
        )
    return path


def _pinned_one(files: Sequence[PublishedFile], digest: str) -> PublishedFile | None:
    return next((file for file in files if file.sha256 == digest), None)


def _mismatch(
    header: Header, wrong: Mapping[str, Sequence[PublishedFile]], others: Iterable[Header]
) -> DigestMismatchError:
    """Return the error about the first file that has other bytes; the rest is told by name."""
    versions = _versions([header, *others])
    name, files = next(iter(wrong.items()))
    entry = next(file for file in _lists_source(header).files if file.name == name)
    rest = [other for other in wrong if other != name]
    return DigestMismatchError(
        f"This {name} is not the {name} of {_title(header)}",
        where=", ".join(str(file.path) for file in files[:_SHOWN]),
        expected=f"{entry.sha256}, {entry.rows} lines, {entry.size} bytes",
        found="; ".join(_described(file, entry, versions) for file in files[:_SHOWN])
        + (f"; other bytes also in {', '.join(rest)}" if rest else ""),
        hint=_origin_of(header),
    )


def _described(file: PublishedFile, entry: FileEntry, versions: Mapping[str, str]) -> str:
    known = versions.get(file.sha256)
    remark = f": this is the {known}" if known else ""
    if sha256_of_bytes(file.data.replace(b"\r\n", b"\n")) == entry.sha256:
        remark = ": the right list with CRLF line ends, as git's autocrlf makes them"
    return f"{file.sha256}, {len(file.data)} bytes{remark}"


def _versions(headers: Iterable[Header]) -> dict[str, str]:
    """Return which published list each known digest stands for."""
    known: dict[str, str] = {}
    for header in headers:
        for source in header.sources:
            if source.name == LISTS:
                for file in source.files:
                    known.setdefault(file.sha256, f"{file.name} of {_title(header)}")
    return known


def _part_ids(
    header: Header, slices: Mapping[str, ListSlice], files: Mapping[str, PublishedFile]
) -> dict[str, tuple[str, ...]]:
    namespaces = {entry.name: entry.namespace for entry in header.sources}
    entries: dict[tuple[str, str], Sequence[str]] = {}
    lists = {}
    for part in header.parts:
        one = slices[part.name]
        spaces = sorted({namespaces[name] for name in part.sources if name in namespaces})
        file = files[one.file]
        space = spaces[0] if _any_form(spaces) else ""
        if (one.file, space) not in entries:
            entries[one.file, space] = file.natives(space) if space else file.lines()
        chosen = _chosen_lines(header, part, one, entries[one.file, space])
        lists[part.name] = _ids(chosen, spaces, one, file.path)
    return lists


def _any_form(namespaces: Sequence[str]) -> bool:
    """Return whether lists of a name space may be of any published form: those of COCO and VOC are ids alone."""
    return len(namespaces) == 1 and namespaces[0] not in NATIVE_FORMS


def _chosen_lines(header: Header, part: PartEntry, one: ListSlice, lines: Sequence[str]) -> Sequence[str]:
    last = len(lines) if one.last is None else one.last
    if one.last is not None and not one.first <= last <= len(lines):
        raise ManifestError(
            f"Part {part.name!r} is said to be lines that its file does not have",
            where=f"{_title(header)}: rule.parameters.{part.name}",
            expected=f"lines within 1-{len(lines)} of {one.file}",
            found=f"{one.first}-{last}",
        )
    return lines[one.first - 1 : last]


def _ids(words: Sequence[str], namespaces: Sequence[str], one: ListSlice, path: Path) -> tuple[str, ...]:
    ids = []
    for number, word in enumerate(words, start=one.first):
        text = namespaced_by_form(word, namespaces)
        if text is None:
            raise ManifestError(
                "A line of the published list is no image id of its sources",
                where=f"{path}, line {number}",
                expected=f"an id of {' or '.join(namespaces) or 'no known name space'}",
                found=repr(word[:80]),
            )
        ids.append(text)
    return tuple(ids)


def _check_part(header: Header, part: PartEntry, ids: Sequence[str], one: ListSlice) -> None:
    digest = sha256_of_lines(ids)
    if digest != part.sha256:
        raise DigestMismatchError(
            f"The lines of {one.file} do not make the list of part {part.name!r} whose digest the header states",
            where=f"{_title(header)}: parts[{part.name}]",
            expected=f"{part.images} ids, {part.sha256}",
            found=f"{len(ids)} ids, {digest}",
            hint="the header is at fault, not the file: fetch it again",
        )
    check_ids(ids, part, where=f"{_title(header)}: parts[{part.name}]")


def _pinned_part(part: PartEntry, ids: Sequence[str]) -> PartEntry:
    return msgspec.structs.replace(
        part,
        order="listed",
        images=len(ids),
        repeats=len(ids) - len(set(ids)),
        sha256=sha256_of_lines(ids),
    )


def _pinned_source(entry: SourceEntry, files: Mapping[str, PublishedFile]) -> SourceEntry:
    if entry.name != LISTS:
        return entry
    pinned = tuple(
        FileEntry(name=name, sha256=file.sha256, size=len(file.data), rows=file.rows)
        for name, file in sorted(files.items())
    )
    return msgspec.structs.replace(entry, files=pinned)


def _obtained(figure: Figure, lists: Mapping[str, Sequence[str]]) -> Figure:
    part, _, quantity = figure.name.rpartition(".")
    if part not in lists or quantity not in ("images", "distinct_images"):
        return figure
    count = len(lists[part]) if quantity == "images" else len(set(lists[part]))
    explanation = "" if count == figure.paper else figure.explanation or "the published list has another length"
    return msgspec.structs.replace(figure, obtained=count, explanation=explanation)


def _lists_source(header: Header) -> SourceEntry:
    for source in header.sources:
        if source.name == LISTS:
            return source
    raise ManifestError(
        "The header names no published lists",
        where=f"{_title(header)}: sources",
        expected=LISTS,
        found=", ".join(source.name for source in header.sources) or "none",
    )


def _origin_of(header: Header) -> str:
    return f"the lists are those of {_lists_source(header).note}"


def _title(header: Header) -> str:
    return f"{header.name} {header.version}"


_MAX_BYTES = 512 << 20
_MAX_LIST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """An authors' list as its file holds it: path, bytes, and their digest ``sha256:<hex>``."""

    path: Path
    data: bytes
    sha256: str

    @property
    def rows(self) -> int:
        """Lines, one without an end at the end of the file included."""
        return self.data.count(b"\n") + (not self.data.endswith(b"\n") if self.data else 0)

    def natives(self, namespace: str) -> Sequence[str]:
        """Return the ids of an imglist, table or JSON within a name space, in file order.

        Raises
        ------
        AnnotationFormatError
            See `curation.sources.listed.only_list` and `natives_of`.
        """
        return natives_of(only_list(read_list(self.path)), namespace, str(self.path))

    def lines(self) -> tuple[str, ...]:
        """Return the words of the lines in file order, repeats kept.

        Raises
        ------
        ManifestError
            The file is not UTF-8, or a line is empty or no single word.
        """
        words = _from_text(self.data, self.path)
        if len(words) != self.rows:
            raise ManifestError(
                "A published list has empty lines",
                where=str(self.path),
                expected="one id a line",
                found=f"{len(words)} ids on {self.rows} lines",
            )
        return tuple(str(word) for word in words)


def read_published_file(path: Path) -> PublishedFile:
    """Return the bytes and the digest of an authors' list.

    Raises
    ------
    MissingFileError
        There is no regular file of this name, or it cannot be read.
    ManifestError
        It is larger than any list of ids.
    """
    if not path.is_file():
        raise MissingFileError("The published list is no file", where=str(path))
    data = read_bytes(path, kind="published list", most=_MAX_LIST_BYTES, error=ManifestError)
    return PublishedFile(path, data, sha256_of_bytes(data))


def namespaced_by_form(text: str, namespaces: Iterable[str]) -> str | None:
    """Return ``namespace:text`` under the one of some name spaces in whose form an id is written; None without one.

    Twelve digits are COCO's, six VOC2007's, year and number VOC2012's; another name space takes any text.

    >>> namespaced_by_form("000005", ["voc2007", "voc2012", "coco"])
    'voc2007:000005'
    """
    fitting = [name for name in namespaces if name not in NATIVE_FORMS or re.fullmatch(NATIVE_FORMS[name], text)]
    return f"{fitting[0]}:{text}" if len(fitting) == 1 else None


def read_published(path: Path, ids: Sequence[str]) -> list[str]:
    """Return the ids of a published list in file order, namespaced as the part they are to be compared with.

    Parameters
    ----------
    path : Path
        ``.txt``: one id a line. ``.json``: an array of ids, or COCO JSON, whose ``images`` count. For datasets other
        than COCO and VOC any published form (`curation.sources.published_list`).
    ids : sequence of str
        Ids of the part. Bare ids take its namespace; with several namespaces, the one in whose form they are
        written, else the one under which the part knows them.

    Raises
    ------
    MissingFileError
        There is no such file.
    ManifestError
        It is not such a list.
    """
    known = set(ids)
    namespaces = sorted({one.partition(":")[0] for one in known})
    if _any_form(namespaces):
        space = namespaces[0]
        return [f"{space}:{native}" for native in natives_of(only_list(read_list(path)), space, str(path))]
    data = read_plain(path, kind="published list")
    if len(data) > _MAX_BYTES:
        raise ManifestError("The published list is too large to be one", where=str(path), found=f"{len(data)} bytes")
    entries = _from_json(data, path) if path.suffix.lower() == ".json" else _from_text(data, path)
    return [_namespaced(entry, namespaces, known) for entry in entries]


def _from_text(data: bytes, path: Path) -> list[str | int]:
    what = "The published list is not UTF-8 text"
    lines = filled_lines(data, str(path), ManifestError, what, encoding="utf-8")
    for number, word in lines:
        if len(word.split()) > 1 or len(word) > 300 or not word.isprintable():
            raise ManifestError(
                "A line of the published list is not one image id",
                where=f"{path}, line {number}",
                expected="one id a line",
                found=repr(word[:80]),
            )
    words: list[str | int] = [word for _, word in lines]
    return words


def _from_json(data: bytes, path: Path) -> list[str | int]:
    refuse_repeated_keys(data, str(path), ManifestError)
    try:
        if data.lstrip()[:1] == b"{":
            images = msgspec.json.decode(data, type=ListedImages).images
            return [PurePosixPath(image.file_name).name or image.id for image in images]
        return msgspec.json.decode(data, type=list[str | int])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(
            "The published list is neither an array of ids nor COCO JSON",
            where=str(path),
            found=str(error)[:300],
        ) from None


def _namespaced(entry: str | int, namespaces: list[str], known: set[str]) -> str:
    if isinstance(entry, str) and ":" in entry:
        return entry
    # Filled up with zeros, VOC's 000139 would be COCO's 139: the digits as written decide before any filling.
    if len(namespaces) > 1 and (exact := namespaced_by_form(bare_id(str(entry)), namespaces)):
        return exact
    candidates = [f"{namespace}:{native_of(bare_id(str(entry)), namespace)}" for namespace in namespaces]
    return next((one for one in candidates if one in known), candidates[0] if candidates else str(entry))
