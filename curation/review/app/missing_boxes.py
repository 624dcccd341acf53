"""Boxes that annotations lack, drawn in the App's Annotate mode: each edit is in the log before it is in the database.

The server's guard hands every edit to `MissingBoxes.begin` before FiftyOne sees it, and the answer to `end`. A server
that was killed in between left an edit without an outcome; at the next start of the same reviewer `settle` looks into
the database for what became of it, adds the outcome to the log, and brings the database up to the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any

from curation.core.errors import CurationError, ReviewError
from curation.core.tables import grouped
from curation.core.wording import counted
from curation.manifest.header import UNNAMED
from curation.review.app.app_requests import PARTS_OF_A_BOX, EditRequest, Refusal
from curation.review.app.dataset import BOXED_FIELD, MISSING, drawn_classes
from curation.review.app.verdicts import checked_reviewer, now
from curation.review.decisions.box_edits import (
    MOST_BOXES,
    BoxLog,
    BoxRow,
    BoxState,
    Outcome,
    Replay,
    operation_of,
    pixels,
    relative,
)
from curation.sources.integrity import MAX_COORDINATE
from curation.sources.photos import size_of_photo

BOXES_FILE = "boxes.jsonl"
_BLANK: tuple[Any, ...] = (None, {}, [])
_SLACK = 0.5
"""Pixels by which a drawn box may reach beyond its image; it is cut off there."""


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What a start recovered: edits without an outcome, by outcome, and images brought up to the log."""

    applied: int
    refused: int
    unknown: int
    images: int


