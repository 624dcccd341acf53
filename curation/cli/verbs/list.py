"""``curation list``: benchmarks, what they need, and the available manifests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from curation.cli.output import Answer, Line, Table, warn

if TYPE_CHECKING:
    from curation.benchmarks.benchmark import Benchmark

_KINDS = ("benchmarks", "manifests")
_ORDER = ("wilderness", "tasks", "superclass", "hierarchy", "near-far", "lists", "split", "")
"""Rules, that of each of the five papers first."""


def run(
    subject: Annotated[str | None, "benchmarks | manifests | BENCHMARK | RULE"] = None,
    /,
    *,
    folder: tuple[Annotated[Path, "DIR"], ...] = (),
) -> Answer:
    """Benchmarks, their papers and sources, and the available manifests.

    Parameters
    ----------
    subject
        these alone (default: benchmarks and manifests), one benchmark with its parts, page and manifests, or a rule
        with the keys of its file; --json then prints their JSON Schema too
    folder
        a folder of manifests beside ./manifests, $CURATION_MANIFESTS and those that come with curation
    """
    from curation.benchmarks.registry import benchmarks, find_benchmark, registry
    from curation.benchmarks.rules.benchmark_file import RULES, file_schema
    from curation.manifest.locate import available_manifests

    benchmark = find_benchmark(subject, *_KINDS) if subject and subject not in _KINDS else None
    chosen = [] if subject == "manifests" else [benchmark] if benchmark else [*benchmarks().values()]
    lines: list[Line] = []
    is_rule = benchmark is not None and benchmark.name in RULES
    if benchmark and is_rule:
        lines += rule_lines(benchmark)
    elif benchmark:
        lines += _benchmark_lines(benchmark.as_data())
    elif chosen:
        chosen.sort(key=lambda each: _ORDER.index(each.rule) if each.rule in _ORDER else len(_ORDER))
        rows = tuple(
            (
                each.rule or "its own",
                each.name,
                each.summary,
                f"{each.paper.venue} {each.paper.year}" if each.paper else "",
            )
            for each in chosen
        )
        lines += [Table("Benchmarks (curation list NAME: sources, parameters, parts)", ("rule", "", "", ""), rows)]
        summaries = tuple((rule, _summary(rule)) for rule in RULES)
        lines += [Table("Rules of benchmarks of your own (curation list RULE: keys of its file)", ("", ""), summaries)]
    if chosen:
        for name, reason in registry().unusable.items():
            warn(f"the package that offers benchmark {name} cannot be used: {reason}")
    manifests = []
    if subject != "benchmarks":
        manifests = [row for row in available_manifests(folder) if benchmark is None or benchmark.made(row)]
        lines += _manifest_lines(manifests)

    def data() -> dict[str, Any]:
        listed: dict[str, Any] = {"benchmarks": [each.as_data() for each in chosen], "manifests": manifests}
        if benchmark and is_rule:
            listed["schema"] = file_schema(benchmark.name)
        gone = {"benchmarks": "manifests", "manifests": "benchmarks"}.get(subject or "")
        return {key: value for key, value in listed.items() if key != gone}

    return Answer(data, lines)


def _summary(rule: str) -> str:
    """Return the first line of a rule's module, which is not imported: all rules together cost half a second."""
    source = files("curation.benchmarks.rules") / f"{rule.replace('-', '_')}.py"
    return source.read_text(encoding="utf-8").partition("\n")[0].partition(": ")[2].removesuffix('"""')


