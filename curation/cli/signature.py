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
``Mapping[str, X] | X``          KEY=VALUE, or a value without a key; a single one is passed unchanged, and else has
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
is its help, without ``False:`` at its beginning. Parameters that are keys of an option in
`curation.core.option_names` share it: ``--on-error boxes=drop --on-error stray=drop``. ``**named`` is for Python alone.
Help states a default, and that an option may be repeated, where the docstring does not; two values of another option
are refused. Every value is converted and checked, and every record of options made, before any function runs.
"""  # noqa: D214, D215  (the example holds a docstring)

from __future__ import annotations

import argparse
import dataclasses
import inspect
import os
import re
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args, get_origin

from curation.cli.option_names import ABOUT, refuse_retired
from curation.cli.outputs import Output
from curation.core.arguments import UnfitError, alternatives, annotations_of, fit, kind_in_words
from curation.core.arguments import pairs as pairs
from curation.core.errors import UsageError
from curation.core.option_names import OptionName, name_of

_WORDS = (Path, str, int, float, bool)
_METAVARS: Mapping[Any, str] = {Path: "FILE", int: "N", float: "X"}
_EMPTY = inspect.Parameter.empty
_BARE = object()
_INPUTS = ("MANIFEST", "FILE")
"""Placeholders in the help for a text that may be the path of an input."""
_KEY = re.compile(r"[\w.@-]+")


@dataclass(frozen=True, slots=True)
class Option:
    """A parameter of a function as an option; parameters with keys share an option."""

    parameter: str
    called: OptionName
    kind: Literal["flag", "one", "many", "pairs"]
    hint: Any
    word: Any
    default: Any
    positional: bool
    metavar: str
    choices: tuple[str, ...]
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
        """Return the option as the user types it."""
        return f"--{'no-' * (self.default is True)}{self.called.option}"

    @property
    def title(self) -> str:
        """Return the name of the option in messages."""
        return self.dest.upper() if self.positional else f"{self.flag} {self.key}".rstrip()

    @property
    def required(self) -> bool:
        """Return whether the option is required."""
        return self.default is _EMPTY and self.kind != "flag"

    @property
    def value_text(self) -> str:
        """Return the placeholder for the value of a key in the help."""
        return "|".join(self.choices) or self.metavar.replace("[", "").replace("]", "").rpartition("=")[2]

    @property
    def text(self) -> str:
        """Return the help text, with the default and the word *repeatable* unless the text states them."""
        if self.kind in ("many", "pairs"):
            is_stated = self.positional or "repeatable" in self.help or "once for" in self.help
            return self.help + ("" if is_stated else " (repeatable)")
        value = self.default if self.kind == "one" else self.key and self.choices[self.default]
        is_stated = value in (_EMPTY, None, False, "", ()) or "default" in self.help or f"({value}" in self.help
        return self.help + ("" if is_stated else f" (default: {value})")

    def after_key(self, text: str) -> str | None:
        """Return the value in ``KEY=VALUE`` or ``KEY:NAME=VALUE``, or None if the text names another key."""
        key, equals, value = text.partition("=")
        if key == self.key:
            return value if equals else None
        key, colon, name = key.partition(":")
        return f"{name}={value}" if key == self.key and colon and equals and self.kind == "pairs" else None


def add_arguments(parser: argparse.ArgumentParser, function: Callable[..., Any]) -> None:
    """Declare the parameters of a function as arguments and options, and ``--json``."""
    groups: dict[str, dict[str, Option]] = {}
    for option in options_of(function):
        members = groups.setdefault(option.dest, {})
        first = members.setdefault(option.key, option)
        members[option.key] = first if first.help else dataclasses.replace(first, help=option.help)
    members_of = {dest: tuple(members.values()) for dest, members in groups.items()}
    parser.set_defaults(command=function, groups=members_of, prog=parser.prog)
    for options in members_of.values():
        _declare(parser, options)
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    words = [option.word for options in members_of.values() for option in options]
    if any(isinstance(word, Output) and word.replaces for word in words):
        text = "replace files that exist; never an input of the command, a file of a manifest, or a whole folder"
        parser.add_argument("--force", action="store_true", help=text)


def _declare(parser: argparse.ArgumentParser, members: Sequence[Option]) -> None:
    """Declare an option; of several parameters that share it, all but one have a key."""
    main = next((option for option in members if not option.key), None)
    first, keyed = main or members[0], [option for option in members if option.key]
    names: tuple[str, ...] = (first.dest,) if first.positional else (first.flag,)
    if len(first.dest) == 1 and not first.positional:
        names = (f"-{first.dest}", first.flag)
    head = main.text if main else ABOUT.get(first.called.option, "")
    head += " (repeatable)" if keyed and not re.search("repeatable|once for", head) else ""
    lines = [f"{option.key}={option.value_text}: {option.text}" for option in keyed]
    text = "\n".join([head, *lines]).replace("%", "%%")
    if first.kind == "flag" and not keyed:
        action = "store_false" if first.default is True else "store_true"
        parser.add_argument(*names, action=action, dest=first.dest, help=text)
        return
    settings: dict[str, Any] = {"help": text}
    metavar = first.metavar if main else "KEY=VALUE"
    if first.positional:
        several = first.kind in ("many", "pairs")
        nargs = ("+" if first.required else "*") if several else None if first.required else "?"
        settings |= {"nargs": nargs, "default": [] if several else None}
    else:
        required = main is not None and main.required
        settings |= {"action": "append", "dest": first.dest, "default": [], "required": required}
    if metavar.startswith("[[") and metavar.endswith("]"):
        settings |= {"nargs": "?", "const": ""}
        metavar = metavar[1:-1]
    argument = parser.add_argument(*names, metavar=metavar or None, **settings)
    # For help alone: words are checked when they are converted.
    words = [f"{option.key}={word}" for option in keyed for word in option.choices]
    if main is None:
        argument.choices = words if all(option.choices for option in keyed) else None
    elif keyed and main.choices:
        argument.metavar = "|".join(main.choices)
    else:
        argument.choices = main.choices or None


def option_files(options: argparse.Namespace) -> tuple[list[Path], list[tuple[Output, Path]]]:
    """Return the inputs and the outputs that a command line names, by the types of its options."""
    inputs: list[Path] = []
    outputs: list[tuple[Output, Path]] = []
    for dest, members in options.groups.items():
        words = getattr(options, dest)
        texts = words if isinstance(words, list) else [words] if isinstance(words, str) else []
        if isinstance(output := members[0].word, Output):
            outputs += [(output, output(text)) for text in texts]
        elif any(_takes_paths(member.hint) or member.metavar in _INPUTS for member in members):
            inputs += [Path(piece) for text in texts for piece in _values_in(text) if piece and "\0" not in piece]
    return inputs, outputs


def _takes_paths(hint: Any) -> bool:
    return hint in (Path, os.PathLike) or get_origin(hint) is os.PathLike or any(map(_takes_paths, get_args(hint)))


def _values_in(text: str) -> Iterator[str]:
    """Yield a text, and the text after each ``=`` of ``NAME=PATH``."""
    pieces = text.split("=")
    yield from ("=".join(pieces[start:]) for start in range(len(pieces)))


def call(function: Callable[..., Any], options: argparse.Namespace) -> Any:
    """Call a function with the arguments of the command line.

    Raises
    ------
    UsageError
        A value is not what its annotation says, a KEY=VALUE is none, or a name or option is given twice.
    """
    return _called(function, options, option_values(function, options))


def option_values(function: Callable[..., Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of a function, converted and checked, before it is called (see `call`)."""
    for members in options.groups.values():
        _require_keys(members, options)
    return _values(function, options)


