"""``curation list``: benchmarks, what they need, and the available manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from curation.cli.output import Answer, Line, Table, warn
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.benchmarks.benchmark import Benchmark


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
        a folder of manifests beside ./manifests, $CURATION_MANIFESTS and those that come with curation (repeatable)
    """
    from curation.benchmarks.registry import benchmarks, registry
    from curation.manifest.locate import available_manifests

    data: dict[str, Any] = {}
    lines: list[Line] = []
    one = _benchmark_named(what) if what not in (None, "benchmarks", "manifests") else None
    if what != "manifests":
        chosen = [one] if one else list(benchmarks().values())
        data["benchmarks"] = [protocol.as_data() for protocol in chosen]
        lines += [line for told in data["benchmarks"] for line in _benchmark_lines(told, whole=one is not None)]
        for name, reason in registry().unusable.items():
            warn(f"the package that offers benchmark {name} cannot be used: {reason}")
    if what != "benchmarks":
        data["manifests"] = [row for row in available_manifests(folder) if one is None or one.made(row)]
        lines += _manifest_lines(data["manifests"])
    return Answer(data, lines)


def _benchmark_named(name: str) -> Benchmark:
    from curation.benchmarks.registry import benchmarks, find_benchmark

    try:
        return find_benchmark(name)
    except UsageError as error:
        raise UsageError(
            "There is nothing of this name to list",
            where=f"curation list {name[:80]}",
            expected=f"benchmarks, manifests, or a benchmark: {', '.join(benchmarks())}",
            hint=error.hint,
        ) from None


def _benchmark_lines(protocol: dict[str, Any], *, whole: bool) -> list[Line]:
    paper = protocol["paper"]
    sources = tuple(
        (slot["name"], "required" if slot["required"] else "optional", slot["meaning"]) for slot in protocol["sources"]
    )
    parameters = tuple((one["name"], one["default"], one["meaning"]) for one in protocol["parameters"])
    parts = tuple((one["name"], one["meaning"]) for one in protocol["parts"])
    more: list[Line] = [Table("  parts", ("", ""), parts), f"  page: {protocol['page']}", ""]
    return [
        f"{protocol['name']}: {protocol['summary']}",
        f"  {paper['title']}. {paper['authors']}. {paper['venue']} {paper['year']}",
        "",
        Table("  sources (--source NAME=PATH)", ("", "", ""), sources),
        Table("  parameters (--set KEY=VALUE)", ("", "default", ""), parameters),
        *(more if whole else []),
    ]


def _manifest_lines(manifests: Sequence[dict[str, Any]]) -> list[Line]:
    rows = [
        {
            **{name: one[name] for name in ("name", "version")},
            "digest": one["digest"].removeprefix("sha256:")[:12],
            **{name: one[name] for name in ("origin", "parts")},
            "supersedes": " > ".join(map(_link, one["supersedes"])),
            "folder": "comes with curation" if one["packaged"] else one["folder"],
        }
        for one in manifests
    ]
    if not rows:
        return [Table("No manifests at hand", (), ())]
    # A column without a word takes room from the folder, which people copy.
    columns = tuple(name for name in rows[0] if any(row[name] for row in rows))
    return [Table("Manifests at hand", columns, tuple(tuple(row[name] for name in columns) for row in rows))]


def _link(superseded: Mapping[str, Any]) -> str:
    return str(superseded["version"]) + ("" if superseded["at_hand"] else " (not at hand)")
