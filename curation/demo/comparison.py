"""The closing table of the demo: detectors side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Result = Mapping[str, Any]

_NOTES = (
    "mAP: 11-point, higher is better. Wilderness impact: closed precision / open precision - 1 at the threshold",
    "of that recall, mean over classes, lower is better; its average is over the ratios above 0. Undefined: no",
    "class reaches the recall, or the wilderness has too few images.",
)
_EQUAL_SETS = "1.0"
_TITLE_WIDTH = 45


def comparison_lines(results: Mapping[str, Result]) -> list[str]:
    """Return a table as lines: mAP without and with wilderness, wilderness impact at ratio 1 and on average.

    Parameters
    ----------
    results : mapping of detector name to result
        The ``paper`` section of ``curation evaluate elephant``, of each detector on the same images.
    """
    first = next(iter(results.values()))
    lines = ["Detectors of different caution on the same images (profile paper)", ""]
    lines.append(" " * _TITLE_WIDTH + "".join(f"{name:>12}" for name in results))
    lines.append(_row("mAP, closed set", [one["mAP11"][0] for one in results.values()]))
    lines.append(
        _row(f"mAP, wilderness ratio {first['levels'][-1]}", [one["mAP11"][-1] for one in results.values()])
    )
    lines += [
        _row(f"{title}, recall {recall}", [reading(one, recall) for one in results.values()])
        for title, reading in (
            ("wilderness impact at ratio 1", _impact_at_equal_sets),
            ("average wilderness impact", _average_impact),
        )
        for recall in first["WI"]
    ]
    return [*lines, "", *_NOTES]


def _impact_at_equal_sets(result: Result, recall: str) -> float | None:
    """Return WI where the wilderness has as many images as the closed set; None where it has not that many."""
    if _EQUAL_SETS not in result["levels"]:
        return None
    value: float | None = result["WI"][recall]["macro"][result["levels"].index(_EQUAL_SETS)]
    return value


def _average_impact(result: Result, recall: str) -> float | None:
    value: float | None = result["AWI"][recall]["macro"]["excl_level0"]
    return value


def _row(title: str, values: list[float | None]) -> str:
    texts = ("undefined" if value is None else f"{value:.4f}" for value in values)
    return f"{title:{_TITLE_WIDTH}}" + "".join(f"{text:>12}" for text in texts)
