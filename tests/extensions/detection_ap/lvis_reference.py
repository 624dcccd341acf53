"""LVIS AP and Fixed AP in plain Python, record by record (specs/atlas2.md, section 7); shares nothing with ours."""

from collections import defaultdict
from typing import Any

import numpy as np

Records = list[dict[str, Any]]
AREAS = ((0, 1e10), (0, 32**2), (32**2, 96**2), (96**2, 1e10))
# In the floating-point numbers of lvis-api: 0.29 and 0.55 of other making lie on the other side of some quotients.
LEVELS = tuple(np.linspace(0.5, 0.95, 10).tolist())
RECALLS = tuple(np.linspace(0, 1, 101).tolist())


def numbers(truth: dict[str, Any], results: Records, *, limit: int, of: str = "image_id") -> dict[str, float | None]:
    """Return the thirteen numbers and ``AP of ID`` of each class; None where there is nothing to score."""
    groups = defaultdict(list)
    for one in results:
        groups[one[of]].append(one)
    chosen = {id(one) for some in groups.values() for one in sorted(some, key=lambda one: -one["score"])[:limit]}
    images = {one["id"]: one for one in truth["images"]}
    objects, found = defaultdict(list), defaultdict(list)
    for one in truth["annotations"]:
        if one["area"] > 0:
            objects[one["image_id"], one["category_id"]].append(one)
    for one in results:
        image, number = one["image_id"], one["category_id"]
        labelled = (image, number) in objects or number in images[image]["neg_category_ids"]
        if id(one) in chosen and one["bbox"][2] * one["bbox"][3] > 0 and labelled:
            found[image, number].append(one)
    precision: dict[tuple[int, int, int], list[float]] = {}
    recall: dict[tuple[int, int, int], float] = {}
    cells_of = defaultdict(list)
    for cell in sorted({*objects, *found}):
        cells_of[cell[1]].append(cell)
    for number in (one["id"] for one in truth["categories"]):
        cells = cells_of[number]
        for place, area in enumerate(AREAS):
            for level, least in enumerate(LEVELS):
                rows, n = [], 0
                for cell in cells:
                    partly = number in images[cell[0]]["not_exhaustive_category_ids"]
                    some, counted = _matched(objects[cell], found[cell], min(least, 1 - 1e-10), area, partly)
                    rows += some
                    n += counted
                if n:
                    precision[level, number, place], recall[level, number, place] = _curve(rows, n)
    frequency = {one["id"]: one.get("frequency") for one in truth["categories"]}

    values_of = defaultdict(list)
    for (_, own, size), row in precision.items():
        if size == 0:
            values_of[own] += row

    def mean(area: int = 0, level: int | None = None, letter: str = "") -> float | None:
        values = [
            value
            for (at, own, size), row in precision.items()
            if size == area and level in (None, at) and letter in ("", frequency[own])
            for value in row
        ]
        return sum(values) / len(values) if values else None

    def recalled(area: int) -> float | None:
        values = [value for (_, _, size), value in recall.items() if size == area]
        return sum(values) / len(values) if values else None

    return {
        "AP": mean(), "AP50": mean(level=0), "AP75": mean(level=5),
        "APs": mean(1), "APm": mean(2), "APl": mean(3),
        "APr": mean(letter="r"), "APc": mean(letter="c"), "APf": mean(letter="f"),
        "AR": recalled(0), "ARs": recalled(1), "ARm": recalled(2), "ARl": recalled(3),
        **{f"AP of {number}": sum(aps) / len(aps) if (aps := values_of[number]) else None for number in frequency},
    }  # fmt: skip


def _matched(
    objects: Records, found: Records, least: float, area: tuple[float, float], partly: bool
) -> tuple[list[tuple[float, bool]], int]:
    """Return score and rightness of the detections that count in one image and class, and the objects that count."""
    ignored = [bool(one.get("ignore")) or not area[0] <= one["area"] <= area[1] for one in objects]
    order = sorted(range(len(objects)), key=lambda place: ignored[place])
    taken: set[int] = set()
    rows = []
    for one in sorted(found, key=lambda one: -one["score"]):
        best, at = least, -1
        for place in order:
            if place in taken:
                continue
            if at >= 0 and not ignored[at] and ignored[place]:
                break
            iou = _iou(one["bbox"], objects[place]["bbox"])
            if iou >= best:
                best, at = iou, place
        if at >= 0:
            taken.add(at)
            if not ignored[at]:
                rows.append((one["score"], True))
        elif not partly and area[0] <= one["bbox"][2] * one["bbox"][3] <= area[1]:
            rows.append((one["score"], False))
    return rows, ignored.count(False)


def _curve(rows: list[tuple[float, bool]], n: int) -> tuple[list[float], float]:
    rows = sorted(rows, key=lambda row: -row[0])
    right, points = 0, []
    for place, (_, is_right) in enumerate(rows, start=1):
        right += is_right
        points.append((right / n, right / place))
    interpolated = [0.0] * 101
    highest, place = 0.0, 100
    for reached, value in reversed(points):
        while place >= 0 and RECALLS[place] > reached:
            place -= 1
        highest = max(highest, value)
        for below in range(place, -1, -1):
            if interpolated[below] >= highest:
                break
            interpolated[below] = highest
    return interpolated, right / n


def _iou(first: list[float], second: list[float]) -> float:
    width = min(first[0] + first[2], second[0] + second[2]) - max(first[0], second[0])
    height = min(first[1] + first[3], second[1] + second[3]) - max(first[1], second[1])
    common = max(width, 0) * max(height, 0)
    return common / (first[2] * first[3] + second[2] * second[3] - common)
