"""A variant of an evaluation as a record of rules: those of a paper, of its code, or of other code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from curation.core.errors import UsageError
from curation.evaluation.problem import Detections, Floats

Difficult = Literal["ignore", "count"]
Overlap = Literal[">=", ">"]
Objects = Literal["own_class", "any_class", "all"]
Taken = Literal["best", "best_free"]
Order = Literal["score", "input"]
Crowd = Literal["ignore", "cover", "ordinary", "pass_over"]
Precision = Literal["area", "eleven_point", "eleven_point_in_floats"]

Chosen = TypeVar("Chosen")

IOU = 0.5
"""The IoU that a match needs, in every variant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a variant assigns detections to objects, and how it counts the outcome.

    A benchmark declares its variants as such records; `curation.evaluation.matching.assign` applies them.

    Attributes
    ----------
    name, meaning : str
    overlap : {">=", ">"}
        Whether an IoU of exactly 0.5 is a match.
    objects : {"own_class", "any_class", "all"}
        Which objects a detection may match: its own class; any class, counted as correct only for its own; or any
        class regardless.
    taken : {"best", "best_free"}
        Whether a detection is compared with its best object, free or not, or takes the best object that is still free.
    order : {"score", "input"}
        Which detection comes first: the one with the higher score (ties in input order), or the first in the input.
    difficult : {"ignore", "count"}
        Whether difficult objects are ignored or ordinary.
    crowd : {"ignore", "cover", "ordinary", "pass_over"}
        ``ignore``: a detection whose best object is crowd is ignored. ``cover``: an unmatched detection is ignored if
        half of its area or more lies in an ignored object of its class. ``ordinary``: crowd is an ordinary object.
        ``pass_over``: no detection is compared with crowd, but crowd counts as an object to be found.
    text : bool
        Whether boxes and scores are rounded as in text files: scores to 3 decimals, corners to 1.
    dtype : type
        Type of the IoU: numpy.float64 or numpy.float32.
    average_precision : {"area", "eleven_point", "eleven_point_in_floats"}
    ties : {"grouped", "input_order"}
        Whether equal scores make one point of a precision-recall curve.
    nothing : {"null", "zero"}
        Value of a ratio whose denominator is 0.
    errors : {"detections", "objects"}
        Unit that the rate of open-set errors counts.
    known_score_min : float
        Detections of known classes count above this score, detections of class unknown at any; negative for no limit.
    box_offset : int
        Pixels by which left and upper edges of detections are moved in addition to the shift of their text form.
    impact_without_objects : bool
        Whether wilderness impact includes a class without objects, at its first detection (its recalls are 0 / 0, so
        the first is as near as any), or leaves it out.
    added_objects : float
        Number that recalls add to the objects in their denominator.
    scoreless : bool
        Whether scores are ignored: detections are in input order, and measures that need scores are undefined.
    """

    name: str
    meaning: str = ""
    overlap: Overlap = ">="
    objects: Objects = "own_class"
    taken: Taken = "best"
    order: Order = "score"
    difficult: Difficult = "ignore"
    crowd: Crowd = "ignore"
    text: bool = False
    dtype: type[np.float64] | type[np.float32] = np.float64
    average_precision: Precision = "area"
    ties: Literal["grouped", "input_order"] = "input_order"
    nothing: Literal["null", "zero"] = "null"
    errors: Literal["detections", "objects"] = "detections"
    known_score_min: float = -1.0
    box_offset: int = 0
    impact_without_objects: bool = False
    added_objects: float = 0.0
    scoreless: bool = False

    def __post_init__(self) -> None:
        """Raise an error for an unknown treatment of difficult objects, which is an option of commands.

        Raises
        ------
        UsageError
        """
        if self.difficult not in get_args(Difficult):
            raise UsageError(
                "Unknown treatment of difficult objects",
                expected=", ".join(get_args(Difficult)),
                found=repr(self.difficult),
            )

    @property
    def strict(self) -> bool:
        """Whether the IoU of a match must exceed the threshold."""
        return self.overlap == ">"

    def reached(self, iou: Any) -> Any:
        """Return which overlaps suffice for a match; the shape is that of `iou`."""
        return iou > IOU if self.strict else iou >= IOU


def select(variants: Mapping[str, Chosen], requested: str | Iterable[str]) -> tuple[Chosen, ...]:
    """Return the requested variants in the requested order, or every variant for ``all``.

    Raises
    ------
    UsageError
        No variant is requested, or an unknown one.
    """
    names = [requested] if isinstance(requested, str) else list(requested)
    names = list(variants) if names == ["all"] else list(dict.fromkeys(names))
    unknown = [name for name in names if name not in variants]
    if unknown or not names:
        quoted = ", ".join(repr(name)[:80] for name in unknown) or "none"
        raise UsageError("Unknown variant", expected=", ".join((*variants, "all")), found=quoted)
    return tuple(variants[name] for name in names)


def offer(evaluate: Callable[..., Any], names: Iterable[str]) -> None:
    """Set the names of the variants, which are data, as the choices of the parameter ``variant``."""
    choice: Any = Literal
    words = (*names, "all")
    evaluate.__annotations__["variant"] = choice[words] | tuple[choice[words], ...]


def round_as_text(detections: Detections) -> Detections:
    """Return the detections rounded as in detectron2's VOC text files: score ``.3f``, corners ``.1f`` (1-based)."""
    x, y, w, h = detections.boxes.T
    left, top = round_decimal(x + 1, 1) - 1, round_decimal(y + 1, 1) - 1
    right, bottom = round_decimal(x + w, 1), round_decimal(y + h, 1)
    boxes = np.stack([left, top, right - left, bottom - top], axis=1)
    return Detections(detections.image, detections.label, boxes, round_decimal(detections.scores, 3))


def round_decimal(values: Floats, places: int) -> Floats:
    """Return ``float(format(value, f".{places}f"))`` for each value: exact decimal rounding, half to even.

    `numpy.round` multiplies first and so rounds 0.0005 (which is above the decimal half) to 0.
    """
    factor = 10.0**places
    # Magnitudes are rounded: the fraction of a number is exact only if the number is not negative.
    size = np.abs(values)
    product = size * factor
    floor = np.floor(product)
    beyond_half = product - floor - 0.5
    up, half = beyond_half > 0, beyond_half == 0
    # If the product is a half, its error decides. Veltkamp's split: both halves times the factor are exact.
    size, product = size[half], product[half]
    split = size * 134217729.0
    high = split - (split - size)
    error = (high * factor - product) + (size - high) * factor
    up[half] = (error > 0) | ((error == 0) & (floor[half] % 2 == 1))
    return np.asarray(np.copysign((floor + up) / factor, values), np.float64)
