"""`Benchmark`: what a room declares of its paper, its rule and its evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from curation.core.errors import UsageError
from curation.sources.source_specs import SourceSlot as SourceSlot

if TYPE_CHECKING:
    from pathlib import Path

    from curation.benchmarks.parameters import Parameter
    from curation.manifest.header import Header, Paper
    from curation.manifest.manifest import Manifest
    from curation.publishing.exporting import Format
    from curation.sources.source import Source

Kind = TypeVar("Kind")


class Deferred(Generic[Kind]):
    """A field that is given as itself, or as ``MODULE:NAME`` or a `functools.partial`, to be got when it is read.

    A command that asks a benchmark for its name and paper alone does not import its rule.
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
        given: Kind | str | partial[Kind] = vars(benchmark)[self._name]
        if isinstance(given, partial):
            return given()
        if not isinstance(given, str):
            return given
        try:
            found: Kind = resolve_name(given)
        except (ImportError, AttributeError, ValueError) as error:
            raise UsageError(
                "The package that offers this benchmark cannot be used",
                where=f"{benchmark.name}: {self._name}",
                expected="MODULE:NAME of what can be imported",
                found=f"{given}: {error}"[:300],
            ) from error
        return found

    def __set__(self, benchmark: Benchmark, given: Deferred[Kind] | Kind | str | partial[Kind]) -> None:
        # What the dataclass passes for a field that is left out is the descriptor itself.
        vars(benchmark)[self._name] = self._default if isinstance(given, Deferred) else given


@dataclass(frozen=True)
class Benchmark:
    """A paper with its rule and what the rule needs; as a file declares it, or a package.

    Another package offers one by an entry point of the group ``curation.benchmarks``, under the benchmark's name. Its
    evaluation, where it has one, is in the module ``evaluation`` of the same package
    (`curation.benchmarks.registry`). What is `Deferred` may be given as ``MODULE:NAME``, imported when it is used.

    Attributes
    ----------
    parts : tuple of (str, str)
        Names of the lists that it makes, words in capitals standing for a number or word, each with its meaning.
    page : str
        Where the documentation tells of it.
    disjoint : tuple of (str, str)
        Sides that share no image: roles or names of parts, joined by ``+``. Empty for the roles of a user's data
        (`curation.manifest.disjoint.DISJOINT`).
    shared : mapping of str to mapping of str to int
        Exceptions of published lists: by name of the manifest, training parts and their images that are validated on.
    build : callable or None
        ``build(sources, parameters) -> Manifest``: pure; `sources` by slot name, `parameters` by name, all present.
        None where nothing is made from raw data, only published lists are completed.
    declare : callable or None
        ``declare(sources, parameters) -> Manifest``: the paper's own version as a header-only manifest, from the
        sources that are available.
    choose_slots : callable or None
        ``choose_slots(parameters)``: the sources that these parameters need, where they are not always `slots`.
    task_settings : callable or None
        ``task_settings(path)``: the parameters that a file of ``--tasks`` stands for, as texts by name. None where no
        task file is taken.
    recorded_decisions : callable or None
        ``recorded_decisions(path, allow_conflicts)``: a file of ``--decisions`` as the parameter ``decisions`` holds
        it, and what contradicts itself in it, in words. None where no decisions are replayed.
    recipes : mapping of str to callable
        Drafts of the lists that the authors published, by the name of the manifest that ``curation import`` makes.
    formats : tuple of Format
        Layouts of the authors' own files.
    """

    name: str
    paper: Paper
    summary: str
    slots: Deferred[tuple[SourceSlot, ...]] = Deferred(())
    parameters: Deferred[tuple[Parameter, ...]] = Deferred(())
    parts: tuple[tuple[str, str], ...] = ()
    page: str = ""
    disjoint: tuple[tuple[str, str], ...] = ()
    shared: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    build: Deferred[Callable[[Mapping[str, Source], Mapping[str, Any]], Manifest] | None] = Deferred(None)
    declare: Deferred[Callable[[Mapping[str, Source], Mapping[str, Any]], Manifest] | None] = Deferred(None)
    choose_slots: Deferred[Callable[[Mapping[str, Any]], tuple[SourceSlot, ...]] | None] = Deferred(None)
    task_settings: Deferred[Callable[[Path], dict[str, str]] | None] = Deferred(None)
    recorded_decisions: Deferred[Callable[[Path, bool], tuple[str, tuple[str, ...]]] | None] = Deferred(None)
    recipes: Deferred[Mapping[str, Callable[[], Header]]] = Deferred({})
    formats: Deferred[tuple[Format, ...]] = Deferred(())

    def slots_for(self, parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
        """Return the sources that a build with these parameters reads."""
        return self.slots if self.choose_slots is None else self.choose_slots(parameters)

    def as_data(self) -> dict[str, Any]:
        """Return paper, sources, parameters and parts as plain data."""
        paper, slots = self.paper, self.slots
        return {
            "name": self.name,
            "summary": self.summary,
            "paper": {name: getattr(paper, name) for name in ("title", "authors", "year", "venue", "bibtex")},
            "sources": [
                {name: getattr(slot, name) for name in ("name", "dataset", "part", "required", "meaning")}
                for slot in slots
            ],
            "parameters": [
                {name: getattr(param, name) for name in ("name", "default", "meaning")} for param in self.parameters
            ],
            "parts": [{"name": name, "meaning": meaning} for name, meaning in self.parts],
            "page": self.page,
        }

    def made(self, manifest: Mapping[str, Any]) -> bool:
        """Return whether a listed manifest is of this rule, or of the lists that the authors published."""
        return bool(manifest["protocol"] == self.name or manifest["name"].startswith(f"{self.name}/"))

    def make(self, sources: Mapping[str, Source], parameters: Mapping[str, Any]) -> Manifest:
        """Return the manifest that the rule makes of these sources.

        Raises
        ------
        UsageError
            There is no rule: the benchmark consists of published lists.
        """
        if self.build is None:
            raise UsageError(
                f"Benchmark {self.name} consists of published lists: nothing is built",
                expected=f"curation import {next(iter(self.recipes), 'NAME')} --lists DIR --out DIR",
            )
        return self.build(sources, parameters)
