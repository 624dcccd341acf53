"""Declarations in the TOML file of a benchmark: facts of its paper, parameters, and the `Benchmark` itself."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import msgspec

from curation.benchmarks.rules.benchmark_file import SourceTable
from curation.core.errors import CurationError, ProtocolError, UsageError
from curation.sources.source_specs import SourceSlot as SourceSlot

if TYPE_CHECKING:
    from curation.core.tables import Table
    from curation.manifest.header import Header, Paper
    from curation.manifest.manifest import Manifest
    from curation.publishing.exporting import Format
    from curation.publishing.member import Member, PlannedTable
    from curation.sources.source import Source

Kind = TypeVar("Kind")
Record = TypeVar("Record", bound=msgspec.Struct)
MOST_IMAGES = 1_000_000
"""Largest number of images that a parameter may request for a list."""


@cache
def benchmark_facts(room: str) -> dict[str, Any]:
    """Return the facts of a benchmark: ``NAME.toml`` beside its module, or ``facts.toml`` in its package.

    Parameters
    ----------
    room : str
        ``__name__`` of the module, or ``__package__`` in the modules of a package.

    Returns
    -------
    dict
        Cached: callers must not change it.
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
        return msgspec.convert(benchmark_facts(room)[key], kind)
    except msgspec.ValidationError as error:
        error.add_note(f"in [{key}] of the file of {room}")
        raise


def declared_slots(room: str) -> tuple[SourceSlot, ...]:
    """Return the sources that the file of a benchmark declares, in its tables ``[sources.NAME]`` and those of cases."""
    facts, listed = benchmark_facts(room), dict[str, Any]()
    for table in (facts, *facts.get("cases", {}).values()):
        # A case may change keys of a source that the file declares.
        listed |= {name: each for name, each in table.get("sources", {}).items() if name not in listed}
    tables = msgspec.convert(listed, dict[str, SourceTable])
    return tuple(
        SourceSlot(name, table.dataset, table.part, table.required, table.meaning, table.usual_part)
        for name, table in tables.items()
    )


def within(room: str, name: str) -> str:
    """Return ``MODULE:NAME`` for a ``NAME``, or a ``MODULE:NAME`` in a package, of a benchmark's file."""
    return f"{room}.{name}" if ":" in name else f"{room}:{name}"


class Parameter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``--set KEY=VALUE``, as a table ``[[benchmark.parameters]]`` declares it; without a rule, any text is valid.

    Attributes
    ----------
    default, meaning : str
        `declared_parameters` says what the default is where a table states none.
    choices : tuple of str
        Valid texts.
    least, most : int
        Range of valid whole numbers, if `most` is given.
    pattern, expected : str
        Pattern of valid texts, and its description.
    longest : int, optional
        Maximum number of characters of printable texts.
    reader : str
        ``MODULE:NAME`` of the function that parses the text.
    later : bool
        Whether manifests were published before the parameter existed: manifests then omit its default.
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
        """Raise for a rule without effect, or a default that is not valid."""
        rules = (self.choices, self.pattern, self.longest is not None, self.most is not None, self.reader)
        if sum(map(bool, rules)) > 1 or (self.least and self.most is None) or bool(self.pattern) != bool(self.expected):
            raise ValueError(f"{self.name}: one of choices, longest, reader, pattern with expected, most with least")
        if not self.reader:
            self.read(self.default)

    def read(self, text: str) -> Any:
        """Return the value of a text; raise `ProtocolError` for an invalid one."""
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
            message = (
                f"The parameter {self.name} has one value"
                if len(self.choices) == 1 or self.most == self.least
                else f"Invalid value of {self.name}"
            )
            raise ProtocolError(message, where=f"--set {self.name}", expected=expected, found=repr(text[:40]))
        return text if self.most is None else int(text)


