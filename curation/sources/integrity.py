"""Referential checks on columns: unique ids, references that resolve, boxes that can lie in an image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np

from curation.core.errors import AnnotationFormatError, BoxError, DanglingIdError, DuplicateIdError
from curation.sources.source import Bools, Floats, Int32s, Int64s, Objects
from curation.sources.source_specs import BadBoxes

Ids = Int64s | list[str]
Where = Callable[[int], str]
Finder = Callable[[Ids, Where], Int32s]

MAX_COORDINATE = 1e6
_MAX_AREA = MAX_COORDINATE**2
_DENSE = 1 << 23
_LONGEST_LABEL = 200


def finder(known: Ids, kind: str, *, hint: str | None = None) -> Finder:
    """Return a function from references to their positions among the unique ids `known`.

    It raises `DanglingIdError` for the first reference that is not there, with the number of such ones and the hint.
    """
    low, high = (int(known.min()), int(known.max())) if isinstance(known, np.ndarray) and len(known) else (0, _DENSE)
    table = np.full(high - low + 1 if high - low < _DENSE else 0, -1, np.int32)
    if len(table):
        table[np.asarray(known) - low] = np.arange(len(known), dtype=np.int32)

    @cache
    def rows() -> dict[int | str, int]:
        return {identity: row for row, identity in enumerate(_as_list(known))}

    def find(references: Ids, where: Where) -> Int32s:
        if isinstance(references, list) or not len(table):
            found = np.array([rows().get(reference, -1) for reference in _as_list(references)], np.int32)
        else:
            inside = (references >= low) & (references <= high)
            found = np.where(inside, table[np.where(inside, references, low) - low], np.int32(-1))
        dangling = np.flatnonzero(found < 0)
        if len(dangling):
            raise DanglingIdError(
                f"A record refers to {kind} that the file does not define",
                where=where(int(dangling[0])),
                expected=f"{kind} listed in the same file",
                found=f"{_as_list(references)[dangling[0]]!r:.80} ({len(dangling)} such records)",
                hint=hint,
            )
        return found

    return find


def _as_list(ids: Ids) -> Sequence[int | str]:
    return ids if isinstance(ids, list) else ids.tolist()


def check_unique(ids: Ids | Sequence[str], kind: str, where: Where, *, hint: str | None = None) -> None:
    """Raise `DuplicateIdError` naming the first repeated id and both of its records."""
    if isinstance(ids, np.ndarray):
        # Sorting is many times faster here than numpy's hash-based unique.
        ranked = ids if (ids[1:] > ids[:-1]).all() else np.sort(ids)
        if (ranked[1:] != ranked[:-1]).all():
            return
    elif len(set(ids)) == len(ids):
        return
    seen: dict[object, int] = {}
    for row, value in enumerate(ids.tolist() if isinstance(ids, np.ndarray) else ids):
        first = seen.setdefault(value, row)
        if first != row:
            raise DuplicateIdError(
                f"Two records carry the same {kind}",
                where=where(row),
                expected=f"every {kind} once",
                found=f"{value!r} also at {where(first)}"[:400],
                hint=hint,
            )


def sound_objects(objects: Objects, policy: BadBoxes, where: Where) -> tuple[Objects, dict[str, int]]:
    """Return the objects without those whose box is bad, and how many these were, by reason.

    A box is bad when a number is not finite, its width, height or area is negative, or a coordinate is beyond
    ±1,000,000 pixels. A box of no size, or one that sticks out of its image, is a fact and is kept.

    Parameters
    ----------
    policy : {"error", "drop"}
    where : callable
        Names the record of a row.

    Raises
    ------
    BoxError
        A box is bad and the policy is ``error``.
    """
    boxes, areas = objects.boxes, objects.areas
    # One pass over the extremes clears a sound file; a NaN fails every comparison.
    if not len(boxes) or (
        np.abs(boxes).max() <= MAX_COORDINATE
        and boxes[:, 2:].min() >= 0
        and 0 <= areas.min() <= areas.max() <= _MAX_AREA
    ):
        return objects, {}
    reasons = _reasons(boxes, areas)
    if policy == "error":
        bad = {reason: int(np.flatnonzero(mask)[0]) for reason, mask in reasons.items() if mask.any()}
        reason, row = min(bad.items(), key=lambda item: item[1])
        raise BoxError(
            f"A box is {reason}",
            where=where(row),
            expected=f"x, y, w, h finite, w and h and area not negative, none beyond {MAX_COORDINATE:,.0f} pixels",
            found=f"bbox {boxes[row].tolist()}, area {areas[row]}",
            hint="--on-error boxes=drop leaves such records out and counts them",
        )
    keep = ~np.logical_or.reduce(list(reasons.values()))
    return select(objects, keep), {f"box {reason}": int(mask.sum()) for reason, mask in reasons.items() if mask.any()}


def check_label(label: str, where: str) -> None:
    """Raise `AnnotationFormatError` unless a text can be the name of a class."""
    if not (0 < len(label) <= _LONGEST_LABEL and label.isprintable()):
        expected = f"1 to {_LONGEST_LABEL} printable characters"
        raise AnnotationFormatError("Malformed class name", where=where, expected=expected, found=repr(label[:80]))


def _reasons(boxes: Floats, areas: Floats) -> dict[str, Bools]:
    unsound = ~(np.isfinite(boxes).all(axis=1) & np.isfinite(areas))
    negative = ~unsound & ((boxes[:, 2:] < 0).any(axis=1) | (areas < 0))
    huge = ~unsound & ~negative & ((np.abs(boxes) > MAX_COORDINATE).any(axis=1) | (areas > _MAX_AREA))
    return {"not finite": unsound, "negative in size": negative, "beyond any image": huge}


def select(objects: Objects, keep: Bools | Int32s | Int64s) -> Objects:
    """Return the objects under a mask, or at some rows."""
    columns: dict[str, Any] = {column.name: getattr(objects, column.name) for column in fields(objects)}
    return replace(objects, **{name: values[keep] for name, values in columns.items() if values is not None})
