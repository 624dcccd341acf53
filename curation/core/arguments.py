"""Arguments of public functions, checked against the annotations of the signature and converted to them."""

from __future__ import annotations

import builtins
import collections.abc
import dataclasses
import functools
import inspect
import operator
import os
import shlex
import sys
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import suppress
from contextvars import ContextVar
from numbers import Real
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

from msgspec import Meta

from curation.core.errors import CurationError, UsageError, of_the_machine
from curation.core.option_names import in_python, option_names_of
from curation.core.writing import is_command

Replicates = Annotated[int, Meta(ge=0, le=1_000_000)]
"""Number of replicates of a bootstrap; 0 for no bootstrap."""
Seed = Annotated[int, Meta(ge=0, le=2**64 - 1)]
"""Half of a key of NumPy's Philox."""
Workers = Annotated[int, Meta(ge=1, le=1 << 16)]
"""Processes, threads, or photos at a time."""

_Arguments = ParamSpec("_Arguments")
_Returned = TypeVar("_Returned")
_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    Path: "a path (the working folder is '.')",
    Any: "anything",
}
_BOUNDS = {"ge": "at least {}", "gt": "more than {}", "le": "at most {}", "lt": "less than {}"}


class UnfitError(Exception):
    """A value is not of the annotated type."""


_is_within = ContextVar("_is_within", default=False)
"""Whether a checked function is running: only the outermost one rewrites its errors in Python's terms."""


def checked(
    function: Callable[_Arguments, _Returned], *, called: str | None = None, hint: str | None = None
) -> Callable[_Arguments, _Returned]:
    """Return a wrapper that converts arguments to their annotated types and rejects values that cannot be converted.

    A text is accepted for a path, one value for a sequence, a list, an array, a Series or a set for a tuple, and a
    NumPy scalar for its number or text. A sequence has at least one value, unless its default is empty, and no value
    twice. Bounds, as in ``Annotated[int, msgspec.Meta(ge=0)]``, hold; the fields of a record of options
    (a dataclass with keywords alone) are checked as well. An annotation that only type checkers import is compared
    with the names of the value's classes.

    Parameters
    ----------
    called, hint : str, optional
        The name of the function in errors, and where its arguments are explained.

    Raises
    ------
    UsageError
        By the wrapper: an argument is missing, unknown, or of another type.
    CurationError
        By the wrapper: what the machine refused, such as a name that is too long (see
        `curation.core.errors.of_the_machine`).

    Examples
    --------
    >>> @checked
    ... def double(number: int) -> int:
    ...     return 2 * number
    >>> double("7")
    Traceback (most recent call last):
    curation.core.errors.UsageError: double cannot use this value of number
      expected: a whole number
      found: str '7'
      try: help(curation.core.arguments.double)
    """
    signature = inspect.signature(function)
    # The name in a notebook that has imported only `curation`.
    name, root = function.__qualname__, __name__.partition(".")[0]
    home = root if name.partition(".")[0] in sys.modules[root].__all__ else function.__module__
    title, help_text = called or function.__name__, hint or f"help({home}.{name})"
    kinds = functools.cache(lambda: annotations_of(function, extras=True))

    def fitted_arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            expected = ", ".join(name for name in inspect.signature(call).parameters if name != "self")
            problem = f"{title} got unexpected arguments"
            raise UsageError(problem, expected=expected, found=str(error)[:300], hint=help_text) from None
        for key, value in bound.arguments.items():
            parameter, kind = signature.parameters[key], kinds().get(key, Any)
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                bound.arguments[key] = tuple(_fitted(each, key, kind, title, help_text) for each in value)
            elif parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                bound.arguments[key] = _fitted(value, key, kind, title, help_text, parameter.default)
        return bound

    @functools.wraps(function)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Returned:
        is_outermost, token = not _is_within.get(), _is_within.set(True)
        try:
            bound = fitted_arguments(args, kwargs)
            return function(*bound.args, **bound.kwargs)
        except BrokenPipeError:
            # The reader of the output has closed the pipe.
            raise
        except CurationError as error:
            if is_outermost and not is_command():
                names = option_names_of(inspect.signature(call), kinds())
                for part in ("what", "expected", "hint"):
                    setattr(error, part, in_python(getattr(error, part), names))
            raise
        except (OSError, MemoryError, RecursionError, UnicodeError) as error:
            raise of_the_machine(error) from error
        finally:
            _is_within.reset(token)

    return call


def _fitted(value: Any, name: str, kind: Any, called: str, hint: str, default: Any = inspect.Parameter.empty) -> Any:
    """Return an argument as its annotated type; an empty value is accepted where the default is empty too."""
    is_needed = default is inspect.Parameter.empty or default is dataclasses.MISSING
    if value is default or (isinstance(value, list | tuple | Set) and not value and default == ()):
        return default
    try:
        _require(value != "" or default is not None if isinstance(value, str) else True)
        _require(bool(value) or not is_needed if isinstance(value, Mapping) else True)
        return fit(value, kind)
    except UnfitError:
        raise UsageError(
            f"{called} cannot use this value of {name}",
            expected=kind_in_words(kind)[:400],
            found=shown(value),
            hint=hint,
        ) from None


