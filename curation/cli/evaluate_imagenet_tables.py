"""What ``curation evaluate imagenet`` prints, and what its ``--out`` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.cli.evaluate_files import finish
from curation.cli.output import Table, table_lines, warn

if TYPE_CHECKING:
    from curation.evaluation.class_scores import ClassScores
    from curation.evaluation.confidence import Epochs

Result = Mapping[str, Any]
_GROUPS = ("negative", "unknown")
_WORST = 5


def imagenet_lines(result: Result) -> list[str]:
    """Return the tables of a result for the eye."""
    tables = [_inputs(result), _summary(result)]
    tables += [_rates(result, group) for group in _GROUPS if _has(result, group)]
    tables += [_classes(name, one) for name, one in result["classifiers"].items() if one["classes"]]
    if result["bootstrap"] is not None:
        tables += list(_bootstrap(result["bootstrap"]))
    return [line for table in tables for line in table_lines(table)]


def write_imagenet(
    result: Result, scores: Mapping[str, ClassScores], runs: Mapping[str, Epochs], folder: Path
) -> list[Path]:
    """Write figures with their CSV files, CSV tables, and last ``results.json``; each file whole or absent."""
    from curation.csv_table import as_csv
    from curation.storage import remove_abandoned, write_text

    remove_abandoned(folder)
    written = _figures(result, scores, runs, folder)
    for stem, (header, rows) in _csv_tables(result).items():
        path = folder / f"{stem}.csv"
        write_text(path, as_csv(header, rows))
        written.append(path)
    return finish(result, written, folder)


def _figures(
    result: Result, scores: Mapping[str, ClassScores], runs: Mapping[str, Epochs], folder: Path
) -> list[Path]:
    from curation.evaluation.oscr_figures import confidence_figure, oscr_figure, score_histograms

    drawable = any(one["n"]["known"] and any(one["n"][group] for group in _GROUPS) for one in _ones(result))
    if not drawable:
        warn("no curves: they need known and other samples")
    written: list[Path] = []
    for grid in result["grids"] if drawable else ():
        shown = {name: data for name, data in scores.items() if grid in result["classifiers"][name]["oscr"]}
        if shown:
            written += oscr_figure(shown, folder / f"oscr_{grid}", grid=grid)
    written += score_histograms(scores, folder / "scores")
    return written + (confidence_figure(runs, folder / "confidence") if runs else [])


def _csv_tables(result: Result) -> dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]]]]:
    return {
        "metrics": (("classifier", "part", "metric", "value"), list(_metric_rows(result))),
        "classes": (
            ("classifier", "class", "n", "accuracy", "mean_score", *_class_header(result)),
            [
                (
                    name,
                    row["class"],
                    row["n"],
                    row["accuracy"],
                    row["mean_score"],
                    *row["ccr_at_fpr"].values(),
                )
                for name, one in result["classifiers"].items()
                for row in one["classes"]
            ],
        ),
    }


def _class_header(result: Result) -> tuple[str, ...]:
    return tuple(f"ccr_at_fpr_{group}_{query}" for group in _GROUPS for query in result["queries"])


def _metric_rows(result: Result) -> Iterator[tuple[Any, ...]]:
    """Yield every number of a result under its path, ``oscr.exact.unknown.ccr_at_fpr.0.01``."""
    for name, one in result["classifiers"].items():
        for key, value in one.items():
            if key not in ("classes", "validation"):
                yield from ((name, "test", *row) for row in _leaves(value, key))
        if one["validation"] is not None:
            for key, value in one["validation"].items():
                yield from ((name, "val", *row) for row in _leaves(value, key))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, float | None]]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _leaves(below, f"{path}.{key}")
    elif value is None or isinstance(value, int | float):
        yield path, value


def _inputs(result: Result) -> Table:
    rows = [
        (name, what, f"{file['name']} ({file['rows']})", file["sha256"][:19], file["kind"], file["labels_from"],
         "; ".join(f"{reason}: {count}" for reason, count in file["reported"].items()))
        for name, files in result["inputs"].items()
        for what, file in files.items()
        if file is not None
    ]  # fmt: skip
    if result["manifest"] is not None:
        manifest = result["manifest"]
        rows.append(
            ("", "manifest", f"{manifest['name']} {manifest['version']}", manifest["digest"][:19], "", "", "")
        )
    heads = ("classifier", "", "file", "digest", "kind", "labels from", "reported")
    return Table("Inputs", heads, tuple(rows))


def _summary(result: Result) -> Table:
    rows: list[tuple[str, ...]] = []
    ones = _ones(result)
    rows.append(
        ("samples known/negative/unknown", *("/".join(str(n) for n in one["n"].values()) for one in ones))
    )
    rows += [
        (key.replace("_", " "), *(_number(one[key]) for one in ones))
        for key in ("accuracy", "macro_accuracy")
    ]
    rows.append(("gamma+", *(_number(one["confidence"]["unknown"]["gamma_plus"]) for one in ones)))
    for group in _GROUPS:
        if not _has(result, group):
            continue
        for label, key in (("gamma-", "gamma_minus"), ("gamma", "gamma")):
            rows.append((f"{label}, {group}", *(_number(one["confidence"][group][key]) for one in ones)))
        rows.append((f"AUROC, {group}", *(_number(one["auroc"][group]["auroc"]) for one in ones)))
        for label, key in (("best OSA", "iosa"), ("OSA at validation threshold", "oosa")):
            values = (_number(one["openset_accuracy"][group]["strict"][key]) for one in ones)
            rows.append((f"{label}, {group}", *values))
    if any(one["validation"] is not None for one in ones):
        rows.append(
            (
                "validation gamma, negative",
                *(
                    "-" if one["validation"] is None
                    else _number(one["validation"]["confidence"]["negative"]["gamma"])
                    for one in ones
                ),
            )
        )  # fmt: skip
    rows += (
        [
            (
                "epoch kept",
                *(_epoch(result["epochs"].get(name)) for name in result["classifiers"]),
            )
        ]
        if result["epochs"]
        else []
    )
    return Table("Measures", ("", *result["classifiers"]), tuple(rows))


def _rates(result: Result, group: str) -> Table:
    rows = []
    for name, one in result["classifiers"].items():
        for grid, sections in one["oscr"].items():
            section = sections[group]
            rates = [_number(section["ccr_at_fpr"][query]) for query in result["queries"]]
            macro = [_number(section["macro_ccr_at_fpr"][query]) for query in result["queries"]]
            total = section["sum_ccr"]
            rows.append(
                (
                    name,
                    grid,
                    *(f"{rate} ({mean})" for rate, mean in zip(rates, macro, strict=True)),
                    f"{_number(total['value'])} of {total['of']}",
                    _number(section["smallest_fpr"]),
                )
            )
    heads = (
        "classifier", "grid", *(f"CCR@{query}" for query in result["queries"]), "sum", "smallest FPR above 0",
    )  # fmt: skip
    title = f"CCR at FPR on {group} samples (in brackets: mean over classes)"
    return Table(title, heads, tuple(rows))


def _classes(name: str, one: Result) -> Table:
    """Return the classes of lowest accuracy."""
    told = [row for row in one["classes"] if row["accuracy"] is not None]
    worst = sorted(told, key=lambda row: (row["accuracy"], row["class"]))[:_WORST]
    rows = tuple((row["class"], str(row["n"]), _number(row["accuracy"])) for row in worst)
    return Table(f"{name}: classes of lowest accuracy, of {len(told)}", ("class", "n", "accuracy"), rows)


def _bootstrap(bootstrap: Result) -> Iterator[Table]:
    percent = f"{100 * float(bootstrap['confidence']):g} %"
    note = f"{percent} intervals over classes, {bootstrap['replicates']} replicates, seed {bootstrap['seed']}"
    names = list(bootstrap["intervals"])
    measures = list(bootstrap["intervals"][names[0]])
    rows = tuple(
        (measure, *(_interval(bootstrap["intervals"][name][measure]) for name in names))
        for measure in measures
    )
    yield Table(note, ("", *names), rows)
    told = {name: found for name, found in bootstrap["differences"].items() if "reason" not in found}
    if told:
        rows = tuple(
            (measure, *(_interval(found[measure]) for found in told.values())) for measure in measures
        )
        yield Table(f"Differences to {bootstrap['differences_to']}, paired", ("", *told), rows)


def _interval(cell: Result) -> str:
    if cell["low"] is None:
        return "-"
    return f"{cell['estimate']:.4f} [{cell['low']:.4f}, {cell['high']:.4f}]"


def _ones(result: Result) -> list[Any]:
    return list(result["classifiers"].values())


def _has(result: Result, group: str) -> bool:
    return any(one["n"][group] for one in _ones(result))


def _epoch(run: Mapping[str, int | None] | None) -> str:
    return "-" if run is None or run["kept"] is None else str(run["kept"])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
