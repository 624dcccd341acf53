"""`Benchmark`: what a room declares of its paper, its rule and its evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curation.benchmarks.parameters import Parameter
from curation.errors import UsageError
from curation.manifest.header import Header, Paper
from curation.manifest.manifest import Manifest
from curation.sources.slots import SourceSlot as SourceSlot
from curation.sources.source import Source


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A paper with its rule and what the rule needs; declared as ``BENCHMARK`` in the package of its room.

    Another package offers one by an entry point of the group ``curation.benchmarks``, under the benchmark's name. Its
    evaluation, where it has one, is in the modules ``evaluation`` and ``report`` of the same package
    (`curation.evaluation.protocols`).

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
    formats : str
        ``MODULE:NAME`` of the layouts of the authors' own files, a tuple of `curation.publishing.exporting.Format`;
        loaded only when they are used. ``""`` for none.
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
    formats: str = ""

    def slots_for(self, parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
        """Return the sources that a build with these parameters reads."""
        return self.slots if self.choose_slots is None else self.choose_slots(parameters)

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
                expected=f"curation import --header {next(iter(self.recipes), 'NAME')} FOLDER",
            )
        return self.build(sources, parameters)
