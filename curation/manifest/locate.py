"""Where manifests lie on this disk, by folder or by name."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from curation.errors import ManifestError, UsageError
from curation.manifest.header import Header
from curation.manifest.manifest import Manifest
from curation.manifest.store import HEADER_FILE, read_manifest

VARIABLE = "CURATION_MANIFESTS"
_DEPTH = 4
_ALIKE = 0.7


def packaged_manifests() -> Path:
    """Return the folder of manifests that come with this package: inside it once installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "manifests"
    return installed if installed.is_dir() else package.parent / "manifests"


def manifest_roots(more: Iterable[Path] = ()) -> list[Path]:
    """Return the folders searched for manifests by name, the first to have one wins.

    They are ``./manifests``, those of ``$CURATION_MANIFESTS``, `more`, and last what comes with this package.
    """
    named = os.environ.get(VARIABLE, "")
    return [
        Path("manifests"),
        *(Path(one) for one in named.split(os.pathsep) if one),
        *more,
        packaged_manifests(),
    ]


def manifest_folders(roots: list[Path] | None = None) -> dict[str, Path]:
    """Return every manifest at hand, ``NAME@VERSION`` to folder, sorted; an earlier root goes before a later one."""
    found: dict[str, Path] = {}
    for root in manifest_roots() if roots is None else roots:
        for folder in _folders_below(root):
            name = folder.relative_to(root)
            found.setdefault(f"{name.parent.as_posix()}@{name.name}", folder)
    return dict(sorted(found.items()))


def find_manifest(target: str) -> Path:
    """Return the folder of a manifest named by path, by ``NAME@VERSION``, or by ``NAME``.

    Of several versions at hand ``NAME`` is the one that supersedes all others, directly or one after the other.

    A folder of the working directory that holds a manifest goes before a name.

    Raises
    ------
    ManifestError
        There is none, or several: the message lists them or the nearest names.
    """
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
    if candidates:
        raise ManifestError(
            "Several manifests answer to this name",
            where=target[:200],
            expected="one of them",
            found=", ".join(list(candidates)[:10]),
        )
    near = _near(target, at_hand)
    raise ManifestError(
        "There is no such manifest",
        where=target[:200],
        expected=f"a folder with {HEADER_FILE}, or a name that `curation list manifests` prints",
        hint=f"did you mean {' or '.join(near)}?" if near else "curation list manifests",
    )


def _near(target: str, names: Iterable[str]) -> list[str]:
    """Return up to three names like the target, which may be a whole name, its family or its last word."""

    def likeness(name: str) -> float:
        bare = name.rpartition("@")[0]
        family, _, last = bare.rpartition("/")
        words = (name, bare, last)
        return max(
            float(target == family), *(difflib.SequenceMatcher(None, word, target).ratio() for word in words)
        )

    return sorted((one for one in names if likeness(one) > _ALIKE), key=lambda one: (-likeness(one), one))[:3]


def _superseding_all(folders: list[Path]) -> Path | None:
    """Return the folder of the version whose chain of superseded ones leads through all the others, or None."""
    at_hand = {
        manifest.digest: (folder, manifest) for folder in folders for manifest in [read_manifest(folder)]
    }
    links = {
        digest: manifest.header.supersedes.digest
        for digest, (_, manifest) in at_hand.items()
        if manifest.header.supersedes is not None
    }
    heads = [digest for digest in at_hand if digest not in links.values()]
    if len(heads) != 1:
        return None
    # A header cannot hold its own digest, nor that of a header that holds its own: the chain ends.
    chain = [heads[0]]
    while (earlier := links.get(chain[-1])) in at_hand:
        chain.append(str(earlier))
    return at_hand[heads[0]][0] if len(chain) == len(folders) else None


def load_manifest(target: str | Path) -> Manifest:
    """Return the manifest that a path or name denotes (see `find_manifest`, `read_manifest`)."""
    return read_manifest(find_manifest(str(target)))


def is_approximate(header: Header) -> bool:
    """Return whether a list was selected by presence labels instead of annotations."""
    evidence = ("wilderness_evidence", "train_evidence")
    return any(header.rule.parameters.get(name) == "presence" for name in evidence)


def keep_approximate_out(manifest: Manifest, out: Path) -> None:
    """Raise `UsageError` where an approximate list would land among the manifests that others trust."""
    trusted = [root for root in manifest_roots() if out.resolve().is_relative_to(root.resolve())]
    if trusted and is_approximate(manifest.header):
        raise UsageError(
            "An approximate list does not go among the trusted manifests",
            where=f"--out {out}",
            expected="annotations with boxes, or a folder elsewhere",
            found=f"a table of image and class, and a folder below {trusted[0]}",
        )


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
