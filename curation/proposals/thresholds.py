"""Every number that proposals depend on: named, bounded, and written into the header of what they made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from decimal import Decimal, InvalidOperation

from curation.errors import UsageError

_PLACES = 4


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What is chosen, not found: none of these numbers stands in the paper, which has no threshold at all.

    Attributes
    ----------
    near_wup : Decimal
        A category is near if its Wu-Palmer similarity to the nearest ID class is at least this (0 to 1).
    text_margin : Decimal
        An image is suspect if its cosine similarity to the best ID prompt exceeds that to the best other prompt by at
        least this (0 to 2).
    look_sigma : Decimal
        An image is suspect if its similarity to the nearest ID image is at least the median of ID images among
        themselves plus this many robust deviations (-100 to 100).
    detector_score : Decimal
        A detection of an ID class counts from this confidence.
    agreeing : int
        So many kinds of suspicion propose removal; fewer leave an image undecided.
    standard_errors : Decimal
        A set is farther only if its mean similarity is lower by more than this many standard errors.
    farther_below : Decimal or None
        A set is farther if its mean similarity is below this; None to compare with the lowest of other far sets.
    """

    near_wup: Decimal = Decimal("0.82")
    text_margin: Decimal = Decimal("0.01")
    look_sigma: Decimal = Decimal("0")
    detector_score: Decimal = Decimal("0.5")
    agreeing: int = 2
    standard_errors: Decimal = Decimal("2")
    farther_below: Decimal | None = None

    def as_texts(self) -> dict[str, str]:
        """Return every threshold as a decimal string; ``""`` where none is set."""
        return {name: "" if value is None else str(value) for name, value in asdict(self).items()}


_BOUNDS: dict[str, tuple[int, int]] = {
    "near_wup": (0, 1),
    "text_margin": (0, 2),
    "look_sigma": (-100, 100),
    "detector_score": (0, 1),
    "agreeing": (1, 5),
    "standard_errors": (0, 100),
    "farther_below": (-1, 1),
}


def thresholds_from(texts: Mapping[str, str]) -> Thresholds:
    """Return the thresholds that ``--set KEY=VALUE`` asks for, the others at their defaults.

    Raises
    ------
    UsageError
        There is no such threshold, or its value is no decimal number within its bounds.
    """
    known = [one.name for one in fields(Thresholds)]
    values: dict[str, Decimal | int] = {}
    for name, text in texts.items():
        if name not in known:
            raise UsageError(
                "There is no such threshold", where=f"--set {name[:60]}", expected=", ".join(known)
            )
        values[name] = _value(name, text)
    return Thresholds(**values)  # type: ignore[arg-type]


def decimal_text(value: float) -> str:
    """Return a measured number as a decimal string with four places, never a negative zero: ``"0.8235"``.

    Four places, since BLAS libraries differ in the seventh digit of a float32 product.
    """
    rounded = round(float(value), _PLACES) + 0.0
    return f"{rounded:.{_PLACES}f}"


def _value(name: str, text: str) -> Decimal | int:
    low, high = _BOUNDS[name]
    try:
        value = Decimal(text) if len(text) <= 20 else Decimal("NaN")
    except InvalidOperation:
        value = Decimal("NaN")
    whole = name == "agreeing"
    if not value.is_finite() or not low <= value <= high or (whole and value != int(value)):
        raise UsageError(
            f"The threshold {name} is out of bounds",
            where=f"--set {name}={text[:40]}",
            expected=f"a {'whole' if whole else 'decimal'} number from {low} to {high}",
        )
    return int(value) if whole else value
