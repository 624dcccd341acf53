"""Ground truth of an open-set detection problem: known classes, one class ``unknown``, and what lies outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from curation.errors import EvaluationError
from curation.evaluation.problem import (
    UNKNOWN,
    Bools,
    CategoryIds,
    ClassRoles,
    GroundTruth,
    numbered,
    read_class_file,
    repeated,
)
from curation.evaluation.truth import TaskTruth, task_truth
from curation.manifest.manifest import Manifest
from curation.sources.source import Source

Crowd = Literal["ignore", "keep", "drop"]
CROWD: dict[Crowd, str] = {
    "ignore": "group boxes are ignored regions",
    "keep": "group boxes are ordinary objects",
    "drop": "group boxes are removed",
}


@dataclass(frozen=True, slots=True)
class TruthView:
    """How objects of a truth are treated beside their class's being known, unknown or outside.

    Attributes
    ----------
    crowd : {"ignore", "keep", "drop"}
        Group boxes; see `CROWD`.
    ignored : tuple of str
        Classes whose objects are ignored regions of unknown, whatever becomes of other outside classes: inner nodes.
    marked_ignored : bool
        Whether objects that the truth marks ``ignore`` or ``difficult`` are ignored regions of their class; else they
        are ordinary, as COCO knows no such mark. An exported truth marks so what its view ignores: drawings, say.
    """

    crowd: Crowd = "ignore"
    ignored: tuple[str, ...] = ()
    marked_ignored: bool = False


def truth_view(manifest: Manifest, part: str) -> TruthView:
    """Return the view of a manifest's part as the evaluation applies it."""
    view = manifest.part(part).view
    ignored = [entry.name for entry in manifest.header.classes if getattr(view, entry.role) == "ignore"]
    crowd: Crowd = "keep" if view.crowd == "keep" else "drop" if view.crowd == "drop" else "ignore"
    return TruthView(crowd, tuple(ignored), "ignore" in (view.difficult, view.depiction))


Outside = Literal["delete", "ignore"]
OUTSIDE: dict[str, str] = {
    "delete": "objects of other classes are removed: a detection on one is a false positive (the paper's code)",
    "ignore": "objects of other classes are ignored regions of unknown: an unknown detection on one is neither right "
    "nor wrong",
}
TAXONOMIES = ("OSOD-I", "OSOD-II", "OSOD-III")
_EXAMPLE = '{"known": ["cat", "dog"], "unknown": ["lynx"]}'
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class OpenSetTruth:
    """The ground truth of one case.

    Attributes
    ----------
    classes : ClassRoles
    task : TaskTruth
        Its last class is ``unknown``. Outside objects are gone, or ignored regions of ``unknown``.
    outside : {"delete", "ignore"}
    outside_objects : int
    crowd : {"ignore", "keep", "drop"}
    crowd_objects : int
        Group boxes of the source.
    ignored_objects : int
        Objects that the view ignores for their class or mark.
    """

    classes: ClassRoles
    task: TaskTruth
    outside: Outside
    outside_objects: int
    crowd: Crowd = "ignore"
    crowd_objects: int = 0
    ignored_objects: int = 0

    @property
    def truth(self) -> GroundTruth:
        """The objects as columns."""
        return self.task.truth

    @property
    def unknown(self) -> int:
        """Label of unknown objects and detections."""
        return self.task.unknown

    @property
    def file(self) -> dict[str, Any]:
        """What a result says about this input."""
        truth = self.truth
        counted = ~truth.crowd
        return {
            **self.task.part.file,
            "known_objects": int((counted & (truth.label < self.unknown)).sum()),
            "unknown_objects": int((counted & (truth.label == self.unknown)).sum()),
            "outside": self.outside,
            "outside_objects": self.outside_objects,
            "crowd": CROWD[self.crowd],
            "crowd_objects": self.crowd_objects,
            "ignored_objects": self.ignored_objects,
        }


class _ClassFile(msgspec.Struct):
    known: tuple[str, ...]
    unknown: tuple[str, ...]
    taxonomy: str = "OSOD-III"


def classes_of_file(path: Path, name: str) -> ClassRoles:
    """Return the classes of a JSON file ``{"known": [...], "unknown": [...]}``.

    Raises
    ------
    MissingFileError
        There is no such file.
    EvaluationError
        It is not such a file, knows no class, lists one twice, or names a taxonomy that does not exist.
    """
    listed = read_class_file(path, _ClassFile, _EXAMPLE)
    return _checked(ClassRoles(name, (), listed.known, listed.unknown, path.name, taxonomy=listed.taxonomy), str(path))


