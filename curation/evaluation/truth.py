"""Ground truth of one part from a raw source: which classes are known, which images count, in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import msgspec
import numpy as np

from curation.errors import EvaluationError
from curation.evaluation.columns import GroundTruth, Int64s
from curation.ids import native_number
from curation.input_files import read_plain
from curation.json_keys import refuse_repeated_keys
from curation.manifest.header import unknown_index
from curation.manifest.manifest import Manifest
from curation.sources.source import FileRecord, Source

UNKNOWN = "unknown"
UNKNOWN_NUMBER = -1

CategoryIds = Literal["truth", "manifest"]
"""Whose category ids detections use: those of the ground truth's file, or the indices of the manifest's classes."""


@dataclass(frozen=True, slots=True)
class KnownClasses:
    """The classes a detector knows.

    Attributes
    ----------
    names : tuple of str, length K
    numbers : tuple of int, length K
        Category ids that detections use.
    aliases : mapping of str to str
        Other names of known classes in annotation files (``airplane`` of ``aeroplane``).
    origin : str
        Where this was said: a file, a manifest, or the categories of the closed truth.
    unknown_numbers : tuple of int
        Category ids that detections may use for ``unknown``.
    other_numbers : tuple of int
        Ids of another numbering of the same classes, to recognise detections that use it.
    ids_from : {"truth", "manifest"}
        Whose ids `numbers` are.
    """

    names: tuple[str, ...]
    numbers: tuple[int, ...]
    origin: str
    aliases: Mapping[str, str] = field(default_factory=dict)
    unknown_numbers: tuple[int, ...] = (UNKNOWN_NUMBER,)
    other_numbers: tuple[int, ...] = ()
    ids_from: CategoryIds = "truth"


@dataclass(frozen=True, slots=True)
class Part:
    """The ground truth of one part, the names of its images, and the files it was read from.

    Attributes
    ----------
    truth : GroundTruth
    names : tuple of str, length n
        Stem of each image's file name (its native id where the file states none), in the order of `truth`.
    files : tuple of FileRecord
    dropped : dict of str to int
        What the reader left out, by reason.
    images_in_files : int
        How many images the files hold; more than `truth` where a manifest chose among them.
    """

    truth: GroundTruth
    names: tuple[str, ...]
    files: tuple[FileRecord, ...]
    dropped: dict[str, int]
    images_in_files: int

    @property
    def file(self) -> dict[str, Any]:
        """What a result says about this input."""
        return {
            "files": [{"name": one.name, "sha256": one.sha256, "rows": one.rows} for one in self.files],
            "images_in_files": self.images_in_files,
            "images": self.truth.n_images,
            "reported": self.dropped,
        }


class _ClassFile(msgspec.Struct):
    known: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def classes_of_source(source: Source) -> KnownClasses:
    """Return the categories of a closed truth without ``unknown`` (id -1 or that name)."""
    pairs = [
        (name, number)
        for name, number in zip(source.categories.names, source.categories.numbers, strict=True)
        if name != UNKNOWN and number != UNKNOWN_NUMBER
    ]
    return KnownClasses(
        tuple(name for name, _ in pairs),
        tuple(number for _, number in pairs),
        "categories of the closed truth",
        unknown_numbers=_unknown_numbers(source),
    )


def _unknown_numbers(source: Source) -> tuple[int, ...]:
    """Return the ids that ``unknown`` may have in detections: -1, and that of the source's category of this name."""
    own = zip(source.categories.names, source.categories.numbers, strict=True)
    return tuple(dict.fromkeys((UNKNOWN_NUMBER, *(number for name, number in own if name == UNKNOWN))))


