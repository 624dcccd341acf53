"""``curation cut``: k groups of classes that rarely occur together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from curation.cli.output import Answer, Line, Table
from curation.cli.outputs import output_folder
from curation.core.errors import UsageError
from curation.signals.cooccurrence.cut import ClassGroups, group_classes

_SHOWN = 60


def run(
    groups: Annotated[ClassGroups, group_classes],
    /,
    *,
    out: Annotated[Path | None, output_folder("cut.json"), "DIR"] = None,
    figures: bool = False,
) -> Answer:
    """Group weakly co-occurring classes: normalized cut of co-occurrence.

    Parameters
    ----------
    out
        write cut.json, clusters.csv and matrix.csv
    figures
        with --out, draw the matrix too, as PNG and SVG
    """
    if figures and out is None:
        raise UsageError("--figures needs --out DIR")
    written = groups.save(out, figures=figures) if out else []
    return Answer(groups.facts, _lines(groups.facts), written=written)


def _lines(result: Mapping[str, Any]) -> list[Line]:
    certificate = {
        "exact": "every partition was examined: this is the lowest value",
        "bound": "the value meets the lower bound: this is the lowest value",
        "none": f"{result['starts_that_reached_it']} of {result['starts']} starts end here; not proven lowest",
    }[result["certificate"]]
    facts = Table(
        "Normalized cut",
        ("", ""),
        (
            ("Ncut", f"{result['ncut']:.6f}  ({certificate})"),
            ("lower bound", f"{result['lower_bound']:.6f}"),
            ("weighting", result["weighting"]),
            ("images", f"{result['source']['images']:,}"),
            ("isolated", ", ".join(result["isolated"]) or "none"),
            ("components apart", ", ".join(result["apart"]) or "none"),
        ),
    )
    clusters = Table(
        "Clusters",
        ("cluster", "classes", "names"),
        tuple(
            (str(number), str(len(names)), ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else ""))
            for number, names in enumerate(result["clusters"], 1)
        ),
    )
    return [facts, clusters]
