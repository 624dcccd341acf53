"""What ``curation evaluate --out`` writes: figures, CSV tables, and the whole result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.cli.evaluate_tables import sections_of
from curation.cli.outputs import Output, OutputFolder

WRITTEN: dict[str, Output] = {
    "elephant": OutputFolder(
        ("results.json", "fbeta.csv", "average_precision.csv", "wilderness_impact.csv"),
        ("wilderness_curve", "error_diagnosis", "confusion", "precision_recall", "background_gap"),
    ),
    "owod": OutputFolder(
        ("results.json", "metrics.csv", "classes.csv", "unknown_classes.csv", "wilderness_points.csv"),
        ("wilderness_impact_*", "unknown_recall_precision_*"),
    ),
    "osod3": OutputFolder(("results.json", "average_precision.csv", "thresholds.csv"), ("open_set_error_*",)),
    "findmeifyoucan": OutputFolder(("results.json", "metrics.csv"), ("metrics_*", "scores_*")),
    "imagenet": OutputFolder(
        ("results.json", "metrics.csv", "classes.csv"), ("oscr_*", "scores", "confidence")
    ),
}
"""What each protocol may write into ``--out``: looked at before an evaluation begins."""

Result = Mapping[str, Any]
CsvTable = tuple[tuple[str, ...], list[tuple[Any, ...]]]


def write_results(result: Result, curves: Result, folder: Path) -> list[Path]:
    """Write figures with their CSV files, CSV tables, and last ``results.json``; each file whole or absent.

    Returns
    -------
    list of Path
        All files written, ``results.json`` last.
    """
    from curation.csv_table import as_csv
    from curation.storage import remove_abandoned, write_text

    remove_abandoned(folder)
    name = _detector(result)
    written = _elephant_figures(result, curves, folder, name)
    for stem, (header, rows) in _csv_tables(result).items():
        path = folder / f"{stem}.csv"
        write_text(path, as_csv(header, rows))
        written.append(path)
    return finish(result, written, folder)


def finish(result: Result, written: Sequence[Path], folder: Path) -> list[Path]:
    """Write ``results.json``, which names its files, and remove those of an earlier run that this one did not write.

    Only what the earlier ``results.json`` calls its own, and nobody changed since, is removed.
    """
    from curation.storage import remove_written, write_text

    path = folder / "results.json"
    names = [one.name for one in written]
    for name in _written_before(path):
        if name not in names:
            remove_written(folder / name)
    content = {**result, "written": names}
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return [*written, path]


def _written_before(path: Path) -> list[str]:
    """Return the plain names of figures and tables that an earlier result says it wrote; none if it is unreadable."""
    try:
        names = json.loads(path.read_bytes())["written"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    suffixes = (".png", ".svg", ".csv")
    return [
        name
        for name in (names if isinstance(names, list) else [])
        if isinstance(name, str) and name.endswith(suffixes) and Path(name).name == name
    ]


def _elephant_figures(result: Result, curves: Result, folder: Path, name: str) -> list[Path]:
    from curation.benchmarks.elephant.confusion import full_matrix
    from curation.benchmarks.elephant.figures import (
        background_histogram,
        confusion_figure,
        error_bars,
        wilderness_curve,
    )
    from curation.evaluation.figures import precision_recall_curves

    section_name, section = _first_section(result)
    note = f"profile {section_name.replace('_', ' ')}"
    recall = "0.3" if "0.3" in result["diagnosis"] else next(iter(result["diagnosis"]))
    # The intervals are those of the paper's reading: they are not drawn around another.
    is_paper = section_name.startswith("paper")
    bands = {name: result["bootstrap"]} if is_paper and result["bootstrap"] is not None else None
    written = wilderness_curve({name: section}, folder / "wilderness_curve", intervals=bands, note=note)
    diagnosis = result["diagnosis"][recall]
    if any(counts is not None for counts in diagnosis["closed"]["per_class"].values()):
        written += error_bars({name: result["diagnosis"]}, folder / "error_diagnosis", recall=recall)
    shown = diagnosis["wr1"] or diagnosis["closed"]
    matrix = full_matrix(shown, result["classes"], result["true_classes"])
    written += confusion_figure(matrix, folder / "confusion", note=f"recall {recall}")
    if curves:
        marks = {name: section["thresholds"]} if "thresholds" in section else None
        written += precision_recall_curves(
            {name: curves}, folder / "precision_recall", thresholds=marks, note="closed set"
        )
    if result["background_gap"] and any(gap["hist20"] for gap in result["background_gap"].values()):
        written += background_histogram(result["background_gap"], folder / "background_gap")
    return written


def _csv_tables(result: Result) -> dict[str, CsvTable]:
    tables: dict[str, CsvTable] = {
        "fbeta": (
            ("class", "ratio", "beta", "F", "precision", "recall", "threshold", "TP", "FP", "n"),
            [
                (
                    name,
                    ratio,
                    beta,
                    *(point[key] for key in ("F", "precision", "recall", "threshold", "TP", "FP", "n")),
                )
                for name, by_ratio in result["fbeta"].items()
                for ratio, by_beta in by_ratio.items()
                for beta, point in by_beta.items()
            ],
        )
    }
    sections = {name: section for name, section in sections_of(result).items() if "AP11" in section}
    if sections:
        tables["average_precision"] = (
            ("section", "ratio", "class", "AP11", "AP_area"),
            [
                (section_name, level, name, ap, section["AP_area"][level][name])
                for section_name, section in sections.items()
                for level, by_class in section["AP11"].items()
                for name, ap in by_class.items()
            ],
        )
        tables["wilderness_impact"] = (
            ("section", "recall", "class", "ratio", "FP_o", "WI"),
            [(name, *row) for name, section in sections.items() for row in _impact_rows(section)],
        )
    return tables


def _impact_rows(section: Result) -> Iterable[tuple[Any, ...]]:
    for recall, impact in section["WI"].items():
        for name, values in impact["per_class"].items():
            if values is not None:
                for level, opened, value in zip(
                    section["levels"], impact["fp_open"][name], values, strict=True
                ):
                    yield recall, name, level, opened, value


def _first_section(result: Result) -> tuple[str, Any]:
    return next(iter(sections_of(result).items()))


def _detector(result: Result) -> str:
    return Path(next(iter(result["inputs"].values()))["detections"]["name"]).stem
