"""Inspection of annotation files, valid or not: images, classes, boxes, repeated ids, and mistakes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np

from curation.core.columns import distinct
from curation.core.errors import AnnotationFormatError, DamagedFileError
from curation.core.reading import InputFile
from curation.core.tables import Table, table_lines
from curation.core.wording import counted, examples, odd_names, odd_names_text, short_repr
from curation.sources.class_folders import ClassFolders, class_folder_parts, read_class_folders
from curation.sources.source import Source

if TYPE_CHECKING:
    import pandas as pd


class Finding(NamedTuple):
    """A mistake in a file of detections, or in the truth that they are compared with.

    Attributes
    ----------
    what : str
        The mistake in words.
    evidence : str
        The quantity that was counted.
    now, mended : float or None
        The counted share, from 0 to 1, before and after the mend; None if the evidence is not a share, or without a
        mend.
    mend : str
        ``KEY=VALUE`` for ``--mend``; ``""`` if no mend exists.
    command : str
        The command to run, or other advice.
    side : {"detections", "truth"}
        The file that has the mistake.
    """

    what: str
    evidence: str
    now: float | None
    mended: float | None = None
    mend: str = ""
    command: str = ""
    side: Literal["detections", "truth"] = "detections"

    @property
    def shown(self) -> str:
        """The evidence as text: the quantity now and after the mend."""
        shares = [f"{100 * share:.1f} %" for share in (self.now, self.mended) if share is not None]
        return f"{self.evidence}: {' -> '.join(shares)}" if shares else self.evidence


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Return findings with their evidence and command, as text."""
    lines = []
    for number, finding in enumerate(findings, 1):
        lines += [f"{number}. {finding.what}", f"   {finding.shown}", f"   {finding.command}"]
    return lines


_LAYOUTS = {
    "xywh": "x, y, width, height",
    "xyxy": "x1, y1, x2, y2",
    "cxcywh": "centre x, centre y, width, height",
    "yxhw": "y, x, height, width",
    "yxyx": "y1, x1, y2, x2",
    "cycxhw": "centre y, centre x, height, width",
}


def box_words(form: str, unit: str | None = None) -> str:
    """Return a description of a form of boxes; `unit` replaces the text of its unit.

    >>> box_words("xyxy:0-1")
    "x1, y1, x2, y2 in parts of the image's size (0-1)"
    """
    layout, _, of_form = form.partition(":")
    unit = of_form if unit is None else unit
    square = f"the network's square input ({unit})"
    kinds = {"": "pixels", "0": f"parts of the image's size ({unit})", "x": f"pixels of another scale ({unit})",
             "l": square, "c": square}  # fmt: skip
    return f"{_LAYOUTS[layout]} in {kinds.get(of_form[:1], f'pixels off by {unit}')}"


_SHOWN = 30
_COLUMNS = ("class", "images", "boxes")


_Id = int | str
_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class _Named(msgspec.Struct, frozen=True, gc=False):
    id: _Id = ""
    file_name: str = ""
    name: str = ""


class _Reference(msgspec.Struct, frozen=True, gc=False):
    id: _Id | None = None
    image_id: _Id | None = None
    category_id: _Id | None = None


class _File(msgspec.Struct, frozen=True):
    images: list[_Named]
    annotations: list[_Reference] = []
    categories: list[_Named] = []