def fit(value: Any, kind: Any) -> Any:
    """Convert a value to its annotation: texts to paths, values to tuples, NumPy scalars to numbers.

    Raises
    ------
    UnfitError
        It is of another type.
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        is_path = Path in inner[1:] and isinstance(value, str | os.PathLike)
        if isinstance(value, list | tuple | Set) and not value and Meta(min_length=0) in inner[1:]:
            return ()
        fitted = fit(value, Path if is_path else inner[0])
        within = fitted is None or all(getattr(operator, name)(fitted, end) for name, end in _ends(inner[1:]))
        return _require(within, fitted)
    if len(kinds := alternatives(kind)) > 1:
        return _fit_first(value, kinds)
    if _takes_several(kind):
        return _fit_several(value, kind, inner)
    if origin is Mapping:
        _require(isinstance(value, Mapping))
        return {fit(key, inner[0]): fit(member, inner[1]) for key, member in value.items()}
    if _is_path(kind):
        text = os.fspath(value) if isinstance(value, str | os.PathLike) else ""
        return Path(_require(text != "" and _is_text(text), text))
    if kind is Any or origin not in (None, Literal, collections.abc.Callable):
        return value
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    if origin is Literal:
        return _require(any(type(value) is type(word) and value == word for word in inner), value)
    if origin is collections.abc.Callable:
        return _require(callable(value), value)
    if kind in (int, float):
        is_number = isinstance(value, int if kind is int else Real) and not isinstance(value, bool)
        return kind(_require(is_number and (kind is int or abs(value) <= sys.float_info.max), value))
    if kind is str:
        return str(_require(isinstance(value, str) and _is_text(value), value))
    _require(not isinstance(kind, type) or getattr(kind, "_is_protocol", False) or isinstance(value, kind))
    return _fit_record(value) if dataclasses.is_dataclass(value) else value


def _fit_record(value: Any) -> Any:
    """Return a record of options with each field as its annotated type; other dataclasses are returned unchanged."""
    fields = dataclasses.fields(value)
    if not all(field.kw_only for field in fields):
        return value
    name, kinds = type(value).__name__, annotations_of(type(value), extras=True)
    changed: dict[str, Any] = {}
    for field in fields:
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        before, hint = getattr(value, field.name), f"help({type(value).__module__}.{name})"
        fitted = _fitted(before, field.name, kinds[field.name], name, hint, default)
        changed |= {} if fitted is before else {field.name: fitted}
    return dataclasses.replace(value, **changed) if changed else value


def _require(fits: bool, value: Any = None) -> Any:
    if not fits:
        raise UnfitError
    return value


def _ends(extras: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the bounds that the `msgspec.Meta` of an annotation state, by their names in `_BOUNDS`."""
    rules = [rule for rule in extras if isinstance(rule, Meta)]
    return [(name, end) for rule in rules for name in _BOUNDS if (end := getattr(rule, name)) is not None]


def _fit_first(value: Any, kinds: Sequence[Any]) -> Any:
    """Convert a value to the first type of a union that accepts it; single values come before sequences."""
    if isinstance(value, list | tuple) and [*value] == ["all"]:
        value = "all" if any("all" in typing.get_args(kind) for kind in kinds) else value
    _require(value != "" or not any(map(_is_path, kinds)) if isinstance(value, str) else True)
    for kind in sorted(kinds, key=lambda kind: (_takes_several(kind), _is_path(kind) or kind is float)):
        with suppress(UnfitError):
            return fit(value, kind)
    raise UnfitError


def _takes_several(kind: Any) -> bool:
    return typing.get_origin(kind) in (tuple, Sequence, Collection)


def _fit_several(value: Any, kind: Any, inner: tuple[Any, ...]) -> tuple[Any, ...]:
    if isinstance(value, str | os.PathLike):
        value = (value,)
    elif isinstance(value, Set):
        value = sorted(value, key=str)
    elif hasattr(value, "tolist"):
        value = values_of_array(value)
    _require(isinstance(value, Sequence) and not isinstance(value, bytes | bytearray) and len(value) > 0)
    is_fixed = typing.get_origin(kind) is tuple and Ellipsis not in inner
    kinds = inner if is_fixed else (inner[0],) * len(value)
    _require(len(kinds) == len(value))
    fitted = tuple(fit(member, each) for member, each in zip(value, kinds, strict=True))
    return _require(is_fixed or len({(type(member), str(member)) for member in fitted}) == len(fitted), fitted)  # type: ignore[no-any-return]


