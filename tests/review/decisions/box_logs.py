"""Box logs written by hand, as a review writes them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from curation.review.decisions.box_edits import BoxRow, BoxState, operation_of

DATE = "2025-03-01T14:05:00Z"


def state(box: str, label: str = "unknown") -> BoxState:
    """Return a box: ``state("10 20 30 40")``."""
    return BoxState(box=tuple(box.split()), label=label)  # type: ignore[arg-type]


def box_id(number: int) -> str:
    return f"{number:024x}"


class Scribe:
    """Rows of one reviewer, numbered."""

    def __init__(self, reviewer: str, size: tuple[int, int] = (640, 480)) -> None:
        self.reviewer, self.size = reviewer, size
        self.rows: list[BoxRow] = []
        self.number = 0

    def edit(
        self,
        image: str,
        number: int,
        before: BoxState | None,
        after: BoxState | None,
        *,
        outcome: str | None = "applied",
        **more: Any,
    ) -> BoxRow:
        """Add an edit of the box of a number and, unless it is None, its outcome."""
        row = self._row(
            "edit",
            image_id=image,
            operation=operation_of(before, after),
            box_id=box_id(number),
            before=before,
            after=after,
            size=self.size,
            **more,
        )
        if outcome is not None:
            same = msgspec.structs.replace(row, row="outcome", image_id="", operation="", box_id="", before=None)
            status = {"applied": 200, "refused": 412}.get(outcome, 0)
            self.rows.append(
                msgspec.structs.replace(same, after=None, size=(0, 0), undoes=0, outcome=outcome, status=status)
            )
        return row

    def add(self, image: str, number: int, box: str, label: str = "unknown", **more: Any) -> BoxRow:
        """Draw a box."""
        return self.edit(image, number, None, state(box, label), **more)

    def complete(self, *images: str, row: str = "complete") -> None:
        """Declare images complete."""
        for image in images:
            self._row(row, image_id=image)

    def _row(self, row: Any, **fields: Any) -> BoxRow:
        self.number += 1
        made = BoxRow(row=row, number=self.number, reviewer=self.reviewer, date=DATE, **fields)
        self.rows.append(made)
        return made


def write_log(path: Path, rows: Iterable[BoxRow] | Sequence[Scribe]) -> Path:
    """Write rows, or those of several reviewers one after the other."""
    listed = [row for one in rows for row in (one.rows if isinstance(one, Scribe) else [one])]
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in listed))
    return path
