"""A manifest for the eye: tables of its parts, classes, sources and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from curation.manifest.header import Figure, Header, LabelView, PartEntry
from curation.manifest.manifest import Manifest
from curation.manifest.soundness import header_as_data
from curation.text_table import Table

_LONGEST_VALUE = 600
"""Characters of a parameter that are shown: recorded decisions have tens of thousands."""


def manifest_data(manifest: Manifest) -> dict[str, Any]:
    """Return the header as plain data with its digest first, as ``manifest.json`` holds it."""
    return {"digest": manifest.digest, **header_as_data(manifest.header)}


def manifest_tables(manifest: Manifest) -> list[Table]:
    """Return the tables of a manifest: identity, tasks, parts and their rules, classes, sources, figures, notes."""
    header = manifest.header
    tables = [
        _identity(manifest),
        *([_tasks(header)] if header.tasks else []),
        part_table(header),
        _selections(header),
        _classes(header),
        _sources(header),
        _rule(header),
    ]
    if header.figures:
        tables.append(figure_table(header.figures))
    if header.notes:
        tables.append(Table("Notes", ("",), tuple((note,) for note in header.notes)))
    return tables


def figure_table(figures: Sequence[Figure], title: str = "Figures") -> Table:
    """Return the paper's figures beside those obtained, with the explanation of each difference, told once in a row."""
    remarks = [one.explanation or ("same" if one.paper == one.obtained else "") for one in figures]
    rows = tuple(
        (
            figure.name,
            _count(figure.paper),
            _count(figure.obtained),
            "as above" if place and remark == remarks[place - 1] not in ("", "same") else remark,
        )
        for place, (figure, remark) in enumerate(zip(figures, remarks, strict=True))
    )
    return Table(title, ("figure", "paper", "obtained", "remark"), rows)


def part_table(header: Header, *, digest_length: int = 19) -> Table:
    """Return one row a part: role, task, images, annotated images, objects by role, start of the digest.

    Without tasks there is no such column.
    """
    with_tasks = bool(header.tasks)
    rows = tuple(
        (
            part.name,
            part.role,
            *((part.task or "-",) if with_tasks else ()),
            _count(part.images),
            _count(part.annotated_images),
            ", ".join(f"{name} {count}" for name, count in part.boxes.items() if count) or "-",
            (part.sha256 or "declared")[:digest_length],
        )
        for part in header.parts
    )
    task = ("task",) if with_tasks else ()
    return Table("Parts", ("part", "role", *task, "images", "annotated", "objects", "digest"), rows)


def _identity(manifest: Manifest) -> Table:
    header = manifest.header
    rows = [
        ("title", header.title),
        ("paper", f"{header.paper.title}. {header.paper.authors}. {header.paper.venue} {header.paper.year}"),
        ("taxonomy", header.taxonomy),
        ("origin", header.origin),
        ("digest", manifest.digest),
    ]
    if header.completes:
        rows.append(("completes", header.completes))
    if (one := header.overlay) is not None:
        rows.append(("overlay", f"of reviewers: {one.told} (rule {one.rule}), {one.sha256}"))
    if header.supersedes:
        rows.append(("supersedes", f"{header.supersedes.version}: {header.supersedes.reason}"))
    return Table(f"{header.name} {header.version}", ("", ""), tuple(rows))


def _tasks(header: Header) -> Table:
    rows = tuple((task.name, str(len(task.introduced)), ", ".join(task.introduced)) for task in header.tasks)
    return Table("Tasks", ("task", "classes", "introduced"), rows)


def _selections(header: Header) -> Table:
    rows = tuple((part.name, _view(part.view), _selection(part)) for part in header.parts)
    return Table("Rules of the parts", ("part", "label view", "selection"), rows)


def _view(view: LabelView) -> str:
    treatments = {name: getattr(view, name) for name in view.__struct_fields__}
    return ", ".join(f"{name} {treatment}" for name, treatment in treatments.items() if treatment != "keep")


def _selection(part: PartEntry) -> str:
    inside = f" Subset of {part.subset_of}." if part.subset_of else ""
    repeats = f" {part.repeats} lines name an image again." if part.repeats else ""
    return f"{part.selection}{inside}{repeats}"


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
        text = ", ".join(str(one) for one in value) if isinstance(value, tuple) else str(value)
        more = f" … ({len(text):,} characters; --json has all)" if len(text) > _LONGEST_VALUE else ""
        rows.append((name, text[:_LONGEST_VALUE] + more))
    return Table("Rule", ("parameter", "value"), tuple(rows))


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
