"""`Manifest`: a header and its id lists, the frozen outcome of a protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from curation.canonical import canonical_json, sha256_of_bytes
from curation.errors import ManifestError, MissingListError
from curation.manifest.header import Header, PartEntry


@dataclass(frozen=True)
class Manifest:
    """A header and the id lists of its parts.

    Attributes
    ----------
    header : Header
    lists : mapping of str to tuple of str
        Ids of each part at hand, in file order. A declared part has none.
    """

    header: Header
    lists: Mapping[str, tuple[str, ...]]

    @cached_property
    def digest(self) -> str:
        """``sha256:<hex>`` of the canonical header, which pins the digest of every list."""
        return sha256_of_bytes(canonical_json(header_as_data(self.header)))

    def part(self, name: str) -> PartEntry:
        """Return the entry of a part; an unknown name is a `ManifestError` that lists the parts."""
        for part in self.header.parts:
            if part.name == name:
                return part
        raise ManifestError(
            "The manifest has no such part",
            where=f"{self.header.name} {self.header.version}",
            expected=", ".join(part.name for part in self.header.parts),
            found=repr(name[:80]),
        )

    def ids(self, name: str) -> tuple[str, ...]:
        """Return the ids of a part; a declared part raises `MissingListError` with the command that completes it."""
        part = self.part(name)
        if part.name not in self.lists:
            sources = " ".join(f"--source {entry.name}=PATH" for entry in self.header.sources)
            declared = f"{self.header.name}@{self.header.version}"
            raise MissingListError(
                f"The list of part {name!r} is not in this manifest: it is declared, and needs your raw data",
                where=f"{self.header.name} {self.header.version}",
                hint=f"curation build {declared} {sources} --out DIR",
            )
        return self.lists[part.name]


def header_as_data(header: Header) -> dict[str, Any]:
    """Return the header as plain dicts, lists, strings and integers, every field present."""
    data: dict[str, Any] = msgspec.to_builtins(header)
    return data
