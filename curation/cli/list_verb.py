"""``curation list``: protocols, what they need, and the manifests at hand."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from curation.cli.output import Table, emit, table_lines, warn

if TYPE_CHECKING:
    from curation.protocols.protocol import Protocol


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation list``."""
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def run(options: argparse.Namespace) -> int:
    """Print protocols with paper, sources and parameters, then the manifests at hand."""
    from curation.protocols.registry import PROTOCOLS

    protocols = [_protocol_data(protocol) for protocol in PROTOCOLS.values()]
    manifests = _manifests()
    lines: list[str] = []
    for protocol in protocols:
        lines += _protocol_lines(protocol)
    columns = ("name", "version", "origin", "parts", "folder")
    rows = tuple(tuple(str(one[column]) for column in columns) for one in manifests)
    lines += table_lines(
        Table("Manifests at hand" if rows else "No manifests at hand", columns if rows else (), rows)
    )
    emit({"protocols": protocols, "manifests": manifests}, lines, as_json=options.json)
    return 0


def _protocol_data(protocol: Protocol) -> dict[str, Any]:
    paper = protocol.paper
    return {
        "name": protocol.name,
        "summary": protocol.summary,
        "paper": {
            "title": paper.title,
            "authors": paper.authors,
            "year": paper.year,
            "venue": paper.venue,
            "bibtex": paper.bibtex,
        },
        "sources": [
            {
                "name": slot.name,
                "dataset": slot.dataset,
                "part": slot.part,
                "required": slot.required,
                "meaning": slot.meaning,
            }
            for slot in protocol.slots
        ],
        "parameters": [
            {"name": parameter.name, "default": parameter.default, "meaning": parameter.meaning}
            for parameter in protocol.parameters
        ],
    }


def _protocol_lines(protocol: dict[str, Any]) -> list[str]:
    paper = protocol["paper"]
    sources = tuple(
        (slot["name"], "required" if slot["required"] else "optional", slot["meaning"])
        for slot in protocol["sources"]
    )
    parameters = tuple((one["name"], one["default"], one["meaning"]) for one in protocol["parameters"])
    return [
        f"{protocol['name']}: {protocol['summary']}",
        f"  {paper['title']}. {paper['authors']}. {paper['venue']} {paper['year']}",
        "",
        *table_lines(Table("  sources (--source NAME=PATH)", ("", "", ""), sources)),
        *table_lines(Table("  parameters (--set KEY=VALUE)", ("", "default", ""), parameters)),
    ]


def _manifests() -> list[dict[str, Any]]:
    """Return the manifests at hand; a damaged one is warned of and left out."""
    from curation.errors import CurationError
    from curation.manifest.locate import manifest_folders
    from curation.manifest.store import read_manifest

    found = []
    for folder in manifest_folders().values():
        try:
            manifest = read_manifest(folder)
        except CurationError as error:
            warn(f"{folder}: {error.what}")
            continue
        header = manifest.header
        found.append(
            {
                "name": header.name,
                "version": header.version,
                "origin": header.origin,
                "parts": ", ".join(part.name for part in header.parts),
                "folder": str(folder),
                "digest": manifest.digest,
            }
        )
    return found
