"""Users' regular expressions, matched in linear time: Arrow's engine is RE2, which never backtracks.

RE2 has no lookahead, lookbehind or backreferences, and refuses a pattern that would need too much memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from curation.core.columns import values_of
from curation.core.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LONGEST_PATTERN = 1000


def require_group(pattern: str, where: str) -> str:
    """Return a pattern that can be searched for and has a capture group; refuse any other.

    Parameters
    ----------
    where : str
        Option or key of the pattern, for messages.

    Raises
    ------
    UsageError
        The pattern is too long, is not supported, or has no capture group.
    """
    import pyarrow as pa
    from pyarrow import compute

    where, expected = f"{where} {pattern[:80]}", r"a regular expression with a group, such as (patient\d+)"
    if len(pattern) > LONGEST_PATTERN:
        raise UsageError("The pattern is too long", where=where, expected=f"at most {LONGEST_PATTERN:,} characters")
    try:
        compute.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        raise UsageError(
            "Unsupported regular expression", where=where, expected=expected,
            found=str(error)[:200], hint="lookahead, lookbehind and backreferences are not supported",
        ) from None  # fmt: skip
    try:
        compute.replace_substring_regex(pa.array([""]), pattern, r"\1")
    except pa.ArrowInvalid:
        raise UsageError("The pattern has no capture group", where=where, expected=expected) from None
    return pattern


def match_mask(texts: Any, pattern: str) -> npt.NDArray[np.bool_]:
    """Return which texts of an Arrow array contain a match of a pattern, shape (n,)."""
    from pyarrow import compute

    matching: npt.NDArray[np.bool_] = values_of(compute.match_substring_regex(texts, pattern))
    return matching


def captured(texts: Any, pattern: str, captures: int = 1) -> Any:
    """Return the first groups of a pattern, joined, for each text that matches; Arrow input gives Arrow output."""
    from pyarrow import compute

    replacement = "".join(f"\\{number + 1}" for number in range(captures))
    return compute.replace_substring_regex(texts, f"(?s)^.*?(?:{pattern}).*$", replacement)
