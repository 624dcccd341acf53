"""Every benchmark by name: those of this package, and those that other packages offer by an entry point.

A file ``NAME.toml`` declares a benchmark; its rule is the module ``NAME.py`` or the package ``NAME``, if it has one.
``rule``, ``[sources]``, ``[classes]`` and the other tables have the meaning that `curation.benchmarks.rules` gives
them. ``[benchmark]`` has the other fields of a `Benchmark`; its ``code`` names those that are Python (``NAME``, or
``MODULE:NAME`` in a package). ``[published]`` and ``[selected]`` need no code (`curation.benchmarks.published`).
``[evaluation]`` names its ``engine`` and declares variants; those of open-world detection, the engine by default, are
changes of the rules that most code shares. With the engine ``own`` the benchmark's module, or the module ``evaluation``
of its package, has a function ``evaluate``, whose signature declares the options, and a
`curation.evaluation.result.Report` named ``REPORT``.
Another package offers a benchmark under the entry point ``curation.benchmarks`` as ``PACKAGE.NAME`` of a file
``NAME.toml``, or as ``PACKAGE`` with a file ``facts.toml``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec

from curation.benchmarks.benchmark import (
    Benchmark,
    Parameter,
    benchmark_facts,
    declared_parameters,
    declared_slots,
    fact,
    within,
)
from curation.benchmarks.rules.benchmark_file import RULES, rule_module
from curation.core.arguments import checked
from curation.core.entry_points import constants_of, entry_points, loading, package_name
from curation.core.errors import UsageError
from curation.core.wording import did_you_mean
from curation.manifest.header import Header, Paper

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
    """Return the modules that evaluate plain detection (without lists), by name."""
    return {point.name: point for point in entry_points(PLAIN_GROUP)}


@cache
def _rooms() -> dict[str, str]:
    """Return the module of each benchmark; in another package, its file may be missing."""
    names = (file.name for file in files(__package__).iterdir())
    package = {name.removesuffix(".toml"): f"{__package__}.{name.removesuffix('.toml')}" for name in names
               if name.endswith(".toml")}  # fmt: skip
    return {point.name: point.value for point in entry_points(GROUP)} | package


def _facts(name: str) -> dict[str, Any]:
    """Return the facts of a benchmark; empty if those of another package cannot be read."""
    try:
        return benchmark_facts(_module(name))
    # Another package may raise anything on import; the other benchmarks must remain usable.
    except Exception:
        return {}


class Registry(NamedTuple):
    """Benchmarks by name, and the reasons why benchmarks of other packages cannot be used."""

    benchmarks: Mapping[str, Benchmark]
    unusable: Mapping[str, str]


class _Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    summary: str
    page: str
    parts: tuple[tuple[str, str], ...]
    code: dict[str, str] = {}
    name: str = ""
    order: int = 0
    parameters: tuple[dict[str, Any], ...] = ()
    disjoint: tuple[tuple[str, str], ...] = ()
    shared: dict[str, dict[str, int]] = {}


class _Evaluation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    variants: dict[str, dict[str, Any]]
    algorithm: int = 1
    notes: tuple[str, ...] = ()
    source: str = ""
    at_the_end: dict[str, str] = {}


class Evaluation(NamedTuple):
    """The function that scores a benchmark, and the report of its results."""

    evaluate: Callable[..., Result]
    REPORT: Report


@cache
def registry() -> Registry:
    """Return every benchmark in the order of the key ``order`` of their files; those without one follow by name."""
    declarations: list[tuple[float, str, Benchmark]] = []
    unusable: dict[str, str] = {}
    for name, room in _rooms().items():
        try:
            order = benchmark_facts(room)["benchmark"].get("order", math.inf)
            declarations.append((order, name, declared_benchmark(name)))
        # As in `_facts`.
        except Exception as error:
            if room == f"{__package__}.{name}":
                raise
            unusable[name] = f"{room}: {error}"[:300]
    ordered = (benchmark for *_, benchmark in sorted(declarations, key=lambda row: row[:2]))
    return Registry({benchmark.name: benchmark for benchmark in ordered}, unusable)


def benchmarks() -> Mapping[str, Benchmark]:
    """Return every benchmark that can be used, by name."""
    return registry().benchmarks


def find_benchmark(name: str, *others: str) -> Benchmark:
    """Return the benchmark of this name; raise `UsageError` with the nearest name of all benchmarks and `others`."""
    if name in RULES:
        return benchmark_of_rule(name)
    known, unusable = registry()
    if name in unusable:
        raise UsageError(
            "The package that offers this benchmark cannot be used", where=name[:200], found=unusable[name]
        )
    return known[name] if name in known else _refuse("benchmark", name, [*known, *others], "curation list")


@cache
def benchmark_of_rule(name: str) -> Benchmark:
    """Return a rule as a benchmark whose parameter is the benchmark file, which a manifest stores as text."""
    module, rule = f"{__package__}.rules.benchmark_file", rule_module(name)
    decisions = Parameter(name="decisions", reader=f"{rule.__name__}:read_recorded", meaning="as --decisions FILE")
    replays = hasattr(rule, "read_recorded")
    return Benchmark(
        name=name,
        paper=rule.PAPER,
        summary=f"a benchmark file of your own with the rule {name}",
        rule=name,
        page="docs/own_benchmark.md",
        parts=rule.PARTS,
        parameters=(
            Parameter(
                name="file", reader=f"{module}:read_benchmark_file", meaning="the benchmark file, given as BENCHMARK"
            ),
            *([decisions] if replays else []),
        ),
        recorded_decisions=f"{rule.__name__}:read_decisions_file" if replays else None,
        choose_slots=f"{module}:slots_of_file",
        build=f"{rule.__name__}:build" if hasattr(rule, "build") else None,
    )


def recipes() -> Mapping[str, Callable[[], Header]]:
    """Return the drafts of all published lists, by the name of the manifest that they make."""
    return {name: draft for benchmark in benchmarks().values() for name, draft in benchmark.recipes.items()}


def find_recipe(name: str) -> Callable[[], Header]:
    """Return the recipe of this name; raise `UsageError` with the nearest name for an unknown one."""
    known = recipes()
    return known[name] if name in known else _refuse("recipe for published lists", name, known)


def formats() -> Mapping[str, Format]:
    """Return every format of exports by name: those for detectors, then the authors' layouts."""
    from curation.publishing.exporting import FORMATS

    return {**FORMATS} | {form.name: form for benchmark in benchmarks().values() for form in benchmark.formats}


