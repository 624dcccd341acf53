"""``curation show``: a manifest for the eye, and what it is made of."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from curation.cli.options import SourceOptions
from curation.cli.output import Answer, table_lines
from curation.cli.outputs import OutputFigure, OutputFile, figure_stem
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.manifest.composition import PartComposition
    from curation.manifest.manifest import Manifest


@dataclass(frozen=True)
class Options(SourceOptions):
    """Print a manifest.

    Attributes
    ----------
    manifest
        a folder, or NAME@VERSION of a manifest at hand
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
    from curation.cli.manifest_tables import manifest_data, manifest_tables
    from curation.manifest.locate import load_manifest

    idle = [name for name in ("source", "csv", "figure") if getattr(options, name)]
    if idle and not options.composition:
        raise UsageError(f"--{idle[0]} goes with --composition", hint="curation show MANIFEST --composition")
    manifest = load_manifest(options.manifest)
    if options.composition:
        return _show_composition(options, manifest)
    lines = [line for table in manifest_tables(manifest) for line in table_lines(table)]
    return Answer(manifest_data(manifest), lines)


def _show_composition(options: Options, manifest: Manifest) -> Answer:
    from curation.cli.composition_tables import composition_data, composition_tables
    from curation.manifest.composition import compose

    if options.figure and not manifest.header.tasks:
        raise UsageError("--figure draws the composition of tasks, and the manifest has none")
    sources = options.open(manifest.slots) if options.source else {}
    compositions = compose(manifest, sources)
    written = _written(options, manifest, compositions)
    lines = [
        line for table in composition_tables(manifest.header, compositions) for line in table_lines(table)
    ]
    data = {**composition_data(manifest, compositions), "files": [str(path) for path in written]}
    return Answer(data, [*lines, *(f"wrote {path}" for path in written)])


def _written(options: Options, manifest: Manifest, compositions: tuple[PartComposition, ...]) -> list[Path]:
    """Write what ``--csv`` and ``--figure`` ask for, and return the files."""
    from curation.cli.composition_tables import CSV_HEADER, class_rows
    from curation.csv_table import as_csv
    from curation.storage import write_text

    written: list[Path] = []
    stem = options.figure and figure_stem(options.figure)
    if stem and options.csv == stem.with_name(f"{stem.name}.csv"):
        raise UsageError("--csv names the file that --figure writes", where=str(options.csv))
    if options.csv:
        if not any(one.by_class for one in compositions):
            raise UsageError("--csv counts the objects of each class, and no source of a part is given")
        write_text(options.csv, as_csv(CSV_HEADER, class_rows(compositions)))
        written.append(options.csv)
    if stem:
        from curation.evaluation.composition_figure import composition_figure

        title = f"{manifest.header.name} {manifest.header.version}"
        written += composition_figure(compositions, title, stem)
    return written
