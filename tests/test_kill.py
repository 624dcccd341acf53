"""``kill -9`` at any moment leaves no corrupt file, and the next run succeeds and clears up."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from curation.cli import main
from curation.ledger import LEDGER
from curation.manifest.manifest import read_manifest
from tests.small_world import SmallWorld, write_detections, write_small_world

KILLS = 26
"""Kills of each command that hit it alive: together more than 50."""

ATTEMPTS = 40 * KILLS
"""Never needed: a command that ends before its kill makes the next kill come earlier."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> SmallWorld:
    return write_small_world(tmp_path_factory.mktemp("world"), n_closed=20, n_wilderness=50)


def start(arguments: list[str], cache: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "curation", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "CURATION_CACHE": str(cache)},
    )


def duration(arguments: list[str], cache: Path) -> float:
    began = time.perf_counter()
    assert start(arguments, cache).wait(timeout=300) == 0
    return time.perf_counter() - began


def is_killed_after(arguments: list[str], cache: Path, delay: float) -> bool:
    """Run a command, kill it after a delay, and return whether it was still alive."""
    process = start(arguments, cache)
    try:
        process.wait(timeout=delay)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    status = process.wait(timeout=60)
    assert status in (0, -signal.SIGKILL)
    return status != 0


def kill_many_times(
    arguments: list[str], cache: Path, whole: float, check: Callable[[], None], *, seed: int, late: float = 0.0
) -> None:
    """Kill a command at moments spread over its whole run until `KILLS` of them hit it; check after each attempt.

    Every second kill falls behind the share `late` of the run. How long a run takes differs between runs on a busy
    machine: the aim moves back after each run that ended unharmed, and forward again after each that was hit.
    """
    rng = random.Random(seed)
    aim, killed = whole, 0
    for attempt in range(ATTEMPTS):
        moment = rng.uniform(late if attempt % 2 else 0.0, 1.0)
        if is_killed_after(arguments, cache, moment * aim):
            killed += 1
            aim *= 1.02
        else:
            aim *= 0.85
        check()
        if killed == KILLS:
            return
    pytest.fail(f"only {killed} of {ATTEMPTS} attempts hit the command alive; it takes {whole:.2f} s alone")


def leftovers(*folders: Path) -> list[Path]:
    """Return hidden and partial files and folders below some folders."""
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.name != LEDGER and (path.name.startswith(".") or ".partial-" in path.name or "tmp" in path.suffix)
    ]


@pytest.fixture(scope="module")
def dead() -> int:
    """Process id of a process that was killed: a kill seldom falls into the instant of a write, so tests plant some."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with process:
        process.kill()
    return process.pid


def build_arguments(world: SmallWorld, out: Path) -> list[str]:
    sources = ["--source", f"voc2007-test={world.voc_root}", "--source", f"coco={world.coco_json}"]
    return ["build", "elephant", *sources, "--out", str(out)]


@pytest.mark.slow
def test_build_survives_kills(world: SmallWorld, dead: int, tmp_path: Path) -> None:
    out, cache = tmp_path / "manifest", tmp_path / "cache"
    whole = duration(build_arguments(world, tmp_path / "reference"), tmp_path / "other-cache")
    digest = read_manifest(tmp_path / "reference").digest

    def check() -> None:
        if out.exists():
            assert read_manifest(out).digest == digest
            shutil.rmtree(out)

    # A build writes its files at the end, an evaluation all along its figures.
    kill_many_times(build_arguments(world, out), cache, whole, check, seed=20, late=0.6)
    (tmp_path / f".{out.name}.partial-{dead}-aa/ids").mkdir(parents=True)
    (cache / f".9-abc.partial-{dead}-aa.npz").write_bytes(b"half")
    duration(build_arguments(world, out), cache)
    assert read_manifest(out).digest == digest
    assert not leftovers(tmp_path)


@pytest.mark.slow
def test_evaluate_survives_kills(
    world: SmallWorld, dead: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache, out = tmp_path / "cache", tmp_path / "scores"
    duration(build_arguments(world, tmp_path / "manifest"), cache)
    command = ["evaluate", "elephant"]
    sources = ["--source", f"voc2007-test={world.voc_root}", "--source", f"coco={world.coco_json}"]
    for part in ("closed", "wilderness"):
        truth, results = tmp_path / f"{part}.json", tmp_path / f"{part}-results.json"
        export = ["export", str(tmp_path / "manifest"), "--part", part, "--format", "coco", "--no-cache"]
        assert main([*export, "--out", str(truth), *sources]) == 0
        write_detections(truth, results)
        command += ["--truth", f"{part}={truth}", "--detections", f"{part}={results}"]
    capsys.readouterr()
    whole = duration([*command, "--out", str(tmp_path / "reference")], cache)
    reference = {path.name: path.read_bytes() for path in (tmp_path / "reference").iterdir()}

    def check() -> None:
        for path in out.glob("*"):
            if ".partial-" not in path.name and path.name != LEDGER:
                assert path.read_bytes() == reference[path.name]
                assert path.suffix != ".json" or json.loads(path.read_bytes())

    kill_many_times([*command, "--out", str(out)], cache, whole, check, seed=21)
    (out / f".results.partial-{dead}-aa.json").write_bytes(b"{")
    duration([*command, "--out", str(out)], cache)
    assert not leftovers(tmp_path)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == reference
