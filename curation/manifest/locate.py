"""Where manifests lie on this disk, by folder or by name."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.core.errors import CurationError, CurationWarning, DigestMismatchError, ManifestError, UsageError
from curation.core.files import path_meant
from curation.manifest.header import Header
from curation.manifest.manifest import (
    HEADER_FILE,
    Manifest,
    manifest_roots,
    packaged_manifests,
    read_manifest,
    read_stated,
)
from curation.manifest.validation import require_earlier

_DEPTH = 4
_ALIKE = 0.7


def manifest_folders(roots: list[Path] | None = None) -> dict[str, Path]:
    """Return every available manifest, ``NAME@VERSION`` to folder, sorted; an earlier root goes before a later one."""
    folders: dict[str, Path] = {}
    for root in manifest_roots() if roots is None else roots:
        for folder in _folders_below(root):
            name = folder.relative_to(root)
            folders.setdefault(f"{name.parent.as_posix()}@{name.name}", folder)
    return dict(sorted(folders.items()))


def find_manifest(target: str) -> Path:
    """Return the folder of a manifest named by path, by ``NAME@VERSION``, or by ``NAME``.

    Of several available versions ``NAME`` is the one that supersedes all others, directly or one after the other.

    A folder of the working directory that holds a manifest goes before a name.

    Raises
    ------
    ManifestError
        There is none, or several: the message lists them or the nearest names.
    """
    if not target:
        # As a path it would be the working folder.
        raise UsageError("Invalid manifest name", expected="a folder, NAME, or NAME@VERSION", found="an empty text")
    path = Path(target)
    if path.name == HEADER_FILE and path.is_file():
        return path.parent
    if (path / HEADER_FILE).is_file():
        return path
    at_hand = manifest_folders()
    below = {str(folder): folder for folder in _folders_below(path)} if path.is_dir() else {}
    candidates = below or {
        name: folder for name, folder in at_hand.items() if target in (name, name.rpartition("@")[0])
    }
    if len(candidates) == 1:
        return next(iter(candidates.values()))
    if not below and (current := _superseding_all(list(candidates.values()))) is not None:
        return current
    where = target[:200]
    if candidates:
        names = ", ".join(list(candidates)[:10])
        raise ManifestError("Several manifests match this name", where=where, expected="one of them", found=names)
    if path.is_file():
        hint = f"curation inspect {target[:200]} shows what an annotation file holds, curation build makes a manifest"
        raise ManifestError("A manifest is a folder, and this is a file", where=where, expected="a folder", hint=hint)
    near = _near(target, at_hand)
    hint = f"did you mean {' or '.join(near)}?" if near else path_meant(path) or "curation list manifests"
    expected = f"a folder with {HEADER_FILE}, or a name that `curation list manifests` prints"
    raise ManifestError("No such manifest", where=where, expected=expected, hint=hint)


def _near(target: str, names: Iterable[str]) -> list[str]:
    """Return up to three names like the target, which may be a whole name, its family or its last word."""
    called: dict[str, list[str]] = {}
    for name in names:
        bare = name.rpartition("@")[0]
        for word in dict.fromkeys((name, bare, *bare.split("/"))):
            called.setdefault(word, []).append(name)
    close = difflib.get_close_matches(target, called, n=3, cutoff=_ALIKE)
    return list(dict.fromkeys(name for word in close for name in called[word]))[:3]


def _superseding_all(folders: list[Path]) -> Path | None:
    """Return the folder of the version whose chain of superseded ones leads through all the others, or None."""
    at_hand = {(read := read_manifest(folder)).digest: (folder, read.header) for folder in folders}
    links = {digest: header.supersedes.digest for digest, (_, header) in at_hand.items() if header.supersedes}
    heads = at_hand.keys() - links.values()
    if len(heads) != 1:
        return None
    # A header cannot hold its own digest, nor that of a header that holds its own: the chain ends.
    last, count = next(iter(heads)), 1
    current = at_hand[last][0]
    while (last := links.get(last, "")) in at_hand:
        count += 1
    return current if count == len(folders) else None


def load_manifest(target: str | Path) -> Manifest:
    """Return the manifest that a path or name denotes (see `find_manifest`, `read_manifest`)."""
    return read_manifest(find_manifest(str(target)))


def _folders_below(root: Path, depth: int = _DEPTH) -> Iterator[Path]:
    """Yield manifest folders in sorted order, not deeper than a name and a version reach."""
    if depth == 0 or not root.is_dir():
        return
    for entry in sorted(root.iterdir()):
        if entry.is_dir() and not entry.name.startswith("."):
            if (entry / HEADER_FILE).is_file():
                yield entry
            else:
                yield from _folders_below(entry, depth - 1)


@dataclass(frozen=True, slots=True)
class Superseded:
    """An earlier version that a manifest replaces, directly or through others."""

    version: str
    digest: str
    reason: str
    at_hand: bool


def superseded_by(header: Header, at_hand: Mapping[str, tuple[str, Header]]) -> tuple[Superseded, ...]:
    """Return the versions that a manifest replaces, the latest first, as far back as they are available, and one more.

    Parameters
    ----------
    at_hand : mapping of str to (str, Header)
        Digest and header by ``NAME@VERSION``.

    Raises
    ------
    ManifestError
        A version replaces itself or a later one.
    DigestMismatchError
        A digest is not that of the version it points to.
    """
    chain: list[Superseded] = []
    current: Header | None = header
    while current is not None and (link := current.supersedes) is not None:
        where = f"{current.name} {current.version}: supersedes"
        require_earlier(current, [where])
        digest, current = at_hand.get(f"{current.name}@{link.version}", ("", None))
        if current is not None and digest != link.digest:
            message = "A manifest supersedes a version by a digest that is not that version's"
            raise DigestMismatchError(message, where=f"{where} {link.version}", expected=digest, found=link.digest)
        chain.append(Superseded(link.version, link.digest, link.reason, current is not None))
    return tuple(chain)


def available_manifests(folders: Sequence[Path] = ()) -> list[dict[str, Any]]:
    """Return what the header of every available manifest states; one that cannot be read is warned of and left out.

    Digests are the stated ones: `read_manifest` holds header and lists against them.

    Parameters
    ----------
    folders : sequence of Path
        Folders of manifests beside the usual ones (see `curation.manifest.manifest.manifest_roots`).

    Raises
    ------
    UsageError
        No such folder.
    ManifestError, DigestMismatchError
        See `superseded_by`.
    """
    for folder in folders:
        if not folder.is_dir():
            message, kind = "The folder of manifests does not exist", "a file" if folder.exists() else None
            raise UsageError(message, where=str(folder), expected="a folder of manifests", found=kind)
    at_hand: dict[str, tuple[str, Header]] = {}
    folder_of = manifest_folders(manifest_roots(folders))
    for name, folder in folder_of.items():
        try:
            stored = read_stated(folder)
            at_hand[name] = stored.digest, stored
        except CurationError as error:
            warnings.warn(f"{folder}: {error.what}", CurationWarning, stacklevel=2)
    return [
        {
            "name": header.name,
            "version": header.version,
            "protocol": header.rule.protocol,
            "origin": header.origin,
            "parts": ", ".join(part.name for part in header.parts),
            "folder": str(folder_of[name]),
            "packaged": folder_of[name].is_relative_to(packaged_manifests()),
            "digest": digest,
            "supersedes": [
                {"version": entry.version, "digest": entry.digest, "at_hand": entry.at_hand}
                for entry in superseded_by(header, at_hand)
            ],
        }
        for name, (digest, header) in at_hand.items()
    ]
