"""``curation show``: a manifest for the eye."""

from __future__ import annotations

import argparse

from curation.cli.output import emit, table_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation show``."""
    parser.add_argument(
        "manifest", metavar="MANIFEST", help="a folder, or NAME@VERSION of a manifest at hand"
    )
    parser.add_argument("--json", action="store_true", help="print the header with its digest as JSON")


def run(options: argparse.Namespace) -> int:
    """Print the manifest, every digest checked on the way."""
    from curation.cli.manifest_tables import manifest_data, manifest_tables
    from curation.manifest.locate import load_manifest

    manifest = load_manifest(options.manifest)
    lines = [line for table in manifest_tables(manifest) for line in table_lines(table)]
    emit(manifest_data(manifest), lines, as_json=options.json)
    return 0