def _values(function: Callable[..., Any], options: argparse.Namespace) -> dict[str, Any]:
    """Return arguments of a function: plain values, records, and results of functions that make an argument."""
    values: dict[str, Any] = {}
    for parameter, hint in _parameters(function):
        group = _group_in(hint)
        if group:
            inner = _values(group, options)
            values[parameter.name] = _called(group, options, inner) if isinstance(group, type) else inner
        elif option := _option(function, parameter, hint, ""):
            values[parameter.name] = value_of(option, options)
    return values


def _called(function: Callable[..., Any], options: argparse.Namespace, values: dict[str, Any]) -> Any:
    positional, by_keyword = [], {}
    for parameter, hint in _parameters(function):
        if parameter.name not in values:
            continue
        value, group = values[parameter.name], _group_in(hint)
        if group and not isinstance(group, type):
            value = _called(group, options, value)
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            by_keyword[parameter.name] = value
    return function(*positional, **by_keyword)


def summary_of(function: Callable[..., Any]) -> str:
    """Return the first line of a docstring without its full stop."""
    return (inspect.getdoc(function) or "").partition("\n")[0].removesuffix(".").replace("%", "%%")


def options_of(function: Callable[..., Any]) -> Iterator[Option]:
    """Yield the options of a function, including those of the records and functions in its annotations."""
    texts = parameter_texts(function)
    for parameter, hint in _parameters(function):
        if group := _group_in(hint):
            yield from options_of(group)
        elif option := _option(function, parameter, hint, texts.get(parameter.name, "")):
            yield option


