"""Progress of long work on standard error, where that is a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


def steps(items: Iterable[Item], what: str) -> Iterable[Item]:
    """Return items that show their progress on standard error while they are taken, where that is a terminal."""
    from tqdm import tqdm

    shown: Iterable[Item] = tqdm(items, desc=what, disable=None, leave=False)
    return shown


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Name a long piece of work on standard error while it lasts, where that is a terminal."""
    from tqdm import tqdm

    with tqdm(desc=what, total=1, disable=None, leave=False, bar_format="{desc} …"):
        yield
