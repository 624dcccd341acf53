"""Faults in every writing verb: after each the old state or the new one, a clear error, a re-run that works.

A fault is (kind, verb, where). What is looked at after it: the exit status and the message; that each file of the
output has the bytes that it had before or those of an undisturbed run, and a folder all of them or none; that the same
command, undisturbed, then succeeds and leaves the very bytes of an undisturbed run and nothing else; and that no input
has changed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.torture.verbs import VERBS, Verb, filled, write_world

Tree = dict[str, bytes]
ERRORS = ("ENOSPC", "EIO", "EACCES", "EROFS", "EDQUOT")
_MODULES = (
    "curation.cli",
    "curation.manifest.manifest",
    "curation.sources.opening",
    "curation.evaluation.result",
    "matplotlib.figure",
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One injected fault, and what was wrong after it (nothing, where all is as it should be)."""

    kind: str
    verb: str
    where: str
    wrong: str = ""


class Lab:
    """A world of inputs, a folder that faults are injected into, and a process that forks commands.

    Parameters
    ----------
    folder : Path
        Empty.
    seed : str
    """

    def __init__(self, folder: Path, seed: str = "0") -> None:
        self.seed = seed
        self.scratch = folder / "scratch"
        self.out, self.cache = self.scratch / "out", self.scratch / "cache"
        os.environ["CURATION_CACHE"] = str(folder / "world-cache")
        from tests.unpainted import unpainted

        with unpainted():
            self.inputs = write_world(folder / "in")
        self.given = tree(self.inputs)
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        self.told = folder / "told"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.child", *_MODULES],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder,
        )  # fmt: skip

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def request(self, words: str, **more: Any) -> dict[str, Any]:
        """Return a request to run a command line, with its folders."""
        environment = {"CURATION_CACHE": str(self.cache), **more.pop("environment", {})}
        given = filled(words, self.inputs, self.out)
        return {"words": given, "told": str(self.told), "root": str(self.scratch), "environment": environment, **more}

    def fork(self, *requests: dict[str, Any]) -> list[int]:
        """Run children side by side, and return their statuses."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(requests) + "\n")
        self._process.stdin.flush()
        statuses: list[int] = json.loads(self._process.stdout.readline())
        return statuses

    def run(self, words: str, **more: Any) -> tuple[int, str]:
        """Run a command line; return exit status and output."""
        (status,) = self.fork(self.request(words, **more))
        return status, self.told.read_text(errors="replace")

    def put(self, state: Tree) -> None:
        """Make the folder of outputs what it was; the cache is empty."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.out.mkdir(parents=True)
        for name, data in state.items():
            path = self.out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def tree(folder: Path) -> Tree:
    """Return the bytes of every file below a folder, by name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def visible(files: Tree) -> Tree:
    """Return files without those whose name, or folder's name, is hidden."""
    return {name: data for name, data in files.items() if not any(part.startswith(".") for part in name.split("/"))}


