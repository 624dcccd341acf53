"""Numbers and names in a sentence: ``1 image``, ``2 images``, ``a, b, c, …``."""

from __future__ import annotations

import re
from collections.abc import Iterable


def examples(values: Iterable[str], shown: int = 3, joint: str = ", ") -> str:
    """Return the first few of some texts: ``a, b, c, …``."""
    listed = list(values)
    return joint.join(listed[:shown]) + (f"{joint}…" if len(listed) > shown else "")


def slug(text: str, joint: str = "_") -> str:
    """Return a text as a name of lower-case letters and digits: ``Caracal (2)`` is caracal_2."""
    return re.sub(r"[^a-z0-9]+", joint, text.lower()).strip(joint)


def counted(number: int, singular: str, several: str = "") -> str:
    """Return ``1 image`` or ``2 images``."""
    return f"{number:,} {singular if number == 1 else several or f'{singular}s'}"
