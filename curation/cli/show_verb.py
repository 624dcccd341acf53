"""``curation show``: a manifest for the eye, and what it is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.cli.output import Answer, table_lines
from curation.cli.outputs import OutputFigure, OutputFile, figure_stem
from curation.errors import UsageError
from curation.manifest.composition import Composition, compose
from curation.manifest.locate import load_manifest
from curation.manifest.tables import manifest_data, manifest_tables
from curation.sources.given import open_slots
from curation.sources.slots import Reading, Sources
from curation.storage import write_text


def run(
    manifest: str,
    /,
    *,
    composition: bool = False,
    sources: Sources | None = None,
    reading: Reading,
    csv: Annotated[Path | None, OutputFile()] = None,
    figure: Annotated[Path | None, OutputFigure()] = None,
) -> Answer:
    """Print a manifest.

    Every digest is checked on the way.

    Parameters
    ----------
    manifest
        a folder, or NAME@VERSION of an available manifest
    composition
        images and objects of every part under its label view, by role and by class, and what the view hides; without
        --source, what the header says of it
    csv
        with --composition: the counts of each class in each part
    figure
        with --composition, of a manifest with tasks: the picture as FILE.png, FILE.svg and FILE.csv
    """
    idle = [name for name, one in (("source", sources), ("csv", csv), ("figure", figure)) if one]
    if idle and not composition:
        raise UsageError(f"--{idle[0]} goes with --composition", hint="curation show MANIFEST --composition")
    loaded = load_manifest(manifest)
    if not composition:
        lines = [line for table in manifest_tables(loaded) for line in table_lines(table)]
        return Answer(manifest_data(loaded), lines)
    if figure and not loaded.header.tasks:
        raise UsageError("--figure draws the composition of tasks, and the manifest has none")
    made = Composition(loaded, compose(loaded, open_slots(sources, loaded.slots, reading) if sources else {}))
    written = _written(made, csv, figure and figure_stem(figure))
    lines = [line for table in made.tables() for line in table_lines(table)]
    data = {**made.data(), "files": [str(path) for path in written]}
    return Answer(data, [*lines, *(f"wrote {path}" for path in written)])


def _written(made: Composition, csv: Path | None, stem: Path | None) -> list[Path]:
    """Write what ``--csv`` and ``--figure`` ask for, and return the files."""
    written: list[Path] = []
    if csv and stem and csv == stem.with_name(f"{stem.name}.csv"):
        raise UsageError("--csv names the file that --figure writes", where=str(csv))
    if csv:
        write_text(csv, made.csv())
        written.append(csv)
    if stem:
        from curation.evaluation.composition_figure import composition_figure

        header = made.manifest.header
        written += composition_figure(made.parts, f"{header.name} {header.version}", stem)
    return written