class MissingBoxes:
    """The drawn boxes of a review dataset together with their log, for one reviewer: the edits that a guard reports.

    Parameters
    ----------
    dataset : fiftyone.Dataset
    path : Path
        The log, ``boxes.jsonl``.
    reviewer : str
        Whose edits these are.
    """

    def __init__(self, dataset: Any, path: Path, reviewer: str) -> None:
        self.dataset = dataset
        self.reviewer = checked_reviewer(reviewer)
        self.log = BoxLog(path, drawn_classes(dataset))
        self._lock = RLock()
        self._open: dict[int, tuple[str, list[BoxRow]]] = {}

    def begin(self, request: EditRequest) -> Refusal | int:
        """Take note of an edit before FiftyOne sees it; the number of its first row, or why it may not be made."""
        with self._lock:
            try:
                sample = self._sample(request.sample)
                before = self._states(sample)
                after = _states(_patched(_detections(sample), request), sample["size"])
            except CurationError as error:
                return _refusal(error)
            except (ValueError, TypeError, KeyError, IndexError):
                return Refusal("The edit does not change drawn boxes", status=400)
            return self._noted(sample, before, after)

    def _noted(
        self, sample: Mapping[str, Any], before: Mapping[str, BoxState], after: Mapping[str, BoxState]
    ) -> Refusal | int:
        replay = self.log.read()
        image = sample["image_id"]
        changed = [box for box in dict.fromkeys([*before, *after]) if before.get(box) != after.get(box)]
        for (drawn_on, reviewer), boxes in replay.boxes.items():
            if drawn_on == image and reviewer != self.reviewer and not boxes.keys().isdisjoint(changed):
                return Refusal(f"This box was drawn by {reviewer}", "draw your own", 409)
        if len(after) > MOST_BOXES:
            return Refusal(f"An image has at most {MOST_BOXES} boxes", status=422)
        number = replay.next_number(self.reviewer)
        rows = [
            self._row(
                "edit",
                number + offset,
                image_id=image,
                operation=operation_of(before.get(box), after.get(box)),
                box_id=box,
                before=before.get(box),
                after=after.get(box),
                size=sample["size"],
            )
            for offset, box in enumerate(changed)
        ]
        try:
            self.log.extend(rows)
        except CurationError as error:
            return _refusal(error)
        self._open[number] = (sample["_id"], rows)
        return number

    def end(self, number: int, status: int, body: bytes = b"") -> None:
        """Take note of FiftyOne's answer; where the database does not hold what was asked, it is brought up to the log.

        Parameters
        ----------
        status : int
            Below 300: applied. Between 300 and 499: refused, as an edit of what changed meanwhile is (412). From 500
            on the database says.
        """
        with self._lock:
            sample, rows = self._open.pop(number, ("", []))
            if not rows:
                return
            if status >= 500:
                self._settle_rows(rows, f"the server answered {status}")
            else:
                self._conclude(rows, "applied" if status < 300 else "refused", status=status)
            replay = self.log.read()
            self._bring(replay, [self._sample(sample)])

    def settle(self) -> RecoveryReport:
        """Find out what became of the reviewer's edits without an outcome, and bring the database up to the log."""
        with self._lock:
            pending = [row for row in self.log.read().pending if row.reviewer == self.reviewer]
            counts = self._settle_rows(pending, "looked up in the database at a start")
            return RecoveryReport(**counts, images=self._bring(self.log.read(), self._samples()))

    def declare(self, samples: Sequence[str], *, complete: bool = True) -> str:
        """Say of some images that every unknown object of them is boxed, or that it is not; a sentence that says so."""
        if not samples or not all(isinstance(sample, str) for sample in samples):
            raise ReviewError("No image is selected", hint="open an image, or tick images in the grid")
        with self._lock:
            found = [self._sample(sample) for sample in dict.fromkeys(samples)]
            replay = self.log.read()
            images = [sample["image_id"] for sample in found]
            images = [id_ for id_ in dict.fromkeys(images) if ((id_, self.reviewer) in replay.complete) != complete]
            number = replay.next_number(self.reviewer)
            word = "complete" if complete else "reopen"
            self.log.extend([self._row(word, number + offset, image_id=image) for offset, image in enumerate(images)])
            self._bring(self.log.read(), found)
        count = counted(len(images), "image")
        return f"{count}: every unknown object is boxed" if complete else f"{count}: boxes are still missing"

    def _row(self, row: Any, number: int, **fields: Any) -> BoxRow:
        return BoxRow(row=row, number=number, reviewer=self.reviewer, date=now(), **fields)

    def _conclude(self, rows: Iterable[BoxRow], outcome: Outcome, *, status: int = 0, note: str = "") -> None:
        self.log.extend([self._row("outcome", row.number, outcome=outcome, status=status, note=note) for row in rows])

    def _settle_rows(self, rows: Sequence[BoxRow], note: str) -> dict[str, int]:
        """Add the outcome of edits by what the database shows of their boxes, and return how many have which."""
        shown: dict[str, dict[str, BoxState]] = {}
        for sample in self._samples({row.image_id for row in rows}):
            shown.setdefault(sample["image_id"], {}).update(self._states(sample))
        counts = {"applied": 0, "refused": 0, "unknown": 0}
        for (image, box), edits in grouped(rows, lambda row: (row.image_id, row.box_id)).items():
            state = shown.get(image, {}).get(box)
            # The last edit whose outcome the database shows was applied, and those before it.
            reached = max((position for position, row in enumerate(edits) if row.after == state), default=-1)
            untouched = reached < 0 and edits[0].before == state
            otherwise: Outcome = "refused" if untouched or reached >= 0 else "unknown"
            for position, row in enumerate(edits):
                outcome = "applied" if position <= reached else otherwise
                self._conclude([row], outcome, note=note)
                counts[outcome] += 1
        return counts

    def _bring(self, replay: Replay, samples: Iterable[Mapping[str, Any]]) -> int:
        """Bring the boxes of some samples up to the log, edits under way aside, and return how many changed."""
        waiting = {(row.image_id, row.box_id) for row in replay.pending}
        wanted: dict[str, dict[str, BoxState]] = {}
        for (image, _), boxes in replay.boxes.items():
            wanted.setdefault(image, {}).update(boxes)
        complete = grouped(sorted(replay.complete), lambda owner: owner[0])
        changed = 0
        for sample in samples:
            image, detections = sample["image_id"], _detections(sample)
            logged, shown = wanted.get(image, {}), self._states(sample)
            kept = [
                drawn
                for drawn in detections
                if (image, box := str(drawn["_id"])) in waiting or (box in logged and shown.get(box) == logged[box])
            ]
            present = {str(drawn["_id"]) for drawn in kept}
            missing = [box for box in logged if box not in present and (image, box) not in waiting]
            by = [reviewer for _, reviewer in complete.get(image, [])]
            if len(kept) == len(detections) and not missing and (sample.get(BOXED_FIELD) or []) == by:
                continue
            made = [_detection(box, logged[box], sample["size"]) for box in missing]
            detected = {"_cls": "Detections", "detections": [*kept, *made]}
            values = {MISSING: detected, BOXED_FIELD: by, "last_modified_at": datetime.now(UTC)}
            self.dataset._sample_collection.update_one({"_id": sample["_id"]}, {"$set": values})
            changed += 1
        return changed

    def _sample(self, sample: Any) -> dict[str, Any]:
        """Return what is stored of a sample, and its size in pixels."""
        from bson import ObjectId

        found = list(self._samples(query={"_id": ObjectId(sample)}))
        if not found:
            raise ReviewError("Not an image of the review", found=str(sample)[:40])
        return found[0]

    def _samples(
        self, images: Iterable[str] | None = None, query: Mapping[str, Any] | None = None
    ) -> Iterable[dict[str, Any]]:
        """Yield what is stored of some images, by default of those with a drawn box or a row in the log."""
        if query is None:
            named = self.log.read().images if images is None else images
            query = {"image_id": {"$in": list(named)}}
            if images is None:
                shown = [{f"{name}.0": {"$exists": True}} for name in (f"{MISSING}.detections", BOXED_FIELD)]
                query = {"$or": [query, *shown]}
        names = dict.fromkeys(("image_id", "filepath", "metadata", MISSING, BOXED_FIELD), 1)
        for document in self.dataset._sample_collection.find(query, names):
            yield {**document, "size": _size(document)}

    def _states(self, sample: Mapping[str, Any]) -> dict[str, BoxState]:
        return _states(_detections(sample), sample["size"], lenient=True)


