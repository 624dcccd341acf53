"""Annotations however they are given, one or several by name: `open_source`, `as_source`, `open_slots`.

They are a path, a COCO dictionary, a DataFrame, a FiftyOne dataset or view, or a `Source`. What is in memory is first
written out as the bytes of a COCO file, so that one reader checks it, and its digest is that of the file which would
hold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import msgspec

from curation.arguments import checked
from curation.canonical import sha256_of_bytes
from curation.errors import MissingFileError, UsageError
from curation.sources.coco import parse_coco
from curation.sources.opening import open_source as open_path
from curation.sources.opening import parts_at
from curation.sources.slots import BadBoxes, Reading, Seam, SourceSlot
from curation.sources.source import Source

_BOX = ("x", "y", "w", "h")
_KINDS = "a path, a COCO dictionary, a DataFrame of boxes, a FiftyOne dataset or view, or a Source"


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
def open_source(dataset: str, annotations: Any, *, part: str = "", **reading: Any) -> Source:
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
        ``cache``, ``bad_boxes``, ``split``, ``seam``, as `curation.sources.opening.open_source` takes them.

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


@checked
def as_source(
    given: Any,
    *,
    dataset: str,
    part: str,
    bad_boxes: BadBoxes = "error",
    seam: Seam = "drop",
    cache: bool | Path = True,
    split: tuple[str, str] | None = None,
    addresses: bool = False,
) -> Source:
    """Return the source that annotations hold, however they are given.

    Parameters
    ----------
    given : path, mapping, DataFrame, FiftyOne dataset or view, or Source
        A path: see `curation.sources.opening.open_source`. A mapping: a COCO dictionary. A DataFrame: one row a box,
        with columns ``image_id``, ``category`` (name) and ``x``, ``y``, ``w``, ``h`` (pixels, origin top left);
        ``file_name``, ``width``, ``height``, ``iscrowd`` and ``difficult`` where there are such; a row without category
        is an image without a box. A FiftyOne view: the ``ground_truth`` detections of its samples; sizes come from
        the metadata.
    dataset, part : str
    bad_boxes, seam, cache, split, addresses
        As the reader of paths takes them.

    Raises
    ------
    UsageError
        The annotations are of another kind, or a DataFrame lacks a column.
    CurationError
        Whatever the reader finds wrong.
    """
    if isinstance(given, Source):
        return given
    if isinstance(given, str | Path):
        return open_path(
            Path(given),
            dataset=dataset,
            part=part,
            cache=cache,
            bad_boxes=bad_boxes,
            split=split,
            seam=seam,
            addresses=addresses,
        )
    content: Any = _Written(f"{type(given).__name__}.json", msgspec.json.encode(_coco(given)))
    return parse_coco(content, dataset=dataset, part=part, bad_boxes=bad_boxes, addresses=addresses)


def _coco(given: Any) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    if hasattr(given, "iter_samples"):
        return _of_view(given)
    if hasattr(given, "columns") and hasattr(given, "to_dict"):
        try:
            return _of_rows(given.to_dict("records"), list(given.columns))
        except ValueError as error:
            numbers = ", ".join((*_BOX, "width", "height", "iscrowd", "difficult"))
            raise UsageError(
                "The table of boxes has a value that is no number",
                expected=f"numbers: {numbers}",
                found=str(error)[:200],
            ) from error
    raise UsageError("These are no annotations", expected=_KINDS, found=type(given).__name__)


def _of_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> dict[str, Any]:
    """Return the COCO dictionary of one row a box; classes are numbered from 1 in the order of their names."""
    needed = ("image_id", "category", *_BOX)
    if missing := [name for name in needed if name not in columns]:
        raise UsageError(
            "The table of boxes lacks a column",
            expected=", ".join(needed),
            found=", ".join(map(str, columns))[:200],
            hint=f"without {', '.join(missing)}",
        )
    names = sorted({str(row["category"]) for row in rows if not _absent(row["category"])})
    number = {name: place for place, name in enumerate(names, 1)}
    images: dict[Any, dict[str, Any]] = {}
    annotations: list[dict[str, Any]] = []
    for row in rows:
        facts = {"id": row["image_id"], "file_name": str(row.get("file_name") or row["image_id"])}
        facts |= {name: int(row[name]) for name in ("width", "height") if not _absent(row.get(name))}
        images.setdefault(row["image_id"], facts)
        if _absent(row["category"]):
            continue
        box = [float(row[name]) for name in _BOX]
        flags = {name: int(row[name]) for name in ("iscrowd", "difficult") if name in row and not _absent(row[name])}
        annotations.append(
            {
                "id": len(annotations) + 1,
                "image_id": row["image_id"],
                "category_id": number[str(row["category"])],
                "bbox": box,
                "area": box[2] * box[3],
                **flags,
            }
        )
    categories = [{"id": place, "name": name} for name, place in number.items()]
    return {"images": list(images.values()), "annotations": annotations, "categories": categories}


def _absent(value: Any) -> bool:
    """Return whether a cell is empty: None, or the number that is not itself."""
    return value is None or value != value


def _of_view(view: Any) -> dict[str, Any]:
    """Return the COCO dictionary of a FiftyOne view; boxes there are shares of the photo's width and height."""
    rows: list[dict[str, Any]] = []
    for place, sample in enumerate(view.iter_samples(), 1):
        metadata = sample["metadata"]
        if metadata is None or not metadata.width or not metadata.height:
            raise UsageError(
                "A sample does not say how large its photo is",
                where=str(sample["filepath"])[:200],
                hint="view.compute_metadata()",
            )
        image = {
            "image_id": place,
            "file_name": Path(sample["filepath"]).name,
            "width": metadata.width,
            "height": metadata.height,
            "category": None,
        }
        found = sample["ground_truth"] if sample.has_field("ground_truth") else None
        rows += [
            {
                **image,
                "category": one.label,
                "iscrowd": int(bool(one["iscrowd"])) if one.has_field("iscrowd") else 0,
                **dict(zip(_BOX, _pixels(one.bounding_box, metadata), strict=True)),
            }
            for one in (found.detections if found is not None else ())
        ] or [image]
    return _of_rows(rows, ("image_id", "category", *_BOX))


