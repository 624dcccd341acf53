"""Ground truth of one OWOD task: known classes, then ``unknown`` as the last class, and the lines of its image list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from curation.errors import EvaluationError
from curation.evaluation.columns import Bools, GroundTruth, Int64s
from curation.evaluation.tasks import OwodTask, known_classes
from curation.evaluation.truth import UNKNOWN, Part, ground_truth
from curation.ids import native_number, native_of
from curation.input_files import read_plain, utf8_text
from curation.sources.datasets import family
from curation.sources.source import Source

Repeats = Literal["error", "keep", "drop"]
REPEATS: dict[str, str] = {
    "error": "a list that names an image twice is refused",
    "keep": "as the official code: ground truth counts once a line, each box can be found once, detections of an "
    "image count once a line",
    "drop": "each image once",
}


@dataclass(frozen=True, slots=True)
class TaskTruth:
    """What a detector of one task is scored against.

    Attributes
    ----------
    task : OwodTask
    part : Part
        Its `truth` has the classes ``(*task.known, "unknown")``: no object has label -1.
    list_lines : ndarray of int64, shape (n,)
        How often the image list names each image.
    voc_corners : ndarray of bool, shape (n,)
        Images whose boxes were whole 1-based corners in the annotation file (VOC XML) already.
    repeats : {"error", "keep", "drop"}
    repeated_lines : int
        Lines of the list beyond the first of each image, whatever became of them.
    """

    task: OwodTask
    part: Part
    list_lines: Int64s
    voc_corners: Bools
    repeats: str
    repeated_lines: int

    @property
    def truth(self) -> GroundTruth:
        """The objects as columns."""
        return self.part.truth

    @property
    def unknown(self) -> int:
        """Label of unknown objects and detections: the number of known classes."""
        return len(self.task.known)

    @property
    def lines(self) -> Int64s:
        """How often each image counts, shape (n,): as often as the list names it under ``keep``, else once."""
        return self.list_lines if self.repeats == "keep" else np.ones_like(self.list_lines)

    @property
    def file(self) -> dict[str, Any]:
        """What a result says about this input."""
        return {
            **self.part.file,
            "lines": int(self.lines.sum()),
            "repeats": self.repeats,
            "repeated_lines": self.repeated_lines,
        }


def task_truth(
    source: Source, task: OwodTask, ids: Sequence[str] | None = None, *, repeats: Repeats = "error"
) -> TaskTruth:
    """Return the ground truth of a task on the images of a list.

    Parameters
    ----------
    source : Source
        With boxes: original classes, or a test view whose category ``unknown`` holds the rest.
    ids : sequence of str, optional
        The image list, line by line, ids with or without namespace; all images of the source by default.
    repeats : {"error", "keep", "drop"}
        See `REPEATS`.

    Raises
    ------
    PresenceOnlyError
        The source has no boxes.
    EvaluationError
        The source lacks an image of the list or a category of a known class, shows a class that the task does not
        name, or the list repeats an image under ``repeats="error"``.
    """
    known = known_classes(task, source)
    qualified = None if ids is None else [_qualified(one, source.namespace) for one in ids]
    counted = Counter(qualified or ())
    n_repeated = sum(counted.values()) - len(counted)
    if n_repeated and repeats == "error":
        raise _repeats_error(counted, n_repeated)
    part = ground_truth(source, known, None if qualified is None else list(counted))
    if len(set(part.truth.image_names or part.truth.image_numbers.tolist())) < part.truth.n_images:
        raise EvaluationError(
            "The image list names one image in two spellings",
            where=", ".join(record.name for record in source.files),
            expected="one spelling an image, such as 000000000139",
        )
    lines = np.ones(part.truth.n_images, np.int64)
    voc_corners = np.full(part.truth.n_images, family(source.dataset) == "voc")
    for text, place in zip(counted, _places(part, list(counted)), strict=True):
        lines[place] = counted[text]
        voc_corners[place] |= family(text.partition(":")[0]) == "voc"
    return TaskTruth(task, _with_unknown(part, task), lines, voc_corners, repeats, n_repeated)


def read_image_list(path: Path) -> tuple[str, ...]:
    """Return the ids of a text file, one a line, repeats and order kept; blank lines are passed over.

    Raises
    ------
    MissingFileError
        There is no such file.
    EvaluationError
        It is no text, or names no image.
    """
    data = read_plain(path, kind="image list")
    text = utf8_text(data, str(path), EvaluationError, "The image list is no UTF-8 text")
    ids = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not ids:
        raise EvaluationError("The image list names no image", where=str(path), expected="an id a line")
    return ids


def _repeats_error(counted: Counter[str], n_repeated: int) -> EvaluationError:
    twice = [f"{name} ({count} lines)" for name, count in counted.items() if count > 1]
    return EvaluationError(
        "The image list names images more than once",
        expected=f"{len(counted)} different images, one line each",
        found=f"{n_repeated} further lines for {len(twice)} images: {', '.join(twice[:3])}",
        hint="--repeats keep counts each line as the official code does, --repeats drop takes each image once",
    )


def _qualified(text: str, namespace: str) -> str:
    return text if ":" in text else f"{namespace}:{native_of(text, namespace)}"


def _places(part: Part, ids: list[str]) -> list[int]:
    """Return the position of each listed image: by file stem, else by number, as `ground_truth` chose them."""
    natives = [text.partition(":")[2] for text in ids]
    by_name = {name: place for place, name in enumerate(part.names)}
    if all(native in by_name for native in natives):
        return [by_name[native] for native in natives]
    by_number: dict[int | None, int] = {
        number: place for place, number in enumerate(part.truth.image_numbers.tolist())
    }
    return [by_number[native_number(native)] for native in natives]


def _with_unknown(part: Part, task: OwodTask) -> Part:
    """Return the part with ``unknown`` as one more class; its id is the truth's own where it has that category."""
    truth = part.truth
    label = np.where(truth.label < 0, len(truth.classes), truth.label).astype(np.int32)
    numbered = replace(
        truth,
        classes=(*truth.classes, UNKNOWN),
        class_numbers=(*truth.class_numbers, task.unknown_numbers[0]),
        label=label,
    )
    return replace(part, truth=numbered)
