"""How far the outputs of a cell are from those of the first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.rounding import cosine_error

ALLOWED = {"double": 1e-12, "single": cosine_error(352)}
"""Largest difference of numbers: relative in float64; of cosines of 352 numbers in float32, over 1 where smaller."""


@dataclass(frozen=True)
class Comparison:
    """A cell's outputs beside those of the first cell.

    Attributes
    ----------
    equal, total : int
        Outputs equal to the byte, and all.
    wrong : tuple of str
        Identities that differ, outputs that are missing or new, and texts that differ in more than fractions.
    greatest : mapping of str to (float, str)
        Of ``double`` and ``single``: the largest difference and the output that holds it; none where all are equal.
    """

    equal: int
    total: int
    wrong: tuple[str, ...]
    greatest: Mapping[str, tuple[float, str]]

    @property
    def passed(self) -> bool:
        """Whether every identity is equal and every number within `ALLOWED`."""
        return not self.wrong and all(value <= ALLOWED[kind] for kind, (value, _) in self.greatest.items())


def compare(first: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> Comparison:
    """Compare the outputs of two runs of the program, as it prints them."""
    ours = {one["name"]: one for one in first}
    theirs = {one["name"]: one for one in other}
    wrong = [f"{name}: in one cell only" for name in sorted(ours.keys() ^ theirs.keys())]
    greatest: dict[str, tuple[float, str]] = {}
    equal = 0
    for name in ours.keys() & theirs.keys():
        one, two = ours[name], theirs[name]
        if one["sha256"] == two["sha256"]:
            equal += 1
        elif one["kind"] == "identity" or one["skeleton"] != two["skeleton"]:
            wrong.append(name)
        else:
            kind = one["kind"]
            pairs = zip(one["numbers"], two["numbers"], strict=True)
            found = max(difference(a, b, least=1.0 if kind == "single" else 0.0) for a, b in pairs)
            greatest[kind] = max(greatest.get(kind, (0.0, "")), (found, name))
    return Comparison(equal, len(ours), tuple(sorted(wrong)), greatest)


def difference(one: float, other: float, *, least: float = 0.0) -> float:
    """Return the difference of two numbers over the larger of them, or over ``least`` where that is larger."""
    if one == other or (one != one and other != other):
        return 0.0
    return abs(one - other) / max(abs(one), abs(other), least)
