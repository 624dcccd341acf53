"""Runs changed files through readers, in processes of their own with limits on time and memory.

An input is named by its target, a seed and its number: the same three make the same bytes, on any machine. In a worker
an audit hook refuses what no reader may do: to write outside the folder of the input, to start a program, to connect,
to unpickle.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from curation.core.errors import CurationError
from tests.torture.mutations import mutated
from tests.torture.readers import Files, Target, targets

SECONDS = 5.0
"""Processor time that an input may take."""
PATIENCE = 120.0
"""Time by the clock, on a machine that does other work too."""
MEBIBYTES = 1024
"""Memory that the inputs of a worker may take beside what its modules take."""
LONGEST_MESSAGE = 4_000
_PIECE = 500
_FORBIDDEN = frozenset(
    ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect", "pickle.find_class",
     "urllib.Request", "ctypes.dlopen", "webbrowser.open")
)  # fmt: skip
_CHANGING = frozenset(
    ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown",
     "shutil.rmtree", "shutil.move", "shutil.copyfile")
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class ForbiddenError(BaseException):
    """A reader did what none may do; no ``except Exception`` hides it."""


@dataclass(frozen=True, slots=True)
class Crash:
    """An input that ended otherwise than it may: not by an answer, nor by a `CurationError`."""

    target: str
    number: int
    what: str
    trace: str = ""


@dataclass(slots=True)
class Tally:
    """What became of the inputs of a target."""

    inputs: int = 0
    read: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    crashes: list[Crash] = field(default_factory=list)


def changed_files(target: Target, rng: Random) -> Files:
    """Return the files of an input: those of the target, one or two of them changed."""
    files = dict(target.files)
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(tuple(target.files))
        files[name] = mutated(name, files[name], rng)
    if target.seal is not None and rng.random() < 0.7:
        try:
            return target.seal(files)
        except Exception:
            # What has lost its structure cannot be sealed.
            return files
    return files


def input_of(target: Target, seed: str, number: int) -> Files:
    """Return the files of one input by its name."""
    return changed_files(target, Random(f"{seed}:{target.name}:{number}"))


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write an input into an empty folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def outcome(target: Target, folder: Path) -> str:
    """Read what lies in a folder; return ``read``, or the name of the `CurationError`.

    Raises
    ------
    AssertionError
        The message of the error is none, or longer than a reader can take in.
    """
    try:
        target.read(folder)
    except CurationError as error:
        text = str(error)
        json.dumps(error.as_dict())
        if not error.what.strip() or len(text) > LONGEST_MESSAGE:
            raise AssertionError(f"a message of {len(text):,} characters: {text[:200]!r}") from None
        return type(error).__name__
    return "read"


class Guard:
    """While `folder` is set, what no reader may do raises `ForbiddenError`; an audit hook cannot be taken away."""

    def __init__(self) -> None:
        self.folder = ""
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Look at one event."""
        if not self.folder:
            return
        if event in _FORBIDDEN:
            self._refuse(f"{event} {arguments[:1]!r}")
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
            self._check(event, arguments[0])
        elif event in _CHANGING:
            for one in arguments[:2]:
                self._check(event, one)

    def _check(self, event: str, path: Any) -> None:
        if isinstance(path, str | bytes | os.PathLike):
            place = os.path.realpath(os.fsdecode(path))
            if place != os.devnull and not f"{place}/".startswith(f"{self.folder}/"):
                self._refuse(f"{event} {place}")

    def _refuse(self, what: str) -> None:
        raise ForbiddenError(what)


def work(name: str, seed: str, numbers: Sequence[int], progress: int, place: Path) -> Iterator[dict[str, Any]]:
    """Read inputs one after the other, in this process; yield what became of each that was not read."""
    target = targets()[name]
    folder = place / "input"
    folder.mkdir()
    write_files(target.files, folder)
    # Modules are imported, and tables made, before anything is counted.
    outcome(target, folder)
    shutil.rmtree(folder)
    _limit_memory()
    guard = Guard()
    for number in numbers:
        files = input_of(target, seed, number)
        folder.mkdir()
        write_files(files, folder)
        os.pwrite(progress, f"{number:>12}".encode(), 0)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        guard.folder = os.path.realpath(folder)
        try:
            told, trace = outcome(target, folder), ""
        except BaseException as error:
            told, trace = f"{type(error).__name__}: {str(error)[:200]}", traceback.format_exc()[-3000:]
        finally:
            guard.folder = ""
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        yield {"number": number, "told": told, "trace": trace}
        shutil.rmtree(folder)
    if left := [one.name for one in place.iterdir()]:
        yield {"number": -1, "told": f"files outside the folder: {left[:5]}", "trace": "?"}


