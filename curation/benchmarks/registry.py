"""Every benchmark by name: those of this package, and those that other packages offer by an entry point.

A benchmark is declared by a file ``NAME.toml``, with its rule in ``NAME.py`` or the package ``NAME``, if it has one.
``[benchmark]`` says what a `Benchmark` needs; its ``code`` says where the rule has the other fields (``NAME``, or
``MODULE:NAME`` in a package). ``[evaluation]`` names its ``engine`` and declares variants; those of open-world
detection, the engine by default, are changes of the rules that most code shares. With the engine ``own`` the
benchmark's module has a function ``evaluate``, whose signature declares the options, and a
`curation.evaluation.result.Report` named ``REPORT``; a package has them in its module ``evaluation``.
Another package offers a `Benchmark` under the entry point ``curation.benchmarks`` as ``PACKAGE:BENCHMARK``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, partial
from importlib import import_module, util
from importlib.metadata import EntryPoint
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.facts import fact, facts_of, within
from curation.benchmarks.parameters import Parameter, declared_parameters
from curation.core.arguments import checked
from curation.core.entry_points import constants_of, entry_points, loading, package_name
from curation.core.errors import UsageError
from curation.manifest.header import Header, Paper
from curation.sources.source_specs import SourceSlot

if TYPE_CHECKING:
    from curation.evaluation.measures import Measure
    from curation.evaluation.result import Report, Result
    from curation.evaluation.variants import Rules
    from curation.publishing.exporting import Format

GROUP = "curation.benchmarks"
"""The group of entry points under which another package offers a benchmark, named as the benchmark is."""
PLAIN_GROUP = "curation.plain_evaluations"
"""The group of entry points of evaluations of plain detection."""
_ENGINES = {"classification": "curation.evaluation.classification"}
"""Engines by name; a file may name a module instead."""


@cache
def _plain() -> dict[str, EntryPoint]:
    """Return what evaluates plain detection, which has no lists: modules by name."""
    return {point.name: point for point in entry_points(PLAIN_GROUP)}


@cache
def _rooms() -> dict[str, str]:
    """Return the module of each benchmark that a file ``NAME.toml`` declares.

    Files of this package, and those that an entry point offers as ``PACKAGE.NAME``, without an object. They are in the
    order of the key ``order`` in their files; files without one follow by name.
    """
    offered = {one.name: one.value for one in entry_points(GROUP) if not one.attr and _declares(one.value)}
    own = {f.name.removesuffix(".toml") for f in files(__package__).iterdir() if f.name.endswith(".toml")}
    rooms = offered | {name: f"{__package__}.{name}" for name in own}
    return dict(sorted(rooms.items(), key=lambda pair: (_order(pair[1]), pair[0])))


def _order(room: str) -> float:
    order = facts_of(room)["benchmark"].get("order")
    return order if isinstance(order, int) else math.inf


class Registry(NamedTuple):
    """Benchmarks by name, and why those of other packages cannot be used."""

    benchmarks: Mapping[str, Benchmark]
    unusable: Mapping[str, str]


class _Stated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    summary: str
    page: str
    parts: tuple[tuple[str, str], ...]
    code: dict[str, str] = {}
    name: str = ""
    order: int = 0
    slots: tuple[SourceSlot, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    disjoint: tuple[tuple[str, str], ...] = ()
    shared: dict[str, dict[str, int]] = {}


class _Evaluation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    variants: dict[str, dict[str, Any]]
    algorithm: int = 1
    notes: tuple[str, ...] = ()
    source: str = ""
    at_the_end: dict[str, str] = {}


class Evaluation(NamedTuple):
    """What scores a benchmark, and how its results show themselves."""

    evaluate: Callable[..., Result]
    REPORT: Report


@cache
def registry() -> Registry:
    """Return every benchmark: this package's in their order, then others by name."""
    found: dict[str, Benchmark] = {}
    unusable = {one.name: f"{one.value}: no file declares it" for one in entry_points(GROUP)
                if not one.attr and one.name not in _rooms()}  # fmt: skip
    for name, room in _rooms().items():
        try:
            benchmark = declared(name)
            found[benchmark.name] = benchmark
        except Exception as error:
            if room == f"{__package__}.{name}":
                raise
            unusable[name] = f"{room}: {error}"[:300]
    for entry in _objects():
        try:
            found[entry.name] = _offered(entry, found)
        # Whatever a stranger's module raises while it is imported must not take the other benchmarks away.
        except Exception as error:
            unusable[entry.name] = f"{entry.value}: {error}"[:300]
    return Registry(found, unusable)


