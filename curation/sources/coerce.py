"""Annotations however they are given, one or several by name: `open_source`, `as_source`, `open_slots`.

They are a path, a COCO dictionary, a DataFrame, a FiftyOne dataset or view, or a `Source`. What is in memory becomes
the bytes of a COCO file (`curation.sources.in_memory`), so that one reader checks it, and its digest is that of the
file which would hold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

from curation.core.arguments import checked
from curation.core.canonical import sha256_of_bytes
from curation.core.errors import MissingFileError, UsageError
from curation.sources.coco import parse_coco
from curation.sources.datasets import namespace_of
from curation.sources.fiftyone_view import FILE_NAME, coco_of_view, is_named, is_view, listed_categories, load_named
from curation.sources.in_memory import coco_bytes, json_bytes
from curation.sources.opening import open_source as open_path
from curation.sources.opening import parts_at
from curation.sources.source import Source
from curation.sources.source_specs import BadBoxes, Reading, SourceSlot


@dataclass(frozen=True)
class _Written:
    """The bytes of a COCO file that nobody wrote to a disk, as `curation.sources.content.FileContent` has them."""

    name: str
    data: bytes

    @property
    def size(self) -> int:
        """Bytes that the file would have."""
        return len(self.data)

    @cached_property
    def sha256(self) -> str:
        """``sha256:<hex>`` of these bytes."""
        return sha256_of_bytes(self.data)


@checked
def open_source(dataset: str, annotations: Annotated[Any, Path], *, part: str = "", **reading: Any) -> Source:
    """Return what one raw dataset part says: its images, classes and boxes, as columns.

    Parameters
    ----------
    dataset : str
        What the ids belong to: ``coco``, ``voc2007``, ``openimages``, or a name of your own.
    annotations : path, mapping, DataFrame, FiftyOne dataset or view, or Source
        See `as_source`.
    part : str
        Such as ``val2017``; of a root that holds several.
    **reading
        ``cache``, ``bad_boxes``, as `curation.sources.opening.open_source` takes them; of FiftyOne
        ``id_field`` and ``label_field``.

    Examples
    --------
    >>> import curation
    >>> image = {"id": 1, "file_name": "1.jpg", "width": 64, "height": 48}
    >>> box = {"id": 1, "image_id": 1, "category_id": 7, "bbox": [2, 3, 10, 20]}
    >>> shapes = {"images": [image], "annotations": [box], "categories": [{"id": 7, "name": "circle"}]}
    >>> source = curation.open_source("shapes", shapes)
    >>> len(source.images), source.categories.names
    (1, ('circle',))
    """
    return as_source(annotations, dataset=dataset, part=part, **reading)


@partial(checked, called="open_source", hint="help(curation.open_source)")
def as_source(
    given: Annotated[Any, Path],
    *,
    dataset: str,
    part: str,
    bad_boxes: BadBoxes = "error",
    cache: bool | Path = True,
    id_field: str = "",
    label_field: str = "",
) -> Source:
    """Return the source that annotations hold, however they are given.

    Parameters
    ----------
    given : path, mapping, DataFrame, several mappings, FiftyOne dataset or view, or Source
        A path: see `curation.sources.opening.open_source`. A mapping: a COCO dictionary. A DataFrame, or a mapping a
        row: boxes, and a mapping an image: those of an image (see `curation.sources.in_memory.coco_bytes`). A FiftyOne
        dataset or view, itself or as ``fiftyone:NAME[#VIEW]`` of its database: detections of its samples; sizes come
        from the metadata.
    dataset, part : str
    bad_boxes, cache
        As the reader of paths takes them.
    id_field, label_field : str
        Of a FiftyOne dataset or view: the field that names the images, and that of the boxes (see
        `curation.sources.fiftyone_view.coco_of_view`).

    Raises
    ------
    UsageError
        The annotations are of another kind, or a DataFrame lacks a column or has it twice.
    CurationError
        Whatever the reader finds wrong.
    """
    if isinstance(given, Source):
        return given
    if isinstance(given, str | Path) and is_named(given):
        given = load_named(given)
    if is_view(given):
        coco = coco_of_view(given, namespace=namespace_of(dataset), id_field=id_field, label_field=label_field)
        return _parsed(json_bytes(coco), bool(listed_categories(given)), FILE_NAME, dataset, part, bad_boxes)
    if id_field or label_field:
        raise UsageError("id_field and label_field are for FiftyOne datasets and views", found=type(given).__name__)
    if isinstance(given, str | Path):
        return open_path(Path(given), dataset=dataset, part=part, cache=cache, bad_boxes=bad_boxes)
    return _parsed(*coco_bytes(given), f"{type(given).__name__}.json", dataset, part, bad_boxes)


def _parsed(data: bytes, has_category_ids: bool, name: str, dataset: str, part: str, bad_boxes: BadBoxes) -> Source:
    content: Any = _Written(name, data)
    source = parse_coco(content, dataset=dataset, part=part, bad_boxes=bad_boxes)
    if has_category_ids:
        return source
    return replace(source, categories=replace(source.categories, numbering="none"))


def open_slots(
    given: Mapping[str, Any],
    slots: Sequence[SourceSlot],
    reading: Reading | None = None,
    *,
    hint: str = "curation list",
) -> dict[str, Source]:
    """Return the sources that are given, by slot name.

    A dataset's name stands for all its slots: of a root, those that it offers; of a file, the one that the file is.
    ``NAME@PART`` says which part of the dataset is meant, where the slot takes any: ``--source coco@val2017=ROOT``.

    Parameters
    ----------
    given : mapping of str to path or annotations
        See `as_source` for what annotations may be.
    slots : sequence of SourceSlot
    reading : Reading, optional
    hint : str
        Where to look for the names.

    Raises
    ------
    UsageError
        A name is neither a slot nor a dataset, or a part is not the one that the slot takes.
    """
    read = partial(_open, reading or Reading())
    found = _parts(given)
    names = [slot.name for slot in slots]
    datasets = list(dict.fromkeys(slot.dataset for slot in slots))
    for name in found:
        if name not in (*names, *datasets):
            raise UsageError(
                "No such source here", where=f"--source {name[:100]}", expected=", ".join(names), hint=hint
            )
    opened: dict[str, Source] = {}
    for slot in slots:
        if slot.name in found:
            opened[slot.name] = read(slot, *found[slot.name])
    for dataset in datasets:
        if dataset in found and dataset not in names:
            of_dataset = [slot for slot in slots if slot.dataset == dataset and slot.name not in opened]
            opened |= _expand(read, of_dataset, *found[dataset])
    return opened


def _parts(given: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = {}
    for key, value in given.items():
        name, _, part = key.partition("@")
        if name in found:
            raise UsageError(f"--source names {name!r} twice", where=key[:200])
        found[name] = (part, Path(value) if isinstance(value, str) else value)
    return found


def _expand(read: Callable[..., Source], slots: Sequence[SourceSlot], part: str, path: Any) -> dict[str, Source]:
    if part or not (isinstance(path, Path) and path.is_dir()):
        # One part is meant: that of the option, else that of the file's name, else the required or only one left.
        named = [slot for slot in slots if slot.part == (part or _part_in_name(path))]
        left = [slot for slot in slots if slot.required] or list(slots)
        if not part and not named and len(left) > 1:
            raise UsageError(
                "The file name does not say which part of the dataset it is",
                where=f"--source {left[0].dataset}={path}",
                expected=" or ".join(f"--source {slot.name}=PATH" for slot in left),
                found=getattr(path, "name", type(path).__name__),
            )
        slots = (named if part else named or left)[:1]
    found: dict[str, Source] = {}
    for slot in slots:
        try:
            found[slot.name] = read(slot, part, path)
        except MissingFileError:
            if slot.required or len(slots) == 1:
                raise
    if not found:
        raise UsageError("The dataset has no such part", where=f"--source …@{part}={path}", hint="curation list")
    return found


def _open(reading: Reading, slot: SourceSlot, part: str, path: Any) -> Source:
    if part and slot.part and part != slot.part:
        raise UsageError(
            f"Source {slot.name} is another part of its dataset",
            where=f"--source {slot.name}@{part}",
            expected=slot.part,
            found=part,
        )
    return as_source(
        path,
        dataset=slot.dataset,
        part=part or slot.part or _part_of(slot, path),
        cache=reading.cache,
        bad_boxes=reading.bad_boxes,
    )


def _part_of(slot: SourceSlot, path: Any) -> str:
    """Return the part that a path stands for: named by the file, or the usual or only one of a root."""
    if not isinstance(path, Path):
        return slot.usual_part
    offered = parts_at(path, slot.dataset)
    if not offered and not path.is_dir():
        return _part_in_name(path)
    if slot.usual_part in offered:
        return slot.usual_part
    usual = slot.usual_part or slot.name
    if len(offered) > 1:
        likely = min(offered, key=lambda part: (not part.startswith(usual), part.startswith("train")))
        raise UsageError(
            "The root offers several parts",
            where=f"--source {slot.name}={path}",
            expected="one of them",
            found=", ".join(offered),
            hint=f"--source {slot.name}@{likely}={path}",
        )
    # A part that is named for another use is taken only on request: else it might serve both.
    if offered and {usual, _use_of(offered[0])} in ({"train", "val"}, {"train", "test"}):
        raise UsageError(
            f"The root has no {usual} part",
            where=f"--source {slot.name}={path}",
            expected=f"a part such as {usual}",
            found=offered[0],
            hint=f"--source {slot.name}=PATH of another file or folder, or if you mean this part: "
            f"--source {slot.name}@{offered[0]}={path}",
        )
    return offered[0] if offered else slot.usual_part


def _use_of(part: str) -> str:
    """Return ``train``, ``val`` or ``test`` for a part whose name begins so, else ``""``: trainval is train."""
    return next((use for use in ("train", "val", "test") if part.startswith(use)), "")


def _part_in_name(path: Any) -> str:
    """Return the part that a file's name says, ``""`` for none: ``instances_val2017.json`` is val2017."""
    if not isinstance(path, Path):
        return ""
    named = re.search(r"(?:^|_)((?:train|val|test)20[0-9]{2})(?=[_.]|$)", path.name)
    return named[1] if named else ""
