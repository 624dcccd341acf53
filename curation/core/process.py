"""The process: its exit status, Ctrl-C, a reader that goes away (``| head``), progress on a terminal, and memory.

Nothing large is imported before it is needed, so that Ctrl-C is handled from the start.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from curation.core.errors import CurationError, EvaluationError, of_the_machine

INTERRUPTED = 130
_FAILED = 2
_CONTAINERS = 100_000
"""New objects after which Python looks for cycles: after 700, its default, it takes a fifth of a command's time."""


def enter(program: str) -> int:
    """Run ``"MODULE:FUNCTION"`` as the main program, and return its exit status.

    Parameters
    ----------
    program : str
        The function takes nothing and returns an exit status. Its module is imported here.
    """
    from importlib import import_module

    gc.set_threshold(_CONTAINERS)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # Closed by the shell.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 (until the process ends)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    status: Any = _FAILED
    try:
        module, _, name = program.partition(":")
        status = getattr(import_module(module), name)()
    except SystemExit as leaving:  # argparse: help, or wrong use
        status = leaving.code
    except KeyboardInterrupt:
        status = _interrupted()
    try:
        sys.stdout.flush()
    except OSError as error:
        # The interpreter would try to write the rest again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if status != _FAILED and not isinstance(error, BrokenPipeError):
            print(f"error: The answer cannot be written to standard output: {error.strerror}", file=sys.stderr)
            status = _FAILED
    return status if isinstance(status, int) else 0 if status is None else _FAILED


def outcome(call: Callable[[], int], report: Callable[[Any], None]) -> int:
    """Return the exit status of a command: 0 done, 1 the check failed, 2 wrong use or input, 130 interrupted.

    Parameters
    ----------
    call : callable
        Does the work and returns 0 or 1.
    report : callable
        Prints a `CurationError`.
    """
    try:
        return call()
    except CurationError as error:
        problem = error
    except (OSError, MemoryError, RecursionError, UnicodeError) as error:
        problem = of_the_machine(error)
    except KeyboardInterrupt:
        return _interrupted()
    with suppress(OSError):  # Standard error is closed.
        report(problem)
    return problem.exit_code


def _interrupted() -> int:
    print("interrupted; no partial output is left", file=sys.stderr)
    return INTERRUPTED


Item = TypeVar("Item")


def steps(items: Iterable[Item], description: str) -> Iterable[Item]:
    """Return an iterable of the items that shows progress on standard error if that is a terminal."""
    from tqdm import tqdm

    progress: Iterable[Item] = tqdm(items, desc=description, disable=None, leave=False)
    return progress


@contextmanager
def stage(description: str) -> Iterator[None]:
    """Show the description of a long piece of work on standard error while it lasts, if that is a terminal."""
    from tqdm import tqdm

    with tqdm(desc=description, total=1, disable=None, leave=False, bar_format="{desc} …"):
        yield


_MACHINE, _GROUP, _GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_SMALL = 64 << 20


def available_memory() -> int | None:
    """Return the bytes that this process can still use without swapping, or None if the system does not report them.

    The minimum of the free memory of the machine and of the process's control groups (version 2); Linux only.
    """
    limits = (_of_machine(), *_of_groups())
    return min((limit for limit in limits if limit is not None), default=None)


def require_memory(needed: int, subject: str, *, hint: str | None = None) -> None:
    """Raise `EvaluationError` if a computation needs more memory than is available."""
    free = available_memory() if needed > _SMALL else None
    if free is not None and needed > free:
        raise EvaluationError(
            f"{subject} need more memory than is available",
            expected=f"about {needed / 2**30:,.1f} GiB",
            found=f"{free / 2**30:,.1f} GiB",
            hint=hint,
        )


def _of_machine() -> int | None:
    with suppress(OSError, ValueError, StopIteration):
        lines = _MACHINE.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    return None


def _of_groups() -> Iterator[int]:
    """Yield the free memory of each control group of the process, from the innermost to the outermost."""
    with suppress(OSError, ValueError, StopIteration):
        lines = _GROUP.read_text(encoding="utf-8").splitlines()
        innermost = PurePosixPath(next(line[3:] for line in lines if line.startswith("0::")).lstrip("/"))
        for group in (innermost, *innermost.parents):
            # In a container the outermost group may have a path that does not exist: its files are at the top.
            with suppress(OSError, ValueError):
                most, used = (int((_GROUPS / group / name).read_text()) for name in ("memory.max", "memory.current"))
                counts = dict(line.split() for line in (_GROUPS / group / "memory.stat").read_text().splitlines())
                # Cached pages of files are given back when memory is needed.
                yield max(most - used + int(counts.get("inactive_file", 0)), 0)
