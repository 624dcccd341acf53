"""`Manifest`: a header and its id lists, the frozen outcome of a protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from curation.canonical import canonical_json, sha256_of_bytes
from curation.errors import ManifestError, MissingListError
from curation.manifest.header import Header, LabelView, PartEntry, SourceEntry
from curation.short_repr import cut, html_table

if TYPE_CHECKING:
    import pandas as pd

    from curation.sources.slots import SourceSlot


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

    def __repr__(self) -> str:
        header = self.header
        parts = len(header.parts)
        return (
            f"<Manifest {cut(header.name, 80)} {cut(header.version, 20)}, {header.origin}, {parts} "
            f"{'part' if parts == 1 else 'parts'}, {len(self.lists)} with lists, {self.digest[:19]}>"
        )

    def _repr_html_(self) -> str:
        """Return a small table for a notebook: each part with its role, images and the start of its digest."""
        header = self.header
        rows = [
            (
                part.name,
                part.role,
                part.task,
                "" if part.images is None else f"{part.images:,}",
                (part.sha256 or "no list")[:19],
                "yes" if part.name in self.lists else "no",
            )
            for part in header.parts
        ]
        columns = ("part", "role", "task", "images", "digest", "list at hand")
        words = (header.name, header.version, cut(header.title, 160), header.origin, self.digest[:19])
        return html_table(columns, rows, caption=" · ".join(cut(word, 160) for word in words))

    @cached_property
    def digest(self) -> str:
        """``sha256:<hex>`` of the canonical header, which pins the digest of every list."""
        return sha256_of_bytes(canonical_json(header_as_data(self.header)))

    @property
    def slots(self) -> tuple[SourceSlot, ...]:
        """The sources that it was made from, none of them required: what `open_slots` takes."""
        from curation.sources.slots import SourceSlot

        return tuple(
            SourceSlot(entry.name, entry.dataset, entry.part, False, entry.note)
            for entry in self.header.sources
        )

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
            raise self._missing(name)
        return self.lists[part.name]

    def frame(self, name: str | None = None) -> pd.DataFrame:
        """Return one row an image of a part, or of every part with a list: part, role, task, image_id, native id.

        >>> import curation
        >>> curation.load("elephant/val2017").frame("wilderness").shape
        (969, 5)
        """
        import pandas as pd

        entries = [self.part(one) for one in ([name] if name else self.lists)]
        columns = ("part", "role", "task", "image_id", "native")
        rows = [
            (entry.name, entry.role, entry.task, one, one.partition(":")[2])
            for entry in entries
            for one in self.ids(entry.name)
        ]
        return pd.DataFrame(rows, columns=list(columns))

    def photos(self, name: str, root: Path | str | Mapping[str, Path]) -> dict[str, Path]:
        """Return where the photo of each image of a part lies below a folder, or below one by namespace.

        A photo is found by the native half of its id, anywhere below the folder.

        Raises
        ------
        MissingFileError
            A folder does not exist, or a photo is in none.
        """
        from curation.sources.photos import photos_of_ids

        return photos_of_ids(self.ids(name), root)

    def save(self, folder: Path | str) -> Path:
        """Write the manifest as a folder that appears whole, and return it (see `curation.manifest.store`).

        Raises
        ------
        UsageError
            Another manifest is there, or an approximate list would land among the trusted manifests.
        """
        from curation.manifest.locate import keep_approximate_out
        from curation.manifest.store import write_manifest

        keep_approximate_out(self, Path(folder))
        write_manifest(self, Path(folder))
        return Path(folder)

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of its parts."""
        return tuple(part.name for part in self.header.parts)

    def _missing(self, name: str) -> MissingListError:
        target = f"{self.header.name}@{self.header.version}"
        if self.header.origin == "as_published":
            reason, command = (
                "the authors' list is not passed on, only its digest",
                f"import {target} --lists DIR",
            )
        else:
            sources = " ".join(f"--source {entry.name}=PATH" for entry in self.header.sources)
            reason, command = "it is declared, and needs your raw data", f"build {target} {sources}"
        return MissingListError(
            f"The list of part {name!r} is not in this manifest: {reason}",
            where=f"{self.header.name} {self.header.version}",
            hint=f"curation {command} --out DIR",
        )


def header_as_data(header: Header) -> dict[str, Any]:
    """Return the header as plain dicts, lists, strings and integers.

    Every field is present but those that the schema gained later: they are left out where they hold their default, so
    that a manifest made before keeps its digest.
    """
    data: dict[str, Any] = msgspec.to_builtins(header)
    _omit_default(data, "tasks", Header)
    for source in data["sources"]:
        _omit_default(source, "exhaustive", SourceEntry)
    for part in data["parts"]:
        _omit_default(part, "task", PartEntry)
        _omit_default(part, "repeats", PartEntry)
        _omit_default(part["view"], "previous", LabelView)
        _omit_default(part["view"], "depiction", LabelView)
    return data


def _omit_default(data: dict[str, Any], field: str, record: type[msgspec.Struct]) -> None:
    defaults = dict(
        zip(reversed(record.__struct_fields__), reversed(record.__struct_defaults__), strict=False)
    )
    if data[field] in (defaults[field], []):
        del data[field]
