"""A piece of work in a process of its own, with the peak memory of that process alone.

``getrusage`` hands a child the peak of its parent: between ``fork`` and ``exec`` the child *is* the parent, and Linux
keeps the highest of both. So a benchmark that drew gibibytes of input told of each part that it took as much. Here the
high-water mark (``VmHWM``) is read, which belongs to the memory of the program that runs and begins with it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_STATUS = Path("/proc/self/status")
_BEFORE = """
import subprocess, sys, time, numpy; from pathlib import Path; folder = Path(sys.argv[1])
def clocks(): return numpy.array([time.perf_counter(), time.process_time()])
"""
_AFTER = """
from tests.benchmarks.own_process import peak_gib
print(*spent, peak_gib(), count)
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a piece of work took: seconds, seconds of all cores together, GiB of memory at its peak; and a count."""

    seconds: float
    cores: float
    gib: float
    count: int


def peak_gib() -> float:
    """Return the most memory that this program has held at a time, in GiB."""
    if _STATUS.exists():
        line = next(one for one in _STATUS.read_text().splitlines() if one.startswith("VmHWM:"))
        return int(line.split()[1]) / 2**20
    # Elsewhere the parent's peak may shine through. macOS counts in bytes, others in KiB.
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def spent_by(code: str, folder: Path) -> Spent:
    """Return what a piece of work takes in a process of its own.

    Parameters
    ----------
    code : str
        Python that sets ``spent`` (a difference of two ``clocks()``) and ``count``; it may use ``folder``, ``numpy``,
        ``Path``, ``subprocess`` and ``sys``.
    """
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    command = [sys.executable, "-c", _BEFORE + code + _AFTER, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    seconds, cores, gib, count = map(float, done.stdout.split())
    return Spent(seconds, cores, gib, int(count))
