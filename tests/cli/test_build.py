"""``curation build``: from raw files to a manifest, byte for byte the same each time, and refused where it must be."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from curation.cli import main
from curation.manifest.manifest import read_manifest
from tests.shell import Shell
from tests.small_world import SmallWorld

pytestmark = pytest.mark.usefixtures("cache")


def arguments(world: SmallWorld, out: Path, *more: str) -> list[str]:
    return ["build", "elephant", *world.arguments(), "--out", str(out), *more]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_bytes_with_and_without_cache_and_hash_seeds(world: SmallWorld, tmp_path: Path) -> None:
    assert main(arguments(world, tmp_path / "first")) == 0
    assert main(arguments(world, tmp_path / "cached")) == 0
    assert main(arguments(world, tmp_path / "uncached")) == 0
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "curation", *arguments(world, tmp_path / f"seed{seed}")]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": seed, "OPENBLAS_NUM_THREADS": seed}
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
    expected = files_of(tmp_path / "first")
    for name in ("cached", "uncached", "seed1", "seed2"):
        assert files_of(tmp_path / name) == expected


def test_the_same_again_is_done_and_another_is_refused(world: SmallWorld, tmp_path: Path, shell: Shell) -> None:
    assert main(arguments(world, tmp_path / "m")) == 0
    assert main(arguments(world, tmp_path / "m")) == 0
    before = files_of(tmp_path / "m")
    assert "never edited" in shell.err(*arguments(world, tmp_path / "m", "--set", "ratios=0.5"))
    assert files_of(tmp_path / "m") == before


def test_a_root_stands_for_the_parts_it_offers(world: SmallWorld, tmp_path: Path) -> None:
    sources = ["--source", f"voc2007={world.voc_root}", "--source", f"coco={world.coco_json}"]
    assert main(["build", "elephant", *sources, "--out", str(tmp_path / "m")]) == 0
    assert [entry.name for entry in read_manifest(tmp_path / "m").header.sources] == ["voc2007-test", "coco"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["elefant"], "did you mean elephant?"),
        (["elephant", "--set", "ratio=1"], "did you mean ratios?"),
        (["elephant", "--set", "ratios=99"], "not enough wilderness images"),
        (["elephant", "--set", "ratios"], "NAME=VALUE"),
        (["elephant", "--set", "ratios=1", "--set", "ratios=2"], "twice"),
        (["elephant", "--source", "voc=x"], "Unknown source"),
        (["elephant", "--source", "coco=x"], "twice"),
        (["elephant", "--name", "../x"], "inconsistent"),
        (["elephant", "--version", "1"], "inconsistent"),
    ],
)
def test_wrong_use(world: SmallWorld, tmp_path: Path, shell: Shell, change: list[str], message: str) -> None:
    given = arguments(world, tmp_path / "m", *change[1:])
    given[1] = change[0]
    assert message in shell.err(*given)
    assert not (tmp_path / "m").exists()


def test_missing_and_swapped_sources(
    world: SmallWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str], shell: Shell
) -> None:
    out = ["--out", str(tmp_path / "m")]
    assert "--source coco=PATH" in shell.err("build", "elephant", "--source", f"voc2007-test={world.voc_root}", *out)
    swapped = ["--source", f"voc2007-test={world.coco_json}", "--source", f"coco={world.coco_json}"]
    assert main(["build", "elephant", *swapped, *out, "--json"]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["error"] == "ProtocolError"
    assert "source voc2007-test" in captured.err
    assert "are the sources swapped?" in captured.err
    assert not (tmp_path / "m").exists()


MANIFESTS = Path(__file__).parents[2] / "manifests"
