"""``curation show``: the facts of a manifest, as text and as JSON."""

import json
import re
from pathlib import Path

import pytest

from curation.cli import main
from curation.manifest.manifest import read_manifest
from tests.shell import Shell
from tests.small_world import write_small_world


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("show")
    world = write_small_world(base)
    out = base / "manifests/elephant/small/1.0.0"
    sources = world.arguments()
    assert main(["build", "elephant", *sources, "--out", str(out), "--name", "elephant/small"]) == 0
    return out


def test_text(folder: Path, shell: Shell) -> None:
    text = shell.out("show", folder)
    manifest = read_manifest(folder)
    assert manifest.digest in text
    for part in manifest.header.parts:
        assert part.name in text
        assert f"{part.images:,}" in text
    assert "23,008" in text
    assert "aeroplane (= airplane)" in text
    assert all(len(line) <= 130 for line in text.splitlines())


def test_json(folder: Path, shell: Shell) -> None:
    assert shell.data("show", folder, "--json") == json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def test_by_name(folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parents[3])
    for name in ("elephant/small@1.0.0", "elephant/small"):
        assert shell.data("show", name, "--json")["name"] == "elephant/small"
    assert "did you mean elephant/small@1.0.0 or " in shell.err("show", "elephant/smal")


def test_hostile_text_cannot_steer_the_terminal(folder: Path, tmp_path: Path, shell: Shell) -> None:
    import msgspec

    from curation.manifest.manifest import Manifest, write_manifest

    manifest = read_manifest(folder)
    header = msgspec.structs.replace(manifest.header, notes=("\x1b[2Jgone\x07",))
    write_manifest(Manifest(header=header, lists=manifest.lists), tmp_path / "m")
    text = shell.out("show", tmp_path / "m")
    assert "gone" in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_classes_of_imagenet_stand_as_in_the_papers_table(shell: Shell) -> None:
    text = shell.out("show", "imagenet/p2")
    assert "known     n02087122 hunting dog (30)" in text
    assert "negative  n02087122 hunting dog (31)" in text
    assert "n02089867  Walker hound, Walker foxhound" in text
    p3 = shell.out("show", "imagenet/p3")
    # Known, negative and unknown classes of three superclasses, as Table 5 counts them.
    for wnid, name, counts in (
        ("n02084071", "dog", (58, 39, 19)), ("n01503061", "bird", (26, 17, 9)), ("n02120997", "feline", (4, 3, 1)),
    ):  # fmt: skip
        assert [int(n) for n in re.findall(rf"{wnid} {name} \((\d+)\)", p3)] == list(counts)
    classes = json.loads(shell.out("show", "imagenet/p3", "--json"))["classes"]
    assert all(f"  {entry['name']}  " in p3 for entry in classes)