class Case:
    """A verb in a lab: its old state, its new one, and the steps between."""

    def __init__(self, lab: Lab, verb: Verb) -> None:
        self.lab, self.verb = lab, verb
        lab.put({})
        if verb.before:
            status, told = lab.run(verb.before)
            if status:
                raise AssertionError(f"{verb.name}: the old state cannot be made: {told}")
        self.old = tree(lab.out)
        lab.put(self.old)
        status, told = lab.run(verb.words, fault={"at": 0, "action": ""})
        if status:
            raise AssertionError(f"{verb.name}: it fails undisturbed: {told}")
        self.new = tree(lab.out)
        steps = Path(f"{lab.told}.steps")
        self.steps = steps.read_text().split("\n") if steps.exists() else []
        steps.unlink(missing_ok=True)

    def reset(self) -> None:
        """Make the old state."""
        self.lab.put(self.old)

    def wrong(self, status: int, told: str, *, killed: bool = False) -> str:
        """Return what is wrong after a fault, ``""`` if nothing is; the folder of outputs may be written again."""
        return self.wrong_message(status, told, killed=killed) or self.wrong_state() or self.wrong_after_all()

    @staticmethod
    def wrong_message(status: int, told: str, *, killed: bool = False) -> str:
        """Look at exit status and message."""
        if "Traceback" in told:
            return f"a traceback: {told[-600:]}"
        if status not in ((0, 1, 2, -9) if killed else (0, 1, 2)):
            return f"exit status {status}: {told[-300:]}"
        if status in (1, 2) and "error: " not in told:
            return f"exit status {status} without an error: {told[-300:]}"
        return ""

    def wrong_state(self) -> str:
        """Look whether every file is the old or the new one, and every folder whole."""
        if self.verb.resumes or self.verb.grows:
            return ""
        now = visible(tree(self.lab.out))
        for name, data in now.items():
            if data not in (self.old.get(name), self.new.get(name)):
                return f"{name} is neither the old file nor the new one ({len(data)} bytes)"
        if lost := sorted(set(visible(self.old)) - set(now)):
            return f"lost: {lost[0]}"
        for folder in self.verb.whole:
            found = {name for name in now if name.startswith(f"{folder}/")}
            if found and found != {name for name in self.new if name.startswith(f"{folder}/")}:
                return f"{folder} is not whole: {len(found)} files"
        return ""

    def wrong_after_all(self) -> str:
        """Run the command undisturbed, and look whether all is as if nothing had been."""
        done = tree(self.lab.out) == self.new
        status, told = self.lab.run(self.verb.words)
        if status and not (done and status == self.verb.again):
            return f"the re-run fails with {status}: {told[-400:]}"
        if self.verb.grows:
            return self._wrong_growth()
        after = tree(self.lab.out)
        if left := sorted(name for name in {**after, **tree(self.lab.scratch)} if ".partial-" in name):
            return f"left over after the re-run: {left[0]}"
        if differing := sorted(name for name in {**after, **self.new} if after.get(name) != self.new.get(name)):
            return f"after the re-run {differing[0]} is not what an undisturbed run writes"
        return ""

    def _wrong_growth(self) -> str:
        for name, whole in self.new.items():
            now, before = (self.lab.out / name).read_bytes(), self.old.get(name, b"")
            added = whole.removeprefix(before)
            if now not in (before + added, before + added + added):
                return f"{name}: a line was lost, or a torn one left"
        return ""


