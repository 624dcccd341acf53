"""Which manifests a folder holds, what each supersedes, and the index that says so to programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.errors import DigestMismatchError, ManifestError, UsageError
from curation.manifest.check import require_earlier, version_numbers
from curation.manifest.header import Header
from curation.manifest.locate import manifest_folders
from curation.manifest.manifest import Manifest
from curation.manifest.store import read_manifest

INDEX_FILE = "index.json"
INDEX_VERSION = 1


@dataclass(frozen=True, slots=True)
class Superseded:
    """An earlier version that a manifest replaces, directly or through others."""

    version: str
    digest: str
    reason: str
    at_hand: bool


def superseded_by(manifest: Manifest, at_hand: Mapping[str, Manifest]) -> tuple[Superseded, ...]:
    """Return the versions that a manifest replaces, the latest first, as far back as they are at hand and one further.

    Parameters
    ----------
    at_hand : mapping of str to Manifest
        By ``NAME@VERSION``.

    Raises
    ------
    ManifestError
        A version replaces itself or a later one.
    DigestMismatchError
        A digest is not that of the version it points to.
    """
    chain: list[Superseded] = []
    current: Manifest | None = manifest
    while current is not None and (link := current.header.supersedes) is not None:
        header = current.header
        require_earlier(header, [f"{header.name} {header.version}: supersedes"])
        current = at_hand.get(f"{header.name}@{link.version}")
        if current is not None and current.digest != link.digest:
            raise DigestMismatchError(
                "A manifest supersedes a version by a digest that is not that version's",
                where=f"{header.name} {header.version}: supersedes {link.version}",
                expected=current.digest,
                found=link.digest,
            )
        chain.append(Superseded(link.version, link.digest, link.reason, current is not None))
    return tuple(chain)


def manifest_index(root: Path) -> dict[str, Any]:
    """Return the index of a folder of manifests as `index_schema.json` describes it, sorted by name and version.

    Raises
    ------
    UsageError
        There is no such folder.
    ManifestError
        A manifest is damaged, lies elsewhere than its name and version say, or its chain of versions is broken.
    """
    if not root.is_dir():
        raise UsageError("The folder of manifests does not exist", where=str(root), expected="a folder")
    folders = manifest_folders([root])
    manifests = {name: read_manifest(folder) for name, folder in folders.items()}
    for name, manifest in manifests.items():
        _require_its_place(name, manifest.header, folders[name])
    ordered = sorted(
        manifests.values(), key=lambda one: (one.header.name, version_numbers(one.header.version))
    )
    return {"schema_version": INDEX_VERSION, "manifests": [_entry(one, manifests) for one in ordered]}


def index_text(index: Mapping[str, Any]) -> str:
    """Return the text of an index file."""
    return json.dumps(index, indent=1, ensure_ascii=False) + "\n"


def _entry(manifest: Manifest, at_hand: Mapping[str, Manifest]) -> dict[str, Any]:
    header = manifest.header
    return {
        "name": header.name,
        "version": header.version,
        "path": f"{header.name}/{header.version}",
        "digest": manifest.digest,
        "origin": header.origin,
        "protocol": header.rule.protocol,
        "taxonomy": header.taxonomy,
        "paper": header.paper.title,
        "parts": [
            {
                "name": part.name,
                "role": part.role,
                "images": part.images,
                "list": part.name in manifest.lists,
            }
            for part in header.parts
        ],
        "supersedes": [
            {"version": one.version, "digest": one.digest, "at_hand": one.at_hand}
            for one in superseded_by(manifest, at_hand)
        ],
    }


def _require_its_place(name: str, header: Header, folder: Path) -> None:
    if name != f"{header.name}@{header.version}":
        raise ManifestError(
            "A manifest lies elsewhere than its name and version say",
            where=str(folder),
            expected=f"{header.name}/{header.version}",
            found=name.replace("@", "/"),
        )
