"""Classes of an annotation file in groups that are weakly co-occurring."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from curation.arguments import checked
from curation.cooccurrence.cut import KICKS, SOLVER_VERSION, Cut, CutOptions, normalized_cut
from curation.cooccurrence.graph import UNIT, ClassGraph, class_graph, count_cooccurrence
from curation.csv_table import as_csv
from curation.errors import UsageError
from curation.input_files import read_plain
from curation.sources.coerce import as_source
from curation.storage import publishing_files, write_text
from curation.version import __version__


@dataclass(frozen=True)
class ClassGroups:
    """A normalized cut of the classes of a file: the graph, the cut, and what is told of it as plain data."""

    graph: ClassGraph = field(repr=False)
    cut: Cut
    facts: Mapping[str, Any] = field(repr=False)

    def save(self, folder: Path) -> list[Path]:
        """Write ``cut.json``, ``clusters.csv`` and figures, together, and return all files."""
        from curation.cooccurrence.cut_figures import graph_figure, matrix_figure

        rows = [
            (place, name, self.facts["class_images"][name])
            for place, names in enumerate(self.facts["clusters"], 1)
            for name in names
        ]
        with publishing_files(folder) as new:
            written = matrix_figure(self.graph, self.cut, new / "matrix")
            written += graph_figure(self.graph, self.cut, new / "graph")
            written += [new / "clusters.csv", new / "cut.json"]
            write_text(written[-2], as_csv(("cluster", "class", "images"), rows))
            text = json.dumps(self.facts, indent=1, ensure_ascii=False, allow_nan=False)
            write_text(written[-1], text + "\n")
        return [folder / one.name for one in written]


@checked
def group_classes(
    file: Path,
    /,
    *,
    k: Annotated[int, "K"],
    dataset: Annotated[str, "NAME"] = "coco",
    part: Annotated[str, "PART"] = "",
    classes: Path | None = None,
    weighting: Literal["counts", "binary", "jaccard", "pmi"] = "counts",
    isolated: Literal["largest", "drop", "error"] = "largest",
    components: Literal["error", "cut", "giant"] = "error",
    restarts: Annotated[int, Meta(ge=0, le=100_000)] = 50,
    no_cache: bool = False,
) -> ClassGroups:
    """Group weakly co-occurring classes: normalized cut of co-occurrence.

    Parameters
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
    no_cache
        parse annotation files again, and store nothing
    """
    source = as_source(file, dataset=dataset, part=part, cache=not no_cache)
    counts = count_cooccurrence(source, _classes(classes))
    graph = class_graph(counts, weighting)
    cut = normalized_cut(graph, k, CutOptions(isolated, components, restarts))
    images = dict(zip(counts.names, counts.images.tolist(), strict=True))
    facts = {
        "curation": __version__,
        "solver": {
            "version": SOLVER_VERSION,
            "restarts": restarts,
            "kicks": KICKS,
            "isolated": isolated,
            "components": components,
        },
        "source": {
            "dataset": source.dataset,
            "part": source.part,
            "files": [{"name": one.name, "sha256": one.sha256} for one in source.files],
            "images": counts.total,
        },
        "weighting": graph.weighting,
        "unit": 1 if graph.weighting in ("counts", "binary") else 1 / UNIT,
        "k": k,
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
    return ClassGroups(graph, cut, facts)


def _classes(path: Path | None) -> list[str] | None:
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
