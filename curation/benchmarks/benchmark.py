"""`Benchmark`: what a room declares of its paper, its rule and its evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from curation.errors import UsageError
from curation.sources.source_specs import SourceSlot as SourceSlot

if TYPE_CHECKING:
    from pathlib import Path

    from curation.benchmarks.parameters import Parameter
    from curation.manifest.header import Header, Paper
    from curation.manifest.manifest import Manifest
    from curation.publishing.exporting import Format
    from curation.sources.source import Source

_TEXTS = ("name", "summary", "page")


@dataclass(frozen=True)
class Benchmark:
    """A paper with its rule and what the rule needs; as a file declares it, or a package.

    Another package offers one by an entry point of the group ``curation.benchmarks``, under the benchmark's name. Its
    evaluation, where it has one, is in the module ``evaluation`` of the same package
    (`curation.benchmarks.registry`). Whatever is code may be given as ``MODULE:NAME``, or as a `functools.partial` that
    makes it, and is got when it is read: a command that asks for name and paper alone does not import a rule.

    Attributes
    ----------
    parts : tuple of (str, str)
        Names of the lists that it makes, words in capitals standing for a number or word, each with its meaning.
    page : str
        Where the documentation tells of it.
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
    slots: tuple[SourceSlot, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    page: str = ""
    build: Callable[[Mapping[str, Source], Mapping[str, Any]], Manifest] | None = None
    declare: Callable[[Mapping[str, Source], Mapping[str, Any]], Manifest] | None = None
    choose_slots: Callable[[Mapping[str, Any]], tuple[SourceSlot, ...]] | None = None
    task_settings: Callable[[Path], dict[str, str]] | None = None
    recorded_decisions: Callable[[Path, bool], tuple[str, tuple[str, ...]]] | None = None
    recipes: Mapping[str, Callable[[], Header]] = field(default_factory=dict)
    formats: tuple[Format, ...] = ()

    def __getattribute__(self, field: str) -> Any:
        """Return a field, imported or made where it is given as a name or a partial."""
        given = object.__getattribute__(self, field)
        if not isinstance(given, str | partial) or field in _TEXTS or field.startswith("_"):
            return given
        try:
            return given() if isinstance(given, partial) else resolve_name(given)
        except (ImportError, AttributeError, ValueError) as error:
            raise UsageError(
                "The package that offers this benchmark cannot be used",
                where=f"{self.name}: {field}",
                expected="MODULE:NAME of what can be imported",
                found=f"{given}: {error}"[:300],
            ) from error

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
                {name: getattr(one, name) for name in ("name", "default", "meaning")} for one in self.parameters
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
