"""A manifest for the eye: tables of its parts, classes, sources and figures."""

from __future__ import annotations

from collections.abc import Sequence

from curation.core.pages import count
from curation.core.tables import Table
from curation.manifest.header import Figure, Header
from curation.manifest.manifest import Manifest
from curation.manifest.manifest import manifest_data as manifest_data

_LONGEST_VALUE = 600
"""Characters of a parameter that are shown: recorded decisions have tens of thousands."""


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
    """Return the figures of the paper beside those obtained; adjacent rows do not repeat an explanation."""
    rows, last = [], ""
    for figure in figures:
        remark = figure.explanation or ("same" if figure.paper == figure.obtained else "")
        cell = "as above" if remark == last not in ("", "same") else remark
        rows.append((figure.name, count(figure.paper), count(figure.obtained), cell))
        last = remark
    return Table(title, ("figure", "paper", "obtained", "remark"), tuple(rows))


def part_table(header: Header, *, digest_length: int = 19) -> Table:
    """Return one row a part: role, task, images, annotated images, objects by role, start of the digest.

    Without tasks this column is absent.
    """
    rows = []
    for part in header.parts:
        objects = ", ".join(f"{name} {count}" for name, count in part.boxes.items() if count) or "-"
        task = (part.task or "-",) if header.tasks else ()
        counts = (count(part.images), count(part.annotated_images), objects)
        rows.append((part.name, part.role, *task, *counts, (part.sha256 or "declared")[:digest_length]))
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