def classes_of_manifest(manifest: Manifest, name: str) -> ClassRoles:
    """Return the classes of a manifest by role; classes in any other role lie outside.

    Raises
    ------
    EvaluationError
        The manifest is of no open-set detection problem: the classes of an earlier task (OWOD) would lie outside.
    """
    header = manifest.header
    if header.taxonomy not in TAXONOMIES:
        raise EvaluationError(
            "The manifest is not of an open-set detection problem",
            where=f"{header.name} {header.version}",
            expected=f"taxonomy one of {', '.join(TAXONOMIES)}",
            found=header.taxonomy,
            hint="--classes FILE names known and unknown classes for any data",
        )
    roles = {role: [one for one in header.classes if one.role == role] for role in ("known", "unknown")}
    return _checked(
        ClassRoles(
            name,
            (),
            tuple(one.name for one in roles["known"]),
            tuple(one.name for one in roles["unknown"]),
            f"manifest {header.name} {header.version}",
            numbers={one.name: one.index for one in roles["known"]},
            aliases={alias: one.name for one in header.classes for alias in one.aliases},
            taxonomy=header.taxonomy,
        ),
        f"{header.name} {header.version}",
    )


def _checked(classes: ClassRoles, where: str) -> ClassRoles:
    names = (*classes.known, *classes.unknown)
    twice = repeated(names)
    if twice or not classes.known or UNKNOWN in names or classes.taxonomy not in TAXONOMIES:
        raise EvaluationError(
            "A class is listed twice" if twice else "The classes are not those of an open-set problem",
            where=where,
            expected=f"{_EXAMPLE}: each class once, at least one known; taxonomy one of {', '.join(TAXONOMIES)}",
            found=twice[0][:80] if twice else f"{len(classes.known)} known classes, taxonomy {classes.taxonomy!r:.40}",
        )
    return classes


def open_set_truth(
    source: Source,
    classes: ClassRoles,
    ids: Sequence[str] | None = None,
    *,
    outside: Outside = "delete",
    view: TruthView | None = None,
    category_ids: CategoryIds | None = None,
) -> OpenSetTruth:
    """Return the ground truth of a case on the images of a list (all of the source by default).

    *Rectifying Open-Set Object Detection*, the authors' evaluator: a box keeps the name of its known class, becomes
    ``unknown`` if its class is one of the unknown ones, and is removed otherwise; a category ``unknown`` of an exported
    truth is unknown. A manifest's view says what becomes of group boxes, marked objects and ignored
    classes. `category_ids` chooses the numbering of its detections (`curation.evaluation.problem.numbered`).

    Raises
    ------
    PresenceOnlyError
        The source has no boxes.
    EvaluationError
        The source lacks an image of the list, a category of a known class, or every category of an unknown one.
    """
    # Classes that are neither known nor unknown are no error here: they lie outside.
    task = numbered(replace(classes, rest=None), source, category_ids)
    truth = task_truth(source, task, ids)
    _check_unknown(source, classes)
    view = view or TruthView()
    others = _outside(truth, classes, classes.unknown)
    ignored = others & ~_outside(truth, classes, (*classes.unknown, *view.ignored))
    others &= ~ignored
    if view.marked_ignored:
        ignored |= truth.truth.difficult & ~others
    grouped = truth.truth.crowd
    kept = ~(grouped & (view.crowd == "drop"))
    flagged = grouped & (view.crowd == "ignore") | ignored
    if outside == "delete":
        kept &= ~others
    else:
        flagged |= others
    changed = _kept(replace(truth.truth, crowd=flagged), kept)
    reduced = replace(truth, part=replace(truth.part, truth=changed))
    counts = int(others.sum()), view.crowd, int(grouped.sum()), int(ignored.sum())
    return OpenSetTruth(classes, reduced, outside, *counts)


def _check_unknown(source: Source, classes: ClassRoles) -> None:
    spelled = {classes.aliases.get(name, name) for name in source.categories.names}
    if classes.unknown and UNKNOWN not in spelled and not spelled & set(classes.unknown):
        raise EvaluationError(
            "The truth has no category of any unknown class",
            where=", ".join(record.name for record in source.files),
            expected="unknown, or one of: " + ", ".join(classes.unknown)[:_SHOWN],
            found=", ".join(source.categories.names)[:_SHOWN],
        )


def _outside(truth: TaskTruth, classes: ClassRoles, inside: Sequence[str]) -> Bools:
    """Return which objects are of a class that is neither known nor one of some others."""
    aliases = classes.aliases
    originals = truth.truth.original or ()
    unknown = {*inside, "", UNKNOWN}
    strange = np.array([aliases.get(name, name) not in unknown for name in originals], np.bool_)
    return strange & (truth.truth.label == truth.unknown) if len(strange) else np.zeros(len(truth.truth.label), bool)


def _kept(truth: GroundTruth, rows: Bools) -> GroundTruth:
    places = np.flatnonzero(rows)
    originals = truth.original
    return replace(
        truth,
        image=truth.image[rows],
        label=truth.label[rows],
        boxes=truth.boxes[rows],
        crowd=truth.crowd[rows],
        difficult=truth.difficult[rows],
        areas=truth.areas[rows],
        original=None if originals is None else tuple(originals[place] for place in places.tolist()),
    )