@dataclass
class Injection:
    """Faults of all kinds, drawn from a seed.

    Attributes
    ----------
    steps : int
        Steps of each verb at which it is killed, cut or refused; spread over all of them.
    moments : int
        Kills at random moments, and faults of each other kind, a verb.
    """

    lab: Lab
    steps: int = 12
    moments: int = 3
    only: str = ""
    skipped: dict[str, str] = field(default_factory=dict)

    def all(self) -> Iterator[Fault]:
        """Inject every fault, and yield what came of it."""
        for name, verb in VERBS.items():
            if self.only in name:
                yield from self.of_verb(Case(self.lab, verb))
        for kind in (bit_flips, two_reviewers, hub_cuts):
            if not self.only or self.only in kind.__name__:
                yield from kind(self)
        if tree(self.lab.inputs) != self.lab.given:
            yield Fault("any", "all", "", "an input has changed")

    def of_verb(self, case: Case) -> Iterator[Fault]:
        """Inject the faults of one verb."""
        kinds: tuple[Callable[[Case], Iterator[Fault]], ...] = (
            self.at_steps, self.at_moments, self.full_disks, self.file_limits, self.read_only, self.denied,
            self.clock_jumps, self.two_at_once,
        )  # fmt: skip
        for kind in kinds:
            yield from kind(case)

    def rng(self, *what: object) -> Random:
        """Return the draws of a kind and verb."""
        return Random(":".join(map(str, (self.lab.seed, *what))))

    def at_steps(self, case: Case) -> Iterator[Fault]:
        """Kill, cut the written file in half and kill, and refuse, at steps spread over the run."""
        rng = self.rng("steps", case.verb.name)
        places = spread(len(case.steps), self.steps, rng)
        for at in places:
            where = f"step {at} of {len(case.steps)}: {_short(case.steps[at - 1])}"
            actions = ["kill", rng.choice(ERRORS)]
            if case.steps[at - 1].startswith(("fsync", "write")):
                actions.append("torn")
            for action in actions:
                case.reset()
                status, told = self.lab.run(case.verb.words, fault={"at": at, "action": action})
                kind = {"kill": "kill -9 at a step", "torn": "partial write, then kill -9"}.get(
                    action, f"refused: {action}"
                )
                yield Fault(kind, case.verb.name, where, case.wrong(status, told, killed=action in ("kill", "torn")))

    def at_moments(self, case: Case) -> Iterator[Fault]:
        """Kill at random moments."""
        rng = self.rng("moments", case.verb.name)
        for _ in range(self.moments):
            case.reset()
            after = rng.uniform(0.0, 0.4)
            status, told = self.lab.run(case.verb.words, after=after)
            yield Fault("kill -9 at a moment", case.verb.name, f"{after:.3f} s", case.wrong(status, told, killed=True))

    def full_disks(self, case: Case) -> Iterator[Fault]:
        """Let the outputs lie on a disk of a few pages."""
        need = sum(map(len, case.new.values())) // 4096 + 2
        rng = self.rng("disk", case.verb.name)
        for _ in range(self.moments):
            pages = sum(map(len, case.old.values())) // 4096 + len(case.old) + rng.randint(1, need)
            case.reset()
            with self._mounted(f"size={pages * 4}k") as mounted:
                if not mounted:
                    return
                for name, data in case.old.items():
                    (self.lab.out / name).parent.mkdir(parents=True, exist_ok=True)
                    (self.lab.out / name).write_bytes(data)
                status, told = self.lab.run(case.verb.words)
                wrong = case.wrong_message(status, told) or case.wrong_state()
                left = tree(self.lab.out)
            self._restore(left)
            yield Fault("full disk", case.verb.name, f"{pages} pages", wrong or case.wrong_after_all())

    def file_limits(self, case: Case) -> Iterator[Fault]:
        """Refuse files beyond some bytes."""
        rng = self.rng("limit", case.verb.name)
        largest = max(map(len, case.new.values()))
        for _ in range(self.moments):
            case.reset()
            most = rng.randint(1, largest)
            status, told = self.lab.run(case.verb.words, most=most)
            yield Fault("file size limit", case.verb.name, f"{most} bytes", case.wrong(status, told))

    def read_only(self, case: Case) -> Iterator[Fault]:
        """Let the outputs lie on a disk that is read-only, and in a folder that may not be written."""
        case.reset()
        with self._mounted("size=64m") as mounted:
            if mounted:
                for name, data in case.old.items():
                    (self.lab.out / name).parent.mkdir(parents=True, exist_ok=True)
                    (self.lab.out / name).write_bytes(data)
                subprocess.run(["mount", "-o", "remount,ro", str(self.lab.out)], check=True)
                status, told = self.lab.run(case.verb.words)
                wrong = case.wrong_message(status, told) or case.wrong_state()
                wrong = wrong or ("" if status == 2 else f"exit status {status} on a read-only disk")
                left = tree(self.lab.out)
        if mounted:
            self._restore(left)
            yield Fault("read-only disk", case.verb.name, "out", wrong or case.wrong_after_all())
        case.reset()
        folders = [self.lab.out, *(path for path in self.lab.out.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        status, told = self.lab.run(case.verb.words, humble=True)
        for folder in folders:
            folder.chmod(0o755)
        wrong = case.wrong_message(status, told) or case.wrong_state()
        # A file that is appended to may be written though its folder may not.
        wrong = wrong or ("" if status == 2 or case.verb.grows else f"exit status {status} in a read-only folder")
        if case.verb.grows:
            case.reset()
        yield Fault("read-only folder", case.verb.name, "out", wrong or case.wrong_after_all())

    def denied(self, case: Case) -> Iterator[Fault]:
        """Take away the right to read an input, and the right to write the cache."""
        named = [Path(word.split("=", 1)[-1]) for word in filled(case.verb.words, self.lab.inputs, self.lab.out)]
        inputs = sorted({path for path in named if path.is_relative_to(self.lab.inputs) and path.exists()})
        for path in self.rng("denied", case.verb.name).sample(inputs, min(len(inputs), 2)):
            case.reset()
            mode = path.stat().st_mode
            path.chmod(0)
            try:
                status, told = self.lab.run(case.verb.words, humble=True)
            finally:
                path.chmod(mode)
            wrong = case.wrong_message(status, told) or case.wrong_state()
            # An input that the output does not need may be passed over.
            if status == 0 and tree(self.lab.out) != case.new:
                wrong = wrong or f"{path.name} may not be read, and the output is another"
            yield Fault("input that may not be read", case.verb.name, path.name, wrong or case.wrong_after_all())
        if "--source" in case.verb.words:
            case.reset()
            self.lab.cache.mkdir()
            self.lab.cache.chmod(0o555)
            status, told = self.lab.run(case.verb.words, humble=True)
            self.lab.cache.chmod(0o755)
            wrong = "" if status == 0 else f"exit status {status} without a cache: {told[-300:]}"
            yield Fault("cache that may not be written", case.verb.name, "cache", wrong or case.wrong(status, told))

    def clock_jumps(self, case: Case) -> Iterator[Fault]:
        """Let the clock jump by years, both ways, at every look: nothing of it may be in an output."""
        for seed in range(2):
            case.reset()
            status, told = self.lab.run(case.verb.words, clock=seed)
            wrong = "" if status == 0 else f"exit status {status}: {told[-300:]}"
            if not wrong and tree(self.lab.out) != case.new:
                wrong = "the clock is in the output"
            yield Fault("clock jumps", case.verb.name, f"seed {seed}", wrong or case.wrong(status, told))

    def two_at_once(self, case: Case) -> Iterator[Fault]:
        """Run the command twice at the same time."""
        for number in range(2):
            case.reset()
            requests = [self.lab.request(case.verb.words, told=f"{self.lab.told}-{one}") for one in range(2)]
            for one, request in enumerate(requests):
                request["told"] = f"{self.lab.told}-{one}"
            statuses = self.lab.fork(*requests)
            told = [Path(request["told"]).read_text(errors="replace") for request in requests]
            wrong = next(filter(None, map(case.wrong_message, statuses, told)), "")
            if 0 not in statuses:
                wrong = wrong or f"neither succeeded: {told[0][-300:]}"
            if not case.verb.grows:
                yield Fault(
                    "two at once", case.verb.name, f"{number}", wrong or case.wrong_state() or case.wrong_after_all()
                )
                continue
            for name, whole in case.new.items():
                added = whole.removeprefix(case.old[name])
                if (self.lab.out / name).read_bytes() != case.old[name] + added * 2:
                    wrong = wrong or f"{name}: a line was lost"
            yield Fault("two at once", case.verb.name, f"{number}", wrong)

    @contextmanager
    def _mounted(self, options: str) -> Iterator[bool]:
        """Mount a small disk on the folder of outputs, where that is permitted."""
        command = ["mount", "-t", "tmpfs", "-o", f"{options},mode=755", "tmpfs", str(self.lab.out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False) if shutil.which("mount") else None
        mounted = done is not None and not done.returncode
        if not mounted:
            self.skipped["full and read-only disks"] = "no disk may be mounted here"
        try:
            yield mounted
        finally:
            if mounted:
                subprocess.run(["umount", str(self.lab.out)], check=True)

    def _restore(self, files: Tree) -> None:
        """Put what was left on a disk into the folder that it was mounted on."""
        for name, data in files.items():
            path = self.lab.out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def spread(count: int, most: int, rng: Random) -> list[int]:
    """Return at most so many of the numbers 1 to `count`, spread over all of them; the last few are among them."""
    if count <= most:
        return list(range(1, count + 1))
    # A verb commits what it wrote at the end: half of the steps are taken there.
    late = list(range(count - most // 2 + 1, count + 1))
    return sorted({*rng.sample(range(1, count - most // 2 + 1), most - len(late)), *late})


def _short(step: str) -> str:
    event, _, path = step.partition(" ")
    return f"{event} {re.sub(r'partial-[0-9]+-[0-9a-f]+', 'partial', Path(path).name)}"


_READERS: tuple[tuple[str, tuple[str, ...], str, bool], ...] = (
    ("manifest", ("manifest/manifest.json",), "show {out}/manifest", True),
    ("id list", ("manifest/ids/closed.txt", "manifest/ids/wr1.txt"), "verify {out}/manifest", True),
    (
        "embedding shard",
        ("store/vectors-*.npy", "store/rows.json", "store/store.json"),
        "neighbors --queries {out}/store --references {out}/store -k 2 --engine numpy --json",
        False,
    ),
    ("leaderboard", ("board.jsonl",), "leaderboard {out}/board.jsonl", False),
    ("decisions", ("decisions.jsonl",), "decisions {out}/decisions.jsonl", False),
)
"""What bits are flipped in, where it lies, what reads it, and whether every bit is under a digest."""


def bit_flips(injection: Injection) -> Iterator[Fault]:
    """Flip a bit of what this tool wrote, and read it; and of the cache, which a build then does without."""
    lab = injection.lab
    for what, patterns, words, pinned in _READERS:
        rng = injection.rng("flip", what)
        for number in range(injection.moments * 4):
            lab.put({})
            top = patterns[0].split("/")[0]
            copy = shutil.copytree if (lab.inputs / top).is_dir() else shutil.copy
            copy(lab.inputs / top, lab.out / top)
            path = rng.choice(sorted(lab.out.glob(patterns[number % len(patterns)])))
            where = _flip(path, rng)
            status, told = lab.run(words)
            wrong = Case.wrong_message(status, told)
            if not wrong and status == 0 and (pinned or path.suffix == ".npy"):
                wrong = "a changed file passed as whole"
            yield Fault("bit flip", what, where, wrong)
    yield from _cache_flips(injection)


def _cache_flips(injection: Injection) -> Iterator[Fault]:
    case = Case(injection.lab, VERBS["build"])
    cache = tree(injection.lab.cache)
    rng = injection.rng("flip", "cache")
    for _ in range(injection.moments * 4):
        case.reset()
        for name, data in cache.items():
            path = injection.lab.cache / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        where = _flip(injection.lab.cache / rng.choice(sorted(cache)), rng)
        status, told = injection.lab.run(case.verb.words)
        wrong = "" if status == 0 else f"exit status {status}: {told[-300:]}"
        if not wrong and tree(injection.lab.out) != case.new:
            wrong = "another manifest was built"
        yield Fault("bit flip", "cache of a build", where, wrong)


def _flip(path: Path, rng: Random) -> str:
    data = bytearray(path.read_bytes())
    place, bit = rng.randrange(len(data)), rng.randrange(8)
    data[place] ^= 1 << bit
    path.write_bytes(data)
    return f"{path.name}: bit {bit} of byte {place}"


def append_decisions(path: str, reviewer: str, count: int) -> int:
    """Be a reviewer: append so many decisions, one by one, and tell each that is confirmed."""
    from curation.decisions.decision import Decision
    from curation.decisions.files import DecisionLog

    log = DecisionLog(Path(path))
    for number in range(count):
        log.append(
            Decision(image_id=f"coco:{number:012d}", dataset="coco", stage="manual", action="remove", reviewer=reviewer)
        )
        os.write(1, f"{number}\n".encode())
    return 0


def two_reviewers(injection: Injection) -> Iterator[Fault]:
    """Let two reviewers append to one log; one is killed: what was confirmed is there, and nothing is torn."""
    from curation.decisions.files import read_decisions

    lab, rng = injection.lab, injection.rng("reviewers")
    count = 30
    for _ in range(injection.moments * 3):
        lab.put({})
        path = lab.out / "decisions.jsonl"
        after = rng.uniform(0.0, 0.25)
        requests = [
            {
                "call": "tests.torture.faults:append_decisions",
                "arguments": [str(path), name, count],
                "told": f"{lab.told}-{name}",
                "after": wait,
            }
            for name, wait in (("Ann", None), ("Ben", after))
        ]
        statuses = lab.fork(*requests)
        confirmed = [len(Path(one["told"]).read_text().split()) for one in requests]
        wrong = "" if statuses[0] == 0 and statuses[1] in (0, -9) else f"exit statuses {statuses}"
        (last,) = lab.fork(requests[0] | {"after": None})
        rows = read_decisions(path).decisions
        found = Counter(row.reviewer for row in rows)
        if not wrong and (last or found["Ann"] != 2 * count or found["Ben"] not in (confirmed[1], confirmed[1] + 1)):
            wrong = f"confirmed {confirmed}, found {dict(found)}"
        yield Fault("two reviewers, one killed", "decisions log", f"{after:.3f} s", wrong)


def hub_cuts(injection: Injection) -> Iterator[Fault]:
    """Cut the connection to a hub at each of its routes, while it answers or before, in a push and in a pull."""
    try:
        import huggingface_hub  # noqa: F401
        import mlcroissant  # noqa: F401
    except ImportError:
        injection.skipped["hub connection cut"] = "no client of a hub is installed"
        return
    from tests.fake_hub import WRITER, serving

    lab = injection.lab
    with serving() as hub:
        environment = {
            "HF_ENDPOINT": hub.url, "HF_TOKEN": WRITER, "NO_PROXY": "127.0.0.1", "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_OFFLINE": "0", "HF_HOME": str(lab.scratch / "hub"),
        }  # fmt: skip
        push = VERBS["publish --dry-run"].words.partition(" --dry-run")[0]
        pull = "pull lab/elephant@1.0.0 --out {out}/pulled"
        for verb, words in (("publish", push), ("pull", pull)):
            lab.put({})
            if verb == "publish":
                hub.repositories.clear()
            hub.requests.clear()
            status, told = lab.run(words, environment=environment)
            if status:
                raise AssertionError(f"{verb} fails undisturbed: {told}")
            new, routes = tree(lab.out), sorted(set(hub.requests))
            for route in routes:
                for answered in (False, True):
                    lab.put({})
                    if verb == "publish":
                        hub.repositories.clear()
                        hub.large.clear()
                    hub.break_at, hub.break_after, hub.breaks = route, answered, 1_000
                    status, told = lab.run(words, environment=environment)
                    hub.breaks = 0
                    wrong = Case.wrong_message(status, told)
                    if not wrong and status == 0 and verb == "pull" and tree(lab.out) != new:
                        wrong = "it says that it succeeded, and has not"
                    if not wrong and status and visible(tree(lab.out)):
                        wrong = "half a publication was left"
                    if WRITER in told:
                        wrong = "the token is in the message"
                    if not wrong:
                        again, told = lab.run(words, environment=environment) if status else (0, "")
                        wrong = f"the re-run fails: {told[-300:]}" if again else ""
                        if not wrong and tree(lab.out) != new:
                            wrong = "the re-run gives other files"
                    yield Fault(
                        "hub connection cut", verb, f"{route}, {'answer' if answered else 'request'} lost", wrong
                    )


def inject(folder: Path, seed: str, *, steps: int, moments: int, only: str = "") -> tuple[list[Fault], dict[str, str]]:
    """Inject faults in a folder of one's own, and return them, and what could not be tried and why."""
    lab = Lab(folder, seed)
    injection = Injection(lab, steps, moments, only)
    faults = []
    try:
        for fault in injection.all():
            faults.append(fault)
            if fault.wrong:
                print(f"  {fault.kind}, {fault.verb}, {fault.where}: {fault.wrong}", flush=True)
    finally:
        lab.close()
    return faults, injection.skipped


def run(options: argparse.Namespace) -> int:
    """Inject as the command line asks; print the table, and return how many faults left what they may not."""
    steps = 12 if options.count is None else max(1, options.count // (3 * len(VERBS)))
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        faults, skipped = inject(Path(folder), options.seed, steps=steps, moments=3, only=options.only)
    print(table(faults))
    for what, why in skipped.items():
        print(f"not tried: {what}: {why}")
    wrong = sum(bool(fault.wrong) for fault in faults)
    print(f"{len(faults)} faults, {wrong} of them left what they may not")
    return wrong


def table(faults: Sequence[Fault]) -> str:
    """Return how many faults of each kind each verb had."""
    kinds = sorted({fault.kind for fault in faults})
    counts = Counter((fault.verb, fault.kind) for fault in faults)
    wrong = Counter(fault.verb for fault in faults if fault.wrong)
    verbs = dict.fromkeys(fault.verb for fault in faults)
    heads = [f"{number:>3} {kind}" for number, kind in enumerate(kinds, 1)]
    lines = [f"{'':<22}" + "".join(f"{number:>5}" for number in range(1, len(kinds) + 1)) + "    all  wrong"]
    for verb in verbs:
        row = [counts[verb, kind] for kind in kinds]
        lines.append(f"{verb:<22}" + "".join(f"{one or '':>5}" for one in row) + f"{sum(row):>7}{wrong[verb]:>7}")
    return "\n".join([*heads, *lines])
