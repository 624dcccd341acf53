"""Declared OSOD-III manifests: what the repository holds is what the rule gives."""

from pathlib import Path

import pytest

from curation.benchmarks.building import read_parameters
from curation.benchmarks.osod3.lists import declare
from curation.benchmarks.osod3.problems import INNER_NODES, NAMES, SUPERCLASSES
from curation.benchmarks.registry import find_benchmark
from curation.manifest.manifest import Manifest, read_manifest
from tests.real_files import real_files


def _declared(superclass: str, rotation: int) -> Manifest:
    given = {"superclass": superclass, "rotation": str(rotation)}
    return declare({}, read_parameters(find_benchmark("osod3"), given))


COMMITTED = Path(__file__).parents[2] / "manifests" / "osod3"


@pytest.mark.parametrize("superclass", SUPERCLASSES)
def test_committed_manifests_are_the_rule(superclass: str) -> None:
    known: list[str] = []
    for rotation in (1, 2, 3, 4):
        manifest = _declared(superclass, rotation)
        first, committed = (
            read_manifest(COMMITTED / f"openimages-{superclass}-{rotation}" / version) for version in ("1.0.0", "2.0.0")
        )
        assert committed.digest == manifest.digest
        assert committed.header.supersedes.digest == first.digest  # type: ignore[union-attr]
        # Their rule says group_of=keep.
        assert {part.view.crowd for part in first.header.parts} == {"ignore"}
        assert {part.view.crowd for part in committed.header.parts} == {"keep"}
        assert not committed.lists
        known += [entry.aliases[0] for entry in manifest.header.classes if entry.role == "known"]
    assert sorted(known) == list(SUPERCLASSES[superclass])


@real_files("openimages")
def check_names_are_those_of_the_class_descriptions(shared: Path) -> None:
    lines = (shared / "data/openimages/class-descriptions-boxable.csv").read_text("utf-8").splitlines()
    listed = dict(line.split(",", 1) for line in lines)
    assert set(NAMES) == {key for keys in (*SUPERCLASSES.values(), *INNER_NODES.values()) for key in keys}
    # Copies circulate with the name of one class left blank.
    assert all(listed[key].strip('"') in (name, "") for key, name in NAMES.items())


@real_files("cub200_and_signs")
def check_cub_manifests_are_built_from_the_real_metadata(shared: Path) -> None:
    from curation.benchmarks.building import rebuild
    from curation.sources.opening import open_source

    folder = shared / "data/cub200"
    sources = {
        f"cub-{part}": open_source(folder, dataset="cub200", part=part, cache=False) for part in ("train", "test")
    }
    for case in (1, 2, 3, 4):
        manifest = read_manifest(COMMITTED / f"cub-{case}" / "1.0.0")
        assert rebuild(manifest, sources).digest == manifest.digest
        assert len(manifest.ids("test")) == 5_794
        unknown = [entry.name for entry in manifest.header.classes if entry.role == "unknown"]
        assert len(unknown) == 50
