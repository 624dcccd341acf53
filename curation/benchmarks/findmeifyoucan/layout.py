"""The splits under the names, in the layout and with the columns of the authors' files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.errors import ExportError, HierarchyError, PublishError, UsageError
from curation.hierarchy.class_trees import LabelNode, read_label_tree, read_open_images_names
from curation.manifest.header import Header
from curation.manifest.manifest import Manifest
from curation.manifest.views import PartImages, locate_images
from curation.publishing.exporting import Format, FormatOptions
from curation.publishing.formats.coco import plain_number
from curation.publishing.formats.plan import Plan, PlannedFile, first_repeated, json_file, lines
from curation.publishing.member import Member
from curation.publishing.parquet import PlannedTable
from curation.sources.source import Int64s, Source

if TYPE_CHECKING:
    import pyarrow as pa


_SHORT = {"openimages": "oi"}
_DISTANCES = ("near", "far", "farther")


def split_parts(header: Header) -> list[str]:
    """Return the names of the near, far and farther splits; a manifest of another protocol is an `ExportError`."""
    names = [part.name for part in header.parts if part.name.rpartition("-")[2] in _DISTANCES]
    if header.rule.protocol != "findmeifyoucan":
        raise ExportError(
            "The authors' layout is that of near, far and farther splits",
            where=f"{header.name} {header.version}",
            expected="a manifest of the protocol findmeifyoucan",
            found=header.rule.protocol,
            hint="--format coco",
        )
    return names


def upstream_name(manifest: Manifest, part: str) -> str:
    """Return the stem of the authors' file of a split: ``near_oi_wrt_voc`` for ``openimages-near``.

    Raises
    ------
    ExportError
        The part is no near, far or farther split.
    """
    pool, _, distance = part.rpartition("-")
    if part not in split_parts(manifest.header):
        raise ExportError(
            "The authors' layout is that of near, far and farther splits",
            where=f"{manifest.header.name} {manifest.header.version}: {part}",
            expected=", ".join(split_parts(manifest.header)),
            hint="--format coco",
        )
    id_set = manifest.header.name.rpartition("/")[2].partition("-")[0]
    return f"{distance}_{_SHORT.get(pool, pool)}_wrt_{id_set}"


def plan_findmeifyoucan(
    manifest: Manifest, parts: Sequence[str], sources: Mapping[str, Source], table: Sequence[Category] = ()
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
        A part is no split; the sources of a split number their categories otherwise; a class is not in the table; boxes
        are not in pixels.
    ManifestError, MissingListError, PresenceOnlyError, UnitBoxesError
        See `curation.manifest.views.locate_images`.
    """
    if not parts or len(set(parts)) < len(parts):
        raise ExportError("Each part is exported once", expected="one or more parts", found=", ".join(parts))
    files = [SplitFile.of(manifest, part, sources, table) for part in parts]
    planned = [one for file in files for one in file.planned()]
    notes = [note for file in files for note in file.notes()]
    return Plan(
        files=tuple(planned),
        records=sum(file.records * (2 if file.texts else 1) + len(file.images) for file in files),
        counts={
            "images": sum(len(file.images) for file in files),
            "annotations": sum(file.n_annotations for file in files),
        },
        notes=tuple(dict.fromkeys(notes)),
    )


