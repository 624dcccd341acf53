"""Folders of links by class: they lead to the photos, and nowhere else."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.benchmarks.imagenet.layout import plan_imagefolder
from curation.benchmarks.imagenet.lists import TRAIN, VAL, build
from curation.benchmarks.registry import declared
from curation.cli import main
from curation.errors import ExportError, MissingFileError, UsageError
from curation.ilsvrc2012 import ilsvrc2012_classes
from curation.manifest.manifest import Manifest, write_manifest
from curation.publishing.formats.plan import write_plan
from curation.sources.imagenet import read_imagenet
from curation.sources.source import Source

World = tuple[Manifest, dict[str, Source], Path]


def write_imagefolder(
    manifest: Manifest, parts: list[str], sources: dict[str, Source], root: Path, out: Path, *, summary: dict[str, Any]
) -> Mapping[str, int]:
    plan = plan_imagefolder(manifest, parts, sources, {"": root})
    write_plan(plan, out, single=False, summary={**summary, "counts": plan.counts})
    return plan.counts


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Photos of some animals in class folders, validation images in a flat folder."""
    root = tmp_path / "imagenet"
    for wnid in ilsvrc2012_classes()[286:300]:
        (root / "train" / wnid).mkdir(parents=True)
        for number in range(5):
            (root / "train" / wnid / f"{wnid}_{number}.JPEG").write_bytes(b"photo")
    (root / "val").mkdir()
    for number in range(286, 300):
        (root / "val" / f"ILSVRC2012_val_{number:08d}.JPEG").write_bytes(b"photo")
    (root / "val.txt").write_text("".join(f"ILSVRC2012_val_{one:08d}.JPEG {one}\n" for one in range(286, 300)))
    protocol = tmp_path / "cats.toml"
    protocol.write_text('name = "cats"\nknown = ["n02127808"]\nunknown = ["n02131653"]\ncut = "KN"\n')
    sources = {TRAIN: read_imagenet(root, part="train"), VAL: read_imagenet(root, part="val")}
    values: dict[str, Any] = {
        one.name: one.read(str(protocol) if one.name == "protocol" else one.default)
        for one in declared("imagenet").parameters
    }
    return build(sources, values), sources, root


def test_links_lead_to_the_photos(world: World, tmp_path: Path) -> None:
    manifest, sources, root = world
    out = tmp_path / "out"
    counts = write_imagefolder(manifest, ["train", "test"], sources, root, out, summary={"format": "imagefolder"})
    assert counts == {"train/known": 12, "train/negative": 12, "test/known": 3, "test/negative": 3, "test/unknown": 4}
    links = [path for path in out.rglob("*") if path.is_symlink()]
    assert len(links) == 34
    assert all(path.resolve().is_relative_to(root) and path.read_bytes() == b"photo" for path in links)
    # A loader of the known folder numbers the classes as the protocol does.
    known = [entry.name for entry in manifest.header.classes if entry.role == "known"]
    assert sorted(path.name for path in (out / "train/known").iterdir()) == known
    assert json.loads((out / "_export.json").read_text())["counts"] == counts


def test_a_photo_that_is_missing_or_leads_outside(world: World, tmp_path: Path) -> None:
    manifest, sources, root = world
    photo = root / "val" / "ILSVRC2012_val_00000288.JPEG"
    photo.unlink()
    out = tmp_path / "out"
    with pytest.raises(ExportError, match="1 of the 10 photos"):
        write_imagefolder(manifest, ["test"], sources, root, out, summary={})
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    photo.symlink_to(secret)
    with pytest.raises(ExportError, match="leads outside"):
        write_imagefolder(manifest, ["test"], sources, root, out, summary={})
    assert not out.exists()


def test_a_class_name_that_leads_outside_writes_nothing(world: World, tmp_path: Path) -> None:
    manifest, _, root = world
    table = tmp_path / "val.csv"
    table.write_text("image,class\nILSVRC2012_val_00000290.JPEG,../../../evil\n")
    entry = msgspec.structs.replace(manifest.header.classes[0], name="../../../evil")
    header = msgspec.structs.replace(manifest.header, classes=(entry, *manifest.header.classes[1:]))
    hostile = Manifest(header=header, lists={"test": ("imagenet:ILSVRC2012_val_00000290",)})
    sources = {VAL: read_imagenet(table, part="val")}
    out = tmp_path / "out" / "links"
    with pytest.raises(ExportError, match="cannot become a file name"):
        write_imagefolder(hostile, ["test"], sources, root, out, summary={})
    assert not out.parent.exists()


def test_places_that_cannot_be(world: World, tmp_path: Path) -> None:
    manifest, sources, root = world
    with pytest.raises(MissingFileError):
        write_imagefolder(manifest, ["test"], sources, tmp_path / "nowhere", tmp_path / "out", summary={})
    with pytest.raises(UsageError):
        write_imagefolder(manifest, ["test"], sources, root, root, summary={})


def test_from_the_command_line(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest, _, root = world
    write_manifest(manifest, tmp_path / "m")
    command = ["export", str(tmp_path / "m"), "--part", "test", f"--source=imagenet={root}", "--out"]
    links = [*command, str(tmp_path / "links"), "--format", "imagefolder"]
    assert main(links) == 2
    assert "--photos ROOT" in capsys.readouterr().err
    assert main([*links, "--photos", str(root)]) == 0
    assert "4 links in test/unknown" in capsys.readouterr().out
    assert main([*command, str(tmp_path / "csv"), "--format", "imagenet-csv"]) == 0
    assert (tmp_path / "csv/cats_test.csv").read_bytes().count(b"\r\n") == 10
