"""``curation show``: print a manifest and its composition."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from curation.benchmarks.registry import benchmarks
from curation.cli.output import Answer
from curation.cli.outputs import output_file
from curation.core.errors import UsageError
from curation.core.writing import write_text
from curation.manifest.locate import load_manifest
from curation.manifest.tables import (
    compose,
    composition_csv,
    composition_data,
    composition_tables,
    manifest_data,
    manifest_tables,
)
from curation.sources.opening import open_slots
from curation.sources.source_specs import Reading, Sources


def run(
    manifest: str,
    /,
    *,
    composition: bool = False,
    sources: Sources | None = None,
    reading: Reading,
    out: Annotated[Path | None, output_file(".csv")] = None,
) -> Answer:
    """Print a manifest.

    Every digest is checked.

    Parameters
    ----------
    manifest
        a folder, or NAME@VERSION of an available manifest
    composition
        images and objects of every part under its label view, by role, and what the view hides; without
        --source, only the numbers of the header
    out
        with --composition: write the counts of each class in each part as CSV
    """
    idle = [name for name, value in (("source", sources), ("out", out)) if value]
    if idle and not composition:
        raise UsageError(f"--{idle[0]} needs --composition", hint="curation show MANIFEST --composition")
    loaded = load_manifest(manifest)
    if not composition:
        known = benchmarks().get(loaded.header.rule.protocol)
        classes = known.class_table(loaded.header) if known and known.class_table else None
        return Answer(manifest_data(loaded), manifest_tables(loaded, classes))
    parts = compose(loaded, open_slots(sources, loaded.slots, reading) if sources else {})
    if out:
        write_text(out, composition_csv(parts))
    written = [out] if out else []
    data = {**composition_data(loaded, parts), "files": [*map(str, written)]}
    return Answer(data, composition_tables(loaded.header, parts), written=written)
