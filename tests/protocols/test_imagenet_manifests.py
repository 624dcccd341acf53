"""The committed ImageNet manifests: exact where they list images, made again by the commands of docs/imagenet.md."""

from pathlib import Path

import pytest

from curation.benchmarks.imagenet import FIGURES, TABLE_1
from curation.cli import main
from curation.manifest.locate import manifest_folders
from curation.manifest.manifest import read_manifest
from tests.real_files import real_files

ROOT = Path(__file__).parents[2] / "manifests"
FOLDERS = {name: folder for name, folder in manifest_folders([ROOT]).items() if name.startswith("imagenet/")}


def test_all_three_and_their_variants_are_there() -> None:
    assert set(FOLDERS) == {f"imagenet/{name}{mark}@1.0.0" for name in TABLE_1 for mark in ("", "-dag")}


@pytest.mark.parametrize("name", FOLDERS)
def test_lists_and_figures(name: str) -> None:
    manifest = read_manifest(FOLDERS[name])
    header, protocol = manifest.header, name.partition("/")[2][:2]
    figures = {one.name: (one.paper, one.obtained) for one in header.figures}
    exact = {"train", "val", "test"} if name == "imagenet/p2@1.0.0" else {"test"}
    assert set(manifest.lists) == exact
    assert header.origin == ("regenerated" if len(exact) == 3 else "declared")
    roles = [entry.role for entry in header.classes]
    assert len(manifest.lists["test"]) == 50 * len(roles)
    if not name.endswith("-dag@1.0.0"):
        assert figures == {figure: (size, size) for figure, size in zip(FIGURES, TABLE_1[protocol], strict=True)}
    assert [figures[f"{role}.classes"][1] for role in ("known", "negative", "unknown")] == [
        roles.count(role) for role in ("known", "negative", "unknown")
    ]


@real_files("imagenet_manifests")
@pytest.mark.parametrize("name", FOLDERS)
def check_they_are_made_again_to_the_same_digest(shared: Path, tmp_path: Path, name: str) -> None:
    data, protocol = shared / "data/imagenet", name.partition("/")[2][:2]
    train = "p2_train_names.json" if name == "imagenet/p2@1.0.0" else "train_counts.json"
    settings = [f"--set=protocol={protocol}", *(["--set=hierarchy=dag"] if "-dag" in name else [])]
    sources = [f"--source=imagenet-train={data / train}", f"--source=imagenet-val={data / 'val.txt'}"]
    assert main(["build", "imagenet", *settings, *sources, "--out", str(tmp_path / "m")]) == 0
    assert read_manifest(tmp_path / "m").digest == read_manifest(FOLDERS[name]).digest
