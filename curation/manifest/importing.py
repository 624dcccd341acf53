"""Authors' lists as a manifest: every file and every id list is checked against the digests of a header.

A header of origin ``as_published`` names the authors' files in its source ``published-lists`` and states in its rule
the file, or the lines of a file, of each part. The lists are not redistributed: users complete the header with their
copies.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from msgspec.structs import replace

from curation.core.canonical import sha256_of_bytes, sha256_of_lines
from curation.core.errors import DigestMismatchError, ManifestError, MissingFileError, PathEscapeError, UsageError
from curation.core.files import read_bytes
from curation.core.ids import NATIVE_FORMS, native_of
from curation.core.json_text import decode_json
from curation.core.reading import filled_lines, read_plain
from curation.manifest.header import Figure, FileEntry, Header, PartEntry, SourceEntry
from curation.manifest.manifest import Manifest
from curation.manifest.validation import check_header, check_list_ids
from curation.sources.identity import AMBIGUOUS, STRAY
from curation.sources.published_list import ListedImages, bare_id, natives_of, only_list
from curation.sources.published_list import read_published as read_list
from curation.sources.source import Source

LISTS = "published-lists"
"""Name of the source whose files are the authors' lists."""
PROTOCOL = "as_published"
"""Name of the rule whose parameters give the file of each part."""

_SLICE = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})(?::([1-9][0-9]{0,8})-([1-9][0-9]{0,8}))?")
_SHOWN = 5
_MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class ListSlice:
    """A file, or its lines `first` to `last`, counted from 1, both included; None for the last line of the file."""

    file: str
    first: int = 1
    last: int | None = None


@dataclass(frozen=True, slots=True)
class AuthorsList:
    """The file of an authors' list: path, bytes, and their digest ``sha256:<hex>``."""

    path: Path
    data: bytes
    sha256: str

    @classmethod
    def read(cls, path: Path) -> AuthorsList:
        """Return the bytes and the digest of an authors' list.

        Raises
        ------
        MissingFileError
            The path is not a regular file, or cannot be read.
        ManifestError
            It is larger than any list of ids.
        """
        if not path.is_file():
            raise MissingFileError("The published list is not a file", where=str(path))
        data = read_bytes(path, kind="published list", most=_MAX_BYTES, error=ManifestError)
        return cls(path, data, sha256_of_bytes(data))

    @property
    def rows(self) -> int:
        """Number of lines, including a last line without a line end."""
        return len(self.data.removesuffix(b"\n").split(b"\n")) if self.data else 0

    def natives(self, namespace: str) -> Sequence[str]:
        """Return the ids, without namespace, of an imglist, table or JSON file, in file order.

        Raises
        ------
        AnnotationFormatError
            See `curation.sources.published_list.only_list` and `natives_of`.
        """
        return natives_of(only_list(read_list(self.path)), namespace, str(self.path))

    def lines(self) -> tuple[str, ...]:
        """Return the word on each line, in file order and with repeats.

        Raises
        ------
        ManifestError
            The file is not UTF-8, or a line is empty or has several words.
        """
        if self.path.suffix.lower() == ".parquet":
            # The rows of a table are sorted.
            return tuple(sorted(only_list(read_list(self.path)).stems.decode().split("\n")[:-1]))
        words = _words(self.data, self.path)
        if len(words) != self.rows:
            message, counts = "A published list has empty lines", f"{len(words)} ids on {self.rows} lines"
            raise ManifestError(message, where=str(self.path), expected="one id a line", found=counts)
        return tuple(words)


