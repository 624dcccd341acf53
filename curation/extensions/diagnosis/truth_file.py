"""Annotation files that may be broken: their mistakes, the commands that mend them, and the mended file.

Image ids repeat where exports were joined without new ids. An export counts its images and annotations upwards: where
ids fall, the next export begins, and the n-th run of annotations belongs to the n-th run of images. This is verified:
every annotation must name an image of its run.
"""

from __future__ import annotations

import math
import os
import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np

from curation.core.arguments import checked
from curation.core.canonical import sha256_of_bytes
from curation.core.errors import AnnotationFormatError, CurationError, DanglingIdError, UsageError
from curation.core.json_text import as_integer, plain_json, refuse_repeated_keys
from curation.core.reading import InputFile
from curation.core.wording import counted, examples
from curation.core.writing import write_bytes
from curation.evaluation.detection_files import Int64
from curation.evaluation.inputs import Reading, known_classes
from curation.evaluation.problem import MAX_COORDINATE, Bools
from curation.evaluation.readers import OpenedColumns, read_detections
from curation.evaluation.truth import Part, ground_truth
from curation.extensions.diagnosis.inspection import Finding
from curation.extensions.diagnosis.mends import Objects, boxes_in_pixels, is_form
from curation.extensions.diagnosis.mistakes import other_mistakes
from curation.sources.coco import box_of_mask
from curation.sources.fiftyone_view import is_named
from curation.sources.object_rows import row_files
from curation.sources.opening import as_source, native_dataset, parts_at
from curation.sources.source import Source


@dataclass(frozen=True, slots=True)
class Renumbered:
    """A file with new ids: annotations counted from 1, and images if their ids repeat; otherwise unchanged.

    Attributes
    ----------
    data : bytes
    sha256 : str
        Digest of the original file.
    runs : int
        Number of joined exports.
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
        The file does not exist.
    AnnotationFormatError
        The file is not COCO JSON; or image ids repeat and are texts, or do not determine the images of annotations:
        images and annotations have different numbers of runs.
    DanglingIdError
        An annotation names an image that is not in its run.
    """
    file = InputFile(path, kind="annotation file")
    return replace(renumber_data(plain_json(file.data), str(path)), sha256=file.sha256)


def renumber_data(data: bytes, where: str) -> Renumbered:
    """Return an annotation file in memory with new ids (see `renumber`); `where` is its name in messages."""
    refuse_repeated_keys(data, where, AnnotationFormatError)
    try:
        ids = msgspec.json.decode(data, type=AnnotationFile)
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
                "The images of the annotations cannot be determined",
                where=where,
                expected="as many runs of rising annotation ids as of rising image ids",
                found=f"{len(images)} runs of images, {len(annotations)} of annotations",
                hint="renumber the files before they are joined",
            )
        for number, (of_run, rows) in enumerate(zip(images, annotations, strict=True), 1):
            new_ids: dict[Any, int] = {ids.images[row].id: row + 1 for row in of_run}
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


def _runs(records: Sequence[Image] | Sequence[Record], where: str) -> list[range]:
    """Return the rows of each run of rising ids."""
    ids = [record.id for record in records]
    if not all(isinstance(number, int) for number in ids):
        raise AnnotationFormatError(
            "Image ids repeat, and not all ids are whole numbers",
            where=where,
            expected="whole numbers, which rise within each of the files that were joined",
            hint="renumber the files before they are joined",
        )
    starts = [row for row, number in enumerate(ids) if not row or number <= ids[row - 1]]
    return [range(start, end) for start, end in pairwise([*starts, len(records)])]


VALUES = {
    "records": "drop (annotations without four numbers in bbox, with a negative size, or of images or classes that the "
    "file lacks)",
    "boxes": "LAYOUT or LAYOUT:UNIT, as of detections",
    "crowd": "objects (crowd regions become objects)",
}
"""Accepted values of each mend of a truth."""
_DROP = "records=drop"


class Image(msgspec.Struct, gc=False):
    """An unchecked entry of ``images``; a field of a wrong type counts as missing."""

    id: Any
    file_name: Any = ""
    curation_id: Any = ""
    width: Any = None
    height: Any = None

    def __post_init__(self) -> None:
        self.id = _whole_id(self.id)
        self.file_name, self.curation_id = (
            text if isinstance(text, str) else "" for text in (self.file_name, self.curation_id)
        )
        self.width, self.height = (side if _is_number(side) else None for side in (self.width, self.height))