def _pixels(shares: Sequence[float], metadata: Any) -> list[float]:
    sizes = (metadata.width, metadata.height, metadata.width, metadata.height)
    return [share * size for share, size in zip(shares, sizes, strict=True)]


def open_slots(
    given: Mapping[str, Any],
    slots: Sequence[SourceSlot],
    reading: Reading | None = None,
    *,
    addresses: bool = False,
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
    addresses : bool
        Whether where photos lie on the web is read too (see `curation.sources.opening.open_source`).

    Raises
    ------
    UsageError
        A name is neither a slot nor a dataset, or a part is not the one that the slot takes.
    """
    read = partial(_open, reading or Reading(), addresses)
    found = _parts(given)
    names = [slot.name for slot in slots]
    datasets = list(dict.fromkeys(slot.dataset for slot in slots))
    for name in found:
        if name not in (*names, *datasets):
            raise UsageError(
                "There is no such source here",
                where=f"--source {name[:100]}",
                expected=", ".join(names),
                hint="curation list",
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
    for key, one in given.items():
        name, _, part = key.partition("@")
        if name in found:
            raise UsageError(f"--source names {name!r} twice", where=key[:200])
        found[name] = (part, Path(one) if isinstance(one, str) else one)
    return found


def _expand(read: Callable[..., Source], slots: Sequence[SourceSlot], part: str, path: Any) -> dict[str, Source]:
    if part or not (isinstance(path, Path) and path.is_dir()):
        # One part is meant: that of the option, else that of the file's name, else the required or only one left.
        named = [slot for slot in slots if slot.part == (part or _part_in_name(path))]
        left = [slot for slot in slots if slot.required] or list(slots)
        if not part and not named and len(left) > 1:
            raise UsageError(
                "The file is one part of its dataset, and its name does not say which",
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
        raise UsageError("The dataset has no such part here", where=f"--source …@{part}={path}", hint="curation list")
    return found


def _open(reading: Reading, addresses: bool, slot: SourceSlot, part: str, path: Any) -> Source:
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
        seam=reading.seam,
        addresses=addresses,
    )


def _part_of(slot: SourceSlot, path: Any) -> str:
    """Return the part that a path stands for: named by the file, or the usual or only one of a root."""
    if not isinstance(path, Path):
        return slot.usual_part
    if not path.is_dir():
        return _part_in_name(path)
    offered = parts_at(path, slot.dataset)
    if slot.usual_part in offered:
        return slot.usual_part
    if len(offered) > 1:
        raise UsageError(
            "The root offers several parts",
            where=f"--source {slot.name}={path}",
            expected="one of them",
            found=", ".join(offered),
            hint=f"--source {slot.name}@{offered[0]}={path}",
        )
    return offered[0] if offered else slot.usual_part


def _part_in_name(path: Any) -> str:
    """Return the part that a file's name says, ``""`` for none: ``instances_val2017.json`` is val2017."""
    if not isinstance(path, Path):
        return ""
    named = re.search(r"(?:^|_)((?:train|val|test)20[0-9]{2})(?=[_.]|$)", path.name)
    return named[1] if named else ""
