"""The options of a command, made from a function: its signature declares them, its NumPy docstring explains them.

    def run(
        old: Annotated[str, "MANIFEST"], new: Annotated[str, "MANIFEST"], /, *, ids: bool = False, reading: Reading
    ) -> Answer:
        '''Compare two manifests.

        Parameters
        ----------
        old
            the older manifest: a folder or NAME@VERSION
        new
            the newer one
        ids
            with --json: every id added or removed, not only counts
        '''

`add_arguments` declares what this says in a parser, and `call` calls the function with what was parsed.

===============================  ==================================================================================
in the signature                 on the command line
===============================  ==================================================================================
positional (before ``*``)        an argument: several words where it is a sequence, optional where it has a default
keyword-only                     an option ``--like-this``; one letter: ``-k`` too; an underscore at the end is left out
``bool = False``                 a flag; ``bool = True``: the flag ``--no-like-this``
``Literal["a", "b"]``            one of these words
``str``, ``int``, ``Path`` …     one value; of a union with None or with other types, the one that a word can be
``tuple[X, ...]``                an option that may be repeated
``Mapping[str, X]``              a repeatable KEY=VALUE, read by `pairs`
``Mapping[str, X] | X``          KEY=VALUE, or a value without a key; the latter alone is given as it is, and else has
                                 the key ``""``; ``[NAME=]FILE``: of several, each has the stem of its file, and with
                                 another word than FILE its whole name
a dataclass                      its fields, each as an option of this command, explained in its own docstring
``Annotated[X, function]``       what the function returns: its parameters are options of this command
``Annotated[X, "FILE"]``         FILE stands for the value in the help; ``[[KEY=]WORD]``: the value may be left out;
                                 ``--source NAME=PATH``: an option of this name rather than the parameter's; a second
                                 text is help that goes before what the docstring says
``Annotated[Path, OUTPUT_FILE]``  an output (see `curation.cli.outputs`)
``Annotated[Any, Path]``         a parameter that takes more in Python: on the command line, a path
===============================  ==================================================================================

What two functions ask for under one name is one option: the first declares it, and the first docstring that explains it
is its help, without ``False:`` at its beginning. Parameters that `curation.core.option_names` says to be keys of one
option share it: ``--on-error boxes=drop --on-error stray=drop``. ``**named`` is for Python alone. Help states a
default, and that an option may be repeated, where the docstring does not; two values of another option are refused.
``--json`` and ``--force`` are declared once, in `curation.cli`.
"""  # noqa: D214, D215  (the example holds a docstring)

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from curation.cli.option_names import ABOUT, Help, Once
from curation.cli.outputs import Output
from curation.core.arguments import alternatives, annotations_of, fitted
from curation.core.errors import UsageError
from curation.core.key_value import pairs as pairs
from curation.core.option_names import OptionName, name_of

_WORDS = (Path, str, int, float, bool)
_METAVARS: Mapping[Any, str] = {Path: "FILE", int: "N", float: "X"}
_EMPTY = inspect.Parameter.empty
_BARE = object()
_KEY = re.compile(r"[\w.@-]+")


