"""The rows of image-level OOD detection by run, list, setting, variant and set, as plain evaluators name them."""

from collections.abc import Mapping
from typing import Any

NUMBERS = ("AUROC", "AUPR_IN", "AUPR_OUT", "FPR95", "ACC")
PLACES = ("method", "split", "task", "variant", "case")


def of_result(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a result, as its JSON has them."""
    found: dict[tuple[str, ...], dict[str, Any]] = {place_of(one): {} for one in data["scored"]}
    for row in data["measures"]:
        found[place_of(row)][row["measure"]] = row
    runs: dict[str, Any] = {}
    for place, rows in found.items():
        below(runs, place[:-1])[place[-1]] = section(place[-1], rows, data)
    summary = runs.pop("mean", None) if len(data["inputs"]) > 1 else None
    return {"runs": runs, "summary": summary}


def place_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple("published" if key == "split" and not row[key] else row[key] for key in PLACES)


def below(tree: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    for key in keys:
        tree = tree.setdefault(key, {})
    return tree


def section(name: str, rows: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    runs = {"runs": len(data["inputs"])} if "AUROC_std" in rows else {}
    n = {"id": rows["AUPR_IN"]["n"], "ood": rows["AUROC"]["n"], "sets": len(data["groups"].get(name, (name,)))}
    reasons = {key: rows[key]["undefined"] for key in NUMBERS if rows[key]["value"] is None}
    std = {"std": {key: rows[f"{key}_std"]["value"] for key in NUMBERS}} if runs else {}
    return {"n": n | runs, **{key: rows[key]["value"] for key in NUMBERS}, **std, "undefined": reasons}
