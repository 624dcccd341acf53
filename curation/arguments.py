"""What a function is given from Python, held against the annotations of its signature: one check for all of them."""

from __future__ import annotations

import builtins
import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from curation.errors import UsageError

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")
_SINGLE = (str, bytes, Path, Mapping)
"""What holds several things and yet is one value."""
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "True or False", Path: "a path", Any: "anything"}


def checked(function: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Return a function that refuses arguments which are not what its annotations say.

    A text stands for a path where a path is wanted, one name for several, and a list for a tuple. An annotation that
    is known to type checkers alone is held against the names of the value's classes.

    Raises
    ------
    UsageError
        By the function made: an argument is missing, is none of its own, or of another kind.

    Examples
    --------
    >>> @checked
    ... def double(number: int) -> int:
    ...     return 2 * number
    >>> double("7")
    Traceback (most recent call last):
    curation.errors.UsageError: double cannot use this value of number
      expected: a whole number
      found: str '7'
      try: help(double)
    """
    signature = inspect.signature(function)
    kinds: dict[str, Any] = {}

    @functools.wraps(function)
    def call(*given: _Given.args, **named: _Given.kwargs) -> _Made:
        try:
            bound = signature.bind(*given, **named)
        except TypeError as error:
            raise UsageError(
                f"{function.__name__} is called with other arguments",
                expected=", ".join(one for one in signature.parameters if one != "self"),
                found=str(error),
                hint=f"help({function.__name__})",
            ) from None
        if not kinds:
            kinds.update(annotations_of(function))
        for key, value in bound.arguments.items():
            several = signature.parameters[key].kind in (
                inspect.Parameter.VAR_POSITIONAL,
                inspect.Parameter.VAR_KEYWORD,
            )
            if key in kinds and not several:
                bound.arguments[key] = fitted(
                    value,
                    kinds[key],
                    f"{function.__name__} cannot use this value of {key}",
                    f"help({function.__name__})",
                )
        return function(*bound.args, **bound.kwargs)

    return call


def fitted(value: Any, kind: Any, what: str, hint: str) -> Any:
    """Return a value as an annotation has it: a path for a text, one for several, a tuple for a list.

    Raises
    ------
    UsageError
        It is of another kind: `what` says which value of which function, `hint` where to look.
    """
    if is_of(value, kind):
        return value
    for one in alternatives(kind):
        made = _made(value, one)
        if made is not None and is_of(made, one):
            return made
    raise UsageError(
        what,
        expected=" or ".join(dict.fromkeys(map(_in_words, alternatives(kind))))[:400],
        found=shown(value),
        hint=hint,
    )


def _made(value: Any, kind: Any) -> Any:
    """Return what a value stands for where one alternative of an annotation is meant, None where nothing."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Path and isinstance(value, str):
        return Path(value)
    if origin is Mapping and isinstance(value, Mapping):
        return {name: _fit(one, inner[1]) for name, one in value.items()}
    if origin in (tuple, Sequence, Collection):
        if isinstance(value, set | frozenset):
            value = sorted(value, key=str)
        elif isinstance(value, str | Path):
            value = (value,)
        elif hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(value, list | tuple):
            return tuple(_fit(one, inner[0]) for one in value)
    return None


def _fit(value: Any, kind: Any) -> Any:
    if is_of(value, kind):
        return value
    return next((made for one in alternatives(kind) if (made := _made(value, one)) is not None), value)


def annotations_of(function: Callable[..., Any], *, extras: bool = False) -> dict[str, Any]:
    """Return what each parameter is annotated as; a name that is not loaded stands for the class of that name.

    Parameters
    ----------
    extras : bool
        Whether an ``Annotated`` type keeps what it is annotated with.
    """
    function = inspect.unwrap(function)
    told = {name: one for name, one in function.__annotations__.items() if name != "return"}
    holder: Any = types.SimpleNamespace(__annotations__=told)
    space: dict[str, Any] = function.__globals__
    return typing.get_type_hints(holder, space, _Names(space), include_extras=extras)


class _Names(dict[str, Any]):
    """The names that annotations use and a module has not loaded."""

    def __init__(self, space: Mapping[str, Any]) -> None:
        self._space = space

    def __missing__(self, name: str) -> Any:
        if name in self._space or hasattr(builtins, name):
            raise KeyError(name)
        for home in (collections.abc, typing):
            if hasattr(home, name):
                return getattr(home, name)
        return _ByName(name, (), {})


class _ByName(type):
    """A class that is known by its name alone: its instances are those of any class of this name."""

    def __instancecheck__(cls, value: Any) -> bool:
        return any(one.__name__ == cls.__name__ for one in type(value).__mro__)


def alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation alone."""
    return typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)


def is_of(value: Any, kind: Any) -> bool:
    """Return whether a value is what an annotation says; an annotation that cannot be asked takes everything."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if origin in (typing.Union, types.UnionType):
        return any(is_of(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, tuple) and all(is_of(one, inner[0]) for one in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(is_of(one, inner[1]) for one in value.values())
    if origin in (Sequence, Collection):
        return (
            isinstance(value, origin) and not isinstance(value, _SINGLE) and all(is_of(one, inner[0]) for one in value)
        )
    if origin is collections.abc.Callable:
        return callable(value)
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    # From Python 3.11 on, Any is a class, and none that can be asked.
    if kind is Any or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    return isinstance(value, kind)


def _in_words(kind: Any) -> str:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return ", ".join(map(str, inner))
    if origin in (tuple, Sequence, Collection):
        return f"several of: {' or '.join(map(_in_words, alternatives(inner[0])))}"
    if origin is Mapping:
        return f"a mapping of names to: {' or '.join(map(_in_words, alternatives(inner[1])))}"
    return _WORDS.get(kind, "None" if kind is type(None) else getattr(kind, "__name__", str(kind)))


def shown(value: Any) -> str:
    """Return the class of a value and the beginning of what it holds, in ASCII."""
    return f"{type(value).__name__} {ascii(value)[:80]}"
