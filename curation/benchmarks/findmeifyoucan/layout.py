"""The splits under the names, in the layout and with the columns of the authors' files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.core.errors import ExportError, HierarchyError, PublishError, UsageError
from curation.manifest.header import Header
from curation.manifest.manifest import Manifest
from curation.manifest.views import locate_images
from curation.publishing.exporting import Format, FormatOptions
from curation.publishing.formats.coco import plain_number
from curation.publishing.formats.plan import Plan, PlannedFile, first_repeated, json_file, lines
from curation.publishing.member import Member, PlannedTable
from curation.signals.hierarchy.hierarchy import LabelNode, read_label_tree, read_open_images_names
from curation.sources.source import Int64s, Source

if TYPE_CHECKING:
    import pyarrow as pa


_SHORT = {"openimages": "oi"}
_DISTANCES = ("near", "far", "farther")
Record = dict[str, Any]


def split_parts(header: Header) -> list[str]:
    """Return the names of the near, far and farther splits; a manifest of another benchmark is an `ExportError`."""
    if header.rule.protocol != "findmeifyoucan":
        raise ExportError(
            "The authors' layout is that of near, far and farther splits",
            where=f"{header.name} {header.version}",
            expected="a manifest of the benchmark findmeifyoucan",
            found=header.rule.protocol,
            hint="--format coco",
        )
    return [part.name for part in header.parts if part.name.rpartition("-")[2] in _DISTANCES]


def upstream_name(manifest: Manifest, part: str) -> str:
    """Return the stem of the authors' file of a split: ``near_oi_wrt_voc`` for ``openimages-near``.

    Raises
    ------
    ExportError
        The part is not a near, far or farther split.
    """
    header = manifest.header
    if part not in (splits := split_parts(header)):
        raise ExportError(
            "The authors' layout is that of near, far and farther splits",
            where=f"{header.name} {header.version}: {part}",
            expected=", ".join(splits),
            hint="--format coco",
        )
    pool, _, distance = part.rpartition("-")
    id_set = header.name.rpartition("/")[2].partition("-")[0]
    return f"{distance}_{_SHORT.get(pool, pool)}_wrt_{id_set}"


@dataclass(frozen=True, slots=True)
class PublishedCategory:
    """One row of the category table of a split.

    Attributes
    ----------
    number : int
        In Open Images' table the position in the walk along its class tree, from 1.
    name, supercategory, metacategory : str
        Metacategories are Open Images' alone.
    """

    number: int
    name: str
    supercategory: str
    metacategory: str = ""


@dataclass(frozen=True, slots=True)
class SplitFile:
    """One split as the authors write it.

    Attributes
    ----------
    stem : str
        Of its files.
    has_texts : bool
        Whether the data set's ids are texts, as in Open Images: then objects have no area.
    images, annotations : list of dict
        In list order; source by source in file order.
    origins : list of str
        Namespace of each image.
    categories : tuple of Category
        All of the data set.
    """

    stem: str
    has_texts: bool
    images: list[Record]
    annotations: list[Record]
    origins: list[str]
    categories: tuple[PublishedCategory, ...]

    @classmethod
    def of(
        cls, manifest: Manifest, part: str, sources: Mapping[str, Source], table: Sequence[PublishedCategory]
    ) -> SplitFile:
        """Return the split that a part is (see `plan_findmeifyoucan` for the errors)."""
        stem = upstream_name(manifest, part)
        located = locate_images(manifest, part, sources)
        has_texts = located.sources[0].namespace != "coco"
        categories, numbers = _categories(located.sources, table, part)
        images: list[Record] = []
        ids: list[dict[int, Any]] = [{} for _ in located.sources]
        for number, position in zip(located.source.tolist(), located.position.tolist(), strict=True):
            raw = located.sources[number].images
            native, width, height = str(raw.native[position]), int(raw.widths[position]), int(raw.heights[position])
            ids[number][position] = native if has_texts else int(raw.numbers[position])
            record = {"id": ids[number][position], "file_name": str(raw.file_names[position]) or f"{native}.jpg"}
            images.append(record | ({"height": height, "width": width} if width and height else {}))
        annotations: list[Record] = []
        for number, source in enumerate(located.sources):
            positions = located.position[located.source == number]
            objects = source.require_pixels("A split", positions)
            # A box CSV has no annotation ids: the authors count its rows from 0.
            first = 1 if source.unit_boxes else 0
            for row in np.flatnonzero(np.isin(objects.image, positions)).tolist():
                box = objects.boxes[row].tolist()
                record = {
                    "id": int(objects.numbers[row]) - first,
                    "image_id": ids[number][int(objects.image[row])],
                    "category_id": int(numbers[number][objects.category[row]]),
                    "bbox": [round(value, 2) if has_texts else plain_number(value) for value in box],
                    "iscrowd": int(objects.crowd[row]),
                }
                area = {} if has_texts else {"area": plain_number(float(objects.areas[row]))}
                annotations.append(record | area)
        origins = [located.sources[number].namespace for number in located.source.tolist()]
        return cls(stem, has_texts, images, annotations, origins, categories)

    def notes(self) -> Iterator[str]:
        """Yield what a user must know of it."""
        numbers = np.array([record["id"] for record in self.annotations], np.int64)
        if first_repeated(numbers) is not None:
            yield f"{self.stem}: annotation ids of the sources collide and are kept as they are."
        if len(numbers) and int(numbers.min()) <= 0:
            yield f"{self.stem}: an annotation has the id 0, as published; pycocotools takes a match with it for none."

    def chunks(self, info: Mapping[str, str], *, numbered: bool) -> Iterator[bytes]:
        """Yield the file's bytes, one record a line; `numbered`: places in `images`, from 1, for ids that are texts."""
        images, annotations = self.images, self.annotations
        if numbered:
            renumbered = {image["id"]: number for number, image in enumerate(images, 1)}
            images = [image | {"id": renumbered[image["id"]]} for image in images]
            annotations = [record | {"image_id": renumbered[record["image_id"]]} for record in annotations]
        counts = Counter(record["category_id"] for record in annotations)
        categories: list[Record] = [
            {"id": category.number, "name": category.name, "supercategory": category.supercategory}
            | ({"metacategory": category.metacategory} if category.metacategory else {})
            | {"count": counts[category.number]}
            for category in self.categories
        ]
        yield from json_file(
            info=info, licenses=(), images=iter(images), annotations=iter(annotations), categories=categories
        )


