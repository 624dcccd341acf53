"""The tables hold what the header says."""

import json
from pathlib import Path

import msgspec
import pytest

from curation.manifest.header import Figure, Header, Supersedes, TaskEntry
from curation.manifest.manifest import Manifest, read_manifest
from curation.manifest.tables import figure_table, manifest_data, manifest_tables, part_table


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return read_manifest(Path(__file__).parents[2] / "manifests/elephant/val2017/1.0.0")


def text_of(header: Header) -> str:
    tables = manifest_tables(Manifest(header=header, lists={}))
    return "\n".join(cell for table in tables for row in table.rows for cell in row)


def test_data_is_the_stored_header_with_its_digest_first(manifest: Manifest) -> None:
    data = manifest_data(manifest)
    assert next(iter(data)) == "digest"
    assert data["digest"] == manifest.digest
    assert json.loads(json.dumps(data))["parts"][0]["boxes"]["known"] == 14_976


def test_a_notebook_shows_the_parts_and_escapes_every_name(manifest: Manifest) -> None:
    hostile = "<script>alert('x')</script>"
    part = msgspec.structs.replace(manifest.header.parts[0], name=hostile, task=hostile)
    header = msgspec.structs.replace(manifest.header, title=f"{hostile}\n", parts=(part,) * 400, notes=("n" * 100_000,))
    table = Manifest(header, {})._repr_html_()
    assert "<script" not in table
    assert len(table) < 12_000
    assert len(repr(Manifest(header, {}))) <= 240
    assert len(repr(header)) <= 240


def test_parts_and_figures(manifest: Manifest) -> None:
    figures = (
        Figure(name="closed.images", paper=4952, obtained=2, place="Table 1", explanation="a toy"),
        Figure(name="closed.boxes", paper=9, obtained=2, place="Table 1", explanation="a toy"),
        Figure(name="rest.images", paper=2, obtained=2, place="Table 1"),
    )
    assert part_table(manifest.header).rows[1][:4] == ("wilderness", "wilderness", "969", "921")
    assert figure_table(figures).rows == (
        ("closed.images", "4,952", "2", "a toy"),
        ("closed.boxes", "9", "2", "as above"),
        ("rest.images", "2", "2", "same"),
    )


def test_every_fact_is_shown(manifest: Manifest) -> None:
    header = msgspec.structs.replace(
        manifest.header,
        notes=("mind the gap",),
        supersedes=Supersedes(version="0.9.0", digest="sha256:" + "0" * 64, reason="a wrong list"),
        completes="sha256:" + "1" * 64,
    )
    text = text_of(header)
    for fact in (
        header.title,
        "aeroplane (= airplane)",
        "instances_val2017_rebuilt.json (36781 rows",
        "floor(0.1 * N) = 495",
        "unknown rename:unknown",
        "mind the gap",
        "a wrong list",
        "sha256:" + "1" * 64,
        header.sources[1].licence,
        "elephant/wilderness-ratio",
    ):
        assert fact in text


def test_tasks_repeats_and_exhaustive_classes_are_shown_where_there_are_any(manifest: Manifest) -> None:
    header = manifest.header
    part = msgspec.structs.replace(header.parts[0], task="t2", repeats=7)
    source = msgspec.structs.replace(header.sources[0], exhaustive=("cat", "dog"))
    tasks = (TaskEntry("t1", ("person",)), TaskEntry("t2", ("truck", "toilet")))
    with_tasks = msgspec.structs.replace(header, tasks=tasks, parts=(part,), sources=(source,))
    text = text_of(with_tasks)
    for fact in ("truck, toilet", "7 lines name an image again", "every image annotated for: cat, dog"):
        assert fact in text
        assert fact not in text_of(header)
    assert part_table(with_tasks).rows[0][:4] == ("closed", "test", "t2", "4,952")
    assert "task" not in part_table(header).columns
