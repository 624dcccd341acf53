"""The near, far and farther splits with the configurations and columns of the dataset that the authors published."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from curation.benchmarks.parts import compared, unread_entry
from curation.core.canonical import sha256_of_lines
from curation.core.errors import DuplicateIdError, MissingFileError, PublishError
from curation.core.wording import counted, examples
from curation.manifest.header import Figure, FileEntry, Header, PartEntry, Rule
from curation.manifest.importing import LISTS, PROTOCOL
from curation.manifest.manifest import Manifest
from curation.manifest.views import locate_images
from curation.publishing.member import Member, PlannedTable
from curation.sources.object_rows import ORIGINS, read_object_rows, row_files
from curation.sources.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

_SHORT = {"openimages": "oi"}
_DISTANCES = ("near", "far", "farther")
SPLIT = "train"
"""The only split of every published config, which is not for training."""
_ROWS = 1000


def published_schema() -> pa.Schema:
    """Return the nine published columns; ``image`` is null, since photos are not published.

    An image id is always a text, although COCO has numbers, so that all configs have the same columns. ``bbox`` is
    ``x, y, w, h`` in pixels; ``area`` is null for a data set without areas (Open Images). ``categories`` are those of
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
            "The authors' layout needs near, far and farther splits",
            where=where,
            expected="a manifest of the benchmark findmeifyoucan, or of the rule near-far",
            found=header.rule.protocol,
        )
    parts = [part.name for part in _splits(header) if part.name in member.manifest.lists]
    if not parts:
        raise PublishError(
            "No near, far or farther split is available", where=where, hint=member.manifest.completion() or None
        )
    for part in parts:
        if part not in member.labelled:
            needed = " ".join(f"--source {name}=PATH" for name in member.manifest.part(part).sources)
            raise PublishError(
                "The published columns need file names and boxes", where=f"{where}: {part}", expected=needed
            )
    return [_planned(member, part) for part in parts]


def _planned(member: Member, part: str) -> PlannedTable:
    distance = part.rpartition("-")[2]
    records, schema = _records(member, part, distance), published_schema()

    def rows() -> Iterator[pa.Table]:
        import pyarrow as pa

        for start in range(0, len(records), _ROWS):
            yield pa.Table.from_pylist(records[start : start + _ROWS], schema=schema)

    filled = tuple(name for name in schema.names if name != "image")
    config = _config(member.manifest.header, part)
    return PlannedTable(config, SPLIT, schema, rows, filled, not member.manifest.lists[part])


def _splits(header: Header) -> list[PartEntry]:
    return [part for part in header.parts if part.name.rpartition("-")[2] in _DISTANCES]


def _config(header: Header, part: str) -> str:
    pool, _, distance = part.rpartition("-")
    id_set = header.name.rpartition("/")[2].partition("-")[0]
    return f"{_SHORT.get(pool, pool)}_{distance}_{id_set}"


