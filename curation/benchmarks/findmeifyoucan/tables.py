"""The splits of FindMeIfYouCan with the columns of the data set that its authors published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from curation.benchmarks.findmeifyoucan.categories import OpenImagesCategory
from curation.benchmarks.findmeifyoucan.layout import SplitFile, split_parts, upstream_name
from curation.errors import PublishError
from curation.publishing.member import Member
from curation.publishing.tables import PlannedTable

if TYPE_CHECKING:
    import pyarrow as pa

ORIGINS = {"coco": "COCO", "openimages": "OpenImages"}
SPLIT = "train"
"""The one split of every published config; nothing is for training all the same."""
_ROWS = 1000


def published_schema() -> pa.Schema:
    """Return the nine columns as published; ``image`` is null, for the photos are not passed on.

    An image id is a text also where COCO has a number, so that all configs have the same columns. ``bbox`` is
    ``x, y, w, h`` in pixels; ``area`` is null where the data set has none (Open Images). ``categories`` are those of
    the row's objects, each once.
    """
    import pyarrow as pa

    text, number = pa.string(), pa.int64()
    objects = [
        ("id", number),
        ("area", pa.float64()),
        ("bbox", pa.list_(pa.float64())),
        ("category_id", number),
    ]
    schema = pa.schema(
        [
            pa.field("image", pa.struct([("bytes", pa.binary()), ("path", text)])),
            pa.field("file_name", text),
            pa.field("image_id", text),
            pa.field("height", pa.int32()),
            pa.field("width", pa.int32()),
            pa.field("dataset_origin", text),
            pa.field("distance_category", text),
            pa.field("objects", pa.list_(pa.struct(objects))),
            pa.field(
                "categories", pa.list_(pa.struct([("id", number), ("name", text), ("supercategory", text)]))
            ),
        ]
    )
    return schema.with_metadata({"huggingface": '{"info": {"features": {"image": {"_type": "Image"}}}}'})


def findmeifyoucan_tables(member: Member, table: Sequence[OpenImagesCategory] = ()) -> list[PlannedTable]:
    """Return a table for each near, far and farther split at hand, under its published config (``coco_far_voc``).

    Raises
    ------
    ExportError
        The manifest is of another protocol; or see `curation.benchmarks.findmeifyoucan.layout.plan_findmeifyoucan`.
    PublishError
        No split is at hand, or a source of one is not given.
    """
    header = member.manifest.header
    where = f"{header.name} {header.version}"
    parts = [part for part in split_parts(header) if part in member.manifest.lists]
    if not parts:
        raise PublishError(
            "No near, far or farther split is at hand",
            where=where,
            hint="curation build MANIFEST --source NAME=PATH --out DIR completes it",
        )
    for part in parts:
        if part not in member.labelled:
            needed = " ".join(f"--source {name}=PATH" for name in member.manifest.part(part).sources)
            raise PublishError(
                "The published columns need file names and boxes", where=f"{where}: {part}", expected=needed
            )
    return [_planned(member, part, table) for part in parts]


def _planned(member: Member, part: str, table: Sequence[OpenImagesCategory]) -> PlannedTable:
    kind, _, id_set = upstream_name(member.manifest, part).partition("_wrt_")
    distance, _, pool = kind.partition("_")
    split = SplitFile.of(member.manifest, part, member.sources, table)
    schema = published_schema()
    has_area = not split.texts
    filled = tuple(name for name in schema.names if name != "image")

    def rows() -> Iterator[pa.Table]:
        import pyarrow as pa

        found = list(_rows(split, distance, has_area=has_area))
        for start in range(0, len(found), _ROWS):
            yield pa.Table.from_pylist(found[start : start + _ROWS], schema=schema)

    empty = not member.manifest.lists[part]
    return PlannedTable(f"{pool}_{distance}_{id_set}", SPLIT, schema, rows, filled, empty)


def _rows(split: SplitFile, distance: str, *, has_area: bool) -> Iterator[dict[str, Any]]:
    categories = {
        one.number: {"id": one.number, "name": one.name, "supercategory": one.supercategory}
        for one in split.categories
    }
    objects: dict[Any, list[dict[str, Any]]] = {}
    for one in split.annotation_records(numbered=False):
        objects.setdefault(one["image_id"], []).append(
            {
                "id": one["id"],
                "area": float(one["area"]) if has_area else None,
                "bbox": [float(value) for value in one["bbox"]],
                "category_id": one["category_id"],
            }
        )
    namespaces = [source.namespace for source in split.images.sources]
    for number, image in zip(split.images.source.tolist(), split.image_records(numbered=False), strict=True):
        mine = objects.get(image["id"], [])
        yield {
            "image": None,
            "file_name": image["file_name"],
            "image_id": str(image["id"]),
            "height": image.get("height"),
            "width": image.get("width"),
            "dataset_origin": ORIGINS.get(namespaces[number], namespaces[number]),
            "distance_category": distance,
            "objects": mine,
            "categories": [categories[one] for one in dict.fromkeys(row["category_id"] for row in mine)],
        }
