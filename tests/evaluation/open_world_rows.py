"""The rows of an open-world result by what was scored, as the plain evaluators and expectations name them."""

from collections.abc import Iterable, Mapping
from typing import Any

from curation.benchmarks.registry import report_of
from curation.evaluation.measures import Measured, Scored, declared_values

Row = tuple[str, str, Any, str]


def of_result(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the numbers of a result, as its JSON has them, by what was scored: ``t1/clean``."""
    sections = {}
    for one in found["scored"]:
        what = {key: one[key] for key in ("task", "variant")}

        def mine(name: str, what: Mapping[str, Any] = what) -> list[dict[str, Any]]:
            return [row for row in found[name] if what.items() <= row.items()]

        rows = [(row["measure"], row["parameters"], row["value"], row["undefined"]) for row in mine("measures")]
        tables = {name: mine(name) for name in ("classes", "unknown_classes", "impact", "counts")}
        sections[f"{one['task']}/{one['variant']}"] = {**section(rows, tables), "notes": one["notes"]}
    return sections


def of_measured(one: Measured, benchmark: str = "owod") -> dict[str, Any]:
    """Return the same of what one variant measured, with its long tables."""
    scored = Scored(variant="", method="", truth={}, predictions={}, found=one)
    rows = [
        (row.measure, ", ".join("=".join(pair) for pair in row.parameters.items()), row.value, row.undefined)
        for _, row in declared_values(scored, report_of(benchmark).measures)
    ]
    tables = {
        name: [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        for name, table in one.tables.items()
    }
    return {**section(rows, tables), "notes": list(one.notes), "unknown_curve": one.tables["unknown_curve"]}


def section(rows: Iterable[Row], tables: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    rows = list(rows)
    assert all((value is None) == bool(reason) for *_, value, reason in rows)
    impact = tables["impact"]
    counts = {row["count"]: row["value"] for row in tables["counts"]}
    kinds = ("all", "known", "unknown")
    return {
        **{measure: value for measure, parameters, value, _ in rows if not parameters},
        "WI_at_recall": {parameters[7:]: value for measure, parameters, value, _ in rows if parameters},
        "AP_per_class": {row["class"]: row["AP"] for row in tables["classes"][:-1]},
        "classes": tables["classes"],
        "unknown_per_class": {row["original_class"]: row for row in tables.get("unknown_classes", ())} or None,
        "WI_curve": {
            **{key: [row[key] for row in impact] for key in impact[0]},
            "classes_never_reaching": {
                row["recall"][:3]: [name for name in row["never_reached_by"].split(", ") if name]
                for row in impact[9:99:10]
            },
        },
        "WI_left_out": {row["class"]: row["left_out"] for row in tables["classes"] if row["left_out"]},
        "counts": counts | {"detections_per_image": {kind: counts[f"detections_per_image_{kind}"] for kind in kinds}},
        "undefined": {measure: reason for measure, parameters, _, reason in rows if reason and not parameters},
    }