def _size(sample: Mapping[str, Any]) -> tuple[int, int]:
    """Return width and height of an image, from its photo where the dataset does not say; zeros where nothing does."""
    stated = sample.get("metadata") or {}
    size: tuple[Any, Any] = stated.get("width"), stated.get("height")
    if not all(isinstance(side, int) and side > 0 for side in size):
        try:
            size = size_of_photo(Path(sample["filepath"]))
        except CurationError:
            return 0, 0
    return int(size[0]), int(size[1])


def _detections(sample: Mapping[str, Any]) -> list[dict[str, Any]]:
    field = sample.get(MISSING) or {}
    return list(field.get("detections") or [])


def _states(
    detections: Iterable[Mapping[str, Any]], size: tuple[int, int], *, lenient: bool = False
) -> dict[str, BoxState]:
    """Return boxes by their id, in pixels; what cannot be one is an error, or left out where that is lenient."""
    found = {}
    for drawn in detections:
        try:
            box = pixels(_inside(drawn["bounding_box"], size), size)
        except (CurationError, KeyError, TypeError):
            if lenient:
                continue
            raise
        found[str(drawn["_id"])] = BoxState(box=box, label=str(drawn.get("label") or UNNAMED))
    return found


def _inside(box: Sequence[float], size: tuple[int, int]) -> Sequence[float]:
    """Return a box cut off at the edges of its image, where it reaches beyond them by no more than a hand's slip."""
    is_box = len(box) == 4 and all(isinstance(number, int | float) and abs(number) < MAX_COORDINATE for number in box)
    if not is_box or min(size) < 1:
        return box
    ends = [box[0] + box[2], box[1] + box[3]]
    slack = _SLACK / size[0], _SLACK / size[1]
    low = [0.0 if -slip <= start < 0 else start for start, slip in zip(box[:2], slack, strict=True)]
    high = [1.0 if 1 < end <= 1 + slip else end for end, slip in zip(ends, slack, strict=True)]
    if low == list(box[:2]) and high == ends:
        return box
    return [*low, high[0] - low[0], high[1] - low[1]]


