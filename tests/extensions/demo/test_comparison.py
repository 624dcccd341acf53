"""The closing table says each number once, and says when there is none."""

from typing import Any

from curation.extensions.demo.run import comparison_lines


def result(levels: list[str], impacts: list[float | None], average: float | None) -> dict[str, Any]:
    reading = {"recall": "0.3", "over_classes": "macro"}
    return {
        "levels": [{"ratio": ratio, "mAP11": 80.0 - 10 * k} for k, ratio in enumerate(levels)],
        "impact": [reading | {"ratio": ratio, "WI": one} for ratio, one in zip(levels, impacts, strict=True)],
        "average_impact": [reading | {"excl_level0": average}],
    }


def row(lines: list[str], title: str) -> list[str]:
    (line,) = [line for line in lines if line.startswith(title)]
    return line.removeprefix(title).split()


def test_impact_is_read_at_ratio_one_and_map_at_the_last() -> None:
    levels = ["0.0", "0.5", "1.0", "1.5"]
    lines = comparison_lines({"bold": result(levels, [0.0, 0.1, 0.25, 0.4], 0.25)})
    assert row(lines, "mAP, closed set") == ["80.00"]
    assert row(lines, "mAP, wilderness ratio 1.5") == ["50.00"]
    assert row(lines, "wilderness impact at ratio 1, recall 0.3") == ["0.2500"]
    assert row(lines, "average wilderness impact, recall 0.3") == ["0.2500"]


def test_what_is_undefined_is_called_so() -> None:
    lines = comparison_lines(
        {"bold": result(["0.0", "0.1"], [0.0, 0.1], 0.1), "shy": result(["0.0", "0.1"], [None, None], None)}
    )
    assert row(lines, "wilderness impact at ratio 1, recall 0.3") == ["undefined", "undefined"]
    assert row(lines, "average wilderness impact, recall 0.3") == ["0.1000", "undefined"]