@dataclass(frozen=True, slots=True)
class Category:
    """One row of the category table of a split.

    Attributes
    ----------
    number : int
        In Open Images' table the position in the walk along its class tree, from 1.
    name, supercategory, metacategory : str
        Metacategories are Open Images' alone.
    label : str
        Label name such as ``/m/0bt9lr``; ``""`` outside Open Images.
    """

    number: int
    name: str
    supercategory: str
    metacategory: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class SplitFile:
    """One split, given out record by record."""

    manifest: Manifest
    part: str
    stem: str
    images: PartImages
    rows: tuple[Int64s, ...]
    categories: tuple[Category, ...]
    numbers: tuple[Int64s, ...]

    @classmethod
    def of(cls, manifest: Manifest, part: str, sources: Mapping[str, Source], table: Sequence[Category]) -> SplitFile:
        """Return the split that a part is (see `plan_findmeifyoucan` for the errors)."""
        stem = upstream_name(manifest, part)
        images = locate_images(manifest, part, sources)
        categories, numbers = _categories(images.sources, table, part)
        rows = tuple(_rows(images, place) for place in range(len(images.sources)))
        return cls(manifest, part, stem, images, rows, categories, numbers)

    @property
    def texts(self) -> bool:
        """Whether the data set's ids are texts."""
        return self.images.sources[0].namespace != "coco"

    @property
    def n_annotations(self) -> int:
        """How many objects it holds."""
        return sum(map(len, self.rows))

    @property
    def records(self) -> int:
        """How many chunks its file has."""
        return len(self.images) + self.n_annotations + 3

    def planned(self) -> Iterator[PlannedFile]:
        """Yield the authors' files."""
        yield PlannedFile(f"{self.stem}.json", lambda: self.chunks(numbered=False))
        if self.texts:
            yield PlannedFile(f"{self.stem}_int_id.json", lambda: self.chunks(numbered=True))
        natives = [one.partition(":")[2] for one in self.manifest.ids(self.part)]
        yield PlannedFile(f"{self.stem}.txt", lines(natives))

    def notes(self) -> Iterator[str]:
        """Yield what a user must know of it."""
        numbers = [_numbers(source)[rows] for source, rows in zip(self.images.sources, self.rows, strict=True)]
        together = np.concatenate(numbers)
        if first_repeated(together) is not None:
            yield f"{self.stem}: annotation ids of the sources collide and are kept as they are."
        if len(together) and int(together.min()) <= 0:
            yield (
                f"{self.stem}: an annotation has the id 0, as published; pycocotools takes a match with it for none."
            )

    def chunks(self, *, numbered: bool) -> Iterator[bytes]:
        """Yield the file's bytes: one record a line."""
        header = self.manifest.header
        info = {
            "description": header.title,
            "manifest": f"{header.name} {header.version}",
            "manifest_digest": self.manifest.digest,
            "part": self.part,
        }
        yield from json_file(
            info=info,
            licenses=(),
            images=self.image_records(numbered),
            annotations=self.annotation_records(numbered),
            categories=self._counted(),
        )

    def _id(self, place: int, source: Source, position: int, numbered: bool) -> int | str:
        if self.texts:
            return place + 1 if numbered else str(source.images.native[position])
        return int(source.images.numbers[position])

    def image_records(self, numbered: bool) -> Iterator[dict[str, Any]]:
        """Yield its images in list order; `numbered`: with their place for an id that is a text."""
        located = zip(self.images.source.tolist(), self.images.position.tolist(), strict=True)
        for place, (number, position) in enumerate(located):
            source = self.images.sources[number]
            native = str(source.images.native[position])
            record: dict[str, Any] = {
                "id": self._id(place, source, position, numbered),
                "file_name": str(source.images.file_names[position]) or f"{native}.jpg",
            }
            width, height = int(source.images.widths[position]), int(source.images.heights[position])
            yield record | ({"height": height, "width": width} if width and height else {})

    def annotation_records(self, numbered: bool) -> Iterator[dict[str, Any]]:
        """Yield its objects, source by source in file order."""
        for number, (source, rows) in enumerate(zip(self.images.sources, self.rows, strict=True)):
            objects = source.require_objects("A split")
            numbers = _numbers(source)
            here = np.flatnonzero(self.images.source == number)
            place_of = np.full(len(source.images), -1, np.int64)
            place_of[self.images.position[here]] = here
            for row in rows.tolist():
                position = int(objects.image[row])
                box = objects.boxes[row].tolist()
                record = {
                    "id": int(numbers[row]),
                    "image_id": self._id(int(place_of[position]), source, position, numbered),
                    "category_id": int(self.numbers[number][objects.category[row]]),
                    "bbox": [round(value, 2) if self.texts else plain_number(value) for value in box],
                    "iscrowd": int(objects.crowd[row]),
                }
                yield record if self.texts else record | {"area": plain_number(float(objects.areas[row]))}

    def _counted(self) -> list[dict[str, Any]]:
        counts = dict.fromkeys((one.number for one in self.categories), 0)
        for number, (source, rows) in enumerate(zip(self.images.sources, self.rows, strict=True)):
            used = self.numbers[number][source.require_objects("A split").category[rows]]
            for one, n in zip(*np.unique(used, return_counts=True), strict=True):
                counts[int(one)] += int(n)
        return [
            {
                "id": one.number,
                "name": one.name,
                "supercategory": one.supercategory,
                **({"metacategory": one.metacategory} if one.metacategory else {}),
                "count": counts[one.number],
            }
            for one in self.categories
        ]


def _rows(images: PartImages, number: int) -> Int64s:
    """Return the places of the objects of a source that lie on images of the split, in file order."""
    source = images.sources[number]
    chosen = np.zeros(len(source.images), np.bool_)
    positions = images.position[images.source == number]
    chosen[positions] = True
    return np.flatnonzero(chosen[source.require_pixels("A split", positions).image])


