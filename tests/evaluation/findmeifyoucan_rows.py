"""The rows of a result of FindMeIfYouCan by split and score, as the plain evaluators and expectations name them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

RATES = ("nOSE", "AP_U", "P_U", "R_U")
COUNTS = ("n_unknown_gt", "TP_U", "FP_U", "AOSE", "objects_misclassified", "objects_ignored")
SEPARABILITY = (
    "AUROC", "AUPR_trapezoid", "AUPR_step", "FPR95_first", "FPR95_nearest_vos", "FPR95_ood_positive",
)  # fmt: skip
PLAIN = (
    *SEPARABILITY, "threshold", "threshold_zscore", "threshold_quantile", "threshold_margin",
    "id_share_at_least_threshold", "images", "images_without_predictions", "pct_images_without_predictions",
)  # fmt: skip
Values = Mapping[str, tuple[Any, str]]
"""Value of each measure, and why there is none."""


def of_result(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the numbers of a result, as its JSON has them, by split and score."""
    places: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in data["scored"]:
        places.setdefault((one["split"], one["score"]), []).append(one)
    splits = [split for split, _ in places]

    def rows(name: str, one: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [row for row in data.get(name, ()) if all(row[key] == one[key] for key in ("split", "score", "variant"))]

    found = {}
    for (split, score), several in places.items():
        variants = {
            one["variant"]: of_variant(
                {row["measure"]: (row["value"], row["undefined"]) for row in rows("measures", one)},
                {row["detail"]: row["value"] for row in rows("details", one)},
                {row["measure"]: {key: row[key] for key in ("estimate", "low", "high", "undefined")}
                 for row in rows("intervals", one)},
                one["notes"],
            )
            for one in several
        }  # fmt: skip
        method = score or "ood_score"
        settings = {"split": split, "method": method, "threshold_rule": data["settings"]["threshold"]["rule"]}
        section = joined(variants) | settings
        section["FPR95"]["rule"] = data["settings"]["fpr"]["rule"]
        found[split if splits.count(split) == 1 else f"{split}/{method}"] = section
    return found


def of_variant(
    values: Values, details: Mapping[str, Any], intervals: Mapping[str, Any], notes: Iterable[str]
) -> dict[str, Any]:
    section = None
    if "unknown_detections" in details:
        unknown, n = details["unknown_detections"], details["ood_detections"]
        section = {
            "n_det": n,
            "n_det_unknown": unknown,
            "n_det_known": n - unknown,
            **{name: values[name][0] for name in (*COUNTS, *RATES)},
            "unrounded": {name: details[f"{name}_unrounded"] for name in RATES},
            "undefined": {name: values[name][1] for name in RATES if values[name][0] is None},
            "notes": list(notes),
        }
    n_objects = values["n_unknown_gt"][0]
    return {
        "section": section,
        **{name: values[name][0] if name in SEPARABILITY else details[name] for name in PLAIN},
        "FPR95": {"value": values["FPR95"][0]},
        "counts": {
            **{name: details[name] for name in ("id_detections", "ood_detections", "ood_detections_below_threshold",
                                                "background_taken_as_unknown")},
            "objects": n_objects,
            "crowd": details["crowd"],
            "images_with_objects": details["images"] - details["images_without_annotation"],
            "images_without_annotation": details["images_without_annotation"],
        },
        "undefined": {name: values[name][1] for name in SEPARABILITY if values[name][0] is None},
        "intervals": intervals,
        "threshold_reason": values["nOSE"][1],
    }  # fmt: skip


def joined(variants: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return one section of what the variants say, each under its name."""
    first = dict(next(iter(variants.values())))
    reason = first.pop("threshold_reason")
    del first["section"]
    sections = {name: one["section"] for name, one in variants.items()}
    undefined = first["undefined"] | {name: reason for name, section in sections.items() if section is None}
    cells = {
        name if name in SEPARABILITY else f"{variant}.{name}": cell
        for variant, one in variants.items()
        for name, cell in one["intervals"].items()
    }
    return {**first, **sections, "undefined": undefined, "intervals": {"metrics": cells} if cells else None}


def metrics(sections: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table of metrics of version 1."""
    order = ("n_unknown_gt", "n_det", "n_det_unknown", "n_det_known", *COUNTS[1:])
    for one in sections.values():
        place = one["split"], one["method"]
        yield from ((*place, "", name, one[name]) for name in PLAIN)
        yield from ((*place, "", name, value) for name, value in one["counts"].items())
        for variant in ("official", "paper"):
            section = one.get(variant)
            for name in (*RATES, *order) if section else ():
                yield *place, variant, name, section["unrounded"].get(name, section[name])
