"""What a benchmark's paper states, as data: the file ``facts.toml`` of its room."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import msgspec

Kind = TypeVar("Kind")


@cache
def facts_of(room: str) -> dict[str, Any]:
    """Return the facts of a room, by the name of its package: ``__package__`` in its modules. Not to be changed."""
    return tomllib.loads(files(room).joinpath("facts.toml").read_text(encoding="utf-8"))


def fact(room: str, key: str, kind: type[Kind]) -> Kind:
    """Return one fact as a record or typed collection: ``fact(__package__, "paper", Paper)``.

    Raises
    ------
    msgspec.ValidationError, KeyError
        The facts of the room are wrong: a mistake in the package that holds it.
    """
    return msgspec.convert(facts_of(room)[key], kind)