@dataclass(frozen=True, slots=True)
class _Option:
    """One parameter as the command line knows it."""

    parameter: str
    called: OptionName
    kind: Literal["flag", "one", "many", "pairs"]
    word: Any
    default: Any
    positional: bool
    metavar: str | None
    choices: tuple[str, ...] | None
    help: str
    bare: bool

    @property
    def key(self) -> str:
        """Return the key of a shared option that gives this parameter."""
        return self.called.key

    @property
    def dest(self) -> str:
        """Return the name in the namespace."""
        return self.called.option.replace("-", "_")

    @property
    def flag(self) -> str:
        """Return the option as it is typed."""
        return f"--{'no-' * (self.default is True)}{self.called.option}"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the words that argparse knows it by: an option of one letter also follows a single hyphen."""
        if self.positional:
            return (self.dest,)
        return (f"-{self.dest}", self.flag) if len(self.dest) == 1 else (self.flag,)

    @property
    def said(self) -> str:
        """Return what messages call it."""
        return self.dest.upper() if self.positional else f"{self.flag} {self.key}".rstrip()

    @property
    def required(self) -> bool:
        """Return whether it has to be given."""
        return self.default is _EMPTY and self.kind != "flag"

    @property
    def accepted(self) -> tuple[str, ...] | None:
        """Return the words that the value of a key may be, None for any."""
        return self.called.words if self.kind == "flag" else self.choices

    @property
    def value_text(self) -> str:
        """Return what stands for the value of a key in the help."""
        if self.accepted:
            return "|".join(self.accepted)
        return (self.metavar or "VALUE").replace("[", "").replace("]", "").rpartition("=")[2]

    @property
    def default_text(self) -> str:
        """Return the words about a default, or about repeats, that the help itself does not state."""
        if self.kind in ("many", "pairs"):
            said = self.positional or "repeatable" in self.help or "once for" in self.help
            return "" if said else " (repeatable)"
        value = self.default if self.kind == "one" else self.key and self.called.words[self.default]
        said = value in (_EMPTY, None, False, "", ()) or "default" in self.help or f"({value}" in self.help
        return "" if said else f" (default: {value})"

    def after_key(self, text: str) -> str | None:
        """Return the value that a text gives to the key, None where it has another; of pairs KEY:NAME=VALUE too."""
        key, equals, value = text.partition("=")
        if key == self.key:
            return value if equals else None
        key, colon, name = key.partition(":")
        return f"{name}={value}" if key == self.key and colon and equals and self.kind == "pairs" else None


def add_arguments(parser: argparse.ArgumentParser, function: Callable[..., Any]) -> None:
    """Declare the parameters of a function as arguments and options."""
    declared: dict[str, dict[str, _Option]] = {}
    for option in options_of(function):
        members = declared.setdefault(option.dest, {})
        first = members.setdefault(option.key, option)
        members[option.key] = first if first.help else dataclasses.replace(first, help=option.help)
    shared = {dest: tuple(members.values()) for dest, members in declared.items() if {*members} != {""}}
    parser.set_defaults(shared=shared)
    for dest, members in declared.items():
        if dest in shared:
            _declare_shared(parser, shared[dest])
            continue
        _declare(parser, members[""])


def _declare_shared(parser: argparse.ArgumentParser, members: Sequence[_Option]) -> None:
    """Declare an option that several parameters share, each with a key but for one."""
    main = next((option for option in members if not option.key), None)
    keyed = [option for option in members if option.key]
    lines = [f"{option.key}={option.value_text}: {option.help}{option.default_text}" for option in keyed]
    head = main.help + main.default_text if main else ABOUT.get(members[0].called.option, "")
    head += "" if "repeatable" in head or "once for" in head else " (repeatable)"

    def text_of(text: str) -> str:
        for option in keyed:
            value = option.after_key(text)
            if value is not None and (value in option.accepted if option.accepted else value):
                return text
            if value is not None:
                raise argparse.ArgumentTypeError(f"{text[:200]!r}: expected {option.key}={option.value_text}")
        if main is None:
            known = ", ".join(option.key for option in keyed)
            raise argparse.ArgumentTypeError(f"{text[:200]!r}: expected KEY=VALUE with a key of {known}")
        return text

    words = [f"{option.key}={word}" for option in keyed for word in option.accepted or ()]
    closed = main is None and all(option.accepted for option in keyed)
    parser.add_argument(
        *(main or members[0]).names,
        action="append",
        type=text_of,
        default=[],
        dest=members[0].dest,
        required=main is not None and main.required,
        choices=words if closed else None,
        metavar="KEY=VALUE" if main is None else "|".join(main.choices or ()) or main.metavar,
        help="\n".join([head, *lines]).replace("%", "%%"),
    )


def add_commands(parser: argparse.ArgumentParser, commands: Mapping[str, Callable[..., Any]], metavar: str) -> None:
    """Declare one sub-command a function; the namespace of a command line holds the function as ``command``."""
    below = parser.add_subparsers(dest=metavar.lower(), metavar=metavar, required=True)
    for name, function in commands.items():
        summary = summary_of(function)
        command = below.add_parser(
            name, help=summary, description=f"{summary}.", formatter_class=Help, allow_abbrev=False
        )
        add_arguments(command, function)
        command.set_defaults(command=function)


def call(function: Callable[..., Any], options: argparse.Namespace) -> Any:
    """Call a function with what its parameters were given on the command line.

    Raises
    ------
    UsageError
        A KEY=VALUE is none, a key is named twice, or a value is not what its annotation says (see
        `curation.core.arguments.checked`).
    """
    positional, named = [], {}
    hints = annotations_of(function, extras=True)
    for name, parameter in _parameters(function):
        if group := _group_in(hints[name]):
            value = call(group, options)
        elif option := _option(function, parameter, hints[name], ""):
            value = _value(option, options)
            value = fitted(value, option.said, hints[name], "The command", "--help", parameter.default)
        else:
            continue
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            named[name] = value
    return function(*positional, **named)


def summary_of(function: Callable[..., Any]) -> str:
    """Return the first line of a docstring without its full stop."""
    return (inspect.getdoc(function) or "").partition("\n")[0].removesuffix(".").replace("%", "%%")


def options_of(function: Callable[..., Any]) -> Iterator[_Option]:
    """Yield the options of a function, those of the records and functions that it is annotated with included."""
    texts = parameter_texts(function)
    hints = annotations_of(function, extras=True)
    for name, parameter in _parameters(function):
        if group := _group_in(hints[name]):
            yield from options_of(group)
        elif option := _option(function, parameter, hints[name], texts.get(name, "")):
            yield option


def _parameters(function: Callable[..., Any]) -> list[tuple[str, inspect.Parameter]]:
    """Return the parameters of a function that a command line can give."""
    given = inspect.signature(function).parameters.items()
    return [(name, parameter) for name, parameter in given if parameter.kind is not inspect.Parameter.VAR_KEYWORD]


def _group_in(hint: Any) -> Callable[..., Any] | None:
    """Return what stands for several options: a dataclass, or the function whose result is meant."""
    extras = get_args(hint)[1:] if get_origin(hint) is typing.Annotated else ()
    if made := next((extra for extra in extras if inspect.isfunction(extra)), None):
        return made
    kinds = [kind for kind in alternatives(hint) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 and isinstance(kinds[0], type) and dataclasses.is_dataclass(kinds[0]) else None


def _option(function: Callable[..., Any], parameter: inspect.Parameter, hint: Any, text: str) -> _Option | None:
    """Return a parameter as the command line knows it; None where Python alone knows it."""
    extras: list[Any] = []
    kind: Literal["flag", "one", "many", "pairs"] = "one"
    hint = _plain(hint, extras)
    if get_origin(hint) in (tuple, list, Sequence, Collection):
        kind, hint = "many", _plain(get_args(hint)[0], extras)
    elif get_origin(hint) is Mapping:
        kind, hint = "pairs", _plain(get_args(hint)[1], extras)
    word = next((extra for extra in extras if isinstance(extra, type | Output)), hint)
    choices = get_args(hint) if get_origin(hint) is Literal else None
    if word is bool and kind == "one":
        kind = "flag"
    metavar, *more = [extra for extra in extras if isinstance(extra, str)] or [""]
    flag = ""
    if metavar.startswith("--"):
        flag, _, metavar = metavar.partition(" ")
    positional = parameter.kind is not inspect.Parameter.KEYWORD_ONLY and not flag
    said = flag[2:].replace("-", "_") or parameter.name.rstrip("_")
    called = OptionName(said) if positional else name_of(function.__name__, said)
    if called is None:
        return None
    if not isinstance(word, Output) and choices is None and word not in _WORDS:
        raise TypeError(f"{function.__qualname__}: no word of a command line is a {hint} ({parameter.name})")
    if not metavar and not choices:
        usual = "FILE" if isinstance(word, Output) else _METAVARS.get(word, called.option.replace("-", "_").upper())
        metavar = usual if kind != "pairs" else "NAME=PATH" if word is Path else "NAME=VALUE"
    return _Option(
        parameter=parameter.name,
        called=called,
        kind=kind,
        word=str if choices else word,
        default=parameter.default,
        positional=positional,
        metavar=metavar or None,
        choices=choices,
        help="; ".join(filter(None, (*more, text.removeprefix("False: ")))),
        bare=_BARE in extras,
    )


def _plain(hint: Any, extras: list[Any]) -> Any:
    """Return a type without annotations and alternatives, and collect the annotations."""
    if get_origin(hint) is typing.Annotated:
        inner, *found = get_args(hint)
        extras += found
        return _plain(inner, extras)
    if get_origin(hint) in (Union, types.UnionType):
        kept = [member for member in get_args(hint) if member is not type(None)]
        usable = [member for member in kept if get_origin(member) is not None or member in _WORDS]
        keyed = [member for member in usable if get_origin(member) is Mapping]
        extras += [_BARE] if keyed and len(usable) > 1 else []
        return _plain((keyed or usable or kept)[0], extras)
    return hint


def _declare(parser: argparse.ArgumentParser, option: _Option) -> None:
    text = (option.help + option.default_text).replace("%", "%%")
    if option.kind == "flag":
        action = "store_false" if option.default is True else "store_true"
        parser.add_argument(*option.names, action=action, dest=option.dest, help=text)
        return
    several = option.kind in ("many", "pairs")
    more: dict[str, Any] = {"choices": option.choices} if option.choices else {"type": option.word}
    if option.kind == "pairs":
        more["type"] = str
    if option.positional:
        more["nargs"] = ("+" if option.required else "*") if several else (None if option.required else "?")
    else:
        more["required"] = option.required
        more["action"] = "append" if several else Once
    metavar = option.metavar
    if several and metavar and metavar.startswith("[[") and metavar.endswith("]"):
        more |= {"nargs": "?", "const": ""}
        metavar = metavar[1:-1]
    default = [] if several else None if option.default is _EMPTY else option.default
    parser.add_argument(*option.names, default=default, metavar=metavar, help=text, **more)


def _value(option: _Option, options: argparse.Namespace) -> Any:
    value = getattr(options, option.dest)
    members: Sequence[_Option] = getattr(options, "shared", {}).get(option.dest, ())
    if members and not option.positional:
        value = _own_texts(option, members, value)
        if option.kind in ("one", "flag"):
            return _only_value(option, value)
    if option.kind == "pairs":
        read = option.word if isinstance(option.word, type) else Path
        bare, known = _bare_key(value, option) if option.bare else (None, None)
        named = re.match(r"\[((?:\w+\|)+\w+)", option.metavar or "")
        names = named[1].split("|") if named else ()
        texts = pairs(value, option.flag, bare=bare, known=known, names=names)
        given = {key: read(text) for key, text in texts.items()}
        return given[""] if list(given) == [""] else given
    return tuple(value) if option.kind == "many" else value


def _own_texts(option: _Option, members: Sequence[_Option], texts: Sequence[str]) -> list[str]:
    """Return what the texts of a shared option give to one of its members."""
    if option.key:
        return [value for text in texts if (value := option.after_key(text)) is not None]
    keyed = [member for member in members if member.key]
    return [text for text in texts if all(member.after_key(text) is None for member in keyed)]


def _only_value(option: _Option, texts: Sequence[str]) -> Any:
    """Return the one value among some texts, or the default."""
    if len(texts) > 1:
        raise UsageError(f"{option.said} is given twice", found=", ".join(texts)[:200])
    if not texts:
        if option.required:
            raise UsageError(f"{option.said} is missing", hint="--help")
        return option.default
    (text,) = texts
    if option.kind == "flag":
        return text == option.called.words[1]
    try:
        return option.word(text)
    except ValueError:
        return text


def _bare_key(texts: Sequence[str], option: _Option) -> tuple[str | Callable[[str], str], set[str]]:
    """Return the key of a value without one, and the keys of the others.

    A key stands before ``=`` where it can be one and the whole is not itself the path of something. A value without
    a key has the key ``""``; where the option is ``[NAME=]FILE``, each of several has the stem of its file.
    """
    keys = (text.partition("=")[0] for text in texts if "=" in text and not Path(text).exists())
    known = {key for key in keys if _KEY.fullmatch(key)}
    bare = [text for text in texts if "=" not in text or text.partition("=")[0] not in known]
    several = len(bare) > 1 and (option.metavar or "").startswith("[NAME=]")
    stem = "FILE" in (option.metavar or "")
    return (lambda text: Path(text).stem if stem else Path(text).name) if several else "", known


def parameter_texts(function: Callable[..., Any]) -> dict[str, str]:
    """Return what the docstring says of each parameter, in one line; a dataclass inherits what its bases say."""
    bases = function.__mro__[:0:-1] if isinstance(function, type) else ()
    texts: dict[str, str] = {}
    for documented in (*bases, function):
        texts |= _texts_in(inspect.cleandoc(documented.__doc__ or ""))
    return texts


def _texts_in(docstring: str) -> dict[str, str]:
    lines = docstring.split("\n")
    texts: dict[str, list[str]] = {}
    names: list[str] = []
    inside = False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if following.startswith("---") and not line.startswith(" "):
            inside, names = line in ("Parameters", "Attributes"), []
        elif not inside or line.startswith("---"):
            continue
        elif line and not line.startswith(" "):
            names = [name.strip() for name in line.partition(" :")[0].split(",")]
        else:
            for name in names:
                texts.setdefault(name, []).append(line.strip())
    return {name: " ".join(filter(None, lines)).replace("``", "").removesuffix(".") for name, lines in texts.items()}