class Category(msgspec.Struct, gc=False):
    """An unchecked entry of ``categories``."""

    id: Any
    name: Any = ""

    def __post_init__(self) -> None:
        self.id = _whole_id(self.id)
        self.name = self.name if isinstance(self.name, str) else ""


class Record(msgspec.Struct, gc=False):
    """An unchecked annotation or detection; a field of a wrong type counts as missing."""

    image_id: Any = None
    file_name: Any = None
    category_id: Any = None
    category: Any = None
    bbox: Any = None
    score: Any = None
    id: Any = None
    iscrowd: Any = 0

    def __post_init__(self) -> None:
        self.image_id, self.category_id, self.id = (
            as_integer(value) if isinstance(value, str) or _is_number(value) else None
            for value in (self.image_id, self.category_id, self.id)
        )
        self.file_name, self.category = (
            text if isinstance(text, str) else None for text in (self.file_name, self.category)
        )
        self.bbox = self.bbox if isinstance(self.bbox, list) else None
        self.score = self.score if isinstance(self.score, str) or _is_number(self.score) else None

    @property
    def has_box(self) -> bool:
        """Whether the box is four numbers that the box of an image can have."""
        box = self.bbox
        return (
            box is not None and len(box) == 4 and all(_is_number(side) and abs(side) <= MAX_COORDINATE for side in box)
        )


class Annotation(Record, gc=False):
    """An unchecked annotation; without a box it has the one around its mask, as `curation evaluate` reads it."""

    segmentation: msgspec.Raw = msgspec.Raw()

    def __post_init__(self) -> None:
        if not self.bbox and self.segmentation:
            self.bbox = box_of_mask(msgspec.json.decode(self.segmentation))
        super().__post_init__()


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _whole_id(value: Any) -> int | str:
    try:
        return msgspec.convert(as_integer(value), Int64 | str)
    except msgspec.ValidationError as error:
        # msgspec adds the place of the record.
        raise ValueError(str(error)) from None


class AnnotationFile(msgspec.Struct):
    """COCO JSON of any convention."""

    images: list[Image]
    annotations: list[Annotation]
    categories: list[Category] = []


def objects_of(annotated: AnnotationFile) -> Objects:
    """Return the usable annotations of a file as columns, crowds included."""
    images: dict[Any, int] = {image.id: row for row, image in reversed([*enumerate(annotated.images)])}
    classes: dict[Any, int] = {category.id: row for row, category in enumerate(annotated.categories)}
    usable = [
        (images[record.image_id], classes[record.category_id], record.bbox)
        for record in annotated.annotations
        if record.has_box and record.image_id in images and record.category_id in classes
    ]
    usable.sort(key=lambda row: row[0])
    sizes = _sizes(annotated)
    return Objects(
        [image.id for image in annotated.images],
        [image.file_name for image in annotated.images],
        np.array([sizes[image.id] for image in annotated.images], np.float64).reshape(-1, 2),
        [category.id for category in annotated.categories],
        [category.name for category in annotated.categories],
        np.array([image for image, _, _ in usable], np.int64),
        np.array([category for _, category, _ in usable], np.int64),
        np.array([box for _, _, box in usable], np.float64).reshape(-1, 4),
        listed if all(listed := [image.curation_id for image in annotated.images]) else (),
    )


def _sizes(annotated: AnnotationFile) -> dict[Any, tuple[float, float]]:
    """Return width and height by image id, NaN if the file lacks them, or if several images have the id."""
    times = Counter(image.id for image in annotated.images)
    return {
        image.id: (image.width or math.nan, image.height or math.nan) if times[image.id] == 1 else (math.nan, math.nan)
        for image in annotated.images
    }