def rule_lines(benchmark: Benchmark) -> list[Line]:
    """Return the lines about a rule: its sources, classes, parameters and parts, and the keys of its file."""
    from curation.benchmarks.rules import benchmark_file as form

    module = form.rule_module(benchmark.name)
    records = [("parameters: [parameters]", module.PARAMETERS), ("sources: [sources.NAME]", form.SourceTable)]
    records += [("lists: [[parts]]", form.ListedPart)] if benchmark.name == "lists" else []
    records += [("classes: [classes]", form.Classes), ("keys of the file", form.WrittenFile)]
    tables = [_key_table(title, record) for title, record in records]
    names = ", ".join(module.USUAL_SOURCES)
    paper = benchmark.paper
    return [
        f"{benchmark.name}: {(module.__doc__ or '').partition(chr(10))[0].partition(': ')[2]}",
        *([f"  after {paper.title}. {paper.authors}. {paper.venue} {paper.year}"] if paper else []),
        f"  usual sources: {names}",
        "",
        *(table for table in tables if table.rows),
        Table("  parts", ("", ""), tuple(benchmark.parts)),
        f"  page: {benchmark.page}",
        f"  a file to begin with: curation init {benchmark.name} --help",
        "",
    ]


def _key_table(title: str, record: Any) -> Table:
    """Return the keys of a table of a benchmark file, with the words they may be, their defaults and their meaning."""
    from msgspec import NODEFAULT
    from msgspec.structs import fields

    from curation.cli.signature import parameter_texts

    texts, rows = parameter_texts(record), []
    for field in fields(record):
        default = field.default if field.default_factory is NODEFAULT else field.default_factory()
        value = "required" if field.required else _value_text(default)
        words = "|".join(_words_in(field.type))
        meaning = "; ".join(filter(None, (words, texts.get(field.name, ""))))
        rows.append((field.encode_name, value, meaning))
    return Table(f"  {title}", ("", "default", ""), tuple(rows))


def _value_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_value_text, value))
    return (
        str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, str | int | Decimal) else ""
    )


def _words_in(hint: Any) -> list[str]:
    """Return the allowed words of a type or of its elements; empty if a type is not limited to words."""
    if get_origin(hint) is Literal:
        return [word for word in get_args(hint) if word]
    return [word for inner in get_args(hint) if get_origin(hint) is not dict for word in _words_in(inner)]


def _benchmark_lines(benchmark: dict[str, Any]) -> list[Line]:
    paper = benchmark["paper"]
    sources = tuple(
        (
            slot["name"],
            ("required" if slot["required"] else "optional") + f" with {slot['only_with']}" * bool(slot["only_with"]),
            slot["meaning"],
        )
        for slot in benchmark["sources"]
    )
    parameters = tuple((row["name"], row["default"], row["meaning"]) for row in benchmark["parameters"])
    parts = tuple((row["name"], row["meaning"]) for row in benchmark["parts"])
    return [
        f"{benchmark['name']}: {benchmark['summary']}",
        *([f"  {paper['title']}. {paper['authors']}. {paper['venue']} {paper['year']}"] if paper else []),
        "",
        *([Table("  sources (--source NAME=PATH)", ("", "", ""), sources)] if sources else []),
        *([Table("  parameters (--set KEY=VALUE)", ("", "default", ""), parameters)] if parameters else []),
        Table("  parts", ("", ""), parts),
        f"  page: {benchmark['page']}",
        "",
    ]


def _manifest_lines(manifests: Sequence[dict[str, Any]]) -> list[Line]:
    rows = [
        {
            "manifest": f"{row['name']}@{row['version']}",
            "digest": row["digest"].removeprefix("sha256:")[:12],
            "paper": re.sub(r"^arXiv \S+ ", "arXiv ", row["paper"]),
            "origin": row["origin"],
            "ids inside": f"{len(row['ids_inside'])} of {len(row['parts'].split(', '))}",
            "supersedes": row["supersedes"]["version"] if row["supersedes"] else "",
            "in": "curation" if row["packaged"] else row["folder"].removesuffix(f"{row['name']}/{row['version']}"),
        }
        for row in manifests
    ]
    if not rows:
        return [Table("No manifests found", (), ())]
    # Empty columns are left out.
    columns = tuple(name for name in rows[0] if any(row[name] for row in rows))
    return [Table("Available manifests", columns, tuple(tuple(row[name] for name in columns) for row in rows))]
