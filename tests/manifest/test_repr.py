"""Records at a prompt: one short line each, a small table in a notebook, names escaped."""

import re
from pathlib import Path

import msgspec
import pytest

from curation.extensions.audit.run import run_audit
from curation.manifest.diff import diff_manifests
from curation.manifest.locate import manifest_folders
from curation.manifest.manifest import Manifest, read_manifest
from tests.extensions.audit.benchmark_world import World

ROOT = Path(__file__).parents[2] / "manifests"
LINE = 240


def is_short(record: object) -> bool:
    return "\n" not in repr(record) and len(repr(record)) <= LINE


@pytest.mark.parametrize("name", ["elephant/val2017@1.0.0", "imagenet/p2@1.0.0", "owod/reowod@1.0.0"])
def test_a_committed_manifest_is_one_line(name: str) -> None:
    manifest = read_manifest(manifest_folders([ROOT])[name])
    assert is_short(manifest)
    assert name.replace("@", " ") in repr(manifest)
    assert manifest.digest[:19] in repr(manifest)
    header = manifest.header
    records: list[object] = [header, header.paper, header.rule, *header.parts, *header.sources, *header.classes]
    records += [manifest.lists, diff_manifests(manifest, Manifest(header, {}))]
    for record in [*records, *header.figures, *(part.view for part in header.parts)]:
        assert is_short(record), repr(record)[:300]


def test_sources_and_audits_are_one_line() -> None:
    world = World()
    source, audit = world.train_source, run_audit(world.target())
    for record in (source, source.images, source.objects, source.categories, audit, audit.target):
        assert is_short(record), repr(record)[:300]
    for record in (*audit.target.lists, *audit.target.sources, *audit.results):
        assert is_short(record), repr(record)[:300]
    assert "dataset='toy'" in repr(source)
    assert f"images=Images({len(source.images)} rows)" in repr(source)


def test_a_notebook_shows_the_parts_and_escapes_every_name() -> None:
    manifest = World().manifest
    table = manifest._repr_html_()
    assert table.count("<tr>") == 1 + len(manifest.header.parts)
    assert len(table) < 10_000
    hostile = "<script>alert('x')</script>"
    header = msgspec.structs.replace(
        manifest.header,
        title=f"{hostile}\n",
        parts=(msgspec.structs.replace(manifest.header.parts[0], name=hostile, task=hostile),),
    )
    table = Manifest(header, {})._repr_html_()
    assert "<script" not in table
    assert set(re.findall(r"<([a-z]+)", table)) == {"table", "caption", "tr", "th", "td"}


def test_many_parts_are_cut_and_counted() -> None:
    manifest = World().manifest
    parts = tuple(msgspec.structs.replace(manifest.header.parts[0], name=f"p{n}") for n in range(400))
    header = msgspec.structs.replace(manifest.header, parts=parts, title="t" * 100_000, notes=("n" * 100_000,))
    many = Manifest(header, {})
    assert is_short(many)
    assert is_short(header)
    assert "and 376 more" in many._repr_html_()
    assert len(many._repr_html_()) < 10_000
