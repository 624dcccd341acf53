"""Small co-occurrence graphs and their best normalized cuts, by a look at every partition in fractions."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from tests.worlds.drawing import Draws

GRAPHS = {"planted8": (8, 40, 3), "sparse9": (9, 16, 3), "dense7": (7, 60, 1)}
"""Classes, images, and the number of groups that images keep to."""


def names(graph: str) -> list[str]:
    return [f"c{number}" for number in range(GRAPHS[graph][0])]


def weights(graph: str) -> list[list[int]]:
    """Count, for each pair of classes, the images that show both; a chain of images keeps the graph in one piece."""
    n, images, groups = GRAPHS[graph]
    draws = Draws(f"graphs/{graph}")
    shown = [{k, k + 1} for k in range(n - 1)]
    for _ in range(images):
        group = draws.below(groups)
        members = [k for k in range(n) if k % groups == group]
        image = {draws.among(members) for _ in range(3)}
        shown.append(image | {draws.below(n)} if draws.one_in(6) else image)
    table = [[0] * n for _ in range(n)]
    for image in shown:
        for a, b in combinations(sorted(image), 2):
            table[a][b] += 1
            table[b][a] += 1
    return table


def partitions(n: int, k: int) -> Iterator[list[int]]:
    """Return every way to put n things into k groups that are not told apart, none empty."""

    def extend(labels: list[int], used: int) -> Iterator[list[int]]:
        if len(labels) == n:
            if used == k:
                yield labels
            return
        for label in range(min(used + 1, k)):
            yield from extend([*labels, label], max(used, label + 1))

    return extend([], 0)


def ncut(table: Sequence[Sequence[int]], labels: Sequence[int]) -> Fraction | None:
    """Return the sum over groups of cut / volume (Shi & Malik); None where a group has no volume."""
    total = Fraction(0)
    for group in set(labels):
        inside = [k for k, label in enumerate(labels) if label == group]
        volume = sum(sum(table[k]) for k in inside)
        cut = sum(table[a][b] for a in inside for b in range(len(labels)) if labels[b] != group)
        if not volume:
            return None
        total += Fraction(cut, volume)
    return total


def expected() -> dict[str, Any]:
    """Return the lowest value for two and three groups, exactly, and the partitions that reach it."""
    found: dict[str, Any] = {}
    for graph in GRAPHS:
        table, listed = weights(graph), names(graph)
        found[graph] = {"weights": table}
        for k in (2, 3):
            values = [(value, labels) for labels in partitions(len(listed), k) if (value := ncut(table, labels))]
            lowest = min(value for value, _ in values)
            found[graph][f"k{k}"] = {
                "value": str(lowest),
                "partitions": [
                    [[name for name, label in zip(listed, labels, strict=True) if label == g] for g in range(k)]
                    for value, labels in values
                    if value == lowest
                ],
            }
    return found
