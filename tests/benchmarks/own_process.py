"""A piece of work in a process of its own: seconds, seconds of all cores, peak memory, and what it found.

A work is a function ``(folder, clock, *arguments)``: what it imports and prepares stands before ``with clock:``, what
is measured below it. It returns numbers that other works on the same input must find as well, or None.

``getrusage`` hands a child the peak of its parent: between ``fork`` and ``exec`` the child *is* the parent. So the
high-water mark (``VmHWM``) is read, which belongs to the memory of the program that runs and begins with it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

_ROOT = Path(__file__).parents[2]
_STATUS = Path("/proc/self/status")


class Clock:
    """Seconds inside its ``with`` blocks, and seconds of all cores, those of child processes included."""

    def __init__(self) -> None:
        self.seconds = self.cores = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter(), sum(os.times()[:4])

    def __exit__(self, *error: object) -> None:
        self.seconds += time.perf_counter() - self._began[0]
        self.cores += sum(os.times()[:4]) - self._began[1]


class Spent(NamedTuple):
    """What a work took: seconds, seconds of all cores, MiB at its peak; and what it found."""

    seconds: float
    cores: float
    mib: float
    found: Any


@dataclass(frozen=True)
class Work:
    """A function of this package with its arguments; `needs` names a package without which it is left out."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    needs: str = ""

    @property
    def possible(self) -> bool:
        """Whether what it needs is installed."""
        return not self.needs or importlib.util.find_spec(self.needs) is not None

    def spent(self, folder: Path) -> Spent:
        """Return what it takes in a fresh process."""
        name = f"{self.function.__module__}:{self.function.__name__}"
        command = [sys.executable, "-m", __name__, name, str(folder), json.dumps(self.arguments)]
        # As a user's second run does: modules are compiled once.
        environment = os.environ | {"PYTHONPATH": str(_ROOT), "PYTHONDONTWRITEBYTECODE": ""}
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=_ROOT, check=True)
        return Spent(*json.loads(done.stdout.splitlines()[-1]))


def peak_mib() -> float:
    """Return the most memory that this program has held at a time, or the largest of those it has started, in MiB."""
    if _STATUS.exists():
        own = int(_STATUS.read_text().split("VmHWM:")[1].split()[0])
        return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 2**10
    # Elsewhere the parent's peak may shine through. macOS counts in bytes, others in KiB.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main(name: str, folder: str, arguments: str) -> None:
    """Do a work and print what it took as JSON."""
    module, _, function = name.partition(":")
    clock = Clock()
    found = getattr(importlib.import_module(module), function)(Path(folder), clock, *json.loads(arguments))
    print(json.dumps(Spent(clock.seconds, clock.cores, peak_mib(), found)))


if __name__ == "__main__":
    main(*sys.argv[1:])
