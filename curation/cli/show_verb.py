"""``curation show``: a manifest for the eye, and what it is made of."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from curation.cli.output import emit, table_lines
from curation.cli.outputs import OutputFigure, OutputFile, figure_stem
from curation.cli.source_options import add_source_options, open_sources, slots_of
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.manifest.composition import PartComposition
    from curation.manifest.manifest import Manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation show``."""
    parser.add_argument(
        "manifest", metavar="MANIFEST", help="a folder, or NAME@VERSION of a manifest at hand"
    )
    parser.add_argument(
        "--composition",
        action="store_true",
        help="images and objects of every part under its label view, by role and by class, and what the view hides; "
        "without --source, what the header says of it",
    )
    add_source_options(parser)
    parser.add_argument(
        "--csv",
        type=OutputFile(),
        metavar="FILE",
        help="with --composition: the counts of each class in each part",
    )
    parser.add_argument(
        "--figure",
        type=OutputFigure(),
        metavar="FILE",
        help="with --composition, of a manifest with tasks: the picture as FILE.png, FILE.svg and FILE.csv",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the header with its digest, or the composition, as JSON"
    )


def run(options: argparse.Namespace) -> int:
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
    emit(manifest_data(manifest), lines, as_json=options.json)
    return 0


def _show_composition(options: argparse.Namespace, manifest: Manifest) -> int:
    from curation.cli.composition_tables import composition_data, composition_tables
    from curation.manifest.composition import compose

    if options.figure and not manifest.header.tasks:
        raise UsageError("--figure draws the composition of tasks, and the manifest has none")
    sources = open_sources(options, slots_of(manifest.header)) if options.source else {}
    compositions = compose(manifest, sources)
    written = _written(options, manifest, compositions)
    lines = [
        line for table in composition_tables(manifest.header, compositions) for line in table_lines(table)
    ]
    data = {**composition_data(manifest, compositions), "files": [str(path) for path in written]}
    emit(data, [*lines, *(f"wrote {path}" for path in written)], as_json=options.json)
    return 0


def _written(
    options: argparse.Namespace, manifest: Manifest, compositions: tuple[PartComposition, ...]
) -> list[Path]:
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