def class_names(path: Path) -> tuple[str, ...]:
    """Return the known classes of a JSON file ``{"known": [...], "unknown": [...]}``.

    Raises
    ------
    MissingFileError
        There is no such file.
    EvaluationError
        It is not such a file, it knows no class, or a class stands twice.
    """
    data = read_plain(path, kind="class file")
    refuse_repeated_keys(data, str(path), EvaluationError)
    try:
        listed = msgspec.json.decode(data, type=_ClassFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EvaluationError(
            "The class file cannot be read",
            where=str(path),
            expected='{"known": ["cat", "dog"], "unknown": ["elephant"]}',
            found=str(error)[:200],
        ) from None
    names = listed.known
    twice = [name for name in (*names, *listed.unknown) if (*names, *listed.unknown).count(name) > 1]
    if twice or not names:
        raise EvaluationError(
            "A class is listed twice" if twice else "The class file knows no class",
            where=str(path),
            expected="each class once, at least one known",
            found=twice[0][:80] if twice else None,
        )
    return names


def classes_of_file(path: Path, source: Source) -> KnownClasses:
    """Return the known classes of a JSON file ``{"known": [...], "unknown": [...]}``, with the ids of `source`.

    Raises
    ------
    MissingFileError
        There is no such file.
    EvaluationError
        It is not such a file, a class stands twice, or the closed truth has no category of a known class.
    """
    names = class_names(path)
    numbers = dict(zip(source.categories.names, source.categories.numbers, strict=True))
    missing = [name for name in names if name not in numbers]
    if missing:
        raise EvaluationError(
            "The closed truth has no category of a known class",
            where=str(path),
            expected="classes among: " + ", ".join(source.categories.names)[:300],
            found=", ".join(missing)[:300],
        )
    unknown = tuple(number for number in _unknown_numbers(source) if UNKNOWN not in names)
    own = tuple(numbers[name] for name in names)
    return KnownClasses(names, own, path.name, unknown_numbers=unknown)


def classes_of_manifest(
    manifest: Manifest, source: Source | None = None, ids: CategoryIds | None = None
) -> KnownClasses:
    """Return the known classes of a manifest with its aliases, and the category ids that detections use.

    Parameters
    ----------
    source : Source, optional
        The closed truth. Where its file numbers its classes, those ids count: a detector was given that file, or the
        one that it was made from.
    ids : {"truth", "manifest"}, optional
        To choose the one or the other.

    Raises
    ------
    EvaluationError
        The truth's ids were asked for or count, and its file has no category of a known class, or no ids at all.
    """
    known = [entry for entry in manifest.header.classes if entry.role == "known"]
    aliases = {alias: entry.name for entry in known for alias in entry.aliases}
    names, origin = (
        tuple(entry.name for entry in known),
        f"manifest {manifest.header.name} {manifest.header.version}",
    )
    indices = {entry.name: entry.index for entry in known}
    unknown = dict.fromkeys((UNKNOWN_NUMBER, unknown_index(manifest.header)))
    if source is None or not counts_truth_ids(source, ids):
        other = () if source is None else source.categories.numbers
        return KnownClasses(
            names, tuple(indices.values()), origin, aliases, tuple(unknown), other, "manifest"
        )
    spelled = {
        aliases.get(name, name): number
        for name, number in zip(source.categories.names, source.categories.numbers, strict=True)
    }
    missing = [name for name in names if name not in spelled]
    if missing:
        raise EvaluationError(
            "The closed truth has no category of a known class, so it does not say which id detections of it have",
            where=", ".join(record.name for record in source.files),
            expected="a category for each of: " + ", ".join(names)[:300],
            found="none for " + ", ".join(missing)[:300],
            hint="--category-ids manifest takes the manifest's ids; --classes FILE names other classes",
        )
    own = tuple(spelled[name] for name in names)
    return KnownClasses(names, own, origin, aliases, _unknown_numbers(source), (*indices.values(), *unknown))


def counts_truth_ids(source: Source, ids: CategoryIds | None) -> bool:
    """Return whether the category ids of a ground truth are those of its detections: where its file has such ids.

    Raises
    ------
    EvaluationError
        They were asked for, and the file has none.
    """
    if ids == "truth" and not source.has_category_ids:
        raise EvaluationError(
            "The ground truth has no category ids",
            where=", ".join(record.name for record in source.files)[:300],
            expected="a COCO JSON file",
            hint="--category-ids manifest",
        )
    return source.has_category_ids and ids != "manifest"


def ground_truth(source: Source, known: KnownClasses, ids: Sequence[str] | None = None) -> Part:
    """Return the ground truth of a part, images by ascending number.

    Parameters
    ----------
    source : Source
        With boxes. Every category that is not a known class (by name or alias) is unknown.
    known : KnownClasses
    ids : sequence of str, optional
        Namespaced ids of the images that belong to the part (a manifest's list); all images by default.

    Raises
    ------
    PresenceOnlyError
        The source has no boxes.
    EvaluationError
        It lacks an image of `ids`.
    """
    source.require_objects("An evaluation")
    names = _stems(source)
    chosen = np.arange(len(source.images)) if ids is None else _chosen(source, names, ids)
    objects = source.require_pixels("An evaluation", chosen)
    by_name = _named_by_texts(source)
    rank = source.id_ranks if by_name else source.images.numbers
    chosen = chosen[np.argsort(rank[chosen], kind="stable")]
    place = np.full(len(source.images), -1, np.int32)
    place[chosen] = np.arange(len(chosen), dtype=np.int32)
    rows = np.flatnonzero(place[objects.image] >= 0)
    rows = rows[np.argsort(place[objects.image[rows]], kind="stable")]
    category = objects.category[rows]
    labels = _labels(source, known)
    truth = GroundTruth(
        image_numbers=np.arange(len(chosen)) if by_name else source.images.numbers[chosen],
        classes=known.names,
        class_numbers=known.numbers,
        image=place[objects.image[rows]],
        label=labels[category],
        boxes=objects.boxes[rows],
        crowd=objects.crowd[rows],
        difficult=objects.difficult[rows],
        areas=objects.areas[rows],
        original=_originals(source, rows),
        image_names=tuple(source.images.native[chosen].tolist()) if by_name else None,
        unknown_numbers=known.unknown_numbers,
        other_numbers=known.other_numbers,
        ids_from_truth=known.ids_from == "truth",
    )
    return Part(
        truth, tuple(names[i] for i in chosen.tolist()), source.files, source.dropped, len(source.images)
    )


def check_closed(part: Part) -> None:
    """Raise `EvaluationError` unless the closed part shows an object of a known class."""
    if not (part.truth.label >= 0).any():
        raise EvaluationError(
            "The closed part shows no object of a known class",
            where=_files(part),
            expected="objects of: " + ", ".join(part.truth.classes)[:300],
            found=f"{len(part.truth.label)} objects, none of them known",
            hint="are --truth closed=... and --truth wilderness=... swapped? Else name the classes with --classes",
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
        where=f"{_files(part)}: image {int(part.truth.image_numbers[part.truth.image[first]])}",
        expected="images without any known class",
        found=f"{len(known)} objects of {', '.join(names)}"[:300],
        hint="are the closed and the wilderness file swapped? --manifest DIR takes only the images of its list",
    )


def _files(part: Part) -> str:
    return ", ".join(record.name for record in part.files)


def _stems(source: Source) -> list[str]:
    return [
        PurePosixPath(name.replace("\\", "/")).stem if name else str(native)
        for name, native in zip(source.images.file_names.tolist(), source.images.native.tolist(), strict=True)
    ]


def _named_by_texts(source: Source) -> bool:
    """Return whether the annotation file's own ids are texts: then its numbers are positions, and mean nothing."""
    numbers = [native_number(native) for native in source.images.native.tolist()]
    return bool(numbers != source.images.numbers.tolist())


def _chosen(source: Source, stems: list[str], ids: Sequence[str]) -> Int64s:
    """Return the position of each id of a list: by file stem, else by image number (``coco:000000000139`` is 139)."""
    natives = [text.partition(":")[2] for text in ids]
    by_stem = {stem: place for place, stem in enumerate(stems)}
    _require_distinct(source, stems, natives)
    places = [by_stem.get(native) for native in natives]
    if None in places and not _named_by_texts(source):
        by_number = {number: place for place, number in enumerate(source.images.numbers.tolist())}
        numbers = [native_number(native) for native in natives]
        by_digits = [None if number is None else by_number.get(number) for number in numbers]
        places = by_digits if by_digits.count(None) < places.count(None) else places
    missing = [text for text, place in zip(ids, places, strict=True) if place is None]
    if missing:
        raise EvaluationError(
            "The truth lacks images of the manifest's list",
            where=", ".join(record.name for record in source.files),
            expected=f"all {len(ids)} images",
            found=f"{len(missing)} missing, the first {missing[0]}",
            hint="curation verify MANIFEST --source NAME=PATH compares the two",
        )
    return np.array(places, np.int64)


def _require_distinct(source: Source, stems: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise `EvaluationError` where an id of a list is the stem of two files (a/1.jpg, b/1.jpg)."""
    if len(set(stems)) == len(stems):
        return
    needed, first = set(wanted), dict[str, int]()
    for place, stem in enumerate(stems):
        other = first.setdefault(stem, place)
        if other != place and stem in needed:
            names = [
                str(source.images.file_names[one] or source.images.native[one]) for one in (other, place)
            ]
            raise EvaluationError(
                "Two images of the truth go by the name that the manifest's list gives",
                where=", ".join(record.name for record in source.files),
                expected=f"one image called {stem}"[:200],
                found=" and ".join(names)[:200],
                hint="curation export writes a truth file whose names are distinct",
            )


def _labels(source: Source, known: KnownClasses) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return the position of each category of the source among the known classes, -1 for unknown."""
    position = {name: place for place, name in enumerate(known.names)}
    found = [position.get(known.aliases.get(name, name), -1) for name in source.categories.names]
    return np.array([*found, -1], np.int32)[: len(found)]


def _originals(source: Source, rows: Int64s) -> tuple[str, ...]:
    """Return the dataset's own class of each object; "" where only ``unknown`` is known of it."""
    objects = source.require_objects("An evaluation")
    names = np.array([name if name != UNKNOWN else "" for name in source.categories.names] or [""], object)
    texts = names[objects.category[rows]] if len(rows) else np.empty(0, object)
    if objects.original is not None:
        stated = objects.original[rows]
        texts = np.where(stated == "", texts, stated)
    return tuple(texts.tolist())