def _detection(box: str, state: BoxState, size: tuple[int, int]) -> dict[str, Any]:
    from bson import ObjectId

    shares = relative(state.box, size) if min(size) else [0.0, 0.0, 0.0, 0.0]
    stated = {"attributes": {}, "tags": [], "label": state.label, "bounding_box": shares}
    return {"_id": ObjectId(box), "_cls": "Detection", **stated}


def _patched(detections: Sequence[Mapping[str, Any]], request: EditRequest) -> list[dict[str, Any]]:
    """Return the boxes of a sample after a JSON Patch; one that changes anything else is a `ReviewError`."""
    from jsonpatch import JsonPatchException, apply_patch
    from jsonpointer import JsonPointerException

    numbers = {str(drawn["_id"]): number for number, drawn in enumerate(detections)}
    if request.label and request.label not in numbers:
        raise ReviewError("No such box", found=request.label[:40])
    within = f"/{MISSING}/detections/{numbers[request.label]}" if request.label else ""
    if strange := [op["op"] for op in request.operations if op["op"] not in ("add", "replace", "remove", "test")]:
        raise ReviewError("An edit adds, replaces or removes", found=", ".join(strange)[:80])
    operations = [
        {**op, **{name: within + op[name] for name in ("path", "from") if name in op}}
        for op in request.operations
        if op["op"] != "test"
    ]
    try:
        field = apply_patch({MISSING: {"detections": list(detections)}}, operations).get(MISSING) or {}
    except (JsonPatchException, JsonPointerException) as error:
        raise ReviewError("The edit cannot be applied", found=str(error)[:80]) from None
    boxes = [dict(box) for box in (field.get("detections") if isinstance(field, Mapping) else field) or []]
    for box in boxes:
        if strange := sorted(key for key, value in box.items() if key not in PARTS_OF_A_BOX and value not in _BLANK):
            raise ReviewError("A drawn box has a rectangle and a class only", found=", ".join(strange)[:80])
        found = box.get("_id", box.get("id"))
        # JSON of the database has {"$oid": …}.
        box["_id"] = str(found.get("$oid", "")) if isinstance(found, Mapping) else str(found or "")
    return boxes


def _refusal(error: CurationError) -> Refusal:
    said = error.what + (f": {error.found}" if error.found else "")
    return Refusal(said, f"expected {error.expected}" if error.expected else error.hint or "", 422)


def open_boxes(dataset: Any, log: Path, reviewer: str) -> MissingBoxes:
    """Return the drawn boxes of a dataset under review for a reviewer, the same object in all of this process.

    Parameters
    ----------
    log : Path
        Of the verdicts: that of the boxes stands beside it.
    """
    known = (str(dataset._doc.id), str(log), reviewer)
    if known not in _OPEN:
        _OPEN[known] = MissingBoxes(dataset, log.with_name(BOXES_FILE), reviewer)
    return _OPEN[known]


_OPEN: dict[tuple[str, str, str], MissingBoxes] = {}


@dataclass(frozen=True, slots=True)
class DrawnCount:
    """The drawn boxes that stand: how many, on how many images, by reviewer, and declarations of complete images."""

    boxes: int
    images: int
    by_reviewer: dict[str, int]
    complete: int

    def text(self) -> str:
        """Return them as a sentence without its full stop; ``""`` where nobody drew or declared anything."""
        if not (self.by_reviewer or self.complete):
            return ""
        by = ", ".join(f"{name} {count:,}" for name, count in self.by_reviewer.items())
        drawn = f"{counted(self.boxes, 'missing box', 'missing boxes')} drawn on {counted(self.images, 'image')}"
        return f"{drawn}{f' ({by})' if by else ''}, {counted(self.complete, 'image')} declared complete"


def count_drawn(log: Path) -> DrawnCount:
    """Return what stands in the log of drawn boxes beside a log of verdicts, which no database is needed for.

    An image that two reviewers declared complete counts as two declarations.
    """
    found = BoxLog(log.with_name(BOXES_FILE)).read()
    drawn = [owner for owner, boxes in found.boxes.items() for _ in boxes]
    by = Counter(reviewer for _, reviewer in drawn)
    return DrawnCount(len(drawn), len({image for image, _ in drawn}), dict(sorted(by.items())), len(found.complete))
