"""Objects and detections as plain records, and how far two boxes overlap: what every reference rests on."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Box = tuple[Any, Any, Any, Any]
"""Left, top, width and height: exact numbers of one type."""
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Thing:
    """An object: image number, class by position (-1: unknown) or by name, box ``x, y, w, h``, flags."""

    image: int
    label: Any
    box: Box
    crowd: bool = False
    difficult: bool = False


@dataclass(frozen=True)
class Guess:
    """A detection; its score is a decimal, or whole thousandths or hundredths, so that it is exact."""

    image: int
    label: Any
    box: Box
    score: Any


def size(a: Box) -> Any:
    return a[2] * a[3]


def common(a: Box, b: Box) -> Any:
    """Return the area that two boxes share."""
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    return max(width, 0) * max(height, 0)


def iou(a: Box, b: Box) -> Fraction:
    shared = common(a, b)
    return Fraction(shared) / Fraction(size(a) + size(b) - shared) if shared else Fraction(0)
