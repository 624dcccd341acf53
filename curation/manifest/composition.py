"""What a manifest is made of: images, objects by role and by class, and what the label view of each part hides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from curation.core.errors import UsageError
from curation.core.pages import count
from curation.core.tables import Table, as_csv, grouped
from curation.manifest.header import ClassEntry, Header, LabelView, PartEntry, classes_in
from curation.manifest.manifest import Manifest
from curation.manifest.views import FLAGS, ROLES, PartImages, every_object, locate_images, stated_pairs, treated
from curation.sources.source import Source

if TYPE_CHECKING:
    import pandas as pd

_ROLES_SHOWN = ("known", "previous", "negative", "unknown", "ignored")
_SPLITS = ("train", "finetune", "val", "test", "wilderness")
_CSV_HEADER = (
    "part", "task", "split", "class", "index", "role", "images", "objects", "labelled", "hidden", "crowd",
)  # fmt: skip

EVERYTHING = LabelView(unknown="keep", ignored="keep", crowd="keep", difficult="keep")
"""The view that keeps every object under its own class."""


@dataclass(frozen=True, slots=True)
class ClassCount:
    """One class in one part.

    Attributes
    ----------
    role : str
        The role that the class plays in the part.
    images : int
        Images of the part that show the class, whether the view labels it or not.
    objects, labelled, crowd : int or None
        Objects; those of them that the view does not drop; those that are crowd regions. None without boxes.
    """

    name: str
    index: int
    role: str
    images: int
    objects: int | None
    labelled: int | None
    crowd: int | None


@dataclass(frozen=True, slots=True)
class PartComposition:
    """What one part is made of.

    Attributes
    ----------
    part : PartEntry
    images : int or None
        Different images; None where a declared part has never been computed.
    annotated_images : int or None
        Images with at least one object that the view does not drop.
    classes : dict of str to int
        Classes of each role in this part.
    labelled : dict of str to int, or None
        Objects of each role that the view does not drop, and of these the ``difficult`` and ``crowd`` ones.
    hidden : dict of str to int, or None
        Objects of each role that the view drops. Those of role ``unknown`` in a training part are hidden unknowns (rule
        CO5 of the audit).
    hidden_images : dict of str to int, or None
        Images that show a hidden object of each role.
    by_class : tuple of ClassCount
        In the order of the header; empty where the part's sources were not available.
    missing : str
        Why something is None, or ``""``.
    """

    part: PartEntry
    images: int | None
    annotated_images: int | None
    classes: dict[str, int]
    labelled: dict[str, int] | None
    hidden: dict[str, int] | None
    hidden_images: dict[str, int] | None
    by_class: tuple[ClassCount, ...] = ()
    missing: str = ""


def compose(manifest: Manifest, sources: Mapping[str, Source]) -> tuple[PartComposition, ...]:
    """Return what each part is made of, in the order of the header.

    Parameters
    ----------
    sources : mapping of str to Source
        By the names in the header. A part whose list or sources are not available is described by its entry alone, one
        with a presence-only source by its images alone.

    Raises
    ------
    ManifestError
        An image of a part is in none of its sources, or an object's class has no role in the manifest.
    """
    return tuple(_composed(manifest, part, sources) for part in manifest.header.parts)


def _composed(manifest: Manifest, part: PartEntry, sources: Mapping[str, Source]) -> PartComposition:
    classes = classes_in(manifest.header, part)
    roles = Counter[str](entry.role for entry in classes)
    of_role = {role: roles[role] for role in ROLES if roles[role]}
    absent = [f"--source {slot}=PATH" for slot in part.sources if slot not in sources]
    if absent or part.name not in manifest.lists:
        distinct = None if part.images is None else part.images - part.repeats
        missing = f"{' '.join(absent)} is not given" if part.name in manifest.lists else "its list is not available"
        box_counts = dict(part.boxes) or None
        return PartComposition(part, distinct, part.annotated_images, of_role, box_counts, None, None, missing=missing)
    images = locate_images(manifest, part.name, sources)
    boxed = all(source.objects is not None for source in images.sources)
    objects = _objects(part, classes, images) if boxed else _statements(part, classes, images)
    labelled, hidden = objects[~objects.hidden], objects[objects.hidden]
    hidden_images = hidden.groupby("role").image.nunique()
    return PartComposition(
        part=part,
        images=len(set(manifest.ids(part.name))),
        annotated_images=labelled.image.nunique(),
        classes=of_role,
        labelled=_counts(labelled) if boxed else None,
        hidden=_counts(hidden) if boxed else None,
        hidden_images={ROLES[role]: n for role, n in zip(hidden_images.index, hidden_images.tolist(), strict=True)},
        by_class=_class_counts(classes, objects, boxed=boxed),
        missing="" if boxed else "a source knows classes of images, and no boxes",
    )


def _objects(part: PartEntry, classes: Sequence[ClassEntry], images: PartImages) -> pd.DataFrame:
    import pandas as pd

    objects = every_object(classes, images)
    return pd.DataFrame(objects).assign(hidden=treated("drop", part.view, objects))


def _statements(part: PartEntry, classes: Sequence[ClassEntry], images: PartImages) -> pd.DataFrame:
    import pandas as pd

    image, label = stated_pairs(classes, images)
    pairs = pd.DataFrame({"image": image, "label": label}).query("label >= 0")
    roles = pairs.label.map(dict(enumerate(ROLES.index(entry.role) for entry in classes))).astype(int)
    dropped = [number for number, name in enumerate(ROLES) if getattr(part.view, name) == "drop"]
    return pairs.assign(role=roles, hidden=roles.isin(dropped), crowd=False)


def _counts(objects: pd.DataFrame) -> dict[str, int]:
    by_role = objects.role.value_counts().sort_index()
    return {ROLES[role]: n for role, n in zip(by_role.index, by_role.tolist(), strict=True)} | {
        flag: int(objects[flag].sum()) for flag in FLAGS
    }


def _class_counts(classes: Sequence[ClassEntry], objects: pd.DataFrame, *, boxed: bool) -> tuple[ClassCount, ...]:
    by_label = objects.assign(labelled=~objects.hidden).groupby("label")
    counts = by_label.agg(
        images=("image", "nunique"), objects=("image", "size"), labelled=("labelled", "sum"), crowd=("crowd", "sum")
    )
    rows = counts.reindex(range(len(classes)), fill_value=0).astype(int).to_numpy().tolist()
    return tuple(
        ClassCount(entry.name, entry.index, entry.role, images, *(more if boxed else (None, None, None)))
        for entry, (images, *more) in zip(classes, rows, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Composition:
    """What a manifest is made of, part by part.

    Attributes
    ----------
    manifest : Manifest
    parts : tuple of PartComposition
        See `compose`.
    """

    manifest: Manifest
    parts: tuple[PartComposition, ...]

    def data(self) -> dict[str, Any]:
        """Return plain data; what is not known is null, with the reason in ``missing``."""
        header = self.manifest.header
        return {
            "name": header.name,
            "version": header.version,
            "digest": self.manifest.digest,
            "parts": [_part_data(part) for part in self.parts],
        }

    def tables(self) -> list[Table]:
        """Return the table of the parts, that of the classes, and one of what could not be counted."""
        tables = [_part_table(self.manifest.header, self.parts)]
        if any(part.by_class for part in self.parts):
            tables.append(_class_table(self.manifest.header, self.parts))
        if missing := grouped((part for part in self.parts if part.missing), lambda part: part.missing):
            rows = tuple((why, ", ".join(part.part.name for part in parts)) for why, parts in missing.items())
            tables.append(Table("Not counted", ("reason", "parts"), rows))
        return tables

    def csv(self) -> str:
        """Return the counts of each class in each part, as CSV.

        Raises
        ------
        UsageError
            No source of a part was given.
        """
        if not any(part.by_class for part in self.parts):
            raise UsageError("--out counts the objects of each class, and no source of a part is given")
        return as_csv(_CSV_HEADER, _class_rows(self.parts))


def _class_rows(compositions: Sequence[PartComposition]) -> Iterator[tuple[Any, ...]]:
    """Yield one row a class and part, as `_CSV_HEADER` names the columns."""
    for part in compositions:
        for entry in part.by_class:
            hidden = None if entry.objects is None else entry.objects - (entry.labelled or 0)
            counts = (entry.images, entry.objects, entry.labelled, hidden, entry.crowd)
            yield (part.part.name, part.part.task, part.part.role, entry.name, entry.index, entry.role, *counts)


def _part_data(part: PartComposition) -> dict[str, Any]:
    return {
        "part": part.part.name,
        "task": part.part.task,
        "split": part.part.role,
        "sha256": part.part.sha256,
        "images": part.images,
        "repeated_lines": part.part.repeats,
        "annotated_images": part.annotated_images,
        "classes": part.classes,
        "labelled_objects": part.labelled,
        "hidden_objects": part.hidden,
        "images_with_hidden_objects": part.hidden_images,
        "by_class": [asdict(entry) for entry in part.by_class],
        "missing": part.missing,
    }


def _part_table(header: Header, compositions: Sequence[PartComposition]) -> Table:
    def seen(*kinds: str) -> list[str]:
        counted = [getattr(part, kind) or {} for part in compositions for kind in kinds]
        return [role for role in _ROLES_SHOWN if any(counts.get(role) for counts in counted)]

    labelled_roles, hidden = seen("labelled"), seen("hidden", "hidden_images")
    columns = [*labelled_roles, *(name for role in hidden for name in (f"hidden {role}", "in images")), "crowd"]
    rows = []
    for part in compositions:
        counts = [(part.labelled, role) for role in labelled_roles]
        counts += [(kind, role) for role in hidden for kind in (part.hidden, part.hidden_images)]
        counts.append((part.labelled, "crowd"))
        numbers = (None if kind is None else kind.get(role, 0) for kind, role in counts)
        rows.append((part.part.name, *map(count, (part.images, part.annotated_images, *numbers))))
    title = f"{header.name} {header.version}: images, and objects under the label view of each part"
    return Table(title, ("part", "images", "annotated", *columns), tuple(rows))


def _class_table(header: Header, compositions: Sequence[PartComposition]) -> Table:
    """Return the labelled objects of each class: with tasks, in the parts of its own task, else in every part."""
    labelled_counts = {
        (
            part.part.task if header.tasks else "",
            part.part.role if header.tasks else part.part.name,
            entry.name,
        ): entry.labelled
        for part in reversed(compositions)
        for entry in part.by_class
    }
    seen = dict.fromkeys(column for _, column, _ in reversed(labelled_counts))
    columns = [split for split in _SPLITS if split in seen] if header.tasks else list(seen)
    task_of = {name: task.name for task in header.tasks for name in task.introduced}
    rows = []
    for entry in header.classes:
        task = task_of.get(entry.name, "")
        kind = (task or "-") if header.tasks else entry.role
        counts = (count(labelled_counts.get((task, column, entry.name))) for column in columns)
        rows.append((str(entry.index), entry.name, kind, *counts))
    title = "Objects of each class"
    if header.tasks:
        title = "Labelled objects of each class in the parts of the task that introduces it (in all: --out FILE.csv)"
    return Table(title, ("index", "class", "task" if header.tasks else "role", *columns), tuple(rows))
