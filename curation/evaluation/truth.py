"""Ground truth of a part from a raw source: its images and their order, unknown objects, lines of a list."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import is_
from pathlib import Path
from typing import Any, Literal

import numpy as np

from curation.core.entry_points import entry_points, loaded
from curation.core.errors import CurationWarning, EvaluationError, UsageError
from curation.core.ids import native_number, native_of
from curation.core.reading import read_plain, utf8_text
from curation.core.wording import warn_of_near_names
from curation.evaluation.problem import (
    UNKNOWN,
    UNKNOWN_NUMBER,
    Bools,
    ClassRoles,
    GroundTruth,
    Int32s,
    Int64s,
    KnownClasses,
    files_of,
    known_classes_of_task,
)
from curation.manifest.header import ClassEntry, classes_in
from curation.manifest.manifest import Manifest
from curation.manifest.views import PartImages, select_objects
from curation.sources.datasets import family
from curation.sources.identity import Resolved
from curation.sources.integrity import objects_at
from curation.sources.source import FileRecord, Source
from curation.sources.yolo import names_from_zero

DOUBTS = "curation.doubts"
"""Entry points ``detections = "MODULE"``: a module with functions ``doubt``, ``stray_hint`` and ``truth_doubt``."""


@cache
def _diagnosis() -> Any:
    """Return the module that looks for mistakes in truth and detections: the entry point of the group `DOUBTS`."""
    points = [point for point in entry_points(DOUBTS) if point.name == "detections"]
    try:
        return loaded(points[0], "The check of detections for mistakes") if points else None
    except UsageError as error:
        warnings.warn(f"{error.what}: {error.found}; the scores are not affected", CurationWarning, stacklevel=3)
        return None


def diagnosed(check: Literal["doubt", "stray_hint", "truth_doubt"], *columns: Any, **more: Any) -> str:
    """Return what a function of the module `DOUBTS` says on possible mistakes; ``""`` without the module."""
    module = _diagnosis()
    return "" if module is None else str(getattr(module, check)(*columns, **more))


@dataclass(frozen=True, slots=True)
class Part:
    """The ground truth of a part, and the files it was read from.

    Attributes
    ----------
    truth : GroundTruth
    files : tuple of FileRecord
    dropped : dict of str to int
        Records that the reader left out, by reason.
    images_in_files : int
        Number of images in the files; larger than that of `truth` if a manifest selects some of them.
    doubt : str
        Why the files may be mistaken, or ``""``.
    """

    truth: GroundTruth
    files: tuple[FileRecord, ...]
    dropped: dict[str, int]
    images_in_files: int
    doubt: str = ""

    @property
    def file(self) -> dict[str, Any]:
        """Record of this input in a result."""
        names = ", ".join(file.name for file in self.files)
        doubt = {"name": names, "doubt": self.doubt} if self.doubt else {}
        return {
            **doubt,
            "files": [{"name": file.name, "sha256": file.sha256, "rows": file.rows} for file in self.files],
            "images_in_files": self.images_in_files,
            "images": self.truth.n_images,
            "reported": self.dropped,
        }


def ground_truth(
    source: Source, known: KnownClasses, ids: Sequence[str] | None = None, *, has_doubt: bool = True
) -> Part:
    """Return the ground truth of a part, images by ascending number.

    Parameters
    ----------
    source : Source
        Source with boxes. Every category that is not a known class (by name or alias) is unknown.
    known : KnownClasses
    ids : sequence of str, optional
        Namespaced ids of the images that belong to the part (a manifest's list); all images by default.
    has_doubt : bool
        Whether to look for mistakes in the files.

    Raises
    ------
    PresenceOnlyError
        The source has no boxes.
    EvaluationError
        The source lacks an image of `ids`.
    """
    return _part(source, known, ids, has_doubt=has_doubt)[0]


def viewed(source: Source, manifest: Manifest, part: str, ids: Sequence[str]) -> Source:
    """Return a source whose objects on the images of a part have passed the label view of the part.

    Objects that the view ignores become the only crowd: neither right nor wrong in any measure of known classes.

    Raises
    ------
    PresenceOnlyError
        The source has no boxes.
    EvaluationError
        It lacks an image of `ids`.
    ManifestError
        An object's class has no role in the manifest.
    """
    entry, chosen = manifest.part(part), _chosen(source, ids).astype(np.int32)
    classes = classes_in(manifest.header, entry)
    if UNKNOWN not in (name for listed in classes for name in (listed.name, *listed.aliases)):
        # In a truth that was exported under this view, unknown objects are renamed already.
        classes = (*classes, ClassEntry(name=UNKNOWN, role="unknown", index=UNKNOWN_NUMBER))
    selected = select_objects(classes, entry.view, PartImages((source,), np.zeros_like(chosen), chosen))
    objects = objects_at(source.require_objects("A label view"), selected.index)
    objects = replace(objects, crowd=selected.ignore, difficult=np.zeros(len(selected), np.bool_))
    counts = {
        "left out by the label view: objects": selected.dropped,
        "neither right nor wrong by the label view: objects": int(selected.ignore.sum()),
    }
    return replace(source, objects=objects, dropped=source.dropped | {why: n for why, n in counts.items() if n})


def _part(
    source: Source,
    known: KnownClasses,
    ids: Sequence[str] | None,
    unknown: Sequence[str] = (),
    *,
    has_doubt: bool = True,
) -> tuple[Part, Int64s]:
    """Return a part (see `ground_truth`), and the position in it of each of `ids`; `unknown` are named classes."""
    source.require_objects("An evaluation")
    _warn_of_names(source, (*known.names, *unknown), known.aliases, known.origin)
    chosen = np.arange(len(source.images)) if ids is None else _chosen(source, ids)
    objects = source.require_pixels("An evaluation", chosen)
    by_name = _named_by_texts(source)
    rank = source.id_ranks if by_name else source.images.numbers
    order = np.argsort(rank[chosen], kind="stable")
    image_ids = source.image_ids[chosen].tolist() if ids is None else ids
    listed, chosen = chosen, chosen[order]
    position = np.full(len(source.images), -1, np.int32)
    position[chosen] = np.arange(len(chosen), dtype=np.int32)
    rows = np.flatnonzero(position[objects.image] >= 0)
    rows = rows[np.argsort(position[objects.image[rows]], kind="stable")]
    category = objects.category[rows]
    labels = _labels(source, known, category)
    truth = GroundTruth(
        image_numbers=np.arange(len(chosen)) if by_name else source.images.numbers[chosen],
        classes=known.names,
        class_numbers=known.numbers,
        image=position[objects.image[rows]],
        label=labels[category],
        boxes=objects.boxes[rows],
        crowd=objects.crowd[rows],
        difficult=objects.difficult[rows],
        areas=objects.areas[rows],
        original=_originals(source, rows),
        index=source.image_index,
        part_positions=position,
        image_ids=tuple(image_ids[i] for i in order.tolist()),
        unknown_numbers=known.unknown_numbers,
        sizes=np.stack([source.images.widths, source.images.heights], axis=1)[chosen],
        federated=_federated(source.federated, position, labels),
        yolo_classes=names_from_zero(source.categories)
        if source.categories.numbering == "yolo" and known.ids_from == "truth"
        else (),
    )
    doubt = ""
    if has_doubt:
        doubt = diagnosed(
            "truth_doubt",
            truth.boxes,
            truth.stated_sizes,
            crowd=truth.crowd,
            files=source.images.file_names[chosen].tolist(),
            ids=[str(source.image_index.ids[row]) for row in chosen.tolist()],
            image=truth.image,
            is_json=len(source.files) == 1 and source.files[0].name.endswith(".json"),
        )
    part = Part(truth, source.files, source.dropped, len(source.images), doubt)
    return part, position[listed].astype(np.int64)


def _warn_of_names(source: Source, class_names: Sequence[str], aliases: Mapping[str, str], origin: str) -> None:
    """Warn of class names that differ only in case or blanks, in a truth or between it and the list of classes."""
    names: Sequence[str] = source.categories.names
    if len(class_names) == len(names) and all(map(is_, class_names, names)):
        class_names = ()
    where = files_of(source) + (f", {origin}" if class_names else "")
    warn_of_near_names(where[:200], [aliases.get(name, name) for name in names] if aliases else names, class_names)


_EXPORT = "curation export MANIFEST --part PART --format coco --out TRUTH.json writes such a truth"


def check_closed(part: Part) -> None:
    """Raise `EvaluationError` if the closed part shows no object of a known class."""
    if not (part.truth.label >= 0).any():
        raise EvaluationError(
            "The closed part shows no object of a known class",
            where=files_of(part),
            expected="objects of: " + ", ".join(part.truth.classes)[:300],
            found=f"{len(part.truth.label)} objects, none of them known",
            hint="are the closed and the wilderness file swapped? If not, --classes FILE names the classes",
        )


def check_wilderness(part: Part) -> None:
    """Raise `EvaluationError` if a wilderness image shows an object of a known class, crowd included."""
    known = np.flatnonzero(part.truth.label >= 0)
    if not len(known):
        return
    names = sorted({part.truth.classes[label] for label in part.truth.label[known].tolist()})
    first = int(known[0])
    raise EvaluationError(
        "The wilderness part shows objects of known classes",
        where=f"{files_of(part)}: image {part.truth.image_ids[part.truth.image[first]]}",
        expected="images without any known class",
        found=f"{len(known)} objects of {', '.join(names)}"[:300],
        hint="are the closed and the wilderness file swapped? If not, --manifest DIR takes only the images of its list",
    )


def _named_by_texts(source: Source) -> bool:
    """Return whether the ids in the annotation file are texts: its numbers are then only positions."""
    numbers = [native_number(native) for native in source.images.native.tolist()]
    return bool(numbers != source.images.numbers.tolist())


def _positions_of(source: Source, ids: Sequence[str]) -> list[int | None]:
    """Return the position of each id of a list, None where the source lacks it.

    An image is identified by its id, else by its file name, else by its number or text in the annotation file
    (``coco:000000000139`` is 139).

    Raises
    ------
    EvaluationError
        Two images of the source have a name in the list; or the stems of files name other images than the ids of the
        annotation file, for example if ``1.jpg``, ``10.jpg``, ``2.jpg`` were numbered in this order.
    """
    for references in (source.images.listed, source.image_ids):
        names = [] if references is None else references.tolist()
        listed = {name: position for position, name in enumerate(names)}
        if listed.keys() >= (requested := set(ids)):
            if len(listed) < len(names):
                _require_once(source, [text for text in names if text in requested])
            return [listed[text] for text in ids]
    index, natives = source.image_index, [text.partition(":")[2] for text in ids]
    numbers = [native_number(native) for native in natives]
    if source.images.text_ids is not None or None in numbers:
        return _positions(source, index.resolve(natives), ids)
    by_name = _positions(source, index.resolve(None, natives), ids)
    by_number = _positions(source, index.resolve(np.array(numbers, np.int64)), ids)
    differing = (text for text, *pair in zip(ids, by_name, by_number, strict=True) if len(set(pair)) == 2)
    if None not in (*by_name, *by_number) and (first := next(differing, None)):
        raise EvaluationError(
            "File names and image ids of the truth both fit the manifest's list, but name different images",
            where=files_of(source),
            expected="a truth with the manifest's ids, as an export has them",
            found=f"{first}, an image's id and another image's file name"[:200],
            hint=_EXPORT,
        )
    return min(by_name, by_number, key=lambda positions: positions.count(None))


def _require_once(source: Source, names: Sequence[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise EvaluationError(
            "Two images of the truth have the same id of the manifest's list",
            where=files_of(source),
            expected="every curation_id once",
            found=", ".join(repeated)[:200],
            hint=_EXPORT,
        )


def _positions(source: Source, resolved: Resolved, ids: Sequence[str]) -> list[int | None]:
    """Return the position of each id of a list; an id that fits two images is an `EvaluationError`."""
    for row, pair in resolved.candidates.items():
        raise EvaluationError(
            "Two images of the truth have the same name, which is in the manifest's list",
            where=files_of(source),
            expected=f"one image called {ids[row]}"[:200],
            found=source.image_index.describe(pair)[:200],
            hint=_EXPORT,
        )
    return [position if position >= 0 else None for position in resolved.position.tolist()]


def _chosen(source: Source, ids: Sequence[str]) -> Int64s:
    """Return the position of each id of a list; a missing image is an `EvaluationError`."""
    positions = _positions_of(source, ids)
    missing = [text for text, position in zip(ids, positions, strict=True) if position is None]
    if missing:
        raise EvaluationError(
            "The truth lacks images of the manifest's list",
            where=files_of(source),
            expected=f"all {len(ids)} images",
            found=f"{len(missing)} missing, the first {missing[0]}",
            hint="curation verify MANIFEST --source NAME=PATH compares the two",
        )
    return np.array(positions, np.int64)


def _labels(source: Source, known: KnownClasses, objects: Int32s) -> Int32s:
    """Return the position among the known classes of each category with objects or statements, -1 for all others."""
    used = objects if source.federated is None else np.concatenate([objects, source.federated[:, 1]])
    categories, labels = np.unique(used).tolist(), np.full(len(source.categories), -1, np.int32)
    names = [known.aliases.get(name, name) for name in map(source.categories.names.__getitem__, categories)]
    used_names = set(names)
    position = {name: label for label, name in enumerate(known.names) if name in used_names}
    labels[categories] = [position.get(name, -1) for name in names]
    return labels


def _federated(statements: Int32s | None, position: Int32s, labels: Int32s) -> Int32s | None:
    """Convert the federated statements of a source to image positions and labels; -1 is the unknown class.

    A label of several categories is absent if all of them are absent, and partly boxed if one of them is.
    """
    if statements is None:
        return None
    listed = np.unique(statements[position[statements[:, 0]] >= 0], axis=0)
    rows, count = np.unique(
        np.column_stack([position[listed[:, 0]], labels[listed[:, 1]], listed[:, 2]]), axis=0, return_counts=True
    )
    of_label = np.bincount(labels + 1, minlength=2)[rows[:, 1] + 1]
    return np.asarray(rows[(rows[:, 2] == 1) | (count == of_label)], np.int32)


def _originals(source: Source, rows: Int64s) -> tuple[str, ...]:
    """Return the original class of each object in the dataset; "" if the file says only ``unknown``."""
    objects = source.require_objects("An evaluation")
    names = np.array([name if name != UNKNOWN else "" for name in source.categories.names] or [""], object)
    texts = names[objects.category[rows]] if len(rows) else np.empty(0, object)
    if objects.original is not None:
        originals = objects.original[rows]
        texts = np.where(originals == "", texts, originals)
    return tuple(texts.tolist())


Repeats = Literal["error", "keep", "drop"]
REPEATS: dict[str, str] = {
    "error": "a list that names an image twice is refused",
    "keep": "as the official code: ground truth counts once a line, each box can be found once, detections of an "
    "image count once a line",
    "drop": "each image once",
}


@dataclass(frozen=True, slots=True)
class TaskTruth:
    """Ground truth for a detector of a task.

    Attributes
    ----------
    task : ClassRoles
    part : Part
        Its `truth` has the classes ``(*task.known, "unknown")``, so no object has label -1.
    list_lines : ndarray of int64, shape (n,)
        How often the image list names each image.
    voc_corners : ndarray of bool, shape (n,)
        Images whose boxes were whole 1-based corners in the annotation file (VOC XML).
    repeats : {"error", "keep", "drop"}
    repeated_lines : int
        Lines of the list beyond the first of each image, whether they count or not.
    """

    task: ClassRoles
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
        """How often each image counts, shape (n,): once for each line of the list under ``keep``, else once."""
        return self.list_lines if self.repeats == "keep" else np.ones_like(self.list_lines)

    @property
    def file(self) -> dict[str, Any]:
        """Record of this input in a result."""
        return {
            **self.part.file,
            "lines": int(self.lines.sum()),
            "repeats": self.repeats,
            "repeated_lines": self.repeated_lines,
        }


def task_truth(
    source: Source, task: ClassRoles, ids: Sequence[str] | None = None, *, repeats: Repeats = "error"
) -> TaskTruth:
    """Return the ground truth of a task on the images of a list.

    Parameters
    ----------
    source : Source
        Source with boxes: original classes, or a test view in which all other classes are ``unknown``.
    ids : sequence of str, optional
        The image list, line by line, ids with or without namespace; all images of the source by default.
    repeats : {"error", "keep", "drop"}
        See `REPEATS`.

    Raises
    ------
    PresenceOnlyError
        The source has no boxes.
    EvaluationError
        The source lacks an image of the list or a category of a known class, or has a class that the task does not
        name; or the list repeats an image under ``repeats="error"``.
    """
    known = known_classes_of_task(task, source)
    space = source.namespace
    qualified = None if ids is None else [text if ":" in text else f"{space}:{native_of(text, space)}" for text in ids]
    counted = Counter(qualified or ())
    n_repeated = sum(counted.values()) - len(counted)
    if n_repeated and repeats == "error":
        raise _repeats_error(counted, n_repeated)
    part, positions = _part(source, known, None if qualified is None else list(counted), task.unknown)
    if len(set(positions.tolist())) < len(positions):
        raise EvaluationError(
            "The image list names one image in two spellings",
            where=files_of(source),
            expected="one spelling for each image, such as 000000000139",
        )
    lines = np.ones(part.truth.n_images, np.int64)
    voc_corners = np.full(part.truth.n_images, family(source.dataset) == "voc")
    if qualified is not None:
        lines[positions] = list(counted.values())
        voc_corners[positions] |= [family(text.partition(":")[0]) == "voc" for text in counted]
    return TaskTruth(task, _with_unknown(part, task), lines, voc_corners, repeats, n_repeated)


def read_image_list(path: Path) -> tuple[str, ...]:
    """Return the ids in a text file, one a line, in its order and with repeats; blank lines are ignored.

    Raises
    ------
    MissingFileError
        No such file.
    EvaluationError
        The file is not a text, or names no image.
    """
    data = read_plain(path, kind="image list")
    text = utf8_text(data, str(path), EvaluationError, "The image list is not UTF-8 text")
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
        hint="--on-error repeats=keep counts each line as the official code does; --on-error repeats=drop counts each "
        "image once",
    )


def _with_unknown(part: Part, task: ClassRoles) -> Part:
    """Return the part with ``unknown`` as an additional class, with the truth's id if it has this category."""
    truth = part.truth
    label = np.where(truth.label < 0, len(truth.classes), truth.label).astype(np.int32)
    numbered = replace(
        truth,
        classes=(*truth.classes, UNKNOWN),
        class_numbers=(*truth.class_numbers, task.unknown_numbers[0]),
        label=label,
    )
    if (pairs := truth.federated) is not None:
        shifted = np.where(pairs[:, 1] < 0, len(truth.classes), pairs[:, 1])
        numbered = replace(numbered, federated=np.column_stack([pairs[:, 0], shifted, pairs[:, 2]]).astype(np.int32))
    return replace(part, truth=numbered)
