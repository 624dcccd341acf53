"""`Target`: a reader of users' files, with small valid files of its format."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Files = dict[str, bytes]


Seal = Callable[[Files], Files]


@dataclass(frozen=True)
class Target:
    """One reader.

    Attributes
    ----------
    name : str
    files : mapping of str to bytes
        Valid files, by name below a folder.
    read : callable
        Reads them in a folder.
    changed : tuple of str
        Which of them fuzzing changes; all by default.
    seal : callable, optional
        Makes the digests of changed files right again, so that what lies behind the check of digests is met too.
    weight : int
        How many inputs it gets beside others.
    """

    name: str
    files: Mapping[str, bytes]
    read: Callable[[Path], Any]
    changed: tuple[str, ...] = ()
    seal: Seal | None = None
    weight: int = 2

    @property
    def changeable(self) -> tuple[str, ...]:
        """Names of the files that fuzzing changes."""
        return self.changed or tuple(self.files)


def call(place: str) -> Callable[..., Any]:
    """Return a function by ``MODULE:NAME`` below `curation`, imported when it is first called."""
    module, _, name = place.partition(":")

    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(importlib.import_module(f"curation.{module}"), name)(*arguments, **named)

    return call


def reads(place: str, name: str = "", *arguments: Any, **named: Any) -> Callable[[Path], Any]:
    """Return a target's reading by one function, whose first argument is a file of the folder, or the folder."""
    read = call(place)
    return lambda folder: read(folder / name, *arguments, **named)


def command(*words: str) -> Callable[[Path], Any]:
    """Return a target that runs a whole command; ``@NAME`` is a file of the folder."""

    def run(folder: Path) -> Any:
        import contextlib

        from curation.cli import main

        given = [
            str(folder / word[1:]) if word.startswith("@") else word.replace("=@", f"={folder}/") for word in words
        ]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as told:
            status = main(given)
        if status not in (0, 1, 2):
            raise AssertionError(f"exit status {status}: {told.getvalue()[:300]}")
        return status

    return run
