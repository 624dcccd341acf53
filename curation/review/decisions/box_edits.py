"""`BoxRow`: one line of a box log, ``boxes.jsonl``: what a reviewer drew, moved, relabelled or removed on an image.

The log is the truth. Each edit stands in it, synced, before anything is changed in a database; a second line says what
became of it. An edit counts where that line says ``applied``. A review that was killed between the two looks into its
database at the next start and adds the line (`curation.review.app.missing_boxes`). An undo is an edit of its own.

    {"row":"edit","number":7,"reviewer":"anna","date":"…","image_id":"coco:000000000139","operation":"add",
     "box_id":"665f…","after":{"box":["10.5","20","30","12.25"],"label":"unknown"},"size":[640,480]}
    {"row":"outcome","number":7,"reviewer":"anna","date":"…","outcome":"applied","status":200}
    {"row":"complete","number":8,"reviewer":"anna","date":"…","image_id":"coco:000000000139"}

Boxes are ``x, y, w, h`` in pixels, origin top left, as decimal texts with at most three places: FiftyOne's relative
numbers times width and height of the image, rounded half to even (`pixels`), and divided by them again (`relative`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from curation.core.append_log import append_lines, filled_lines, parsed_line, require_json_lines
from curation.core.canonical import sha256_of_value
from curation.core.errors import DecisionError
from curation.core.reading import InputFile
from curation.core.tables import printable
from curation.manifest.added_boxes import BoxText, check_box
from curation.manifest.header import UNNAMED
from curation.review.decisions.decision import Decision, check_decision

Operation = Literal["", "add", "move", "relabel", "remove"]
Outcome = Literal["", "applied", "refused", "unknown"]
KIND = "box log"
MAX_BYTES = 256 << 20
MOST_BOXES = 1000
"""Boxes that one reviewer may have on one image."""
_PLACES = Decimal("0.001")
_WIDE = Context(prec=60, rounding=ROUND_HALF_EVEN)
Side = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class BoxState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of a box: decimal texts ``x, y, w, h`` in pixels, and a class, or ``unknown`` for an object of none."""

    box: BoxText
    label: Word


class BoxRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line of the log.

    Attributes
    ----------
    row : {"edit", "outcome", "complete", "reopen"}
        ``complete``: the reviewer says that every unknown object of the image is boxed; ``reopen`` takes that back, and
        so does any later edit of the same reviewer on the image.
    number : int
        Of the edit, counted for each reviewer; an outcome bears that of its edit.
    date : str
        ISO 8601, a moment in UTC.
    operation : str
        ``move`` where the box is another (moved or resized), ``relabel`` where the label alone is.
    before, after : BoxState or None
        None before an ``add`` and after a ``remove``.
    size : tuple of int
        Width and height of the image in pixels.
    undoes : int
        Number of the reviewer's edit that this one takes back, as older logs say; 0 for none.
    outcome : str
        ``unknown``: a kill came between, and the database shows neither the box before nor the one after.
    status : int
        Of HTTP, 0 where there was no request.
    note : str
        Why, or by what it was found out.
    """

    row: Literal["edit", "outcome", "complete", "reopen"]
    number: Annotated[int, msgspec.Meta(ge=1, le=2**53 - 1)]
    reviewer: Word
    date: Word
    image_id: str = ""
    operation: Operation = ""
    box_id: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{24})?$")] = ""
    before: BoxState | None = None
    after: BoxState | None = None
    size: tuple[Side, Side] = (0, 0)
    undoes: Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)] = 0
    outcome: Outcome = ""
    status: Annotated[int, msgspec.Meta(ge=0, le=999)] = 0
    note: str = ""


def pixels(relative: Sequence[float], size: tuple[int, int]) -> BoxText:
    """Return a box that FiftyOne states as shares of the image as decimal texts in pixels.

    >>> pixels([0.1, 0.25, 0.5, 1 / 3], (640, 480))
    ('64', '120', '320', '160')

    Raises
    ------
    DecisionError
        These are not four finite numbers, or the size is not positive.
    """
    if len(relative) != 4 or not all(map(math.isfinite, relative)) or min(size) < 1:
        found = f"{list(relative)!s:.120}, size {size}"
        raise DecisionError("A box must be four finite numbers x, y, w, h", where="new box", found=found)
    exact = [Decimal(number) * side for number, side in zip(relative, (*size, *size), strict=True)]
    # Adding 0 makes a negative zero positive.
    return tuple(  # type: ignore[return-value]
        format((_WIDE.quantize(value, _PLACES) + 0).normalize(), "f") if abs(value) < 1e9 else "inf" for value in exact
    )


def relative(box: BoxText, size: tuple[int, int]) -> list[float]:
    """Return a box in pixels as FiftyOne states it: shares of the image's width and height."""
    return [float(Decimal(number) / side) for number, side in zip(box, (*size, *size), strict=True)]


