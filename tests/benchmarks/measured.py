"""One measured figure of a benchmark beside what is required of it, and the time of work that is done several times."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

REPEATS = 5


def measured(
    what: str, value: float, unit: str = "", note: str = "", *, most: float | None = None, least: float | None = None
) -> dict[str, Any]:
    """Return a figure as a row of the results; ``met`` is None where nothing is required.

    Parameters
    ----------
    unit : str
        By default a ratio where `what` names two things with `` / `` between them, else seconds.
    most, least : float, optional
        At most one of the two: what the figure may be.
    """
    limit = most if most is not None else least
    word = "most" if most is not None else "least"
    return {
        "what": what,
        "value": round(value, 6),
        "unit": unit or ("ratio" if " / " in what else "s"),
        "required": "" if limit is None else f"at {word} {limit:g}",
        "met": None if limit is None else bool(value <= limit if most is not None else value >= limit),
        "note": note,
    }


def best(work: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """Return the shortest time of some runs, and what the work returned."""
    times, result = [], None
    for _ in range(repeats):
        gc.collect()
        began = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - began)
    return min(times), result


class Parts:
    """What the parts of a piece of work take, in seconds of all cores together: other work disturbs these less."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.process_time()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - start