def _categories(
    sources: Sequence[Source], table: Sequence[PublishedCategory], part: str
) -> tuple[tuple[PublishedCategory, ...], tuple[Int64s, ...]]:
    """Return the category table of a file, and the number of each source's categories in it."""
    if table and sources[0].namespace == "openimages":
        rows = tuple(table)
    else:
        categories = sources[0].categories
        columns = zip(categories.numbers, categories.names, categories.supercategories, strict=True)
        rows = tuple(PublishedCategory(number, name, group) for number, name, group in columns)
    number_of = {row.name: row.number for row in rows}
    numbers = []
    for source in sources:
        of_source = [number_of.get(name, -1) for name in source.categories.names]
        used = np.unique(source.require_objects("A split").category)
        if lacking := [source.categories.names[number] for number in used.tolist() if of_source[number] < 0]:
            raise ExportError(
                "The category table lacks a class of a source",
                where=f"part {part}",
                expected="all sources of a split with one table of categories",
                found=", ".join(lacking[:5]),
            )
        numbers.append(np.array(of_source, np.int64))
    return rows, tuple(numbers)


def plan_findmeifyoucan(
    manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source], table: Sequence[PublishedCategory] = ()
) -> Plan:
    """Return the plan of the authors' files: a COCO JSON a split, and the list of its ids.

    ``info, licenses, images, annotations, categories``; the category table is that of the data set as a whole, and each
    category carries the number of its annotations as ``count``. Annotations are the source's own, whatever the label
    view says: id, box, area and crowd flag as they are. Masks are not kept.

    Where the data set's ids are texts (Open Images), boxes are rounded to two decimals and have no ``area``, and a
    second file ``…_int_id.json`` has the position in ``images``, from 1, for id.

    Parameters
    ----------
    table : sequence of Category, optional
        Category numbers and parents of the Open Images splits, as published; else the source's own.

    Raises
    ------
    ExportError
        A part is not a split; the sources number their categories differently; a class is not in the table; boxes
        are not in pixels.
    ManifestError, MissingListError, PresenceOnlyError, UnitBoxesError
        See `curation.manifest.views.locate_images`.
    """
    if not parts or len(set(parts)) < len(parts):
        raise ExportError("Each part is exported once", expected="one or more parts", found=", ".join(parts))
    splits = {part: SplitFile.of(manifest, part, sources, table) for part in parts}
    files = [file for part, split in splits.items() for file in _files(manifest, part, split)]
    return Plan(
        files=files,
        records=sum(
            (len(split.images) + len(split.annotations) + 3) * (2 if split.has_texts else 1) + len(split.images)
            for split in splits.values()
        ),
        counts={
            "images": sum(len(split.images) for split in splits.values()),
            "annotations": sum(len(split.annotations) for split in splits.values()),
        },
        notes=tuple(dict.fromkeys(note for split in splits.values() for note in split.notes())),
    )


def _files(manifest: Manifest, part: str, split: SplitFile) -> Iterator[PlannedFile]:
    header = manifest.header
    info = {
        "description": header.title,
        "manifest": f"{header.name} {header.version}",
        "manifest_digest": manifest.digest,
        "part": part,
    }
    yield PlannedFile(f"{split.stem}.json", partial(split.chunks, info, numbered=False))
    if split.has_texts:
        yield PlannedFile(f"{split.stem}_int_id.json", partial(split.chunks, info, numbered=True))
    yield PlannedFile(f"{split.stem}.txt", lines([image_id.partition(":")[2] for image_id in manifest.ids(part)]))


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