@cache
def names(table: str = "benchmark") -> tuple[str, ...]:
    """Return the benchmarks whose file has a table of this name, sorted."""
    return tuple(name for name in sorted(_rooms()) if table in _facts(name))


def declared_benchmark(name: str) -> Benchmark:
    """Return the benchmark that a file declares; its rule is imported on first use."""
    module = _module(name)
    facts = benchmark_facts(module)
    declaration = fact(module, "benchmark", _Declaration)
    code: dict[str, Any] = {"slots": declared_slots(module), "parameters": declared_parameters(module)}
    code |= {field: within(module, name) for field, name in declaration.code.items()}
    if "recipes" not in code and "published" in facts:
        code["recipes"] = partial(_recipes, name)
    if "build" not in code and "selected" in facts:
        code |= {"build": partial(_selected, name, "selected"), "declare": partial(_selected, name, "declared")}
    paper = facts["paper"] if "paper" in facts else next(iter(facts["papers"].values()))
    return Benchmark(
        name=declaration.name or name,
        paper=msgspec.convert(paper, Paper),
        summary=declaration.summary,
        rule=facts.get("rule", ""),
        parts=declaration.parts,
        page=declaration.page,
        disjoint=declaration.disjoint,
        shared=declaration.shared,
        **code,
    )


def _recipes(name: str) -> Mapping[str, Callable[[], Header]]:
    """Return the recipes of a benchmark that has no code."""
    from curation.benchmarks.published import drafts

    return drafts(_module(name), aliases=benchmark_facts(_module(name)).get("aliases"))


def _selected(name: str, form: str) -> Callable[..., Any]:
    """Return the rule of a benchmark without code: parts of images that show classes of some roles."""
    from curation.benchmarks import published

    return partial(getattr(published, f"{form}_lists"), _module(name))


