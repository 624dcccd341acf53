"""What ``curation evaluate osod3`` prints and writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curation.cli.evaluate_files import finish
from curation.cli.evaluate_tables import order_tables
from curation.cli.output import Table, table_lines

Result = Mapping[str, Any]
_CURVE = ("theta", "TP", "FP", "A_OSE", "FP_open", "WI", "WI_all_fp", "P_K", "P_KU")
_AVERAGES = ("AP_known", "AP_known50", "AP_known75", "AP_unk", "AP_unk50", "AP_unk75")
_SHOWN_THETAS = 6


def osod3_lines(result: Result) -> list[str]:
    """Return the tables of a result for the eye."""
    tables = [_inputs(result), _averages(result)]
    for case, section in result["cases"].items():
        tables += [_curve(case, profile, rows) for profile, rows in section["curves"].items()]
    orders = {
        f"{case}, {name}": record
        for case, section in result["cases"].items()
        for name, record in section["input_order"].items()
    }
    tables += order_tables(orders)
    return [line for table in tables for line in table_lines(table)]


def _inputs(result: Result) -> Table:
    rows = []
    for case, files in result["inputs"].items():
        n = result["cases"][case]["n"]
        for what, names in (
            ("truth", ", ".join(one["name"] for one in files["truth"]["files"])),
            ("detections", files["detections"]["name"]),
        ):
            size = (
                f"{n['images']} images, {n['objects']} objects"
                if what == "truth"
                else f"{n['detections']} boxes"
            )
            told = files[what]["reported"]
            rows.append(
                (case, what, names, size, "; ".join(f"{key}: {value}" for key, value in told.items()))
            )
    return Table("Inputs", ("case", "", "file", "holds", "reported"), tuple(rows))


def _averages(result: Result) -> Table:
    first = next(iter(result["cases"].values()))
    rows = [
        (case, section["taxonomy"], *(_percent(section[name]) for name in _AVERAGES))
        for case, section in result["cases"].items()
    ]
    if len(rows) > 1:
        over = result["over_cases"]
        rows.append(("mean ± std (population)", "", *(_spread(over[name]) for name in _AVERAGES)))
    return Table(
        f"Average precision in %, {first['outside'].split(':')[0]}",
        ("case", "problem", *_AVERAGES),
        tuple(rows),
    )


def _curve(case: str, profile: str, rows: list[dict[str, Any]]) -> Table:
    step = max(1, -(-len(rows) // _SHOWN_THETAS))
    shown = [rows[place] for place in sorted({*range(0, len(rows), step), len(rows) - 1})]
    cells = tuple(
        tuple(f"{row[name]:g}" if name == "theta" else _number(row[name]) for name in _CURVE[:7])
        for row in shown
    )
    return Table(
        f"{case}, profile {profile}: detections of known classes with score >= theta", _CURVE[:7], cells
    )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _spread(over: Mapping[str, Any]) -> str:
    return "-" if over["mean"] is None else f"{over['mean']:.2f} ± {over['std_population']:.2f}"


def _number(value: float | None) -> str:
    return "-" if value is None else str(value) if isinstance(value, int) else f"{value:.4f}"


def write_osod3(result: Result, folder: Path) -> list[Path]:
    """Write figures with their CSV files, CSV tables, and last ``results.json``; each file whole or absent."""
    from curation.benchmarks.osod3.figures import threshold_figure
    from curation.csv_table import as_csv
    from curation.storage import remove_abandoned, write_text

    remove_abandoned(folder)
    written = []
    for profile in result["profiles"]:
        curves = {case: section["curves"][profile] for case, section in result["cases"].items()}
        written += threshold_figure(curves, folder / f"open_set_error_{profile}")
    tables = {
        "average_precision": (("case", "class", "AP"), _class_rows(result)),
        "thresholds": (("case", "profile", *_CURVE), _curve_rows(result)),
    }
    for stem, (header, rows) in tables.items():
        path = folder / f"{stem}.csv"
        write_text(path, as_csv(header, rows))
        written.append(path)
    return finish(result, written, folder)


def _class_rows(result: Result) -> Iterator[tuple[Any, ...]]:
    for case, section in result["cases"].items():
        for name in _AVERAGES:
            yield case, name, section[name]
        for name, value in section["AP_per_class"].items():
            yield case, name, value


def _curve_rows(result: Result) -> Iterator[tuple[Any, ...]]:
    for case, section in result["cases"].items():
        for profile, rows in section["curves"].items():
            for row in rows:
                yield case, profile, *(row[name] for name in _CURVE)