def findmeifyoucan_tables(member: Member, table: Sequence[PublishedCategory] = ()) -> list[PlannedTable]:
    """Return a table for each near, far and farther split available, under its published config (``coco_far_voc``).

    Raises
    ------
    ExportError
        The manifest is of another protocol; or see `curation.benchmarks.findmeifyoucan.layout.plan_findmeifyoucan`.
    PublishError
        No split is available, or a source is missing.
    """
    header = member.manifest.header
    where = f"{header.name} {header.version}"
    parts = [part for part in split_parts(header) if part in member.manifest.lists]
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
    return [_planned(member, part, table) for part in parts]


def _planned(member: Member, part: str, table: Sequence[PublishedCategory]) -> PlannedTable:
    kind, _, id_set = upstream_name(member.manifest, part).partition("_wrt_")
    distance, _, pool = kind.partition("_")
    split = SplitFile.of(member.manifest, part, member.sources, table)
    schema = published_schema()

    def rows() -> Iterator[pa.Table]:
        import pyarrow as pa

        records = list(_table_rows(split, distance))
        for start in range(0, len(records), _ROWS):
            yield pa.Table.from_pylist(records[start : start + _ROWS], schema=schema)

    filled = tuple(name for name in schema.names if name != "image")
    return PlannedTable(f"{pool}_{distance}_{id_set}", SPLIT, schema, rows, filled, not member.manifest.lists[part])


def _table_rows(split: SplitFile, distance: str) -> Iterator[Record]:
    categories = {
        row.number: {"id": row.number, "name": row.name, "supercategory": row.supercategory} for row in split.categories
    }
    objects: dict[Any, list[Record]] = {}
    for box in split.annotations:
        record = {"id": box["id"], "area": box.get("area"), "bbox": box["bbox"], "category_id": box["category_id"]}
        objects.setdefault(box["image_id"], []).append(record)
    for image, namespace in zip(split.images, split.origins, strict=True):
        mine = objects.get(image["id"], [])
        yield {
            "image": None,
            "file_name": image["file_name"],
            "image_id": str(image["id"]),
            "height": image.get("height"),
            "width": image.get("width"),
            "dataset_origin": ORIGINS.get(namespace, namespace),
            "distance_category": distance,
            "objects": mine,
            "categories": [categories[number] for number in dict.fromkeys(row["category_id"] for row in mine)],
        }


def _table(options: FormatOptions) -> Sequence[PublishedCategory]:
    """Return the published table of categories, where its two files are given."""
    tree, names = options.class_tree, options.class_names
    if (tree is None) != (names is None):
        raise UsageError("--set class_tree=FILE and --set class_names=FILE go together")
    return open_images_categories(tree, names) if tree and names else ()


FORMATS = (
    Format(
        "findmeifyoucan",
        lambda request: plan_findmeifyoucan(request.manifest, request.parts, request.sources, _table(request.options)),
        ("class_tree", "class_names"),
        usual_parts=split_parts,
        tables=lambda member, options: findmeifyoucan_tables(member, _table(options)),
    ),
)


def open_images_categories(tree: Path, names: Path) -> tuple[PublishedCategory, ...]:
    """Return the classes in the order of a depth-first walk along ``Subcategory`` (``unfold_oi_categories``).

    Below the root, a class of depth 0 is its own super- and metacategory, one of depth 1 has its parent as both, a
    deeper one its parent and its grandparent. A class that is met again keeps its first number and takes the parents of
    the last visit. ``Part`` is not followed.

    Parameters
    ----------
    tree : Path
        ``bbox_labels_600_hierarchy.json``.
    names : Path
        ``class-descriptions-boxable.csv``: label name, name; no header.

    Raises
    ------
    MissingFileError
        A file cannot be read.
    HierarchyError
        A file is not what it should be, or a class has no name.
    """
    class_names = read_open_images_names(names)
    categories: dict[str, PublishedCategory] = {}
    pending: list[tuple[LabelNode, tuple[str, ...]]] = [(kind, ()) for kind in reversed(read_label_tree(tree).kinds)]
    visits = 0
    while pending:
        entry, line = pending.pop()
        label = entry.name
        if label not in class_names:
            raise HierarchyError("A class of the tree has no name", where=str(tree), found=repr(label)[:80])
        # A tree that repeats its branches without end would be walked for ever.
        visits += 1
        if visits > 1_000_000:
            raise HierarchyError("The class tree has more than a million entries", where=str(tree))
        name = class_names[label]
        parents = (*line, name)
        number = categories[label].number if label in categories else len(categories) + 1
        above = (parents[max(len(parents) - 2, 0)], parents[max(len(parents) - 3, 0)])
        categories[label] = PublishedCategory(number, name, *above)
        pending += [(kind, parents) for kind in reversed(entry.kinds)]
    return tuple(categories.values())