def declared_parameters(room: str) -> tuple[Parameter, ...]:
    """Return the parameters that the file of a benchmark declares.

    A parameter without a default has that of its name in ``[parameters]``, else the first of its choices.
    """
    facts = benchmark_facts(room)
    of_rule = {name: ",".join(value) if isinstance(value, list) else str(value)
               for name, value in facts.get("parameters", {}).items()}  # fmt: skip
    tables = [
        {"default": of_rule.get(table.get("name"), next(iter(table.get("choices", ())), "")), **table}
        for table in facts["benchmark"].get("parameters", ())
    ]
    return tuple(
        msgspec.structs.replace(param, reader=within(room, param.reader)) if param.reader else param
        for param in msgspec.convert(tables, tuple[Parameter, ...])
    )


def stated_parameters(parameters: Mapping[str, Any], declared: Sequence[Parameter]) -> dict[str, Any]:
    """Return the parameters that a manifest records: all except `Parameter.later` ones at their default."""
    silent = {param.name for param in declared if param.later and parameters.get(param.name) == param.default}
    return {name: value for name, value in parameters.items() if name not in silent}


class Deferred(Generic[Kind]):
    """A field that may be a name ``MODULE:NAME`` or a `functools.partial`, which is resolved on access.

    A command that needs only the name and paper of a benchmark does not import its rule.
    """

    def __init__(self, default: Kind) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, benchmark: None, owner: type) -> Deferred[Kind]: ...
    @overload
    def __get__(self, benchmark: Benchmark, owner: type) -> Kind: ...
    def __get__(self, benchmark: Benchmark | None, owner: type) -> Deferred[Kind] | Kind:
        if benchmark is None:
            return self
        value: Kind | str | partial[Kind] = vars(benchmark)[self._name]
        if isinstance(value, partial):
            return value()
        if not isinstance(value, str):
            return value
        try:
            resolved: Kind = resolve_name(value)
        except (ImportError, AttributeError, ValueError) as error:
            raise UsageError(
                "The package that offers this benchmark cannot be used",
                where=f"{benchmark.name}: {self._name}",
                expected="MODULE:NAME that can be imported",
                found=f"{value}: {error}"[:300],
            ) from error
        return resolved

    def __set__(self, benchmark: Benchmark, value: Deferred[Kind] | Kind | str | partial[Kind]) -> None:
        # The dataclass passes the descriptor itself for a field that is left out.
        vars(benchmark)[self._name] = self._default if isinstance(value, Deferred) else value


