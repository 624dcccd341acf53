"""What a function is given from Python, held against the annotations of its signature: one check for all of them."""

from __future__ import annotations

import builtins
import collections.abc
import dataclasses
import errno
import functools
import inspect
import math
import operator
import os
import sys
import types
import typing
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from itertools import islice
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
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "True or False", Path: "a path", Any: "anything"}
_BOUNDS = {"ge": "at least {}", "gt": "more than {}", "le": "at most {}", "lt": "less than {}"}
_MOST = 1_000_000
"""Values that an iterator, which may have no end, is asked for."""


def checked(
    function: Callable[_Given, _Made], *, called: str | None = None, hint: str | None = None
) -> Callable[_Given, _Made]:
    """Return a function that gets its arguments as its annotations have them, and refuses what cannot be had so.

    A text stands for a path where a path is wanted, one name for several, and a list, an array, a Series, a set or a
    generator for a tuple; a scalar of NumPy for the number or text that it holds. Several are at least one, unless none
    is the default, and none of them twice; ``all`` goes alone. A path has a name that a file can have. Bounds, as in
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
    called = called or function.__name__
    # As a notebook writes it that has imported `curation` alone.
    name, root = function.__qualname__, __name__.partition(".")[0]
    home = root if name.partition(".")[0] in sys.modules[root].__all__ else function.__module__
    hint = hint or f"help({home}.{name})"
    kinds: dict[str, Any] = {}

    def fit(given: tuple[Any, ...], named: Mapping[str, Any]) -> inspect.BoundArguments:
        try:
            bound = signature.bind(*given, **named)
        except TypeError as error:
            public = [name for name in inspect.signature(call).parameters if name != "self"]
            is_by_place = "positional argument" in str(error) and len(given) <= len(public)
            named_ones = ", ".join(f"{name}=..." for name in public[: len(given)])
            raise UsageError(
                f"{called} got unexpected arguments",
                expected=", ".join(public),
                found=str(error)[:300],
                hint=f"name the arguments: {named_ones}" if is_by_place else hint,
            ) from None
        if not kinds:
            kinds.update(annotations_of(function, extras=True))
        for key, value in bound.arguments.items():
            if key not in kinds:
                continue
            parameter = signature.parameters[key]
            fit_value = functools.partial(fitted, kind=kinds[key], called=called, hint=hint, default=parameter.default)
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                bound.arguments[key] = tuple(fit_value(each, key) for each in value)
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                stated = inspect.signature(call).parameters
                bound.arguments[key] = {
                    name: fit_value(each, name, default=stated.get(name, parameter).default)
                    for name, each in value.items()
                }
            else:
                bound.arguments[key] = fit_value(value, key)
        return bound

    def in_words_of_python(error: CurationError) -> None:
        public = inspect.signature(call)
        for part in ("what", "expected", "hint"):
            if "--" in (text := getattr(error, part) or ""):
                setattr(error, part, in_python(text, public, kinds))

    @functools.wraps(function)
    def call(*given: _Given.args, **named: _Given.kwargs) -> _Made:
        try:
            bound = fit(given, named)
            return function(*bound.args, **bound.kwargs)
        except CurationError as error:
            if not is_command():
                in_words_of_python(error)
            raise
        except (OSError, MemoryError, RecursionError, UnicodeError) as error:
            raise of_the_machine(error) from error

    return call


class _UnfitError(Exception):
    """A value is not of a kind, and why if that is not seen; of a record of options, of its field of a name."""

    def __init__(self, value: Any, kind: Any, why: str = "", name: str = "") -> None:
        self.value, self.kind, self.why, self.name = value, kind, why, name
        super().__init__()


def fitted(value: Any, name: str, kind: Any, called: str, hint: str, default: Any) -> Any:
    """Return an argument as its annotation has it (see `checked`).

    Raises
    ------
    UsageError
        It is of another kind: `called` says what cannot use the value of this `name`, `hint` where to look.
    """
    try:
        return _with_default(value, kind, default)
    except _UnfitError as unfit:
        raise UsageError(
            f"{called} cannot use this value of {unfit.name or name}",
            expected=" or ".join(dict.fromkeys(map(_in_words, alternatives(unfit.kind))))[:400],
            found=shown(unfit.value) + unfit.why,
            hint=hint,
        ) from None


def _with_default(value: Any, kind: Any, default: Any) -> Any:
    """Return a value as an annotation has it.

    Several may be none where that is the default, and a mapping may be empty where something is the default: what a
    call has to give cannot be nothing. An empty text says nothing where None says that.
    """
    if isinstance(default, tuple) and not default and isinstance(value, list | tuple | Set) and not value:
        return default
    if default is None and isinstance(value, str) and not value:
        raise _UnfitError(value, kind, " (empty)")
    if isinstance(value, Mapping) and not value and default in (inspect.Parameter.empty, dataclasses.MISSING):
        raise _UnfitError(value, kind, " (empty)")
    return _fit(value, kind)


def _fit(value: Any, kind: Any) -> Any:
    """Return a value as an annotation has it; an annotation that cannot be asked takes everything."""
    if typing.get_origin(kind) is typing.Annotated:
        return _bounded(value, kind)
    kinds = alternatives(kind)
    if len(kinds) > 1:
        return _fit_any(value, kind, kinds)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in _SEVERAL:
        return _fit_several(value, kind, inner)
    if origin is Mapping:
        if not isinstance(value, Mapping):
            raise _UnfitError(value, kind)
        return {_fit(key, inner[0]): _fit(member, inner[1]) for key, member in value.items()}
    if _is_path(kind):
        text = _path_text(value, kind)
        return value if isinstance(value, Path) else Path(text)
    if kind is Any or origin not in (None, Literal, collections.abc.Callable):
        return value
    value = _plain(value)
    if origin is Literal:
        fits = any(type(value) is type(choice) and value == choice for choice in inner)
    elif origin is collections.abc.Callable:
        fits = callable(value)
    elif kind is int:
        fits = isinstance(value, int) and not isinstance(value, bool)
    elif kind is float:
        value = _as_float(value)
        fits = isinstance(value, float)
    elif kind is str:
        fits = isinstance(value, str) and "\0" not in value and _can_be_written(value)
    elif not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        fits = True
    else:
        fits = isinstance(value, kind)
        if fits and dataclasses.is_dataclass(value):
            return _fit_record(value)
    if not fits:
        raise _UnfitError(value, kind)
    return value


def _bounded(value: Any, kind: Any) -> Any:
    """Return a value as an annotation with bounds has it; what only the command line reads in it is passed over."""
    inner, *extras = typing.get_args(kind)
    if Path in extras and isinstance(value, str | os.PathLike):
        return Path(_path_text(value, kind))
    if isinstance(value, list | tuple | Set) and not value and Meta(min_length=0) in extras:
        return ()
    try:
        made = _fit(value, inner)
    except _UnfitError as unfit:
        raise (unfit if unfit.name else _UnfitError(value, kind, unfit.why)) from None
    if made is not None and not all(getattr(operator, name)(made, end) for name, end in _ends(extras)):
        raise _UnfitError(value, kind)
    return made


def _ends(extras: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the bounds that each `msgspec.Meta` among what annotates a type states, by their names in `_BOUNDS`."""
    rules = [rule for rule in extras if isinstance(rule, Meta)]
    return [(name, end) for rule in rules for name in _BOUNDS if (end := getattr(rule, name)) is not None]


