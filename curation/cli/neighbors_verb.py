"""``curation neighbors``: nearest images of a reference set, set similarity, and near classes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from curation.cli.output import Answer, Table, table_lines
from curation.cli.outputs import OutputFolder
from curation.cli.signature import pairs
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.similarity.embeddings import Embeddings
    from curation.similarity.set_similarity import SetSimilarity

_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class Options:
    """Nearest images of a reference set, and how alike whole sets are.

    Attributes
    ----------
    queries
        what to look for: a store of curation embed; several with --set-similarity
    references
        where to look
    k
        neighbours of each, the image itself not among them
    engine
        all are exact
    set_similarity
        compare whole sets: similarity of each image to its nearest in a sample of the references
    sample
        of the references
    n_train
        training images of the ID set, for --sample paper
    out
        write neighbors.csv or similarity.csv, and a figure
    """

    queries: tuple[Annotated[str, "[NAME=]STORE"], ...]
    references: Annotated[Path, "STORE"]
    k: Annotated[int, "K"] = 10
    engine: Literal["auto", "torch", "numpy", "faiss"] = "auto"
    set_similarity: bool = False
    sample: Literal["hashrank", "paper", "all"] = "hashrank"
    n_train: int | None = None
    out: Annotated[
        Path | None,
        OutputFolder(("neighbors.csv", "similarity.csv", "statistics.json"), ("histograms",)),
        "DIR",
    ] = None


def run(options: Options) -> Answer:
    """Search, print, and write what ``--out`` asks for."""
    from curation.similarity.embeddings import open_embeddings

    named = pairs(options.queries, "--queries", bare=lambda text: Path(text).name)
    references = open_embeddings(options.references)
    queries = {name: open_embeddings(Path(path)) for name, path in named.items()}
    if options.set_similarity:
        return _sets(options, queries, references)
    if len(queries) > 1:
        raise UsageError("Neighbours are listed for one set", expected="one --queries STORE, or --set-similarity")
    return _neighbors(options, next(iter(queries.values())), references)


def _neighbors(options: Options, queries: Embeddings, references: Embeddings) -> Answer:
    from curation.similarity.neighbors import nearest_others
    from curation.similarity.set_similarity import require_same_encoder

    require_same_encoder(queries, references)
    places, scores, itself = nearest_others(queries, references, options.k, engine=options.engine)
    rows = [
        (name, rank, references.ids[place], score)
        for name, row, values in zip(queries.ids, places.tolist(), scores.tolist(), strict=True)
        for rank, (place, score) in enumerate(zip(row, values, strict=True), 1)
    ]
    written = _write_csv(options.out, "neighbors", ("id", "rank", "neighbor", "similarity"), rows)
    result = {
        "queries": len(queries.ids),
        "references": len(references.ids),
        "k": options.k,
        "queries_among_references": itself,
        "encoder": queries.encoder.digest,
        "neighbors": [
            {"id": name, "rank": rank, "neighbor": other, "similarity": score} for name, rank, other, score in rows
        ],
    }
    table = Table(
        f"Nearest of {len(references.ids):,}" + (", each image itself left out" if itself else ""),
        ("id", "rank", "neighbor", "similarity"),
        tuple((name, str(rank), other, f"{score:.4f}") for name, rank, other, score in rows[:_SHOWN]),
    )
    lines = table_lines(table)
    if len(rows) > _SHOWN:
        lines.append(f"… and {len(rows) - _SHOWN:,} more rows: --out DIR writes all")
    return Answer(result, [*lines, *(f"wrote {path}" for path in written)])


def _sets(options: Options, queries: dict[str, Embeddings], references: Embeddings) -> Answer:
    from curation.similarity.set_similarity import (
        SAMPLE_RULES,
        reference_statistics,
        sample_rows,
        set_similarity,
    )

    rows = sample_rows(references, options.sample, n_train=options.n_train)
    sample = references.take(rows.tolist())
    found = {name: set_similarity(one, sample, engine=options.engine) for name, one in queries.items()}
    base = reference_statistics(sample)
    result: dict[str, Any] = {
        "encoder": references.encoder.digest,
        "sample": {"rule": options.sample, "meaning": SAMPLE_RULES[options.sample], "n": len(sample.ids)},
        "reference": {"n": base.n, "median": base.median, "sigma": base.sigma},
        "sets": {name: one.statistics() for name, one in found.items()},
    }
    table = Table(
        f"Cosine to the nearest of {len(sample.ids):,} ID images",
        ("set", "n", "mean", "std", "5 %", "median", "95 %"),
        tuple(_statistics_row(name, one) for name, one in result["sets"].items()),
    )
    written = _write_sets(options.out, found, result) if options.out else []
    told = f"ID images to each other, leave one out: median {_number(base.median)}, sigma {_number(base.sigma)}"
    return Answer(result, [*table_lines(table), told, *(f"wrote {path}" for path in written)])


def _statistics_row(name: str, one: dict[str, Any]) -> tuple[str, ...]:
    quantiles = one["quantiles"]
    numbers = (one["mean"], one["std"], quantiles["0.05"], quantiles["0.5"], quantiles["0.95"])
    return name, str(one["n"]), *(_number(value) for value in numbers)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _write_csv(folder: Path | None, stem: str, header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[Path]:
    from curation.csv_table import as_csv
    from curation.storage import write_text

    if folder is None:
        return []
    path = folder / f"{stem}.csv"
    write_text(path, as_csv(header, rows))
    return [path]


def _write_sets(folder: Path, found: dict[str, SetSimilarity], result: dict[str, Any]) -> list[Path]:
    from curation.similarity.set_similarity import similarity_histograms
    from curation.storage import write_text

    rows = [
        (name, image, other, score, margin)
        for name, one in found.items()
        for image, other, score, margin in zip(
            one.ids, one.nearest, one.similarity.tolist(), one.margin.tolist(), strict=True
        )
    ]
    written = _write_csv(folder, "similarity", ("set", "id", "nearest", "similarity", "margin"), rows)
    written += similarity_histograms(
        {"nearest ID image": {name: one.similarity for name, one in found.items()}},
        folder / "histograms",
    )
    path = folder / "statistics.json"
    write_text(path, json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return [*written, path]