@dataclass(frozen=True)
class Benchmark:
    """A paper, its rule and the inputs of the rule, declared by a TOML file (`curation.benchmarks.registry`).

    Attributes
    ----------
    rule : str
        The rule that it follows: one of `curation.benchmarks.rules`, or ``""`` for another rule.
    parts : tuple of (str, str)
        Name and meaning of each list that it makes; capitals in a name stand for a number or word.
    page : str
        Its page of the documentation.
    disjoint : tuple of (str, str)
        Pairs of sides that share no image: roles or names of parts, joined by ``+``. Empty for the default roles
        (`curation.manifest.disjoint.DISJOINT`).
    shared : mapping of str to mapping of str to int
        Exceptions of published lists: by name of the manifest, the validation images in each training part.
    build : callable or None
        ``build(sources, parameters) -> Manifest``: pure; `sources` by slot name, `parameters` by name, all present.
        None if nothing is made from raw data, and published lists are completed instead.
    declare : callable or None
        ``declare(sources, parameters) -> Manifest``: the paper's version as a header-only manifest, from the available
        sources.
    choose_slots : callable or None
        ``choose_slots(parameters)``: the sources that these parameters need, if they are not always `slots`.
    recorded_decisions : callable or None
        ``recorded_decisions(path, allow_conflicts)``: a file of ``--decisions`` in the form of the parameter
        ``decisions``, and descriptions of its contradictions. None if the benchmark replays no decisions.
    recipes : mapping of str to callable
        Drafts of the lists that the authors published, by the name of the manifest that ``curation import`` makes.
    formats : tuple of Format
        Layouts of the authors' files.
    tables : callable or None
        ``tables(member)``: a manifest as the tables of the dataset that the authors published.
    class_table : callable or None
        ``class_table(header)``: the classes in the form of the paper's table; None for a manifest with other classes.
    import_published : callable or None
        ``import_published(manifest, folder)``: such tables as a manifest, compared with one of this benchmark.
    """

    name: str
    paper: Paper | None
    summary: str
    slots: Deferred[tuple[SourceSlot, ...]] = Deferred(())
    parameters: tuple[Parameter, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    page: str = ""
    rule: str = ""
    disjoint: tuple[tuple[str, str], ...] = ()
    shared: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    build: Deferred[Callable[[Mapping[str, Source], Mapping[str, Any]], Manifest] | None] = Deferred(None)
    declare: Deferred[Callable[[Mapping[str, Source], Mapping[str, Any]], Manifest] | None] = Deferred(None)
    choose_slots: Deferred[Callable[[Mapping[str, Any]], tuple[SourceSlot, ...]] | None] = Deferred(None)
    recorded_decisions: Deferred[Callable[[Path, bool], tuple[str, tuple[str, ...]]] | None] = Deferred(None)
    recipes: Deferred[Mapping[str, Callable[[], Header]]] = Deferred({})
    formats: Deferred[tuple[Format, ...]] = Deferred(())
    tables: Deferred[Callable[[Member], list[PlannedTable]] | None] = Deferred(None)
    class_table: Deferred[Callable[[Header], Table | None] | None] = Deferred(None)
    import_published: Deferred[Callable[[Manifest, Path], Manifest] | None] = Deferred(None)

    def slots_for(self, parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
        """Return the sources that a build with these parameters reads."""
        return self.slots if self.choose_slots is None else self.choose_slots(parameters)

    def source_conditions(self) -> dict[str, tuple[str, bool]]:
        """Return ``PARAMETER=VALUES`` for each source that a build reads only under these values of a parameter.

        The second item is whether such a build requires the source.
        """
        for parameter in self.parameters if self.choose_slots else ():
            slots: dict[str, tuple[SourceSlot, ...]] = {}
            for choice in parameter.choices:
                # Some values need those of other parameters.
                with suppress(CurationError, LookupError):
                    values = {each.name: each.read(each.default) for each in self.parameters}
                    slots[choice] = self.slots_for(values | {parameter.name: parameter.read(choice)})
            uses: dict[str, dict[str, bool]] = {}
            for choice, chosen in slots.items():
                for slot in chosen:
                    uses.setdefault(slot.name, {})[choice] = slot.required
            if any(len(choices) < len(slots) for choices in uses.values()):
                return {
                    name: (f"{parameter.name}={','.join(choices)}", all(choices.values()))
                    for name, choices in uses.items()
                    if len(choices) < len(slots)
                }
        return {}

    def as_data(self) -> dict[str, Any]:
        """Return paper, sources, parameters and parts as plain data."""
        paper, slots, conditions = self.paper, self.slots, self.source_conditions()
        return {
            "name": self.name,
            "summary": self.summary,
            "rule": self.rule,
            "paper": paper and {name: getattr(paper, name) for name in ("title", "authors", "year", "venue", "bibtex")},
            "sources": [
                {name: getattr(slot, name) for name in ("name", "dataset", "part", "required", "meaning")}
                | dict(zip(("only_with", "required"), conditions.get(slot.name, ("", slot.required)), strict=True))
                for slot in slots
            ],
            # A manifest also records parameters with a single value, which users cannot choose.
            "parameters": [
                {name: getattr(param, name) for name in ("name", "default", "meaning")}
                for param in self.parameters
                if len(param.choices) != 1 and param.most != param.least
            ],
            "parts": [{"name": name, "meaning": meaning} for name, meaning in self.parts],
            "page": self.page,
        }

    def made(self, manifest: Mapping[str, Any]) -> bool:
        """Return whether a listed manifest follows this rule or holds the lists that the authors published."""
        return bool(manifest["protocol"] == self.name or manifest["name"].startswith(f"{self.name}/"))

    def make(self, sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
        """Return the manifest that the rule makes of these sources.

        Raises
        ------
        UsageError
            The benchmark consists of published lists and has no rule.
        """
        if self.build is None:
            raise UsageError(
                f"Benchmark {self.name} consists of published lists: nothing is built",
                expected=f"curation import {next(iter(self.recipes), 'NAME')} --lists DIR --out DIR",
            )
        return self.build(sources, parameters)
