"""What ``curation evaluate findmeifyoucan`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curation.cli.output import Table, table_lines

Result = Mapping[str, Any]
SEPARABILITY = (
    "AUROC", "AUPR_trapezoid", "AUPR_step", "FPR95_first", "FPR95_nearest_vos", "FPR95_ood_positive",
)  # fmt: skip
RATES = ("nOSE", "AP_U", "P_U", "R_U")
COUNTS = (
    "n_unknown_gt", "n_det", "n_det_unknown", "n_det_known", "TP_U", "FP_U", "AOSE", "objects_misclassified",
    "objects_ignored",
)  # fmt: skip
PROFILES = ("official", "paper")


def findmeifyoucan_lines(result: Result) -> list[str]:
    """Return the tables of a result for the eye."""
    results = result["results"]
    tables = [_inputs(result), _separability(result, results)]
    tables += [_open_set(name, results) for name in PROFILES if name in next(iter(results.values()))]
    if any(section["intervals"] for section in results.values()):
        tables.append(_intervals(results))
    if notes := _notes(results):
        tables.append(notes)
    return [line for table in tables for line in table_lines(table)]


def _inputs(result: Result) -> Table:
    rows: list[tuple[str, ...]] = []
    for split, inputs in result["inputs"].items():
        told = _reported(inputs["truth"])
        rows += [(split, "truth", one["name"], one["sha256"][:19], told) for one in inputs["truth"]["files"]]
        for kind in ("detections", "id_scores"):
            one = inputs[kind]
            rows.append((split, kind, f"{one['name']} ({one['rows']})", one["sha256"][:19], _reported(one)))
    if result["manifest"] is not None:
        manifest = result["manifest"]
        rows.append(
            ("", "manifest", f"{manifest['name']} {manifest['version']}", manifest["digest"][:19], "")
        )
    t_star = result["settings"]["t_star"]
    title = f"Inputs; t* {'not stated, files taken as cut already' if t_star is None else t_star}"
    return Table(title, ("split", "", "file", "digest", "reported"), tuple(rows))


def _reported(record: Result) -> str:
    return "; ".join(f"{reason}: {count}" for reason, count in record["reported"].items())


def _separability(result: Result, results: Result) -> Table:
    chosen = result["settings"]["fpr"]["rule"]
    rows = [(name, *(_share(one[name]) for one in results.values())) for name in SEPARABILITY]
    rule = result["settings"]["threshold"]
    rows += [
        (f"threshold ({rule['rule']})", *(_number(one["threshold"]) for one in results.values())),
        (
            "ID scores >= threshold, %",
            *(_share(one["id_share_at_least_threshold"]) for one in results.values()),
        ),
        ("ID detections", *(str(one["counts"]["id_detections"]) for one in results.values())),
        ("OOD detections", *(str(one["counts"]["ood_detections"]) for one in results.values())),
        (
            "images without predictions, %",
            *(_images_without(one) for one in results.values()),
        ),
    ]
    return Table(
        f"Separability in %, ID positive (FPR95_ood_positive apart); FPR95 is rule {chosen}",
        ("", *results),
        tuple(rows),
    )


def _open_set(profile: str, results: Result) -> Table:
    sections = {name: one[profile] for name, one in results.items()}
    rows = [
        (name, *("-" if one is None else _number(one[name], 3) for one in sections.values()))
        for name in RATES
    ]
    rows += [
        (name, *("-" if one is None else str(one[name]) for one in sections.values())) for name in COUNTS
    ]
    counted = "detections" if profile == "official" else "objects"
    return Table(
        f"Open-set metrics, profile {profile}: rates in %, nOSE counts {counted}",
        ("", *sections),
        tuple(rows),
    )


def _intervals(results: Result) -> Table:
    names = list(
        dict.fromkeys(
            name for one in results.values() if one["intervals"] for name in one["intervals"]["metrics"]
        )
    )
    rows = tuple((name, *(_interval(one["intervals"], name) for one in results.values())) for name in names)
    return Table("95 % bootstrap intervals over images", ("", *results), rows)


def _interval(intervals: Result | None, name: str) -> str:
    one = None if intervals is None else intervals["metrics"].get(name)
    return "-" if one is None or one["low"] is None else f"{one['low']:.3f} … {one['high']:.3f}"


def _notes(results: Result) -> Table | None:
    rows = []
    for name, one in results.items():
        told = [*one["notes"], *(f"{key}: {reason}" for key, reason in one["undefined"].items())]
        for profile in PROFILES:
            told += [f"{profile}: {note}" for note in (one.get(profile) or {}).get("notes", ())]
        rows += [(name, text) for text in dict.fromkeys(told)]
    return Table("Notes", ("", ""), tuple(rows)) if rows else None


def _images_without(one: Result) -> str:
    share = _number(one["pct_images_without_predictions"], 2)
    return f"{share} ({one['images_without_predictions']}/{one['images']})"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3f}"


def _number(value: float | None, places: int = 4) -> str:
    return "-" if value is None else f"{value:.{places}f}"