def complete_lists(header: Header, folder: Path) -> Manifest:
    """Return the manifest of a header with its lists, read from the authors' files below a folder.

    The header and its digest do not change. File order and repeats are kept. Lists are identified by their digest:
    among several files with the same name, as in a repository with two benchmarks, the file with the stated digest is
    read; if there is none, a file of another name with this digest is read.

    Parameters
    ----------
    header : Header
        Header of origin ``as_published``, with the digest of every file and list.
    folder : Path
        Searched by file name, then by size and digest, subfolders included.

    Raises
    ------
    MissingFileError
        A file is missing; the message lists all missing files.
    DigestMismatchError
        A file, or the list of its lines, has another digest.
    PathEscapeError
        A file of this name is a link that leads outside the folder.
    ManifestError
        The header does not state the file of a part, or a file is not a list of ids.
    """
    slices, pinned_names = list_slices(header), [file.name for file in _lists_source(header).files]
    if unpinned := sorted({piece.file for piece in slices.values()} - {*pinned_names}):
        where, names = f"{_title(header)}: sources[{LISTS}].files", ", ".join(pinned_names) or "none"
        message = "The header states no digest of a published list"
        raise ManifestError(message, where=where, expected=", ".join(unpinned), found=names)
    files = _read_files(header, slices, folder)
    lists = _part_ids(header, slices, files)
    for part in header.parts:
        ids, where = lists[part.name], f"{_title(header)}: parts[{part.name}]"
        if (digest := sha256_of_lines(ids)) != part.sha256:
            raise DigestMismatchError(
                f"The lines of {slices[part.name].file} are not the list of part {part.name!r} in the header",
                where=where,
                expected=f"{part.images} ids, {part.sha256}",
                found=f"{len(ids)} ids, {digest}",
                hint="the file is right, and the header is wrong: fetch the header again",
            )
        check_list_ids(ids, part, where=where)
    return Manifest(header=header, lists=lists)


def pin_lists(draft: Header, folder: Path, sources: Mapping[str, Source] = MappingProxyType({})) -> Manifest:
    """Return a manifest from a draft of its header: with its lists, and the digests and counts of all files and parts.

    Parameters
    ----------
    draft : Header
        Like the header of `complete_lists`, but without lists and obtained figures; a file is stated only by digest, or
        by its name in the rule. A figure named ``PART.images`` or ``PART.distinct_images`` gets the number of the list;
        its explanation is kept if this number differs from the paper.
    sources : mapping of str to Source, optional
        Sources of the images by name. If all sources of a part are given, its lines are matched with their ids, paths
        and file names (`curation.sources.identity`), and the list has the ids of the sources.

    Raises
    ------
    CurationError
        As in `complete_lists`; or a line names no image of the sources, or two; or several files without a digest have
        the same name.
    """
    slices = list_slices(draft)
    files = _read_files(draft, slices, folder)
    lists = _part_ids(draft, slices, files, sources)
    entries = tuple(
        FileEntry(name=name, sha256=file.sha256, size=len(file.data), rows=file.rows)
        for name, file in sorted(files.items())
    )
    header = replace(
        draft,
        parts=tuple(_pinned(part, lists[part.name]) for part in draft.parts),
        sources=tuple(replace(source, files=entries) if source.name == LISTS else source for source in draft.sources),
        figures=tuple(_obtained(figure, lists) for figure in draft.figures),
    )
    check_header(header, where=_title(header))
    return Manifest(header=header, lists=lists)


def list_slices(header: Header) -> dict[str, ListSlice]:
    """Return the file, or the lines of a file, of each part, as the header's rule declares them.

    Raises
    ------
    UsageError
        The header is not one of published lists.
    ManifestError
        It states no file for a part, or does not use the form ``FILE`` or ``FILE:FIRST-LAST``.
    """
    if header.origin != "as_published" or header.rule.protocol != PROTOCOL:
        raise UsageError(
            "The manifest is not one of published lists",
            where=_title(header),
            expected=f"origin as_published, rule {PROTOCOL}",
            found=f"origin {header.origin}, rule {header.rule.protocol[:80]}",
            hint=Manifest(header, {}).completion() if header.origin == "declared" else None,
        )
    slices = {}
    for part in header.parts:
        text = header.rule.parameters.get(part.name)
        match = _SLICE.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            message = f"The header does not state the file of part {part.name!r}"
            where, value = f"{_title(header)}: rule.parameters.{part.name}", repr(text)[:100]
            raise ManifestError(message, where=where, expected="a file name, or FILE:FIRST-LAST", found=value)
        file, first, last = match.groups()
        slices[part.name] = ListSlice(file, int(first), int(last)) if first else ListSlice(file)
    return slices


