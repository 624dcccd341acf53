"""The manifest of a benchmark file: its parts, with the figures that the file expects beside those obtained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from curation.benchmarks.parts import Part, compared, rule_note, source_entry
from curation.benchmarks.parts import manifest_of as manifest_of_parts
from curation.benchmarks.rules.benchmark_file import BenchmarkFile, Expected
from curation.core.errors import ProtocolError
from curation.manifest.header import ClassEntry, Figure, Paper, Taxonomy
from curation.manifest.manifest import Manifest
from curation.sources.source import Source

COUNTS = ("images", "annotated_images", "boxes", "non_crowd_boxes")
"""What ``[expect]`` may state of a part, as in ``"closed.images"``."""


def manifest_of(
    stated: BenchmarkFile,
    made: Sequence[Part],
    sources: Mapping[str, Source],
    classes: Sequence[ClassEntry],
    parameters: Mapping[str, Any],
    *,
    taxonomy: Taxonomy,
    algorithm_version: int,
    after: Paper,
) -> Manifest:
    """Return the manifest of a benchmark file.

    Parameters
    ----------
    taxonomy : str
        Where the file states none.
    after : Paper
        The paper that the rule follows; the manifest names no paper as its own but that of the file.

    Raises
    ------
    ProtocolError
        The file expects a figure that there is not.
    """
    by_name = {part.entry.name: part for part in made}
    return manifest_of_parts(
        made,
        name=stated.name,
        title=stated.title or stated.name,
        paper=stated.paper,
        taxonomy=stated.taxonomy or taxonomy,
        classes=tuple(classes),
        sources=tuple(source_entry(name, source) for name, source in sources.items()),
        protocol=stated.rule,
        algorithm_version=algorithm_version,
        parameters=parameters,
        figures=tuple(_figure(name, expected, by_name) for name, expected in stated.expect.items()),
        notes=(rule_note(stated.rule, after), *stated.notes),
    )


def _figure(name: str, expected: Expected, parts: Mapping[str, Part]) -> Figure:
    part, _, count = name.rpartition(".")
    if part not in parts or count not in COUNTS:
        raise ProtocolError(
            "The benchmark file expects a figure that there is not",
            where=f"[expect] {name}"[:200],
            expected=f"PART.COUNT of {', '.join(parts)} and {', '.join(COUNTS)}"[:300],
        )
    made = parts[part]
    obtained = getattr(made.entry, count) if count in ("images", "annotated_images") else getattr(made, count)
    return compared(
        name, obtained, expected.value, expected.place or "the benchmark file", expected.because or "other data"
    )
