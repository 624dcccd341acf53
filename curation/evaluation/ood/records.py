"""Records of detections with out-of-distribution scores, before they are held against any ground truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from curation.errors import PredictionError
from curation.input_files import InputFile, is_json_lines, json_rows
from curation.json_keys import refuse_repeated_keys

UNNAMED = "ood_score"
"""Name of a score that a file gives without one."""
LARGEST_SCORE = 1e100
"""Of a score or logit: beyond any network, and small enough that no sum of squares overflows."""
_SHOWN = 300
_MOST_METHODS = 64
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Box = tuple[float, float, float, float]
_FORM = (
    '[{"image_id", "bbox": [x, y, w, h] or "bbox_xyxy", "score" or "logits", "ood_score" or "scores": {NAME: number}}],'
    ' or one record a line, or {"images": {IMAGE_ID: [records without image_id]}}; JSON knows no NaN or Infinity'
)


class Record(msgspec.Struct, gc=False):
    """One detection as the file has it; fields that are not declared are passed over."""

    image_id: _Int64 | str | None = None
    bbox: _Box | None = None
    bbox_xyxy: _Box | None = None
    score: float | None = None
    category_id: _Int64 | None = None
    ood_score: float | None = None
    scores: dict[str, float] | None = None
    logits: list[float] | None = None


class _ByImage(msgspec.Struct):
    images: dict[str, list[Record]]


@dataclass(frozen=True, slots=True)
class RecordFile:
    """The records of a file before they are held against any ground truth.

    Attributes
    ----------
    records : list of Record
        In file order; each has an image id.
    name, sha256 : str
    where : str
        What messages call the file.
    """

    records: list[Record]
    name: str
    sha256: str
    where: str

    def place(self, row: int) -> str:
        """Return what to call a record in a message; rows are counted over the whole file, from 0."""
        return f"{self.where}: record {row} (image {self.records[row].image_id!s:.80})"


def read_records(path: Path) -> RecordFile:
    """Return the records of a detections file in either form (see `read_ood_detections` for the errors)."""
    return records_of(InputFile(path, kind="detections file"), path)


def records_of(given: InputFile, path: Path) -> RecordFile:
    """Return the records of a detections file in memory; `path` is for messages."""
    data = given.data
    try:
        if data.lstrip()[:1] == b"{" and not is_json_lines(data):
            records = _of_images(msgspec.json.decode(data, type=_ByImage).images, data, str(path))
        else:
            records = json_rows(data, Record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        is_truth = data.lstrip()[:1] == b"{" and b'"annotations"' in data
        raise PredictionError(
            "The detections cannot be read" + (": this is a ground-truth file" if is_truth else ""),
            where=str(path),
            expected=_FORM,
            found=str(error)[:_SHOWN],
            hint="give annotation files to --truth and results files to --detections" if is_truth else None,
        ) from None
    file = RecordFile(records, path.name, given.sha256, str(path))
    for row, record in enumerate(records):
        if record.image_id is None:
            raise PredictionError("A detection names no image", where=file.place(row), expected="image_id")
    return file


def image_key(identity: int | str) -> str:
    """Return an image id as one text, whether a file writes it as a number or as digits.

    >>> image_key(139), image_key("000000000139"), image_key("0010e235a0f3bb5c")
    ('139', '139', '0010e235a0f3bb5c')
    """
    text = str(identity)
    return text.lstrip("0") or "0" if text.isascii() and text.isdigit() else text


def methods_of(file: RecordFile) -> tuple[str, ...]:
    """Return the names of the OOD scores that every record gives, sorted.

    Raises
    ------
    PredictionError
        A record lacks a score that another has.
    """
    names = tuple(sorted(named_scores(file.records[0]))) if file.records else ()
    if len(names) > _MOST_METHODS:
        raise PredictionError(
            "A detection has too many OOD scores", where=file.place(0), expected=f"at most {_MOST_METHODS} methods",
            found=str(len(names)),
        )  # fmt: skip
    for row, record in enumerate(file.records):
        own = tuple(sorted(named_scores(record)))
        if own != names:
            raise PredictionError(
                "Detections of one file have different OOD scores",
                where=file.place(row),
                expected=(", ".join(names) or "none, as in the first record")[:_SHOWN],
                found=(", ".join(own) or "none")[:_SHOWN],
                hint=f"give every record {UNNAMED}, or scores of the same methods",
            )
    return names


def named_scores(record: Record) -> dict[str, float]:
    """Return the OOD scores of a record by method."""
    named = dict(record.scores or {})
    if record.ood_score is not None:
        named[UNNAMED] = record.ood_score
    return named


def _of_images(images: Mapping[str, list[Record]], data: bytes, where: str) -> list[Record]:
    """Return the records of all images, each with its image's id."""
    # A decoder keeps the last of two equal keys: detections would vanish without a word.
    refuse_repeated_keys(data, where, PredictionError, everywhere=True)
    records = []
    for image, found in images.items():
        for record in found:
            if record.image_id is not None and image_key(record.image_id) != image_key(image):
                raise PredictionError(
                    "A detection stands under an image and names another",
                    where=f"{where}: images[{image[:80]!r}]",
                    expected=f"image_id {image[:80]}, or none",
                    found=str(record.image_id)[:80],
                )
            record.image_id = image
            records.append(record)
    return records
