"""``curation show``: a manifest for the eye, and what it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from curation.cli.options import SourceOptions
from curation.cli.output import Answer, Table, table_lines
from curation.cli.outputs import OutputFigure, OutputFile, figure_stem
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.manifest.composition import PartComposition
    from curation.manifest.header import Header
    from curation.manifest.manifest import Manifest

_SPLITS = ("train", "finetune", "val", "test", "wilderness")
_ROLES = ("known", "previous", "negative", "unknown", "ignored")
_CSV_HEADER = (
    "part", "task", "split", "class", "index", "role", "images", "objects", "labelled", "hidden", "crowd",
)  # fmt: skip


@dataclass(frozen=True)
class Options(SourceOptions):
    """Print a manifest.

    Attributes
    ----------
    manifest
        a folder, or NAME@VERSION of an available manifest
    composition
        images and objects of every part under its label view, by role and by class, and what the view
        hides; without --source, what the header says of it
    csv
        with --composition: the counts of each class in each part
    figure
        with --composition, of a manifest with tasks: the picture as FILE.png, FILE.svg and FILE.csv
    """

    manifest: str
    _: KW_ONLY
    composition: bool = False
    csv: Annotated[Path | None, OutputFile()] = None
    figure: Annotated[Path | None, OutputFigure()] = None


def run(options: Options) -> Answer:
    """Print the manifest, every digest checked on the way."""
    from curation.manifest.locate import load_manifest
    from curation.manifest.tables import manifest_data, manifest_tables

    idle = [name for name in ("source", "csv", "figure") if getattr(options, name)]
    if idle and not options.composition:
        raise UsageError(f"--{idle[0]} goes with --composition", hint="curation show MANIFEST --composition")
    manifest = load_manifest(options.manifest)
    if options.composition:
        return _show_composition(options, manifest)
    lines = [line for table in manifest_tables(manifest) for line in table_lines(table)]
    return Answer(manifest_data(manifest), lines)


def _show_composition(options: Options, manifest: Manifest) -> Answer:
    from curation.manifest.composition import compose

    if options.figure and not manifest.header.tasks:
        raise UsageError("--figure draws the composition of tasks, and the manifest has none")
    sources = options.open(manifest.slots) if options.source else {}
    compositions = compose(manifest, sources)
    written = _written(options, manifest, compositions)
    lines = [line for table in _composition_tables(manifest.header, compositions) for line in table_lines(table)]
    data = {**_composition_data(manifest, compositions), "files": [str(path) for path in written]}
    return Answer(data, [*lines, *(f"wrote {path}" for path in written)])


def _written(options: Options, manifest: Manifest, compositions: tuple[PartComposition, ...]) -> list[Path]:
    """Write what ``--csv`` and ``--figure`` ask for, and return the files."""
    from curation.csv_table import as_csv
    from curation.storage import write_text

    written: list[Path] = []
    stem = options.figure and figure_stem(options.figure)
    if stem and options.csv == stem.with_name(f"{stem.name}.csv"):
        raise UsageError("--csv names the file that --figure writes", where=str(options.csv))
    if options.csv:
        if not any(one.by_class for one in compositions):
            raise UsageError("--csv counts the objects of each class, and no source of a part is given")
        write_text(options.csv, as_csv(_CSV_HEADER, _class_rows(compositions)))
        written.append(options.csv)
    if stem:
        from curation.evaluation.composition_figure import composition_figure

        title = f"{manifest.header.name} {manifest.header.version}"
        written += composition_figure(compositions, title, stem)
    return written


def _composition_data(manifest: Manifest, compositions: Sequence[PartComposition]) -> dict[str, Any]:
    """Return the composition as plain data; what is not known is null, with the reason in ``missing``."""
    header = manifest.header
    return {
        "name": header.name,
        "version": header.version,
        "digest": manifest.digest,
        "parts": [_part_data(one) for one in compositions],
    }


def _composition_tables(header: Header, compositions: Sequence[PartComposition]) -> list[Table]:
    """Return the table of the parts, that of the classes, and one of what could not be counted."""
    tables = [_part_table(header, compositions)]
    if any(one.by_class for one in compositions):
        tables.append(_class_table(header, compositions))
    missing: dict[str, list[str]] = {}
    for one in compositions:
        if one.missing:
            missing.setdefault(one.missing, []).append(one.part.name)
    if missing:
        rows = tuple((reason, ", ".join(parts)) for reason, parts in missing.items())
        tables.append(Table("Not counted", ("reason", "parts"), rows))
    return tables


def _class_rows(compositions: Sequence[PartComposition]) -> Iterator[tuple[Any, ...]]:
    """Yield one row a class and part, as `_CSV_HEADER` names the columns."""
    for one in compositions:
        place = (one.part.name, one.part.task, one.part.role)
        for entry in one.by_class:
            hidden = None if entry.objects is None else entry.objects - (entry.labelled or 0)
            counts = (entry.images, entry.objects, entry.labelled, hidden, entry.crowd)
            yield (*place, entry.name, entry.index, entry.role, *counts)


def _part_data(one: PartComposition) -> dict[str, Any]:
    names = ("name", "index", "role", "images", "objects", "labelled", "crowd")
    return {
        "part": one.part.name,
        "task": one.part.task,
        "split": one.part.role,
        "sha256": one.part.sha256,
        "images": one.images,
        "repeated_lines": one.part.repeats,
        "annotated_images": one.annotated_images,
        "classes": one.classes,
        "labelled_objects": one.labelled,
        "hidden_objects": one.hidden,
        "images_with_hidden_objects": one.hidden_images,
        "by_class": [{name: getattr(entry, name) for name in names} for entry in one.by_class],
        "missing": one.missing,
    }


def _part_table(header: Header, compositions: Sequence[PartComposition]) -> Table:
    shown = [role for role in _ROLES if any((one.labelled or {}).get(role) for one in compositions)]
    hidden = [
        role
        for role in _ROLES
        if any((counts or {}).get(role) for one in compositions for counts in (one.hidden, one.hidden_images))
    ]
    columns = ["part", "images", "annotated", *shown]
    columns += [name for role in hidden for name in (f"hidden {role}", "in images")]
    rows = []
    for one in compositions:
        row = [one.part.name, _number(one.images), _number(one.annotated_images)]
        row += [_of(one.labelled, role) for role in shown]
        row += [_of(counts, role) for role in hidden for counts in (one.hidden, one.hidden_images)]
        rows.append((*row, _of(one.labelled, "crowd")))
    title = f"{header.name} {header.version}: images, and objects under the label view of each part"
    return Table(title, (*columns, "crowd"), tuple(rows))


def _class_table(header: Header, compositions: Sequence[PartComposition]) -> Table:
    """Return the labelled objects of each class: with tasks, in the parts of its own task, else in every part."""
    if not header.tasks:
        columns = [one.part.name for one in compositions if one.by_class]
        counts = {one.part.name: one for one in compositions}
        rows = [
            (
                str(entry.index),
                entry.name,
                entry.role,
                *(_labelled(counts[part], entry.name) for part in columns),
            )
            for entry in header.classes
        ]
        return Table("Objects of each class", ("index", "class", "role", *columns), tuple(rows))
    task_of = {name: task.name for task in header.tasks for name in task.introduced}
    found = {one.part.role for one in compositions if one.by_class}
    splits = [role for role in _SPLITS if role in found]
    at = {(one.part.task, one.part.role): one for one in reversed(compositions)}
    rows = []
    for entry in header.classes:
        task = task_of.get(entry.name, "")
        counted = [_labelled(at.get((task, split)), entry.name) for split in splits]
        rows.append((str(entry.index), entry.name, task or "-", *counted))
    title = "Labelled objects of each class in the parts of the task that introduces it (--csv FILE: in all parts)"
    return Table(title, ("index", "class", "task", *splits), tuple(rows))


def _labelled(one: PartComposition | None, name: str) -> str:
    found = [entry.labelled for entry in one.by_class if entry.name == name] if one else []
    return _number(found[0]) if found else "-"


def _of(counts: dict[str, int] | None, name: str) -> str:
    return "-" if counts is None else f"{counts.get(name, 0):,}"


def _number(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
