"""`Protocol`: the declaration that stands beside each paper's build function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from curation.benchmarks.parameters import Parameter
from curation.manifest.header import Paper
from curation.manifest.manifest import Manifest
from curation.sources.source import Source


@dataclass(frozen=True, slots=True)
class SourceSlot:
    """One raw dataset part that a protocol reads.

    Attributes
    ----------
    name : str
        As in ``--source NAME=PATH``.
    dataset, part : str
        What the reader is told: ``voc2007`` and ``test``. `part` may be ``""`` where the protocol takes several.
    required : bool
    meaning : str
        One line for ``curation list``.
    usual_part : str
        Where `part` is ``""``: the part taken from a dataset's root that offers several, ``""`` for none.
    """

    name: str
    dataset: str
    part: str
    required: bool
    meaning: str
    usual_part: str = ""


@dataclass(frozen=True, slots=True)
class Protocol:
    """A paper's rule with what it needs.

    Attributes
    ----------
    parts : tuple of (str, str)
        Names of the lists that it makes, words in capitals standing for a number or word, each with its meaning.
    page : str
        Where the documentation tells of it.
    build : callable
        ``build(sources, parameters) -> Manifest``: pure; `sources` by slot name, `parameters` by name, all present.
    declare : callable or None
        ``declare(sources, parameters) -> Manifest``: the paper's own version as a declared manifest, from the sources
        at hand.
    choose_slots : callable or None
        ``choose_slots(parameters)``: the sources that these parameters need, where they are not always `slots`.
    """

    name: str
    paper: Paper
    summary: str
    slots: tuple[SourceSlot, ...]
    parameters: tuple[Parameter, ...]
    parts: tuple[tuple[str, str], ...]
    page: str
    build: Callable[[Mapping[str, Source], Mapping[str, Any]], Manifest]
    declare: Callable[[Mapping[str, Source], Mapping[str, Any]], Manifest] | None = None
    choose_slots: Callable[[Mapping[str, Any]], tuple[SourceSlot, ...]] | None = None

    def slots_for(self, parameters: Mapping[str, Any]) -> tuple[SourceSlot, ...]:
        """Return the sources that a build with these parameters reads."""
        return self.slots if self.choose_slots is None else self.choose_slots(parameters)
