"""The tables hold what the header says."""

import json

import msgspec

from curation.manifest.header import Figure, Supersedes
from curation.manifest.manifest import Manifest
from curation.manifest.show import figure_table, manifest_data, manifest_tables, part_table


def test_data_is_the_stored_header_with_its_digest_first(manifest: Manifest) -> None:
    data = manifest_data(manifest)
    assert next(iter(data)) == "digest"
    assert data["digest"] == manifest.digest
    assert json.loads(json.dumps(data))["parts"][0]["boxes"]["unknown"] == 2


def test_parts_and_figures(manifest: Manifest) -> None:
    figures = (
        Figure(name="closed.images", paper=4952, obtained=2, place="Table 1", explanation="a toy"),
        Figure(name="rest.images", paper=2, obtained=2, place="Table 1"),
    )
    header = msgspec.structs.replace(manifest.header, figures=figures)
    assert part_table(header).rows[1][:4] == ("rest", "test", "2", "1")
    assert figure_table(header.figures).rows == (
        ("closed.images", "4,952", "2", "a toy"),
        ("rest.images", "2", "2", "same"),
    )


def test_every_fact_is_shown(manifest: Manifest) -> None:
    header = msgspec.structs.replace(
        manifest.header,
        notes=("mind the gap",),
        supersedes=Supersedes(version="0.9.0", digest="sha256:" + "0" * 64, reason="a wrong list"),
        completes="sha256:" + "1" * 64,
    )
    tables = manifest_tables(Manifest(header=header, lists=manifest.lists))
    text = "\n".join(cell for table in tables for row in table.rows for cell in row)
    for fact in (
        manifest.header.title,
        "aeroplane (= airplane)",
        "toy.json (6 rows",
        "by hand",
        "unknown rename:unknown",
        "mind the gap",
        "a wrong list",
        "sha256:" + "1" * 64,
        "CC0",
        "0.5",
    ):
        assert fact in text
