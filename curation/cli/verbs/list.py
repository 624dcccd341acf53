"""``curation list``: benchmarks, what they need, and the available manifests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from curation.cli.output import Answer, Line, Table, warn

_KINDS = ("benchmarks", "manifests")


def run(
    what: Annotated[str | None, "benchmarks | manifests | BENCHMARK"] = None,
    /,
    *,
    folder: tuple[Annotated[Path, "DIR"], ...] = (),
) -> Answer:
    """Benchmarks, their papers and sources, and the available manifests.

    Parameters
    ----------
    what
        these alone (default: benchmarks and manifests), or one benchmark with its parts, page and manifests
    folder
        a folder of manifests beside ./manifests, $CURATION_MANIFESTS and those that come with curation
    """
    from curation.benchmarks.registry import benchmarks, find_benchmark, registry
    from curation.manifest.locate import available_manifests

    benchmark = find_benchmark(what, *_KINDS) if what and what not in _KINDS else None
    chosen = [] if what == "manifests" else [benchmark] if benchmark else [*benchmarks().values()]
    lines: list[Line] = []
    if benchmark:
        lines += _benchmark_lines(benchmark.as_data())
    elif chosen:
        rows = tuple((each.name, each.summary, f"{each.paper.venue} {each.paper.year}") for each in chosen)
        lines += [Table("Benchmarks (curation list NAME: sources, parameters, parts)", ("", "", ""), rows)]
    if chosen:
        for name, reason in registry().unusable.items():
            warn(f"the package that offers benchmark {name} cannot be used: {reason}")
    manifests = []
    if what != "benchmarks":
        manifests = [row for row in available_manifests(folder) if benchmark is None or benchmark.made(row)]
        lines += _manifest_lines(manifests)

    def data() -> dict[str, Any]:
        listed = {"benchmarks": [each.as_data() for each in chosen], "manifests": manifests}
        gone = {"benchmarks": "manifests", "manifests": "benchmarks"}.get(what or "")
        return {key: value for key, value in listed.items() if key != gone}

    return Answer(data, lines)


def _benchmark_lines(benchmark: dict[str, Any]) -> list[Line]:
    paper = benchmark["paper"]
    sources = tuple(
        (slot["name"], "required" if slot["required"] else "optional", slot["meaning"]) for slot in benchmark["sources"]
    )
    parameters = tuple((row["name"], row["default"], row["meaning"]) for row in benchmark["parameters"])
    parts = tuple((row["name"], row["meaning"]) for row in benchmark["parts"])
    return [
        f"{benchmark['name']}: {benchmark['summary']}",
        f"  {paper['title']}. {paper['authors']}. {paper['venue']} {paper['year']}",
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
        return [Table("No manifests at hand", (), ())]
    # A column without a word takes room.
    columns = tuple(name for name in rows[0] if any(row[name] for row in rows))
    return [Table("Manifests at hand", columns, tuple(tuple(row[name] for name in columns) for row in rows))]
