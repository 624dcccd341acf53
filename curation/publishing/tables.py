"""The tables of a repository: one for each part, with the same columns for every manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from curation.core.errors import PublishError
from curation.core.tables import grouped
from curation.manifest.header import UNKNOWN_ID, ClassEntry, Header, PartEntry, classes_in, unknown_index
from curation.manifest.manifest import Manifest
from curation.manifest.views import (
    ROLES,
    PartImages,
    PartObjects,
    locate_images,
    picked,
    raw_column,
    stated_pairs,
    view_objects,
)
from curation.publishing.formats.content import UNKNOWN_NAME
from curation.publishing.member import Member, PlannedTable
from curation.review.decisions.decision import Decision
from curation.sources.source import Int64s, Source

if TYPE_CHECKING:
    import pyarrow as pa


def part_tables(member: Member) -> list[PlannedTable]:
    """Return the table of each published part of a manifest."""
    return [_part_table(member, part, split) for part, split in member.splits.items()]


def _part_table(member: Member, part: str, split: str) -> PlannedTable:
    sources, names = member.sources_of(part), member.manifest.part(part).sources
    filled = ["image_id", "source", "part_role"]
    if sources is not None:
        boxed = all(sources[name].objects is not None for name in names)
        filled += ["file_name", "width", "height", "roles", "objects" if boxed else "labels"]
    filled += ["decisions"] * (member.evidence is not None)

    def rows() -> Iterator[pa.Table]:
        yield published_table(member.manifest, part, sources, member.evidence)

    return PlannedTable(member.config, split, part_schema(), rows, tuple(filled), not member.manifest.lists[part])


COLUMNS: Mapping[str, str] = {
    "image_id": "the image: namespace of its dataset, and its id there",
    "file_name": "name of the photo's file, as its dataset has it",
    "width": "width of the photo in pixels",
    "height": "height of the photo in pixels",
    "source": "the raw dataset part that the image is from, by its name in the manifest",
    "part_role": "what the part is for: train, val, test, finetune or wilderness",
    "roles": "the roles that classes on the image play: known, previous, negative, unknown, ignored",
    "objects": "boxes, as the part's label view leaves them: bbox is x, y, w, h in pixels from the top left corner; "
    "an object with ignore counts neither for nor against a detector",
    "labels": "classes that the image shows, where its dataset has no boxes",
    "decisions": "decisions of reviewers on the image",
    "dataset_origin": "the dataset that the image is from",
    "distance_category": "how far the image's classes are from the known ones: near, far or farther",
    "categories": "the classes of the row's objects, by number",
}
"""Meaning of each column of a part."""

EVIDENCE = ("stage", "action", "reason", "reviewer", "date", "batch")
"""Fields of a decision in a row."""


def part_schema() -> pa.Schema:
    """Return the columns of every part (`COLUMNS`); unknown values are null."""
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


def published_table(
    manifest: Manifest,
    part: str,
    sources: Mapping[str, Source] | None = None,
    evidence: Sequence[Decision] | None = None,
) -> pa.Table:
    """Return a part as a table, a row for each line of its list, repeats included.

    Parameters
    ----------
    sources : mapping of str to Source, optional
        All sources of the part; without them file names, sizes and labels are null.
    evidence : sequence of Decision, optional
        Decisions of reviewers; without them the column is null.

    Raises
    ------
    ManifestError, MissingListError, UnitBoxesError
        See `curation.manifest.views.view_objects`.
    """
    import pyarrow as pa

    ids, entry, schema = manifest.ids(part), manifest.part(part), part_schema()
    columns: dict[str, Any] = {
        "image_id": list(ids),
        "source": _slots(manifest.header, entry, ids),
        "part_role": [entry.role] * len(ids),
    }
    if sources is not None:
        once = replace(manifest, lists={part: tuple(dict.fromkeys(ids))})
        row_of = {image: row for row, image in enumerate(once.lists[part])}
        rows = pa.array([row_of[image] for image in ids], pa.int64())
        labelled = _labelled(once, part, sources, schema)
        columns |= {name: column.take(rows) for name, column in labelled.items()}
    if evidence is not None:
        columns["decisions"] = _evidence(ids, evidence, entry)
    return pa.table({name: columns.get(name, [None] * len(ids)) for name in schema.names}, schema)


def _labelled(manifest: Manifest, part: str, sources: Mapping[str, Source], schema: pa.Schema) -> dict[str, pa.Array]:
    """Return the columns that come from sources, for a list without repeats."""
    import pyarrow as pa

    entry, located = manifest.part(part), locate_images(manifest, part, sources)
    names, widths, heights = (picked(located, field) for field in ("file_names", "widths", "heights"))
    columns = {
        "file_name": pa.array([name or None for name in names.tolist()], pa.string()),
        "width": pa.array(widths, pa.int32(), mask=widths == 0),
        "height": pa.array(heights, pa.int32(), mask=heights == 0),
        "source": pa.array([entry.sources[number] for number in located.source.tolist()], pa.string()),
    }
    classes = classes_in(manifest.header, entry)
    if all(source.objects is not None for source in located.sources):
        rows, fields = _objects(view_objects(manifest, part, sources), classes, unknown_index(manifest.header))
        column_name = "objects"
    else:
        rows, fields = _labels(manifest.ids(part), located, classes, entry, unknown_index(manifest.header))
        column_name = "labels"
    bounds = np.searchsorted(rows, np.arange(len(located) + 1)).astype(np.int32)
    kind = schema.field(column_name).type
    inner = [pa.array(fields[field.name], field.type) for field in kind.value_type]
    columns[column_name] = pa.ListArray.from_arrays(
        bounds, pa.StructArray.from_arrays(inner, fields=list(kind.value_type))
    )
    roles, ends = fields["role"], bounds.tolist()
    each = [sorted(set(roles[start:end])) for start, end in pairwise(ends)]
    columns["roles"] = pa.array(each, pa.list_(pa.string()))
    return columns


def _objects(objects: PartObjects, classes: Sequence[ClassEntry], unknown: int) -> tuple[Int64s, dict[str, list[Any]]]:
    """Return the image of each box, ascending and in file order within an image, and the fields of its record."""
    order = np.argsort(objects.image, kind="stable")
    category = objects.category_id[order]
    renamed = category == UNKNOWN_ID
    names = np.array([*(entry.name for entry in classes), UNKNOWN_NAME], object)
    boxes = raw_column(objects, lambda _, columns: columns.boxes, "A publication")
    areas = raw_column(objects, lambda _, columns: columns.areas, "A publication")
    fields = {
        "category": names[np.where(renamed, len(classes), objects.label[order])],
        "category_id": np.where(renamed, unknown, category),
        "role": np.array(ROLES, object)[objects.role[order]],
        "ignore": objects.ignore[order],
        "bbox": boxes[order],
        "area": areas[order],
        "crowd": objects.crowd[order],
        "difficult": objects.difficult[order],
    }
    return objects.image[order].astype(np.int64), {name: column.tolist() for name, column in fields.items()}


def _labels(
    ids: Sequence[str], located: PartImages, classes: Sequence[ClassEntry], entry: PartEntry, unknown: int
) -> tuple[Int64s, dict[str, list[Any]]]:
    """Return the image of each class that it shows under the view, in the order of the classes, and its record."""
    images, labels = stated_pairs(classes, located)
    if (labels < 0).any():
        message, image = "An image shows a class that has no role in the manifest", ids[int(images[labels < 0][0])]
        raise PublishError(message, where=f"part {entry.name}", found=image)
    pairs = np.unique(np.stack([images, labels], axis=1), axis=0).tolist()
    treatments = [getattr(entry.view, cls.role) for cls in classes]
    visible = [pair for pair in pairs if treatments[pair[1]] != "drop"]
    renamed = [treatment == "rename:unknown" for treatment in treatments]
    names = [UNKNOWN_NAME if new else cls.name for new, cls in zip(renamed, classes, strict=True)]
    numbers = [unknown if new else cls.index for new, cls in zip(renamed, classes, strict=True)]
    fields = {
        "category": [names[position] for _, position in visible],
        "category_id": [numbers[position] for _, position in visible],
        "role": [classes[position].role for _, position in visible],
        "ignore": [treatments[position] == "ignore" for _, position in visible],
    }
    return np.array([row for row, _ in visible], np.int64), fields


def _slots(header: Header, entry: PartEntry, ids: Sequence[str]) -> list[str | None]:
    """Return the source of each image by its namespace; null if two sources of the part share the namespace."""
    part_sources = (source for source in header.sources if source.name in entry.sources)
    of_namespace = grouped(part_sources, lambda source: source.namespace)
    only = {namespace: entries[0].name for namespace, entries in of_namespace.items() if len(entries) == 1}
    return [only.get(image.partition(":")[0]) for image in ids]


def _evidence(ids: Sequence[str], evidence: Sequence[Decision], entry: PartEntry) -> list[list[dict[str, str]]]:
    """Return the decisions on each image, without those for other parts."""
    # A decision is for a part, or for all images of a namespace.
    relevant = (item for item in evidence if item.dataset in ("", entry.name, item.image_id.partition(":")[0]))
    of_image = grouped(relevant, lambda item: item.image_id)
    return [[{name: getattr(item, name) for name in EVIDENCE} for item in of_image.get(image, ())] for image in ids]


_ROWS = 50_000
"""Rows of a row group."""


def write_parquet(path: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> str:
    """Write tables as the row groups of a file.

    Returns
    -------
    str
        ``sha256:…`` of the names of the columns and of the rows as JSON, each on a line: the same for every version of
        pyarrow.
    """
    from pyarrow import parquet

    encoder = msgspec.json.Encoder()
    digest = hashlib.sha256(encoder.encode(schema.names) + b"\n")
    # The bytes depend only on the version of the library, not on time, threads or random names.
    with parquet.ParquetWriter(path, schema, compression="zstd", version="2.6") as writer:
        for table in tables:
            for batch in table.to_batches():
                digest.update(encoder.encode_lines(batch.to_pylist()))
            # `datasets` reads batches as large as the first row group, and fails if that is empty.
            if len(table):
                writer.write_table(table, row_group_size=_ROWS)
    return f"sha256:{digest.hexdigest()}"
