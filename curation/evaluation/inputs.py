"""Inputs of an evaluation: ground truth, classes, images and detections, read by one set of rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from curation.core.errors import CurationWarning, ForeignClassError, UsageError
from curation.core.process import stage
from curation.core.wording import odd_names_text
from curation.evaluation.measures import Measured, Scored
from curation.evaluation.problem import CategoryIds as CategoryIds
from curation.evaluation.problem import (
    ClassRoles,
    KnownClasses,
    classes_of_file,
    classes_of_manifest,
    classes_of_source,
)
from curation.evaluation.readers import ACCEPTED, Accepted, ReadDetections, read_detections
from curation.evaluation.readers import Policy as Policy
from curation.evaluation.result import stem_of, truth_digests
from curation.evaluation.truth import Part, ground_truth, viewed
from curation.manifest.locate import load_manifest
from curation.manifest.manifest import Manifest
from curation.sources.source import Source
from curation.sources.source_specs import BadBoxes
from curation.sources.voc import locate_voc, only_2012, xml_folder
from curation.sources.yolo import yolo_file

Given = TypeVar("Given")
Truth = Path | Source
"""A COCO JSON file, a dataset root, or an open source."""
_OWN_VOC = "annotations"
"""Dataset name of a truth in VOC's layout with other classes."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How ground truth is read.

    Attributes
    ----------
    image_set : str
        of a dataset root given as truth
    bad_boxes : {"error", "drop"}
        unusable boxes of the ground truth
    """

    image_set: Annotated[str, "SET"] = "test"
    bad_boxes: BadBoxes = "error"

    def open(self, truth: Truth, part: str = "test", dataset: str = "coco") -> Source:
        """Return the source of a ground truth; `part` and `dataset` select or name its content."""
        from curation.sources.object_rows import row_files
        from curation.sources.opening import as_source, coco_file, native_dataset

        if isinstance(truth, Source):
            return truth
        if native := native_dataset(truth):
            part = self.image_set if truth.is_dir() else ""
            return as_source(truth, dataset=native, part=part, bad_boxes=self.bad_boxes)
        read = partial(
            as_source, part=self.image_set if truth.is_dir() or yolo_file(truth) else part, bad_boxes=self.bad_boxes
        )
        layouts = ("annotations", "labels")
        is_coco = yolo_file(truth) or coco_file(truth, self.image_set) or row_files(truth)
        if truth.is_dir() and not is_coco and xml_folder(truth, self.image_set):
            return read(truth, dataset=_OWN_VOC)
        if not truth.is_dir() or is_coco or any((truth / name).is_dir() for name in layouts):
            return read(truth, dataset=dataset)
        dataset = "voc2012" if truth.name.upper() == "VOC2012" or only_2012(truth) else "voc2007"
        try:
            return read(truth, dataset=dataset)
        except ForeignClassError as error:
            message = f"{truth} is read as a separate dataset: VOC does not have the classes {error.found}"
            source = read(locate_voc(truth, dataset), dataset=_OWN_VOC)
            odd = odd_names_text(source.boxes_by_class())
            warnings.warn(message + f"; these may be mistakes: {odd}" * bool(odd), CurationWarning, stacklevel=2)
            return source

    def opener(self) -> Callable[[Truth], Source]:
        """Return a function that opens the ground truth of several tasks or cases, each file only once."""
        once = cache(self.open)
        return lambda truth: truth if isinstance(truth, Source) else once(truth)


def remembered_truth(manifest: Manifest | None, parts: Sequence[str]) -> Source:
    """Return the source of some parts that a manifest remembers from its build, as their ground truth.

    Raises
    ------
    UsageError
        The manifest is missing, it does not remember the source, or the parts have several sources.
    SourceError
        The file was moved or changed.
    """
    if manifest is not None and manifest.built_from is not None:
        names = {name for part in parts for name in manifest.part(part).sources}
        opened = manifest.open_sources({}, slots=[slot for slot in manifest.slots if slot.name in names])
        if len(names) == len(opened) == 1:
            return opened.popitem()[1]
    hint = "only a manifest that remembers the source of its test images is scored without it"
    if manifest is not None and any(len(manifest.part(part).sources) > 1 for part in parts):
        hint = "images of several sources are scored on one file, which `curation export MANIFEST --part "
        hint += f"{parts[0]} --format coco --out FILE` writes"
    raise UsageError("--truth is missing", expected="--truth FILE", hint=hint)


@dataclass(frozen=True, kw_only=True)
class Listed:
    """Which part of a manifest is scored; without a manifest, all images of the truth.

    Attributes
    ----------
    manifest : str or Manifest, optional
        score only the images of a part of this manifest, with the classes and ignored objects of its label view
    part : str, optional
        of the manifest (default: the only one that has a list)
    category_ids : {"truth", "manifest"}, optional
        with --manifest, whose category ids detections use: the truth file's (default where it has ids), or the
        manifest's indices
    """

    manifest: Annotated[str | Manifest | None, "MANIFEST"] = None
    part: str | None = None
    category_ids: CategoryIds | None = None

    def open(self) -> tuple[Manifest | None, str]:
        """Return the manifest, if any, and the name of the part.

        Raises
        ------
        UsageError
            There is a part without a manifest, or no part and the manifest has several.
        """
        if self.manifest is None:
            if self.part is not None:
                raise UsageError("--part chooses a list of a manifest", expected="--manifest MANIFEST too")
            return None, ""
        opened = load_manifest(self.manifest) if isinstance(self.manifest, str) else self.manifest
        if self.part is None and len(opened.lists) != 1:
            raise UsageError(
                "Nothing says which part of the manifest is scored",
                where=f"--manifest {opened.title}",
                expected="--part PART: " + ", ".join(opened.lists or opened.parts)[:300],
                found=f"{len(opened.lists)} parts with lists",
            )
        return opened, opened.part(self.part or next(iter(opened.lists))).name


READING = Reading()
POLICY = Policy()
LISTED = Listed()


def by_name(
    given: Mapping[str, Given] | Given,
    option: str,
    group: str,
    names: Sequence[str] = (),
    *,
    requested: Sequence[str] = (),
    unnamed: str | Callable[[Given], str] = "",
    shared: bool = False,
    hint: str | None = None,
) -> dict[str, Given]:
    """Return the value of an option for each task, case, split, part or classifier.

    Parameters
    ----------
    given : mapping of str to value, or value
        A value without a name, alone or with the name ``""``, gets the only possible name, else `unnamed`.
    group : str
        Kind of the names, such as ``task``, for messages.
    names : sequence of str
        Possible names; empty if this option defines them.
    requested : sequence of str
        Names that need a value; others are left out. By default all names with a value.
    unnamed : str or callable
        Name of a value without a name, or a function that returns it for a value.
    shared : bool
        Whether a value without a name is that of all requested names without a value.
    hint : str, optional
        Hint of the error about a value without a name.

    Raises
    ------
    UsageError
        A value has an unknown name or no name, two values have the same name, or a name has no value.
    """
    usual = requested or names
    expected = " ".join(f"{option} {name}=FILE" for name in usual[:4]) or f"{option} NAME=FILE"
    by_key: dict[str, Given] = dict(given) if isinstance(given, Mapping) else {"": given}
    common = [by_key.pop("")] if shared and "" in by_key else []
    values: dict[str, Given] = {}
    for key, value in by_key.items():
        name = key or (usual[0] if len(usual) == 1 else unnamed(value) if callable(unnamed) else unnamed)
        if not name or (names and name not in names):
            raise UsageError(
                f"No such {group}" if key else f"{option} does not say which {group} it belongs to",
                where=f"{option} {key}{'=' * bool(key)}{value}"[:200],
                expected=expected,
                hint=None if key else hint,
            )
        if name in values:
            raise UsageError(f"{option} is given twice for one {group}", where=str(value)[:200], expected=expected)
        values[name] = value
    missing = [name for name in requested if name not in values]
    if missing and not common:
        raise UsageError(f"{option} is missing for {group} {', '.join(missing)}", expected=expected)
    values |= dict.fromkeys(missing, *common)
    return {name: values[name] for name in requested or values}


def known_classes(
    source: Source,
    *,
    classes: Path | None = None,
    manifest: Manifest | None = None,
    part: str = "",
    category_ids: CategoryIds | None = None,
) -> KnownClasses:
    """Return the known classes: from a class file, else from a manifest, else the categories of the closed truth.

    Parameters
    ----------
    part : str
        Part of the manifest whose known classes are returned: with tasks, those of its task and of earlier tasks.

    Raises
    ------
    UsageError
        `category_ids` is given, and only the truth numbers the classes.
    """
    require_manifest_for_ids(category_ids, manifest=manifest, classes=classes)
    if classes is not None:
        return classes_of_file(classes, source)
    if manifest is None:
        return classes_of_source(source)
    return classes_of_manifest(manifest, source, category_ids, part)


def require_manifest_for_ids(category_ids: CategoryIds | None, *, manifest: object, classes: object) -> None:
    """Raise an error if `category_ids` is given and only the truth numbers the classes."""
    if category_ids and (not manifest or classes):
        raise UsageError(
            "--category-ids chooses between the ids of a manifest and of the truth",
            expected="--manifest MANIFEST too, and no --classes",
        )


@dataclass(frozen=True, slots=True)
class OnePart:
    """Truth and detections of an evaluation without parts, and the facts about its inputs.

    Attributes
    ----------
    part : Part
    read : ReadDetections
    about : dict
    frequencies : dict of str to str
        How often training images show each class, if the truth states it.
    """

    part: Part
    read: ReadDetections
    about: dict[str, Any]
    name: str = "test"
    frequencies: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_options(
        cls,
        truth: Truth,
        detections: Path,
        *,
        classes: Path | None,
        reading: Reading,
        policy: Policy,
        listed: Listed = LISTED,
        accepted: Accepted = ACCEPTED,
    ) -> OnePart:
        """Read truth, classes and detections; `accepted` lists forms that only some variants read."""
        opened, name = listed.open()
        with stage("reading ground truth"):
            source = reading.open(truth)
            known = known_classes(source, classes=classes, manifest=opened, part=name, category_ids=listed.category_ids)
            frequencies = dict(zip(source.categories.names, source.categories.frequencies, strict=False))
            ids = None if opened is None else tuple(dict.fromkeys(opened.ids(name)))
            if opened is not None and ids is not None:
                source = viewed(source, opened, name, ids)
            part = ground_truth(source, known, ids)
        with stage("reading detections"):
            read = read_detections(detections, part.truth, policy, accepted=accepted)
        inputs = {"test": {"truth": part.file, "detections": read.file}}
        record = manifest_record(opened, part=name)
        facts = about(known, inputs, manifest=record, option_files={"classes": classes})
        return cls(part, read, facts, name or source.part, frequencies)

    def scored(self, variant: str, measured: Measured, operating_point: dict[str, str]) -> Scored:
        """Return the measured numbers with the facts that decide whether another result is comparable."""
        return Scored(
            part=self.name,
            variant=variant,
            method=stem_of(self.read.file),
            truth=truth_digests(self.about),
            predictions={"test": self.read.file},
            operating_point=operating_point,
            found=measured,
        )


def about(
    known: KnownClasses | ClassRoles,
    inputs: Mapping[str, Mapping[str, Any]],
    *,
    manifest: Mapping[str, Any] | None = None,
    option_files: Mapping[str, Path | None],
) -> dict[str, Any]:
    """Return the facts about the inputs of an evaluation: classes, digests, and the numbers of records left out.

    Parameters
    ----------
    inputs : mapping
        By part or task, the record of each file.
    manifest : mapping, optional
        Result of `manifest_record`.
    option_files : mapping of str to Path or None
        Files that options name.
    """
    return {
        "known_classes_from": known.origin,
        "category_ids": known.ids_from,
        "manifest": manifest,
        "option_files": file_records(option_files),
        "inputs": inputs,
    }


def manifest_record(manifest: Manifest | None, **more: Any) -> dict[str, Any] | None:
    """Return name, version and digest of a manifest, and `more` facts about its use; None without a manifest."""
    if manifest is None:
        return None
    header = manifest.header
    return {"name": header.name, "version": header.version, "digest": manifest.digest, **more}


def file_records(files: Mapping[str, Path | None]) -> dict[str, dict[str, str]]:
    """Return name and digest of each file that an option names."""
    from curation.core.canonical import sha256_of_file

    return {
        option: {"name": path.name, "sha256": sha256_of_file(path)}
        for option, path in files.items()
        if path is not None
    }
