"""Faults in every writing verb: after each the old state or the new one, a clear error, a re-run that works.

A fault is (kind, verb, where). What is looked at after it: the exit status and the message; that each file of the
output has the bytes that it had before or those of an undisturbed run, and a folder all of them or none; that the same
command, undisturbed, then succeeds and leaves the very bytes of an undisturbed run and nothing else; and that no input
has changed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.torture.forks import Forks
from tests.torture.verbs import VERBS, Verb, filled, write_world

Tree = dict[str, bytes]
KINDS = ("at_steps", "at_moments", "file_limits", "read_only", "denied", "clock_jumps", "two_at_once")
"""Methods of `Injection` that inject the faults of a verb."""
ERRORS = ("ENOSPC", "EIO", "EACCES", "EROFS", "EDQUOT")


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
    forks : Forks, optional
        Of another's.
    """

    def __init__(self, folder: Path, seed: str = "0", forks: Forks | None = None) -> None:
        self.seed = seed
        self.scratch = folder / "scratch"
        self.out, self.cache = self.scratch / "out", self.scratch / "cache"
        os.environ["CURATION_CACHE"] = str(folder / "world-cache")
        from tests.unpainted import unpainted

        with unpainted():
            self.inputs = write_world(folder / "in")
        self.given = tree(self.inputs)
        self.told = folder / "told"
        self.forks = forks or Forks(folder)

    def close(self) -> None:
        """End the process."""
        self.forks.close()

    def request(self, words: str, **more: Any) -> dict[str, Any]:
        """Return a request to run a command line, with its folders."""
        environment = {"CURATION_CACHE": str(self.cache), **more.pop("environment", {})}
        given = filled(words, self.inputs, self.out)
        return {"words": given, "told": str(self.told), "root": str(self.scratch), "environment": environment, **more}

    def run(self, words: str, **more: Any) -> tuple[int, str]:
        """Run a command line; return exit status and output."""
        (status,) = self.forks.run(self.request(words, **more))
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
        began = time.monotonic()
        status, told = lab.run(verb.words, fault={"at": 0, "action": ""})
        self.seconds = time.monotonic() - began
        if status != verb.done:
            raise AssertionError(f"{verb.name}: it ends undisturbed with {status}: {told}")
        self.new = tree(lab.out)
        steps = Path(f"{lab.told}.steps")
        self.steps = steps.read_text().split("\n") if steps.exists() else []
        steps.unlink(missing_ok=True)

    def reset(self) -> None:
        """Make the old state."""
        self.lab.put(self.old)

    def wrong(self, status: int, told: str, *, killed: bool = False) -> str:
        """Return what is wrong after a fault, ``""`` if nothing is; the folder of outputs may be written again."""
        return self.wrong_now(status, told, killed=killed) or self.wrong_after_all()

    def wrong_now(self, status: int, told: str, *, killed: bool = False) -> str:
        """Look at exit status, message and files."""
        return wrong_message(status, told, killed=killed, done=self.verb.done) or self.wrong_state()

    def wrong_state(self) -> str:
        """Look whether every file is the old or the new one, and every folder whole."""
        if self.verb.grows:
            return ""
        now = {
            name: data
            for name, data in visible(tree(self.lab.out)).items()
            if name.split("/")[0] not in self.verb.resumes
        }
        for name, data in now.items():
            if data not in (self.old.get(name), self.new.get(name)):
                return f"{name} is neither the old file nor the new one ({len(data)} bytes)"
        if lost := sorted(set(visible(self.old)) - set(now)):
            return f"lost: {lost[0]}"
        for folder in self.verb.whole:
            found = {name for name in now if name.startswith(f"{folder}/")}
            if found and found != {name for name in visible(self.new) if name.startswith(f"{folder}/")}:
                return f"{folder} is not whole: {len(found)} files"
        return ""

    def wrong_after_all(self) -> str:
        """Run the command undisturbed, and look whether all is as if nothing had been."""
        done = tree(self.lab.out) == self.new
        status, told = self.lab.run(self.verb.words)
        if status != self.verb.done and not (done and status == self.verb.again):
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


