"""What a function is given from Python, held against the annotations of its signature: one check for all of them."""

from __future__ import annotations

import builtins
import collections.abc
import dataclasses
import functools
import inspect
import operator
import os
import sys
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextvars import ContextVar
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

from msgspec import Meta

from curation.core.errors import CurationError, UsageError, of_the_machine
from curation.core.option_names import in_python
from curation.core.writing import is_command

Replicates = Annotated[int, Meta(ge=0, le=1_000_000)]
"""Of a bootstrap; 0 for none."""
Seed = Annotated[int, Meta(ge=0, le=2**64 - 1)]
"""Half of a key of NumPy's Philox."""
Workers = Annotated[int, Meta(ge=1, le=1 << 16)]
"""Processes, threads, or photos at a time."""

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")
_SEVERAL = (tuple, Sequence, Collection)
_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    Path: "a path (the working folder is '.')",
    Any: "anything",
}
_BOUNDS = {"ge": "at least {}", "gt": "more than {}", "le": "at most {}", "lt": "less than {}"}
_MOST = 1_000_000
"""Maximum number of values of an argument."""


class UnfitError(Exception):
    """A value is not of the kind that is wanted."""


_is_within = ContextVar("_is_within", default=False)
"""Whether a checked function runs: the outermost one says its errors in words of Python."""


def checked(
    function: Callable[_Given, _Made], *, called: str | None = None, hint: str | None = None
) -> Callable[_Given, _Made]:
    """Return a wrapper that converts arguments to their annotated types and rejects values that cannot be converted.

    A text stands for a path where a path is wanted, one name for several, and a list, an array, a Series or a set for a
    tuple; a scalar of NumPy for the number or text that it holds. Several are at least one, unless none is the default,
    and none of them twice. A path has a name that a file can have. Bounds, as in
    ``Annotated[int, msgspec.Meta(ge=0)]``, hold; the fields of a record of options (a dataclass with keywords alone)
    are arguments as well. An annotation that is known to type checkers alone is held against the names of the value's
    classes.

    Parameters
    ----------
    called, hint : str, optional
        What errors call the function, and where they say that its arguments are explained.

    Raises
    ------
    UsageError
        By the function made: an argument is missing, unknown, or of another kind.
    CurationError
        By the function made: what the machine refused, such as a name that is too long (see
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
    # As a notebook writes it that has imported `curation` alone.
    name, root = function.__qualname__, __name__.partition(".")[0]
    home = root if name.partition(".")[0] in sys.modules[root].__all__ else function.__module__
    title, help_text = called or function.__name__, hint or f"help({home}.{name})"
    kinds = functools.cache(lambda: annotations_of(function, extras=True))

    def fitted_arguments(given: tuple[Any, ...], named: Mapping[str, Any]) -> inspect.BoundArguments:
        try:
            bound = signature.bind(*given, **named)
        except TypeError as error:
            public = [name for name in inspect.signature(call).parameters if name != "self"]
            is_by_place = "positional argument" in str(error) and len(given) <= len(public)
            named_ones = ", ".join(f"{name}=..." for name in public[: len(given)])
            raise UsageError(
                f"{title} got unexpected arguments",
                expected=", ".join(public),
                found=str(error)[:300],
                hint=f"name the arguments: {named_ones}" if is_by_place else help_text,
            ) from None
        for key, value in bound.arguments.items():
            parameter, kind = signature.parameters[key], kinds().get(key, Any)
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                made: Any = tuple(_fitted(each, key, kind, title, help_text) for each in value)
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                parameters = inspect.signature(call).parameters
                made = {
                    name: _fitted(each, name, kind, title, help_text, parameters.get(name, parameter).default)
                    for name, each in value.items()
                }
            else:
                made = _fitted(value, key, kind, title, help_text, parameter.default)
            bound.arguments[key] = made
        return bound

    def in_words_of_python(error: CurationError) -> None:
        public = inspect.signature(call)
        for part in ("what", "expected", "hint"):
            if "--" in (text := getattr(error, part) or ""):
                setattr(error, part, in_python(text, public, kinds()))

    @functools.wraps(function)
    def call(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        is_outermost, token = not _is_within.get(), _is_within.set(True)
        try:
            bound = fitted_arguments(args, kwargs)
            return function(*bound.args, **bound.kwargs)
        except BrokenPipeError:
            # The reader of the output went away: no refusal.
            raise
        except CurationError as error:
            if is_outermost and not is_command():
                in_words_of_python(error)
            raise
        except (OSError, MemoryError, RecursionError, UnicodeError) as error:
            raise of_the_machine(error) from error
        finally:
            _is_within.reset(token)

    return call


def _fitted(value: Any, name: str, kind: Any, called: str, hint: str, default: Any = inspect.Parameter.empty) -> Any:
    """Return an argument as its annotation has it; several may be none, and a mapping empty, where there is a default.

    An empty text means "not specified" if None does.
    """
    is_needed = default is inspect.Parameter.empty or default is dataclasses.MISSING
    is_empty = isinstance(value, str | list | tuple | Set | Mapping) and not value
    if value is default or (is_empty and default == () and not isinstance(value, str | Mapping)):
        return default
    try:
        _require(not (is_empty and isinstance(value, str) and default is None))
        _require(not (is_empty and isinstance(value, Mapping) and is_needed))
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
        It is of another kind.
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        is_path = Path in inner[1:] and isinstance(value, str | os.PathLike)
        if isinstance(value, list | tuple | Set) and not value and Meta(min_length=0) in inner[1:]:
            return ()
        made = fit(value, Path if is_path else inner[0])
        fits = made is None or all(getattr(operator, name)(made, end) for name, end in _ends(inner[1:]))
        return _require(fits, made)
    if len(kinds := alternatives(kind)) > 1:
        return _fit_first(value, kinds)
    if origin in _SEVERAL:
        return _fit_several(value, kind, inner)
    if origin is Mapping:
        _require(isinstance(value, Mapping))
        return {fit(key, inner[0]): fit(member, inner[1]) for key, member in value.items()}
    if _is_path(kind):
        text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
        _require(isinstance(text, str) and text != "" and _is_text(text))
        return value if isinstance(value, Path) else Path(str(text))
    if kind is Any or origin not in (None, Literal, collections.abc.Callable):
        return value
    value = _plain(value)
    if origin is Literal:
        return _require(any(type(value) is type(word) and value == word for word in inner), value)
    if origin is collections.abc.Callable:
        return _require(callable(value), value)
    if kind is int:
        return _require(isinstance(value, int) and not isinstance(value, bool), value)
    if kind is float:
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        return float(_require(is_number and abs(value) <= sys.float_info.max, value))
    if kind is str:
        return _require(isinstance(value, str) and _is_text(value), value)
    _require(not isinstance(kind, type) or getattr(kind, "_is_protocol", False) or isinstance(value, kind))
    return _fit_record(value) if dataclasses.is_dataclass(value) else value


def _fit_record(value: Any) -> Any:
    """Return a record of options with each field as its annotation has it; other dataclasses are what they are."""
    fields = dataclasses.fields(value)
    if not all(field.kw_only for field in fields):
        return value
    name, kinds = type(value).__name__, _annotations_of_record(value.__class__)
    made = {}
    for field in fields:
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        before = getattr(value, field.name)
        made[field.name] = _fitted(
            before, field.name, kinds[field.name], name, f"help({type(value).__module__}.{name})", default
        )
    changed = {name: new for name, new in made.items() if new is not getattr(value, name)}
    return dataclasses.replace(value, **changed) if changed else value


def _require(fits: bool, value: Any = None) -> Any:
    if not fits:
        raise UnfitError
    return value


def _ends(extras: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the bounds that each `msgspec.Meta` among what annotates a type states, by their names in `_BOUNDS`."""
    rules = [rule for rule in extras if isinstance(rule, Meta)]
    return [(name, end) for rule in rules for name in _BOUNDS if (end := getattr(rule, name)) is not None]