def _declares(room: str) -> bool:
    """Return whether a file declares a benchmark there; a package that is not there declares none."""
    try:
        return "benchmark" in facts_of(room)
    # Whatever another package raises while it is imported must not take the other benchmarks away.
    except Exception:
        return False


def _objects() -> list[EntryPoint]:
    """Return the entry points that offer a benchmark as an object."""
    return [one for one in entry_points(GROUP) if one.attr]


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


def find_benchmark(name: str, *others: str) -> Benchmark:
    """Return the benchmark of this name; an unknown one is a `UsageError` with the nearest of it and `others`."""
    known, unusable = registry()
    if name in unusable:
        raise UsageError(
            "The package that offers this benchmark cannot be used", where=name[:200], found=unusable[name]
        )
    return known[name] if name in known else _refuse("benchmark", name, [*known, *others], "curation list")


def recipes() -> Mapping[str, Callable[[], Header]]:
    """Return the drafts of all published lists, by the name of the manifest that they make."""
    return {name: draft for benchmark in benchmarks().values() for name, draft in benchmark.recipes.items()}


def find_recipe(name: str) -> Callable[[], Header]:
    """Return the recipe of this name; an unknown one is a `UsageError` with the nearest names."""
    known = recipes()
    return known[name] if name in known else _refuse("recipe for published lists", name, known)


def formats() -> Mapping[str, Format]:
    """Return every format that parts are written in, by name: those of detectors, then the authors' own layouts."""
    from curation.publishing.exporting import FORMATS

    found = dict(FORMATS)
    for benchmark in benchmarks().values():
        found |= {form.name: form for form in benchmark.formats}
    return found


@cache
def names(table: str = "benchmark") -> tuple[str, ...]:
    """Return the benchmarks whose file has a table of this name, sorted."""
    return tuple(name for name in sorted(_rooms()) if table in facts_of(_module(name)))


def declared(name: str) -> Benchmark:
    """Return a benchmark as its file declares it; its rule is imported when it is used."""
    module = _module(name)
    facts = facts_of(module)
    stated = fact(module, "benchmark", _Stated)
    code: dict[str, Any] = {"slots": stated.slots, "parameters": declared_parameters(module)}
    code |= {field: within(module, name) for field, name in stated.code.items()}
    if "recipes" not in code and "published" in facts:
        code["recipes"] = partial(_recipes, name)
    paper = facts["paper"] if "paper" in facts else next(iter(facts["papers"].values()))
    return Benchmark(
        name=stated.name or name,
        paper=msgspec.convert(paper, Paper),
        summary=stated.summary,
        parts=stated.parts,
        page=stated.page,
        disjoint=stated.disjoint,
        shared=stated.shared,
        **code,
    )


def _recipes(name: str) -> Mapping[str, Callable[[], Header]]:
    """Return the recipes of a benchmark that has no code."""
    from curation.benchmarks.published import drafts

    return drafts(_module(name), aliases=facts_of(_module(name)).get("aliases"))


def variants_of(name: str) -> tuple[Rules, ...]:
    """Return the variants that a file declares, the sound one first."""
    from curation.evaluation.open_world import CLEAN, TEXT

    stated = msgspec.convert(facts_of(_module(name))["evaluation"], _Evaluation)
    return (
        CLEAN,
        *(
            replace(TEXT, name=key, **changes | {"meaning": changes["meaning"].format(text=TEXT.meaning)})
            for key, changes in stated.variants.items()
        ),
    )


@cache
def evaluation(name: str) -> Evaluation:
    """Return the evaluation that a file declares, of the engine that it names."""
    table = facts_of(_module(name))["evaluation"]
    if table.get("engine") == "own":
        own = import_module(_module(name))
        return Evaluation(own.evaluate, own.REPORT)
    if "engine" in table:
        return Evaluation(*import_module(_ENGINES.get(table["engine"], table["engine"])).declared(name, table))
    from curation.evaluation.open_world import end_measures, evaluation_as, report_as

    stated = msgspec.convert(table, _Evaluation)
    report = report_as(name, more=end_measures(stated.source, stated.at_the_end), algorithm=stated.algorithm)
    return Evaluation(evaluation_as(report, variants_of(name), stated.notes), report)


