"""The rows of an Elephant result by section, as the plain evaluators and expectations name them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from curation.benchmarks.elephant.evaluation import Evaluated
from curation.benchmarks.elephant.measures import ALL_CLASSES, INTERPOLATED, KINDS, TABLES, SharedRows
from curation.evaluation.measures import Measured, Value

Row = Mapping[str, Any]
PARTS = {"closed": "closed", "ratio 1.0": "wr1"}
"""Expectations call the closed set with as many wilderness images WR1, whether or not there is a list of this name."""


def fraction(value: float | None) -> float | None:
    return None if value is None else value / 100


def nested(rows: Iterable[Row], *keys: str, value: str | tuple[str, ...]) -> dict[str, Any]:
    """Return one column of rows, or several by name, in mappings by other columns."""
    found: dict[str, Any] = {}
    for row in rows:
        place = found
        for key in keys[:-1]:
            place = place.setdefault(row[key], {})
        place[row[keys[-1]]] = row[value] if isinstance(value, str) else {name: row[name] for name in value}
    return found


def listed(rows: Iterable[Row], *keys: str, value: str) -> dict[str, Any]:
    """Return the values of one column as lists, in mappings by other columns."""
    found: dict[str, Any] = {}
    for row in rows:
        place = found
        for key in keys[:-1]:
            place = place.setdefault(row[key], {})
        place.setdefault(row[keys[-1]], []).append(row[value])
    return found


def of_json(data: Row) -> dict[str, Any]:
    """Return the sections of a result, as its JSON has them."""
    variants = list(dict.fromkeys(one["variant"] for one in data["scored"]))
    sections = {
        variant: variant_section(
            {one.name: [row for row in data[one.name] if row["variant"] == variant] for one in TABLES}
        )
        for variant in variants
    }
    for row in data["measures"]:
        if row["measure"].endswith("_open"):
            sections[row["variant"]][row["measure"]] = fraction(row["value"])
    for variant, section in sections.items():
        if variant.startswith("paper"):
            section["difficult"] = "count" if "difficult_counted" in variant else "ignore"
    values = [
        Value(row["measure"], row["value"], {"recall": row["parameters"].partition("=")[2]}, row["n"], row["undefined"])
        for row in data["measures"]
        if row["variant"] == variants[0]
    ]
    return sections | shared_sections(data, values)


def of_evaluated(found: Evaluated) -> dict[str, Any]:
    """Return the same of what `evaluate_elephant` returns."""
    first = next(iter(found.variants.values()))
    sections = {name: of_measured(one) for name, one in found.variants.items()}
    for name, one in found.variants.items():
        sections[name] |= {
            value.measure: fraction(value.value) for value in one.values if value.measure.endswith("_open")
        }
    return sections | shared_sections(found.shared, first.values)


def of_measured(found: Measured) -> dict[str, Any]:
    tables = {
        name: [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        for name, table in found.tables.items()
    }
    return variant_section(tables)


def of_owod(found: SharedRows) -> dict[str, Any]:
    return owod(found.tables, found.values)


def of_errors(found: SharedRows) -> dict[str, Any]:
    return errors(found.tables["open_set_errors"], found.values)


def variant_section(tables: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    levels, impact = tables["levels"], tables["impact"]
    is_official = any(row["over_classes"] == INTERPOLATED for row in impact)
    averages = {
        (row["recall"], row["over_classes"]): {key: row[key] for key in ("excl_level0", "incl_level0")}
        for row in tables["average_impact"]
    }
    common = {
        "levels": [row["ratio"] for row in levels],
        "n_wild_images": [row["n_wild_images"] for row in levels],
        "npos": nested(tables["classes"], "class", value="objects"),
    }
    if is_official:
        return {
            **common,
            **nested(tables["counts"], "count", value="value"),
            "n_classes_with_detections": [row["n_classes_with_detections"] for row in levels],
            "mAP": [fraction(row["mAP"]) for row in levels],
            "WI": listed(impact, "recall", value="WI"),
            "AWI": {recall: average for (recall, _), average in averages.items()},
            "mean_interp_precision": listed(impact, "recall", value="mean_interp_precision"),
        }
    left_out = {row["class"]: row["left_out"] for row in tables["classes"] if row["left_out"]}
    points, single = tables["operating_points"], tables["wilderness_impact"]
    thresholds: dict[str, Any] = {}
    impacts: dict[str, Any] = listed(impact, "recall", "over_classes", value="WI")
    for row in points:
        kept = {"threshold": row["threshold"], "TP_c": row["TP"], "FP_c": row["FP"], "recall": row["reached"]}
        kept |= {"reason": row["left_out"]} if row["left_out"] else {}
        thresholds.setdefault(row["recall"], {})[row["class"]] = kept
    for recall, readings in impacts.items():
        at_recall = [row for row in points if row["recall"] == recall]
        of_classes = {
            key: listed([row for row in single if row["recall"] == recall], "class", value=column)
            for key, column in (("per_class", "WI"), ("fp_open", "FP_o"))
        }
        for key, found in of_classes.items():
            readings[key] = {row["class"]: found.get(row["class"]) for row in at_recall}
        readings["classes_averaged"] = [row["class"] for row in at_recall if not row["left_out"]]
        readings["classes_left_out"] = {row["class"]: row["left_out"] for row in at_recall if row["left_out"]}
    awi: dict[str, Any] = {}
    for (recall, reading), average in averages.items():
        awi.setdefault(recall, {})[reading] = average
    percents = {
        key: nested(
            [row | {key: fraction(row[key])} for row in tables["average_precision"]], "ratio", "class", value=key
        )
        for key in ("AP11", "AP_area")
    }
    flavours = ("mAP11", "mAP_area", "mAP11_ties_in_input_order")
    return {
        **common,
        "n_wild_detections": [row["n_wild_detections"] for row in levels],
        "classes_averaged": [name for name in common["npos"] if name not in left_out],
        "classes_left_out": left_out,
        **{key: [fraction(row[key]) for row in levels] for key in flavours},
        **percents,
        "thresholds": thresholds,
        "WI": impacts,
        "AWI": awi,
    }


def shared_sections(data: Row, values: Sequence[Value]) -> dict[str, Any]:
    images = {row["part"]: {key: row[key] for key in row if key != "part"} for row in data["images"]}
    return {
        "n_closed": images["closed"]["images"],
        "n_wild": images["wilderness"]["images"],
        "images": images,
        "n_detections": nested(data["detections"], "part", "class", value="detections"),
        "classes": [row["class"] for row in data["detections"] if row["part"] == "closed"],
        "owod": owod(data, values),
        "a_ose": errors(data["open_set_errors"], values),
        "diagnosis": diagnosis(data["diagnosis"], data["overlaps"]),
        "fbeta": fbeta(data["fbeta"]),
        "background_gap": background_gap(data),
        "bootstrap": bootstrap({**data["bootstrap"], "intervals": data["intervals"]}) if data["bootstrap"] else None,
    }


def owod(data: Row, values: Sequence[Value]) -> dict[str, Any]:
    found = {one.measure: one for one in values}
    classes = data["owod_classes"]
    nearest: dict[str, Any] = {one.parameters["recall"]: {} for one in values if one.measure == "WI_owod"}
    return {
        "WI": {one.parameters["recall"]: one.value for one in values if one.measure == "WI_owod"},
        "nearest_recall": nearest | nested(data["nearest_recalls"], "recall", "class", value="nearest_recall"),
        "classes_left_out": {row["class"]: row["left_out"] for row in classes if row["left_out"]},
        "AOSE_total": found["AOSE_owod"].value,
        "AOSE_per_class": nested(classes, "class", value="AOSE"),
        "AOSE_instances": found["AOSE_objects_owod"].value,
        "n_unknown": found["AOSE_owod"].n,
    }


def errors(rows: Sequence[Row], values: Sequence[Value]) -> dict[str, Any]:
    found = {(one.measure, one.parameters["recall"]): one for one in values if one.measure in ("AOSE", "AOSE_objects")}
    per_class = nested(rows, "recall", "class", value="AOSE")
    return {
        "n_unknown": found["AOSE", "all"].n,
        **{
            recall: {
                "total": one.value,
                "per_class": per_class[recall],
                "instances": found["AOSE_objects", recall].value,
            }
            for (measure, recall), one in found.items()
            if measure == "AOSE"
        },
    }


def diagnosis(rows: Sequence[Row], overlaps: Sequence[Row] = ()) -> dict[str, Any]:
    found: dict[str, Any] = {}
    on = confusion(overlaps, rows)
    for row in rows:
        sections = found.setdefault(row["recall"], {"closed": None, "wr1": None})
        part = PARTS[row["part"]]
        if sections[part] is None:
            empty: dict[str, Any] = {"per_class": {}, "shares": {"per_class": {}}, "left_out": {}}
            sections[part] = empty | on.get(row["recall"], {}).get(part, {})
        section = sections[part]
        counts = None if row["correct"] is None else {kind: row[kind] for kind in KINDS}
        total = counts and sum(counts.values()) - counts["ignored"]
        shares = {kind: n / total for kind, n in counts.items() if kind != "ignored"} if counts and total else None
        if row["class"] == ALL_CLASSES:
            section["total"], section["shares"]["total"] = counts, shares
            continue
        section["per_class"][row["class"]], section["shares"]["per_class"][row["class"]] = counts, shares
        if row["left_out"]:
            section["left_out"][row["class"]] = row["left_out"]
    return found


def confusion(rows: Sequence[Row], diagnosed: Sequence[Row]) -> dict[str, Any]:
    """Return what the detections of each class lie on, of the recalls, parts and classes that were diagnosed."""
    found: dict[str, Any] = {}
    for row in diagnosed:
        section, part = found.setdefault(row["recall"], {"closed": None, "wr1": None}), PARTS[row["part"]]
        section[part] = section[part] or {"confusion": {}, "background": {}}
        if row["class"] != ALL_CLASSES:
            section[part]["background"][row["class"]] = 0
    for row in rows:
        section = found[row["recall"]][PARTS[row["part"]]]
        if row["true"]:
            section["confusion"].setdefault(row["detected"], {})[row["true"]] = row["detections"]
        else:
            section["background"][row["detected"]] = row["detections"]
    return found


def fbeta(rows: Sequence[Row]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for row in rows:
        point = {key: row[key] for key in ("F", "precision", "recall", "threshold", "TP", "FP", "n")}
        point |= {"reason": row["undefined"]} if row["undefined"] else {}
        found.setdefault(row["class"], {}).setdefault(row["ratio"], {})[row["beta"]] = point
    return found


def background_gap(data: Row) -> dict[str, Any] | None:
    bins = listed(data["background_histogram"], "class", value="true_positives")
    found = {}
    for row in data["background_gaps"]:
        gap = {key: row[key] for key in row if key not in ("class", "undefined")}
        gap |= {"hist20": bins.get(row["class"])}
        found[row["class"]] = gap | ({"reason": row["undefined"]} if row["undefined"] else {})
    return found or None


def bootstrap(data: Row) -> dict[str, Any]:
    found: dict[str, Any] = {key: data[key] for key in data if key != "intervals"}
    for row in data["intervals"]:
        percent = row["measure"].startswith("mAP")
        cell = {key: fraction(row[key]) if percent else row[key] for key in ("estimate", "low", "high")}
        cell |= {"undefined": row["undefined"]} | ({"reason": row["reason"]} if row["reason"] else {})
        if percent:
            found.setdefault(row["measure"], {})[PARTS[row["ratio"]]] = cell
        elif row["measure"] == "AWI":
            by_reading = found.setdefault("AWI", {}).setdefault(row["recall"], {})
            by_reading.setdefault(row["over_classes"], {})[row["ratio"]] = cell
        else:
            by_reading = found.setdefault("WI", {}).setdefault(row["recall"], {})
            by_reading.setdefault(row["over_classes"], []).append({"level": row["ratio"], **cell})
    return found
