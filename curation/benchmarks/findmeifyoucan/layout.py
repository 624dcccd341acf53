"""The near, far and farther splits with the configurations and columns of the dataset that the authors published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.core.errors import PublishError
from curation.manifest.views import locate_images
from curation.publishing.member import Member, PlannedTable
from curation.sources.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

_SHORT = {"openimages": "oi"}
_DISTANCES = ("near", "far", "farther")
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
    objects = [("id", number), ("area", pa.float64()), ("bbox", pa.list_(pa.float64())), ("category_id", number)]
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
            pa.field("categories", pa.list_(pa.struct([("id", number), ("name", text), ("supercategory", text)]))),
        ]
    )
    return schema.with_metadata({"huggingface": '{"info": {"features": {"image": {"_type": "Image"}}}}'})


def findmeifyoucan_tables(member: Member) -> list[PlannedTable]:
    """Return a table for each near, far and farther split available, under its published config (``coco_far_voc``).

    Raises
    ------
    PublishError
        The manifest is of another benchmark, no split is available, or a source is missing.
    UnitBoxesError
        The boxes of a source are not in pixels.
    """
    header = member.manifest.header
    where = f"{header.name} {header.version}"
    if header.rule.protocol not in ("findmeifyoucan", "near-far"):
        raise PublishError(
            "The authors' layout is that of near, far and farther splits",
            where=where,
            expected="a manifest of the benchmark findmeifyoucan, or of the rule near-far",
            found=header.rule.protocol,
        )
    splits = [part.name for part in header.parts if part.name.rpartition("-")[2] in _DISTANCES]
    parts = [part for part in splits if part in member.manifest.lists]
    if not parts:
        raise PublishError(
            "No near, far or farther split is available",
            where=where,
            hint="curation build MANIFEST --source NAME=PATH --out DIR completes it",
        )
    for part in parts:
        if part not in member.labelled:
            needed = " ".join(f"--source {name}=PATH" for name in member.manifest.part(part).sources)
            raise PublishError(
                "The published columns need file names and boxes", where=f"{where}: {part}", expected=needed
            )
    return [_planned(member, part) for part in parts]


def _planned(member: Member, part: str) -> PlannedTable:
    pool, _, distance = part.rpartition("-")
    id_set = member.manifest.header.name.rpartition("/")[2].partition("-")[0]
    records, schema = _records(member, part, distance), published_schema()

    def rows() -> Iterator[pa.Table]:
        import pyarrow as pa

        for start in range(0, len(records), _ROWS):
            yield pa.Table.from_pylist(records[start : start + _ROWS], schema=schema)

    filled = tuple(name for name in schema.names if name != "image")
    config = f"{_SHORT.get(pool, pool)}_{distance}_{id_set}"
    return PlannedTable(config, SPLIT, schema, rows, filled, not member.manifest.lists[part])


def _records(member: Member, part: str, distance: str) -> list[dict[str, Any]]:
    """Return a record for each image of a split, in list order, with the annotations that its source holds."""
    located = locate_images(member.manifest, part, member.sources)
    objects = [
        _objects_by_image(source, located.position[located.source == number])
        for number, source in enumerate(located.sources)
    ]
    records = []
    for number, position in zip(located.source.tolist(), located.position.tolist(), strict=True):
        source = located.sources[number]
        native, rows = str(source.images.native[position]), objects[number].get(position, [])
        width, height = int(source.images.widths[position]), int(source.images.heights[position])
        categories = dict.fromkeys(category for category, _ in rows)
        records.append(
            {
                "image": None,
                "file_name": str(source.images.file_names[position]) or f"{native}.jpg",
                "image_id": native if _has_text_ids(source) else str(source.images.numbers[position]),
                "height": height if width and height else None,
                "width": width if width and height else None,
                "dataset_origin": ORIGINS.get(source.namespace, source.namespace),
                "distance_category": distance,
                "objects": [record for _, record in rows],
                "categories": [
                    {
                        "id": source.categories.numbers[category],
                        "name": source.categories.names[category],
                        "supercategory": source.categories.supercategories[category],
                    }
                    for category in categories
                ],
            }
        )
    return records


def _has_text_ids(source: Source) -> bool:
    """Return whether the ids of a dataset are texts, as in Open Images: its boxes have two decimals and no area."""
    return source.namespace != "coco"


def _objects_by_image(source: Source, positions: Any) -> dict[int, list[tuple[int, dict[str, Any]]]]:
    """Return category and published record of the objects of some images, by position of the image."""
    objects, has_texts = source.require_pixels("A split", positions), _has_text_ids(source)
    # A box CSV has no annotation ids: the authors count its rows from 0.
    first = 1 if source.unit_boxes else 0
    by_image: dict[int, list[tuple[int, dict[str, Any]]]] = {}
    for row in np.flatnonzero(np.isin(objects.image, positions)).tolist():
        category = int(objects.category[row])
        record = {
            "id": int(objects.numbers[row]) - first,
            "area": None if has_texts else float(objects.areas[row]),
            "bbox": [round(value, 2) if has_texts else value for value in objects.boxes[row].tolist()],
            "category_id": source.categories.numbers[category],
        }
        by_image.setdefault(int(objects.image[row]), []).append((category, record))
    return by_image