def _fit_any(value: Any, kind: Any, kinds: tuple[Any, ...]) -> Any:
    """Return a value as the first alternative that takes it has it; none that makes more of it goes before others."""
    if isinstance(value, list | tuple | Set) and [*value] == ["all"]:
        words = {word for each in kinds if typing.get_origin(each) is Literal for word in typing.get_args(each)}
        value = "all" if "all" in words else value
    why = ""
    for alternative in sorted(kinds, key=_rank):
        try:
            made = _fit(value, alternative)
        except _UnfitError as unfit:
            if unfit.name:
                raise
            why = why or unfit.why
            continue
        if isinstance(made, str) and any(map(_is_path, kinds)):
            _path_text(made, kind)
        return made
    raise _UnfitError(value, kind, why)


def _rank(kind: Any) -> int:
    if typing.get_origin(kind) in _SEVERAL:
        return 2
    return 1 if _is_path(kind) or kind is float else 0


def _fit_several(value: Any, kind: Any, inner: tuple[Any, ...]) -> tuple[Any, ...]:
    if isinstance(value, Set):
        value = sorted(value, key=lambda member: (str(member), type(member).__name__))
    elif isinstance(value, str | os.PathLike):
        value = (value,)
    elif hasattr(value, "tolist"):
        value = values_of_array(value)
    elif isinstance(value, Iterator):
        value = [*islice(value, _MOST + 1)]
    if isinstance(value, bytes | bytearray) or not isinstance(value, Sequence | collections.abc.ValuesView):
        raise _UnfitError(value, kind)
    if not 0 < len(value) <= _MOST:
        raise _UnfitError(value, kind)
    several = inner if Ellipsis not in inner and typing.get_origin(kind) is tuple else (inner[0],) * len(value)
    if len(several) != len(value):
        raise _UnfitError(value, kind)
    try:
        made = tuple(_fit(member, each) for member, each in zip(value, several, strict=True))
    except _UnfitError as unfit:
        raise _UnfitError(value, kind, unfit.why) from None
    if "all" in made and len(made) > 1 and any("all" in typing.get_args(choice) for choice in alternatives(inner[0])):
        raise _UnfitError(value, kind)
    if several is not inner and (twice := _repeated(made)) is not None:
        raise _UnfitError(value, kind, f" ({twice!s:.200} is named twice)")
    return made


