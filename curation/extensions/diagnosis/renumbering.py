"""Renumber COCO JSON files whose image ids repeat because exports were joined without new ids.

An export counts its images and annotations upwards. Where ids fall, the next export begins; the n-th run of annotations
belongs to the n-th run of images. The file has to prove this: every annotation must name an image of its run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from curation.core.arguments import checked
from curation.core.canonical import sha256_of_bytes
from curation.core.errors import AnnotationFormatError, DanglingIdError
from curation.core.json_text import is_json_lines, refuse_repeated_keys
from curation.core.reading import InputFile
from curation.core.writing import write_bytes


class _Image(msgspec.Struct):
    id: int | str


class _Annotation(msgspec.Struct):
    image_id: int | str | None = None
    id: int | str | float | None = None


class _Ids(msgspec.Struct):
    images: list[_Image]
    annotations: list[_Annotation]


def plain_json(data: bytes) -> bytes:
    """Return JSON with NaN and Infinity, as Python writes them, replaced by null."""
    if not any(name in data for name in (b"NaN", b"Infinity")):
        return data
    try:
        texts = [line for line in data.splitlines() if line.strip()] if is_json_lines(data) else [data]
        return b"\n".join(msgspec.json.encode(json.loads(text, object_pairs_hook=_without_repeats)) for text in texts)
    except (ValueError, RecursionError):
        return data


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError(pairs)
    return record


@dataclass(frozen=True, slots=True)
class Renumbered:
    """A file with new ids: annotations counted from 1, and images if their ids repeat; otherwise unchanged.

    Attributes
    ----------
    data : bytes
    sha256 : str
        Of the file that was read.
    runs : int
        Exports that were joined.
    counts : dict of str to int
        ``images``, ``image_ids`` (distinct ones before), ``repeated_ids``, ``images_concerned``, ``annotations``,
        ``annotation_ids``, ``annotations_concerned``: those whose image id named several images.
    """

    data: bytes
    sha256: str
    runs: int
    counts: dict[str, int]

    @checked
    def save(self, path: Path | str) -> Path:
        """Write the file, and return its path."""
        write_bytes(Path(path), self.data)
        return Path(path)


def renumber(path: Path) -> Renumbered:
    """Return a COCO JSON file with new ids of images and annotations.

    Image ids that do not repeat stay: detections name them.

    Parameters
    ----------
    path : Path
        COCO JSON with ``images`` and ``annotations``; ids may repeat

    Raises
    ------
    MissingFileError
        No such file.
    AnnotationFormatError
        It is no COCO JSON; or image ids repeat, and are texts or do not say which images the annotations are of: images
        and annotations fall into different numbers of runs.
    DanglingIdError
        An annotation names an image that is not in its run.
    """
    file = InputFile(path, kind="annotation file")
    return replace(renumber_data(plain_json(file.data), str(path)), sha256=file.sha256)


def renumber_data(data: bytes, where: str) -> Renumbered:
    """Return an annotation file that is in memory with new ids (see `renumber`); `where` names it in messages."""
    refuse_repeated_keys(data, where, AnnotationFormatError)
    try:
        ids = msgspec.json.decode(data, type=_Ids)
        content: dict[str, Any] = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise AnnotationFormatError(
            "The annotation file cannot be renumbered",
            where=where,
            expected="COCO JSON whose ids are whole numbers or texts",
            found=str(error)[:200],
        ) from None
    counted = Counter(image.id for image in ids.images)
    repeated = {number for number, count in counted.items() if count > 1}
    runs = 1
    if repeated:
        images, annotations = (_runs(records, where) for records in (ids.images, ids.annotations))
        runs = len(images)
        if len(images) != len(annotations):
            raise AnnotationFormatError(
                "The file does not say which images its annotations belong to",
                where=where,
                expected="as many runs of rising annotation ids as of rising image ids",
                found=f"{len(images)} runs of images, {len(annotations)} of annotations",
                hint="renumber the files before they are joined",
            )
        for number, (of_run, rows) in enumerate(zip(images, annotations, strict=True), 1):
            new_ids = {ids.images[row].id: row + 1 for row in of_run}
            for row in rows:
                annotation = ids.annotations[row]
                if annotation.image_id not in new_ids:
                    raise DanglingIdError(
                        "An annotation names an image that is not in its run",
                        where=f"{where}: annotations[{row}] (id {annotation.id}), run {number}",
                        expected=f"one of {len(new_ids)} images",
                        found=f"image_id {annotation.image_id}",
                        hint="the runs of images and annotations do not belong together: renumber the files before "
                        "they are joined",
                    )
                content["annotations"][row]["image_id"] = new_ids[annotation.image_id]
        for row, image in enumerate(content["images"], 1):
            image["id"] = row
    for row, annotation in enumerate(content["annotations"], 1):
        annotation["id"] = row
    counts = {
        "images": len(ids.images),
        "image_ids": len(counted),
        "repeated_ids": len(repeated),
        "images_concerned": sum(counted[number] for number in repeated),
        "annotations": len(ids.annotations),
        "annotation_ids": len({annotation.id for annotation in ids.annotations}),
        "annotations_concerned": sum(annotation.image_id in repeated for annotation in ids.annotations),
    }
    return Renumbered(msgspec.json.encode(content), sha256_of_bytes(data), runs, counts)


def _runs(records: Sequence[_Image] | Sequence[_Annotation], where: str) -> list[range]:
    """Return the rows of each run of rising ids."""
    ids = [record.id for record in records]
    if not all(isinstance(number, int) for number in ids):
        raise AnnotationFormatError(
            "Image ids repeat, and not all ids are whole numbers",
            where=where,
            expected="whole numbers, which rise within each of the files that were joined",
            hint="renumber the files before they are joined",
        )
    starts = [row for row, number in enumerate(ids) if not row or number <= ids[row - 1]]  # type: ignore[operator]
    return [range(start, end) for start, end in pairwise([*starts, len(records)])]