def _is_text(text: Any) -> bool:
    """Return whether a value is a text without NUL that UTF-8 can hold, or a file name of other bytes."""
    try:
        return isinstance(text, str) and "\0" not in text and bool(text.encode("utf-8", "surrogateescape") or True)
    except UnicodeEncodeError:
        return False


def _is_path(kind: Any) -> bool:
    return kind is Path or os.PathLike in (kind, typing.get_origin(kind))


def annotations_of(function: Callable[..., Any], *, extras: bool = False) -> dict[str, Any]:
    """Return the annotation of each parameter; a name that is not imported stands for the class of that name.

    Parameters
    ----------
    function : callable
        Or a record: the annotations of its fields.
    extras : bool
        Whether an ``Annotated`` type keeps what it is annotated with.
    """
    if isinstance(function, type):
        resolved: dict[str, Any] = {}
        for base in reversed(function.__mro__):
            resolved |= _resolved(inspect.get_annotations(base), vars(sys.modules[base.__module__]), extras)
        return resolved
    function = inspect.unwrap(function)
    return _resolved(function.__annotations__, function.__globals__, extras)


def _resolved(annotations: Mapping[str, Any], space: dict[str, Any], extras: bool) -> dict[str, Any]:
    annotated = {name: hint for name, hint in annotations.items() if name != "return"}
    holder: Any = types.SimpleNamespace(__annotations__=annotated)
    return typing.get_type_hints(holder, space, _Names(space), include_extras=extras)


class _Names(dict[str, Any]):
    """Names in annotations that their module imports only for type checkers."""

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
    """A class that is known only by its name: every class of this name matches."""

    def __instancecheck__(cls, value: Any) -> bool:
        return any(base.__name__ == cls.__name__ for base in type(value).__mro__)


def alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation alone."""
    return typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)


def kind_in_words(kind: Any) -> str:
    """Return the values that an annotation accepts, in words for a message."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        bounds = [_BOUNDS[name].format(end) for name, end in _ends(inner[1:])]
        return ", ".join([_WORDS[Path] if Path in inner[1:] else kind_in_words(inner[0]), *bounds])
    if len(kinds := alternatives(kind)) > 1:
        return " or ".join(dict.fromkeys(map(kind_in_words, kinds)))
    if origin is Literal:
        return ", ".join(map(str, inner))
    if _takes_several(kind):
        return f"several (not empty, none twice) of: {kind_in_words(inner[0])}"
    if origin is Mapping:
        return f"a mapping of names to: {kind_in_words(inner[1])}"
    if _is_path(kind):
        return _WORDS[Path]
    return _WORDS.get(kind, "None" if kind is type(None) else getattr(kind, "__name__", str(kind)))


def values_of_array(array: Any) -> Any:
    """Return the content of an array, a tensor or a Series as lists and numbers of Python."""
    return array.tolist() if hasattr(array, "tolist") else array.item()


def shown(value: Any) -> str:
    """Return the class of a value and the beginning of its repr, in ASCII."""
    text = " ".join(ascii(value).split())
    return f"{type(value).__name__} {text[:80]}" + (f"... ({len(text)} characters)" if len(text) > 80 else "")


def pairs(
    texts: Sequence[str],
    option: str,
    *,
    bare: str | Callable[[str], str] | None = None,
    known: Collection[str] | None = None,
    names: Sequence[str] = (),
    in_keys: bool = False,
) -> dict[str, str]:
    """Return KEY=VALUE texts by key; a malformed or repeated one is a `UsageError`.

    Parameters
    ----------
    texts : sequence of str
    option : str
        The option as typed, for messages.
    bare : str or callable, optional
        The key of a text without ``=``, or a function that returns it; None: such a text is an error.
    known : collection of str, optional
        With `bare`: the only keys; any other text is a bare value, which may hold a ``=``.
    names : sequence of str
        Possible keys, to show how to distinguish two values without keys.
    in_keys : bool
        Whether a key may hold a ``=``, and a value none.
    """
    values_by_key: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.rpartition("=") if in_keys else text.partition("=")
        if bare is not None and (not equals or (known is not None and key not in known)):
            key, value = bare if isinstance(bare, str) else bare(text), text
        elif not (key and equals and value):
            raise UsageError(
                f"{option} needs NAME=VALUE",
                where=f"{option} {text[:200]}",
                expected=f"{option} NAME=VALUE",
                found="no name" if not key or not equals else "no value",
                hint=f"{option} NAME={shlex.quote(text)}"
                if text and not equals
                else f"{option} {key or 'NAME'}={value or 'VALUE'}",
            )
        if key in values_by_key:
            values = zip(names, (values_by_key[key], text), strict=False) if not key else ()
            raise UsageError(
                f"{option} names {key!r} twice" if key else f"{option} is given twice for all",
                where=f"{option} {text[:200]}",
                expected="NAME=VALUE, each name once",
                hint=" ".join(f"{option} {name}={value}" for name, value in values) or None,
            )
        values_by_key[key] = value
    return values_by_key