@dataclass(frozen=True)
class ReadTruth:
    """A truth that `curation evaluate` reads, with the attributes of a `TruthFile`.

    Attributes
    ----------
    path : Path
        Path of the truth; for annotations in memory, the name of their type.
    source : Source
    part : Part
    findings, mends, commands, notes
        See `TruthFile`.
    """

    path: Path
    source: Source
    part: Part
    findings: tuple[Finding, ...] = ()
    mends: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def objects(self) -> Objects:
        """The objects, crowds included, with the classes in the order of the file."""
        images, categories, truth = self.source.images, self.source.categories, self.source.require_objects("It")
        order = np.argsort(truth.image, kind="stable")
        sizes = np.stack([images.widths, images.heights], axis=1).astype(np.float64)
        pairs = zip(categories.names, categories.category_ids, strict=True)
        return Objects(
            (images.numbers if images.text_ids is None else images.text_ids).tolist(),
            images.file_names.tolist(),
            np.where(sizes > 0, sizes, np.nan),
            [name if number is None else number for name, number in pairs],
            categories.names,
            truth.image[order].astype(np.int64),
            truth.category[order].astype(np.int64),
            truth.boxes[order],
            () if images.listed is None else images.listed.tolist(),
            self.source.image_ids.tolist(),
        )

    def with_layout(self, layout: Finding | None) -> ReadTruth | TruthFile:
        """Return the truth with its mistakes; `layout` is the one in the layout of its boxes."""
        truth, index = self.part.truth, self.part.truth.image_index
        ids = np.array(index.ids, object)[truth.file_positions] if len(index) else np.empty(0, object)
        others = other_mistakes(
            truth.boxes,
            truth.stated_sizes[truth.image],
            crowd=truth.crowd,
            files=np.array(index.names, object)[truth.file_positions].tolist(),
            ids=ids.tolist(),
            image_at=lambda row: str(ids[truth.image[row]]),
            has_layout=layout is not None,
        )
        findings = [*([layout] if layout else []), *others]
        if any(finding.mend for finding in findings) and self.path.is_file():
            with suppress(msgspec.MsgspecError, UnicodeError):
                data = plain_json(InputFile(self.path).data)
                return TruthFile(self.path, data, msgspec.json.decode(data, type=AnnotationFile), layout)
        advice = "rewrite the boxes and flags of the files as their format requires"
        is_zero = bool((self.source.require_objects("It").numbers == 0).any())
        return replace(
            self,
            findings=tuple(
                finding._replace(mend="", command=advice) if finding.mend else finding for finding in findings
            ),
            notes=(_ZERO,) if is_zero else (),
        )


