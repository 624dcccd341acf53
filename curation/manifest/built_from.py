"""The sources that a manifest was built from, and their content; stored next to the header, not in its digest."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from curation.core.errors import CurationError, ManifestError, SourceError
from curation.core.files import read_bytes
from curation.core.json_text import decode_json
from curation.core.writing import add_input
from curation.manifest.header import Header
from curation.sources.source_specs import BadBoxes, Reading, SourceSlot

if TYPE_CHECKING:
    from curation.sources.source import Source

BUILT_FROM_FILE = ".curation.sources.json"
CONTENTS_FILE = ".curation.contents.json"
"""Contents of the sources, in a separate file from their paths, because earlier versions also read the folder."""
_MOST_BYTES = 16 << 20
Content = TypeVar("Content")


class SourceContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of a source for the classes and the listed images of a manifest.

    Attributes
    ----------
    classes : dict of str to (int, int)
        Images and boxes of each class that has any; a source without boxes has 0 boxes.
    checksum : str
        Digest of every box with its image and class, in any order; without boxes, of every image with its class.
    names : str
        Checksum of the file names of the images, without folders; ``""`` if an image has no file name.
    details : str
        Checksum of image sizes, of the area and the crowd and difficult flags of each box, and of labels of images.
    """

    classes: dict[str, tuple[int, int]]
    checksum: str
    names: str
    details: str


class BuiltFrom(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sources of a build, whose digests are in the header.

    Attributes
    ----------
    sources : dict of str to str
        Absolute path of each source that was given as a path, by name; relative to the manifest's folder in the file.
    bad_boxes : str
        Treatment of bad boxes in the build.
    seam : str
        How earlier versions read MTSD's signs across the seam of a panorama.
    contents : dict of str to SourceContent
        Content of the sources by name, in a separate file; empty if an earlier version built the manifest.
    """

    sources: dict[str, str]
    bad_boxes: BadBoxes = "error"
    seam: Literal["drop"] = "drop"
    contents: dict[str, SourceContent] = {}

    def stored(self, folder: Path) -> dict[str, bytes]:
        """Return the bytes of the files that record the sources of a manifest in a folder, by file name."""
        paths = {name: _relative(path, folder) for name, path in self.sources.items()}
        content = {"sources": paths, "bad_boxes": self.bad_boxes}
        files = {BUILT_FROM_FILE: (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()} if paths else {}
        if self.contents:
            files[CONTENTS_FILE] = msgspec.json.encode(self.contents, order="deterministic") + b"\n"
        return files


def _relative(path: str, folder: Path) -> str:
    # Only the folder is resolved: the file itself may be a link whose target has another suffix.
    real = Path(os.path.realpath(Path(path).parent), Path(path).name)
    try:
        return Path(os.path.relpath(real, os.path.realpath(folder))).as_posix()
    except ValueError:
        return real.as_posix()  # Another drive.


def built_from(
    values: Mapping[str, Any],
    slots: Sequence[SourceSlot],
    reading: Reading,
    contents: Mapping[str, SourceContent] | None = None,
) -> BuiltFrom | None:
    """Return the record of a build's sources; None if no source is a path."""
    by_name = {key.partition("@")[0]: path for key, path in values.items()}
    path_of = {slot.name: by_name.get(slot.name, by_name.get(slot.dataset)) for slot in slots}
    paths = {
        name: str(Path(path).absolute())
        for name, path in path_of.items()
        if isinstance(path, str | os.PathLike) and Path(path).exists()
    }
    return BuiltFrom(paths, reading.bad_boxes, contents=dict(contents or {})) if paths or contents else None


_FILES: tuple[tuple[str, Any, str], ...] = (
    (BUILT_FROM_FILE, BuiltFrom, "remove {}, and give --source NAME=PATH"),
    (CONTENTS_FILE, dict[str, SourceContent], "remove {}: verify then counts by role alone"),
)
"""Name, content and hint of the two files; the hint is for a file that cannot be read."""


def read_built_from(folder: Path) -> BuiltFrom | None:
    """Return the remembered sources of the manifest in a folder; None if it has no such file.

    They are inputs of the running command, even if it does not read them.

    Raises
    ------
    ManifestError
        A file has other content than curation writes.
    """
    read, contents = (_read(folder / name, kind, hint) for name, kind, hint in _FILES)
    if read is None and contents is None:
        return None
    read = read or BuiltFrom({})
    paths = {name: os.path.normpath(folder.resolve() / text) for name, text in read.sources.items()}
    for source in paths.values():
        add_input(Path(source))
    return msgspec.structs.replace(read, sources=paths, contents=contents or {})


def _read(path: Path, kind: Any, hint: str) -> Any:
    """Return the content of a file, or None if it does not exist."""
    if not path.is_file():
        return None
    data = read_bytes(path, kind="record of sources", most=_MOST_BYTES, error=ManifestError)
    message = "The record of the manifest's sources cannot be read"
    return decode_json(data, kind, ManifestError, message, where=str(path), hint=hint.format(path))


def open_remembered(
    stored: BuiltFrom | None,
    header: Header,
    slots: Sequence[SourceSlot],
    values: Mapping[str, Any],
    reading: Reading,
    *,
    allow_changed: bool = False,
) -> dict[str, Source]:
    """Return the given sources, and for others the remembered sources of the build, if they agree with the header.

    Raises
    ------
    SourceError
        A remembered file was moved, cannot be read, or was changed and `allow_changed` is not set.
    """
    from curation.sources.opening import open_slots

    opened = open_slots(values, slots, reading)
    if stored is None:
        return opened
    as_built = Reading(bad_boxes=stored.bad_boxes)
    digests_of = {entry.name: {file.sha256 for file in entry.files} for entry in header.sources}
    for slot in slots:
        if slot.name in opened or slot.name not in stored.sources:
            continue
        path = Path(stored.sources[slot.name])
        hint = f"--source {slot.name}=PATH; or remove {BUILT_FROM_FILE} from the manifest's folder and use no source"
        where = f"source {slot.name}: {path}"
        if not path.exists():
            raise SourceError("A file that the manifest was built from no longer exists", where=where, hint=hint)
        try:
            source = open_slots({slot.name: path}, [slot], as_built)[slot.name]
        except CurationError as error:
            message = f"A file that the manifest was built from cannot be read: {error.what}"
            raise SourceError(message, where=where, expected=error.expected, found=error.found, hint=hint) from error
        file_digests = {file.sha256 for file in source.files}
        if digests_of[slot.name] and file_digests != digests_of[slot.name] and not allow_changed:
            expected, changed = (", ".join(sorted(digests))[:300] for digests in (digests_of[slot.name], file_digests))
            message = "A file that the manifest was built from has changed since"
            raise SourceError(message, where=where, expected=expected, found=changed, hint=hint)
        opened[slot.name] = source
    return {slot.name: opened[slot.name] for slot in slots if slot.name in opened}