def _repeated(values: tuple[Any, ...]) -> Any:
    """Return the first value that was there before, None where all are different."""
    try:
        return next((value for value, count in Counter(values).items() if count > 1), None)
    except TypeError:
        # What cannot be hashed is no name.
        return None


def _fit_record(value: Any) -> Any:
    """Return a record of options with each field as its annotation has it; other dataclasses are what they are."""
    fields = dataclasses.fields(value)
    if not all(field.kw_only for field in fields):
        return value
    kinds = _kinds_of(value.__class__)
    made = {}
    for field in fields:
        given = getattr(value, field.name)
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        try:
            made[field.name] = _with_default(given, kinds[field.name], default)
        except _UnfitError as unfit:
            raise _UnfitError(unfit.value, unfit.kind, unfit.why, unfit.name or field.name) from None
    changed = {name: new for name, new in made.items() if new is not getattr(value, name)}
    return dataclasses.replace(value, **changed) if changed else value


@functools.cache
def _kinds_of(record: type) -> dict[str, Any]:
    return annotations_of(record, extras=True)


def _plain(value: Any) -> Any:
    """Return the number, text or truth value that a scalar of NumPy, or an instance of a subclass, holds."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = values_of_array(value)
    if isinstance(value, str) and type(value) is not str:
        return str.__str__(value)
    return value if isinstance(value, bool) or not isinstance(value, Integral) else int(value)


def _as_float(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        made = float(value)
    except OverflowError:
        return None
    return made if math.isfinite(made) else None


def _can_be_written(text: str) -> bool:
    """Return whether a text is one that UTF-8 holds, or a name of bytes that are none, as the file system gives it."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _is_path(kind: Any) -> bool:
    return kind is Path or os.PathLike in (kind, typing.get_origin(kind))


def _path_text(value: Any, kind: Any) -> str:
    """Return the text of a path; one that no file can have is of another kind.

    An empty text would be the working folder.
    """
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str):
        raise _UnfitError(value, kind)
    if not text:
        raise _UnfitError(value, kind, " (empty: the working folder is '.')")
    try:
        os.lstat(text)
    except ValueError as error:
        # A NUL, or a text that is in no encoding.
        raise _UnfitError(value, kind, f" ({error})"[:200]) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise _UnfitError(value, kind, f" ({error.strerror})") from None
    return _plain(text)  # type: ignore[no-any-return]


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
        found: dict[str, Any] = {}
        for base in reversed(function.__mro__):
            found |= _resolved(inspect.get_annotations(base), vars(sys.modules[base.__module__]), extras)
        return found
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


def _in_words(kind: Any) -> str:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        bounds = [_BOUNDS[name].format(end) for name, end in _ends(inner[1:])]
        whole = "a path" if Path in inner[1:] else " or ".join(dict.fromkeys(map(_in_words, alternatives(inner[0]))))
        return ", ".join([whole, *bounds])
    if origin is Literal:
        return ", ".join(map(str, inner))
    if origin in _SEVERAL:
        alone = ", all alone" if any("all" in typing.get_args(choice) for choice in alternatives(inner[0])) else ""
        each = " or ".join(map(_in_words, alternatives(inner[0])))
        return f"several (not empty, none twice{alone}) of: {each}"
    if origin is Mapping:
        return f"a mapping of names to: {' or '.join(map(_in_words, alternatives(inner[1])))}"
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
    # A class of the user's may show itself in any way, or not at all.
    except Exception as error:
        text = f"({type(error).__name__} when it is shown)"
    return f"{type(value).__name__} {text[:80]}" + (f"... ({len(text)} characters)" if len(text) > 80 else "")
