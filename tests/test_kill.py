"""``kill -9`` at any moment leaves no corrupt file, and the next run succeeds."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from curation.cli import main
from curation.manifest.store import read_manifest
from tests.small_world import SmallWorld, write_detections, write_small_world

KILLS = 26


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> SmallWorld:
    return write_small_world(tmp_path_factory.mktemp("world"), n_closed=60, n_wilderness=200)


def start(arguments: list[str], cache: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "curation", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "CURATION_CACHE": str(cache)},
    )


def kill_after(arguments: list[str], cache: Path, delay: float) -> bool:
    """Run a command, kill it after a delay, and return whether the kill came before its end."""
    process = start(arguments, cache)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    return process.wait(timeout=60) == -signal.SIGKILL


def duration(arguments: list[str], cache: Path) -> float:
    began = time.perf_counter()
    assert start(arguments, cache).wait(timeout=120) == 0
    return time.perf_counter() - began


def build_arguments(world: SmallWorld, out: Path) -> list[str]:
    sources = ["--source", f"voc2007-test={world.voc_root}", "--source", f"coco={world.coco_json}"]
    return ["build", "elephant", *sources, "--out", str(out)]


@pytest.mark.slow
def test_build_survives_kills(world: SmallWorld, tmp_path: Path) -> None:
    out, cache = tmp_path / "manifest", tmp_path / "cache"
    whole = duration(build_arguments(world, tmp_path / "reference"), tmp_path / "other-cache")
    digest = read_manifest(tmp_path / "reference").digest
    rng = random.Random(20)
    killed = 0
    for attempt in range(KILLS):
        # Half of the kills fall into the last third, where files are written.
        low = 0.6 * whole if attempt % 2 else 0.0
        killed += kill_after(build_arguments(world, out), cache, rng.uniform(low, whole))
        if out.exists():
            assert read_manifest(out).digest == digest
            for path in sorted(out.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
            out.rmdir()
    assert killed >= KILLS // 2
    duration(build_arguments(world, out), cache)
    assert read_manifest(out).digest == digest
    assert not [path for path in tmp_path.iterdir() if ".partial-" in path.name]


@pytest.mark.slow
def test_evaluate_survives_kills(
    world: SmallWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "cache"
    duration(build_arguments(world, tmp_path / "manifest"), cache)
    command = ["evaluate", "elephant"]
    for part in ("closed", "wilderness"):
        truth, results = tmp_path / f"{part}.json", tmp_path / f"{part}-results.json"
        sources = ["--source", f"voc2007-test={world.voc_root}", "--source", f"coco={world.coco_json}"]
        export = [
            "export",
            str(tmp_path / "manifest"),
            "--part",
            part,
            "--format",
            "coco",
            "--out",
            str(truth),
        ]
        assert main([*export, *sources]) == 0
        write_detections(truth, results)
        command += ["--truth", f"{part}={truth}", "--detections", f"{part}={results}"]
    capsys.readouterr()
    out = tmp_path / "scores"
    whole = duration([*command, "--out", str(tmp_path / "reference")], cache)
    reference = (tmp_path / "reference" / "results.json").read_bytes()
    rng = random.Random(21)
    killed = 0
    for attempt in range(KILLS):
        low = 0.6 * whole if attempt % 2 else 0.0
        killed += kill_after([*command, "--out", str(out)], cache, rng.uniform(low, whole))
        for path in out.rglob("*.json"):
            if ".partial-" not in path.name:
                json.loads(path.read_bytes())
        if (out / "results.json").exists():
            assert (out / "results.json").read_bytes() == reference
    assert killed >= KILLS // 2
    duration([*command, "--out", str(out)], cache)
    assert (out / "results.json").read_bytes() == reference