def _fit_first(value: Any, kinds: Sequence[Any]) -> Any:
    """Return a value as the first alternative that takes it has it; none that makes more of it goes before others."""
    if isinstance(value, list | tuple | Set) and [*value] == ["all"]:
        value = "all" if any("all" in typing.get_args(kind) for kind in kinds) else value
    for kind in sorted(kinds, key=_rank):
        try:
            made = fit(value, kind)
        except UnfitError:
            continue
        if isinstance(made, str) and any(map(_is_path, kinds)):
            fit(made, Path)
        return made
    raise UnfitError


def _rank(kind: Any) -> int:
    return 2 if typing.get_origin(kind) in _SEVERAL else 1 if _is_path(kind) or kind is float else 0


def _fit_several(value: Any, kind: Any, inner: tuple[Any, ...]) -> tuple[Any, ...]:
    if isinstance(value, str | os.PathLike):
        value = (value,)
    elif isinstance(value, Set):
        value = sorted(value, key=lambda member: (str(member), type(member).__name__))
    elif hasattr(value, "tolist"):
        value = values_of_array(value)
    is_sequence = isinstance(value, Sequence | collections.abc.ValuesView) and not isinstance(value, bytes | bytearray)
    _require(is_sequence and 0 < len(value) <= _MOST)
    is_fixed = typing.get_origin(kind) is tuple and Ellipsis not in inner
    kinds = inner if is_fixed else (inner[0],) * len(value)
    _require(len(kinds) == len(value))
    made = tuple(fit(member, each) for member, each in zip(value, kinds, strict=True))
    _require(len(made) == 1 or "all" not in made or "all" not in typing.get_args(inner[0]))
    _require(is_fixed or len({(type(member), str(member)) for member in made}) == len(made))
    return made