@cache
def _own() -> tuple[str, ...]:
    """Return what this package evaluates, without importing any of it: benchmarks, then plain detection."""
    packages = [package.name for package in files(__package__).iterdir() if (package / "evaluation.py").is_file()]
    return (*sorted([*packages, *names("evaluation")]), *_plain())


def protocols() -> tuple[str, ...]:
    """Return the names of all benchmarks that evaluate: this package's, plain detection, other packages'."""
    offered = sorted(entry.name for entry in _objects() if _evaluates(entry.module))
    return (*_own(), *(name for name in offered if name not in _own()))


def summary_of_protocol(protocol: str) -> str:
    """Return the line of help of a benchmark that evaluates: its file states it, or its module as ``SUMMARY``."""
    if protocol in _rooms():
        return str(facts_of(_rooms()[protocol])["benchmark"]["summary"])
    point = next(point for point in (*_plain().values(), *_objects()) if point.name == protocol)
    try:
        return str(constants_of(point).get("SUMMARY", f"offered by the package {package_name(point)}"))
    # Whatever another package raises while it is imported must not take the other benchmarks away.
    except Exception as error:
        return f"cannot be loaded: {type(error).__name__}"


def evaluation_of(protocol: str) -> Callable[..., Any]:
    """Return the function that evaluates a benchmark, a `curation.evaluation.result.Result`.

    Its arguments are checked, and its warnings raised (see `curation.evaluation.result.with_warnings`).

    Raises
    ------
    UsageError
        No such benchmark.
    """
    from curation.evaluation.result import with_warnings

    evaluate = with_warnings(_known(protocol).evaluate)
    return checked(evaluate, called=f"The evaluation {protocol}", hint=f"curation evaluate {protocol} --help")


def report_of(protocol: str) -> Any:
    """Return the `curation.evaluation.result.Report` of a benchmark: how its results show themselves.

    Raises
    ------
    UsageError
        No such benchmark.
    """
    return _known(protocol).REPORT


def measures_of(protocol: str) -> Sequence[Measure]:
    """Return the ranked measures of a benchmark; none for one that is not known here."""
    from curation.evaluation.measures import ranked

    found = _evaluation(protocol)
    return () if found is None else ranked(found.REPORT.measures)


def _known(protocol: str) -> Any:
    return _evaluation(protocol) or _refuse("benchmark", protocol, protocols(), "curation evaluate --help")


def _evaluation(protocol: str) -> Any:
    """Return what holds ``evaluate`` and ``REPORT`` of a benchmark; None for one that is not known here."""
    point = _plain().get(protocol) or next((entry for entry in _objects() if entry.name == protocol), None)
    module, package = (point.value, package_name(point)) if point else (_module(protocol), "")
    with loading(module, f"The evaluation {protocol}", package):
        made = _imported_evaluation(protocol)
        return made if made is None else Evaluation(made.evaluate, made.REPORT)


def _imported_evaluation(protocol: str) -> Any:
    if protocol in _plain():
        return _plain()[protocol].load()
    if protocol in names("evaluation"):
        return evaluation(protocol)
    if protocol in _own():
        return import_module(f"{_module(protocol)}.evaluation")
    packages = (entry.module for entry in _objects() if entry.name == protocol)
    return next((import_module(f"{package}.evaluation") for package in packages if _evaluates(package)), None)


def _evaluates(package: str) -> bool:
    """Return whether another package has an evaluation; one that cannot be imported has none."""
    try:
        return util.find_spec(f"{package}.evaluation") is not None
    # Whatever another package raises while it is imported must not take the other benchmarks away.
    except Exception:
        return False


def _refuse(what: str, name: str, known: Iterable[str], hint: str | None = None) -> NoReturn:
    near = difflib.get_close_matches(name, known, 1)
    raise UsageError(
        f"No such {what}",
        where=name[:200],
        expected=", ".join(known),
        hint=f"did you mean {near[0]}?" if near else hint,
    )


def _module(name: str) -> str:
    return _rooms().get(name, f"{__package__}.{name}")
