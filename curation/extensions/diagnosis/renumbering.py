"""COCO JSON files whose image ids repeat, because exports were joined without new numbers: told apart and renumbered.

An export counts its images and annotations upwards. Where ids fall, the next export begins; the n-th run of annotations
belongs to the n-th run of images. This is proven of a file, not guessed: every annotation has to name an image of its
own run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from curation.core.arguments import checked
from curation.core.errors import AnnotationFormatError, DanglingIdError
from curation.core.input_files import InputFile
from curation.core.json_keys import refuse_repeated_keys
from curation.core.storage import write_bytes


class _Record(msgspec.Struct):
    id: int
    image_id: int = -1


class _Ids(msgspec.Struct):
    images: list[_Record]
    annotations: list[_Record]


@dataclass(frozen=True, slots=True)
class Renumbered:
    """A file with new ids: images and annotations counted from 1, in its order, all else as it was.

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

    Parameters
    ----------
    path : Path
        COCO JSON with ``images`` and ``annotations``; ids are whole numbers, and may repeat

    Raises
    ------
    MissingFileError
        No such file.
    AnnotationFormatError
        It is no COCO JSON with whole numbers as ids, or does not say which images its annotations are of: images and
        annotations fall into different numbers of runs.
    DanglingIdError
        An annotation names an image that is not in its run.
    """
    file = InputFile(path, kind="annotation file")
    refuse_repeated_keys(file.data, str(path), AnnotationFormatError)
    try:
        ids = msgspec.json.decode(file.data, type=_Ids)
        content: dict[str, Any] = msgspec.json.decode(file.data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise AnnotationFormatError(
            "The annotation file cannot be renumbered",
            where=str(path),
            expected="COCO JSON whose ids are whole numbers",
            found=str(error)[:200],
        ) from None
    counted = Counter(image.id for image in ids.images)
    repeated = {number for number, count in counted.items() if count > 1}
    images, annotations = _runs(ids.images), _runs(ids.annotations)
    if not repeated:
        images, annotations = [range(len(ids.images))], [range(len(ids.annotations))]
    if len(images) != len(annotations):
        raise AnnotationFormatError(
            "The file does not say which images its annotations belong to",
            where=str(path),
            expected="as many runs of rising annotation ids as of rising image ids",
            found=f"{len(images)} runs of images, {len(annotations)} of annotations",
            hint="renumber the files before they are joined",
        )
    for number, (own, rows) in enumerate(zip(images, annotations, strict=True), 1):
        new_ids = {ids.images[row].id: row + 1 for row in own}
        for row in rows:
            annotation = ids.annotations[row]
            if annotation.image_id not in new_ids:
                raise DanglingIdError(
                    "An annotation names an image that is not in its run",
                    where=f"{path}: annotations[{row}] (id {annotation.id}), run {number}",
                    expected=f"one of {len(new_ids)} images",
                    found=f"image_id {annotation.image_id}",
                    hint="the runs of images and annotations do not belong together: renumber the files before they "
                    "are joined",
                )
            content["annotations"][row] |= {"id": row + 1, "image_id": new_ids[annotation.image_id]}
    for row, image in enumerate(content["images"], 1):
        image["id"] = row
    counts = {
        "images": len(ids.images),
        "image_ids": len(counted),
        "repeated_ids": len(repeated),
        "images_concerned": sum(counted[number] for number in repeated),
        "annotations": len(ids.annotations),
        "annotation_ids": len({annotation.id for annotation in ids.annotations}),
        "annotations_concerned": sum(annotation.image_id in repeated for annotation in ids.annotations),
    }
    return Renumbered(msgspec.json.encode(content), file.sha256, len(images), counts)


def _runs(records: Sequence[_Record]) -> list[range]:
    """Return the rows of each run of rising ids."""
    starts = [row for row, record in enumerate(records) if not row or record.id <= records[row - 1].id]
    return [range(start, end) for start, end in pairwise([*starts, len(records)])]