def import_published(manifest: Manifest, folder: Path) -> Manifest:
    """Return the published splits as a separate manifest, each compared with the split of the rule.

    The figures hold the published counts beside the paper's: the images of a split, those that the start rule of COCO
    accepts (the kept ones), and the others (the added ones). If `manifest` is built, the notes name the images by which
    the splits differ. The paper is named only if all of its figures are met.

    Parameters
    ----------
    manifest : Manifest
        Manifest of this benchmark, built or header-only.
    folder : Path
        The published dataset: configurations such as ``data/coco_far_voc/train.parquet``.

    Raises
    ------
    MissingFileError
        The folder has no configuration of a split.
    DuplicateIdError
        A split lists an image twice.
    """
    header, offered = manifest.header, row_files(folder)
    configs = {frozenset(config_words(config)): config for config in offered}
    chosen = {part.name: configs.get(frozenset(config_words(_config(header, part.name)))) for part in _splits(header)}
    present = {part: config for part, config in chosen.items() if config is not None}
    if not present:
        raise MissingFileError(
            "The folder holds no configuration of a split",
            where=str(folder),
            expected=", ".join(_config(header, part) for part in chosen),
            found=", ".join(offered)[:300] or "no Parquet file",
            hint="each ID set has a separate manifest: findmeifyoucan/voc and findmeifyoucan/bdd",
        )
    datasets = {entry.name: entry.dataset for entry in header.sources}
    lists, files = dict[str, tuple[str, ...]](), list[FileEntry]()
    for part, config in present.items():
        source = read_object_rows(folder, dataset=datasets[manifest.part(part).sources[0]], part=config)
        lists[part] = tuple(sorted(source.image_ids.tolist()))
        if len(offered[config]) > 1:
            raise DuplicateIdError(
                "A split has several files", where=str(folder), expected=f"one file of {config}",
                found=", ".join(path.name for path in offered[config])[:300],
            )  # fmt: skip
        [file] = source.files
        files.append(FileEntry(name=f"{config}.parquet", sha256=file.sha256, size=file.size, rows=len(lists[part])))
    figures = list(_compared(manifest, lists))
    is_papers = all(figure.paper in (None, figure.obtained) for figure in figures) and len(present) == len(chosen)
    parts = tuple(
        replace(
            part, order="code_point", images=len(lists[part.name]), sha256=sha256_of_lines(lists[part.name]),
            annotated_images=None, boxes={}, subset_of="",
            selection=f"The published configuration {present[part.name]}.",
        )
        for part in _splits(header) if part.name in lists
    )  # fmt: skip
    needed = {name for part in parts for name in part.sources}
    sources = [unread_entry(entry.name, entry.dataset, entry.part) for entry in header.sources if entry.name in needed]
    published = replace(unread_entry(LISTS, "findmeifyoucan", "published"), files=tuple(files))
    imported = replace(
        header, name=f"{header.name}-published", version="1.0.0", title=f"{header.title}, as published",
        paper=header.paper if is_papers else None, origin="as_published", parts=parts, sources=(published, *sources),
        rule=Rule(
            protocol=PROTOCOL, algorithm_version=1,
            parameters={part: f"{config}.parquet" for part, config in present.items()},
        ),
        figures=tuple(figures), notes=tuple(_differences(manifest, lists)), supersedes=None, decisions=None,
        completes=None,
    )  # fmt: skip
    return Manifest(imported, lists)


def config_words(config: str) -> list[str]:
    """Return the words of a configuration or split: coco, far, voc for ``coco_far_voc``; openimages becomes oi."""
    return [_SHORT.get(word, word) for word in re.split("[_-]", config.lower())]


def _compared(manifest: Manifest, lists: Mapping[str, Sequence[str]]) -> Iterator[Figure]:
    figures = {figure.name: figure for figure in manifest.header.figures}

    def figure(name: str, obtained: int) -> Iterator[Figure]:
        if name in figures:
            yield compared(name, obtained, figures[name].paper, figures[name].place, "the published split differs")

    for part, ids in lists.items():
        pool = part.rpartition("-")[0]
        yield from figure(f"{part}.images", len(ids))
        if (by_rule := manifest.lists.get(f"{pool}-rule")) is not None:
            n_kept = len(set(ids) & set(by_rule))
            yield from figure(f"{part}.kept_images", n_kept)
            yield from figure(f"{part}.added_images", len(ids) - n_kept)
        if part.endswith("-near") and f"{pool}-far" in lists:
            shared = set(ids) & set(lists[f"{pool}-far"])
            yield from figure(f"{pool}.near_and_far_images", len(shared))


def _differences(manifest: Manifest, lists: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for part, ids in lists.items():
        if part not in manifest.lists:
            yield f"{part}: {manifest.title} lacks the list; the published one is compared by its figures alone."
            continue
        published, built = set(ids), set(manifest.lists[part])
        if published == built:
            yield f"{part}: the {counted(len(ids), 'image')} of {manifest.title}."
            continue
        sides = {"in the published split alone": published - built, f"in {manifest.title} alone": built - published}
        texts = [
            f"{counted(len(side), 'image')} {word} ({examples(sorted(side))})" for word, side in sides.items() if side
        ]
        yield f"{part}: {counted(len(published & built), 'image')} in both; {'; '.join(texts)}."


def _records(member: Member, part: str, distance: str) -> list[dict[str, Any]]:
    """Return a record for each image of a split, in list order, with its annotations in the source."""
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
    """Return whether the ids of a dataset are texts, as in Open Images, whose boxes have two decimals and no area."""
    return source.namespace != "coco"


def _objects_by_image(source: Source, positions: Any) -> dict[int, list[tuple[int, dict[str, Any]]]]:
    """Return the category and published record of the objects of images, by position of the image."""
    objects, has_texts = source.require_pixels("A split", positions), _has_text_ids(source)
    # A box CSV has no annotation ids; the authors number its rows from 0.
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
