"""Whether the memory that a computation needs is there, asked before it starts: an engine that gets none aborts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from curation.core.errors import EvaluationError

_MACHINE, _PROCESS, _GROUPS = Path("/proc/meminfo"), Path("/proc/self"), Path("/sys/fs/cgroup")
_FILES = {"": ("memory.max", "memory.current"), "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes")}
"""Limit and use of a control group, of version 2 and of version 1, by controller."""
_KEPT = 64 << 20


def available_memory() -> int | None:
    """Return the bytes that this process can still take without swapping, None where the system does not say.

    The least of what is free on the machine, in the process's control groups, and in its address space (ulimit -v);
    Linux.
    """
    limits = (_of_machine(), *_of_groups(), _of_address_space())
    return min((limit for limit in limits if limit is not None), default=None)


def require_memory(needed: int, what: str, *, hint: str | None = None) -> None:
    """Raise `EvaluationError` where a computation would take more bytes than there are."""
    if needed <= _KEPT:
        return
    free = available_memory()
    if free is not None and needed > free:
        raise EvaluationError(
            f"{what} need more memory than there is",
            expected=f"about {needed / 2**30:,.1f} GiB",
            found=f"{free / 2**30:,.1f} GiB",
            hint=hint,
        )


def _of_machine() -> int | None:
    try:
        lines = _MACHINE.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def _of_groups() -> Iterator[int]:
    """Yield what is free in each control group that the process belongs to, from its own to the outermost."""
    try:
        lines = (_PROCESS / "cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    for controllers, path in (line.split(":", 2)[1:] for line in lines if line.count(":") >= 2):
        # In a container the outermost group may be called by a path that is not there: its files are at the top.
        for controller in _FILES.keys() & set(controllers.split(",")):
            own = PurePosixPath(path.lstrip("/"))
            for group in (own, *own.parents):
                if (free := _of_group(_GROUPS / controller / group, *_FILES[controller])) is not None:
                    yield free


def _of_group(group: Path, limit: str, usage: str) -> int | None:
    try:
        most, used = (int((group / name).read_text(encoding="ascii")) for name in (limit, usage))
        counts = dict(line.split() for line in (group / "memory.stat").read_text(encoding="ascii").splitlines())
        # Cached pages of files are given back when memory is needed.
        return max(most - used + int(counts.get("total_inactive_file", counts.get("inactive_file", 0))), 0)
    except (OSError, ValueError):
        return None


def _of_address_space() -> int | None:
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return None
        pages = int((_PROCESS / "statm").read_text(encoding="ascii").split()[0])
        return max(limit - pages * resource.getpagesize(), 0)
    except (ImportError, OSError, ValueError, IndexError):
        return None
