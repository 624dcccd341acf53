"""Whether the memory that a computation needs is there, asked before it starts: an engine that gets none aborts."""

from __future__ import annotations

from pathlib import Path

from curation.core.errors import EvaluationError

_MACHINE, _GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
_KEPT = 64 << 20


def available_memory() -> int | None:
    """Return the bytes that this process can still take without swapping, None where the system does not say.

    The lesser of what is free on the machine and in the process's control group (Linux).
    """
    found = [limit for limit in (_of_machine(), _of_group()) if limit is not None]
    return min(found, default=None)


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


def _of_group() -> int | None:
    try:
        most, used = (int((_GROUP / f"memory.{name}").read_text(encoding="ascii")) for name in ("max", "current"))
    except (OSError, ValueError):
        return None
    return max(most - used, 0)