def variants_of(name: str) -> tuple[Rules, ...]:
    """Return the variants that a file declares, the sound one first."""
    from curation.evaluation.open_world import CLEAN, TEXT

    table = msgspec.convert(benchmark_facts(_module(name))["evaluation"], _Evaluation)
    return (
        CLEAN,
        *(
            replace(TEXT, name=key, **changes | {"meaning": changes["meaning"].format(text=TEXT.meaning)})
            for key, changes in table.variants.items()
        ),
    )


@cache
def evaluation(name: str) -> Evaluation:
    """Return the evaluation that a file declares for its engine."""
    facts = benchmark_facts(_module(name))
    table = facts["evaluation"]
    if table.get("engine") == "own":
        module = import_module(_module(name))
        module = import_module(f"{module.__name__}.evaluation") if hasattr(module, "__path__") else module
        return Evaluation(module.evaluate, module.REPORT)
    if "engine" in table:
        return Evaluation(*import_module(_ENGINES.get(table["engine"], table["engine"])).declared(name, facts))
    from curation.evaluation.open_world import end_measures, evaluation_as, report_as

    options = msgspec.convert(table, _Evaluation)
    report = report_as(name, more=end_measures(options.source, options.at_the_end), algorithm=options.algorithm)
    return Evaluation(evaluation_as(report, variants_of(name), options.notes), report)


def protocols() -> tuple[str, ...]:
    """Return the names of all benchmarks that evaluate, then those of plain detection."""
    return (*names("evaluation"), *_plain())


def summary_of_protocol(protocol: str) -> str:
    """Return the line of help of an evaluation, from the file of its benchmark or the ``SUMMARY`` of its module."""
    if protocol in _rooms():
        return str(_facts(protocol)["benchmark"]["summary"])
    point = _plain()[protocol]
    try:
        return str(constants_of(point).get("SUMMARY", f"offered by the package {package_name(point)}"))
    # As in `_facts`.
    except Exception as error:
        return f"cannot be loaded: {type(error).__name__}"


def evaluation_of(protocol: str) -> Callable[..., Any]:
    """Return the function that evaluates a benchmark and returns a `curation.evaluation.result.Result`.

    It checks its arguments and raises warnings (see `curation.evaluation.recorded_call.with_warnings`).

    Raises
    ------
    UsageError
        No such benchmark.
    """
    from curation.evaluation.recorded_call import with_warnings

    evaluate = with_warnings(_known(protocol).evaluate, states_call=True)
    return checked(evaluate, called=f"The evaluation {protocol}", hint=f"curation evaluate {protocol} --help")


def report_of(protocol: str) -> Any:
    """Return the `curation.evaluation.result.Report` of a benchmark: tables and figures of its results.

    Raises
    ------
    UsageError
        No such benchmark.
    """
    return _known(protocol).REPORT


def measures_of(protocol: str) -> Sequence[Measure]:
    """Return the ranked measures of a benchmark; empty for an unknown one."""
    from curation.evaluation.measures import ranked

    known = _evaluation(protocol)
    return () if known is None else ranked(known.REPORT.measures)


def _known(protocol: str) -> Any:
    return _evaluation(protocol) or _refuse("benchmark", protocol, protocols(), "curation evaluate --help")


def _evaluation(protocol: str) -> Any:
    """Return the object with ``evaluate`` and ``REPORT`` of a benchmark, or None for an unknown one."""
    point = _plain().get(protocol)
    if point is None and protocol not in names("evaluation"):
        return None
    module, package = (point.value, package_name(point)) if point else (_module(protocol), "")
    with loading(module, f"The evaluation {protocol}", package):
        made = point.load() if point else evaluation(protocol)
        return Evaluation(made.evaluate, made.REPORT)


def _refuse(subject: str, name: str, known: Iterable[str], hint: str | None = None) -> NoReturn:
    known = list(known)
    raise UsageError(
        f"No such {subject}", where=name[:200], expected=", ".join(known), hint=did_you_mean(name, known, hint)
    )


def _module(name: str) -> str:
    return _rooms().get(name, f"{__package__}.{name}")
