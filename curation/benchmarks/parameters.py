"""What ``--set KEY=VALUE`` may say to a benchmark's rule: parameters as its file declares them, and readers of values.

Every reader takes the text of a value and returns the value, or raises `ProtocolError` with what it expected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

import msgspec

from curation.benchmarks.facts import facts_of, within
from curation.core.errors import ProtocolError
from curation.core.reading import read_declaration

MOST_IMAGES = 1_000_000
"""Largest number of images that a list may be asked for."""
Record = TypeVar("Record", bound=msgspec.Struct)


class Parameter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``--set KEY=VALUE``, as a table ``[[benchmark.parameters]]`` declares it; any text where no rule is given.

    Attributes
    ----------
    default, meaning : str
    choices : tuple of str
        The words that it may be.
    least, most : int
        Where `most` is given: the whole numbers that it may be.
    pattern, expected : str
        Of its text, and in words.
    longest : int, optional
        Printable texts of up to so many characters.
    reader : str
        ``MODULE:NAME`` of what makes a value of the text.
    later : bool
        Whether it came when manifests had been published: these state it only where it is not the default.
    """

    name: str
    default: str = ""
    meaning: str
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int | None = None
    pattern: str = ""
    expected: str = ""
    longest: int | None = None
    reader: str = ""
    later: bool = False

    def __post_init__(self) -> None:
        """Refuse a rule that would not be applied, and a default that does not fit."""
        rules = (self.choices, self.pattern, self.longest is not None, self.most is not None, self.reader)
        if sum(map(bool, rules)) > 1 or (self.least and self.most is None) or bool(self.pattern) != bool(self.expected):
            raise ValueError(f"{self.name}: one of choices, longest, reader, pattern with expected, most with least")
        if not self.reader:
            self.read(self.default)

    def read(self, text: str) -> Any:
        """Return the value that a text is; one that does not fit is a `ProtocolError`."""
        if self.reader:
            return resolve_name(self.reader)(text)
        fits, expected = True, self.expected
        if self.choices:
            fits, expected = text in self.choices, ", ".join(self.choices)
        elif self.pattern:
            fits = re.fullmatch(self.pattern, text) is not None
        elif self.longest is not None:
            fits = 0 < len(text) <= self.longest and text.isprintable()
            expected = f"1 to {self.longest} printable characters"
        elif self.most is not None:
            fits = re.fullmatch("[0-9]{1,12}", text) is not None and self.least <= int(text) <= self.most
            expected = f"a whole number from {self.least} to {self.most}"
        if not fits:
            what, where = f"Invalid value of {self.name}", f"--set {self.name}"
            raise ProtocolError(what, where=where, expected=expected, found=repr(text[:40]))
        return text if self.most is None else int(text)


def declared_parameters(room: str) -> tuple[Parameter, ...]:
    """Return the parameters that the file of a benchmark declares."""
    stated = msgspec.convert(facts_of(room)["benchmark"].get("parameters", ()), tuple[Parameter, ...])
    return tuple(
        msgspec.structs.replace(param, reader=within(room, param.reader)) if param.reader else param for param in stated
    )


def several(name: str, read: Callable[[str], Any], expected: str) -> Callable[[str], tuple[Any, ...]]:
    """Return the reader of a parameter of different values, with commas between them.

    Parameters
    ----------
    read : callable
        Makes a value of a word; None of one that is unusable.
    """

    def read_all(text: str) -> tuple[Any, ...]:
        words = [word.strip() for word in text.split(",")]
        values = tuple(map(read, words))
        for index, value in enumerate(values):
            if value is None or value in values[:index]:
                raise ProtocolError(
                    f"One of the {name} is unusable, or appears twice",
                    where=f"--set {name}",
                    expected=expected,
                    found=repr(words[index][:40]),
                )
        return values

    return read_all


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
    silent = {param.name for param in declared if param.later and parameters.get(param.name) == param.default}
    return {name: value for name, value in parameters.items() if name not in silent}
