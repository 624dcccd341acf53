"""Tables of a manifest: its parts, classes, sources and figures; and its composition, counted in the sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curation.core.errors import UsageError
from curation.core.pages import count
from curation.core.tables import Table, as_csv, grouped
from curation.manifest.header import ClassEntry, Figure, Header, PartEntry, classes_in
from curation.manifest.manifest import Manifest
from curation.manifest.manifest import manifest_data as manifest_data
from curation.manifest.views import FLAGS, ROLES, PartImages, every_object, locate_images, stated_pairs, treated
from curation.sources.source import Source

if TYPE_CHECKING:
    import pandas as pd

_ROLES_SHOWN = ("known", "previous", "negative", "unknown", "ignored")

_LONGEST_VALUE = 600
"""Number of printed characters of a parameter; recorded decisions have tens of thousands."""


def manifest_tables(manifest: Manifest, classes: Table | None = None) -> list[Table]:
    """Return the tables of a manifest: identity, tasks, parts and their rules, classes, sources, figures, notes.

    Parameters
    ----------
    classes : Table, optional
        Replaces the table of classes by role, for example by the classes of the paper.
    """
    header = manifest.header
    tables = [
        _identity(manifest),
        *([_tasks(header)] if header.tasks else []),
        part_table(header),
        _selections(header),
        classes or _classes(header),
        _sources(header),
        _rule(header),
    ]
    if header.figures:
        tables.append(figure_table(header.figures))
    if header.notes:
        tables.append(Table("Notes", ("",), tuple((note,) for note in header.notes)))
    return tables


def figure_table(figures: Sequence[Figure], title: str = "Figures") -> Table:
    """Return the figures of the paper with the obtained numbers; adjacent rows do not repeat an explanation."""
    rows, last = [], ""
    for figure in figures:
        remark = figure.explanation or ("same" if figure.paper == figure.obtained else "")
        cell = "as above" if remark == last not in ("", "same") else remark
        rows.append((figure.name, count(figure.paper), count(figure.obtained), cell))
        last = remark
    return Table(title, ("figure", "paper", "obtained", "remark"), tuple(rows))


def part_table(header: Header) -> Table:
    """Return a row for each part: role, task (if there are tasks), images, annotated images, objects, short digest."""
    rows = []
    for part in header.parts:
        objects = ", ".join(f"{name} {count}" for name, count in part.boxes.items() if count) or "-"
        task = (part.task or "-",) if header.tasks else ()
        counts = (count(part.images), count(part.annotated_images), objects)
        rows.append((part.name, part.role, *task, *counts, (part.sha256 or "declared")[:19]))
    task = ("task",) if header.tasks else ()
    return Table("Parts", ("part", "role", *task, "images", "annotated", "objects", "digest"), tuple(rows))


def _identity(manifest: Manifest) -> Table:
    header = manifest.header
    paper = header.paper
    paper_text = "none" if paper is None else f"{paper.title}. {paper.authors}. {paper.venue} {paper.year}"
    rows = [
        ("title", header.title),
        ("paper", paper_text),
        ("taxonomy", header.taxonomy),
        ("origin", header.origin),
        ("digest", manifest.digest),
    ]
    if header.completes:
        rows.append(("completes", header.completes))
    if header.supersedes:
        rows.append(("supersedes", f"{header.supersedes.version}: {header.supersedes.reason}"))
    return Table(f"{header.name} {header.version}", ("", ""), tuple(rows))


def _tasks(header: Header) -> Table:
    rows = tuple((task.name, str(len(task.introduced)), ", ".join(task.introduced)) for task in header.tasks)
    return Table("Tasks", ("task", "classes", "introduced"), rows)


def _selections(header: Header) -> Table:
    rows = []
    for part in header.parts:
        treatments = {name: getattr(part.view, name) for name in part.view.__struct_fields__}
        view = ", ".join(f"{name} {treatment}" for name, treatment in treatments.items() if treatment != "keep")
        inside = f" Subset of {part.subset_of}." if part.subset_of else ""
        repeats = f" {part.repeats} lines name an image again." if part.repeats else ""
        rows.append((part.name, view, f"{part.selection}{inside}{repeats}"))
    return Table("Rules of the parts", ("part", "label view", "selection"), tuple(rows))


def _classes(header: Header) -> Table:
    rows = []
    for role in dict.fromkeys(entry.role for entry in header.classes):
        names = [
            entry.name + (f" (= {', '.join(entry.aliases)})" if entry.aliases else "")
            for entry in header.classes
            if entry.role == role
        ]
        rows.append((role, str(len(names)), ", ".join(names)))
    return Table("Classes", ("role", "classes", "names"), tuple(rows))


def _sources(header: Header) -> Table:
    rows = []
    for entry in header.sources:
        files = ", ".join(f"{file.name} ({file.rows} rows, {file.sha256[:19]})" for file in entry.files)
        dropped = ", ".join(f"{count} {reason}" for reason, count in entry.dropped.items())
        exhaustive = f"every image annotated for: {', '.join(entry.exhaustive)}" if entry.exhaustive else ""
        remarks = (entry.note, dropped and f"left out: {dropped}", exhaustive)
        remark = "; ".join(text for text in remarks if text)
        rows.append((entry.name, f"{entry.dataset} {entry.part}", files or "-", entry.licence, remark))
    return Table("Sources", ("source", "data", "files", "licence", "remark"), tuple(rows))


def _rule(header: Header) -> Table:
    rows = [("protocol", f"{header.rule.protocol}, algorithm version {header.rule.algorithm_version}")]
    for name, value in header.rule.parameters.items():
        text = ", ".join(str(element) for element in value) if isinstance(value, tuple) else str(value)
        more = f" … ({len(text):,} characters; --json has all)" if len(text) > _LONGEST_VALUE else ""
        rows.append((name, text[:_LONGEST_VALUE] + more))
    return Table("Rule", ("parameter", "value"), tuple(rows))


@dataclass(frozen=True, slots=True)
class PartComposition:
    """Images and objects of a part after its label view is applied.

    Attributes
    ----------
    part : PartEntry
    images : int or None
        Number of different images; None if a declared part was never computed.
    annotated_images : int or None
        Images with at least one object that the view does not drop.
    labelled : dict of str to int, or None
        Objects of each role that the view does not drop, and the ``difficult`` and ``crowd`` ones among them.
    hidden : dict of str to int, or None
        Objects of each role that the view drops. In a training part, those of role ``unknown`` are hidden unknowns
        (rule CO5 of the audit).
    hidden_images : dict of str to int, or None
        Images that show a hidden object of each role.
    by_class : tuple of dict
        For each class of the header: role, images with it, and numbers of objects, of objects that the view labels and
        hides, and of crowd regions (None without boxes); empty if the sources of the part are not available.
    missing : str
        Why a value is None, or ``""``.
    """

    part: PartEntry
    images: int | None
    annotated_images: int | None
    labelled: dict[str, int] | None
    hidden: dict[str, int] | None
    hidden_images: dict[str, int] | None
    by_class: tuple[dict[str, Any], ...] = ()
    missing: str = ""


def compose(manifest: Manifest, sources: Mapping[str, Source]) -> tuple[PartComposition, ...]:
    """Return the composition of each part, in the order of the header.

    Parameters
    ----------
    sources : mapping of str to Source
        By the names in the header. A part without list or sources is described only by its header entry, and a part
        with a presence-only source only by its images.

    Raises
    ------
    ManifestError
        An image of a part is in none of its sources, or an object's class has no role in the manifest.
    """
    return tuple(_composed(manifest, part, sources) for part in manifest.header.parts)


def _composed(manifest: Manifest, part: PartEntry, sources: Mapping[str, Source]) -> PartComposition:
    classes = classes_in(manifest.header, part)
    absent = [f"--source {slot}=PATH" for slot in part.sources if slot not in sources]
    if absent or part.name not in manifest.lists:
        images = None if part.images is None else part.images - part.repeats
        missing = f"{' '.join(absent)} is not given" if part.name in manifest.lists else "its list is not available"
        box_counts = dict(part.boxes) or None
        return PartComposition(part, images, part.annotated_images, box_counts, None, None, missing=missing)
    located = locate_images(manifest, part.name, sources)
    boxed = all(source.objects is not None for source in located.sources)
    objects = _objects(part, classes, located) if boxed else _statements(part, classes, located)
    labelled, hidden = objects[~objects.hidden], objects[objects.hidden]
    hidden_images = hidden.groupby("role").image.nunique()
    return PartComposition(
        part=part,
        images=len(set(manifest.ids(part.name))),
        annotated_images=labelled.image.nunique(),
        labelled=_counts(labelled) if boxed else None,
        hidden=_counts(hidden) if boxed else None,
        hidden_images={ROLES[role]: n for role, n in zip(hidden_images.index, hidden_images.tolist(), strict=True)},
        by_class=tuple(_class_rows(classes, objects, boxed=boxed)),
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


def _class_rows(classes: Sequence[ClassEntry], objects: pd.DataFrame, *, boxed: bool) -> Iterator[dict[str, Any]]:
    by_label = objects.assign(labelled=~objects.hidden).groupby("label")
    counts = by_label.agg(
        images=("image", "nunique"),
        objects=("image", "size"),
        labelled=("labelled", "sum"),
        hidden=("hidden", "sum"),
        crowd=("crowd", "sum"),
    )
    rows = counts.reindex(range(len(classes)), fill_value=0).astype(int).to_dict("records")
    for entry, row in zip(classes, rows, strict=True):
        numbers = {str(name): number if boxed or name == "images" else None for name, number in row.items()}
        yield {"name": entry.name, "index": entry.index, "role": entry.role, **numbers}


def composition_data(manifest: Manifest, parts: Sequence[PartComposition]) -> dict[str, Any]:
    """Return the composition of a manifest as plain data; unknown values are null, with the reason in ``missing``."""
    rows = [
        {
            "part": part.part.name,
            "task": part.part.task,
            "split": part.part.role,
            "sha256": part.part.sha256,
            "images": part.images,
            "repeated_lines": part.part.repeats,
            "annotated_images": part.annotated_images,
            "labelled_objects": part.labelled,
            "hidden_objects": part.hidden,
            "images_with_hidden_objects": part.hidden_images,
            "by_class": list(part.by_class),
            "missing": part.missing,
        }
        for part in parts
    ]
    header = manifest.header
    return {"name": header.name, "version": header.version, "digest": manifest.digest, "parts": rows}


def composition_csv(parts: Sequence[PartComposition]) -> str:
    """Return the counts of each class in each part, as CSV.

    Raises
    ------
    UsageError
        No source of a part was given.
    """
    rows = [
        (part.part.name, part.part.task, part.part.role, *entry.values()) for part in parts for entry in part.by_class
    ]
    if not rows:
        raise UsageError("--out counts the objects of each class in the sources", expected="--source NAME=PATH")
    _, *names = next(part.by_class[0] for part in parts if part.by_class)
    return as_csv(("part", "task", "split", "class", *names), rows)


def composition_tables(header: Header, parts: Sequence[PartComposition]) -> list[Table]:
    """Return the table of the parts, and a table of the values that could not be counted."""

    def roles_in(*kinds: str) -> list[str]:
        counted = [getattr(part, kind) or {} for part in parts for kind in kinds]
        return [role for role in _ROLES_SHOWN if any(counts.get(role) for counts in counted)]

    labelled_roles, hidden = roles_in("labelled"), roles_in("hidden", "hidden_images")
    columns = [*labelled_roles, *(name for role in hidden for name in (f"hidden {role}", "in images")), "crowd"]
    rows = []
    for part in parts:
        counts = [(part.labelled, role) for role in labelled_roles]
        counts += [(kind, role) for role in hidden for kind in (part.hidden, part.hidden_images)]
        counts.append((part.labelled, "crowd"))
        numbers = (None if kind is None else kind.get(role, 0) for kind, role in counts)
        rows.append((part.part.name, *map(count, (part.images, part.annotated_images, *numbers))))
    title = f"{header.name} {header.version}: images, and objects under the label view of each part"
    tables = [Table(title, ("part", "images", "annotated", *columns), tuple(rows))]
    if missing := grouped((part for part in parts if part.missing), lambda part: part.missing):
        reasons = tuple((why, ", ".join(part.part.name for part in group)) for why, group in missing.items())
        tables.append(Table("Not counted", ("reason", "parts"), reasons))
    return tables