def _read_files(header: Header, slices: Mapping[str, ListSlice], folder: Path) -> dict[str, AuthorsList]:
    """Return each list below a folder: the file with the header's digest, else the file with its name."""
    pinned: dict[str, FileEntry | None] = {piece.file: None for piece in slices.values()}
    pinned |= {file.name: file for file in _lists_source(header).files}
    root, files_of, others = os.path.realpath(folder), {name: list[AuthorsList]() for name in pinned}, list[Path]()
    for below, folders, files in os.walk(folder):
        folders.sort()
        for path in (Path(below, name) for name in sorted(files)):
            inside = Path(os.path.realpath(path)).is_relative_to(root)
            if path.name in files_of:
                if not inside:
                    message = "A published list is a link that leads outside the folder"
                    raise PathEscapeError(message, where=str(path), expected=f"below {folder}")
                files_of[path.name].append(AuthorsList.read(path))
            elif inside and path.is_file():
                others.append(path)
    for name, entry in pinned.items():
        if entry is not None and all(file.sha256 != entry.sha256 for file in files_of[name]):
            same_size = (AuthorsList.read(path) for path in others if path.stat().st_size == entry.size)
            files_of[name] += [file for file in same_size if file.sha256 == entry.sha256][:1]
    if missing := [name for name, candidates in files_of.items() if not candidates]:
        raise MissingFileError(
            f"{len(missing)} of the {len(files_of)} published lists are missing",
            where=str(folder),
            expected=", ".join(missing),
            found=", ".join(name for name in files_of if files_of[name])
            or ("none of them, under any name" if folder.is_dir() else "no such folder"),
            hint=f"the lists are those of {note}"
            if (note := _lists_source(header).note)
            else f"--source {LISTS}=FOLDER is the folder of the lists",
        )
    return {name: _chosen(header, pinned[name], candidates, folder) for name, candidates in files_of.items()}


def _chosen(header: Header, entry: FileEntry | None, files: Sequence[AuthorsList], folder: Path) -> AuthorsList:
    """Return the file with the stated digest; without a digest there must be only one file."""
    if entry is None:
        if len(files) > 1:
            message = f"Several files are named {files[0].path.name}, and no digest selects one"
            hint, paths = "--lists DIR with a folder that contains only one", [str(file.path) for file in files]
            raise UsageError(message, where=str(folder), found=", ".join(paths[:_SHOWN]), hint=hint)
        return files[0]
    if fitting := [file for file in files if file.sha256 == entry.sha256]:
        return fitting[0]
    described = [f"{file.sha256}, {len(file.data)} bytes" for file in files[:_SHOWN]]
    if any(sha256_of_bytes(file.data.replace(b"\r\n", b"\n")) == entry.sha256 for file in files):
        described.append("the right list with CRLF line ends, as git's autocrlf makes them")
    note = _lists_source(header).note
    raise DigestMismatchError(
        f"This {entry.name} is not the {entry.name} of {_title(header)}",
        where=", ".join(str(file.path) for file in files[:_SHOWN]),
        expected=entry.sha256 + f", {entry.rows} lines" * bool(entry.rows) + f", {entry.size} bytes" * bool(entry.size),
        found="; ".join(described),
        hint=f"the lists are those of {note}; `curation identify FILE` names a known list"
        if note
        else "fetch the list again; or, if the change is intended, write its new digest into the file",
    )