@dataclass(frozen=True, slots=True)
class Inspection:
    """The contents of an annotation file.

    Attributes
    ----------
    file : str
    sha256 : str
    counts : dict of str to int
        ``images``, ``images_without_boxes``, ``classes``, ``boxes``, ``crowds``; then the problems:
        ``repeated_image_ids``, ``images_with_repeated_ids``, ``repeated_annotation_ids``, ``repeated_classes``,
        ``annotations_of_unknown_images``, ``annotations_of_unknown_classes``, ``unusable_boxes``.
    class_counts : tuple of (str, int, int)
        Class, images and boxes, in the order of the file.
    findings : tuple of Finding
        Mistakes, with the command that mends each.
    notes : tuple of str
        Properties that are not mistakes, but make the results of another evaluator differ.
    warnings : tuple of str
        Warnings of the reader, such as odd class names.
    """

    __repr__ = short_repr

    file: str
    sha256: str
    counts: dict[str, int]
    class_counts: tuple[tuple[str, int, int], ...]
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def classes(self) -> pd.DataFrame:
        """Return the counts of classes: ``class``, ``images`` and ``boxes``."""
        import pandas as pd

        return pd.DataFrame(self.class_counts, columns=list(_COLUMNS))

    @property
    def problems(self) -> dict[str, int]:
        """Return the problems of the file with their counts."""
        return {name: self.counts[name] for name in _PROBLEMS if self.counts[name]}

    def data(self) -> dict[str, Any]:
        """Return the inspection as plain data."""
        return {
            "file": self.file,
            "sha256": self.sha256,
            **self.counts,
            "class_counts": [dict(zip(_COLUMNS, row, strict=True)) for row in self.class_counts],
            "findings": [finding._asdict() for finding in self.findings],
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }

    def lines(self) -> list[str]:
        """Return tables of the contents and of the problems."""
        held = [(name.replace("_", " "), f"{n:,}") for name, n in self.counts.items() if name not in _PROBLEMS]
        wrong = [(_PROBLEMS[name], f"{n:,}") for name, n in self.problems.items()]
        ranked = sorted(self.class_counts, key=lambda row: (-row[1], row[0]))[:_SHOWN]
        rows = tuple((name, f"{images:,}", f"{boxes:,}") for name, images, boxes in ranked)
        more = len(self.class_counts) - len(rows)
        doubts = f" that stop `evaluate`; {counted(len(self.warnings), 'warning')}" if self.warnings else ""
        return [
            *table_lines(Table(self.file, ("", ""), tuple(held))),
            *(table_lines(Table("Problems", ("", ""), tuple(wrong))) if wrong else []),
            *([*finding_lines(self.findings), ""] if self.findings else []),
            *([] if wrong or self.findings else [f"no problems found{doubts}", ""]),
            *([*self.notes, ""] if self.notes else []),
            *table_lines(Table("Classes", _COLUMNS, rows)),
            *([f"… and {more:,} more: --json prints all"] if more > 0 else []),
        ]


_COUNTS = ("images", "images_without_boxes", "classes", "boxes", "crowds")
_PROBLEMS = {
    "repeated_image_ids": "image ids that name several images",
    "images_with_repeated_ids": "images with such ids",
    "repeated_annotation_ids": "annotation ids that occur more than once",
    "repeated_classes": "class ids or names that occur more than once",
    "annotations_of_unknown_images": "annotations of images that the file lacks",
    "annotations_of_unknown_classes": "annotations of classes that the file lacks",
    "unusable_boxes": "boxes without four finite numbers and a positive size",
}


def inspect_annotations(path: Path, sha256: str, held: Any) -> Inspection:
    """Return the contents and problems of COCO JSON that may be broken (see `curation.inspect`)."""
    facts = _facts_of(held)
    images = Counter(category for category, _ in {(row.category_id, row.image_id) for row in held.annotations})
    boxes = Counter(row.category_id for row in held.annotations)
    counts = {
        "images": len(held.images),
        "images_without_boxes": len(set(facts.images) - {row.image_id for row in held.annotations}),
        "classes": len(facts.categories),
        "boxes": len(held.annotations),
        "crowds": sum(bool(row.iscrowd) for row in held.annotations),
        "repeated_image_ids": len(facts.repeated_images),
        "images_with_repeated_ids": sum(map(len, facts.repeated_images.values())),
        "repeated_annotation_ids": len(facts.repeated_annotations),
        "repeated_classes": len(held.categories)
        - min(len(facts.categories), len({category.name for category in held.categories})),
        "annotations_of_unknown_images": len(facts.orphans),
        "annotations_of_unknown_classes": sum(row.category_id not in facts.categories for row in held.annotations),
        "unusable_boxes": sum(not _has_size(row) for row in held.annotations),
    }
    rows = tuple((name, images[number], boxes[number]) for number, name in facts.categories.items())
    return Inspection(str(path), sha256, counts, rows)


def _has_size(row: Any) -> bool:
    return bool(row.has_box and min(row.bbox[2:]) > 0)


def inspect_class_folders(path: Path, folders: ClassFolders, part: str, notes: Sequence[str]) -> Inspection:
    """Return the inspection of class folders or one of their parts: photos, and files that are left out."""
    source = read_class_folders(path, folders, dataset="custom", part=part)
    inspection = inspect_source(str(path), source, notes=notes)
    parts = {} if part else {f"images_of_{name}": folders.parts.count(name) for name in class_folder_parts(folders)}
    first = {"images": len(source.images), **parts}
    return replace(inspection, counts=first | inspection.counts)


