"""The rows of an OSOD-III result by case, as the plain evaluators and expectations name them."""

from collections.abc import Iterable, Mapping
from typing import Any

from curation.evaluation.measures import Measured

AVERAGES = ("AP_known", "AP_unk", "AP_known50", "AP_unk50", "AP_known75", "AP_unk75")
CURVE = ("theta", "TP", "FP", "AOSE", "FP_open", "WI", "WI_all_fp", "P_K", "P_KU")


def of_result(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the numbers of a result, as its JSON has them, by case."""
    cases: dict[str, list[dict[str, Any]]] = {}
    for one in data["scored"]:
        cases.setdefault(one["case"], []).append(one)

    def rows(name: str, one: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [row for row in data[name] if all(row[key] == one[key] for key in ("case", "variant"))]

    return {
        case: section(
            [(row["measure"], row["value"], row["undefined"]) for row in rows("measures", several[0])],
            {row["count"]: row["value"] for row in rows("counts", several[0])},
            {row["class"]: row["AP"] for row in rows("average_precision", several[0])},
            {one["variant"]: [{key: row[key] for key in CURVE} for row in rows("thresholds", one)] for one in several},
            several[0]["notes"],
        )
        for case, several in cases.items()
    }


def of_measured(found: Mapping[str, Measured]) -> dict[str, Any]:
    """Return the same of what the variants measured of one case."""
    one = next(iter(found.values()))
    columns = {name: zip(*one.tables[name].values(), strict=True) for name in ("counts", "average_precision")}
    curves = {
        variant: [
            dict(zip(CURVE, row, strict=True)) for row in zip(*measured.tables["thresholds"].values(), strict=True)
        ]
        for variant, measured in found.items()
    }
    values = [(row.measure, row.value, row.undefined) for row in one.values]
    return section(values, dict(columns["counts"]), dict(columns["average_precision"]), curves, one.notes)


def section(
    values: Iterable[tuple[str, Any, str]],
    counts: dict[str, int],
    classes: dict[str, Any],
    curves: dict[str, list[dict[str, Any]]],
    notes: Iterable[str],
) -> dict[str, Any]:
    values = list(values)
    return {
        **{measure: value for measure, value, _ in values if measure in AVERAGES},
        "AP_per_class": classes,
        "undefined": {measure: reason for measure, value, reason in values
                      if value is None and measure in ("AP_known", "AP_unk")},
        "curves": curves,
        "n": counts,
        "notes": list(notes),
    }  # fmt: skip
