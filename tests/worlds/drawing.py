"""Numbers of synthetic worlds: drawn from SHA-256, so that every machine and every Python draws the same world."""

from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """One stream of draws; another seed is another stream."""

    def __init__(self, seed: str) -> None:
        self.seed, self.count = seed, 0

    def below(self, limit: int) -> int:
        """Return a whole number from 0 to `limit` - 1 (the bias of the remainder is below 2 ** -50)."""
        self.count += 1
        return int.from_bytes(sha256(f"{self.seed}/{self.count}".encode()).digest()[:8], "big") % limit

    def among(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def one_in(self, n: int) -> bool:
        return self.below(n) == 0