def _parameters(function: Callable[..., Any]) -> Iterator[tuple[inspect.Parameter, Any]]:
    """Yield the parameters of a function that a command line can give, with their annotations."""
    hints = annotations_of(function, extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            yield parameter, hints[name]


def _group_in(hint: Any) -> Callable[..., Any] | None:
    """Return the object behind a group of options: a dataclass, or the function that makes the argument."""
    extras = get_args(hint)[1:] if get_origin(hint) is typing.Annotated else ()
    if made := next((extra for extra in extras if inspect.isfunction(extra)), None):
        return made
    kinds = [kind for kind in alternatives(hint) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 and isinstance(kinds[0], type) and dataclasses.is_dataclass(kinds[0]) else None


def _option(function: Callable[..., Any], parameter: inspect.Parameter, hint: Any, text: str) -> Option | None:
    """Return the option of a parameter; None if only Python callers can set it."""
    extras: list[Any] = []
    kind: Literal["flag", "one", "many", "pairs"] = "one"
    inner = _plain(hint, extras)
    if get_origin(inner) in (tuple, list, Sequence, Collection):
        kind, inner = "many", _plain(get_args(inner)[0], extras)
    elif get_origin(inner) is Mapping:
        kind, inner = "pairs", _plain(get_args(inner)[1], extras)
    word = next((extra for extra in extras if isinstance(extra, type | Output)), inner)
    choices = get_args(inner) if get_origin(inner) is Literal else ()
    metavar, *more = [extra for extra in extras if isinstance(extra, str)] or [""]
    flag, _, metavar = metavar.partition(" ") if metavar.startswith("--") else ("", "", metavar)
    positional = parameter.kind is not inspect.Parameter.KEYWORD_ONLY and not flag
    name = flag[2:].replace("-", "_") or parameter.name.rstrip("_")
    called = OptionName(name) if positional else name_of(function.__name__, name)
    if called is None:
        return None
    if not isinstance(word, Output) and not choices and word not in _WORDS:
        raise TypeError(f"{function.__qualname__}: no word of a command line is a {hint} ({parameter.name})")
    if word is bool and kind == "one":
        kind, choices = "flag", called.words
    if not metavar and not choices:
        usual = "FILE" if isinstance(word, Output) else _METAVARS.get(word, called.option.replace("-", "_").upper())
        metavar = usual if kind != "pairs" else "NAME=PATH" if word is Path else "NAME=VALUE"
    return Option(
        parameter=parameter.name,
        called=called,
        kind=kind,
        hint=hint,
        word=str if get_origin(inner) is Literal else word,
        default=parameter.default,
        positional=positional,
        metavar=metavar,
        choices=choices,
        help="; ".join(filter(None, (*more, text.removeprefix("False: ")))),
        bare=_BARE in extras,
    )


def _plain(hint: Any, extras: list[Any]) -> Any:
    """Return a type without annotations and alternatives, and collect the annotations."""
    if get_origin(hint) is typing.Annotated:
        inner, *annotations = get_args(hint)
        extras += annotations
        return _plain(inner, extras)
    members = [member for member in alternatives(hint) if member is not type(None)]
    usable = [member for member in members if get_origin(member) is not None or member in _WORDS]
    keyed = [member for member in usable if get_origin(member) is Mapping]
    extras += [_BARE] if keyed and len(usable) > 1 else []
    chosen = (keyed or usable or members)[0]
    return chosen if chosen is hint else _plain(chosen, extras)


def value_of(option: Option, options: argparse.Namespace) -> Any:
    """Return the value of a parameter, converted from the words of a command line."""
    words, prog = getattr(options, option.dest), options.prog
    if isinstance(words, bool):
        return words
    texts: list[Any] = words if isinstance(words, list) else [] if words is None else [words]
    if option.key:
        texts = [rest for text in texts if (rest := option.after_key(text)) is not None]
    else:
        keyed = [member for member in options.groups[option.dest] if member.key]
        texts = [text for text in texts if all(member.after_key(text) is None for member in keyed)]
    if not texts:
        if option.required and option.kind != "many":
            refuse_value(prog, f"{option.title} is missing", expected=option.help or option.value_text)
        return {"many": (), "pairs": {}, "flag": option.default is True}.get(option.kind, option.default)
    value: Any = tuple(_read(option, text) for text in texts)
    if option.kind in ("one", "flag"):
        if len(texts) > 1:
            rest = ", ".join(map(str, texts[1:]))
            refuse_value(prog, f"{option.title} is given twice", expected="one value", value=rest)
        if option.choices and texts[0] not in option.choices:
            _unfit(option, prog, texts[0])
        if option.kind == "flag":
            return bool(texts[0] == option.choices[1])
        value = value[0]
    elif option.kind == "pairs":
        value = {key: _read(option, text) for key, text in _by_key(option, texts).items()}
        value = value[""] if [*value] == [""] else value
    try:
        return fit(value, option.hint)
    except UnfitError:
        several = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else [value]
        _unfit(option, prog, ", ".join(map(str, several)))


def _read(option: Option, text: Any) -> Any:
    """Return the number or the output that a text denotes; a text that is not a number is returned unchanged."""
    try:
        return option.word(text) if option.word in (int, float) or isinstance(option.word, Output) else text
    except ValueError:
        return text


def _by_key(option: Option, texts: Sequence[str]) -> dict[str, str]:
    """Return KEY=VALUE texts by key (see `pairs`); where keys may be left out, a value without one has the key ``""``.

    The text before ``=`` is then a key if it is a possible key and the text is not an existing path. If the option is
    ``[NAME=]FILE``, each of several values without a key has the stem of its file.
    """
    if not option.bare:
        # A list is named by its file and the value of a column: meta/split=train.
        return pairs(texts, option.flag, in_keys=option.metavar.startswith("LIST="))
    keys = (text.partition("=")[0] for text in texts if "=" in text and not Path(text).exists())
    known = {key for key in keys if _KEY.fullmatch(key)}
    bare = [text for text in texts if "=" not in text or text.partition("=")[0] not in known]
    is_named = len(bare) > 1 and option.metavar.startswith("[NAME=]")
    name_of_path = attrgetter("stem" if "FILE" in option.metavar else "name")
    bare_key = (lambda text: name_of_path(Path(text))) if is_named else ""
    names = re.match(r"\[((?:\w+\|)+\w+)", option.metavar)
    return pairs(texts, option.flag, bare=bare_key, known=known, names=names[1].split("|") if names else ())


def _unfit(option: Option, prog: str, text: str) -> NoReturn:
    expected = ", ".join(option.choices) or (kind_in_words(option.hint) if text else option.value_text)
    refuse_value(prog, f"{option.title} cannot use this value", expected=expected, value=repr(text))


def refuse_value(prog: str, message: str, *, expected: str, value: str | None = None) -> NoReturn:
    """Raise a refusal of the value of an option."""
    raise UsageError(message, where=prog, expected=expected[:400], found=value and value[:200], hint=f"{prog} --help")


def _require_keys(members: Sequence[Option], options: argparse.Namespace) -> None:
    """Refuse a text with an unknown key, for an option that has only keys, and a key without a value."""
    keyed, title = [option for option in members if option.key], members[0].flag
    for text in getattr(options, members[0].dest) or () if keyed else ():
        refuse_retired(f"{members[0].called.option} {str(text).partition('=')[0]}", options.prog)
        values = [(option, value) for option in keyed if (value := option.after_key(str(text))) is not None]
        if not values and len(keyed) == len(members):
            expected = f"KEY=VALUE with a key of {', '.join(option.key for option in keyed)}"
            refuse_value(options.prog, f"{title} cannot use this value", expected=expected, value=repr(text))
        for option, value in values:
            if not value:
                _unfit(option, options.prog, value)


def parameter_texts(function: Callable[..., Any]) -> dict[str, str]:
    """Return the docstring's text on each parameter, as one line; a dataclass inherits the texts of its bases."""
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
