"""What ``curation evaluate findmeifyoucan --out`` writes: figures, CSV tables, and the whole result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curation.cli.evaluate_files import finish
from curation.cli.evaluate_findmeifyoucan_tables import COUNTS, PROFILES, RATES, SEPARABILITY
from curation.cli.output import warn

Result = Mapping[str, Any]
_PLAIN = (
    *SEPARABILITY, "threshold", "threshold_zscore", "threshold_quantile", "threshold_margin",
    "id_share_at_least_threshold", "images", "images_without_predictions", "pct_images_without_predictions",
)  # fmt: skip


def write_findmeifyoucan(
    result: Result, scores: Mapping[tuple[str, str], tuple[Any, Any]], folder: Path
) -> list[Path]:
    """Write figures with their CSV files, CSV tables, and last ``results.json``; each file whole or absent.

    Parameters
    ----------
    scores : mapping of (split, method) to ID scores and OOD scores
        For the histograms.

    Returns
    -------
    list of Path
        All files written, ``results.json`` last.
    """
    from curation.csv_table import as_csv
    from curation.storage import remove_abandoned, write_text

    remove_abandoned(folder)
    written = _figures(result["results"], scores, folder)
    path = folder / "metrics.csv"
    write_text(path, as_csv(("split", "score", "profile", "metric", "value"), _rows(result["results"])))
    return finish(result, [*written, path], folder)


def _figures(results: Result, scores: Mapping[tuple[str, str], tuple[Any, Any]], folder: Path) -> list[Path]:
    from curation.evaluation.ood.figures import metric_bars, score_histograms

    written: list[Path] = []
    sections = list(results.values())
    for profile in PROFILES:
        if any(one.get(profile) for one in sections):
            written += metric_bars(sections, profile, folder / f"metrics_{profile}")
    for number, method in enumerate(dict.fromkeys(method for _, method in scores)):
        drawn = {
            split: pair for (split, name), pair in scores.items() if name == method and all(map(len, pair))
        }
        if not drawn:
            warn(f"no histogram of {method}: a split needs ID and OOD detections")
            continue
        thresholds = {one["split"]: one["threshold"] for one in sections if one["method"] == method}
        written += score_histograms(drawn, thresholds, method, folder / f"scores_{_stem(method, number)}")
    return written


def _stem(method: str, number: int) -> str:
    """Return a method's name where it can be part of a file name, else its place."""
    return method if method.isascii() and method.isidentifier() and len(method) <= 40 else f"{number + 1}"


def _rows(results: Result) -> Iterator[tuple[Any, ...]]:
    for one in results.values():
        place = one["split"], one["method"]
        for name in _PLAIN:
            yield *place, "", name, one[name]
        for name, value in one["counts"].items():
            yield *place, "", name, value
        for profile in PROFILES:
            section = one.get(profile)
            for name in (*RATES, *COUNTS) if section else ():
                yield *place, profile, name, section["unrounded"].get(name, section[name])
