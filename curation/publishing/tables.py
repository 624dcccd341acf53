"""The tables of a repository: each with its path, its columns, and the function that gives its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curation.decisions.decision import Decision, row_of
from curation.errors import PublishError
from curation.publishing.config_names import DECISIONS, PARTS_CONFIG
from curation.publishing.member import Member
from curation.publishing.part_tables import part_schema, part_table
from curation.sources.photos import BrokenPhotoError, PhotoFolder, read_photo

if TYPE_CHECKING:
    import pyarrow as pa

_PHOTOS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """One table of a repository.

    Attributes
    ----------
    config, split : str
    schema : pyarrow.Schema
    rows : callable
        Gives the table piece by piece.
    filled : tuple of str
        Columns that hold anything.
    empty : bool
        Without a row: `datasets` loads no split that has none, and no config with one, so no config names it.
    """

    config: str
    split: str
    schema: pa.Schema
    rows: Callable[[], Iterable[pa.Table]]
    filled: tuple[str, ...]
    empty: bool = False

    @property
    def path(self) -> str:
        """Where it lies in the repository."""
        return f"data/{self.config}/{self.split}.parquet"

    def filled_schema(self) -> pa.Schema:
        """Return the columns that hold anything."""
        import pyarrow as pa

        return pa.schema([field for field in self.schema if field.name in self.filled])


def planned_tables(members: Sequence[Member], parts: Sequence[PlannedTable]) -> list[PlannedTable]:
    """Return those of the parts, then one of the decisions behind each reviewed manifest, and one of all parts."""
    tables = [*parts]
    tables += [_decisions_table(member) for member in members if member.evidence is not None]
    return [*tables, _parts_table(members)]


def part_tables(member: Member) -> list[PlannedTable]:
    """Return the table of each published part of a manifest."""
    return [_part_table(member, part, split) for part, split in member.splits.items()]


def with_images(schema: pa.Schema) -> pa.Schema:
    """Return a schema with a column ``image`` behind the id, in the form that `datasets` decodes."""
    import pyarrow as pa

    image = pa.field("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    wide = schema.insert(1, image)
    return wide.with_metadata({"huggingface": '{"info": {"features": {"image": {"_type": "Image"}}}}'})


def _part_table(member: Member, part: str, split: str) -> PlannedTable:
    sources = member.sources_of(part)
    schema = part_schema() if member.photos is None else with_images(part_schema())
    filled = ["image_id", "source", "part_role"]
    if sources is not None:
        boxed = all(sources[name].objects is not None for name in member.manifest.part(part).sources)
        filled += ["file_name", "width", "height", "roles", "objects" if boxed else "labels"]
    if member.evidence is not None:
        filled.append("decisions")

    def rows() -> Iterator[pa.Table]:
        table = part_table(member.manifest, part, sources, member.evidence)
        if member.photos is None:
            yield table
        else:
            yield from _with_photos(table, schema, member.photos, part)

    image = () if member.photos is None else ("image",)
    empty = not member.manifest.lists[part]
    return PlannedTable(member.config, split, schema, rows, (*image, *filled), empty)


def _with_photos(
    table: pa.Table, schema: pa.Schema, photos: Mapping[str, PhotoFolder], part: str
) -> Iterator[pa.Table]:
    import pyarrow as pa

    for start in range(0, max(1, len(table)), _PHOTOS_AT_ONCE):
        piece = table.slice(start, _PHOTOS_AT_ONCE)
        names = (piece.column(name).to_pylist() for name in ("image_id", "file_name", "source"))
        images = [_photo(one, photos, part) for one in zip(*names, strict=True)]
        wide = piece.add_column(1, schema.field("image"), pa.array(images, schema.field("image").type))
        yield wide.cast(schema)


def _photo(
    row: tuple[str, str | None, str | None], photos: Mapping[str, PhotoFolder], part: str
) -> dict[str, Any]:
    image, name, source = row
    folder = photos.get(source or "", photos.get(""))
    path = None if folder is None else folder.find([name or "", image.partition(":")[2]])
    try:
        if path is None:
            raise BrokenPhotoError("it is in none of the folders given")
        return {"bytes": read_photo(path), "path": path.name}
    except BrokenPhotoError as error:
        raise PublishError(
            f"A photo cannot be published: {error}",
            where=f"part {part}: {image}",
            hint="--media NAME=DIR for each source, or leave out --media",
        ) from None


def _decisions_table(member: Member) -> PlannedTable:
    import pyarrow as pa

    columns = Decision.__struct_fields__
    schema = pa.schema([pa.field(name, pa.string(), nullable=False) for name in columns])

    def rows() -> Iterator[pa.Table]:
        yield pa.Table.from_pylist([row_of(one) for one in member.evidence or ()], schema=schema)

    config = f"{member.config}-{DECISIONS}"
    return PlannedTable(config, DECISIONS, schema, rows, tuple(columns), not member.evidence)


def _parts_table(members: Sequence[Member]) -> PlannedTable:
    """Return the table of all parts, also of those whose lists are not published."""
    import pyarrow as pa

    text = pa.string()
    schema = pa.schema(
        [
            pa.field("manifest", text, nullable=False),
            pa.field("version", text, nullable=False),
            pa.field("manifest_digest", text, nullable=False),
            pa.field("part", text, nullable=False),
            pa.field("role", text, nullable=False),
            pa.field("config", text),
            pa.field("split", text),
            pa.field("images", pa.int64()),
            pa.field("list_sha256", text),
            pa.field("selection", text, nullable=False),
        ]
    )
    found = [row for member in members for row in _part_rows(member)]
    filled = tuple(name for name in schema.names if any(row[name] is not None for row in found))
    return PlannedTable(
        PARTS_CONFIG,
        PARTS_CONFIG,
        schema,
        lambda: iter([pa.Table.from_pylist(found, schema=schema)]),
        filled,
        not found,
    )


def _part_rows(member: Member) -> Iterator[dict[str, Any]]:
    header = member.manifest.header
    for part in header.parts:
        split = member.splits.get(part.name) if member.manifest.lists.get(part.name) else None
        yield {
            "manifest": header.name,
            "version": header.version,
            "manifest_digest": member.manifest.digest,
            "part": part.name,
            "role": part.role,
            "config": member.config if split else None,
            "split": split,
            "images": part.images,
            "list_sha256": part.sha256,
            "selection": part.selection,
        }