def inspect_source(
    name: str, source: Source, findings: Sequence[Finding] = (), notes: Sequence[str] = ()
) -> Inspection:
    """Return the contents of a source with findings and notes."""
    image, category = (column.astype(np.int64) for column in source.class_pairs())
    n, objects = len(source.categories), source.objects
    of_class = distinct(image * n + category) % n if n else category
    images, boxes = (np.bincount(column, minlength=n).tolist() for column in (of_class, category))
    counts = dict.fromkeys((*_COUNTS, *_PROBLEMS), 0) | {"images": len(source.images), "classes": n}
    if objects is not None:
        has_boxes = np.zeros(len(source.images), np.bool_)
        has_boxes[objects.image] = True
        counts |= {
            "images_without_boxes": int((~has_boxes).sum()),
            "boxes": len(objects),
            "crowds": int(objects.crowd.sum()),
            "unusable_boxes": int((objects.boxes[:, 2:] <= 0).any(axis=1).sum()),
        }
    else:
        boxes = [0] * n
        counts = {key: count for key, count in counts.items() if key not in ("images_without_boxes", "crowds")}
    rows = tuple(zip(source.categories.names, images, boxes, strict=True))
    texts = [f"Left out: {count:,} {reason}." for reason, count in source.dropped.items()]
    if {*odd_names(counts_of := source.boxes_by_class()).values()} - {"one box"}:
        notes = [*notes, f"Names of classes that may be mistakes: {odd_names_text(counts_of)}."]
    return Inspection(name, source.files[0].sha256, counts, rows, tuple(findings), (*texts, *notes))


def part_note(part: str, parts: Sequence[str]) -> list[str]:
    """Return a note on the part that was read from a root with parts."""
    others = examples([name for name in parts if name != part])
    of_others = f" Other parts: {others}." if others else ""
    needs = "" if part == "test" else f"; evaluate reads it with --image-set={part}"
    return [f"This is the part {part}{needs}.{of_others}"] * bool(parts)


@dataclass(frozen=True)
class CocoFacts:
    """Consistency of the ids in a COCO JSON file: repeated ids, and references to missing images or categories.

    Attributes
    ----------
    images : tuple
        Number of each image, in the order of the file.
    annotations : int
        Number of annotations.
    categories : mapping of int or str to str
        Name of each category by its number.
    repeated_annotations : mapping of int or str to tuple
        Images of the annotations that share a number, by this number, in the order of the file.
    orphans : tuple
        Number of each annotation whose image is missing, with the number of that image.
    undeclared : mapping
        Annotations of each category that is not declared.
    repeated_files : mapping of str to tuple
        Numbers of the images that share a file name.
    repeated_images : mapping of int or str to tuple of str
        File names of the images that share a number.
    on_repeated : int
        Number of annotations on images with repeated numbers.
    repeated_categories : mapping of int or str to tuple of str
        Names of the categories that share a number.
    used : int
        Number of declared categories with an annotation.
    """

    images: tuple[_Id, ...]
    annotations: int
    categories: Mapping[_Id, str]
    repeated_annotations: Mapping[_Id, tuple[_Id | None, ...]]
    orphans: tuple[tuple[_Id | None, _Id | None], ...]
    undeclared: Mapping[_Id, int]
    repeated_files: Mapping[str, tuple[_Id, ...]]
    repeated_images: Mapping[_Id, tuple[str, ...]]
    on_repeated: int
    repeated_categories: Mapping[_Id, tuple[str, ...]]
    used: int


def read_coco_facts(path: Path) -> CocoFacts:
    """Read the ids of COCO JSON, and return repeated ids and dangling references.

    Raises
    ------
    MissingFileError
        The file cannot be read.
    DamagedFileError
        It is not JSON.
    AnnotationFormatError
        It is not COCO JSON.
    """
    try:
        return _facts_of(msgspec.json.decode(InputFile(path, kind="annotation file").data, type=_File))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        kind = AnnotationFormatError if isinstance(error, msgspec.ValidationError) else DamagedFileError
        expected = "COCO JSON: images, annotations and categories"
        raise kind("The file is not COCO JSON", where=str(path), expected=expected, found=str(error)[:200]) from None


def _facts_of(coco: Any) -> CocoFacts:
    images = {image.id for image in coco.images}
    declared = {category.id: category.name for category in coco.categories}
    categories = Counter(row.category_id for row in coco.annotations if row.category_id is not None)
    repeated = _repeated((image.id, image.file_name) for image in coco.images)
    return CocoFacts(
        tuple(image.id for image in coco.images),
        len(coco.annotations),
        declared,
        _repeated((row.id, row.image_id) for row in coco.annotations if row.id is not None),
        tuple((row.id, row.image_id) for row in coco.annotations if row.image_id not in images),
        {number: count for number, count in categories.items() if number not in declared},
        _repeated((image.file_name, image.id) for image in coco.images if image.file_name),
        repeated,
        sum(row.image_id in repeated for row in coco.annotations),
        _repeated((category.id, category.name) for category in coco.categories),
        len(categories.keys() & declared.keys()),
    )


def _repeated(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, tuple[_Value, ...]]:
    pairs = list(pairs)
    counts = Counter(key for key, _ in pairs)
    groups = defaultdict[_Key, list[_Value]](list)
    for key, value in pairs:
        if counts[key] > 1:
            groups[key].append(value)
    return {key: tuple(values) for key, values in groups.items()}
