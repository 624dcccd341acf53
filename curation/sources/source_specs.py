"""Declarations of inputs by protocols and commands: source slots (dataset parts by name) and reading options."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from curation.core.errors import UsageError
from curation.core.ids import ImageId

BadBoxes = Literal["error", "drop"]
Sources = Annotated[
    Mapping[str, Annotated[Any, Path]],
    "--source NAME[@PART]=PATH",
    "a raw dataset: its root, an annotation file, or a table; NAME is a source of the benchmark, or a dataset whose "
    "root holds several of them; PART chooses among the parts of a root or table (repeatable)",
]
"""Raw datasets by name: paths, or annotations in memory (see `curation.sources.opening.as_source`)."""


class SourceSlot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a raw dataset that a protocol reads, or that a manifest was built from.

    Attributes
    ----------
    name : str
        As in ``--source NAME=PATH``.
    dataset, part : str
        Arguments of the reader: ``voc2007`` and ``test``. `part` may be ``""`` where the protocol takes several.
    required : bool
    meaning : str
        One line for ``curation list``.
    usual_part : str
        If `part` is ``""``: the default part of a root with several parts, ``""`` for none.
    """

    name: str
    dataset: str
    part: str = ""
    required: bool = False
    meaning: str = ""
    usual_part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Options for reading raw files (see `curation.sources.opening.open_path`).

    Attributes
    ----------
    bad_boxes
        boxes that are not finite, negative or outside any image: refuse, or drop and count
    """

    bad_boxes: BadBoxes = "error"


def named_slots(names: Iterable[str], *, parts: bool = True) -> list[SourceSlot]:
    """Return slots for the user's names: ``coco-val2017`` and ``coco@val2017`` belong to the dataset ``coco``.

    Parameters
    ----------
    names : iterable of str
        The texts before the ``=`` of ``--source NAME[@PART]=PATH``.
    parts : bool
        Whether the text after the hyphen is a part of the dataset rather than any word.
    """
    slots = []
    for key in names:
        name = key.partition("@")[0]
        dataset, _, part = name.partition("-")
        ImageId(dataset, "0")
        slots.append(SourceSlot(name, dataset, part if parts else "", False, ""))
    return slots


def require_slots(slots: Sequence[SourceSlot], opened: Collection[str], command: str, *more: str) -> None:
    """Raise `UsageError` with the complete command line, ending in `more`, if a required source is missing."""
    missing = [slot for slot in slots if slot.required and slot.name not in opened]
    if missing:
        needed = [f"--source {slot.name}=PATH" for slot in slots if slot.required or slot.name in opened]
        raise UsageError(
            f"A source is missing: {', '.join(f'{slot.name} ({slot.meaning})' for slot in missing)}",
            expected=" ".join(needed),
            found=", ".join(opened) or "none",
            hint=" ".join([command, *needed, *more]),
        )
