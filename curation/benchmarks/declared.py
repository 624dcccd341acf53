"""Benchmarks that a file declares: ``NAME.toml``, with its rule in ``NAME.py`` or the package ``NAME``, if it has one.

``[benchmark]`` says what a `Benchmark` needs; its ``code`` says where the rule has the other fields (``NAME``, or
``MODULE:NAME`` in a package). ``[evaluation]`` names its ``engine`` and declares variants; those of open-world
detection, the engine by default, are changes of the rules that most code shares. With the engine ``own`` the functions
are `evaluate` and `REPORT` of the benchmark's module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from curation.benchmarks.benchmark import Benchmark
from curation.benchmarks.facts import facts_of
from curation.manifest.header import Paper

if TYPE_CHECKING:
    from curation.evaluation.result import Report, Result
    from curation.evaluation.variants import Rules


_ENGINES = {
    "image_ood": "curation.evaluation.image_ood.evaluation",
    "classification": "curation.evaluation.classification",
}


class _Stated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    summary: str
    page: str
    parts: tuple[tuple[str, str], ...]
    code: dict[str, str] = {}
    name: str = ""


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
def names(table: str = "benchmark") -> tuple[str, ...]:
    """Return the benchmarks whose file has a table of this name, sorted."""
    own = sorted(one.name for one in files(__package__).iterdir() if one.name.endswith(".toml"))
    return tuple(name for name in (one.removesuffix(".toml") for one in own) if table in facts_of(_module(name)))


def declared(name: str) -> Benchmark:
    """Return a benchmark as its file declares it; its rule is imported when it is used."""
    module = _module(name)
    facts = facts_of(module)
    stated = msgspec.convert(facts["benchmark"], _Stated)
    code: dict[str, Any] = {
        field: f"{module}.{name}" if ":" in name else f"{module}:{name}" for field, name in stated.code.items()
    }
    if "recipes" not in code and "published" in facts:
        code["recipes"] = f"{__name__}:{name}_recipes"
    paper = facts["paper"] if "paper" in facts else next(iter(facts["papers"].values()))
    return Benchmark(
        name=stated.name or name,
        paper=msgspec.convert(paper, Paper),
        summary=stated.summary,
        parts=stated.parts,
        page=stated.page,
        **code,
    )


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
        return Evaluation(*import_module(_ENGINES[table["engine"]]).declared(name, table))
    from curation.evaluation.open_world import end_measures, evaluation_as, report_as

    stated = msgspec.convert(facts_of(_module(name))["evaluation"], _Evaluation)
    report = report_as(name, more=end_measures(stated.source, stated.at_the_end), algorithm=stated.algorithm)
    return Evaluation(evaluation_as(report, variants_of(name), stated.notes), report)


def __getattr__(name: str) -> Mapping[str, Any]:
    """Return the recipes of a benchmark that has no code, ``NAME_recipes``."""
    benchmark, found, _ = name.partition("_recipes")
    if not found:
        raise AttributeError(name)
    from curation.benchmarks.published import drafts

    return drafts(_module(benchmark), aliases=facts_of(_module(benchmark)).get("aliases"))


def _module(name: str) -> str:
    return f"{__package__}.{name}"
