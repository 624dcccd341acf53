"""Manifests are found by folder, by file, by name and version, by name alone where that is enough."""

from collections.abc import Callable
from pathlib import Path

import pytest

from curation.core.errors import ManifestError
from curation.manifest.locate import find_manifest, load_manifest, manifest_folders
from curation.manifest.manifest import Manifest, packaged_manifests, write_manifest


@pytest.fixture
def house(make_manifest: Callable[..., Manifest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for root, name, version in (
        ("manifests", "toy/example", "1.0.0"),
        ("manifests", "toy/example", "1.1.0"),
        ("elsewhere", "solo", "2.0.0"),
        ("elsewhere", "toy/example", "1.0.0"),
    ):
        write_manifest(make_manifest(name=name, version=version, title=root), tmp_path / root / name / version)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATION_MANIFESTS", str(tmp_path / "elsewhere"))
    return tmp_path


def test_what_is_at_hand(house: Path) -> None:
    packaged = list(manifest_folders([packaged_manifests()]))
    assert "elephant/val2017@1.0.0" in packaged
    own = ["solo@2.0.0", "toy/example@1.0.0", "toy/example@1.1.0"]
    assert list(manifest_folders()) == sorted([*packaged, *own])


@pytest.mark.parametrize(
    ("target", "folder"),
    [
        ("toy/example@1.1.0", "manifests/toy/example/1.1.0"),
        ("solo", "elsewhere/solo/2.0.0"),
        ("solo@2.0.0", "elsewhere/solo/2.0.0"),
        ("elsewhere/solo/2.0.0", "elsewhere/solo/2.0.0"),
        ("elsewhere/solo/2.0.0/manifest.json", "elsewhere/solo/2.0.0"),
        ("elsewhere/solo", "elsewhere/solo/2.0.0"),
    ],
)
def test_targets(house: Path, target: str, folder: str) -> None:
    assert find_manifest(target).resolve() == (house / folder).resolve()


def test_the_nearer_root_wins(house: Path) -> None:
    assert load_manifest("toy/example@1.0.0").header.title == "manifests"


def test_several_answers_and_none(house: Path) -> None:
    assert find_manifest("toy/example") == Path("manifests/toy/example/1.1.0")
    with pytest.raises(ManifestError, match="Several") as caught:
        find_manifest("manifests/toy")
    assert "1.1.0" in str(caught.value)
    with pytest.raises(ManifestError, match="No such manifest") as caught:
        find_manifest("toy/exmaple@1.0.0")
    assert "did you mean toy/example@1.0.0" in str(caught.value)


def test_a_folder_goes_before_a_name_and_a_name_before_a_packaged_one(
    make_manifest: Callable[..., Manifest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CURATION_MANIFESTS", raising=False)
    name, version = "elephant/val2017", "1.0.0"
    assert find_manifest(f"{name}@{version}") == packaged_manifests() / name / version
    (tmp_path / name).mkdir(parents=True)
    assert find_manifest(name) == packaged_manifests() / name / version  # a folder without a manifest is none
    write_manifest(make_manifest(name=name, version=version, title="root"), tmp_path / "manifests" / name / version)
    assert load_manifest(name).header.title == "root"
    write_manifest(make_manifest(name=name, version=version, title="here"), tmp_path / name / version)
    assert load_manifest(name).header.title == "here"
    assert load_manifest(f"{name}@{version}").header.title == "root"


@pytest.mark.parametrize(
    ("target", "near"),
    [
        ("val2017", "elephant/val2017@1.0.0"),
        ("elephant/val2018", "elephant/val2017@1.0.0"),
        ("elephant/val2017/1.0.0", "elephant/val2017@1.0.0"),
        ("manifests/elephant/val2017/1.0.0", "elephant/val2017@1.0.0"),
        ("elephant/val2017@9.0.0", "elephant/val2017@1.0.0"),
        ("reowd", "owod/reowod@1.0.0"),
        ("findmeifyoucan", "findmeifyoucan/voc@1.0.0"),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones(
    target: str, near: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CURATION_MANIFESTS", raising=False)
    with pytest.raises(ManifestError, match="No such manifest") as caught:
        find_manifest(target)
    assert near in (caught.value.hint or "")
    assert len(str(caught.value)) < 400