def _part_ids(
    header: Header,
    slices: Mapping[str, ListSlice],
    files: Mapping[str, AuthorsList],
    sources: Mapping[str, Source] = MappingProxyType({}),
) -> dict[str, tuple[str, ...]]:
    namespaces = {entry.name: entry.namespace for entry in header.sources}
    read: dict[tuple[str, str], Sequence[str]] = {}
    lists = {}
    for part in header.parts:
        piece = slices[part.name]
        if part.sources and all(name in sources for name in part.sources):
            lists[part.name] = _looked_up(header, part, piece, files[piece.file], sources)
            continue
        spaces = sorted({namespaces[name] for name in part.sources if name in namespaces})
        key = (piece.file, spaces[0] if _any_form(spaces) else "")
        if key not in read:
            read[key] = files[piece.file].natives(key[1]) if key[1] else files[piece.file].lines()
        lists[part.name] = _sliced(header, part, piece, read[key], spaces)
    return lists


def _looked_up(
    header: Header, part: PartEntry, cut: ListSlice, file: AuthorsList, sources: Mapping[str, Source]
) -> tuple[str, ...]:
    """Return the ids of the images that the lines of a list name in some sources."""
    paths = only_list(read_list(file.path)).paths.decode().split("\n")[:-1]
    lines = _lines_of(header, part, cut, paths)
    matches = [list[str]() for _ in lines]
    for source in (sources[name] for name in part.sources):
        positions = source.image_index.resolve(lines).position
        for row, position in enumerate(positions.tolist()):
            if position == AMBIGUOUS:
                matches[row] += ["two images", "of this name"]
            elif position != STRAY:
                matches[row].append(str(source.image_ids[position]))
    for row, images in enumerate(matches):
        if len(images) != 1:
            raise ManifestError(
                "A line of the list names several images" if images else "A line of the list names no image",
                where=f"{cut.file}, line {cut.first + row}",
                expected=f"an image of {', '.join(part.sources)}",
                found=f"{lines[row][:80]}: {', '.join(images)[:120]}".removesuffix(": ")
                + f"; such lines: {sum(len(each) != 1 for each in matches)} of {len(matches)}",
                hint=f"--source {part.sources[0]}=PATH is the data of all images of the list",
            )
    return tuple(images[0] for images in matches)


def _any_form(namespaces: Sequence[str]) -> bool:
    """Return whether lists of a namespace may have any published form; those of COCO and VOC have only ids."""
    return len(namespaces) == 1 and namespaces[0] not in NATIVE_FORMS


def _sliced(
    header: Header, part: PartEntry, cut: ListSlice, words: Sequence[str], namespaces: Sequence[str]
) -> tuple[str, ...]:
    ids = []
    for number, word in enumerate(_lines_of(header, part, cut, words), start=cut.first):
        if (text := namespaced_by_form(word, namespaces) or namespaced_by_form(bare_id(word), namespaces)) is None:
            message = "A line of the published list is not an image id of its sources"
            where = f"{cut.file}, line {number}"
            raise ManifestError(message, where=where, expected=f"an id of {namespaces}", found=repr(word[:80]))
        ids.append(text)
    return tuple(ids)


def _lines_of(header: Header, part: PartEntry, cut: ListSlice, words: Sequence[str]) -> Sequence[str]:
    last = len(words) if cut.last is None else cut.last
    if cut.last is not None and not cut.first <= last <= len(words):
        message = f"Part {part.name!r} refers to lines that its file does not have"
        where, expected = f"{_title(header)}: rule.parameters.{part.name}", f"lines within 1-{len(words)} of {cut.file}"
        raise ManifestError(message, where=where, expected=expected, found=f"{cut.first}-{last}")
    return words[cut.first - 1 : last]


def _pinned(part: PartEntry, ids: Sequence[str]) -> PartEntry:
    repeats = len(ids) - len(set(ids))
    return replace(part, order="listed", images=len(ids), repeats=repeats, sha256=sha256_of_lines(ids))


