"""Every benchmark by name: the rooms of this package, and those that other packages offer by an entry point."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, NamedTuple

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.declared import declared, names
from curation.errors import UsageError
from curation.manifest.header import Header

if TYPE_CHECKING:
    from curation.publishing.exporting import Format

GROUP = "curation.benchmarks"
"""The group of entry points under which another package offers a benchmark, named as the benchmark is."""
ROOMS = (
    "elephant", "owod", "opendet", "imagenet", "findmeifyoucan", "osod3", "ssb", "openood", "ninco", "imagenetood",
    "ovcoco", "rwd", "nuowodb",
)  # fmt: skip


class Registry(NamedTuple):
    """Benchmarks by name, and why those of other packages cannot be used."""

    benchmarks: Mapping[str, Benchmark]
    unusable: Mapping[str, str]


@cache
def registry() -> Registry:
    """Return every benchmark: this package's in the order of its rooms, then others by name."""
    own = [
        declared(room) if room in names() else import_module(f"curation.benchmarks.{room}").BENCHMARK for room in ROOMS
    ]
    found: dict[str, Benchmark] = {one.name: one for one in own}
    unusable: dict[str, str] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda one: (one.name, one.value)):
        try:
            found[entry.name] = _offered(entry, found)
        # Whatever a stranger's module raises while it is imported must not take the other benchmarks away.
        except Exception as error:
            unusable[entry.name] = f"{entry.value}: {error}"[:300]
    return Registry(found, unusable)


def _offered(entry: EntryPoint, found: Mapping[str, Benchmark]) -> Benchmark:
    offered = entry.load()
    if not isinstance(offered, Benchmark):
        raise TypeError(f"a Benchmark is expected, found {type(offered).__name__}")
    if offered.name != entry.name:
        raise ValueError(f"the benchmark is called {offered.name}, its entry point {entry.name}")
    if entry.name in found:
        raise ValueError("there is a benchmark of this name already")
    # What it defers is imported now: once in use, a wrong name would take the other benchmarks away.
    for field in fields(offered):
        getattr(offered, field.name)
    return offered


def benchmarks() -> Mapping[str, Benchmark]:
    """Return every benchmark that can be used, by name."""
    return registry().benchmarks


def find_benchmark(name: str) -> Benchmark:
    """Return the benchmark of this name; an unknown one is a `UsageError` with the nearest names."""
    known, unusable = registry()
    if name in known:
        return known[name]
    if name in unusable:
        raise UsageError(
            "The package that offers this benchmark cannot be used", where=name[:200], found=unusable[name]
        )
    near = difflib.get_close_matches(name, known, cutoff=0.5)
    raise UsageError(
        "There is no such benchmark",
        where=name[:200],
        expected=", ".join(known),
        hint=f"did you mean {near[0]}?" if near else "curation list",
    )


def recipes() -> Mapping[str, Callable[[], Header]]:
    """Return the drafts of all published lists, by the name of the manifest that they make."""
    return {name: draft for one in benchmarks().values() for name, draft in one.recipes.items()}


def find_recipe(name: str) -> Callable[[], Header]:
    """Return the recipe of this name; an unknown one is a `UsageError` with the nearest names."""
    known = recipes()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known)
    raise UsageError(
        "There is no such recipe for published lists",
        where=name[:200],
        expected=", ".join(known),
        hint=f"did you mean {near[0]}?" if near else None,
    )


def formats() -> Mapping[str, Format]:
    """Return every format that parts are written in, by name: those of detectors, then the authors' own layouts."""
    from curation.publishing.exporting import FORMATS

    found = dict(FORMATS)
    for one in benchmarks().values():
        found |= {form.name: form for form in one.formats}
    return found