def _numbers(source: Source) -> Int64s:
    """Return annotation ids; of a box CSV, which has none, the rows counted from 0, as the authors do."""
    numbers = source.require_objects("A split").numbers
    return numbers - 1 if source.unit_boxes else numbers


def _categories(
    sources: Sequence[Source], table: Sequence[Category], part: str
) -> tuple[tuple[Category, ...], tuple[Int64s, ...]]:
    """Return the category table of a file, and the number of each source's categories in it."""
    if table and sources[0].namespace == "openimages":
        rows = tuple(table)
    else:
        own = sources[0].categories
        columns = zip(own.numbers, own.names, own.supercategories, strict=True)
        rows = tuple(Category(number, name, group) for number, name, group in columns)
    number_of = {one.name: one.number for one in rows}
    numbers = []
    for source in sources:
        of_source = [number_of.get(name, -1) for name in source.categories.names]
        used = np.unique(source.require_objects("A split").category)
        if lacking := [source.categories.names[one] for one in used.tolist() if of_source[one] < 0]:
            raise ExportError(
                "The category table lacks a class of a source",
                where=f"part {part}",
                expected="all sources of a split with one table of categories",
                found=", ".join(lacking[:5]),
            )
        numbers.append(np.array(of_source, np.int64))
    return rows, tuple(numbers)


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


def findmeifyoucan_tables(member: Member, table: Sequence[Category] = ()) -> list[PlannedTable]:
    """Return a table for each near, far and farther split available, under its published config (``coco_far_voc``).

    Raises
    ------
    ExportError
        The manifest is of another protocol; or see `curation.benchmarks.findmeifyoucan.layout.plan_findmeifyoucan`.
    PublishError
        No split is available, or a source of one is not given.
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


def _planned(member: Member, part: str, table: Sequence[Category]) -> PlannedTable:
    kind, _, id_set = upstream_name(member.manifest, part).partition("_wrt_")
    distance, _, pool = kind.partition("_")
    split = SplitFile.of(member.manifest, part, member.sources, table)
    schema = published_schema()
    has_area = not split.texts
    filled = tuple(name for name in schema.names if name != "image")

    def rows() -> Iterator[pa.Table]:
        import pyarrow as pa

        found = list(_table_rows(split, distance, has_area=has_area))
        for start in range(0, len(found), _ROWS):
            yield pa.Table.from_pylist(found[start : start + _ROWS], schema=schema)

    empty = not member.manifest.lists[part]
    return PlannedTable(f"{pool}_{distance}_{id_set}", SPLIT, schema, rows, filled, empty)


def _table_rows(split: SplitFile, distance: str, *, has_area: bool) -> Iterator[dict[str, Any]]:
    categories = {
        one.number: {"id": one.number, "name": one.name, "supercategory": one.supercategory} for one in split.categories
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


def _table(options: FormatOptions) -> Sequence[Category]:
    """Return the published table of categories, where its two files are given."""
    tree, names = options.class_tree, options.class_names
    if (tree is None) != (names is None):
        raise UsageError("--set class_tree=FILE and --set class_names=FILE go together")
    return open_images_categories(tree, names) if tree and names else ()


FORMATS = (
    Format(
        "findmeifyoucan",
        lambda one: plan_findmeifyoucan(one.manifest, one.parts, one.sources, _table(one.options)),
        ("class_tree", "class_names"),
        usual_parts=split_parts,
        tables=lambda member, options: findmeifyoucan_tables(member, _table(options)),
    ),
)


def open_images_categories(tree: Path, names: Path) -> tuple[Category, ...]:
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
    named = read_open_images_names(names)
    found: dict[str, Category] = {}
    pending: list[tuple[LabelNode, tuple[str, ...]]] = [(one, ()) for one in reversed(read_label_tree(tree).kinds)]
    visits = 0
    while pending:
        entry, line = pending.pop()
        label = entry.name
        if label not in named:
            raise HierarchyError("A class of the tree has no name", where=str(tree), found=repr(label)[:80])
        # A tree that repeats its branches without end would be walked for ever.
        visits += 1
        if visits > 1_000_000:
            raise HierarchyError("The class tree has more than a million entries", where=str(tree))
        name = named[label]
        parents = (*line, name)
        number = found[label].number if label in found else len(found) + 1
        above = (parents[max(len(parents) - 2, 0)], parents[max(len(parents) - 3, 0)])
        found[label] = Category(number, name, *above, label)
        pending += [(one, parents) for one in reversed(entry.kinds)]
    return tuple(found.values())