def _limit_memory() -> None:
    status = Path("/proc/self/status")
    if status.exists():
        line = next(one for one in status.read_text().splitlines() if one.startswith("VmSize:"))
        most = int(line.split()[1]) * 1024 + (MEBIBYTES << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def fuzz(name: str, seed: str, count: int, *, start: int = 0) -> Tally:
    """Run a number of inputs of one target through workers; a worker that dies costs one input."""
    tally = Tally()
    numbers = list(range(start, start + count))
    while numbers:
        piece, numbers = numbers[:_PIECE], numbers[_PIECE:]
        numbers = _run(name, seed, piece, tally) + numbers
    return tally


def _run(name: str, seed: str, numbers: list[int], tally: Tally) -> list[int]:
    """Run one worker; return the numbers that it did not come to."""
    with tempfile.TemporaryDirectory(prefix="torture-", dir=_quick_folder()) as folder:
        progress = Path(folder, "progress")
        progress.write_text(f"{numbers[0]:>12}")
        (Path(folder) / "held").mkdir()
        worker = (name, seed, str(numbers[0]), str(len(numbers)), folder)
        command = [sys.executable, "-m", "tests.torture.fuzzing", *worker]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "CURATION_CACHE": f"{folder}/held/input/cache"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        for row in rows:
            tally.inputs += row["number"] >= 0
            if row["trace"]:
                tally.crashes.append(Crash(name, row["number"], row["told"], row["trace"]))
            elif row["told"] == "read":
                tally.read += 1
            else:
                tally.refused[row["told"]] += 1
        if done.returncode == 0:
            return []
        if done.returncode > 0:
            raise RuntimeError(f"the worker of {name} cannot begin: {done.stderr[-1500:]}")
        died = int(progress.read_text())
        tally.inputs += 1
        what = {
            -signal.SIGPROF: f"more than {SECONDS:g} s of processor time",
            -signal.SIGALRM: f"more than {PATIENCE:g} s",
        }
        tally.crashes.append(
            Crash(name, died, what.get(done.returncode, f"the process died: {done.returncode}"), done.stderr[-2000:])
        )
        return [one for one in numbers if one > died]


def _quick_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 (a name of its own below it)


def fuzz_all(seed: str, count: int, *, only: str = "", workers: int = 2) -> dict[str, Tally]:
    """Fuzz all targets whose names hold a text, `count` inputs together, and tell each as it is done."""
    chosen = {name: one for name, one in targets().items() if only in name}
    if not chosen:
        raise SystemExit(f"no reader is called {only!r}: there are {', '.join(targets())}")
    weights = sum(one.weight for one in chosen.values())
    shares = {name: -(-count * one.weight // weights) for name, one in chosen.items()}
    with ThreadPoolExecutor(workers) as pool:
        tallies = {}
        for name, tally in pool.map(lambda name: (name, fuzz(name, seed, shares[name])), shares):
            tallies[name] = tally
            print(line_of(name, tally), flush=True)
            for crash in tally.crashes[:3]:
                print(f"  input {crash.number}: {crash.what}", flush=True)
    return tallies


def run(options: argparse.Namespace) -> int:
    """Fuzz as the command line asks; return how many inputs crashed."""
    if options.input is not None:
        return _show(options.only, options.seed, options.input)
    tallies = fuzz_all(options.seed, options.count or 100_000, only=options.only)
    crashes = [crash for tally in tallies.values() for crash in tally.crashes]
    for crash in crashes:
        print(f"\n{crash.target}, input {crash.number}: {crash.what}\n{crash.trace}")
    inputs = sum(tally.inputs for tally in tallies.values())
    read = sum(tally.read for tally in tallies.values())
    print(f"{len(tallies)} readers, {inputs:,} inputs, {read:,} read, {len(crashes)} crashes")
    return len(crashes)


def _show(name: str, seed: str, number: int) -> int:
    """Run one input in this process, without limits, and show its files."""
    target = targets()[name]
    with tempfile.TemporaryDirectory() as folder:
        files = input_of(target, seed, number)
        for one, data in files.items():
            if data != target.files.get(one):
                print(f"{one}: {data[:2000]!r}")
        write_files(files, Path(folder))
        print(outcome(target, Path(folder)))
    return 0


def line_of(name: str, tally: Tally) -> str:
    """Return the row of a target in the table of counts."""
    refused = sum(tally.refused.values())
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in tally.refused.most_common(3))
    counts = f"{tally.inputs:>8,} inputs {tally.read:>8,} read {refused:>8,} refused {len(tally.crashes):>4} crashes"
    return f"{name:<28} {counts}  {kinds}"


def main() -> None:
    """Be a worker: NAME SEED START COUNT FOLDER."""
    name, seed, start, count, folder = sys.argv[1:]
    place = Path(folder, "held")
    os.chdir(place)
    progress = os.open(Path(folder, "progress"), os.O_RDWR)
    for row in work(name, seed, range(int(start), int(start) + int(count)), progress, place):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
