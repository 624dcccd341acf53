"""What ``curation evaluate owod --out`` writes: figures, CSV tables, and the whole result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curation.cli.evaluate_files import finish
from curation.cli.output import warn

Result = Mapping[str, Any]
_COLUMNS = ("WI_points", "unknown_curve")
_POINTS = ("rank", "score", "recall", "kept", "kept_closed", "on_unknown")


def write_owod(result: Result, sections: Result, folder: Path) -> list[Path]:
    """Write figures with their CSV files, CSV tables, and last ``results.json``; each file whole or absent.

    Returns
    -------
    list of Path
        All files written, ``results.json`` last.
    """
    from curation.csv_table import as_csv
    from curation.storage import remove_abandoned, write_text

    remove_abandoned(folder)
    written = _figures(sections, folder)
    tables = {
        "metrics": (("task", "profile", "metric", "value"), _metric_rows(sections)),
        "classes": (("task", "profile", *_class_header(sections)), _class_rows(sections)),
        "unknown_classes": (
            ("task", "profile", "original_class", "metric", "value"),
            _unknown_rows(sections),
        ),
        "wilderness_points": (("task", "profile", "class", *_POINTS), _point_rows(sections)),
    }
    for stem, (header, rows) in tables.items():
        path = folder / f"{stem}.csv"
        write_text(path, as_csv(header, rows))
        written.append(path)
    return finish(without_columns(result, sections), written, folder)


def without_columns(result: Result, sections: Result) -> dict[str, Any]:
    """Return a result without the columns that have an entry for each object found: CSV files hold these."""
    return {
        name: {key: entry for key, entry in value.items() if key not in _COLUMNS}
        if name in sections
        else value
        for name, value in result.items()
    }


def _figures(sections: Result, folder: Path) -> list[Path]:
    from curation.benchmarks.owod.figures import impact_figure, unknown_figure

    written: list[Path] = []
    for profile in dict.fromkeys(section["profile"] for section in sections.values()):
        tasks = {
            section["task"]: section
            for section in sections.values()
            if section["profile"] == profile and section["num_unknown_gt"]
        }
        if not tasks:
            warn(f"no figures for profile {profile}: no task has unknown objects")
            continue
        written += impact_figure(tasks, folder / f"wilderness_impact_{profile}")
        written += unknown_figure(tasks, folder / f"unknown_recall_precision_{profile}")
    return written


def _metric_rows(sections: Result) -> Iterator[tuple[Any, ...]]:
    for section in sections.values():
        for name, value in section.items():
            if value is None or isinstance(value, int | float):
                yield section["task"], section["profile"], name, value
        for recall, value in section["WI_at_recall"].items():
            yield section["task"], section["profile"], f"WI_at_recall_{recall}", value


def _class_header(sections: Result) -> tuple[str, ...]:
    return tuple(next(iter(sections.values()))["classes"][0])


def _class_rows(sections: Result) -> Iterator[tuple[Any, ...]]:
    for section in sections.values():
        for row in section["classes"]:
            yield section["task"], section["profile"], *row.values()


def _unknown_rows(sections: Result) -> Iterator[tuple[Any, ...]]:
    for section in sections.values():
        for original, row in (section["unknown_per_class"] or {}).items():
            for metric, value in row.items():
                yield section["task"], section["profile"], original, metric, value


def _point_rows(sections: Result) -> Iterator[tuple[Any, ...]]:
    for section in sections.values():
        for name, columns in section["WI_points"].items():
            for point in zip(*(columns[key] for key in _POINTS), strict=True):
                yield section["task"], section["profile"], name, *point
