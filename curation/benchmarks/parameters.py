"""`Parameter`: what ``--set KEY=VALUE`` may say to a benchmark's rule, and the readers of its values.

Every reader takes the text of a value and returns the value, or raises `ProtocolError` with what it expected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from curation.errors import ProtocolError
from curation.input_files import read_declaration

MOST_IMAGES = 1_000_000
"""Largest number of images that a list may be asked for."""
LARGEST_SEED = 2**32 - 1
Record = TypeVar("Record", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One ``--set KEY=VALUE``; `read` turns the text into the value or raises `ProtocolError`.

    One that is `later` came when manifests had been published: a manifest states it only where it is not the default.
    """

    name: str
    default: str
    read: Callable[[str], Any]
    meaning: str
    later: bool = False


def _parameter(
    name: str, default: str, fits: Callable[[str], bool], expected: str, meaning: str, kind: Callable[[str], Any] = str
) -> Parameter:
    def read(text: str) -> Any:
        if not fits(text):
            raise ProtocolError(
                f"Invalid value of {name}", where=f"--set {name}", expected=expected, found=repr(text[:40])
            )
        return kind(text)

    return Parameter(name, default, read, meaning)


def choice(name: str, choices: Sequence[str] | Mapping[str, str], meaning: str = "", default: str = "") -> Parameter:
    """Return a parameter that is one of some words; their meanings are its own unless another is given."""
    if isinstance(choices, Mapping) and not meaning:
        meaning = "; ".join(f"{word}: {text}" for word, text in choices.items())
    expected = ", ".join(choices)
    return _parameter(name, default or next(iter(choices)), lambda text: text in choices, expected, meaning)


def several(name: str, default: str, read: Callable[[str], Any], meaning: str, expected: str) -> Parameter:
    """Return a parameter of different values, with commas between them.

    Parameters
    ----------
    read : callable
        Makes a value of a word; None of one that is unusable.
    """

    def read_all(text: str) -> tuple[Any, ...]:
        words = [word.strip() for word in text.split(",")]
        values = tuple(map(read, words))
        for place, value in enumerate(values):
            if value is None or value in values[:place]:
                raise ProtocolError(
                    f"One of the {name} is unusable, or stands twice",
                    where=f"--set {name}",
                    expected=expected,
                    found=repr(words[place][:40]),
                )
        return values

    return Parameter(name, default, read_all, meaning)


def whole(name: str, default: int, meaning: str, *, least: int = 0, most: int = MOST_IMAGES) -> Parameter:
    """Return a parameter that is a whole number of a range."""

    def fits(text: str) -> bool:
        return text.isascii() and text.isdigit() and len(text) <= 12 and least <= int(text) <= most

    return _parameter(name, str(default), fits, f"a whole number from {least} to {most}", meaning, int)


def share(name: str, default: str, meaning: str) -> Parameter:
    """Return a parameter that is a share from 0 to 0.5 with at most three decimals, kept as text."""

    def fits(text: str) -> bool:
        return re.fullmatch(r"0(\.[0-9]{1,3})?", text) is not None and float(text) <= 0.5

    return _parameter(name, default, fits, "0 to 0.5, at most 3 decimals", meaning)


def salt(default: str, meaning: str) -> Parameter:
    """Return the parameter ``salt``: a short printable text that hash ranks begin with."""

    def fits(text: str) -> bool:
        return 0 < len(text) <= 100 and text.isprintable()

    return _parameter("salt", default, fits, "1 to 100 printable characters", meaning)


def declared(text: str, record: type[Record], name: str, missing: str, expected: str) -> tuple[Record, str]:
    """Return what the value of a parameter declares, JSON itself or a TOML or JSON file, and where that is.

    Parameters
    ----------
    name : str
        Of the parameter.
    missing, expected : str
        What to say of a text that is neither.
    """
    where = f"--set {name}"
    if text.startswith("{"):
        try:
            return msgspec.json.decode(text, type=record), where
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise ProtocolError("The declaration cannot be read", where=where, found=str(error)[:200]) from None
    # Path.exists raises for a text that is too long for a name.
    if not os.path.exists(text):  # noqa: PTH110
        raise ProtocolError(missing, where=where, expected=expected, found=repr(text[:80]))
    return read_declaration(Path(text), record, ProtocolError), text[:200]


def stated(parameters: Mapping[str, Any], declared: Sequence[Parameter]) -> dict[str, Any]:
    """Return the parameters that a manifest states: all but `Parameter.later` ones at their default."""
    silent = {one.name for one in declared if one.later and parameters.get(one.name) == one.default}
    return {name: value for name, value in parameters.items() if name not in silent}
