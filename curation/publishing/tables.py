"""The tables of a repository: parts with the same columns for every manifest, decisions, and a list of all parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.decisions.decision import Decision, row_of
from curation.errors import PublishError
from curation.manifest.header import UNKNOWN_ID, ClassEntry, Header, PartEntry, classes_in, unknown_index
from curation.manifest.manifest import Manifest
from curation.manifest.views import (
    ROLES,
    PartImages,
    PartObjects,
    class_positions,
    locate_images,
    view_objects,
)
from curation.publishing.addresses import Addresses
from curation.publishing.formats.content import UNKNOWN_NAME
from curation.publishing.member import DECISIONS, PARTS_CONFIG, Member
from curation.sources.photos import BrokenPhotoError, PhotoFolder, read_photo
from curation.sources.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

    from curation.decisions.decision import Decision

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


def with_addresses(schema: pa.Schema) -> pa.Schema:
    """Return a schema with a column ``image_url`` behind the id: a hub shows the photos that it names."""
    import pyarrow as pa

    return schema.insert(1, pa.field(IMAGE_URL, pa.string()))


def _part_table(member: Member, part: str, split: str) -> PlannedTable:
    sources = member.sources_of(part)
    schema = part_schema() if member.addresses is None else with_addresses(part_schema())
    schema = schema if member.photos is None else with_images(schema)
    filled = ["image_id", "source", "part_role"]
    if sources is not None:
        boxed = all(sources[name].objects is not None for name in member.manifest.part(part).sources)
        filled += ["file_name", "width", "height", "roles", "objects" if boxed else "labels"]
        if any(name in (member.addresses or {}) for name in member.manifest.part(part).sources):
            filled.append(IMAGE_URL)
    if member.evidence is not None:
        filled.append("decisions")

    def rows() -> Iterator[pa.Table]:
        table = part_table(member.manifest, part, sources, member.evidence, member.addresses)
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


def _photo(row: tuple[str, str | None, str | None], photos: Mapping[str, PhotoFolder], part: str) -> dict[str, Any]:
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

    stated = ("manifest", "version", "manifest_digest", "part", "role")
    absent = ("config", "split", "images", "list_sha256")
    schema = pa.schema(
        [
            pa.field(name, pa.int64() if name == "images" else pa.string(), nullable=name in absent)
            for name in (*stated, *absent, "selection")
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


IMAGE_URL = "image_url"
COLUMNS: Mapping[str, str] = {
    "image_id": "the image: namespace of its dataset, and its id there",
    "image": "the photo",
    IMAGE_URL: "where the photo lies on the web, as its dataset states it",
    "file_name": "name of the photo's file, as its dataset has it",
    "width": "width of the photo in pixels",
    "height": "height of the photo in pixels",
    "source": "the raw dataset part that the image is from, by its name in the manifest",
    "part_role": "what the part is for: train, val, test, finetune or wilderness",
    "roles": "the roles that classes on the image play: known, previous, negative, unknown, ignored",
    "objects": "boxes, as the part's label view leaves them: bbox is x, y, w, h in pixels from the top left corner; "
    "an object with ignore counts neither for nor against a detector",
    "labels": "classes that the image shows, where its dataset has no boxes",
    "decisions": "verdicts of reviewers on the image",
    "dataset_origin": "the dataset that the image is from",
    "distance_category": "how far the image's classes are from the known ones: near, far or farther",
    "categories": "the classes of the row's objects, by number",
}
"""What the columns of a part mean, in words."""

EVIDENCE = ("stage", "action", "reason", "reviewer", "date", "batch")
"""What a row tells of a decision on its image."""


def part_schema() -> pa.Schema:
    """Return the columns of every part; what is not known is null, in a column of the same type.

    ``image_id``: namespaced id. ``file_name``, ``width``, ``height``: as the source states them. ``source``: its name
    in the manifest. ``part_role``: train, val, test, finetune or wilderness. ``roles``: the roles that classes of the
    image play, sorted. ``objects``: boxes as the label view leaves them, ``x, y, w, h`` in pixels. ``labels``: classes
    of an image whose source has no boxes. ``decisions``: verdicts of reviewers on the image.
    """
    import pyarrow as pa

    text, flag = pa.string(), pa.bool_()
    label = [("category", text), ("category_id", pa.int32()), ("role", text), ("ignore", flag)]
    shape = [("bbox", pa.list_(pa.float64())), ("area", pa.float64()), ("crowd", flag), ("difficult", flag)]
    return pa.schema(
        [
            pa.field("image_id", text, nullable=False),
            pa.field("file_name", text),
            pa.field("width", pa.int32()),
            pa.field("height", pa.int32()),
            pa.field("source", text),
            pa.field("part_role", text, nullable=False),
            pa.field("roles", pa.list_(text)),
            pa.field("objects", pa.list_(pa.struct([*label, *shape]))),
            pa.field("labels", pa.list_(pa.struct(label))),
            pa.field("decisions", pa.list_(pa.struct([(name, text) for name in EVIDENCE]))),
        ]
    )


def part_table(
    manifest: Manifest,
    part: str,
    sources: Mapping[str, Source] | None = None,
    evidence: Sequence[Decision] | None = None,
    addresses: Mapping[str, Addresses] | None = None,
) -> pa.Table:
    """Return a part as a table, in the order of its list; a line that names an image again is a row again.

    Parameters
    ----------
    sources : mapping of str to Source, optional
        All sources of the part; without them file names, sizes and labels are null.
    evidence : sequence of Decision, optional
        What reviewers said; without it the column is null.
    addresses : mapping of str to Addresses, optional
        Where photos lie on the web, by source; without it there is no column ``image_url``.

    Raises
    ------
    ManifestError, MissingListError, UnitBoxesError
        See `curation.manifest.views.view_objects`.
    """
    import pyarrow as pa

    ids = manifest.ids(part)
    entry = manifest.part(part)
    columns: dict[str, Any] = {
        "image_id": list(ids),
        "source": _slots(manifest.header, entry, ids),
        "part_role": [entry.role] * len(ids),
    }
    if sources is not None:
        columns |= _labelled(manifest, part, sources)
    if evidence is not None:
        columns["decisions"] = _evidence(ids, evidence, entry)
    schema = part_schema() if addresses is None else with_addresses(part_schema())
    if addresses and sources is not None:
        columns[IMAGE_URL] = _image_urls(manifest, part, sources, addresses)
    arrays = [pa.array(columns.get(field.name, [None] * len(ids)), field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _image_urls(
    manifest: Manifest, part: str, sources: Mapping[str, Source], addresses: Mapping[str, Addresses]
) -> list[str | None]:
    located = locate_images(manifest, part, sources)
    found = np.full(len(located), None, object)
    for number, name in enumerate(manifest.part(part).sources):
        if name in addresses:
            rows = located.source == number
            found[rows] = addresses[name].values[located.position[rows]]
    urls: list[str | None] = found.tolist()
    return urls


def _slots(header: Header, entry: PartEntry, ids: Sequence[str]) -> list[str | None]:
    """Return the source of each image where its namespace tells; null where two sources of the part share it."""
    of_namespace: dict[str, list[str]] = {}
    for one in header.sources:
        if one.name in entry.sources:
            of_namespace.setdefault(one.namespace, []).append(one.name)
    only = {namespace: names[0] for namespace, names in of_namespace.items() if len(names) == 1}
    return [only.get(image.partition(":")[0]) for image in ids]


def _labelled(manifest: Manifest, part: str, sources: Mapping[str, Source]) -> dict[str, list[Any]]:
    ids = manifest.ids(part)
    entry = manifest.part(part)
    once = replace(manifest, lists={part: tuple(dict.fromkeys(ids))})
    located = locate_images(once, part, sources)
    classes = classes_in(manifest.header, entry)
    unknown = unknown_index(manifest.header)
    columns = _image_columns(located, entry)
    if all(source.objects is not None for source in located.sources):
        objects = view_objects(once, part, sources)
        columns["objects"] = _objects(objects, classes, unknown)
        shown = columns["objects"]
    else:
        columns["labels"] = shown = _labels(located, classes, entry, unknown)
    columns["roles"] = [sorted({one["role"] for one in row}) for row in shown]
    if len(located) == len(ids):
        return columns
    place = {image: position for position, image in enumerate(once.lists[part])}
    return {name: [column[place[image]] for image in ids] for name, column in columns.items()}


def _image_columns(located: PartImages, entry: PartEntry) -> dict[str, list[Any]]:
    names: list[Any] = [None] * len(located)
    widths, heights = list(names), list(names)
    for number, source in enumerate(located.sources):
        rows = np.flatnonzero(located.source == number)
        at = located.position[rows]
        stated = (source.images.file_names[at], source.images.widths[at], source.images.heights[at])
        for row, name, width, height in zip(rows.tolist(), *(one.tolist() for one in stated), strict=True):
            names[row], widths[row], heights[row] = name or None, width or None, height or None
    slots = [entry.sources[number] for number in located.source.tolist()]
    return {"file_name": names, "width": widths, "height": heights, "source": slots}


def _objects(objects: PartObjects, classes: Sequence[ClassEntry], unknown: int) -> list[list[dict[str, Any]]]:
    """Return for each image its boxes, in file order."""
    rows: list[list[dict[str, Any]]] = [[] for _ in range(len(objects.images))]
    boxes = np.zeros((len(objects), 4))
    areas = np.zeros(len(objects))
    for number, source in enumerate(objects.images.sources):
        mine = objects.source == number
        positions = objects.images.position[objects.images.source == number]
        columns = source.require_pixels("A publication", positions)
        boxes[mine], areas[mine] = columns.boxes[objects.index[mine]], columns.areas[objects.index[mine]]
    columns_ = (objects.image, objects.category_id, objects.label, objects.role, objects.ignore)
    flags = (objects.crowd, objects.difficult, boxes, areas)
    for image, category, label, role, ignore, crowd, difficult, box, area in zip(
        *(one.tolist() for one in (*columns_, *flags)), strict=True
    ):
        rows[image].append(
            {
                "category": UNKNOWN_NAME if category == UNKNOWN_ID else classes[label].name,
                "category_id": unknown if category == UNKNOWN_ID else category,
                "role": ROLES[role],
                "ignore": ignore,
                "bbox": box,
                "area": area,
                "crowd": crowd,
                "difficult": difficult,
            }
        )
    return rows


def _labels(
    located: PartImages, classes: Sequence[ClassEntry], entry: PartEntry, unknown: int
) -> list[list[dict[str, Any]]]:
    """Return for each image the classes it shows under the view, in the order of the manifest's classes."""
    shown: list[set[int]] = [set() for _ in range(len(located))]
    for number, source in enumerate(located.sources):
        row_of = np.full(len(source.images), -1, np.int64)
        mine = located.source == number
        row_of[located.position[mine]] = np.flatnonzero(mine)
        images, categories = source.class_pairs()
        kept = row_of[images] >= 0
        label = class_positions(classes, source)[categories[kept]]
        if (label < 0).any():
            name = source.categories.names[int(categories[kept][label < 0][0])]
            raise PublishError(
                "An image shows a class that has no role in the manifest",
                where=f"part {entry.name}",
                found=repr(name[:60]),
            )
        for row, one in zip(row_of[images[kept]].tolist(), label.tolist(), strict=True):
            shown[row].add(one)
    told = [_label(one, getattr(entry.view, one.role), unknown) for one in classes]
    return [[one for place in sorted(row) if (one := told[place]) is not None] for row in shown]


def _label(entry: ClassEntry, treatment: str, unknown: int) -> dict[str, Any] | None:
    if treatment == "drop":
        return None
    renamed = treatment == "rename:unknown"
    return {
        "category": UNKNOWN_NAME if renamed else entry.name,
        "category_id": unknown if renamed else entry.index,
        "role": entry.role,
        "ignore": treatment == "ignore",
    }


def _evidence(ids: Sequence[str], evidence: Sequence[Decision], entry: PartEntry) -> list[list[dict[str, str]]]:
    """Return the verdicts on each image, those that speak of another part aside."""
    of_image: dict[str, list[dict[str, str]]] = {}
    for one in evidence:
        if one.dataset in ("", entry.name) or _is_pool(one.dataset, one.image_id):
            of_image.setdefault(one.image_id, []).append({name: getattr(one, name) for name in EVIDENCE})
    return [of_image.get(image, []) for image in ids]


def _is_pool(dataset: str, image: str) -> bool:
    return image.partition(":")[0] == dataset
