"""The folder of a manifest on this machine, by path or by name."""

from __future__ import annotations

import difflib
import re
import shlex
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from curation.core.arguments import checked
from curation.core.errors import CurationError, CurationWarning, ManifestError, UsageError
from curation.core.files import path_meant
from curation.core.reading import beginning
from curation.manifest.header import VERSION, version_numbers
from curation.manifest.manifest import (
    HEADER_FILE,
    LIST_FOLDER,
    Manifest,
    StoredHeader,
    manifest_roots,
    packaged_manifests,
    read_manifest,
    read_stated,
)

_DEPTH = 4
_ALIKE = 0.7


def manifest_folders(roots: list[Path] | None = None) -> dict[str, Path]:
    """Return the folder of every available manifest by ``NAME@VERSION``, sorted; the first root that has it decides."""
    folders: dict[str, Path] = {}
    for root in manifest_roots() if roots is None else roots:
        for folder in _folders_below(root):
            name = folder.relative_to(root)
            folders.setdefault(f"{name.parent.as_posix()}@{name.name}", folder)
    return dict(sorted(folders.items()))


@cache
def packaged_headers() -> tuple[StoredHeader, ...]:
    """Return the headers of the manifests in this package."""
    return tuple(read_stated(path.parent) for path in sorted(packaged_manifests().rglob(HEADER_FILE)))


@cache
def packaged_files() -> Mapping[str, str]:
    """Return the dataset of each raw file of the packaged manifests, by its digest."""
    return {
        file.sha256: entry.dataset for header in packaged_headers() for entry in header.sources for file in entry.files
    }


@cache
def packaged_lists() -> frozenset[str | None]:
    """Return the digests of the lists of packaged manifests."""
    return frozenset(part.sha256 for header in packaged_headers() for part in header.parts if part.images)


def find_manifest(target: str) -> Path:
    """Return the folder of a manifest, given its path, ``NAME@VERSION``, or ``NAME`` for the latest version.

    A folder of the working directory with a manifest is preferred to a name.

    Raises
    ------
    ManifestError
        The manifest does not exist, or the folder contains several; the message lists them or similar names.
    """
    if not target:
        # As a path, an empty text is the working folder.
        raise UsageError("Invalid manifest name", expected="a folder, NAME, or NAME@VERSION", found="an empty text")
    path = Path(target)
    if path.name == HEADER_FILE and path.is_file():
        return path.parent
    if (path / HEADER_FILE).is_file():
        return path
    at_hand, where = manifest_folders(), target[:200]
    if below := list(_folders_below(path)):
        if len(below) > 1:
            names = ", ".join(map(str, below[:10]))
            raise ManifestError("Several manifests match this name", where=where, expected="one of them", found=names)
        return below[0]
    if versions := [name for name in at_hand if target in (name, name.rpartition("@")[0])]:
        return at_hand[max(versions, key=_version_of)]
    if path.is_file():
        is_list = beginning(path, 64).lstrip()[:1] == b"["
        shown = f"{'TRUTH --detections ' * is_list}{shlex.quote(where)}"
        hint = f"curation inspect {shown} describes the file; curation build makes a manifest"
        raise ManifestError("A manifest is a folder, and this is a file", where=where, expected="a folder", hint=hint)
    near = _near(target, at_hand)
    hint = f"did you mean {' or '.join(near)}?" if near else path_meant(path) or "curation list manifests"
    expected = f"a folder with {HEADER_FILE}, or a name that `curation list manifests` prints"
    raise ManifestError("No such manifest", where=where, expected=expected, hint=hint)


def _version_of(name: str) -> tuple[int, ...]:
    version = name.rpartition("@")[2]
    return version_numbers(version) if re.fullmatch(VERSION, version) else ()


def _near(target: str, names: Iterable[str]) -> list[str]:
    """Return up to three names similar to the target, which may be a full name, its family or its last word."""
    called: dict[str, list[str]] = {}
    for name in names:
        bare = name.rpartition("@")[0]
        for word in dict.fromkeys((name, bare, *bare.split("/"))):
            called.setdefault(word, []).append(name)
    close = difflib.get_close_matches(target, called, n=3, cutoff=_ALIKE)
    return list(dict.fromkeys(name for word in close for name in called[word]))[:3]


def load_manifest(target: str | Path) -> Manifest:
    """Return the manifest that a path or name denotes (see `find_manifest`, `read_manifest`)."""
    return read_manifest(find_manifest(str(target)))


@checked
def load(target: str | Path) -> Manifest:
    """Return a manifest after checking every digest.

    Parameters
    ----------
    target : str or Path
        Its folder, or its name (``elephant/val2017``, ``NAME@VERSION``).

    Raises
    ------
    ManifestError
        The manifest does not exist, or its files do not agree with their digests.

    Examples
    --------
    >>> import curation
    >>> curation.load("elephant/val2017")
    <Manifest elephant/val2017 1.0.0, regenerated, 3 parts, 3 with lists, sha256:343e1b28cb1d>
    """
    return load_manifest(target)


def _folders_below(root: Path, depth: int = _DEPTH) -> Iterator[Path]:
    """Yield manifest folders in sorted order, no deeper than the folders of a name and a version."""
    if depth == 0 or not root.is_dir():
        return
    for entry in sorted(root.iterdir()):
        if entry.is_dir() and not entry.name.startswith("."):
            if (entry / HEADER_FILE).is_file():
                yield entry
            else:
                yield from _folders_below(entry, depth - 1)


def available_manifests(folders: Sequence[Path] = ()) -> list[dict[str, Any]]:
    """Return facts about every available manifest; unreadable manifests cause a warning and are left out.

    Digests are those stated in the files; only `read_manifest` checks header and lists against them.

    Parameters
    ----------
    folders : sequence of Path
        Folders of manifests besides the usual ones (see `curation.manifest.manifest.manifest_roots`).

    Raises
    ------
    UsageError
        No such folder.
    """
    for folder in folders:
        if not folder.is_dir():
            message, kind = "The folder of manifests does not exist", "a file" if folder.exists() else None
            raise UsageError(message, where=str(folder), expected="a folder of manifests", found=kind)
    headers: dict[str, StoredHeader] = {}
    folder_of = manifest_folders(manifest_roots(folders))
    for name, folder in folder_of.items():
        try:
            headers[name] = read_stated(folder)
        except CurationError as error:
            warnings.warn(f"{folder}: {error.what}", CurationWarning, stacklevel=2)
    return [
        {
            "name": header.name,
            "version": header.version,
            "protocol": header.rule.protocol,
            "origin": header.origin,
            "paper": f"{header.paper.venue} {header.paper.year}" if header.paper else "",
            "parts": ", ".join(part.name for part in header.parts),
            "ids_inside": [
                part.name for part in header.parts if (folder_of[name] / LIST_FOLDER / f"{part.name}.txt").is_file()
            ],
            "folder": str(folder_of[name]),
            "packaged": folder_of[name].is_relative_to(packaged_manifests()),
            "digest": header.digest,
            "supersedes": msgspec.to_builtins(header.supersedes),
        }
        for name, header in headers.items()
    ]