def parse_row(line: bytes, *, where: str, labels: Collection[str] | None = None) -> BoxRow:
    """Return one line of the log; a malformed one is a `DecisionError`.

    Parameters
    ----------
    labels : collection of str, optional
        The classes of the review; ``unknown`` is always one.
    """
    try:
        row = msgspec.convert(parsed_line(line, DecisionError, where), type=BoxRow)
    except msgspec.ValidationError as error:
        expected = "row, number, reviewer, date, and what the row needs (docs/review.md, Missing boxes)"
        found = printable(str(error), "?")[:200]
        raise DecisionError("Malformed row of a box log", where=where, expected=expected, found=found) from None
    same = Decision(image_id=row.image_id or "coco:0", dataset="", stage="manual", action="unsure", reason=row.note)
    check_decision(msgspec.structs.replace(same, reviewer=row.reviewer, date=row.date), where=where)
    label, classes = row.after.label if row.after else UNNAMED, sorted(set(labels or ()) - {UNNAMED})
    if not label.isprintable() or (labels is not None and label not in (UNNAMED, *classes)):
        what, expected = "Malformed label of a box", f"{UNNAMED}, or one of {', '.join(classes)}"[:200]
        raise DecisionError(what, where=f"{where}: label", expected=expected, found=ascii(label)[:120])
    is_edit = row.row == "edit"
    sound = {
        "outcome": row.outcome or row.row != "outcome",
        "image_id": row.image_id or row.row == "outcome",
        "operation": not is_edit or (row.operation and row.operation == operation_of(row.before, row.after)),
        "box_id": row.box_id or not is_edit,
        "size": min(row.size) or not is_edit,
    }
    if malformed := [name for name, is_sound in sound.items() if not is_sound]:
        what, found = f"An edit of a box has a malformed {malformed[0]}", ascii(getattr(row, malformed[0]))[:120]
        raise DecisionError(what, where=f"{where}: {malformed[0]}", found=found)
    # What is being taken away or replaced may be anything that once was let in; what comes has to be sound.
    if row.after is not None:
        check_box(row.after.box, where=f"{where}: box", size=row.size)
    return row


def operation_of(before: BoxState | None, after: BoxState | None) -> Operation:
    """Return what turns one state into the other, ``""`` for nothing."""
    if before == after:
        return ""
    if before is None or after is None:
        return "remove" if after is None else "add"
    return "relabel" if before.box == after.box else "move"


@dataclass(frozen=True, slots=True)
class BoxLogFile:
    """The rows of one log in file order, the digest of its bytes, and what a kill cut off of the last line."""

    name: str
    rows: tuple[BoxRow, ...]
    digest: str
    torn: str = ""

    def notes(self) -> list[str]:
        """Return notes on what was left out."""
        notes = [f"{self.name}: the last line is cut off and was left out: {self.torn!a}"] if self.torn else []
        if pending := Replay.of(self.rows).pending:
            found = f"{self.name}: {len(pending)} edits have no outcome and do not count"
            notes.append(f"{found}; `curation review start` on the folder determines their outcomes")
        return notes


def read_box_log(path: Path) -> BoxLogFile:
    """Return the rows of a box log.

    Raises
    ------
    MissingFileError
        No such file.
    DecisionError
        It is not ``.jsonl``, too large, or a line is malformed; the message names the line.
    """
    require_json_lines(Path(path.name.removesuffix(".gz")), DecisionError, KIND)
    given = InputFile(path, kind=KIND, most=MAX_BYTES, error=DecisionError)
    lines, torn = filled_lines(given.data.removeprefix(b"\xef\xbb\xbf"))
    rows = tuple(parse_row(text, where=f"{path.name}, line {number}") for number, text in lines)
    return BoxLogFile(path.name, rows, given.sha256, torn)


