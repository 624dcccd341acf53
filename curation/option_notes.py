"""What the type of a parameter may say to the command line that is made from it, where the type alone cannot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Alone:
    """The value of an option that is given without a word."""

    word: str
