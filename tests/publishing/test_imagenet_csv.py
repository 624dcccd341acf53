"""The authors' CSV files: bytes of the published ones, and the rules on small drawn data."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import curation
from curation.benchmarks.imagenet import TRAIN, VAL, build, plan_imagenet_csv
from curation.benchmarks.registry import declared_benchmark
from curation.core.errors import ExportError
from curation.core.ids import ilsvrc2012_classes
from curation.manifest.manifest import Manifest
from curation.publishing.formats.plan import write_plan
from curation.sources.imagenet import read_imagenet
from curation.sources.source import Source
from tests.protocols.test_imagenet import CATS
from tests.real_files import real_files


def made(train: Path, val: Path, **given: str) -> tuple[Manifest, dict[str, Source]]:
    sources = {TRAIN: read_imagenet(train, part="train"), VAL: read_imagenet(val, part="val")}
    values: dict[str, Any] = {
        one.name: one.read(given.get(one.name, one.default)) for one in declared_benchmark("imagenet").parameters
    }
    return build(sources, values), sources


@pytest.fixture
def cats(tmp_path: Path) -> tuple[Manifest, dict[str, Source]]:
    """Three big cats known, three negative, four bears unknown."""
    benchmark, train, val = (tmp_path / name for name in ("cats.toml", "train.json", "val.txt"))
    benchmark.write_text(CATS)
    names = {wnid: [f"{wnid}_{one}.JPEG" for one in range(5)] for wnid in ilsvrc2012_classes()[280:300]}
    train.write_text(json.dumps(names))
    val.write_text("".join(f"ILSVRC2012_val_{one:08d}.JPEG {one}\n" for one in range(1000)))
    sources = {TRAIN: read_imagenet(train, part="train"), VAL: read_imagenet(val, part="val")}
    return curation.build(benchmark, sources={TRAIN: train, VAL: val}), sources


def test_rows_labels_and_line_ends(cats: tuple[Manifest, dict[str, Source]], tmp_path: Path) -> None:
    manifest, sources = cats
    out = tmp_path / "out"
    written = write_plan(plan_imagenet_csv(manifest, ["train", "test"], sources), out, single=False, summary={})
    assert [one.name for one in written] == ["cats_train.csv", "cats_test.csv"]
    data = (out / "cats_test.csv").read_bytes()
    assert data.count(b"\r\n") == data.count(b"\n") == 10
    rows = data.decode("ascii").split("\r\n")[:-1]
    assert [row.rpartition(",")[2] for row in rows] == ["0", "1", "2", *["-1"] * 3, *["-2"] * 4]
    assert rows[0] == "val/n02128385/ILSVRC2012_val_00000288.JPEG,0"
    first = (out / "cats_train.csv").read_text().split("\n")[0]
    wnid, name = first.split("/")[1:]
    assert name.startswith(f"{wnid}_")


@pytest.mark.parametrize(("name", "message"), [("../n1", "cannot become a file name"), ("n99999999", "has no role")])
def test_hostile_names_and_classes_without_role(
    cats: tuple[Manifest, dict[str, Source]], name: str, message: str
) -> None:
    manifest, sources = cats
    wnid = manifest.header.classes[0].name
    names = tuple(name if one == wnid else one for one in sources[VAL].categories.names)
    renamed = replace(sources[VAL], categories=replace(sources[VAL].categories, names=names))
    header = manifest.header
    if ".." in name:
        classes = (msgspec.structs.replace(header.classes[0], name=name), *header.classes[1:])
        header = msgspec.structs.replace(header, classes=classes)
    with pytest.raises(ExportError, match=message):
        plan_imagenet_csv(Manifest(header, manifest.lists), ["test"], {VAL: renamed})


def test_published_training_files_of_p2_from_the_committed_names(tmp_path: Path) -> None:
    """The names of its 61 training classes are in the repository: the authors' file follows from them byte for byte."""
    folder = Path(__file__).resolve().parents[2] / "manifests/imagenet/p2/1.0.0/ids"
    names: dict[str, list[str]] = {}
    for part in ("train", "val"):
        for line in (folder / f"{part}.txt").read_text().split():
            native = line.removeprefix("imagenet:")
            names.setdefault(native.partition("_")[0], []).append(f"{native}.JPEG")
    assert (len(names), sum(map(len, names.values()))) == (61, 75_862)
    train, val = tmp_path / "names.json", tmp_path / "val.txt"
    train.write_text(json.dumps({wnid: sorted(listed) for wnid, listed in sorted(names.items())}))
    val.write_text("".join(f"ILSVRC2012_val_{one:08d}.JPEG {one % 1000}\n" for one in range(1, 50_001)))
    manifest, sources = made(train, val, protocol="p2")
    write_plan(plan_imagenet_csv(manifest, ["train", "val"], sources), tmp_path / "out", single=False, summary={})
    data = (tmp_path / "out/p2_train.csv").read_bytes()
    assert hashlib.sha256(data).hexdigest().startswith("28c29d74f68b48b5")
    assert data.count(b"\r\n") == 60_689
    assert (tmp_path / "out/p2_val.csv").read_bytes().count(b"\r\n") == 15_173


@real_files("imagenet")
def check_published_files_of_p2(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data/imagenet"
    manifest, sources = made(folder / "p2_train_names.json", folder / "val.txt", protocol="p2")
    plan = plan_imagenet_csv(manifest, ["train", "val", "test"], sources)
    write_plan(plan, tmp_path / "out", single=False, summary={})
    train = (tmp_path / "out/p2_train.csv").read_bytes()
    assert hashlib.sha256(train).hexdigest().startswith("28c29d74f68b48b5")
    assert train.count(b"\r\n") == 60_689
    assert (tmp_path / "out/p2_val.csv").read_bytes().count(b"\r\n") == 15_173
    assert (tmp_path / "out/p2_test.csv").read_bytes().count(b"\r\n") == 5_800
