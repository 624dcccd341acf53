"""The closing table says each number once, and says when there is none."""

from typing import Any

from curation.demo.run import comparison_lines


def result(levels: list[str], impacts: list[float | None], average: float | None) -> dict[str, Any]:
    return {
        "levels": levels,
        "mAP11": [0.8, *(0.8 - 0.1 * k for k in range(1, len(levels)))],
        "WI": {"0.3": {"macro": impacts}},
        "AWI": {"0.3": {"macro": {"excl_level0": average}}},
    }


def row(lines: list[str], title: str) -> list[str]:
    (line,) = [line for line in lines if line.startswith(title)]
    return line.removeprefix(title).split()


def test_impact_is_read_at_ratio_one_and_map_at_the_last() -> None:
    levels = ["0.0", "0.5", "1.0", "1.5"]
    lines = comparison_lines({"bold": result(levels, [0.0, 0.1, 0.25, 0.4], 0.25)})
    assert row(lines, "mAP, closed set") == ["0.8000"]
    assert row(lines, "mAP, wilderness ratio 1.5") == ["0.5000"]
    assert row(lines, "wilderness impact at ratio 1, recall 0.3") == ["0.2500"]
    assert row(lines, "average wilderness impact, recall 0.3") == ["0.2500"]


def test_what_is_undefined_is_called_so() -> None:
    lines = comparison_lines(
        {"bold": result(["0.0", "0.1"], [0.0, 0.1], 0.1), "shy": result(["0.0", "0.1"], [None, None], None)}
    )
    assert row(lines, "wilderness impact at ratio 1, recall 0.3") == ["undefined", "undefined"]
    assert row(lines, "average wilderness impact, recall 0.3") == ["0.1000", "undefined"]
