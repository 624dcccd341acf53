"""Sources by the name under which a protocol or a manifest knows them: `open_slots`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from curation.errors import MissingFileError, UsageError
from curation.ids import ImageId

if TYPE_CHECKING:
    from curation.sources.source import Source


BadBoxes = Literal["error", "drop"]
Seam = Literal["drop", "split", "widest"]
Sources = Annotated[
    Mapping[str, Annotated[Any, Path]],
    "--source NAME[@PART]=PATH",
    "a raw dataset: its root, an annotation file, or a table; NAME is a source of the protocol, or a dataset whose "
    "root holds several of them; PART chooses among the parts of a root or table (repeatable)",
]
"""Raw datasets by name: paths, or annotations in memory (see `curation.sources.given.as_source`)."""


@dataclass(frozen=True, slots=True)
class SourceSlot:
    """One raw dataset part that a protocol reads, or that a manifest was made from.

    Attributes
    ----------
    name : str
        As in ``--source NAME=PATH``.
    dataset, part : str
        What the reader is told: ``voc2007`` and ``test``. `part` may be ``""`` where the protocol takes several.
    required : bool
    meaning : str
        One line for ``curation list``.
    usual_part : str
        Where `part` is ``""``: the part taken from a dataset's root that offers several, ``""`` for none.
    """

    name: str
    dataset: str
    part: str
    required: bool
    meaning: str
    usual_part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How raw files are read (see `curation.sources.opening.open_source`).

    Attributes
    ----------
    cache
        parsed annotation files are kept, and read from there (--no-cache: parse them again, and store nothing)
    bad_boxes
        what to do with boxes that are not finite, negative or beyond any image (dropped ones are counted)
    seam
        what becomes of MTSD's signs across the seam of a panorama: left out, two objects, the wider of the two
    """

    cache: bool | Path = True
    bad_boxes: BadBoxes = "error"
    seam: Seam = "drop"


def open_slots(
    given: Mapping[str, Any], slots: Sequence[SourceSlot], reading: Reading = Reading()
) -> dict[str, Source]:
    """Return the sources that are given, by slot name.

    A dataset's name stands for all its slots: of a root, those that it offers; of a file, the one that the file is.
    ``NAME@PART`` says which part of the dataset is meant, where the slot takes any: ``--source coco@val2017=ROOT``.

    Parameters
    ----------
    given : mapping of str to path or annotations
        See `curation.sources.given.as_source` for what annotations may be.
    slots : sequence of SourceSlot
    reading : Reading, optional

    Raises
    ------
    UsageError
        A name is neither a slot nor a dataset, or a part is not the one that the slot takes.
    """
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
            opened[slot.name] = _open(reading, slot, *found[slot.name])
    for dataset in datasets:
        if dataset in found and dataset not in names:
            of_dataset = [slot for slot in slots if slot.dataset == dataset and slot.name not in opened]
            opened |= _expand(reading, of_dataset, *found[dataset])
    return opened


def named_slots(names: Iterable[str], *, parts: bool = True) -> list[SourceSlot]:
    """Return slots for names of one's own: ``coco-val2017`` and ``coco@val2017`` are of dataset ``coco``.

    Parameters
    ----------
    names : iterable of str
        As they stand before the ``=`` of ``--source NAME[@PART]=PATH``.
    parts : bool
        Whether what follows the hyphen is the part of the dataset, or any word.
    """
    slots = []
    for key in names:
        name = key.partition("@")[0]
        dataset, _, part = name.partition("-")
        ImageId(dataset, "0")
        slots.append(SourceSlot(name, dataset, part if parts else "", False, ""))
    return slots


def require_slots(slots: Sequence[SourceSlot], opened: Mapping[str, Source], command: str) -> None:
    """Raise `UsageError` with the whole command line when a required source is not given."""
    missing = [slot for slot in slots if slot.required and slot.name not in opened]
    if missing:
        needed = " ".join(f"--source {slot.name}=PATH" for slot in slots if slot.required)
        raise UsageError(
            f"A source is missing: {', '.join(f'{slot.name} ({slot.meaning})' for slot in missing)}",
            expected=needed,
            found=", ".join(opened) or "none",
            hint=f"{command} {needed} --out DIR",
        )


def _parts(given: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = {}
    for key, one in given.items():
        name, _, part = key.partition("@")
        if name in found:
            raise UsageError(f"--source names {name!r} twice", where=key[:200])
        found[name] = (part, Path(one) if isinstance(one, str) else one)
    return found


def _expand(reading: Reading, slots: Sequence[SourceSlot], part: str, path: Any) -> dict[str, Source]:
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
            found[slot.name] = _open(reading, slot, part, path)
        except MissingFileError:
            if slot.required or len(slots) == 1:
                raise
    if not found:
        raise UsageError("The dataset has no such part here", where=f"--source …@{part}={path}", hint="curation list")
    return found


def _open(reading: Reading, slot: SourceSlot, part: str, path: Any) -> Source:
    if part and slot.part and part != slot.part:
        raise UsageError(
            f"Source {slot.name} is another part of its dataset",
            where=f"--source {slot.name}@{part}",
            expected=slot.part,
            found=part,
        )
    from curation.sources.given import as_source

    return as_source(
        path,
        dataset=slot.dataset,
        part=part or slot.part or _part_of(slot, path),
        cache=reading.cache,
        bad_boxes=reading.bad_boxes,
        seam=reading.seam,
    )


def _part_of(slot: SourceSlot, path: Any) -> str:
    """Return the part that a path stands for: named by the file, or the usual or only one of a root."""
    from curation.sources.opening import parts_at

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
