"""``curation neighbors``: nearest images of a reference set, set similarity, and near classes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.output import Table, emit, table_lines
from curation.cli.outputs import OutputFolder
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.similarity.embeddings import Embeddings
    from curation.similarity.set_similarity import SetSimilarity

_SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``curation neighbors``."""
    parser.add_argument(
        "--queries",
        action="append",
        required=True,
        metavar="[NAME=]STORE",
        help="what to look for: a store of curation embed; several with --set-similarity",
    )
    parser.add_argument("--references", type=Path, required=True, metavar="STORE", help="where to look")
    parser.add_argument(
        "-k",
        type=int,
        default=10,
        metavar="K",
        help="neighbours of each, the image itself not among them (default: %(default)s)",
    )
    parser.add_argument(
        "--engine", choices=("auto", "torch", "numpy", "faiss"), default="auto", help="all are exact"
    )
    parser.add_argument(
        "--set-similarity",
        action="store_true",
        help="compare whole sets: similarity of each image to its nearest in a sample of the references",
    )
    parser.add_argument(
        "--sample",
        choices=("hashrank", "paper", "all"),
        default="hashrank",
        help="of the references (default: %(default)s)",
    )
    parser.add_argument(
        "--n-train", type=int, metavar="N", help="training images of the ID set, for --sample paper"
    )
    parser.add_argument(
        "--out",
        type=OutputFolder(("neighbors.csv", "similarity.csv", "statistics.json"), ("histograms",)),
        metavar="DIR",
        help="write neighbors.csv or similarity.csv, and a figure",
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")


def run(options: argparse.Namespace) -> int:
    """Search, print, and write what ``--out`` asks for."""
    from curation.similarity.store import open_embeddings

    named = _named(options.queries)
    references = open_embeddings(options.references)
    queries = {name: open_embeddings(path) for name, path in named.items()}
    if options.set_similarity:
        return _sets(options, queries, references)
    if len(queries) > 1:
        raise UsageError(
            "Neighbours are listed for one set", expected="one --queries STORE, or --set-similarity"
        )
    return _neighbors(options, next(iter(queries.values())), references)


def _named(texts: list[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        key, value = (name, path) if equals and name and path else (Path(text).name, text)
        if key in found:
            raise UsageError("--queries names a set twice", where=text[:200], expected="--queries NAME=STORE")
        found[key] = Path(value)
    return found


def _neighbors(options: argparse.Namespace, queries: Embeddings, references: Embeddings) -> int:
    from curation.similarity.neighbors import nearest_others
    from curation.similarity.set_similarity import require_same_encoder

    require_same_encoder(queries, references)
    places, scores, itself = nearest_others(queries, references, options.k, engine=options.engine)
    rows = [
        (name, rank, references.ids[place], score)
        for name, row, values in zip(queries.ids, places.tolist(), scores.tolist(), strict=True)
        for rank, (place, score) in enumerate(zip(row, values, strict=True), 1)
    ]
    written = _write_csv(options, "neighbors", ("id", "rank", "neighbor", "similarity"), rows)
    result = {
        "queries": len(queries.ids),
        "references": len(references.ids),
        "k": options.k,
        "queries_among_references": itself,
        "encoder": queries.encoder.digest,
        "neighbors": [
            {"id": name, "rank": rank, "neighbor": other, "similarity": score}
            for name, rank, other, score in rows
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
    emit(result, [*lines, *(f"wrote {path}" for path in written)], as_json=options.json)
    return 0


def _sets(options: argparse.Namespace, queries: dict[str, Embeddings], references: Embeddings) -> int:
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
    written = _write_sets(options, found, result) if options.out else []
    told = (
        f"ID images to each other, leave one out: median {_number(base.median)}, sigma {_number(base.sigma)}"
    )
    emit(result, [*table_lines(table), told, *(f"wrote {path}" for path in written)], as_json=options.json)
    return 0


def _statistics_row(name: str, one: dict[str, Any]) -> tuple[str, ...]:
    quantiles = one["quantiles"]
    numbers = (one["mean"], one["std"], quantiles["0.05"], quantiles["0.5"], quantiles["0.95"])
    return name, str(one["n"]), *(_number(value) for value in numbers)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _write_csv(
    options: argparse.Namespace, stem: str, header: tuple[str, ...], rows: list[tuple[Any, ...]]
) -> list[Path]:
    from curation.csv_table import as_csv
    from curation.storage import write_text

    if options.out is None:
        return []
    path = options.out / f"{stem}.csv"
    write_text(path, as_csv(header, rows))
    return [path]


def _write_sets(
    options: argparse.Namespace, found: dict[str, SetSimilarity], result: dict[str, Any]
) -> list[Path]:
    from curation.similarity.similarity_figures import similarity_histograms
    from curation.storage import write_text

    rows = [
        (name, image, other, score, margin)
        for name, one in found.items()
        for image, other, score, margin in zip(
            one.ids, one.nearest, one.similarity.tolist(), one.margin.tolist(), strict=True
        )
    ]
    written = _write_csv(options, "similarity", ("set", "id", "nearest", "similarity", "margin"), rows)
    written += similarity_histograms(
        {"nearest ID image": {name: one.similarity for name, one in found.items()}},
        options.out / "histograms",
    )
    path = options.out / "statistics.json"
    write_text(path, json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return [*written, path]
