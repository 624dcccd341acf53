"""Detections from VOC results files: ``comp4_det_test_CLASS.txt``, one a class."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from curation.canonical import sha256_of_lines
from curation.errors import MissingFileError, PredictionError
from curation.evaluation.columns import Detections, GroundTruth
from curation.evaluation.detections import (
    Policy,
    RawColumns,
    ReadDetections,
    check_values,
    report,
    stray_error,
    take_rows,
)
from curation.evaluation.truth import UNKNOWN
from curation.input_files import InputFile

VOC_FILE = re.compile(r"comp[0-9]+_det_[^_]+_(?P<name>.+)\.txt\Z")
_FIELDS = 6
_AMBIGUOUS = -2
_LONGEST = (255, 64)
"""Characters of an image name, and of a number: one endless token would cost its length in every row."""
_SHOWN = 80


def read_voc_results(
    path: Path, truth: GroundTruth, names: Sequence[str], policy: Policy | None = None
) -> ReadDetections:
    """Return the detections of a VOC results folder (``comp4_det_test_CLASS.txt``) or of one such file.

    Each line is ``image score x1 y1 x2 y2`` with 1-based inclusive corners; the box becomes
    ``x1 - 1, y1 - 1, x2 - x1 + 1, y2 - y1 + 1``. Files are read in the order of the classes; a class without a file
    has no detections.

    Parameters
    ----------
    names : sequence of str
        Name of each image of `truth` as the lines write it (the stem of its file).
    policy : Policy, optional

    Raises
    ------
    MissingFileError
        There is no such file or folder, or no results file in it.
    PredictionError
        As `read_coco_results`, and for a file of a class that is not known. The message names the line.
    """
    policy = policy or Policy()
    files = _files_by_class(path, truth)
    positions: dict[str, int] = {}
    for place, name in enumerate(names):
        # Two images of one name (a/1.jpg, b/1.jpg): a line that uses it says nothing.
        positions[name] = place if name not in positions else _AMBIGUOUS
    reader = _Reader(truth, positions, policy)
    for name, file in files.items():
        reader.add(name, file)
    digest = (
        f"sha256:{reader.digests[0].split()[0]}"
        if path.is_file()
        else sha256_of_lines(sorted(reader.digests))
    )
    counts = report(stray=reader.stray, negative=reader.negative, unknown=reader.unknown)
    return ReadDetections(_concatenated(reader.parts), path.name, digest, reader.rows, counts)


class _Reader:
    """Reads one class file after the other and keeps count."""

    def __init__(self, truth: GroundTruth, positions: dict[str, int], policy: Policy) -> None:
        self.truth, self.positions, self.policy = truth, positions, policy
        self.parts: list[Detections] = []
        self.digests: list[str] = []
        self.rows = self.stray = self.negative = self.unknown = 0

    def add(self, name: str, file: Path) -> None:
        given = InputFile(file, kind="results file")
        data = given.data
        self.digests.append(f"{given.sha256.removeprefix('sha256:')}  {file.name}")
        if name not in self.truth.classes:
            self._pass_over(name, file, data)
            return
        images, columns = _parse(data, file)
        self.negative += check_values(columns, self.policy)
        place = np.fromiter((self.positions.get(text, -1) for text in images), np.int32, len(images))
        if (place == _AMBIGUOUS).any():
            raise self._ambiguous(columns, images, int(np.argmax(place == _AMBIGUOUS)))
        found = place >= 0
        if not found.all() and self.policy.stray == "error":
            first = images[int(np.argmin(found))][:_SHOWN]
            raise stray_error(columns, found, f"image {first!r}", self.truth)
        label = np.full(len(images), self.truth.classes.index(name), np.int32)
        self.parts.append(take_rows(columns, place, label, found))
        self.rows += len(images)
        self.stray += int((~found).sum())

    def _ambiguous(self, columns: RawColumns, images: list[str], row: int) -> PredictionError:
        return PredictionError(
            "A detection names an image by a name that two images of the ground truth have",
            where=columns.place(row),
            expected="file names that differ in more than their folder",
            found=repr(images[row][:_SHOWN]),
            hint="give the detections as COCO results, which name images by id",
        )

    def _pass_over(self, name: str, file: Path, data: bytes) -> None:
        if name == UNKNOWN:
            lines = sum(1 for line in data.splitlines() if line.strip())
            self.rows += lines
            self.unknown += lines
            return
        if self.policy.stray == "error":
            raise PredictionError(
                "A results file is of no known class",
                where=str(file),
                expected="one file a class of: " + ", ".join(self.truth.classes)[: 4 * _SHOWN],
                found=name[:_SHOWN],
                hint="--stray drop leaves it out and reports how many detections it holds",
            )
        lines = sum(1 for line in data.splitlines() if line.strip())
        self.rows += lines
        self.stray += lines


def is_voc_results(path: Path) -> bool:
    """Return whether a path is a folder, or a text file named as VOC results are."""
    return path.is_dir() or VOC_FILE.match(path.name) is not None


def _files_by_class(path: Path, truth: GroundTruth) -> dict[str, Path]:
    """Return the results file of each class, known classes first in their order."""
    if not path.exists():
        raise MissingFileError("The detections do not exist", where=str(path))
    found: dict[str, Path] = {}
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        named = VOC_FILE.match(file.name)
        if named is None:
            continue
        if named["name"] in found:
            raise PredictionError(
                "Two results files are of one class",
                where=str(file),
                expected="files of one competition and one image set",
                found=f"{found[named['name']].name} and {file.name}",
            )
        found[named["name"]] = file
    if not found:
        raise MissingFileError(
            "There are no VOC results files",
            where=str(path),
            expected="comp4_det_test_CLASS.txt, one a class",
        )
    order = [name for name in truth.classes if name in found]
    return {name: found[name] for name in (*order, *(name for name in found if name not in truth.classes))}


def _parse(data: bytes, path: Path) -> tuple[list[str], RawColumns]:
    lines = data.decode("utf-8", errors="replace").splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    fields = [line.split() for line in lines]
    for row, entries in enumerate(fields):
        if (
            len(entries) != _FIELDS
            or len(entries[0]) > _LONGEST[0]
            or max(map(len, entries[1:])) > _LONGEST[1]
        ):
            raise _line_error(path, row, lines[row])
    numbers = np.empty((len(fields), _FIELDS - 1), np.float64)
    try:
        numbers[:] = np.array([entries[1:] for entries in fields]).reshape(numbers.shape).astype(np.float64)
    except ValueError:
        row = next(row for row, entries in enumerate(fields) if not all(map(_is_number, entries[1:])))
        raise _line_error(path, row, lines[row]) from None
    x1, y1, x2, y2 = numbers[:, 1:].T
    boxes = np.stack([x1 - 1, y1 - 1, x2 - x1 + 1, y2 - y1 + 1], axis=1)
    return [entries[0] for entries in fields], RawColumns(boxes, numbers[:, 0], str(path), "line", 1)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _line_error(path: Path, row: int, line: str) -> PredictionError:
    return PredictionError(
        "A line of the results file cannot be read",
        where=f"{path}: line {row + 1}",
        expected="image score x1 y1 x2 y2",
        found=repr(line[:_SHOWN]),
    )


def _concatenated(parts: list[Detections]) -> Detections:
    if not parts:
        return Detections(np.empty(0, np.int32), np.empty(0, np.int32), np.empty((0, 4)), np.empty(0))
    return Detections(
        np.concatenate([part.image for part in parts]),
        np.concatenate([part.label for part in parts]),
        np.concatenate([part.boxes for part in parts]),
        np.concatenate([part.scores for part in parts]),
    )