def read_truth(annotations: Any, image_set: str = "", source: Source | None = None) -> ReadTruth:
    """Return a truth as `curation evaluate` reads it: for a root with several parts, its test part or the named one.

    Parameters
    ----------
    annotations : path, mapping, DataFrame, FiftyOne view, or Source
    image_set : str
    source : Source, optional
        The source of the annotations, if they are already read.

    Raises
    ------
    CurationError
        `curation evaluate` rejects the truth.
    """
    source = source or opened(annotations, image_set)
    path = annotations if isinstance(annotations, Path) else Path(type(annotations).__name__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ReadTruth(path, source, ground_truth(source, known_classes(source), has_doubt=False))


def opened(annotations: Any, image_set: str = "") -> Source:
    """Return the source of annotations in any form, as `curation evaluate`, `init` and `build` read them."""
    if not isinstance(annotations, Path) or is_named(annotations):
        return as_source(annotations, dataset="coco", part=image_set)
    parts = offered_parts(annotations)
    name = annotations.name.lower().removesuffix(".gz")
    if annotations.is_file() and not parts and not name.endswith((".json", ".jsonl")):
        return as_source(annotations, dataset=native_dataset(annotations) or "custom", part=image_set)
    return Reading(image_set=image_set or usual_part(parts)).open(annotations)


def usual_part(parts: Sequence[str]) -> str:
    """Return the default part: a test part, else a validation part, else the first."""
    usual = [part for name in ("test", "val") for part in parts if part.startswith(name)]
    return [*usual, *parts, "test"][0]


def offered_parts(path: Path) -> tuple[str, ...]:
    """Return the parts that a root of any layout, or a ``data.yaml``, offers."""
    with suppress(CurationError):
        usual = "voc2007" if path.is_dir() and not row_files(path) else "custom"
        return parts_at(path, native_dataset(path) or usual)
    return ()


class TruthFile:
    """The mistakes of an annotation file, and the file after all mends.

    Parameters
    ----------
    path : Path
    data : bytes
        Content of the file, see `curation.core.json_text.plain_json`.
    annotated : AnnotationFile
    layout : Finding or None
        The mistake in the layout of its boxes, according to detections or image sizes.

    Attributes
    ----------
    findings : tuple of Finding
    mends : tuple of str
    commands : tuple of str
        Commands that write the mended file, in this order.
    path : Path
        Path of the mended file; the original path if no mend is needed.
    part : Part or None
        The ground truth that `curation evaluate` reads from it; None if it rejects the file.
    """

    def __init__(self, path: Path, data: bytes, annotated: AnnotationFile, layout: Finding | None) -> None:
        self.notes = (_ZERO,) if any(_is_zero(record.id) for record in annotated.annotations) else ()
        findings = [*_record_mistakes(annotated), *([layout] if layout else []), *_other_mistakes(annotated, layout)]
        if not any(finding.mend == _DROP for finding in findings) and InputFile(path).data != data:
            mistake = "The truth holds NaN or Infinity, which JSON lacks"
            findings.append(Finding(mistake, "`curation evaluate` refuses it", None, mend=_DROP, side="truth"))
        self.mends = tuple(finding.mend for finding in findings if finding.mend)
        self.data = mended_truth(data, self.mends) if self.mends else data
        written = Path(new_name("mended_truth", path)) if self.mends else path
        self.commands: tuple[str, ...] = (mend_command(path, self.mends),) if self.mends else ()
        if repeated := _repeated_ids(annotated):
            finding = Finding(repeated, "ids that occur once", None, side="truth")
            try:
                self.data = renumber_data(self.data, str(path)).data
            except CurationError as error:
                findings.append(finding._replace(evidence=error.what, command=error.hint or str(error.expected)))
            else:
                findings.append(finding._replace(command=_renumber_command(path)))
                self.commands += (_renumber_command(written),)
                written = Path(new_name("renumbered_truth", written))
        self.path = written
        self.part: Part | None = None
        try:
            self.part = _as_file(self.data, path, self.data is not data, _read_truth)
        except CurationError as error:
            if all(row.mend or row.now is not None or row.command.startswith("curation") for row in findings):
                findings.append(refusal(error, "truth"))
        self.findings = tuple(
            finding._replace(command=mend_command(path, [finding.mend])) if finding.mend else finding
            for finding in findings
        )


def refusal(error: CurationError, side: Any) -> Finding:
    """Return the finding for a file that `curation evaluate` rejects, with the advice of its error."""
    is_new = error.hint is not None and "curation inspect" not in error.hint
    evidence = ": ".join(str(text) for text in (error.where, error.found) if text)
    command = str(error.hint if is_new else f"expected: {error.expected or 'another value'}")
    return Finding(f"`curation evaluate` refuses the {side}: {error.what}", evidence, None, command=command, side=side)


def read_detection_records(
    data: bytes | None, path: Path, part: Part, columns: OpenedColumns | None
) -> CurationError | None:
    """Return the error by which `curation evaluate` rejects detections, or None if it reads them.

    Parameters
    ----------
    data : bytes or None
        Mended records in JSON; by default the content of the file.
    columns : OpenedColumns or None
        The columns of the file, if they are already read.
    """
    try:
        if data is None and columns:
            read_detections(path, part.truth, columns=columns)
            return None
        _as_file(data or b"", path, data is not None, lambda file: read_detections(file, part.truth))
    except CurationError as error:
        return error
    return None


def _as_file(data: bytes, path: Path, is_new: bool, read: Callable[[Path], Any]) -> Any:
    """Return the result of reading a path, or of reading data as the content of that path."""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_new:
            path = Path(folder) / f"{path.name.partition('.')[0]}.json"
            path.write_bytes(data)
        try:
            return read(path)
        except CurationError as error:
            error.where = error.where and error.where.replace(f"{folder}{os.sep}", "")
            raise


def _read_truth(path: Path) -> Part:
    source = Reading().open(path)
    return ground_truth(source, known_classes(source))


_ZERO = (
    "an annotation of the truth has id 0: pycocotools counts a detection of this object as false, and the object as "
    "missed; curation does not"
)


def _is_zero(value: Any) -> bool:
    return value == 0 and not isinstance(value, bool)


def _usable(annotated: AnnotationFile) -> Bools:
    images = {image.id for image in annotated.images}
    classes = {category.id for category in annotated.categories}
    return np.fromiter(
        (
            record.has_box
            and min(record.bbox[2:]) >= 0
            and record.image_id in images
            and (record.category_id in classes or not classes)
            for record in annotated.annotations
        ),
        np.bool_,
        len(annotated.annotations),
    )


def _record_mistakes(annotated: AnnotationFile) -> Iterator[Finding]:
    n = len(annotated.annotations)
    if n and not annotated.categories:
        example = '"categories": [{"id": 1, "name": "circle"}, ...]'
        mistake = f"The truth lists no categories: its {counted(n, 'annotation')} have no class"
        yield Finding(mistake, "`curation evaluate` refuses it", None, command=f"write {example} into it", side="truth")
    usable = _usable(annotated)
    if n and not usable.all():
        first = int(np.argmin(usable))
        mistake = (
            f"Annotations of the truth have no usable box, or are of an image or class that the file lacks: "
            f"{int((~usable).sum()):,} of {n:,}, the first annotations[{first}]"
        )
        mend = _DROP if usable.any() else ""
        yield Finding(mistake, "usable annotations", float(usable.mean()), 1.0 if mend else None, mend,
                      "export them again", side="truth")  # fmt: skip


def _other_mistakes(annotated: AnnotationFile, layout: Finding | None) -> Iterator[Finding]:
    sizes = _sizes(annotated)
    rows = [record for record in annotated.annotations if record.has_box and record.image_id in sizes]
    boxes = np.array([record.bbox for record in rows], np.float64).reshape(-1, 4)
    of_box: list[Any] = [sizes[record.image_id] for record in rows]
    yield from other_mistakes(
        boxes,
        np.array(of_box, np.float64).reshape(-1, 2),
        crowd=np.array([bool(record.iscrowd) for record in rows], np.bool_),
        files=[image.file_name for image in annotated.images],
        ids=[image.id for image in annotated.images],
        image_at=lambda row: str(rows[row].image_id),
        has_layout=layout is not None,
    )


def _repeated_ids(annotated: AnnotationFile) -> str:
    """Return a description of the repeated ids of a file, ``""`` if no id repeats."""
    images = Counter(image.id for image in annotated.images)
    numbers = Counter(record.id for record in annotated.annotations if record.id is not None)
    kinds: dict[str, Counter[Any]] = {"image": images, "annotation": numbers}
    texts = []
    for kind, count in kinds.items():
        repeated = [number for number, times in count.items() if times > 1]
        if repeated:
            texts.append(f"{counted(len(repeated), f'{kind} id')} ({examples(map(str, repeated))})")
    return f"Ids of the truth occur more than once: {' and '.join(texts)}" if texts else ""


def mend_command(path: Path, mends: Sequence[str]) -> str:
    """Return the command that mends a truth."""
    words = [word for mend in mends for word in ("--mend", mend)]
    return shlex.join(["curation", "inspect", str(path), *words, "--out", new_name("mended_truth", path)])


def _renumber_command(path: Path) -> str:
    return shlex.join(["curation", "inspect", str(path), "--renumber", new_name("renumbered_truth", path)])


def new_name(stem: str, path: Path) -> str:
    """Return a name for a mended file that differs from the original and does not exist in the working folder."""
    names = (f"{stem}{number}.json" for number in ("", *range(2, 1000)))
    return next((name for name in names if name != path.name and not Path(name).exists()), f"{stem}.json")


def mended_truth(data: bytes, mends: Sequence[str]) -> bytes:
    """Return an annotation file in COCO JSON after mends, otherwise unchanged.

    Parameters
    ----------
    data : bytes
        See `curation.core.json_text.plain_json`.
    mends : sequence of str
        ``KEY=VALUE``, see `VALUES`.

    Raises
    ------
    UsageError
        A mend does not exist or is repeated.
    """
    pairs = [mend.partition("=")[::2] for mend in mends]
    for key, value in pairs:
        allowed = {"records": value == "drop", "boxes": is_form(value), "crowd": value == "objects"}
        if not allowed.get(key) or len({name for name, _ in pairs}) < len(pairs):
            raise UsageError(
                "No such mend of an annotation file, or one is given twice",
                where=f"--mend {key}={value}"[:200],
                expected="; ".join(f"{name}={text}" for name, text in VALUES.items()),
                hint="curation inspect TRUTH --detections FILE --mend … mends detections",
            )
    chosen = dict(pairs)
    content: dict[str, Any] = msgspec.json.decode(data)
    annotated = msgspec.json.decode(data, type=AnnotationFile)
    if "records" in chosen:
        usable = _usable(annotated).tolist()
        content["annotations"] = [row for row, keep in zip(content["annotations"], usable, strict=True) if keep]
    sizes = _sizes(annotated)
    for row in content["annotations"]:
        if "crowd" in chosen:
            row["iscrowd"] = 0
        if "boxes" in chosen and _has_box(row) and row["image_id"] in sizes:
            before, size = np.array([row["bbox"]], np.float64), np.array([sizes[row["image_id"]]])
            box = boxes_in_pixels(before, chosen["boxes"], size)[0]
            # An area computed from the box is updated; that of a mask stays.
            if "area" in row and math.isclose(row["area"] or 0, float(before[0, 2] * before[0, 3]), rel_tol=1e-3):
                row["area"] = float(box[2] * box[3])
            row["bbox"] = box.tolist()
    return msgspec.json.encode(content)


def _has_box(row: dict[str, Any]) -> bool:
    return msgspec.convert({"image_id": None, "bbox": row.get("bbox")}, Record).has_box