class BoxLog:
    """An append-only box log; several processes may write to one, each under the name of its reviewer.

    Parameters
    ----------
    path : Path
        Ends in ``.jsonl``; made with the first row.
    labels : collection of str, optional
        Classes that new boxes may be of, ``unknown`` aside.
    """

    def __init__(self, path: Path, labels: Collection[str] | None = None) -> None:
        require_json_lines(path, DecisionError, KIND)
        self.path = path
        self.labels = labels

    def read(self) -> Replay:
        """Return what the log says now; one that is not there yet is empty."""
        return Replay.of(read_box_log(self.path).rows if self.path.exists() else ())

    def extend(self, rows: Sequence[BoxRow]) -> None:
        """Add rows with one write and one sync; they are on the disk when this returns.

        Raises
        ------
        DecisionError
            A row is malformed; nothing is written.
        """
        lines = [msgspec.json.encode(row) for row in rows]
        for line in lines:
            parse_row(line, where=f"{self.path.name}: new row", labels=self.labels)
        if lines:
            append_lines(self.path, b"".join(line + b"\n" for line in lines), kind=KIND)


Owner = tuple[str, str]
"""Image id and reviewer."""


@dataclass(slots=True)
class Replay:
    """What stands after the rows of some logs.

    Attributes
    ----------
    boxes : dict of (image id, reviewer) to dict of box id to BoxState
        In the order in which they were drawn; an image all of whose boxes were removed keeps an empty entry.
    complete : set of (image id, reviewer)
        Images that a reviewer declared to be boxed wholly, and has not touched since.
    pending : list of BoxRow
        Edits without an outcome, which do not count.
    refused, unknown : int
        Edits that were refused, and those of which nothing could be found out; they do not count.
    last : dict of str to int
        The highest number of each reviewer.
    """

    boxes: dict[Owner, dict[str, BoxState]] = field(default_factory=dict)
    complete: set[Owner] = field(default_factory=set)
    pending: list[BoxRow] = field(default_factory=list)
    refused: int = 0
    unknown: int = 0
    last: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[BoxRow]) -> Replay:
        """Return what stands after some rows, in their order."""
        listed = list(rows)
        # An edit's outcome stands behind it, perhaps behind rows of others: the last edit of a number has it.
        outcomes: dict[int, str] = {}
        waiting: dict[tuple[str, int], int] = {}
        for position, row in enumerate(listed):
            if row.row == "edit":
                waiting[row.reviewer, row.number] = position
            elif row.row == "outcome" and (row.reviewer, row.number) in waiting:
                outcomes[waiting.pop((row.reviewer, row.number))] = row.outcome
        found = cls()
        for position, row in enumerate(listed):
            found.last[row.reviewer] = max(found.last.get(row.reviewer, 0), row.number)
            owner = row.image_id, row.reviewer
            match row.row, outcomes.get(position):
                case "complete", _:
                    found.complete.add(owner)
                    found.boxes.setdefault(owner, {})
                case "reopen", _:
                    found.complete.discard(owner)
                case "edit", None:
                    found.pending.append(row)
                case "edit", "applied":
                    found.complete.discard(owner)
                    boxes = found.boxes.setdefault(owner, {})
                    if row.after is None:
                        boxes.pop(row.box_id, None)
                    else:
                        boxes[row.box_id] = row.after
                case "edit", outcome:
                    found.refused += outcome == "refused"
                    found.unknown += outcome == "unknown"
        return found

    def next_number(self, reviewer: str) -> int:
        """Return the number of a reviewer's next row."""
        return self.last.get(reviewer, 0) + 1

    @property
    def images(self) -> list[str]:
        """Return the images that somebody drew on or declared complete, sorted."""
        return sorted({image for image, _ in self.boxes})

    def reviewers_of(self, image: str) -> list[str]:
        """Return who drew on an image or declared it complete, sorted."""
        return sorted(reviewer for drawn_on, reviewer in self.boxes if drawn_on == image)

    @property
    def digest(self) -> str:
        """Return the digest of what stands: boxes and declarations of each reviewer, whatever led there."""
        return sha256_of_value(
            [
                [image, reviewer, (image, reviewer) in self.complete,
                 sorted([*state.box, state.label] for state in self.boxes[image, reviewer].values())]
                for image, reviewer in sorted(self.boxes)
            ]
        )  # fmt: skip


def merged(files: Sequence[BoxLogFile]) -> Replay:
    """Return what stands after several logs; of one reviewer each log is read whole, in the order given."""
    return Replay.of(row for file in files for row in file.rows)
