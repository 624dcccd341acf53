"""How far rounding can move a number: the bounds behind the tolerances of tests against float32 peers.

Notation of Higham, *Accuracy and Stability of Numerical Algorithms* (2nd ed., 2002), section 3.1. A tolerance from here
holds on every CPU: the bounds ask neither for an order of summation nor for fused multiplications.
"""

from typing import Any

import numpy as np

SINGLE, DOUBLE = 2.0**-24, 2.0**-53
"""Unit roundoff of float32 and float64: the largest relative error of one operation."""


def gamma(n: int, unit: float = SINGLE) -> float:
    """Return the largest relative error of n roundings in a row, ``n u / (1 - n u)``."""
    return n * unit / (1 - n * unit)


def product_error(one: Any, other: Any, unit: float = SINGLE) -> Any:
    """Return bounds on each entry of a computed matrix product ``one @ other``, in any order of summation."""
    return gamma(np.shape(one)[-1], unit) * (np.abs(one) @ np.abs(other))


def cosine_error(dimension: int, unit: float = SINGLE) -> float:
    """Return a bound on the cosine of two rows of which numbers, length and product are all rounded to `unit`.

    Of each row: its numbers (2, in numerator and length) and its quotient (1); then a product of unit rows. Two more
    are for what is computed in float64 on the way.
    """
    return gamma(dimension + 8, unit)
