"""What a benchmark's paper states, as data: the file ``facts.toml`` of its room."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import msgspec

from curation.sources.source_specs import SourceSlot

Kind = TypeVar("Kind")


@cache
def facts_of(room: str) -> dict[str, Any]:
    """Return the facts of a benchmark: ``NAME.toml`` beside its module, or ``facts.toml`` in its package.

    Parameters
    ----------
    room : str
        ``__name__`` of the module, or ``__package__`` in the modules of a package. Not to be changed.
    """
    package, _, name = room.rpartition(".")
    alone = files(package).joinpath(f"{name}.toml") if package else None
    file = alone if alone is not None and alone.is_file() else files(room).joinpath("facts.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def fact(room: str, key: str, kind: type[Kind]) -> Kind:
    """Return one fact as a record or typed collection: ``fact(__package__, "paper", Paper)``.

    Raises
    ------
    msgspec.ValidationError, KeyError
        The facts of the room are wrong: a mistake in the package that holds it.
    """
    try:
        return msgspec.convert(facts_of(room)[key], kind)
    except msgspec.ValidationError as error:
        error.add_note(f"in [{key}] of the file of {room}")
        raise


def declared_slots(room: str) -> tuple[SourceSlot, ...]:
    """Return the sources that the file of a benchmark declares."""
    return msgspec.convert(facts_of(room)["benchmark"].get("slots", ()), tuple[SourceSlot, ...])


def within(room: str, name: str) -> str:
    """Return ``MODULE:NAME`` of what a benchmark's file calls ``NAME``, or ``MODULE:NAME`` in a package."""
    return f"{room}.{name}" if ":" in name else f"{room}:{name}"
