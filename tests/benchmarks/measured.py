"""One measured figure of a benchmark beside what is required of it."""

from __future__ import annotations

from typing import Any


def measured(
    what: str,
    value: float,
    unit: str = "",
    note: str = "",
    *,
    most: float | None = None,
    least: float | None = None,
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
