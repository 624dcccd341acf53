"""Faults in verbs that write: after each the old state or the new one, a clear error, and a re-run that works."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.torture.forks import Forks
from tests.torture.world import VERBS, filled

COUNT = int(os.environ.get("TORTURE", "1"))
SEED = os.environ.get("TORTURE_SEED", "0")
ERRORS = ("ENOSPC", "EIO", "EACCES", "EROFS", "EDQUOT")
PARTIAL = ".partial-"
Tree = dict[str, bytes]


def tree(folder: Path) -> Tree:
    """Return the bytes of every file below a folder, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Lab:
    """One verb: its old state, its new one, the steps between, and what is wrong after a fault."""

    def __init__(self, name: str, folder: Path, inputs: Path, forks: Forks) -> None:
        self.verb, self.inputs, self.forks = VERBS[name], inputs, forks
        self.root, self.told = folder / "root", folder / "told"
        self.out = self.root / "out"
        self.old: Tree = {}
        self.reset()
        if self.verb.before:
            assert self.run(self.verb.before)[0] == 0
        self.old = tree(self.out)
        status, told = self.run(fault={"at": 0, "action": ""})
        assert status == 0, told
        self.new = tree(self.out)
        self.steps = Path(f"{self.told}.steps").read_text().split("\n")

    def reset(self) -> None:
        """Make the old state; the cache is empty."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.out.mkdir(parents=True)
        for name, data in self.old.items():
            (self.out / name).parent.mkdir(parents=True, exist_ok=True)
            (self.out / name).write_bytes(data)

    def request(self, words: str = "", told: str = "", **more: Any) -> dict[str, Any]:
        """Return the request to run the verb, or another command line."""
        given = filled(words or self.verb.words, self.inputs, self.out)
        environment = {"CURATION_CACHE": str(self.root / "cache")}
        return {"words": given, "told": f"{self.told}{told}", "root": str(self.out), "environment": environment, **more}

    def run(self, words: str = "", **more: Any) -> tuple[int, str]:
        """Run the verb, or another command line; return exit status and output."""
        (status,) = self.forks.run(self.request(words, **more))
        return status, self.told.read_text(errors="replace")

    def check(self, status: int, told: str) -> None:
        """Hold message and files against what may be, run the verb undisturbed, and hold the files against the new."""
        assert "Traceback" not in told
        assert status in (0, 2, -9), told
        assert status != 2 or "error: " in told
        now = {name: data for name, data in tree(self.out).items() if PARTIAL not in name}
        if not (self.verb.resumes or self.verb.grows):
            for name, data in now.items():
                assert data in (self.old.get(name), self.new.get(name)), f"{name} is neither old nor new"
            assert self.old.keys() - now.keys() <= self.old.keys() - self.new.keys()
            if self.verb.whole and now:
                assert now == self.new, "the folder is not whole"
        done = now == self.new
        status, told = self.run()
        assert status == 0 or (done and status == self.verb.again), told
        if self.verb.grows:
            for name, whole in self.new.items():
                old = self.old[name]
                assert (self.out / name).read_bytes() in (whole, whole + whole.removeprefix(old))
        else:
            assert tree(self.out) == self.new
        assert not [path for path in self.root.rglob(f"*{PARTIAL}*") if "cache" not in path.parts]


def spread(count: int, most: int, rng: Random) -> list[int]:
    """Return some of the numbers 1 to `count`; the last ones, where the output is renamed, are among them."""
    late = range(max(1, count - most // 2), count + 1)
    return sorted({*late, *rng.sample(range(1, count + 1), min(count, most))})


@pytest.fixture(params=VERBS)
def lab(request: pytest.FixtureRequest, tmp_path: Path, inputs: Path, forks: Forks) -> Iterator[Lab]:
    if COUNT == 1 and request.param not in ("build", "export coco", "evaluate --force", "evaluate --append", "embed"):
        pytest.skip("TORTURE=2 and more inject faults into every verb")
    before = tree(inputs)
    yield Lab(request.param, tmp_path, inputs, forks)
    assert tree(inputs) == before


@pytest.mark.slow
def test_kills_and_refusals_at_steps(lab: Lab) -> None:
    rng = Random(f"{SEED}:{lab.verb.words}")
    for at in spread(len(lab.steps), 3 * COUNT, rng):
        actions = ["kill", rng.choice(ERRORS), *(["torn"] if lab.steps[at - 1].startswith("fsync") else [])]
        for action in actions:
            lab.reset()
            lab.check(*lab.run(fault={"at": at, "action": action}))


@pytest.mark.slow
def test_kills_at_moments_and_file_limits(lab: Lab) -> None:
    rng = Random(f"{SEED}:moments:{lab.verb.words}")
    for _ in range(COUNT):
        lab.reset()
        lab.check(*lab.run(after=rng.uniform(0, 1)))
        lab.reset()
        lab.check(*lab.run(most=rng.randint(1, max(map(len, lab.new.values())))))


@pytest.mark.slow
def test_a_folder_that_may_not_be_written(lab: Lab) -> None:
    lab.reset()
    folders = [lab.out, *(path for path in lab.out.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    status, told = lab.run(humble=True)
    for folder in folders:
        folder.chmod(0o755)
    assert status == (0 if lab.verb.grows else 2), told  # A file that is there may grow though its folder may not.
    lab.check(status, told)


@pytest.mark.slow
def test_two_at_once(lab: Lab) -> None:
    lab.reset()
    statuses = lab.forks.run(lab.request(told="-1"), lab.request(told="-2"))
    told = [Path(f"{lab.told}{end}").read_text(errors="replace") for end in ("-1", "-2")]
    assert 0 in statuses, told
    if lab.verb.grows:
        for name, whole in lab.new.items():
            assert (lab.out / name).read_bytes() == whole + whole.removeprefix(lab.old[name])
        return
    for status, text in zip(statuses, told, strict=True):
        lab.check(status, text)