def wrong_message(status: int, told: str, *, killed: bool = False, done: int = 0) -> str:
    """Look at exit status and message; `done` is the status of a run that nothing disturbs."""
    if "Traceback" in told:
        return f"a traceback: {told[-600:]}"
    if status not in ((0, 1, 2, -9) if killed else (0, 1, 2)):
        return f"exit status {status}: {told[-300:]}"
    if status in (1, 2) and status != done and "error: " not in told:
        return f"exit status {status} without an error: {told[-300:]}"
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
    flips : int
        Bits of each file that this tool writes.
    """

    lab: Lab
    steps: int = 12
    moments: int = 3
    only: str = ""
    flips: int = 12

    def all(self) -> Iterator[Fault]:
        """Inject every fault, and yield what came of it."""
        for name, verb in VERBS.items():
            if self.only in name:
                yield from self.of_verb(Case(self.lab, verb))
        if self.only in "bit_flips":
            yield from bit_flips(self)
        if tree(self.lab.inputs) != self.lab.given:
            yield Fault("any", "all", "", "an input has changed")

    def of_verb(self, case: Case, kinds: Sequence[str] = KINDS) -> Iterator[Fault]:
        """Inject the faults of one verb."""
        for kind in kinds:
            yield from getattr(self, kind)(case)

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
            after = rng.uniform(0.0, case.seconds)
            status, told = self.lab.run(case.verb.words, after=after)
            yield Fault("kill -9 at a moment", case.verb.name, f"{after:.3f} s", case.wrong(status, told, killed=True))

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
        """Let the outputs lie in a folder that may not be written."""
        case.reset()
        folders = [self.lab.out, *(path for path in self.lab.out.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        status, told = self.lab.run(case.verb.words, humble=True)
        for folder in folders:
            folder.chmod(0o755)
        wrong = case.wrong_now(status, told)
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
            wrong = case.wrong_now(status, told)
            # An input that the output does not need may be passed over.
            if status == case.verb.done and tree(self.lab.out) != case.new:
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
        for seed in range(min(2, self.moments)):
            case.reset()
            status, told = self.lab.run(case.verb.words, clock=seed)
            wrong = "" if status == case.verb.done else f"exit status {status}: {told[-300:]}"
            if not wrong and tree(self.lab.out) != case.new:
                wrong = "the clock is in the output"
            yield Fault("clock jumps", case.verb.name, f"seed {seed}", wrong or case.wrong(status, told))

    def two_at_once(self, case: Case) -> Iterator[Fault]:
        """Run the command twice at the same time."""
        for number in range(min(2, self.moments)):
            case.reset()
            requests = [self.lab.request(case.verb.words, told=f"{self.lab.told}-{one}") for one in range(2)]
            for one, request in enumerate(requests):
                request["told"] = f"{self.lab.told}-{one}"
            statuses = self.lab.forks.run(*requests)
            told = [Path(str(request["told"])).read_text(errors="replace") for request in requests]
            messages = (wrong_message(*one, done=case.verb.done) for one in zip(statuses, told, strict=True))
            wrong = next(filter(None, messages), "")
            if case.verb.done not in statuses:
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


_NEIGHBORS = "similarity neighbors --queries {} --references {} -k 2 --json"
_STEPS = ("shards/*.parquet", "index.jsonl", "shards.json", "step.json")
_READERS: tuple[tuple[str, str, tuple[str, ...], str, str], ...] = (
    ("manifest", "manifest", ("manifest.json",), "show {made}", "told"),
    ("id list", "manifest", ("ids/closed.txt", "ids/wr1.txt"), "verify {made}", "told"),
    ("embedding shard", "store", ("vectors-*.npy",), _NEIGHBORS.format("{made}", "{made}"), "told"),
    ("embedding rows", "store", ("rows.json", "store.json"), _NEIGHBORS.format("{made}", "{made}"), "read"),
    ("corpus shard", "vectors", _STEPS, _NEIGHBORS.format("{in}/store", "{made}") + " --workers 1", "right"),
    ("presence shard", "scanned", _STEPS, "inspect {in}/shown --workers 1 --presence {made} --json", "right"),
    ("leaderboard", "board.jsonl", ("",), "leaderboard {made}", "read"),
    ("decisions", "decisions.jsonl", ("",), "review summary {made}", "read"),
)
"""What bits are flipped in, where it lies, in which of its files, what reads it, and what becomes of the change.

``told``: every bit is under a digest, and the change is an error; ``right``: an error, or the same answer as before;
``read``: an error or an answer, since the file is its user's.
"""


def bit_flips(injection: Injection) -> Iterator[Fault]:
    """Flip a bit of what this tool wrote, and read it; and of the cache, which a build then does without."""
    lab = injection.lab
    for what, name, patterns, words, becomes in _READERS:
        rng = injection.rng("flip", what)
        words = words.replace("{made}", f"{{out}}/{name}")
        right = ""
        for number in range(injection.flips + 1):
            lab.put({})
            copy = shutil.copytree if (lab.inputs / name).is_dir() else shutil.copy
            copy(lab.inputs / name, lab.out / name)
            if not number and becomes != "right":
                continue
            if not number:
                status, right = lab.run(words)
                if status:
                    raise AssertionError(f"{what}: it cannot be read undisturbed: {right}")
                continue
            pattern = patterns[number % len(patterns)]
            path = rng.choice(sorted(lab.out.glob(f"{name}/{pattern}".rstrip("/"))))
            where = _flip(path, rng)
            status, told = lab.run(words)
            wrong = wrong_message(status, told)
            if not wrong and not status and (becomes == "told" or (becomes == "right" and told != right)):
                wrong = "a changed file passed as whole"
            yield Fault("bit flip", what, where, wrong)
    yield from _cache_flips(injection)


def _cache_flips(injection: Injection) -> Iterator[Fault]:
    case = Case(injection.lab, VERBS["build"])
    cache = tree(injection.lab.cache)
    rng = injection.rng("flip", "cache")
    for _ in range(injection.flips):
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


def run(options: argparse.Namespace) -> int:
    """Inject as the command line asks; print the table, and return how many faults left what they may not."""
    steps = 12 if options.count is None else max(1, options.count // (3 * len(VERBS)))
    faults = []
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        lab = Lab(Path(folder), options.seed)
        try:
            for fault in Injection(lab, steps, 3, options.only).all():
                faults.append(fault)
                if fault.wrong:
                    print(f"  {fault.kind}, {fault.verb}, {fault.where}: {fault.wrong}", flush=True)
        finally:
            lab.close()
    print(table(faults))
    wrong = sum(bool(fault.wrong) for fault in faults)
    print(f"{len(faults)} faults, {wrong} of them left what they may not")
    return wrong


def table(faults: Sequence[Fault]) -> str:
    """Return how many faults of each kind each verb had."""
    counts = Counter((fault.verb, fault.kind) for fault in faults)
    return "\n".join(f"{verb:<22}{kind:<32}{count:>5}" for (verb, kind), count in counts.items())
