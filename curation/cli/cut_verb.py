"""``curation cut``: classes in k groups that are weakly co-occurring."""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from curation.cli.options import CacheOption
from curation.cli.output import Answer, Table, table_lines
from curation.cli.outputs import OutputFolder
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.cooccurrence.cut import Cut
    from curation.cooccurrence.graph import ClassGraph, Cooccurrence
    from curation.sources.source import Source

_SHOWN = 60


@dataclass(frozen=True)
class Options(CacheOption):
    """Group weakly co-occurring classes: normalized cut of co-occurrence.

    Attributes
    ----------
    file
        COCO JSON, a dataset root, or a table of classes
    k
        number of clusters
    dataset
        how to read FILE
    part
        of a dataset root that holds several
    classes
        cut these classes alone: one name a line
    weighting
        what an edge weighs (default: images with both)
    isolated
        classes that co-occur with none: into the largest cluster, left out, or refused
    components
        a graph that falls apart: refuse, cut it as it is, or cut its largest component
    restarts
        labellings from fixed hashes
    out
        write cut.json, clusters.csv and figures
    """

    file: Path
    _: KW_ONLY
    k: Annotated[int, "K"]
    dataset: Annotated[str, "NAME"] = "coco"
    part: Annotated[str, "PART"] = ""
    classes: Path | None = None
    weighting: Literal["counts", "binary", "jaccard", "pmi"] = "counts"
    isolated: Literal["largest", "drop", "error"] = "largest"
    components: Literal["error", "cut", "giant"] = "error"
    restarts: int = 50
    out: Annotated[Path | None, OutputFolder(("cut.json", "clusters.csv"), ("matrix", "graph")), "DIR"] = None


def run(options: Options) -> Answer:
    """Cut, print, and write what ``--out`` asks for."""
    from curation.cooccurrence.cut import CutOptions, normalized_cut
    from curation.cooccurrence.graph import class_graph, count_cooccurrence
    from curation.sources.opening import open_source

    if not 0 <= options.restarts <= 100_000:
        raise UsageError("--restarts is out of range", expected="0 to 100,000", found=str(options.restarts))
    source = open_source(options.file, dataset=options.dataset, part=options.part, cache=not options.no_cache)
    counts = count_cooccurrence(source, _classes(options.classes))
    graph = class_graph(counts, options.weighting)
    chosen = CutOptions(options.isolated, options.components, options.restarts)
    cut = normalized_cut(graph, options.k, chosen)
    result = _result(options, source, counts, graph, cut)
    written = _write(result, graph, cut, options.out) if options.out else []
    return Answer(result, [*_lines(result), *(f"wrote {path}" for path in written)])


def _classes(path: Path | None) -> list[str] | None:
    from curation.input_files import read_plain

    if path is None:
        return None
    try:
        text = read_plain(path, kind="list of classes").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("The list of classes is not UTF-8", where=str(path), found=str(error)) from error
    names = [line.strip() for line in text.splitlines() if line.strip()]
    if not names:
        raise UsageError("The list of classes is empty", where=str(path), expected="one name a line")
    return names


def _result(options: Options, source: Source, counts: Cooccurrence, graph: ClassGraph, cut: Cut) -> dict[str, Any]:
    from curation.cooccurrence.cut import KICKS, SOLVER_VERSION
    from curation.cooccurrence.graph import UNIT
    from curation.version import __version__

    images = dict(zip(counts.names, counts.images.tolist(), strict=True))
    return {
        "curation": __version__,
        "solver": {
            "version": SOLVER_VERSION,
            "restarts": options.restarts,
            "kicks": KICKS,
            "isolated": options.isolated,
            "components": options.components,
        },
        "source": {
            "dataset": source.dataset,
            "part": source.part,
            "files": [{"name": one.name, "sha256": one.sha256} for one in source.files],
            "images": counts.total,
        },
        "weighting": graph.weighting,
        "unit": 1 if graph.weighting in ("counts", "binary") else 1 / UNIT,
        "k": options.k,
        "ncut": float(cut.value),
        "ncut_exact": f"{cut.value.numerator}/{cut.value.denominator}",
        "lower_bound": cut.lower_bound,
        "gap": cut.gap,
        "certificate": cut.certificate,
        "starts": len(cut.starts),
        "starts_that_reached_it": cut.reached,
        "start_values": [{"start": one.name, "own": one.value, "refined": one.refined} for one in cut.starts],
        "clusters": [list(names) for names in cut.clusters],
        "isolated": list(cut.isolated),
        "apart": list(cut.apart),
        "between": cut.between.tolist(),
        "class_images": images,
    }


def _lines(result: dict[str, Any]) -> list[str]:
    certificate = {
        "exact": "every partition was looked at: this is the lowest value",
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
            (str(place), str(len(names)), ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else ""))
            for place, names in enumerate(result["clusters"], 1)
        ),
    )
    heads = tuple(str(place) for place in range(1, len(result["between"]) + 1))
    between = Table(
        "Weight between clusters (inside: each edge twice)",
        ("cluster", *heads),
        tuple((head, *map(str, row)) for head, row in zip(heads, result["between"], strict=True)),
    )
    return [line for table in (facts, clusters, between) for line in table_lines(table)]


def _write(result: dict[str, Any], graph: ClassGraph, cut: Cut, folder: Path) -> list[Path]:
    from curation.cooccurrence.cut_figures import graph_figure, matrix_figure
    from curation.csv_table import as_csv
    from curation.storage import remove_abandoned, write_text

    remove_abandoned(folder)
    written = matrix_figure(graph, cut, folder / "matrix") + graph_figure(graph, cut, folder / "graph")
    rows = [
        (place, name, result["class_images"][name])
        for place, names in enumerate(result["clusters"], 1)
        for name in names
    ]
    table = folder / "clusters.csv"
    write_text(table, as_csv(("cluster", "class", "images"), rows))
    path = folder / "cut.json"
    write_text(path, json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return [*written, table, path]