def _obtained(figure: Figure, lists: Mapping[str, Sequence[str]]) -> Figure:
    part, _, quantity = figure.name.rpartition(".")
    if part not in lists or quantity not in ("images", "distinct_images"):
        return figure
    count = len(lists[part]) if quantity == "images" else len(set(lists[part]))
    explanation = "" if count == figure.paper else figure.explanation or "the published list has another length"
    return replace(figure, obtained=count, explanation=explanation)


def _lists_source(header: Header) -> SourceEntry:
    sources = {source.name: source for source in header.sources}
    if LISTS not in sources:
        where, names = f"{_title(header)}: sources", ", ".join(sources) or "none"
        raise ManifestError("The header names no published lists", where=where, expected=LISTS, found=names)
    return sources[LISTS]


def _title(header: Header) -> str:
    return f"{header.name} {header.version}"


def namespaced_by_form(text: str, namespaces: Iterable[str]) -> str | None:
    """Return ``namespace:text`` with the only namespace whose form fits the id, or None.

    Twelve digits fit COCO, six VOC2007, year and number VOC2012; any text fits another namespace.

    >>> namespaced_by_form("000005", ["voc2007", "voc2012", "coco"])
    'voc2007:000005'
    """
    fitting = [name for name in namespaces if re.fullmatch(NATIVE_FORMS.get(name, ".*"), text)]
    return f"{fitting[0]}:{text}" if len(fitting) == 1 else None


def read_published_ids(path: Path, ids: Sequence[str]) -> list[str]:
    """Return the ids of a published list in file order, with the namespaces of the part that they are compared with.

    Parameters
    ----------
    path : Path
        ``.txt``: one id a line. ``.json``: an array of ids, or COCO JSON with its ``images``. For datasets other than
        COCO and VOC any published form (`curation.sources.published_list`).
    ids : sequence of str
        Ids of the part. Bare ids get its namespace; if it has several, the namespace whose form fits them, else the one
        with which the part contains them.

    Raises
    ------
    MissingFileError
        No such file.
    ManifestError
        The file is not such a list.
    """
    known = set(ids)
    namespaces = sorted({image.partition(":")[0] for image in known})
    if _any_form(namespaces):
        space = namespaces[0]
        return [f"{space}:{native}" for native in natives_of(only_list(read_list(path)), space, str(path))]
    data = read_plain(path, kind="published list")
    words = _from_json(data, path) if path.suffix.lower() == ".json" else _words(data, path)
    return [_namespaced(str(word), namespaces, known) for word in words]


def _words(data: bytes, path: Path) -> list[str]:
    message = "The published list is not UTF-8 text"
    lines = filled_lines(data, str(path), ManifestError, message, encoding="utf-8")
    for number, word in lines:
        if len(word.split()) > 1 or len(word) > 300 or not word.isprintable():
            message, where = "A line of the published list is not one image id", f"{path}, line {number}"
            raise ManifestError(message, where=where, expected="one id a line", found=repr(word[:80]))
    return [word for _, word in lines]


def _from_json(data: bytes, path: Path) -> list[str | int]:
    message = "The published list is neither an array of ids nor COCO JSON"
    if data.lstrip()[:1] != b"{":
        return decode_json(data, list[str | int], ManifestError, message, where=str(path))
    images = decode_json(data, ListedImages, ManifestError, message, where=str(path)).images
    return [PurePosixPath(image.file_name).name or image.id for image in images]


def _namespaced(entry: str, namespaces: list[str], known: set[str]) -> str:
    if ":" in entry:
        return entry
    bare = bare_id(entry)
    # The unpadded digits decide first: padded with zeros, VOC's 000139 would become COCO's 139.
    if len(namespaces) > 1 and (exact := namespaced_by_form(bare, namespaces)):
        return exact
    candidates = [f"{namespace}:{native_of(bare, namespace)}" for namespace in namespaces] or [entry]
    return next((candidate for candidate in candidates if candidate in known), candidates[0])
