"""The rows of open-set classification by classifier, variant and group, as expectations name them."""

from collections.abc import Iterator, Mapping
from typing import Any

from curation.evaluation.measures import Measured

TABLES = ("groups", "rates", "openset_accuracy", "classes", "class_rates")
CONFIDENCE = ("gamma_plus", "gamma_minus", "gamma", "gamma_minus_table2", "gamma_table2")
ACCURACY = ("iosa", "iosa_threshold", "oosa", "oosa_threshold")
Rows = list[dict[str, Any]]


def of_result(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a result, as its JSON has them, by classifier."""
    variants: dict[str, dict[str, tuple[dict[str, Any], dict[str, Rows]]]] = {name: {} for name in data["inputs"]}
    for one in data["scored"]:
        place = {key: one[key] for key in ("method", "variant")}
        rows = {name: [row for row in data[name] if place.items() <= row.items()] for name in ("measures", *TABLES)}
        values = {row["measure"]: row["value"] for row in rows.pop("measures")}
        variants[one["method"]][one["variant"]] = values, rows
    kinds = {one["method"]: one["operating_point"] for one in data["scored"]}
    found = {name: section(several) | {"background": kinds[name]["background"]}
             for name, several in variants.items() if several}  # fmt: skip
    return {"classifiers": found}


def of_measured(found: Mapping[str, Mapping[str, Measured]]) -> dict[str, Any]:
    """Return the same of what was measured of each classifier."""
    return {
        name: section({
            variant: (
                {value.measure: value.value for value in one.values},
                {key: [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
                 for key, table in one.tables.items()},
            )
            for variant, one in variants.items()
        })
        for name, variants in found.items()
    }  # fmt: skip


def section(variants: Mapping[str, tuple[dict[str, Any], dict[str, Rows]]]) -> dict[str, Any]:
    values, tables = variants.get("exact") or next(iter(variants.values()))
    test = by(tables["groups"], "samples")["test"]
    groups = by(test, "group")
    validation = by(tables["groups"], "samples").get("validation")
    rates = by(tables["class_rates"], "class")
    return {
        "n": sizes(test),
        "accuracy": values["accuracy"],
        "macro_accuracy": values["macro_accuracy"],
        "confidence": {group: confidence(row) for group, (row,) in groups.items()},
        "auroc": {
            group: {"auroc": row["AUROC"], "auroc_rest_as_known": row["AUROC_rest_as_known"]}
            for group, (row,) in groups.items()
        },
        "oscr": {variant: {group: curve("test", group, rows) for group in groups}
                 for variant, (_, rows) in variants.items()},
        "openset_accuracy": {
            group: {
                row["rule"]: {key: row[key] for key in ACCURACY} | ({"reason": row["reason"]} if row["reason"] else {})
                for row in rows
            }
            for group, rows in by(tables["openset_accuracy"], "group").items()
        },
        "validation": validation and {
            "n": sizes(validation),
            "confidence": {"negative": confidence(validation[0])},
            "oscr": {"exact": {"negative": curve("validation", "negative", tables)}},
        },
        "classes": [
            {
                **{key: row[key] for key in ("class", "n", "accuracy", "mean_score")},
                "ccr_at_fpr": {f"{one['group']}.{one['fpr']}": one["CCR"] for one in rates[row["class"]]},
            }
            for row in tables["classes"]
        ],
    }  # fmt: skip


def by(rows: Rows, key: str) -> dict[str, Rows]:
    return {name: [row for row in rows if row[key] == name] for name in dict.fromkeys(row[key] for row in rows)}


def sizes(rows: Rows) -> dict[str, int]:
    return {"known": rows[0]["n_known"], **{row["group"]: row["n"] for row in rows}}


def confidence(row: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in CONFIDENCE} | ({"reason": row["undefined"]} if row["undefined"] else {})


def curve(samples: str, group: str, tables: dict[str, Rows]) -> dict[str, Any]:
    (whole,), rates = ([row for row in tables[name] if (row["samples"], row["group"]) == (samples, group)]
                       for name in ("groups", "rates"))  # fmt: skip
    return {
        "n": whole["n"],
        "ccr_at_fpr": {row["fpr"]: row["CCR"] for row in rates},
        "macro_ccr_at_fpr": {row["fpr"]: row["macro_CCR"] for row in rates},
        "points": {row["fpr"]: {"threshold": row["threshold"], "fpr": row["reached_fpr"]} for row in rates},
        "sum_ccr": {"value": whole["sum_ccr"], "of": whole["summed"]},
        "smallest_fpr": whole["smallest_fpr"],
        "reason": {row["fpr"]: row["undefined"] for row in rates if row["undefined"]},
    }


def metrics(classifiers: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield every number of the classifiers under its path, ``oscr.exact.unknown.ccr_at_fpr.0.01``."""
    for name, one in classifiers.items():
        for key, value in one.items():
            if key not in ("classes", "validation"):
                yield from ((name, "test", *row) for row in leaves(value, key))
        for key, value in (one["validation"] or {}).items():
            yield from ((name, "val", *row) for row in leaves(value, key))


def leaves(value: Any, path: str) -> Iterator[tuple[str, float | None]]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from leaves(below, f"{path}.{key}")
    elif value is None or isinstance(value, int | float):
        yield path, value
