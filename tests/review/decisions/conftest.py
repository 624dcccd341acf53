"""A built manifest with its sources: VOC-like ``closed``, COCO-like ``wilderness`` with two subsets."""

from pathlib import Path

import pytest

from curation.cli import main
from curation.manifest.manifest import Manifest, read_manifest
from curation.sources.opening import open_path
from curation.sources.source import Source
from tests.small_world import SmallWorld, write_small_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> SmallWorld:
    return write_small_world(tmp_path_factory.mktemp("decisions"), n_closed=10, n_wilderness=20)


@pytest.fixture(scope="session")
def base_folder(world: SmallWorld, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("base") / "m"
    given = world.arguments()
    assert main(["build", "elephant", *given, "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="session")
def base(base_folder: Path) -> Manifest:
    return read_manifest(base_folder)


@pytest.fixture(scope="session")
def raw(world: SmallWorld) -> dict[str, Source]:
    return {
        "voc2007-test": open_path(world.voc_root, dataset="voc2007", part="test"),
        "coco": open_path(world.coco_json, dataset="coco", part="train2017"),
    }