@functools.cache
def _annotations_of_record(record: type) -> dict[str, Any]:
    return annotations_of(record, extras=True)


def _plain(value: Any) -> Any:
    """Return the number, text or truth value that a scalar of NumPy, or an instance of a subclass, holds."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = values_of_array(value)
    if isinstance(value, str) and type(value) is not str:
        return str.__str__(value)
    return value if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def _is_text(text: str) -> bool:
    """Return whether UTF-8 holds a text, or a name of bytes that are none, as the file system gives it."""
    try:
        return "\0" not in text and bool(text.encode("utf-8", "surrogateescape") or True)
    except UnicodeEncodeError:
        return False


def _is_path(kind: Any) -> bool:
    return kind is Path or os.PathLike in (kind, typing.get_origin(kind))


def annotations_of(function: Callable[..., Any], *, extras: bool = False) -> dict[str, Any]:
    """Return what each parameter is annotated as; a name that is not loaded stands for the class of that name.

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
        return any(base.__name__ == cls.__name__ for base in type(value).__mro__)


def alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation alone."""
    return typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)


def kind_in_words(kind: Any) -> str:
    """Return what an annotation takes, for a message."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        bounds = [_BOUNDS[name].format(end) for name, end in _ends(inner[1:])]
        return ", ".join([_WORDS[Path] if Path in inner[1:] else kind_in_words(inner[0]), *bounds])
    if len(kinds := alternatives(kind)) > 1:
        return " or ".join(dict.fromkeys(map(kind_in_words, kinds)))
    if origin is Literal:
        return ", ".join(map(str, inner))
    if origin in _SEVERAL:
        return f"several (not empty, none twice) of: {kind_in_words(inner[0])}"
    if origin is Mapping:
        return f"a mapping of names to: {kind_in_words(inner[1])}"
    if _is_path(kind):
        return _WORDS[Path]
    return _WORDS.get(kind, "None" if kind is type(None) else getattr(kind, "__name__", str(kind)))


def values_of_array(array: Any) -> Any:
    """Return what an array, a tensor or a Series holds, as lists and numbers of Python.

    Raises
    ------
    UsageError
        It gives no values, as a tensor of torch on the device ``meta``, or a sparse one.
    """
    try:
        return array.tolist() if hasattr(array, "tolist") else array.item()
    # Libraries raise errors of every class here.
    except Exception as error:
        raise UsageError(
            "The values of an array cannot be read",
            expected="an array in memory",
            found=f"{type(array).__name__}: {error}"[:200],
            hint="tensor.to_dense().cpu()",
        ) from None


def shown(value: Any) -> str:
    """Return the class of a value and the beginning of what it holds, in ASCII."""
    try:
        text = " ".join(ascii(value).split())
    # The repr of a user-defined class may be anything, or fail.
    except Exception as error:
        text = f"({type(error).__name__} when it is shown)"
    return f"{type(value).__name__} {text[:80]}" + (f"... ({len(text)} characters)" if len(text) > 80 else "")


def pairs(
    texts: Sequence[str],
    option: str,
    *,
    bare: str | Callable[[str], str] | None = None,
    known: Collection[str] | None = None,
    names: Sequence[str] = (),
) -> dict[str, str]:
    """Return KEY=VALUE texts by key; a malformed or repeated one is a `UsageError`.

    Parameters
    ----------
    texts : sequence of str
    option : str
        As it is typed, for messages.
    bare : str or callable, optional
        The key of a text without ``=``, or what makes it from the text, which is refused where this is None.
    known : collection of str, optional
        With `bare`: the only keys; any other text is a bare value, which may hold a ``=``.
    names : sequence of str
        Existing keys; an error message uses them to explain how to distinguish several values without keys.
    """
    values_by_key: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if bare is not None and (not equals or (known is not None and key not in known)):
            key, value = bare if isinstance(bare, str) else bare(text), text
        elif not (key and equals and value):
            raise UsageError(
                f"{option} needs NAME=VALUE",
                where=f"{option} {text[:200]}",
                expected=f"{option} NAME=VALUE",
                found="no name" if not key or not equals else "no value",
            )
        if key in values_by_key:
            problem = f"names {key!r} twice" if key else "is given twice for all"
            error = UsageError(f"{option} {problem}", where=f"{option} {text[:200]}", expected="each name once")
            if not key:
                error.expected = f"{option} {'|'.join(names) or 'NAME'}=VALUE, each with its name"
                values = zip(names, (values_by_key[key], text), strict=False)
                error.hint = " ".join(f"{option} {name}={value}" for name, value in values) or None
            raise error
        values_by_key[key] = value
    return values_by_key
